"""What the bytes of a ledger and of its head say: a chain of entries, refused where it is not what was written."""

from __future__ import annotations

import json
import stat
from collections.abc import Sequence
from pathlib import Path

from fedkt.errors import PrivacyError
from fedkt.privacy.entries import FIRST, Entry, canonical, digest_or, entry_from, number_at_least
from fedkt.system.files import read_at_most

MAX_LINE = 16 * 2**10
"""The longest entry; the bounds on its fields keep it shorter."""
BEGINNING = b'{"abstentions":'
"""How a ledger begins, in the canonical form of its first entry."""


def damage(path: Path, what: str) -> PrivacyError:
    """The words for a ledger that is not what was written."""
    return PrivacyError(
        f"The ledger {path} is damaged: {what.rstrip('.')}. The ledger cannot be trusted; nothing is released. "
        f"Restore {path.name} and {path.name}.head together from the newest copy you have."
    )


def check_kind(path: Path, text: bytes) -> None:
    """Refuse a file that is no ledger at all, before anything in it is taken for an interrupted write and cut off."""
    start = text[: len(BEGINNING)]
    # What a power cut left of a first line may be a part of it, or zeros.
    if BEGINNING.startswith(start) or not start.strip(b"\0"):
        return
    beside = path.with_name(f"{path.name}.ledger")
    hint = f" Did you mean {beside}?" if beside.is_file() else ""
    raise PrivacyError(f"{path} is not a ledger: line 1 is no entry of one. Nothing in it is touched.{hint}")


def read_chain(path: Path, text: bytes, before: Sequence[Entry], start: int) -> tuple[list[Entry], int, str]:
    """The entries, where the last whole one ends, and what is wrong with an interrupted last line (else nothing).

    The first `start` bytes are known to hold the entries `before`.
    """
    entries, interrupted = list(before), ""
    while start < len(text) and not interrupted:
        end = text.find(b"\n", start) + 1 or len(text)
        line, number = text[start:end], len(entries) + 1
        if len(line) > MAX_LINE:
            raise damage(path, f"line {number} is longer than the {MAX_LINE} bytes an entry can have")
        try:
            fields = json.loads(line.decode("ascii"))
        except (ValueError, RecursionError):
            interrupted = f"line {number} is not JSON"
        if not line.endswith(b"\n"):
            interrupted = f"line {number} does not end"
        if interrupted and end < len(text):
            raise damage(path, interrupted)
        if not interrupted:
            try:
                entries.append(entry_from(fields, line, entries[-1] if entries else None))
            except PrivacyError as reason:
                raise damage(path, f"line {number}: {reason}") from reason
            start = end
    return entries, start, interrupted


def run_ends(path: Path, entries: Sequence[Entry]) -> list[int]:
    """Where each run ends, in entries; the last may end beyond what there is: it was not written whole."""
    ends = [0]
    while ends[-1] < len(entries):
        start = ends[-1]
        run = entries[start : start + entries[start].together]
        if any(each.together != run[0].together for each in run):
            raise damage(path, f"the entries from {start + 1} on are not those that were written together")
        ends.append(start + run[0].together)
    return ends


def read_head(path: Path, head: Path) -> tuple[int, str]:
    """How many entries were last known to be written, and the digest of the last; none where there is no head."""
    text = read_bytes(head, MAX_LINE)
    if not text:
        if head.exists():
            raise damage(path, f"its head {head.name} is empty")
        return 0, FIRST
    try:
        fields = json.loads(text.decode("ascii"))
        count, digest = number_at_least("count", fields["count"], 1), digest_or("digest", fields["digest"], FIRST)
        if canonical({"count": count, "digest": digest}) + b"\n" != text:
            raise ValueError("not as it was written")
    except (ValueError, RecursionError, TypeError, KeyError, PrivacyError) as reason:
        raise damage(path, f"its head {head.name} cannot be read ({reason})") from reason
    return count, digest


def read_bytes(path: Path, limit: int) -> bytes:
    """The file's bytes, none where it does not exist; refused where it is longer, no plain file or has two names."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise PrivacyError(f"{path} is not a plain file with one name, so it is not used as a ledger.")
        text = read_at_most(path, limit)
    except FileNotFoundError:
        return b""
    if text is None:
        raise PrivacyError(f"{path} is longer than the {limit:,} bytes that are read of it; nothing is released.")
    return text
