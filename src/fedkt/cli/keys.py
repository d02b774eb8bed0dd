"""`fedkt keys`: a key pair with which a party signs its bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedkt.cli import options

app = typer.Typer(no_args_is_help=True)


@app.callback()
def group() -> None:
    """Make a key to sign bundles with.

    [bold]Examples[/bold]

      fedkt keys new north

      fedkt plan new … --key north=north.pub
    """


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="The party's name, as in the plan.", metavar="NAME")],
    folder: Annotated[Path, typer.Option("--output", "-o", help="The folder to write to.")] = Path("."),
    as_json: options.Json = False,
) -> None:
    """Write NAME.key, which stays with the party, and NAME.pub, which goes into the plan.

    [bold]Examples[/bold]

      fedkt keys new north

      fedkt keys new north -o ~/keys
    """
    from fedkt.cli.output import print_json, stdout
    from fedkt.party_side import write_keys

    public = write_keys(name, folder)
    if as_json:
        print_json(
            {"party": name, "public": public, "files": [str(folder / f"{name}.key"), str(folder / f"{name}.pub")]}
        )
        return
    stdout.print(f"{folder / f'{name}.key'}: the private key. Keep it; nobody else may read it.", markup=False)
    stdout.print(f"{folder / f'{name}.pub'}: the public key. Send it to whoever makes the plan:", markup=False)
    stdout.print(f"  fedkt plan new … --key {name}={public}", markup=False, highlight=False, soft_wrap=True)
