"""`fedkt keys`: a key pair with which a party signs its bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedkt.cli import options

app = typer.Typer(no_args_is_help=True)
SERVER = "server"
"""Whose key no plan lists."""


@app.callback()
def keys_group() -> None:
    """Make a key to sign bundles with.

    [bold]Examples[/bold]

      fedkt keys new north

      fedkt plan new … --key north=north.pub
    """


@app.command("new")
def new_keys(
    name: Annotated[str, typer.Argument(help="The party's name, as in the plan, or server.", metavar="NAME")],
    folder: Annotated[Path, typer.Option("--output", "-o", help="The folder to write to.")] = Path("."),
    as_json: options.Json = False,
) -> None:
    """Write NAME.key, which stays where it is made, and NAME.pub: a party's goes into the plan.

    A server signs its final model: server.pub goes to those who predict.

    [bold]Examples[/bold]

      fedkt keys new north

      fedkt keys new north -o ~/keys

      fedkt keys new server
    """
    from fedkt.cli.output import print_json, stdout
    from fedkt.live.keys import write_keys

    public = write_keys(name, folder)
    if as_json:
        print_json(
            {"party": name, "public": public, "files": [str(folder / f"{name}.key"), str(folder / f"{name}.pub")]}
        )
        return
    stdout.print(f"{folder / f'{name}.key'}: the private key. Keep it; nobody else may read it.", markup=False)
    if name == SERVER:
        lines = (
            f"{folder / 'server.pub'}: the public key. A server's key does not go into the plan: give server.pub to "
            "those who predict (--server-key).",
            f"  fedkt predict final.onnx … --server-key {public}",
        )
    else:
        lines = (
            f"{folder / f'{name}.pub'}: the public key. Send it to whoever makes the plan:",
            f"  fedkt plan new … --key {name}={public}",
        )
    for line in lines:
        stdout.say(line)
