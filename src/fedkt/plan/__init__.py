"""Plan <-> TOML: what everyone agrees on before the one round, and its digest.

A plan is made once, from the public rows only, and sent to every party and to the server. Whoever holds the same plan
encodes the same value as the same number, votes over the same classes, and can tell a bundle made under another plan.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from fedkt.data.schema import Schema, fit_schema
from fedkt.data.table import Table, read_table
from fedkt.data.values import as_key
from fedkt.errors import ConfigurationError, DataError, PlanError
from fedkt.models.catalogue import MODELS
from fedkt.signing import check_public

if TYPE_CHECKING:
    from fedkt.algorithms import FedKT

FORMAT = 1
MAX_PLAN_BYTES = 16 * 2**20
MAX_CLASSES = 10_000
MAX_PARTIES = 10_000
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""A party's name is also a file's name: letters, digits, - and _ are safe on every system."""


BRANCH = re.compile(r"\[|^(str|int|float)$|^constrained-")


def _safe_name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise ValueError("a party's name has 1 to 64 letters, digits, - or _, and starts with a letter or digit")
    return name


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("control characters have no place in a plan")
    return text


def _known_model(name: str) -> str:
    if name not in MODELS:
        raise ValueError(f"there is no model {name!r}. Choose one of: {', '.join(MODELS)}")
    return name


def _known_level(level: str) -> str:
    if level != "L0":
        raise ValueError(f"Privacy level {level} is not available in plans yet; a plan is at level L0")
    return level


def _public_key(text: str) -> str:
    try:
        check_public(text)
    except ConfigurationError as reason:
        raise ValueError(f"{reason} Take the line that `fedkt keys new` prints") from reason
    return text


Family = Annotated[str, AfterValidator(_known_model)]
PartyName = Annotated[str, AfterValidator(_safe_name)]
PublicKey = Annotated[str, AfterValidator(_public_key)]
Text = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_printable)]
Class = Text | Annotated[int, Field(ge=-(2**53), le=2**53)]


class Part(BaseModel):
    """A part of a plan: nothing is converted, nothing unknown is let through."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class PublicRows(Part):
    """The public rows, by the digest of their file."""

    file: Text
    """What the file was called where the plan was made; a hint, any name will do."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    rows: Annotated[int, Field(ge=1)]


class ModelChoice(Part):
    """Which family plays which role; what is left out follows from `default`."""

    default: Family
    teacher: Family | None = None
    student: Family | None = None
    final: Family | None = None
    parties: dict[PartyName, Family] = Field(default_factory=dict)
    """Families of their own: party -> family."""


class Member(Part):
    """One party of the federation."""

    name: PartyName
    key: PublicKey | None = None
    """Its Ed25519 public key; with one, only a bundle it signed is accepted."""


class Plan(Part):
    """What everyone agrees on."""

    format: Literal[1] = 1
    task: Text
    classes: tuple[Class, ...] = Field(min_length=2, max_length=MAX_CLASSES)
    level: Annotated[str, AfterValidator(_known_level)] = "L0"
    partitions: Annotated[int, Field(ge=1, le=1_000)] = 2
    subsets: Annotated[int, Field(ge=1, le=100_000)] = 5
    seed: Annotated[int, Field(ge=0, lt=2**63)] | Literal["private"] = 0
    """A number that everybody derives their own generator from, or "private": everybody draws and keeps their own."""
    min_parties: Annotated[int, Field(ge=1)] | None = None
    """How many parties the server needs at least; None leaves it to the server, which then waits for all."""
    public: PublicRows
    models: ModelChoice
    parties: tuple[Member, ...] = Field(min_length=1, max_length=MAX_PARTIES)
    columns: Schema = Field(alias="schema")
    """The agreed columns and label, fitted on the public rows."""

    @model_validator(mode="after")
    def _checked(self) -> Plan:
        # On some file systems North.fedkt and north.fedkt are the same file.
        twice = [name for name, count in Counter(name.casefold() for name in self.names).items() if count > 1]
        if twice:
            raise ValueError(
                f"parties: {', '.join(map(repr, twice))} is named more than once (upper case is no difference)"
            )
        strange = [name for name in self.models.parties if name not in self.names]
        if strange:
            raise ValueError(f"models.parties: {strange[0]!r} is not a party. The parties are: {', '.join(self.names)}")
        keys = [as_key(each) for each in self.classes]
        if len(set(keys)) != len(keys):
            raise ValueError(
                f"classes: {', '.join(map(str, self.classes))} contain the same class twice (1 and '1' are the same)"
            )
        if len(set(self.keys.values())) != len(self.keys):
            raise ValueError("parties: two of them have the same key; every party signs with a key of its own")
        if self.min_parties is not None and self.min_parties > len(self.parties):
            raise ValueError(f"min_parties: {self.min_parties} are more than the {len(self.parties)} parties")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The parties' names, in the plan's order."""
        return tuple(member.name for member in self.parties)

    @property
    def keys(self) -> dict[str, str]:
        """The public keys of the parties that have one."""
        return {member.name: member.key for member in self.parties if member.key is not None}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what the plan says; comments, layout and the order of keys do not count."""
        said = self.model_dump(mode="json", by_alias=True)
        text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def algorithm(self) -> FedKT:
        """FedKT as agreed."""
        from fedkt.algorithms import FedKT

        chosen = self.models
        return FedKT(
            chosen.default,
            teacher=chosen.teacher,
            student=chosen.student,
            final=chosen.final,
            partitions=self.partitions,
            subsets=self.subsets,
            level=self.level,
        )

    def require(self, name: str) -> str:
        """The name, if it is a party of this plan."""
        if name not in self.names:
            raise PlanError(f"This plan has no party {name!r}. Its parties are: {', '.join(self.names)}.")
        return name

    def read_public(self, path: str | Path) -> Table:
        """The public rows in a file, if it is the very file that was agreed on."""
        got = file_digest(path)
        if got != self.public.sha256:
            raise PlanError(
                f"{path} is not the public file of this plan: its SHA-256 is {got[:12]}…, agreed was "
                f"{self.public.sha256[:12]}… ({self.public.file}, {self.public.rows} rows). Get the file that came "
                "with the plan; opening and saving it in a spreadsheet is enough to change it."
            )
        table = self.columns.read(path, labelled=False)
        if table.n_rows != self.public.rows:
            raise PlanError(f"{path} has {table.n_rows} rows, but the plan says {self.public.rows}. Make a new plan.")
        return table

    def to_toml(self) -> str:
        """The plan as TOML, with comments that explain it."""
        from fedkt.plan.text import to_toml

        return to_toml(self)

    def explain(self) -> str:
        """In words: what everybody agrees on, what travels, and what is (not) protected."""
        from fedkt.plan.text import explain

        return explain(self)


def make_plan(
    public: str | Path,
    *,
    label: str,
    classes: Sequence[str | int],
    parties: Sequence[str],
    model: str,
    party_models: Mapping[str, str] | None = None,
    keys: Mapping[str, str] | None = None,
    categorical: Sequence[str] = (),
    ignore: Sequence[str] = (),
    missing: Literal["as-seen", "allow", "refuse"] = "allow",
    task: str | None = None,
    **settings: Any,
) -> Plan:
    """A plan around the public rows in a file: the schema is fitted on them and on nothing else.

    `settings` are teacher, student, final, partitions, subsets, level, seed and min_parties.
    """
    strangers = [name for name in (keys or {}) if name not in parties]
    if strangers:
        raise PlanError(f"A key was given for {strangers[0]!r}, which is not among the parties: {', '.join(parties)}.")
    # Formats that do not name their label call it what we say; in the others it need not be there.
    unnamed = Path(public).suffix.lower() in (".npz", ".libsvm", ".svm", ".txt")
    table = read_table(public, label=label if unnamed else None)
    if label in categorical or label in ignore:
        raise PlanError(f"{label!r} is the label; it cannot also be a categorical or an ignored column.")
    schema = fit_schema(table, label=label, categorical=categorical, ignore=ignore, missing=missing)
    models = {role: settings.pop(role) for role in ("teacher", "student", "final") if role in settings}
    said: dict[str, Any] = {
        "format": FORMAT,
        "task": task or label,
        "classes": list(classes),
        "public": {"file": Path(public).name, "sha256": file_digest(public), "rows": table.n_rows},
        "models": {"default": model, "parties": dict(party_models or {}), **models},
        "parties": [{"name": name, "key": (keys or {}).get(name)} for name in parties],
        "schema": schema.model_dump(mode="json"),
        **settings,
    }
    return _validated(said, "The new plan")


def read_plan(path: str | Path) -> Plan:
    """The plan in a TOML file, every value checked."""
    path = Path(path)
    if not path.is_file():
        raise PlanError(f"{path} is not a file. Pass the plan.toml that you were sent, or make one: fedkt plan new")
    with path.open("rb") as file:
        data = file.read(MAX_PLAN_BYTES + 1)
    if len(data) > MAX_PLAN_BYTES:
        raise PlanError(f"{path} is larger than {MAX_PLAN_BYTES:,} bytes, which no plan is.")
    return parse_plan(data, str(path))


def parse_plan(data: bytes, source: str) -> Plan:
    """The plan in the bytes of a TOML file; `source` is what messages call it."""
    try:
        said = tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as reason:
        raise PlanError(f"{source} is not UTF-8 text, so it is no plan.") from reason
    except (tomllib.TOMLDecodeError, RecursionError) as reason:
        raise PlanError(f"{source} is not TOML: {reason or 'nested too deeply'}. Ask for the plan again.") from reason
    # True equals 1.
    if type(said.get("format")) is not int or said["format"] != FORMAT:
        raise PlanError(
            f"{source}, format: got {said.get('format')!r}, this version of fedkt reads plans of format {FORMAT}. "
            "Use the version of fedkt that made the plan, or make a new plan."
        )
    return _validated(said, source)


def file_digest(path: str | Path) -> str:
    """SHA-256 of a file's bytes."""
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as reason:
        raise DataError(f"{path} cannot be read: {reason.strerror}. Check the path.") from reason


def _validated(said: dict[str, Any], source: str) -> Plan:
    try:
        # By way of JSON: strict, but lists may be tuples. Dates and infinities have no JSON and no place in a plan.
        text = json.dumps(said, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as reason:
        raise PlanError(f"{source}: {reason}. A plan has texts, whole numbers, finite decimals and lists.") from reason
    try:
        return Plan.model_validate_json(text, strict=True)
    except ValidationError as reason:
        raise PlanError(_in_words(reason, source)) from reason


def _in_words(reason: ValidationError, source: str) -> str:
    """The first few faults: file, key, what was got, what is wanted."""
    faults: dict[str, str] = {}
    for fault in reason.errors(include_url=False, include_context=False):
        # Branches of a choice (str or int, a number or "private") are not keys of the file.
        key = ".".join(str(part) for part in fault["loc"] if not BRANCH.search(str(part)))
        message = fault["msg"].removeprefix("Value error, ")
        if fault["type"] == "missing":
            text = f"{key} is missing"
        elif fault["type"] == "extra_forbidden":
            text = f"{key} is not a key that a plan has; check the spelling or remove it"
        elif fault["loc"]:
            got = repr(fault["input"])
            text = f"{key}: {message} (got {got[:100]}{'…' * (len(got) > 100)})"
        else:
            text = message
        faults.setdefault(key, text)
    shown = list(faults.values())[:5]
    more = f" And {len(faults) - 5} more." if len(faults) > 5 else ""
    return f"{source}: {'; '.join(shown)}.{more}"
