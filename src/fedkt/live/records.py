"""A party's records: read by the plan's columns, some laid aside, and at level L2 told apart by their identities."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedkt.algorithms.calibration import check_records
from fedkt.data.format import PLAIN, Format
from fedkt.data.mapping import NO_MAPPING, TableMapping, read_mapped
from fedkt.data.plausible import doubts
from fedkt.data.table import Table
from fedkt.data.values import identities_of, plural
from fedkt.errors import ConfigurationError, DataError
from fedkt.federation import Diary
from fedkt.live.aside import aside_key, aside_mask
from fedkt.live.room import check_memory
from fedkt.plan import Plan, file_digest
from fedkt.votes import Labels

FEW_RECORDS = 6
"""With fewer, names follow classes by chance."""
FEW_ASIDE = 100
"""On so many rows two models whose accuracy differs by ten points can just be told apart."""


def check_identity(plan: Plan, column: str | None, *, share: float | None = None) -> None:
    """Refuse a column that cannot tell records apart, by the plan alone; `share` is that of the rows laid aside."""
    if column is None:
        return
    if not (plan.level == "L2" and plan.method.cuts_rows) and share is None:
        raise ConfigurationError(
            "Records have identities at level L2, where subsets are cut by them, and where rows are laid aside "
            f"(--hold-out); this plan has level {plan.level} and {plan.method.called}. Leave --id out."
        )
    learned = column in {each.name for each in plan.columns.columns}
    if learned or column == plan.columns.label:
        what = "a column that the models learn from" if learned else "the column to predict"
        raise ConfigurationError(
            f"--id {column}: that is {what}. What is in a record may change, and must not decide its subset. Name a "
            "column that the plan does not use, such as a number of the patient or the sample."
        )


@dataclass(frozen=True)
class Records:
    """A party's labelled rows."""

    X: NDArray[np.float32]
    y: Labels
    ids: Sequence[str] | None
    """What tells them apart, where level L2 or laying aside asks; None for their places, and where nothing asks."""
    aside: Records | None = None
    """The rows that nothing is learned from; None where none were to be laid aside."""

    @property
    def n_aside(self) -> int | None:
        """How many rows are aside; None where none were to be."""
        return None if self.aside is None else len(self.aside.y)

    def take(self, rows: Labels) -> Records:
        """Some of the rows, without what is aside."""
        return Records(self.X[rows], self.y[rows], None if self.ids is None else [self.ids[row] for row in rows])

    def lay_aside(self, share: float, key: bytes) -> Records:
        """The rows that are learned from, with those that are not; see `fedkt.live.aside`."""
        places = list(map(str, range(len(self.y))))
        chosen = aside_mask(places if self.ids is None else self.ids, share, key)
        return replace(self.take(np.flatnonzero(~chosen)), aside=self.take(np.flatnonzero(chosen)))


def read_records(
    plan: Plan,
    name: str,
    data: Path,
    identity: str | None,
    diary: Diary,
    *,
    share: float | None = None,
    form: Format = PLAIN,
    mapping: TableMapping = NO_MAPPING,
    jobs: int = 1,
    warn: Callable[[str], None] | None = None,
) -> Records:
    """The rows in a party's file; what is odd about them is said in the diary, which never leaves the party.

    With a `share`, so many of them are laid aside, and the others are all that is learned from or told of. Names and
    codes are first made those agreed on, by the `mapping`. `warn` hears at once, and not only at the end, of values
    that hardly mean what was agreed on.
    """
    if file_digest(data) == plan.public.sha256:
        raise DataError(f"{data} is the public file. --data takes your own labelled rows, --public the shared ones.")
    others = () if identity is None else (identity,)
    table = read_mapped(plan.columns, data, mapping, form=form, others=others)
    for note in table.notes:
        diary.say(note)
    if plan.level == "L2":
        plan.columns.check_dates_decided(table)
    check_plausible(plan, table, mapping, diary, warn)
    check_memory(plan, name, str(data), table.n_rows, jobs=jobs, diary=diary, warn=warn)
    cut = plan.level == "L2" and plan.method.cuts_rows
    ids = identities_of(table, identity) if cut or share is not None else None
    records = Records(plan.columns.encode(table), plan.columns.labels(table, plan.classes), ids)
    if share is not None:
        records = records.lay_aside(share, aside_key(plan.digest, name))
        note_aside(diary, data, records)
    y, most = records.y, plan.most_rows(name)
    # With noise a party's size must not decide whether it sends: there what it tells is scaled down.
    if most is not None and len(y) > most and plan.method.tells_counts and plan.level != "L2":
        raise DataError(
            f"{data} has {len(y)} rows, but the plan lets {name!r} tell of at most {most} (rows): the server would "
            "not believe the bundle. Agree on a new plan. Nothing was trained."
        )
    if most is not None and len(y) > most:
        diary.say(
            f"{data} has {len(y)} rows, and the plan gives {name!r} the word of {most} at most: its "
            f"{plan.method.scaled} are scaled down to them."
        )
    unused = [column for column in plan.columns.unused(table) if column != identity]
    if unused:
        diary.say(f"{data} has columns that were not agreed on and are not used: {', '.join(unused[:20])}.")
    absent = [str(each) for place, each in enumerate(plan.classes) if not (y == place).any()]
    if absent:
        diary.say(f"No row of {data} is labelled {', '.join(absent[:20])}; the other parties may know it.")
    for note in plan.columns.unseen_notes(table):
        diary.say(note)
    if cut and plan.privacy is not None:
        check_records(plan.privacy.adjacency, ids, name)
        note_identities(diary, plan, data, records.ids, y, column=identity)
    return records


def check_plausible(
    plan: Plan, table: Table, mapping: TableMapping, diary: Diary, warn: Callable[[str], None] | None = None
) -> None:
    """Refuse, or where noise is on warn of, columns whose values hardly mean what was agreed on.

    At levels L1 and L2 values refuse nothing: whether a bundle comes must not hang on them.
    """
    if plan.image is not None:
        return
    found = [each for each in doubts(plan.columns, table) if each.column not in mapping.accept]
    wrong = [each for each in found if each.refuses]
    if wrong and plan.level == "L0":
        raise DataError(" ".join([*map(str, wrong), "Nothing was trained."]))
    for doubt in found:
        diary.say(f"Attention: {doubt}")
        if warn is not None:
            warn(str(doubt))


def data_digest(
    data: Path,
    column: str | None,
    share: float | None = None,
    form: Format = PLAIN,
    mapping: TableMapping = NO_MAPPING,
) -> str:
    """SHA-256 of a party's file as it is used: with labels, format, names and codes, identities, and share aside."""
    digest = file_digest(data, with_labels=True)
    if form != PLAIN:
        digest = hashlib.sha256(f"{digest} {form}".encode()).hexdigest()
    if mapping.digest:
        digest = hashlib.sha256(f"{digest} as {mapping.digest}".encode()).hexdigest()
    if share is not None:
        return hashlib.sha256(f"{digest} {share!r} aside {column}".encode()).hexdigest()
    return digest if column is None else hashlib.sha256(f"{digest} {column}".encode()).hexdigest()


def note_aside(diary: Diary, data: Path, records: Records) -> None:
    """What the party should know of the rows it lays aside; nobody else is told."""
    count = records.n_aside or 0
    what = "is" if count == 1 else "are"
    diary.say(
        f"{plural(count, 'row')} of {data} {what} laid aside: nothing is learned from them, and --evaluate judges the "
        f"final model on them. {plural(len(records.y), 'row')} are left to learn from."
        + (" So few will hardly tell two models apart." if count < FEW_ASIDE else "")
    )


def note_identities(
    diary: Diary, plan: Plan, data: Path, ids: Sequence[str] | None, y: Labels, *, column: str | None
) -> None:
    """What the party should know of how its records are told apart; nobody else is told."""
    if ids is None:
        diary.say(
            f"The records of {data} are told apart by their places in it. The promise holds if nothing in a record "
            "decides where it stands, as in a file that is only ever written on at its end. Else name a column of "
            "identities: --id COLUMN."
        )
        if sorted_by_label(y):
            diary.say(
                f"The rows of {data} are sorted by their label: there one changed label moves every row between, and "
                "nothing is promised. Name a column of identities (--id COLUMN), or shuffle the rows once and keep "
                "them so."
            )
        return
    what = f"column {column!r}" if column is not None else "file name" if data.is_dir() else "id"
    diary.say(
        f"The records of {data} are told apart by their {what}. The promise holds if neither what is in a record nor "
        "any other record decides it."
    )
    if follows_classes(ids, [str(plan.classes[code]) for code in y]):
        diary.say(
            f"The {what} of the records of {data} seems to follow their classes: by its words, or numbered within each "
            "class. There one changed label renames other records, and nothing is promised. Give every record a name "
            "that it keeps whatever its class."
        )
    nameless = sum(each.strip() in ("", "nan") for each in ids)
    if nameless:
        diary.say(f"{plural(nameless, 'row')} of {data} without any {what} count as one record's.")
    shared = sum(count for count in Counter(ids).values() if count > 1)
    if shared:
        diary.say(
            f"{plural(shared, 'row')} of {data} share their {what} with others: they stay in one subset, and the noise "
            "on the votes protects them together."
            + (" The class counts protect each of them alone." if plan.method.tells_counts else "")
        )


def sorted_by_label(y: Labels) -> bool:
    """Whether the rows of each class stand together, in more than a row or two."""
    runs = 1 + int(np.count_nonzero(np.diff(y)))
    return len(y) > 2 * runs and runs == len(np.unique(y)) > 1


def follows_classes(ids: Sequence[str], classes: Sequence[str]) -> bool:
    """Whether identities look as if the records' classes had made them, as exports by class do."""
    if len(ids) < FEW_RECORDS or len(set(classes)) < 2:
        return False
    words = sum(label.casefold() in identity.casefold() for identity, label in zip(ids, classes, strict=True))
    numbers: dict[str, list[int]] = {}
    for identity, label in zip(ids, classes, strict=True):
        digits = re.findall(r"[0-9]{1,15}", identity)
        if digits:
            numbers.setdefault(label, []).append(int(digits[-1]))
    # Without gaps in every class: numbered over all records, each class would have gaps.
    in_sequence = len(numbers) == len(set(classes)) and all(
        len(each) > 1 and max(each) - min(each) == len(each) - 1 == len(set(each)) - 1 for each in numbers.values()
    )
    return words > len(ids) // 2 or in_sequence
