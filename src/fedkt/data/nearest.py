"""What somebody probably meant: the nearest of the names that are known, and the option that would say so."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Mapping, Sequence

SIMILAR = 0.6
"""How alike two names are, by difflib, before one is offered for the other."""
MOST_KNOWN = 2_000
"""Among more names only those are found that differ in case and gaps: comparing letters takes its time."""
MOST_OFFERS = 8
"""Options that one message offers."""


def folded(name: object) -> str:
    """A name without what differs from hand to hand: case, spaces, underscores, hyphens, dots."""
    return re.sub(r"[\s_.\-]+", "", str(name)).casefold()


def nearest(name: object, known: Sequence[str]) -> str | None:
    """The known name that is probably meant: the same but for case and gaps, one it abbreviates, or one like it."""
    short = folded(name)
    same = {folded(each): each for each in reversed(known)}
    if short in same:
        return same[short]
    # Numbers that look alike do not mean alike.
    if not short or short.replace("+", "").isdecimal() or len(known) > MOST_KNOWN:
        return None
    longer = [each for each in same if each.startswith(short) or (each and short.startswith(each))]
    if longer:
        return same[longer[0]] if len(longer) == 1 else None
    close = difflib.get_close_matches(short, list(same), n=1, cutoff=SIMILAR)
    return same[close[0]] if close else None


def partners(names: Sequence[str], known: Sequence[str]) -> dict[str, str]:
    """For each name the known one that is probably meant, where there is one; none is meant by two."""
    found: dict[str, str] = {}
    free = {folded(each): each for each in reversed(known)}
    for name in names:
        if folded(name) in free:
            found[name] = free.pop(folded(name))
    for name in [each for each in names if each not in found][:MOST_OFFERS]:
        near = nearest(name, list(free.values()))
        if near is not None:
            found[name] = near
            free = {fold: each for fold, each in free.items() if each != near}
    return found


def rename_offer(absent: Sequence[str], theirs: Sequence[str]) -> str:
    """The options that would call a file's columns as agreed, as a question; how they look where no name is alike."""
    pairs = {mine: agreed for agreed, mine in partners(absent, theirs).items()}
    options = [f"--rename {shlex.quote(f'{mine}={agreed}')}" for mine, agreed in list(pairs.items())[:MOST_OFFERS]]
    if options:
        return f" Did you mean {' '.join(options)}?"
    return " If it has names of its own for them: --rename THEIRS=OURS." if theirs else ""


def map_offer(option: str, pairs: Mapping[str, str]) -> str:
    """An option that maps values, as it is typed: --label-map 1=yes,0=no."""
    before, _, column = option.partition(" ")
    values = ",".join(quoted(f"{theirs}={agreed}") for theirs, agreed in list(pairs.items())[:MOST_OFFERS])
    return f"{before} {shlex.quote(f'{column}:{values}' if column else values)}"


def quoted(part: str) -> str:
    """A part of a list as it is typed: in double quotes where it has a comma, or would be taken for quoted."""
    return '"' + part.replace('"', '""') + '"' if "," in part or part.startswith('"') else part
