"""The parts of a plan, and what a value in it may look like."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from fedkt.bundle.signing import check_public_key
from fedkt.data.table import printable
from fedkt.errors import ConfigurationError
from fedkt.models.catalogue import canonical_name, known_models
from fedkt.plan.methods import method_names
from fedkt.privacy.ledger import require_level

MAX_CLASSES = 10_000
MAX_PARTIES = 10_000
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""A party's name is also a file's name: letters, digits, - and _ are safe on every system."""

BRANCH = re.compile(r"\[|^(str|int|float)$|^constrained-")
"""What pydantic calls the branches of a choice (text or number, a number or "private"); no keys of a file."""


def faults_of(reason: ValidationError) -> list[tuple[str, str, str]]:
    """Key, kind and words of each fault; the branches of a choice are told as one."""
    by_key: dict[str, tuple[str, list[str], Any]] = {}
    for fault in reason.errors(include_url=False):
        # Entries with a fault are not counted: a list of them is not short as well.
        if fault["type"] == "too_short" and len(fault["input"]) >= fault["ctx"]["min_length"]:
            continue
        key = key_of(fault["loc"])
        message = fault["msg"].removeprefix("Value error, ").removesuffix(".")
        if fault["type"] == "too_short":
            message = f"at least {fault['ctx']['min_length']} are needed"
        kind, messages, _ = by_key.setdefault(key, (fault["type"], [], fault["input"]))
        if message not in messages:
            messages.append(message.removeprefix("Input should be ") if messages else message)
    faults = []
    for key, (kind, messages, value) in by_key.items():
        got = repr(value)
        ending = f" (got {got[:100]}{'…' * (len(got) > 100)})" if key else ""
        faults.append((key, kind, " or ".join(messages) + ending))
    return faults


def key_of(places: Sequence[int | str]) -> str:
    """A fault's place as the file writes it."""
    return ".".join(str(part) for part in places if not BRANCH.search(str(part)))


def _check_name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise ValueError("a party's name has 1 to 64 letters, digits, - or _, and starts with a letter or digit")
    return name


def _check_printable(text: str) -> str:
    if not printable(text):
        raise ValueError("control characters have no place in a plan")
    return text


def _check_model(name: str) -> str:
    # All plug-ins of this machine, whatever the name is: a plan that somebody sent must not choose what is imported.
    known_models()
    try:
        known = canonical_name(name)
    except ConfigurationError as reason:
        raise ValueError(
            f"{str(reason)[0].lower()}{str(reason)[1:].removesuffix('.')}. If it is a plug-in's, ask who made the plan "
            "for its package, and install it yourself if you trust it"
        ) from reason
    # One name for each family: plans of another spelling would have another digest.
    if known != name:
        raise ValueError(f"{name!r} is called {known!r} in a plan")
    return name


def _check_voting(voting: str) -> str:
    if voting not in method_names():
        raise ValueError(f"there is no voting {voting!r}. Choose one of: {', '.join(method_names())}")
    return voting


def _check_key(text: str) -> str:
    try:
        check_public_key(text)
    except ConfigurationError as reason:
        raise ValueError(f"{reason} Take the line that `fedkt keys new` prints") from reason
    return text


Family = Annotated[str, AfterValidator(_check_model)]
PartyName = Annotated[str, AfterValidator(_check_name)]
Level = Annotated[str, AfterValidator(require_level)]
VotingName = Annotated[str, AfterValidator(_check_voting)]
PublicKey = Annotated[str, AfterValidator(_check_key)]
Text = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_check_printable)]
Paragraph = Annotated[str, Field(min_length=1, max_length=1_000), AfterValidator(_check_printable)]
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


class CardTexts(Part):
    """What people wrote for the model card; each may be missing."""

    purpose: Paragraph | None = None
    """What the final model is for."""
    limits: Paragraph | None = None
    """What it must not be used for."""
    contact: Paragraph | None = None
    """Whom to ask about it."""


class ModelChoice(Part):
    """Which family plays which role; what is left out follows from `default`."""

    default: Family
    teacher: Family | None = None
    student: Family | None = None
    final: Family | None = None
    parties: dict[PartyName, Family] = Field(default_factory=dict)
    """Families of their own: party -> family."""
    epochs: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """How often neural networks see their rows; None is 10, and more where that is under 1,000 steps."""
    copies: bool | None = None
    """Whether the final network also learns four copies of each public image, shifted by one pixel; None is no."""


class Member(Part):
    """One party of the federation."""

    name: PartyName
    key: PublicKey | None = None
    """Its Ed25519 public key; with one, only a bundle it signed is accepted."""
    rows: Annotated[int, Field(ge=1, le=2**53)] | None = None
    """The most rows it may say it has, where the vote weighs it by them; None for any number."""
