"""`fedkt datasets`: what there is to run on."""

from __future__ import annotations

from fedkt.cli import options


def datasets(as_json: options.Json = False) -> None:
    """List the datasets and what they default to.

    [bold]Example[/bold]

      fedkt datasets
    """
    from rich.table import Table

    from fedkt.cli.output import print_json, stdout
    from fedkt.data import DATASETS

    if as_json:
        print_json(
            {
                name: {"about": each.description, "parties": each.n_parties, "model": each.model}
                for name, each in DATASETS.items()
            }
        )
        return
    table = Table("dataset", "parties", "model", "about", title="Datasets")
    for name, each in DATASETS.items():
        table.add_row(name, str(each.n_parties), each.model, each.description)
    stdout.print(table)
