"""What a final model says about the rows of a file, and how that is written for spreadsheets."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.data.format import PLAIN, Format
from fedkt.data.mapping import NO_MAPPING, TableMapping
from fedkt.data.table import Table
from fedkt.data.values import as_key
from fedkt.errors import ConfigurationError, DataError
from fedkt.live.final_file import FinalModel
from fedkt.models.prediction import labels_and_probabilities
from fedkt.quality import Quality, measure_quality

PREDICTION = "prediction"
PROBABILITY = "probability_"
"""What the column of a class's probability is called, before the class."""
ROUNDING = 1e-6
FORMULA = re.compile(r"[ ]*[=+\-@\t\r\n＝＋－＠]")
"""How a cell begins that spreadsheets may compute: also in the wide signs of East Asian keyboards."""
NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")


@dataclass(frozen=True)
class Predictions:
    """The predicted class of every row, in the rows' order."""

    table: Table
    labels: tuple[str | int, ...]
    quality: Quality | None = None
    """How good they are, where the rows are labelled."""
    notes: tuple[str, ...] = ()
    probabilities: Mapping[str | int, Sequence[float]] | None = None
    """How probable each class is on every row, where that was asked for."""


def predict_file(
    final: FinalModel,
    path: str | Path,
    *,
    probabilities: bool = False,
    thresholds: Mapping[str | int, float] | None = None,
    form: Format = PLAIN,
    choices: TableMapping = NO_MAPPING,
) -> Predictions:
    """What the final model says about each row of a file; how good that is too, where the rows are labelled.

    With `probabilities` those of each class are told as well. `thresholds` decide the label instead of the model's own
    rule: see `labels_by_thresholds`. `form` is how the file is written, and `choices` give its columns and codes their
    agreed names; the rows are written as they are in the file.
    """
    schema, classes = final.card.columns, final.card.classes
    if (probabilities or thresholds) and not final.model.soft:
        raise ConfigurationError(
            f"{final.model.name} only names a class and does not say how probable it is: there are no probabilities to "
            "write or to hold against a threshold. Ask whoever runs the server for a final model of another family."
        )
    limits = threshold_of_class(thresholds or {}, classes)
    as_read = schema.read(path, labelled=False, form=form)
    table = choices.checked(schema, classes).applied(as_read, schema)
    rows = schema.encode(table)
    columns, shares, labelled = None, None, schema.label in table.columns
    # Probabilities are judged wherever they can be, also where nobody asked to see them.
    if final.model.soft and (probabilities or limits or labelled):
        codes, shares = labels_and_probabilities(final.model, rows)
        codes = labels_by_thresholds(codes, shares, limits)
        if probabilities:
            columns = dict(zip(classes, map(shortest_decimals, shares.T), strict=True))
    else:
        codes = final.model.predict(rows)
    quality, notes = None, [*table.notes, *schema.unseen_notes(table)]
    if labelled:
        try:
            quality = measure_quality(schema.labels(table, classes), codes, classes, shares)
        except DataError as reason:
            notes.append(f"No accuracy: {reason}")
    return Predictions(as_read, tuple(classes[code] for code in codes), quality, tuple(notes), columns)


def shortest_decimals(column: NDArray[np.float32]) -> list[float]:
    """The numbers with as many digits as tell one float32 from the next: rows may be ranked by them."""
    return [float(str(each)) for each in column]


def threshold_of_class(thresholds: Mapping[str | int, float], classes: Sequence[str | int]) -> dict[int, float]:
    """The thresholds by the index of their class, each checked."""
    places = {as_key(each): place for place, each in enumerate(classes)}
    limits: dict[int, float] = {}
    for label, least in thresholds.items():
        if as_key(label) not in places:
            raise ConfigurationError(
                f"--threshold: the model knows no class {str(label)!r}. Its classes: "
                f"{', '.join(map(str, classes[:20]))}."
            )
        if not 0 < least <= 1:
            raise ConfigurationError(
                f"--threshold {label}: a probability is above 0 and at most 1, got {least:g}. For instance 0.3."
            )
        if places[as_key(label)] in limits:
            raise ConfigurationError(f"--threshold is given twice for {str(label)!r}.")
        limits[places[as_key(label)]] = least
    return limits


def labels_by_thresholds(
    labels: NDArray[np.int64], probabilities: NDArray[np.float32], thresholds: Mapping[int, float]
) -> NDArray[np.int64]:
    """The labels where some classes have a threshold: a row gets such a class if it is at least that probable.

    Of several classes that reach theirs, the one that exceeds it by the largest ratio. Where none does, the model's own
    label, unless that is a class below its threshold: then the likeliest class that has none (of two classes, the
    other one). Where every class has a threshold and none is reached, the model's own label stays.
    """
    if not thresholds:
        return labels
    limited = sorted(thresholds)
    ratios = probabilities[:, limited].astype(float) / np.array([thresholds[each] for each in limited])
    best = ratios.argmax(axis=1)
    # As float32 a probability of 0.7 is a little less.
    reached = ratios.max(axis=1) >= 1 - ROUNDING
    free = [each for each in range(probabilities.shape[1]) if each not in thresholds]
    below = labels
    if free:
        likeliest = np.array(free)[probabilities[:, free].argmax(axis=1)]
        below = np.where(np.isin(labels, limited), likeliest, labels)
    return np.asarray(np.where(reached, np.array(limited)[best], below), dtype=np.int64)


def to_csv(predictions: Predictions) -> str:
    """The rows as they were read, in their order, then the prediction and any probabilities; an image as its file.

    A spreadsheet takes a text that begins like a formula for one: such a text gets an apostrophe before it.
    """
    table = predictions.table
    if table.files is not None:
        table = Table({"file": table.files}, table.source)
    shares = predictions.probabilities or {}
    new = (PREDICTION, *(f"{PROBABILITY}{label}" for label in shares))
    for name in new:
        if name in table.columns:
            raise DataError(f"{table.source} already has a column {name!r}. Rename it first.")
    # A carriage return inside a cell is quoted only where lines end with one.
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    lines = []
    columns = [values.tolist() for values in table.columns.values()]
    for row in ((*table.columns, *new), *zip(*columns, predictions.labels, *shares.values(), strict=True)):
        writer.writerow(map(no_formula, row))
        lines.append(text.getvalue().removesuffix("\r\n"))
        text.seek(0)
        text.truncate()
    return "\n".join([*lines, ""])


def no_formula(value: Any) -> Any:
    """The value of a cell; a text that is no number and begins like a formula has an apostrophe before it."""
    if isinstance(value, str) and FORMULA.match(value) and not NUMBER.fullmatch(value):
        return f"'{value}"
    return value
