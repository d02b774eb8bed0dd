"""How a final model travels: as ONNX with labels, and with probabilities wherever they survive it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedkt.errors import ModelError
from fedkt.models.answer_rules import LABEL_GAP
from fedkt.models.exchange import (
    SAME_PROBABILITY,
    OnnxModel,
    float_rows,
    graph_bytes,
    label_differences,
    model_name,
    run_graph,
    to_onnx,
)
from fedkt.models.graphs import LibraryFailure, library_code
from fedkt.models.onnx_rules import check_graph

if TYPE_CHECKING:
    from fedkt.models.base import FittedModel


def to_final_onnx(model: FittedModel, *, n_features: int, n_classes: int, check_rows: ArrayLike) -> OnnxModel:
    """The final model as ONNX, saying of all `check_rows` what it says here; without probabilities where it must be.

    Unlike a student's, its label need not be its likeliest class: it may have been moved on purpose.
    """
    rows, labels = float_rows(check_rows, n_features), [int(each) for each in model.labels]
    for double in (False, True) if model.has_probabilities else ():
        try:
            graph = graph_bytes(
                model.estimator, labels, n_features, double=double, n_classes=n_classes, reading=model.reading
            )
            data = check_graph(graph, n_features=n_features, n_classes=n_classes, soft=True).data
            label, probability = run_graph(model, data, rows, n_classes)
            with library_code():
                native = model.predict_proba(rows, n_classes)
        except (ModelError, LibraryFailure):
            continue
        near = np.abs(probability - native).max(initial=0.0) <= SAME_PROBABILITY
        if near and differences(model, rows, native, label) == 0:
            return OnnxModel(data, n_features, n_classes, model_name(model), soft=True)
    # Its own labels are those of no reading: what reads its scores has not survived.
    return to_onnx(replace(model, reading=None), n_features=n_features, n_classes=n_classes, check_rows=check_rows)


def differences(
    model: FittedModel, rows: NDArray[np.float32], probabilities: NDArray[np.float64], labels: NDArray[np.int64]
) -> int:
    """Rows with another label than before; those on which rounding may decide do not count."""
    if model.reading is None or model.reading.factors is None:
        return label_differences(model, rows, model.predict(rows), labels)
    weighted = probabilities[:, model.labels] * model.reading.factors
    place = np.full(probabilities.shape[1], -1)
    place[model.labels] = np.arange(len(model.labels))
    own = np.take_along_axis(weighted, place[labels][:, None], axis=1)[:, 0]
    best = weighted.max(axis=1, initial=0.0)
    return int((own < best * (1 - LABEL_GAP)).sum())
