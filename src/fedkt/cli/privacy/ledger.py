"""`fedkt privacy ledger`: what has been spent, on what, by whom."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedkt.cli import options

if TYPE_CHECKING:
    from fedkt.privacy.entries import Entry


def show_ledger(
    file: Annotated[Path, typer.Argument(help="The ledger file.", metavar="FILE")],
    owner: Annotated[str | None, typer.Option(help="Only what this party, or 'server', has spent.")] = None,
    delta: options.Delta = 1e-5,
    as_json: options.Json = False,
) -> None:
    """Show every release a ledger holds, and what all of an owner's releases cost together.

    [bold]Examples[/bold]

      fedkt privacy ledger ledger.jsonl

      fedkt privacy ledger ledger.jsonl --owner north --delta 1e-6 --json
    """
    from fedkt.cli.output import print_json, stdout
    from fedkt.privacy.statement import rounded_up

    entries = entries_of(file, owner)
    totals = totals_of(entries, delta)
    if as_json:
        print_json(
            {"ledger": str(file), "delta": delta, "totals": totals, "entries": [each.as_dict() for each in entries]}
        )
        return
    print_entries(str(file), entries)
    for each in totals:
        stdout.say(
            f"{each['owner']} has spent epsilon {rounded_up(each['epsilon'])} at delta {delta:g} for one "
            f"{each['unit']} ({each['adjacency']}): {each['queries']:,} labels in {each['releases']} "
            f"release{'' if each['releases'] == 1 else 's'}."
        )
    if len(entries) > 1:
        stdout.say(
            "What several releases have spent is the least budget, fixed before the first, that lets all of them pass."
        )
    if not entries:
        stdout.say("Nothing has been spent.")


def entries_of(file: Path, owner: str | None) -> list[Entry]:
    """The entries of an owner, or all; what had to be repaired is told."""
    import warnings

    from fedkt.cli.output import stderr
    from fedkt.errors import PrivacyError
    from fedkt.privacy.ledger_file import LedgerFile

    with warnings.catch_warnings():
        # What was repaired is said below, in one line.
        warnings.simplefilter("ignore", RuntimeWarning)
        ledger_file = LedgerFile.open(file, create=False)
    for repair in ledger_file.repairs:
        stderr.say(repair)
    entries = ledger_file.spent(who=owner)
    if owner is not None and not entries:
        owners = ", ".join(dict.fromkeys(entry.who for entry in ledger_file.entries)) or "nobody"
        raise PrivacyError(f"The ledger {file} has no release by {owner!r}. It has releases by: {owners}.")
    return entries


def totals_of(entries: list[Entry], delta: float) -> list[dict[str, Any]]:
    """What each owner has spent. A party and a record have no common ε: who released about both has two totals."""
    from fedkt.privacy.ledger import total_of
    from fedkt.privacy.price import common_adjacency

    totals = []
    for who, unit in dict.fromkeys((entry.who, entry.release.unit) for entry in entries):
        group = [entry for entry in entries if (entry.who, entry.release.unit) == (who, unit)]
        totals.append(
            {
                "owner": who,
                "unit": unit,
                "adjacency": common_adjacency(entry.release for entry in group),
                "releases": len(group),
                "queries": sum(entry.release.queries for entry in group),
                "epsilon": total_of(group, delta),
                "delta": delta,
            }
        )
    return totals


def print_entries(title: str, entries: list[Entry]) -> None:
    """The entries as a table."""
    from fedkt.cli.grids import print_grid
    from fedkt.lab.grid import Grid

    lines = []
    for entry in entries:
        release = entry.release
        scale = ", ".join(f"{name} {value:.5g}" for name, value in entry.as_dict()["scale"].items())
        lines.append(
            [
                str(entry.number),
                entry.time[:16].replace("T", " "),
                entry.who,
                f"{release.queries:,}",
                f"{release.voters} voters, {release.classes} classes",
                f"{release.noise.name}, {scale}",
                release.purpose,
            ]
        )
    head = ["no.", "when (UTC)", "who", "labels", "of", "noise", "purpose"]
    print_grid(Grid(head, lines, title, words=("who", "of", "noise", "purpose")))
