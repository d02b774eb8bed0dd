"""What a party chose about its own table, written down beside its data: said once, used by every later run.

The file is the party's own: it is not sent, and is no part of the plan.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fedkt.data.mapping import TableMapping
from fedkt.data.schema import Schema
from fedkt.errors import ConfigurationError, DataError
from fedkt.federation import Diary
from fedkt.plan.parts import faults_of
from fedkt.system.files import read_at_most, write_atomically

MAX_BYTES = 2**20
SHOWN = 20
FORMAT = 1
HEAD = """\
How this party's own file comes to have the plan's names and codes. Written by fedkt party from --rename, --label-map,
--value-map and --accept, and used by its later runs without them. It stays here: it is not sent, and is no part of the
plan. It may be edited or removed; the same rows under other names or codes are then trained on anew."""
COMMENTS = {
    "rename": "name in the file = name in the plan",
    "labels": "label in the file = class of the plan",
    "values": "value in the file = category of the plan, for each column by its name in the plan",
}
OPTIONS = {"rename": "--rename {}={}", "labels": "--label-map {}={}"}


@dataclass(frozen=True)
class MappingFile:
    """A party's mapping, and where it is written down."""

    path: Path
    mapping: TableMapping
    """What holds for this run: what the file says, and what was chosen now."""
    stored: TableMapping
    """What the file says."""

    def keep(self, diary: Diary) -> None:
        """Write down what was chosen now, and tell of it; where that cannot be, tell that too."""
        if self.mapping != self.stored:
            what = in_words(differences(self.stored, self.mapping))
            try:
                write_atomically(self.path, as_toml(self.mapping).encode(), private=True)
            except OSError as reason:
                diary.say(
                    f"{self.path} could not be written ({reason.strerror}): give these options again next time. {what}"
                )
            else:
                diary.say(f"Written into {self.path}, and used from now on: {what}.")

    def tell(self, data: Path, diary: Diary) -> None:
        """Say which columns and codes of the party's file are called otherwise by what was chosen earlier."""
        if self.stored.digest:
            what = in_words(differences(TableMapping(), self.stored))
            diary.say(f"{data} is read as {self.path} says: {what}.")


def mapping_path(name: str, data: Path) -> Path:
    """Where a party's choices about its table are written down: beside its data, which it keeps to itself."""
    # "." is a folder whose name only its full path tells.
    data = data if data.name else data.resolve()
    return data.with_name(f"{name}.mapping.toml")


def open_mapping(path: Path, choices: TableMapping, schema: Schema, classes: Sequence[str | int]) -> MappingFile:
    """What the file says with what was chosen now; refused where the two contradict each other."""
    stored = read_mapping(path)
    choices = choices.checked(schema, classes, stored=stored.rename)
    for kind, option in OPTIONS.items():
        check_same(getattr(stored, kind), getattr(choices, kind), option, path)
    for name, pairs in choices.values.items():
        check_same(stored.values.get(name, {}), pairs, f"--value-map {name}:{{}}={{}}", path)
    columns = {**stored.values, **choices.values}
    values = {name: {**stored.values.get(name, {}), **choices.values.get(name, {})} for name in columns}
    mapping = TableMapping(
        rename={**stored.rename, **choices.rename},
        labels={**stored.labels, **choices.labels},
        values=values,
        accept=tuple(dict.fromkeys((*stored.accept, *choices.accept))),
    )
    return MappingFile(path, mapping, stored)


def check_same(stored: Mapping[str, str], chosen: Mapping[str, str], option: str, path: Path) -> None:
    """Refuse a choice that is another one than was written down: nobody could tell which is meant."""
    for theirs, ours in chosen.items():
        if stored.get(theirs, ours) != ours:
            raise ConfigurationError(
                f"{option.format(theirs, ours)} contradicts {path}, which says {theirs} = {stored[theirs]!r}. Leave "
                "the option out; or correct that line of the file, if it is what was wrong."
            )


def read_mapping(path: Path) -> TableMapping:
    """What a party wrote down; empty where there is no file."""
    try:
        data = read_at_most(path, MAX_BYTES)
    except FileNotFoundError:
        return TableMapping()
    except OSError as reason:
        raise DataError(f"{path} cannot be read: {reason.strerror}.") from reason
    remedy = "Correct it; or remove it and give --rename, --label-map and --value-map again."
    if data is None:
        raise DataError(f"{path} is larger than any mapping. {remedy}")
    try:
        values = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as reason:
        raise DataError(f"{path} is no TOML: {reason}. {remedy}") from reason
    if values.pop("format", None) != FORMAT:
        raise DataError(f"{path} does not begin with format = {FORMAT}, as this version writes it. {remedy}")
    try:
        return TableMapping.model_validate(values)
    except ValidationError as reason:
        faults = "; ".join(f"{key}: {words}" for key, _, words in faults_of(reason)[:3])
        raise DataError(f"{path} is no mapping: {faults}. {remedy}") from None


def as_toml(mapping: TableMapping) -> str:
    """The file of a mapping, with comments that explain it."""
    import tomlkit

    document = tomlkit.document()
    for line in HEAD.splitlines():
        document.add(tomlkit.comment(line))
    document.add(tomlkit.nl())
    document.add("format", tomlkit.item(FORMAT))
    if mapping.accept:
        accept = tomlkit.item(list(mapping.accept)).comment("columns whose odd values are as they should be")
        document.add("accept", accept)
    for kind, comment in COMMENTS.items():
        pairs: dict[str, Any] = getattr(mapping, kind)
        if pairs:
            table = tomlkit.table()
            table.add(tomlkit.comment(comment))
            for key, value in pairs.items():
                table.add(key, value)
            document.add(kind, table)
    return tomlkit.dumps(document)


def in_words(changes: Iterator[str]) -> str:
    """The first of some changes, and how many there are."""
    words = list(changes)
    return "; ".join(words[:SHOWN]) + (f"; … ({len(words)} in all)" if len(words) > SHOWN else "")


def differences(before: TableMapping, after: TableMapping) -> Iterator[str]:
    """What one mapping says and another did not, in words; columns first."""
    for theirs, ours in after.rename.items():
        if before.rename.get(theirs) != ours:
            yield f"column {theirs!r} is {ours!r}"
    for theirs, ours in after.labels.items():
        if before.labels.get(theirs) != ours:
            yield f"label {theirs!r} is {ours!r}"
    for name, pairs in after.values.items():
        fresh = {theirs: ours for theirs, ours in pairs.items() if before.values.get(name, {}).get(theirs) != ours}
        if fresh:
            yield f"in {name!r} " + ", ".join(f"{theirs!r} is {ours!r}" for theirs, ours in fresh.items())
    for name in after.accept:
        if name not in before.accept:
            yield f"{name!r} is accepted as it is"
