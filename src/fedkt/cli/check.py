"""`fedkt party --check`: what a run would find, on the terminal of the party."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fedkt.live.findings import Findings

MARKS = {"ok": "ok", "note": "note", "problem": "PROBLEM"}


def print_check(found: Findings, *, as_json: bool) -> None:
    """Every line, then whether it would run; the exit code says the same."""
    from fedkt.cli.output import complain, print_json, stdout
    from fedkt.data.values import plural

    if as_json:
        print_json({**found.facts, "would_run": not found.problems, "findings": [asdict(each) for each in found.lines]})
    else:
        for each in found.lines:
            stdout.say(f"{MARKS[each.status]:<8} {each.what:<8} {each.text}")
    if found.problems:
        complain(f"It would not run: {plural(len(found.problems), 'problem')}. Nothing was trained, spent or written.")
    if not as_json:
        stdout.say("It would run: leave --check out. Nothing was trained on your rows, spent or written.")
