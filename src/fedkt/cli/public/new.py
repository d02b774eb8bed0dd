"""`fedkt public new`: public rows that nobody had."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from fedkt.cli import options
from fedkt.cli.file_options import FileOptions
from fedkt.cli.panels import DATA, OUTPUT, with_groups
from fedkt.cli.public.schema import Force
from fedkt.errors import ConfigurationError

if TYPE_CHECKING:
    from fedkt.live.made_rows import Source


@dataclass(frozen=True)
class SourceOptions:
    """What rows are made of: one of three."""

    panel: ClassVar[str] = DATA
    schema: Annotated[
        Path | None, typer.Option(help="What everybody knows of the columns: schema.toml, or an older plan.toml.")
    ] = None
    marginals: Annotated[
        list[Path] | None, typer.Option(help="What a party told of its columns; once for each party.")
    ] = None
    consented: Annotated[
        Path | None, typer.Option("--from", help="Rows whose owners agreed that rows are made from them.")
    ] = None
    label: Annotated[str | None, typer.Option(help="With --from: the column to predict, which is left out.")] = None
    categorical: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="With --from: a column of numbers that are categories.")
    ] = None
    ignore: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="With --from: a column to leave out.")] = (
        None
    )


@dataclass(frozen=True)
class RowsOutput:
    """How many rows, and where they go."""

    panel: ClassVar[str] = OUTPUT
    rows: Annotated[int, typer.Option(min=1, max=10_000_000, metavar="N", help="How many rows to make.")] = 2_000
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Decides which rows are drawn.")] = 0
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write them, as CSV.")] = Path("public.csv")
    force: Force = False
    as_json: options.Json = False


@with_groups
def new_rows(sources: SourceOptions, target: RowsOutput, written: FileOptions) -> None:
    """Make public rows without labels, and beside them a file that says how they were made.

    [bold]Examples[/bold]

      fedkt public new --schema schema.toml --rows 4000

      fedkt public new --marginals north.toml --marginals south.toml -o public.csv

      fedkt public new --from consented.csv --label outcome --ignore patient
    """
    from fedkt.cli.output import print_json, stdout, warn
    from fedkt.cli.public.target import check_free
    from fedkt.live.made_rows import write_rows
    from fedkt.live.public_files import origin_path

    if target.output.suffix.lower() != ".csv":
        raise ConfigurationError(f"Rows are written as CSV, so --output ends in .csv; got {target.output}.")
    check_free(target.output, origin_path(target.output), force=target.force)
    source = source_of(sources, written)
    made = write_rows(source, target.output, n_rows=target.rows, seed=target.seed)
    if target.as_json:
        print_json({"output": str(target.output), "origin": str(origin_path(target.output)), **made})
    else:
        stdout.say(
            f"{target.output}: {target.rows:,} rows of {len(source.copula.shares)} columns, without "
            f"{source.copula.description.label!r}, made of {source.words}. {origin_path(target.output)} says how."
        )
        stdout.say(
            f"Next:  fedkt plan new --public {target.output} --label {source.copula.description.label} --classes … "
            "--party …"
        )
    for caution in made["cautions"]:
        warn(caution)


def source_of(options_: SourceOptions, written: FileOptions) -> Source:
    """What rows are made of, of the one way that was chosen."""
    from fedkt.data.format import PLAIN
    from fedkt.live.made_rows import from_consented, from_marginals, from_schema

    given = [options_.schema is not None, bool(options_.marginals), options_.consented is not None]
    if sum(given) != 1:
        raise ConfigurationError(
            "Rows are made of one of --schema (what everybody knows), --marginals (what parties told, once for each) "
            f"and --from (consented rows); got {sum(given)} of them."
        )
    own = (options_.label, options_.categorical, options_.ignore)
    if options_.consented is None and any(own):
        raise ConfigurationError("--label, --categorical and --ignore go with --from; a schema says it itself.")
    if options_.consented is None and written.format() != PLAIN:
        raise ConfigurationError("How a file is written is said of the rows that --from names; other files are TOML.")
    if options_.schema is not None:
        return from_schema(options_.schema)
    if options_.marginals:
        return from_marginals(options_.marginals)
    assert options_.consented is not None
    if options_.label is None:
        raise ConfigurationError("Say which column is the label, so that it is left out: --label outcome")
    own_columns = (options_.categorical or (), options_.ignore or ())
    return from_consented(options_.consented, options_.label, *own_columns, form=written.format())
