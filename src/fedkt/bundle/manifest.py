"""What a bundle says about itself, in a strict form: unknown fields, wrong types and odd numbers are refused."""

from __future__ import annotations

import itertools
import json
import math
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    ValidationError,
    field_validator,
    model_validator,
)

from fedkt.errors import BundleError

FORMAT = 1

Text = Annotated[str, Field(max_length=200)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

KINDS = {"float32": 4, "float64": 8, "int64": 8}
"""What an array's numbers may be, and the bytes of one."""
ARRAY_NAME = r"^[a-z][a-z0-9_.-]{0,99}$"
MOST_AXES = 8
MOST_ISSUE = 2**53
MOST_VERSIONS = 20


class FileEntry(BaseModel):
    """One model in the bundle."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    name: Annotated[str, Field(pattern=r"^models/(0|[1-9][0-9]{0,5})\.onnx$")]
    size: Annotated[int, Field(ge=1, le=2**40)]
    sha256: Digest


class ArrayEntry(BaseModel):
    """One array in the bundle; the place in the list is the place in the archive: arrays/0.bin, arrays/1.bin, …"""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    name: Annotated[str, Field(pattern=ARRAY_NAME)]
    kind: Literal["float32", "float64", "int64"]
    shape: Annotated[tuple[Annotated[int, Field(ge=1, le=2**40)], ...], Field(max_length=MOST_AXES)]
    size: Annotated[int, Field(ge=1, le=2**40)]
    sha256: Digest

    @model_validator(mode="after")
    def _size_fits_the_shape(self) -> Self:
        # Python's whole numbers do not overflow, so no product of eight large axes comes out small.
        if math.prod(self.shape) * KINDS[self.kind] != self.size:
            raise ValueError(f"size {self.size} is not the shape {self.shape} times {KINDS[self.kind]} bytes")
        return self


class Claim(BaseModel):
    """What a party says its noise promises, in public figures: whoever reads it can work out the price again."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    mechanism: Text
    scale: Annotated[dict[Text, FiniteFloat], Field(max_length=16)]
    queries: Annotated[int, Field(ge=1, le=2**53)]
    """k: public rows that were asked in each partition."""
    partitions: Annotated[int, Field(ge=1, le=10**6)]
    """s: how often."""
    voters: Annotated[int, Field(ge=1, le=10**6)]
    """Teachers of a partition: the agreed number of subsets, or the party's rows where these are fewer."""
    classes: Annotated[int, Field(ge=2, le=10**6)]
    epsilon: Annotated[FiniteFloat, Field(ge=0)]
    """What this run costs."""
    delta: Annotated[FiniteFloat, Field(gt=0, lt=1)]
    unit: Literal["record"]
    adjacency: Literal["replace-one"]
    total_epsilon: Annotated[FiniteFloat, Field(ge=0)]
    """What everything in the party's ledger costs together, this run included. Nobody else can work it out."""
    releases: Annotated[int, Field(ge=1, le=2**53)]
    """How many releases that are."""
    count_sigma: Annotated[FiniteFloat, Field(gt=0)] | None = None
    """Expert voting: the noise on the class counts beside."""

    @model_validator(mode="after")
    def _all_cost_at_least_one(self) -> Self:
        if self.total_epsilon < self.epsilon:
            raise ValueError("all releases together cannot cost less than this one (total_epsilon, epsilon)")
        return self


class Manifest(BaseModel):
    """The bundle's description of itself.

    Lists fail at their first fault: a megabyte of faults would be a gigabyte of errors, of which one is told.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    format: Annotated[int, Field(ge=1, le=10**6)]
    kind: Literal["models"]
    party: Annotated[str, Field(min_length=1, max_length=200)]
    plan: Annotated[str, Field(pattern=r"^[0-9a-zA-Z:_-]{0,128}$")]
    """The digest of the plan it was made under."""
    classes: Annotated[
        tuple[Text | Annotated[int, Field(ge=-(2**53), le=2**53)], ...], Field(max_length=100_000, fail_fast=True)
    ]
    n_features: Annotated[int, Field(ge=1, le=2**24)]
    versions: Annotated[dict[Text, Text], Field(max_length=MOST_VERSIONS)]
    files: Annotated[tuple[FileEntry, ...], Field(max_length=100_000, fail_fast=True)]
    arrays: Annotated[tuple[ArrayEntry, ...], Field(max_length=100_000, fail_fast=True)] = ()
    """Only where arrays are sent, sorted by name; without any, the field is left out."""
    claim: Claim | None = None
    """Only at level L2."""
    counts: (
        Annotated[tuple[Annotated[int, Field(ge=0, le=2**53)], ...], Field(max_length=100_000, fail_fast=True)] | None
    ) = None
    """The party's rows of each class: only for expert voting."""
    issue: Annotated[int, Field(ge=1, le=MOST_ISSUE)] | None = None
    """A bundle that replaces an earlier one of the same party and plan has a larger number; the first has none."""

    @field_validator("arrays")
    @classmethod
    def _each_name_once_and_in_order(cls, arrays: tuple[ArrayEntry, ...]) -> tuple[ArrayEntry, ...]:
        if any(one.name >= next_.name for one, next_ in itertools.pairwise(arrays)):
            raise ValueError("the names are not sorted, or one appears twice")
        return arrays


def parse_manifest(text: bytes, source: str) -> Manifest:
    """The manifest in received bytes, or a BundleError that says what is wrong with it."""
    try:
        content = json.loads(text.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_no_twins)
    except RecursionError as reason:
        raise BundleError(f"Bundle in {source}: the manifest is nested too deeply.") from reason
    except ValueError as reason:
        raise BundleError(f"Bundle in {source}: the manifest is not JSON: {str(reason)[:200]}") from reason
    if not isinstance(content, dict):
        raise BundleError(f"Bundle in {source}: the manifest is not a JSON object.")
    number = content.get("format")
    if type(number) is not int or number != FORMAT:
        raise BundleError(
            f"Bundle in {source}: the manifest has format {str(number)[:40]!r}; this version of fedkt reads format "
            f"{FORMAT}. Update whichever side is older."
        )
    unknown = next((name for name in content if name not in Manifest.model_fields), None)
    if unknown is not None:
        raise BundleError(f"Bundle in {source}: the manifest has a field {unknown[:100]!r} that no bundle has.")
    versions = content.get("versions")
    if isinstance(versions, dict) and len(versions) > MOST_VERSIONS:
        raise BundleError(f"Bundle in {source}: the manifest's field 'versions' has {len(versions)} entries.")
    try:
        manifest = Manifest.model_validate_json(json.dumps(content))
    except ValidationError as reason:
        first = reason.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(each) for each in first["loc"])[:100]
        raise BundleError(f"Bundle in {source}: the manifest's field {where!r} is wrong: {first['msg']}.") from reason
    if not manifest.party.isprintable():
        raise BundleError(f"Bundle in {source}: the manifest's party name is not printable text.")
    return manifest


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number JSON knows")


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a field is given twice")
    return content
