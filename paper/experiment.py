"""An experiment: the runs behind one table or figure, written down in a TOML file.

    title = "Number of partitions s"
    where = "the paper's appendix, on hyper-parameters"
    across = "partitions"            # the setting whose values are the columns; rows are datasets (down = "dataset")
    expected = "partitions"          # the part of expected.toml that holds the paper's numbers
    seeds = 5

    [[runs]]
    dataset = ["adult", "cod-rna"]   # a list is tried value by value
    partition = "balanced"
    partitions = [1, 2, 3, 4, 5]
    quick = { dataset = "adult", parties = 5, partitions = [1, 2] }

Everything else in a block of runs is a field of `Setting`, but for `seeds`, a number of its own, and `column`, another
name for its column. `quick` replaces what it names when only a rehearsal is wanted: one seed, minutes; an empty list
there leaves the block out.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from fedkt.data import load
from fedkt.errors import ConfigurationError, DataError
from fedkt.lab.setting import Setting

FIELDS = {each.name for each in fields(Setting)} - {"seed"}
OWN = {"seeds", "quick", "column"}
"""What a block of runs knows besides the fields of a setting."""
PICTURES = ("", "lines", "rounds")


@dataclass(frozen=True)
class Run:
    """One run, and the cell of the table that it belongs to."""

    setting: Setting
    row: str
    column: str


@dataclass(frozen=True)
class Experiment:
    """One table or figure."""

    name: str
    title: str
    across: str
    """The field of a setting whose values are the table's columns."""
    blocks: tuple[dict[str, Any], ...]
    where: str = ""
    """Which part of the paper it is; empty for what goes beyond it."""
    text: str = ""
    """What reproduces, what does not, and why."""
    down: str = "dataset"
    """The field whose values are the rows, or two of them with a comma."""
    expected: str = ""
    """The part of expected.toml with the paper's numbers, by dataset and the other axis; empty where it has none."""
    picture: str = ""
    """What is drawn beside the table: nothing, "lines" over the columns, or accuracy by "rounds" and bytes."""
    bytes: bool = False
    """Whether the bytes of FedKT's messages are measured, for which its students must be packed."""
    seeds: int = 5
    first_seed: int = 0
    """Seeds count from here: 100 for what no other table has seen."""
    reasons: dict[str, str] = field(default_factory=dict, hash=False)
    """Why cells lie below the paper's, as far as was found: by row and column with a comma, or by row."""
    against: tuple[str, ...] = ()
    """Algorithms that all others are held against, seed by seed."""

    @property
    def down_fields(self) -> list[str]:
        """The fields whose values are the rows."""
        return self.down.split(",")

    def reason(self, row: str, column: str) -> str:
        """Why this cell lies below the paper's; empty where nobody knows."""
        return self.reasons.get(f"{row},{column}", self.reasons.get(row, ""))

    def row_of(self, setting: Setting) -> str:
        """The row of a run."""
        return ",".join(value_in_words(getattr(setting, name)) for name in self.down_fields)

    def runs(self, *, seeds: int | None = None, quick: bool = False) -> list[Run]:
        """Every run once, seed by seed; `seeds` replaces the number of seeds."""
        unique: dict[Run, None] = {}
        for block in self.blocks:
            options = {**block, **block.get("quick", {})} if quick else block
            axes = {name: value if isinstance(value, list) else [value] for name, value in options.items()}
            # A list in a list is one value: the families of a federation of different models.
            axes = {name: [tuple(v) if isinstance(v, list) else v for v in each] for name, each in axes.items()}
            names = [name for name in axes if name in FIELDS]
            for count in range(1 if quick else seeds or options.get("seeds", self.seeds)):
                seed = self.first_seed + count
                for values in product(*(axes[name] for name in names)):
                    setting = Setting(**dict(zip(names, values, strict=True)), seed=seed).with_defaults()
                    column = options.get("column", value_in_words(getattr(setting, self.across)))
                    unique[Run(setting, self.row_of(setting), column)] = None
        return list(unique)


TOP = {"runs", *(each.name for each in fields(Experiment))} - {"name", "blocks"}
"""What an experiment's file may say."""


def value_in_words(value: Any) -> str:
    """A field's value as a table heads it, and as expected.toml names it."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def read_experiment(path: Path) -> Experiment:
    """The experiment in a file, or a refusal that names the file and what is wrong in it."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as reason:
        raise ConfigurationError(f"{path} is not an experiment: {reason}.") from reason
    faults = list(wrong_with(content))
    if faults:
        raise ConfigurationError(f"{path}: {faults[0]}")
    blocks = tuple(content.pop("runs"))
    words = {"text": content.get("text", "").strip(), "against": tuple(content.get("against", ()))}
    experiment = Experiment(path.stem, **{**content, **words}, blocks=blocks)
    try:
        experiment.runs(quick=True)
        experiment.runs()
    except (ConfigurationError, TypeError) as reason:
        raise ConfigurationError(f"{path}: {reason}") from reason
    return experiment


def wrong_with(content: dict[str, Any]) -> Iterator[str]:
    """What keeps this from being an experiment."""
    for name in ("title", "across", "runs"):
        if not content.get(name):
            yield f"it has no {name!r}."
    for name in content.keys() - TOP:
        yield f"there is no {name!r} in an experiment; it may have {', '.join(sorted(TOP))}."
    for name in ("across", "down"):
        if not set(str(content.get(name, "dataset")).split(",")) <= FIELDS:
            yield f"{name} = {content[name]!r} is no field of a setting; choose one of {', '.join(sorted(FIELDS))}."
    if content.get("against") and "algorithm" not in str(content.get("down")).split(","):
        yield "who holds algorithms against others has them as rows: down names 'algorithm'."
    if content.get("picture", "") not in PICTURES:
        yield f"picture = {content['picture']!r}; choose one of {', '.join(filter(None, PICTURES))}, or leave it out."
    blocks = content.get("runs", [])
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        yield "its runs are blocks that begin with [[runs]]."
        return
    for block in blocks:
        for name in (block.keys() - FIELDS - OWN) | (block.get("quick", {}).keys() - FIELDS):
            yield f"{name!r} in a block of runs is no field of a setting; choose from {', '.join(sorted(FIELDS))}."
        if "dataset" not in block:
            yield "a block of runs names no dataset."


def out_of_reach(datasets: Iterable[str], data_dir: Path | None) -> dict[str, str]:
    """The datasets that are neither in the folder nor to be downloaded, and why."""
    reasons = {name: why_unavailable(name, data_dir) for name in sorted(datasets)}
    return {name: reason for name, reason in reasons.items() if reason is not None}


@cache
def why_unavailable(dataset: str, data_dir: Path | None) -> str | None:
    """Why a dataset cannot be had; None where it can."""
    try:
        load(dataset, seed=0, data_dir=data_dir)
    except DataError as reason:
        return str(reason)
    return None


def read_experiments(folder: Path) -> dict[str, Experiment]:
    """All experiments of a folder, by name."""
    plans = {path.stem: read_experiment(path) for path in sorted((folder / "experiments").glob("*.toml"))}
    if not plans:
        raise ConfigurationError(
            f"There are no experiments in {folder / 'experiments'}. Run this in a clone of the repository, or name its "
            "folder 'paper' with --folder."
        )
    return plans
