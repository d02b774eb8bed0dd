"""Public rows that are made: of what everybody knows, of what parties told, or of consented rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedkt.data.copula import Copula, fit_copula, known_copula
from fedkt.data.describing import describe
from fedkt.data.description import Description
from fedkt.data.format import PLAIN, Format
from fedkt.data.marginals import layout_of, scores_of, tell
from fedkt.data.table import Table
from fedkt.data.values import plural
from fedkt.errors import DataError
from fedkt.live.marginals import pooled_copula, read_marginals
from fedkt.live.public_files import csv_bytes, origin_bytes, origin_path, read_description, read_rows
from fedkt.plan import file_digest
from fedkt.privacy.statement import rounded_up
from fedkt.system.files import write_atomically

FEWEST = 50
"""Consented rows; of fewer, what is drawn is hardly more than they are."""
FINE = 40
"""Parts of the range of a number among consented rows."""


@dataclass(frozen=True)
class Source:
    """What rows are drawn from, and what must be said of it."""

    copula: Copula
    words: str
    """What they are made of."""
    files: tuple[dict[str, Any], ...]
    """The files that they were made of, with digest and promise."""
    cautions: tuple[str, ...]


def from_schema(path: Path) -> Source:
    """Of what everybody knows: no row of anybody is behind it."""
    copula = known_copula(read_description(path))
    caution = (
        "every column was drawn for itself, so rows may have values together that nobody has. At level L2 moments lose "
        "much with such rows; have the parties tell marginals (fedkt public marginals) where you can."
    )
    return Source(copula, f"the columns in {path}, each for itself", (_file(path),), (caution,))


def from_marginals(paths: Sequence[Path]) -> Source:
    """Of what parties told of their columns."""
    told = [(path, read_marginals(path)) for path in paths]
    cautions = []
    exact = [each.party for _, each in told if each.promise is None]
    if exact:
        cautions.append(
            f"the counts of {', '.join(exact)} are exact: the rows tell what the counts tell, and nothing is promised."
        )
    alone = [each.party for _, each in told if not each.products]
    if alone:
        cautions.append(
            f"{', '.join(alone)} told each column alone; how columns go together is from the others, if any."
        )
    promises = [each.promise for _, each in told if each.promise is not None]
    words = f"what {f'{len(told)} parties' if len(told) > 1 else 'one party'} told"
    if promises and not exact:
        words += f" with noise (epsilon {rounded_up(max(each.epsilon for each in promises))} for one record of each)"
    files = tuple(
        {
            **_file(path),
            "party": each.party,
            "epsilon": "infinite" if each.promise is None else each.promise.epsilon,
            **({} if each.promise is None else {"delta": each.promise.delta, "unit": each.promise.unit}),
        }
        for path, each in told
    )
    return Source(pooled_copula(told), words, files, tuple(cautions))


def from_consented(
    path: Path, label: str, categorical: Collection[str], ignore: Collection[str], *, form: Format = PLAIN
) -> Source:
    """Of rows whose owners agreed to it: shares of each column, and correlations, without noise."""
    table = read_rows(path, label, form=form)
    if table.n_rows < FEWEST:
        raise DataError(f"{path} has {plural(table.n_rows, 'row')}; rows are made of at least {FEWEST}.")
    known = describe(table, label=label, categorical=categorical, ignore=ignore, bins=FINE)
    paired = layout_of(known, paired=True).paired
    counts, products = tell(known.codes(table), scores_of(known), paired=paired)
    copula = fit_copula(known, counts, pairs=(counts, products) if paired else None)
    caution = (
        "no noise was added: a value or a category that few of the consented rows have comes again in the rows that "
        "were made. They need the consent of those whose rows they are made from. With a promise: fedkt public "
        "marginals --epsilon, then fedkt public new --marginals."
    )
    return Source(copula, f"{plural(table.n_rows, 'consented row')} in {path}", (_file(path),), (caution,))


def write_rows(source: Source, path: Path, *, n_rows: int, seed: int) -> dict[str, Any]:
    """Draw the rows and write them, and beside them how they were made; what there is to know of it."""
    table = source.copula.draw(n_rows, np.random.default_rng(seed))
    rows = csv_bytes(table)
    facts = {
        "made_of": source.words,
        "files": list(source.files),
        "rows": n_rows,
        "seed": seed,
        "cautions": [*source.cautions, *not_drawn(source.copula.description, table)],
    }
    # The origin first: rows of which nobody knows where they come from must not lie around.
    write_atomically(origin_path(path), origin_bytes(rows, facts))
    write_atomically(path, rows)
    return facts


def not_drawn(description: Description, table: Table) -> list[str]:
    """A sentence about categories that are in no row; nothing where all are."""
    absent = {
        column.name: len(set(column.categories) - set(table.columns[column.name].tolist()))
        for column in description.columns
    }
    columns = [f"{count} of {name!r}" for name, count in absent.items() if count]
    if not columns:
        return []
    return [
        f"some categories are in no row, and a plan of these rows will not know them: {', '.join(columns[:10])}"
        f"{', …' * (len(columns) > 10)}. Make more rows, or merge rare categories in the schema."
    ]


def _file(path: Path) -> dict[str, Any]:
    return {"file": path.name, "sha256": file_digest(path)}
