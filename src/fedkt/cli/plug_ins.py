"""`fedkt plug-ins`: what installed packages add to the catalogues."""

from __future__ import annotations

from dataclasses import asdict

from fedkt.cli import options


def plug_ins(as_json: options.Json = False) -> None:
    """List the algorithms, datasets, models and noises that installed packages bring, and from which package each is.

    [bold]Example[/bold]

      fedkt plug-ins
    """
    from fedkt.algorithms import known_algorithms
    from fedkt.cli.grids import print_grid
    from fedkt.cli.output import print_json, stdout
    from fedkt.data import known_datasets
    from fedkt.lab.grid import Grid
    from fedkt.models.catalogue import known_models
    from fedkt.privacy.mechanisms import known_noises
    from fedkt.system.plug_ins import KINDS, loaded

    for look in (known_algorithms, known_datasets, known_models, known_noises):
        look()
    found = [each for group in KINDS for each in loaded(group)]
    if as_json:
        print_json({"plug_ins": [{"kind": each.kind, **asdict(each)} for each in found]})
    elif found:
        lines = [
            [each.kind, each.name, f"{each.package} {each.version}", "no" if each.fault else "yes"] for each in found
        ]
        print_grid(Grid(["kind", "name", "package", "works"], lines, "Plug-ins", words=("package",)))
    else:
        stdout.say("No installed package brings a plug-in. How to write one: docs/guide/plug-ins.md")
