"""`fedkt datasets`: what there is to run on."""

from __future__ import annotations

from fedkt.cli import options


def datasets(as_json: options.Json = False) -> None:
    """List the datasets and what they default to.

    [bold]Example[/bold]

      fedkt datasets
    """
    from fedkt.cli.grids import print_grid
    from fedkt.cli.output import print_json
    from fedkt.data import known_datasets
    from fedkt.lab.grid import Grid

    if as_json:
        print_json(
            {
                name: {"about": each.description, "parties": each.n_parties, "model": each.model}
                for name, each in known_datasets().items()
            }
        )
        return
    lines = [[name, str(each.n_parties), each.model, each.description] for name, each in known_datasets().items()]
    print_grid(Grid(["dataset", "parties", "model", "about"], lines, "Datasets", words=("model", "about")))
