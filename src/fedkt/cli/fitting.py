"""Options for files that are not called and coded as the plan has it: nobody edits a file for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from fedkt.cli import options
from fedkt.cli.panels import FITTING
from fedkt.errors import ConfigurationError

if TYPE_CHECKING:
    from fedkt.data.mapping import TableMapping


@dataclass(frozen=True)
class FittingOptions:
    """What a file's names and codes are called in the plan."""

    panel: ClassVar[str] = FITTING
    rename: Annotated[
        list[str] | None,
        typer.Option(metavar="THEIRS=OURS", help="The plan's name for a column of the file; any number of times."),
    ] = None
    label_map: Annotated[
        list[str] | None,
        typer.Option(metavar="THEIRS=OURS,…", help="The agreed classes for the labels of the file, e.g. 1=yes,0=no."),
    ] = None
    value_map: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN:THEIRS=OURS,…",
            help="The agreed values for those of a column, e.g. sex:M=male,F=female, or age:none=?; repeatable.",
        ),
    ] = None

    def mapping(self, accept: list[str] | None = None) -> TableMapping:
        """The choices as they were typed."""
        from pydantic import ValidationError

        from fedkt.data.mapping import TableMapping
        from fedkt.plan.parts import faults_of

        try:
            return TableMapping(
                rename=renames(self.rename or []),
                labels=pairs_of(self.label_map or [], "--label-map", "1=yes,0=no"),
                values=values_by_column(self.value_map or []),
                accept=tuple(accept or ()),
            )
        except ValidationError as reason:
            faults = "; ".join(f"{key}: {words}" for key, _, words in faults_of(reason)[:3])
            raise ConfigurationError(f"--rename, --label-map, --value-map or --accept: {faults}.") from None


@dataclass(frozen=True)
class OwnFileOptions:
    """What a party's names and codes are called in the plan; kept in NAME.mapping.toml beside its data."""

    panel: ClassVar[str] = FITTING
    names: FittingOptions
    accept: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="A column whose values are meant as they are, however odd; any number of times."
        ),
    ] = None

    def mapping(self) -> TableMapping:
        """The choices as they were typed."""
        return self.names.mapping(self.accept)


def renames(texts: list[str]) -> dict[str, str]:
    """The --rename options: a name of the file may have an = in it, one of the plan then not."""
    found: dict[str, str] = {}
    for text in texts:
        theirs, equals, ours = text.rpartition("=")
        add_pair(found, theirs.strip(), ours.strip() if equals else "", text, "--rename", "Age=age")
    return found


def pairs_of(texts: list[str], option: str, example: str) -> dict[str, str]:
    """THEIRS=OURS,… as a dictionary; a pair with a comma in it stands in double quotes."""
    found: dict[str, str] = {}
    for part in (part for text in texts for part in options.split(text)):
        theirs, _, ours = part.rpartition("=")
        add_pair(found, theirs.strip(), ours.strip(), part, option, example)
    return found


def values_by_column(texts: list[str]) -> dict[str, dict[str, str]]:
    """The --value-map options by their column."""
    found: dict[str, dict[str, str]] = {}
    example = "sex:M=male,F=female"
    for text in texts:
        name, colon, pairs = text.partition(":")
        if not (name and colon):
            raise ConfigurationError(f"--value-map takes COLUMN:THEIRS=OURS,…, for instance {example}; got {text!r}.")
        for theirs, ours in pairs_of([pairs], "--value-map", example).items():
            add_pair(found.setdefault(name, {}), theirs, ours, text, "--value-map", example)
    return found


def add_pair(found: dict[str, str], theirs: str, ours: str, text: str, option: str, example: str) -> None:
    """Put one pair among the others, refused where it is none or is there already."""
    if not (theirs and ours):
        raise ConfigurationError(f"{option} takes THEIRS=OURS, for instance {example}; got {text!r}.")
    if theirs in found:
        raise ConfigurationError(f"{option} is given twice for {theirs!r}.")
    found[theirs] = ours
