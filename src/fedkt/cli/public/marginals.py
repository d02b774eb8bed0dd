"""`fedkt public marginals`: what a party tells of its columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedkt.cli import options
from fedkt.cli.file_options import FileOptions
from fedkt.cli.panels import with_groups
from fedkt.cli.public.schema import Force
from fedkt.errors import ConfigurationError

if TYPE_CHECKING:
    from fedkt.live.marginals import Told


@with_groups
def tell_marginals(
    data: Annotated[Path, typer.Argument(help="The party's own file; it stays where it is.", metavar="DATA")],
    schema: Annotated[Path, typer.Option(help="The columns and bins that everybody agreed on: schema.toml.")],
    name: Annotated[str, typer.Option(help="The party's name, as in plans: its ledger adds up by it.")],
    label: Annotated[
        str | None, typer.Option(help="The column to predict: refuse a schema that would tell it.")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Add noise that keeps this ε for a record. Default: exact counts, no promise.")
    ] = None,
    delta: options.Delta = 1e-5,
    ledger: Annotated[
        Path | None, typer.Option(help="Where releases about this file are written down. Default: DATA.ledger.")
    ] = None,
    most_epsilon: Annotated[
        float | None, typer.Option(help="Refuse where the releases in the ledger would cost more together.")
    ] = None,
    alone: Annotated[
        bool,
        typer.Option("--alone", help="Tell each column alone: less noise, and nothing of how columns go together."),
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write it. Default: NAME.toml.")
    ] = None,
    force: Force = False,
    as_json: options.Json = False,
    *,
    written: FileOptions,
) -> None:
    """Count a party's rows by column and bin, and how columns go together, for `fedkt public new --marginals`.

    [bold]Examples[/bold]

      fedkt public marginals north.csv --schema schema.toml --name north --epsilon 1

      fedkt public marginals north.csv --schema schema.toml --name north --epsilon .5 --alone --most-epsilon 2

      fedkt public marginals north.csv --schema schema.toml --name north -o exact.toml

      fedkt public marginals north.csv --schema schema.toml --name north --epsilon 1 --decimal , --missing-value -
    """
    from fedkt.cli.public.target import check_free
    from fedkt.live.marginals import check_told, tell_exactly, tell_with_noise, write_marginals
    from fedkt.live.public_files import read_description, read_rows
    from fedkt.system.files import write_atomically

    target, epsilon = output or Path(f"{name}.toml"), options.above_zero(epsilon, "--epsilon")
    check_free(target, force=force)
    if epsilon is None and (ledger is not None or most_epsilon is not None):
        raise ConfigurationError("Exact counts have no price and no ledger. Leave --ledger and --most-epsilon out.")
    description = read_description(schema)
    check_told(description, name, label)
    table = read_rows(data, description.label, [each.name for each in description.columns], form=written.format())
    if epsilon is None:
        told = tell_exactly(table, description, name, paired=not alone)
    else:
        told = tell_with_noise(
            table,
            description,
            name,
            epsilon=epsilon,
            delta=delta,
            ledger_path=ledger or data.with_name(f"{data.name}.ledger"),
            most_epsilon=options.above_zero(most_epsilon, "--most-epsilon"),
            paired=not alone,
        )
    write_atomically(target, write_marginals(told.marginals))
    print_told(target, told, as_json=as_json)


def print_told(target: Path, told: Told, *, as_json: bool) -> None:
    """What was told, and what it cost."""
    from fedkt.cli.output import print_json, stdout, warn
    from fedkt.privacy.statement import rounded_up

    marginals = told.marginals
    if as_json:
        print_json(
            {
                "output": str(target),
                "party": marginals.party,
                "promise": None if marginals.promise is None else marginals.promise.model_dump(mode="json"),
                "total_epsilon": told.total_epsilon,
                "ledger": told.ledger,
                "schema": marginals.description.digest,
            }
        )
    else:
        stdout.say(f"{target}: {marginals.in_words}")
        if told.total_epsilon is not None:
            stdout.say(
                f"Written into {told.ledger}; everything in it costs {marginals.party!r} epsilon "
                f"{rounded_up(told.total_epsilon)}. Keep {target}: making it again is another release."
            )
    if told.new_ledger:
        warn(f"{told.ledger} is new: releases about these rows that stand in another ledger are not counted.")
    if marginals.promise is None:
        warn("these counts are exact and protect nobody. Use --epsilon where whoever gets them may not know your rows.")
