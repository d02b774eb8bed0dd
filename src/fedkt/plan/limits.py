"""What no plan has, refused before it costs anything.

Python's TOML parser takes time and memory by the square of the number of parts of a dotted key, and a checker of values
keeps word of every fault: both have to be bounded by what a plan can be.
"""

from __future__ import annotations

import re
from typing import Any

from fedkt.data.columns import MAX_COLUMNS
from fedkt.errors import PlanError
from fedkt.plan.parts import MAX_PARTIES

MAX_PARTS = 8
"""Parts of a dotted key; a plan's have three at most."""
MAX_KEYS = 200
"""Keys of a table, but for the one that names a family for each party."""
MAX_BARE = 500
"""Characters of a key or number without quotes: the parser's pattern for numbers remembers each of them."""
MAX_HEADS = MAX_COLUMNS + MAX_PARTIES + MAX_KEYS
"""Lines that begin with a bracket, as the heads of tables do: the parser keeps a kilobyte for each."""

_KEY = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\[^\n])*+"|'[^'\n]*+')"""
# Where strings and comments end has to be told exactly as the parser does: behind a wrong end a long key could hide.
_LEXEME = re.compile(
    rf"""^[ \t]*+(?P<head>\[)
    |\#[^\n]*+
    |\"\"\"(?:[^\\"]|\\.|"{{1,2}}(?!"))*+"{{3,5}}
    |'''(?:[^']|'{{1,2}}(?!'))*+'{{3,5}}
    |{_KEY}(?:[ \t]*+\.[ \t]*+{_KEY}){{{MAX_PARTS}}}(?P<long>)
    |(?P<bare>[A-Za-z0-9_+-]++)
    |{_KEY}""",
    re.DOTALL | re.VERBOSE | re.MULTILINE,
)


def check_text(text: str, source: str, *, what: str = "plan") -> None:
    """Refuses TOML with a dotted key of very many parts, or with very many tables; `what` is what it should be."""
    heads = 0
    for lexeme in _LEXEME.finditer(text):
        if lexeme["head"] is not None:
            heads += 1
            if heads > MAX_HEADS:
                raise PlanError(f"{source} has more than {MAX_HEADS:,} tables, which no {what} has. Ask for it again.")
        if lexeme["bare"] is not None and len(lexeme["bare"]) > MAX_BARE:
            line = text.count("\n", 0, lexeme.start()) + 1
            raise PlanError(
                f"{source}, line {line}: {lexeme['bare'][:40]!r} … is longer than the {MAX_BARE} characters that a "
                f"number or a key of a {what} may have. Ask for the {what} again."
            )
        if lexeme["long"] is not None:
            line = text.count("\n", 0, lexeme.start()) + 1
            raise PlanError(
                f"{source}, line {line}: a key of more than {MAX_PARTS} parts, {lexeme[0][:40]!r} …, is in no {what}. "
                f"Ask for the {what} again."
            )


def check_lengths(values: dict[str, Any], source: str) -> None:
    """Refuses tables and lists that are longer than any in a plan."""
    waiting: list[tuple[str, Any]] = [("", values)]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, dict):
            most = MAX_PARTIES if key == "models.parties" else MAX_KEYS
            waiting += (
                [(f"{key}.{name}".lstrip("."), each) for name, each in value.items()] if len(value) <= most else []
            )
        elif isinstance(value, list):
            most = MAX_COLUMNS
            waiting += [(key, each) for each in value if isinstance(each, dict | list)] if len(value) <= most else []
        else:
            continue
        if len(value) > most:
            raise PlanError(
                f"{source}: {key[:80] or 'the plan'} has {len(value):,} entries; at most {most:,} are in a plan. Ask "
                "for the plan again."
            )
