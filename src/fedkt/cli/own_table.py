"""A table of the user's own in the place of a dataset: which file, and what its columns and rows are for."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from fedkt.cli.panels import DATA
from fedkt.errors import ConfigurationError

if TYPE_CHECKING:
    from fedkt.data.format import Format
    from fedkt.data.own import OwnFile, OwnTable


@dataclass(frozen=True)
class TableOptions:
    """What is in a file of the user's own."""

    panel: ClassVar[str] = DATA
    label: Annotated[str | None, typer.Option(help="Own table: the column to predict.", metavar="COLUMN")] = None
    party_column: Annotated[
        str | None,
        typer.Option(
            help="Own table: the column that names each row's party. Default: rows are dealt to --parties.",
            metavar="COLUMN",
        ),
    ] = None
    public_file: Annotated[
        Path | None, typer.Option(help="Own table: the public rows; labels in it are used to measure only.")
    ] = None
    public_aside: Annotated[
        float | None,
        typer.Option(help="Own table: share of the rows set aside as public rows, without a file. Default: 0.2."),
    ] = None
    test_file: Annotated[Path | None, typer.Option(help="Own table: the labelled rows to measure on.")] = None
    test_aside: Annotated[
        float | None,
        typer.Option(help="Own table: share of the rows set aside as test rows, without a file. Default: 0.2."),
    ] = None
    categorical: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Own table: a column of numbers that are categories; any number of times."),
    ] = None
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Own table: a column to leave out; any number of times.")
    ] = None


def own_table(dataset: str, options: TableOptions, form: Format) -> OwnTable | None:
    """The user's table behind a DATASET that is a path, written as `form` says; None where it is a dataset's name."""
    from fedkt.data import known_datasets
    from fedkt.data.format import PLAIN
    from fedkt.data.own import ASIDE, OwnTable

    given = [each.name for each in fields(options) if getattr(options, each.name) is not None]
    path = Path(dataset)
    is_known = dataset in known_datasets()
    if is_known or not (path.exists() or path.suffix or path.name != dataset):
        if given:
            known = "fedkt knows its columns" if is_known else "it is neither a file nor a folder"
            raise ConfigurationError(
                f"--{given[0].replace('_', '-')} is for a table of your own; of {dataset!r} {known}. Leave it out, or "
                f"pass a path{f' (./{dataset})' if path.exists() else ''}."
            )
        if form != PLAIN:
            raise ConfigurationError(f"How a file is written is to be said of a table of your own, not of {dataset!r}.")
        return None
    file = file_at(path)
    return OwnTable(
        file,
        label_of(path, options.label, form),
        options.party_column,
        public=rows_from("public", options.public_file, options.public_aside, ASIDE),
        test=rows_from("test", options.test_file, options.test_aside, ASIDE),
        categorical=tuple(options.categorical or ()),
        ignore=tuple(options.ignore or ()),
        form=form,
    )


def file_at(path: Path) -> OwnFile:
    """A file that can be read as a table, as it is now."""
    from fedkt.data.own import OwnFile

    if not path.exists():
        raise ConfigurationError(
            f"{path} is neither a file nor a folder, nor a dataset that fedkt knows. Check the path, or see "
            "`fedkt datasets`."
        )
    return OwnFile.at(path)


def label_of(path: Path, label: str | None, form: Format) -> str:
    """The column to predict; a file of numbered columns calls it as it was called here."""
    from fedkt.data.table import names_its_label, read_table
    from fedkt.data.values import names_text

    if label is not None:
        return label
    if not names_its_label(path):
        return "label"
    raise ConfigurationError(
        f"Which column is to be predicted? Pass --label with one of {path}: "
        f"{names_text(list(read_table(path, form=form).columns))}."
    )


def rows_from(role: str, file: Path | None, share: float | None, usual: float) -> OwnFile | float:
    """The file of the public or test rows, or the share of the rows set aside as such."""
    if file is None:
        return usual if share is None else share
    if share is not None:
        raise ConfigurationError(
            f"--{role}-file has the {role} rows, and --{role}-aside would set others aside. Leave one of them out."
        )
    return file_at(file)
