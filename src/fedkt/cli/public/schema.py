"""`fedkt public schema`: the columns of rows that may be described, as a file to read and correct."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedkt.cli import options
from fedkt.cli.file_options import FileOptions
from fedkt.cli.panels import with_groups

HEAD = """What everybody knows of the columns. Read it before it leaves: it has the smallest and the largest number of
each column, and every category. A range can also be written as low, high and bins; shares say how often each bin or
category occurs, and missing which share has no value (0: rows that are made have no gaps)."""

Label = Annotated[str, typer.Option(help="The column to predict; public rows have none.")]
Categorical = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="A column of numbers that are categories; any number of times."),
]
Ignore = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="A column to leave out; any number of times.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")]


@with_groups
def new_schema(
    file: Annotated[Path, typer.Argument(help="Rows that may be described.", metavar="FILE")],
    label: Label,
    categorical: Categorical = None,
    ignore: Ignore = None,
    bins: Annotated[int, typer.Option(min=1, max=1000, metavar="N", help="Parts of the range of a number.")] = 10,
    shares: Annotated[bool, typer.Option("--shares", help="Also say how often each bin and category occurs.")] = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write it.")] = Path("schema.toml"),
    force: Force = False,
    as_json: options.Json = False,
    *,
    written: FileOptions,
) -> None:
    """Describe the columns of an older release, an extract or consented rows: ranges, bins and categories.

    [bold]Examples[/bold]

      fedkt public schema release-2019.csv --label outcome --shares

      fedkt public schema consented.csv --label outcome --categorical ward --ignore patient --bins 5

      fedkt public schema release.csv --label outcome --decimal , --missing-value -
    """
    from fedkt.cli.output import print_json, stdout
    from fedkt.cli.public.target import check_free
    from fedkt.data.describing import describe
    from fedkt.live.public_files import read_rows, write_description
    from fedkt.system.files import write_atomically

    check_free(output, force=force)
    table = read_rows(file, label, form=written.format())
    found = describe(table, label=label, categorical=categorical or (), ignore=ignore or (), bins=bins)
    found = found.with_shares(table) if shares else found.bins
    write_atomically(output, write_description(found, HEAD.splitlines()))
    if as_json:
        print_json({"output": str(output), "columns": [each.name for each in found.columns], "digest": found.digest})
        return
    stdout.say(
        f"{output}: {len(found.columns)} columns, without {label!r}. Read it before it leaves: smallest and largest "
        "numbers and rare categories may tell of single rows. Correct what must not be known, and send it to everybody."
    )
