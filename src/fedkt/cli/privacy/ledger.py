"""`fedkt privacy ledger`: what has been spent, on what, by whom."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fedkt.cli import options


def ledger(
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
    import warnings

    from rich.table import Table
    from rich.text import Text

    from fedkt.cli.output import print_json, stderr, stdout
    from fedkt.errors import PrivacyError
    from fedkt.privacy.ledger import total_of
    from fedkt.privacy.ledger_file import LedgerFile
    from fedkt.privacy.price import common_adjacency
    from fedkt.privacy.statement import rounded_up

    with warnings.catch_warnings():
        # What was repaired is said below, in one line.
        warnings.simplefilter("ignore", RuntimeWarning)
        ledger_file = LedgerFile.open(file, create=False)
    for repair in ledger_file.repairs:
        stderr.print(repair, markup=False, highlight=False, soft_wrap=True)
    entries = ledger_file.spent(who=owner)
    if owner is not None and not entries:
        known = ", ".join(dict.fromkeys(entry.who for entry in ledger_file.entries)) or "nobody"
        raise PrivacyError(f"The ledger {file} has no release by {owner!r}. It has releases by: {known}.")

    totals: list[dict[str, Any]] = []
    # A party and a record have no common ε: an owner who released about both has two totals.
    for who, unit in dict.fromkeys((entry.who, entry.unit) for entry in entries):
        own = [entry for entry in entries if (entry.who, entry.unit) == (who, unit)]
        totals.append(
            {
                "owner": who,
                "unit": unit,
                "adjacency": common_adjacency(own),
                "releases": len(own),
                "queries": sum(entry.queries for entry in own),
                "epsilon": total_of(own, delta),
                "delta": delta,
            }
        )
    if as_json:
        said = [{**vars(entry), "scale": dict(entry.scale)} for entry in entries]
        print_json({"ledger": str(file), "delta": delta, "totals": totals, "entries": said})
        return
    table = Table(title=str(file))
    table.add_column("no.", justify="right")
    table.add_column("when (UTC)", no_wrap=True)
    for column in ("who", "labels", "of", "noise", "purpose"):
        table.add_column(column, justify="right" if column == "labels" else "left")
    for entry in entries:
        scale = ", ".join(f"{name} {value:.5g}" for name, value in entry.scale.items())
        cells = (
            str(entry.number),
            entry.time[:16].replace("T", " "),
            entry.who,
            f"{entry.queries:,}",
            f"{entry.voters} voters, {entry.classes} classes",
            f"{entry.mechanism}, {scale}",
            entry.purpose,
        )
        # As text: a party may be called "[red]".
        table.add_row(*(Text(cell) for cell in cells))
    stdout.print(table)
    for each in totals:
        stdout.print(
            f"{each['owner']} has spent epsilon {rounded_up(each['epsilon'])} at delta {delta:g} for one "
            f"{each['unit']} ({each['adjacency']}): {each['queries']:,} labels in {each['releases']} "
            f"release{'' if each['releases'] == 1 else 's'}.",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    if len(entries) > 1:
        stdout.print(
            "What several releases have spent is the least budget, fixed before the first, that lets all of them pass.",
            soft_wrap=True,
        )
    if not entries:
        stdout.print("Nothing has been spent.")
