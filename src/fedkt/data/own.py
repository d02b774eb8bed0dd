"""A user's own table to simulate with: its files, and what its columns and rows are for.

What `read_table` reads becomes parties' rows, public rows and test rows (`fedkt.data.own_rows`): public and test rows
from files of their own, or set aside from the same table, in every party and class in proportion (`fedkt.data.aside`).
The columns become numbers by a schema of the public rows alone, as in a plan.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from fedkt.data.digest import file_digest
from fedkt.data.format import PLAIN, Format
from fedkt.errors import ConfigurationError, DataError

ASIDE = 0.2
"""Share of the rows that become public rows, as in `FedKTClassifier`, and share of those that become test rows."""
MOST_ASIDE = 0.9


@dataclass(frozen=True)
class OwnFile:
    """A file, and what tells it from what it may be changed to."""

    path: Path
    sha256: str

    @classmethod
    def at(cls, path: Path) -> OwnFile:
        """The file as it is now."""
        return cls(path, file_digest(path, with_labels=True))

    def check(self) -> None:
        """Refuse a file that is no longer the one it was."""
        if file_digest(self.path, with_labels=True) != self.sha256:
            raise DataError(
                f"{self.path} has changed since this run was set up: its SHA-256 was {self.sha256}. Run it anew."
            )

    def facts(self) -> dict[str, str]:
        """Its name and digest: where it lies is nobody's business, and changes nothing."""
        return {"file": self.path.name, "sha256": self.sha256}


@dataclass(frozen=True)
class OwnTable:
    """A table to simulate with, and what its columns and rows are for."""

    file: OwnFile
    label: str = "label"
    party_column: str | None = None
    """Whose values name the parties; None where a partition deals the rows out."""
    public: OwnFile | float = ASIDE
    """The public rows: a file, or the share of the rows set aside."""
    test: OwnFile | float = ASIDE
    """The test rows, likewise."""
    categorical: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    form: Format = PLAIN
    """How `file` is written; nothing is said of the public and test rows' own files."""

    def __post_init__(self) -> None:
        for name, share in (("public", self.public), ("test", self.test)):
            if not isinstance(share, OwnFile) and not 0 < share <= MOST_ASIDE:
                raise ConfigurationError(
                    f"The share set aside as {name} rows lies above 0 and at most at {MOST_ASIDE}, got {share!r}."
                )
        if sum(share for share in (self.public, self.test) if not isinstance(share, OwnFile)) > MOST_ASIDE:
            raise ConfigurationError(
                f"Public and test rows together are {self.public} and {self.test} of all rows; at most {MOST_ASIDE} "
                "may be set aside, or the parties have too few."
            )
        for option, each in (("--public-file", self.public), ("--test-file", self.test)):
            if isinstance(each, OwnFile) and each.sha256 == self.file.sha256:
                raise ConfigurationError(
                    f"{option} {each.path} is the same file as {self.file.path}: the parties' rows would be measured "
                    "by themselves. Pass other rows, or leave it out and have some set aside."
                )
        if self.party_column == self.label:
            raise ConfigurationError(f"Column {self.label!r} cannot be both what is predicted and the party.")

    @property
    def name(self) -> str:
        """What results call it."""
        return self.file.path.name

    @property
    def partition(self) -> str:
        """How its rows come to the parties where nobody says otherwise."""
        return "dirichlet" if self.party_column is None else "column"

    def facts(self) -> dict[str, Any]:
        """All that decides its rows, as plain values."""
        roles = {"public": self.public, "test": self.test}
        return {
            **self.file.facts(),
            "label": self.label,
            "party_column": self.party_column,
            **{name: each.facts() if isinstance(each, OwnFile) else each for name, each in roles.items()},
            "categorical": sorted(self.categorical),
            "ignore": sorted(self.ignore),
            **{each.name: getattr(self.form, each.name) for each in fields(Format) if told(self.form, each.name)},
        }

    def source(self) -> str:
        """Where the rows come from, in words."""
        parts = [f"{self.name} (sha256 {self.file.sha256})"]
        for name, each in (("public", self.public), ("test", self.test)):
            parts.append(
                f"{name} rows from {each.path.name} (sha256 {each.sha256})"
                if isinstance(each, OwnFile)
                else f"{100 * each:g} % set aside as {name} rows"
            )
        return ", ".join(parts)


def told(form: Format, name: str) -> bool:
    """Whether somebody said this of how a file is written."""
    return bool(getattr(form, name) != getattr(PLAIN, name))
