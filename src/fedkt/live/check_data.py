"""A party's file looked at before it is used: columns, labels, values, identities, and everything that does not fit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from fedkt.data.format import Format
from fedkt.data.mapping import TableMapping
from fedkt.data.nearest import partners
from fedkt.data.plausible import doubts
from fedkt.data.table import Table
from fedkt.data.values import plural
from fedkt.errors import FedKTError
from fedkt.federation import Diary
from fedkt.live.aside import RowsAside, aside_path
from fedkt.live.findings import Findings
from fedkt.live.mapping_file import differences, in_words, mapping_path, open_mapping
from fedkt.live.records import Records, check_identity, data_digest, read_records
from fedkt.plan import Plan

SHOWN = 20


@dataclass(frozen=True)
class OwnFile:
    """The file as the run would use it."""

    records: Records
    digest: str
    """That of `fedkt.live.records.data_digest`."""


def check_data(
    found: Findings,
    plan: Plan,
    name: str,
    data: Path,
    *,
    identity: str | None,
    hold_out: float | None,
    form: Format,
    choices: TableMapping,
) -> OwnFile | None:
    """The file as the run would use it, None where it could not be; every fault of it is found, not only the first."""
    before = len(found.problems)
    found.attempt("Records", lambda: check_identity(plan, identity, share=hold_out))
    found.attempt("Records", lambda: RowsAside(aside_path(plan, name, data), hold_out))
    own = found.attempt("Mapping", lambda: open_mapping(mapping_path(name, data), choices, plan.columns, plan.classes))
    if own is not None and own.mapping != own.stored:
        found.add("Mapping", f"a run would write into {own.path}: {in_words(differences(own.stored, own.mapping))}")
    table = found.attempt("Data", lambda: plan.columns.read(data, labelled=False, form=form))
    if table is None:
        return None
    found.add("Data", f"{data}: {plural(table.n_rows, 'row')}, {plural(len(table.columns), 'column')}")
    found.facts["rows"] = table.n_rows
    if own is None:
        return None
    mapped = found.attempt("Columns", lambda: own.mapping.applied(table, plan.columns))
    if mapped is None:
        return None
    check_columns(found, plan, mapped, own.mapping.renames(table, plan.columns), identity)
    likely = with_likely_names(plan, mapped)
    check_values(found, plan, likely)
    check_labels(found, plan, likely)
    check_doubts(found, plan, likely, own.mapping)
    if len(found.problems) > before:
        return None
    diary = Diary()
    own.tell(data, diary)

    def read() -> Records:
        return read_records(plan, name, data, identity, diary, share=hold_out, form=form, mapping=own.mapping)

    records = found.attempt("Records", read)
    for note in diary.notes:
        if not note.startswith("Attention: "):
            found.add("Records", note, "note")
    return None if records is None else OwnFile(records, data_digest(data, identity, hold_out, form, own.mapping))


def check_columns(found: Findings, plan: Plan, table: Table, renamed: dict[str, str], identity: str | None) -> None:
    """Which columns are there and which are not."""
    schema = plan.columns
    names = [column.name for column in schema.columns]
    here = [column for column in schema.columns if column.name in table.columns]
    unused = [name for name in schema.unused(table) if name != identity]
    found.facts["columns"] = {
        "found": [column.name for column in here],
        "renamed": renamed,
        "missing": [name for name in names if name not in table.columns],
        "unused": unused,
    }
    words = f"{len(here)} of {len(names)} agreed ones are there"
    if renamed:
        pairs = [f"{theirs!r} is {ours!r}" for theirs, ours in renamed.items()]
        words += f"; {len(renamed)} by another name: {', '.join(pairs[:SHOWN])}{', …' * (len(pairs) > SHOWN)}"
    found.add("Columns", words)
    found.attempt("Columns", lambda: schema.require_columns(table))
    found.attempt("Labels", lambda: schema.require_label(table))


def with_likely_names(plan: Plan, table: Table) -> Table:
    """The table as if it had been told what the columns are called that it lacks: what is in them is looked at too."""
    schema = plan.columns
    absent = [name for name in (*(each.name for each in schema.columns), schema.label) if name not in table.columns]
    names = {theirs: ours for ours, theirs in partners(absent, schema.unused(table)).items()}
    return TableMapping(rename=names).applied(table, schema) if names else table


def check_values(found: Findings, plan: Plan, table: Table) -> None:
    """Which columns hold values that were not agreed on."""
    schema = plan.columns
    here = [column for column in schema.columns if column.name in table.columns]
    if plan.image is not None:
        if len(here) == len(schema.columns):
            found.attempt("Values", lambda: schema.encode(table))
        return
    for column in here:
        alone = schema.model_copy(update={"columns": (column,)})
        found.attempt("Values", partial(alone.encode, table))


def check_labels(found: Findings, plan: Plan, table: Table) -> None:
    """How many rows each class has."""
    if plan.columns.label not in table.columns:
        return
    codes = found.attempt("Labels", lambda: plan.columns.labels(table, plan.classes))
    if codes is not None:
        counts = {str(each): int(np.count_nonzero(codes == place)) for place, each in enumerate(plan.classes)}
        found.facts["classes"] = counts
        shown = [f"{label} {count:,}" for label, count in counts.items()]
        found.add("Labels", f"{', '.join(shown[:SHOWN])}{', …' * (len(shown) > SHOWN)}")


def check_doubts(found: Findings, plan: Plan, table: Table, mapping: TableMapping) -> None:
    """Columns whose values hardly mean what was agreed on: a problem without noise, a note with it."""
    if plan.image is not None:
        return
    try:
        odd = list(doubts(plan.columns, table))
    except FedKTError:
        # Refused above, with its line.
        return
    found.facts["doubts"] = [each.column for each in odd if each.column not in mapping.accept]
    for doubt in odd:
        if doubt.column in mapping.accept:
            found.add("Values", f"{doubt.why} It is accepted.", "note")
        else:
            found.add("Values", str(doubt), "problem" if plan.level == "L0" and doubt.refuses else "note")
