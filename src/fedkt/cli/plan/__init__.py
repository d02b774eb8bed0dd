"""`fedkt plan`: what everyone agrees on before the one round. One verb a file."""

from __future__ import annotations

import typer

from fedkt.cli.plan import check, new

app = typer.Typer(no_args_is_help=True)


@app.callback()
def plan_group() -> None:
    """Make or read the plan that everyone agrees on.

    [bold]Examples[/bold]

      fedkt plan new --public public.csv --label outcome --classes yes,no --party north --party south

      fedkt plan check plan.toml --public public.csv
    """


app.command("new")(new.new_plan)
app.command("check")(check.check_plan)
