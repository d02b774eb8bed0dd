"""Rows that a party lays aside before it trains, so that it can judge the final model later by rows nobody learned.

No copy of them is kept: whether a row is aside is a keyed hash of the record's own identity, with a key that plan and
party make, so that the same file gives the same rows again. Other records have no say in it, nor has what is in the
record; at level L2 a record that is aside is used for nothing that leaves, and any other keeps its teacher and its
price. A small file beside the party's data, which is never sent, says what the last training laid aside: without it
a model would be judged by rows that it knows by heart.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from fedkt.algorithms.lesson import identity_hashes
from fedkt.errors import ConfigurationError, DataError
from fedkt.plan import Part, Plan
from fedkt.system.files import read_at_most, write_atomically

LARGEST_SHARE = 0.5
MAX_RECORD_BYTES = 100_000
MOST_BUNDLES = 100
AGAIN = (
    "Train again with --hold-out 0.2 and have the server make the final model from that bundle; or judge it by new "
    "rows of yours: fedkt evaluate FINAL new.csv"
)
"""What to do where no row is left to judge by."""

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class AsideRecord(Part):
    """What a training laid aside. Only its party sees it."""

    # Not Literal[1], which takes true for 1.
    format: Annotated[int, Field(ge=1, le=1)] = 1
    plan: Digest
    party: Annotated[str, Field(max_length=64)]
    data: Digest
    """Of the data file as it was used: with its labels, the column of identities and the share."""
    identity: str | None
    """The column by which records are told apart; None for what the format says, or their places."""
    share: Annotated[float, Field(gt=0, le=LARGEST_SHARE)]
    bundles: tuple[Digest, ...] = ()
    """SHA-256 of each bundle that was sent with just these rows aside, the newest last; none until one is."""


def check_share(share: float | None) -> None:
    """Refuse a share of rows that cannot be laid aside."""
    if share is not None and not 0 < share <= LARGEST_SHARE:
        raise ConfigurationError(
            f"--hold-out takes the share of your rows to lay aside, above 0 and at most {LARGEST_SHARE:g}, such as "
            f"0.2 for a fifth; got {share:g}."
        )


def aside_key(plan_digest: str, name: str) -> bytes:
    """The key of a party's hashes under a plan."""
    return hashlib.sha256(f"fedkt aside {plan_digest} {name}".encode()).digest()


def aside_mask(identities: Sequence[str], share: float, key: bytes) -> NDArray[np.bool_]:
    """Which rows are aside; rows of one identity stay together."""
    return identity_hashes(identities, key) < np.uint64(int(share * 2**64))


def aside_path(plan: Plan, name: str, data: Path) -> Path:
    """Where a party writes down what it laid aside: beside its data, which it keeps to itself."""
    # "." is a folder whose name only its full path tells.
    data = data if data.name else data.resolve()
    return data.with_name(f"{name}-{plan.digest[:12]}.aside.json")


@dataclass(frozen=True)
class RowsAside:
    """What a training lays aside, and where that is written down; refused before anything costs."""

    path: Path
    share: float | None
    """None for a training that lays nothing aside."""

    def __post_init__(self) -> None:
        check_share(self.share)
        if self.share is not None and not os.access(self.path.parent, os.W_OK):
            raise DataError(
                f"--hold-out writes down beside your data what it laid aside ({self.path.name}), and "
                f"{self.path.parent} cannot be written to. Put the data into a folder of yours."
            )

    def begin(self, plan: Plan, name: str, digest: str, identity: str | None) -> None:
        """Say that a training has begun: what an earlier one laid aside no longer holds."""
        if self.share is None:
            self.path.unlink(missing_ok=True)
            return
        fresh = AsideRecord(plan=plan.digest, party=name, data=digest, identity=identity, share=self.share)
        self._write(fresh.model_copy(update={"bundles": self._sent_before(fresh)}))

    def _sent_before(self, fresh: AsideRecord) -> tuple[str, ...]:
        """The bundles of earlier trainings with the same rows aside: a final model of theirs is judged as well."""
        try:
            known = parse_record(self.path)
        except (FileNotFoundError, DataError):
            return ()
        return known.bundles if known.model_copy(update={"bundles": ()}) == fresh else ()

    def end(self, bundle: str) -> None:
        """Say that the bundle of this digest was sent."""
        if self.share is not None:
            record = parse_record(self.path)
            others = [each for each in record.bundles if each != bundle]
            self._write(record.model_copy(update={"bundles": (*others[1 - MOST_BUNDLES :], bundle)}))

    def _write(self, record: AsideRecord) -> None:
        write_atomically(self.path, record.model_dump_json(indent=1).encode() + b"\n", private=True)


def parse_record(path: Path) -> AsideRecord:
    """What was written down about rows laid aside."""
    try:
        return AsideRecord.model_validate_json(read_at_most(path, MAX_RECORD_BYTES) or b"", strict=True)
    except ValidationError:
        raise DataError(f"{path} is damaged, so nobody knows which rows were laid aside. {AGAIN}") from None


def read_record(
    path: Path, plan: Plan, name: str, *, identity: str | None = None, share: float | None = None
) -> AsideRecord:
    """What the last training laid aside, refused where there was none or where it was asked for otherwise."""
    try:
        record = parse_record(path)
    except FileNotFoundError:
        raise DataError(
            f"No rows of {name!r} were laid aside when it trained under this plan: there is no {path}. The final model "
            f"has learned from all of them, and would be judged by what it knows. {AGAIN}"
        ) from None
    if (record.plan, record.party) != (plan.digest, name):
        raise DataError(f"{path} is about another plan or party. {AGAIN}")
    if not record.bundles:
        raise DataError(
            f"The training of {name!r} that laid rows aside was not finished. Start it again as it was begun "
            f"(--hold-out {record.share:g})."
        )
    if identity is not None and identity != record.identity:
        theirs = "without --id" if record.identity is None else f"with --id {record.identity}"
        raise ConfigurationError(
            f"--id {identity}: rows were laid aside {theirs}, and by another column others would be. Leave --id out."
        )
    if share is not None and share != record.share:
        raise ConfigurationError(
            f"--hold-out {share:g}: {record.share:g} of the rows were laid aside before the training. Leave --hold-out "
            "out."
        )
    return record


def check_same_data(record: AsideRecord, digest: str, data: Path) -> None:
    """Refuse a file that is not the one that rows were laid aside from."""
    if digest != record.data:
        raise DataError(
            f"{data} is not the file that rows were laid aside from: it was changed since, or the mapping of its names "
            "and codes was, or it is another one. Which of its rows were learned from cannot be told. Use the file as "
            "it was then, or judge the final model by new rows: fedkt evaluate FINAL new.csv"
        )
