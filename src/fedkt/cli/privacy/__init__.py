"""`fedkt privacy`: what a noisy vote costs, which noise to take, and whether the claim holds. One verb a file."""

from __future__ import annotations

import typer

from fedkt.cli.privacy import audit, calibrate, ledger, plot, price

app = typer.Typer(help="Price, choose, audit and look up the noise of a private run.", no_args_is_help=True)

app.command()(price.price)
app.command()(calibrate.calibrate)
app.command()(plot.plot)
app.command()(audit.audit)
app.command()(ledger.ledger)
