"""`fedkt privacy`: what a noisy vote costs, which noise to take, and whether the claim holds. One verb a file."""

from __future__ import annotations

import typer

from fedkt.cli.privacy import audit, calibrate, ledger, plot, price

app = typer.Typer(no_args_is_help=True)


@app.callback()
def privacy_group() -> None:
    """Price, choose, audit and look up the noise of a private run.

    [bold]Examples[/bold]

      fedkt privacy price --noise gaussian:40 --queries 300 --voters 100

      fedkt privacy calibrate --epsilon 2 --queries 300 --voters 100

      fedkt privacy ledger north.csv.ledger
    """


app.command("price")(price.show_price)
app.command("calibrate")(calibrate.calibrate)
app.command("plot")(plot.plot)
app.command("audit")(audit.run_audit)
app.command("ledger")(ledger.show_ledger)
