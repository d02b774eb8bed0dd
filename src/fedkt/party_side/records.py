"""A party's records at level L2: what tells them apart, and what its party has to vouch for."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fedkt.data.values import plural
from fedkt.errors import ConfigurationError
from fedkt.federation import Diary
from fedkt.plan import Plan, file_digest
from fedkt.votes import Labels


def check_identity(plan: Plan, column: str | None) -> None:
    """Refuse a column of identities where nothing is cut by them."""
    if column is not None and plan.level != "L2":
        raise ConfigurationError(
            f"Records have identities at level L2, where subsets are cut by them; this plan has level {plan.level}. "
            "Leave --id out."
        )


def data_digest(data: Path, column: str | None) -> str:
    """SHA-256 of a party's file as it is used: with its labels, and with the column that its rows are cut by."""
    digest = file_digest(data, with_labels=True)
    return digest if column is None else hashlib.sha256(f"{digest} {column}".encode()).hexdigest()


def tell_of_records(
    diary: Diary, plan: Plan, data: Path, ids: Sequence[str] | None, y: Labels, *, column: str | None
) -> None:
    """What the party should know of how its records are told apart; nobody else is told."""
    if ids is not None:
        shared = sum(count for count in Counter(ids).values() if count > 1)
        if shared:
            diary.say(
                f"{plural(shared, 'row')} of {data} share "
                + ("their file name" if column is None else f"their value of {column!r}")
                + " with others: they stay in one subset, and the noise on the votes protects them together."
                + (" The class counts protect each of them alone." if plan.counts else "")
            )
        return
    diary.say(
        f"The records of {data} are told apart by their places in it. The promise holds if nothing in a record decides "
        "where it stands, as in a file that is only ever written on at its end. Else name a column of identities: "
        "--id COLUMN."
    )
    runs = 1 + int(np.count_nonzero(np.diff(y)))
    if len(y) > 2 * runs and runs == len(np.unique(y)) > 1:
        diary.say(
            f"The rows of {data} are sorted by their label: there one changed label moves every row between, and "
            "nothing is promised. Name a column of identities (--id COLUMN), or shuffle the rows once and keep them so."
        )
