"""The code of a text's characters, by rules that give the same answer for the same bytes everywhere.

1. A mark at the beginning says it: UTF-8, UTF-16 or UTF-32.
2. Else it is UTF-8, if all of it can be.
3. Else it is Windows-1252, the code of Western Europe (and of Latin-1 text), if it looks like that: no character is
   UTF-8, no byte is without a meaning, no sign stands inside a word, and letters with accents mostly stand alone or
   in pairs.
4. Else nobody knows, and it is refused until somebody says it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from fedkt.data.bounds import BLOCK, TEXT_COST, open_bytes
from fedkt.errors import DataError

MARKS = {
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
"""What a text may begin with, and what it says; the longer ones first."""
WESTERN = "cp1252"
MEANINGLESS = re.compile(rb"[\x00\x81\x8d\x8f\x90\x9d]")
UTF8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
HIGH = re.compile(rb"[\x80-\xff]")
BETWEEN_LETTERS = "’‘‚ªº·\xad\xa0–—-"
"""Signs that may stand inside a word."""
WORD = re.compile(r"[^\W\d_]*[^\x00-\x7f][^\W\d_]*")


@dataclass
class _Signs:
    """What was counted in a text that is not UTF-8."""

    foreign: int = 0
    together: int = 0
    line: int = 1
    word: str = ""
    against: str = ""
    """Why it is not Windows-1252."""


def marked_encoding(path: Path) -> str | None:
    """What the mark at a text's beginning says; None where there is none."""
    with open_bytes(path, TEXT_COST) as stream:
        head = stream.read(4)
    return next((name for mark, name in MARKS.items() if head.startswith(mark)), None)


def western_encoding(path: Path) -> tuple[str, str]:
    """Windows-1252 and a note of it, for a text that is not UTF-8; refused where it does not look like that."""
    signs = _Signs()
    with open_bytes(path, TEXT_COST) as stream:
        tail = b""
        while block := stream.read(BLOCK):
            # What stands on the edge of a block is looked at with the next one.
            _look_at(tail + block, len(tail), signs)
            if signs.against:
                break
            tail = block[-8:]
    if signs.together > signs.foreign / 2:
        signs.against = "most of its letters beyond ASCII stand three or more together"
    where = f"line {signs.line}: {signs.word!r}"
    if signs.against:
        raise DataError(
            f"{path} is not UTF-8 text ({where}), nor does it look like Windows-1252: {signs.against}. Save it as "
            "UTF-8, or say what it is: --encoding cp1250 (Central Europe), cp1251 (Cyrillic), cp850 (DOS), mac-roman, "
            "shift-jis, gb18030, utf-16-le."
        )
    note = f"{path} is not UTF-8; read as Windows-1252 ({where}). If letters are wrong, say what it is: --encoding NAME"
    return WESTERN, note


def _look_at(data: bytes, known: int, signs: _Signs) -> None:
    """Count what speaks for and against Windows-1252; the first `known` bytes were looked at before."""
    high = HIGH.search(data, known)
    if not signs.word:
        signs.line += data.count(b"\n", known, len(data) if high is None else high.start())
    if high is None:
        return
    text = data.decode(WESTERN, errors="replace")
    if not signs.word:
        start = max(high.start() - 40, 0)
        found = next((m for m in WORD.finditer(text, start) if m.end() > high.start()), None)
        signs.word = "" if found is None else found[0][:40]
    if MEANINGLESS.search(data):
        signs.against = "some bytes mean nothing there"
    elif UTF8.search(data):
        signs.against = "some of it is UTF-8"
    for run in re.finditer(r"[^\x00-\x7f]+", text[known:]):
        signs.foreign += len(run[0])
        signs.together += len(run[0]) if len(run[0]) > 2 and run[0].isalpha() else 0
    for found in re.finditer(r"(?<=[^\W\d_])[^\x00-\x7f](?=[^\W\d_])", text):
        if not found[0].isalpha() and found[0] not in BETWEEN_LETTERS:
            signs.against = signs.against or f"{found[0]!r} would stand inside a word"
