"""`fedkt public`: rows that everybody may have, where there are none. One verb a file."""

from __future__ import annotations

import typer

from fedkt.cli.public import marginals, new, schema

app = typer.Typer(no_args_is_help=True)


@app.callback()
def public_group() -> None:
    """Make public rows from what everybody knows, from what parties tell of their columns, or from consented rows.

    [bold]Examples[/bold]

      fedkt public new --schema schema.toml -o public.csv

      fedkt public marginals north.csv --schema schema.toml --name north --epsilon 1 -o north.toml

      fedkt public new --marginals north.toml --marginals south.toml -o public.csv
    """


app.command("new")(new.new_rows)
app.command("marginals")(marginals.tell_marginals)
app.command("schema")(schema.new_schema)
