"""How a trained model travels: as an ONNX graph from rows to indices into the agreed class list.

One convention for every family: one input `rows` (float32, N × features), one output `label` (int64, N), and where it
was agreed on a second one, `probability` (float32, N × classes). The graph says which agreed class it means itself, so
a receiver needs neither the estimator's library nor its idea of labels.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedkt.errors import DataError, ModelError
from fedkt.models import tree_graphs
from fedkt.models.answer_rules import contradiction
from fedkt.models.catalogue import family_of
from fedkt.models.graphs import (
    LabelScores,
    LibraryFailure,
    add_probability,
    canonical_graph,
    constant_graph,
    join_graphs,
    library_code,
)
from fedkt.models.onnx_rules import OPSETS, Limits, check_graph
from fedkt.models.reading import Reading, by_decision, last_step
from fedkt.models.reading_graph import add_reading

if TYPE_CHECKING:
    from fedkt.models.base import FittedModel

SAME_PROBABILITY = 1e-3
"""How far a probability may move by travelling: float32 instead of float64."""
WORKING = (
    "decision trees, random forests, extra trees, gradient boosting (scikit-learn, histogram, XGBoost, LightGBM, "
    "CatBoost), logistic and other linear classifiers, SVC, naive Bayes, discriminant analysis, MLP, nearest "
    "neighbours (uniform weights, no equal distances), soft voting, bagging, neural networks (NeuralClassifier) of "
    "linear, convolution, pooling, normalisation, dropout and activation layers without padding layers, resizing or "
    "recurrence, and pipelines of these after imputers and scalers"
)
"""The families that are known to travel, for messages."""


@dataclass(frozen=True)
class OnnxModel:
    """A model that has travelled, or is ready to: its graph, and what goes in and comes out."""

    data: bytes = field(repr=False)
    n_features: int
    n_classes: int
    name: str = "model"
    """What messages call it."""
    soft: bool = False
    """Whether it also says how sure it is."""
    free_label: bool = False
    """Whether its label may be another class than its likeliest: a final model's, where thresholds decide."""
    limits: Limits = field(default_factory=Limits, repr=False)
    """What it may take when it is run, together with the other models of its party."""

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """The index of the agreed class predicted for each row, computed in a child process with limits."""
        from fedkt.models.sandbox import run_models

        rows = float_rows(X, self.n_features)
        answer = run_models([self.data], rows, n_classes=self.n_classes, limits=self.limits)[0]
        if isinstance(answer, str):
            raise ModelError(f"{self.name} could not be run: {answer}")
        return answer


def float_rows(X: Any, n_features: int) -> NDArray[np.float32]:
    """The rows as a dense float32 table of the given width."""
    dense = X.toarray() if hasattr(X, "toarray") else X
    try:
        rows = np.ascontiguousarray(dense, dtype=np.float32)
    except (TypeError, ValueError) as reason:
        raise DataError(
            f"Rows of numbers are needed here: {str(reason)[:200]}. Encode text first, as a column of numbers or by a "
            "schema; a pipeline that reads text works with votes (voting='expert')."
        ) from reason
    if rows.ndim != 2 or rows.shape[1] != n_features:
        raise DataError(f"The model reads rows of {n_features} columns, got an array of shape {rows.shape}.")
    return rows


def to_soft_onnx(
    model: FittedModel, *, n_features: int, n_classes: int, check_rows: ArrayLike, must: bool = False
) -> OnnxModel:
    """The model as ONNX that also gives probabilities, near the native ones on all `check_rows`.

    If it cannot be had, without them; or not at all where it `must`.
    """
    rows, labels = float_rows(check_rows, n_features), [int(each) for each in model.labels]
    try:
        graph = graph_bytes(model.estimator, labels, n_features, double=False, n_classes=n_classes)
        data = check_graph(graph, n_features=n_features, n_classes=n_classes, soft=True).data
        label, probability = run_graph(model, data, rows, n_classes)
        with library_code():
            native = model.predict_proba(rows, n_classes)
        near = np.abs(probability - native).max(initial=0.0) <= SAME_PROBABILITY
        # A receiver hears nobody whose label is not the likeliest class, as with Platt's scaling of an SVC.
        honest = not contradiction(label, probability)
        if near and honest and label_differences(model, rows, model.predict(rows), label) == 0:
            return OnnxModel(data, n_features, n_classes, model_name(model), soft=True)
    except (ModelError, LibraryFailure):
        # No probabilities can be had: the label alone travels anyway, or is refused in words.
        pass
    except Exception:
        # A fault of ours must not cost a party its probabilities unseen; in words where no label can travel either.
        to_onnx(model, n_features=n_features, n_classes=n_classes, check_rows=check_rows)
        raise
    if must:
        raise ModelError(
            f"{model_name(model)} would not say how sure it is after travelling, or something else than before, and "
            "the voting of this plan needs that. Choose another family, or another voting."
        )
    return to_onnx(model, n_features=n_features, n_classes=n_classes, check_rows=check_rows)


def converter(*, soft: bool, must: bool) -> Callable[..., OnnxModel]:
    """How models travel: with their probabilities where they can (or `must`), or with labels only."""
    return partial(to_soft_onnx, must=must) if soft else to_onnx


def to_onnx(model: FittedModel, *, n_features: int, n_classes: int, check_rows: ArrayLike) -> OnnxModel:
    """The model as ONNX, with labels equal to the native model's on every one of `check_rows`.

    The bytes depend on the model only. Where float32 arithmetic changes a label, float64 is tried before giving up.
    Of a network's rows, those may differ on which its two best classes are as good as equal (see `near_ties`).
    """
    rows = float_rows(check_rows, n_features)
    labels = [int(each) for each in model.labels]
    if not all(0 <= each < n_classes for each in labels):
        raise ModelError(f"The model answers with classes {labels}, but only 0 … {n_classes - 1} were agreed on.")
    name = model_name(model)
    native = model.predict(rows)
    wrong = 0
    reason: BaseException | None = None
    # Of a stranger's part of a graph there is no other than float32.
    for double in (False,) if holds_received_graph(model) else (False, True):
        try:
            graph = graph_bytes(model.estimator, labels, n_features, double=double)
            data = check_graph(graph, n_features=n_features, n_classes=n_classes).data
            wrong = label_differences(model, rows, native, run_graph(model, data, rows, n_classes, soft=False)[0])
        except Exception as caught:
            # A converter may raise anything; its user needs the list of what works.
            reason = reason or (caught.__cause__ if isinstance(caught, LibraryFailure) else caught)
            continue
        if wrong == 0:
            return OnnxModel(data, n_features, n_classes, name)
        reason = None
        if model.estimator is None:
            break
    if reason is not None:
        raise ModelError(
            f"{name} cannot be converted to ONNX, the form in which models travel: {type(reason).__name__}: "
            f"{str(reason)[:500]} Families that work: {WORKING}."
        ) from reason
    raise ModelError(
        f"{name} would not say the same after travelling: as ONNX it gives another label on {wrong} of {len(rows)} "
        f"rows. Families that work: {WORKING}."
    )


def model_name(model: FittedModel) -> str:
    """What messages call a model."""
    return "a constant" if model.estimator is None else type(model.estimator).__name__


def _last_step(estimator: Any) -> Any:
    """The end of a pipeline, or the estimator itself; one pipeline deep only, which is where graphs are joined."""
    return estimator[-1] if type(estimator).__name__ == "Pipeline" else estimator


def label_differences(
    model: FittedModel, rows: NDArray[np.float32], native: NDArray[np.int64], labels: NDArray[np.int64]
) -> int:
    """Rows with another label than before; of a network's, those where rounding may decide do not count."""
    differing = labels != native
    near_ties = family_of(_last_step(model.estimator)).near_ties
    if near_ties is not None and differing.any():
        differing &= ~near_ties(model, rows, labels)
    return int(differing.sum())


def run_graph(
    model: FittedModel, data: bytes, rows: NDArray[np.float32], n_classes: int, *, soft: bool = True
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Labels and probabilities of the graph made of a model; where a stranger's part is in it, from the sandbox."""
    if not holds_received_graph(model):
        return run_with_probabilities(data, rows, n_classes if soft else 0)
    from fedkt.models.sandbox import ask_models

    (answer,) = ask_models([data], rows, n_classes=n_classes, soft=[soft], free_labels=[True])
    if isinstance(answer, str):
        raise ModelError(f"it could not be run: {answer}")
    return answer[0], np.empty((0, n_classes), np.float32) if answer[1] is None else answer[1]


def holds_received_graph(model: FittedModel) -> bool:
    """Whether a part of the model was made by somebody else."""
    return bool(getattr(model.estimator, "holds_received_graph", False))


def run_with_probabilities(
    data: bytes, rows: NDArray[np.float32], n_classes: int
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Labels and probabilities, as far as there are any, of our own graph.

    In this process, with the session that a receiver's child process uses.
    """
    from fedkt.models.sandbox_child import open_session, predict_blocks

    labels, probabilities = [np.empty(0, np.int64)], [np.empty((0, n_classes), np.float32)]
    with library_code():
        for label, probability in predict_blocks(open_session(data), rows, n_classes):
            labels.append(label)
            if probability is not None:
                probabilities.append(probability)
    return np.concatenate(labels), np.concatenate(probabilities)


def graph_bytes(
    estimator: Any,
    labels: list[int],
    n_features: int,
    *,
    double: bool,
    n_classes: int | None = None,
    reading: Reading | None = None,
) -> bytes:
    """The graph from rows to labels; with the number of agreed classes, to their probabilities as well.

    With a reading both are what it makes of the scores behind the estimator's own label.
    """
    add = add_probability if reading is None else partial(add_reading, reading=reading)
    if estimator is None:
        proto = constant_graph(labels[0], n_features, n_classes)
    elif (forest := tree_graphs.forest_of(estimator)) is not None:
        proto = tree_graphs.forest_graph(forest, labels, n_features)
        if n_classes is not None:
            add(proto, with_link(forest.scores), labels, n_classes)
    else:
        with warnings.catch_warnings():
            # The converter reads attributes of SVC that scikit-learn will drop; its user can do nothing about it.
            warnings.filterwarnings("ignore", r"Attribute `prob[AB]_` was deprecated", FutureWarning)
            model = _proto(estimator, n_features, double=double, scores=reading is not None)
        scores = None if n_classes is None else _scores(estimator, model, decision=reading is not None)
        proto = canonical_graph(
            model, labels, n_features, double=double, scores=scores, n_classes=n_classes or 0, add=add
        )
    return bytes(proto.SerializeToString(deterministic=True))


def _scores(estimator: Any, proto: Any, *, decision: bool) -> LabelScores:
    """Where the numbers behind the label stand in a converted graph, or a ModelError where there are none."""
    last = _last_step(estimator)
    family = family_of(last)
    own_scores = family.scores
    if own_scores is not None:
        return own_scores(last)
    if (forest := tree_graphs.forest_of(last)) is not None:
        return with_link(forest.scores)
    if len(proto.graph.output) < 2 or not (decision or hasattr(estimator, "predict_proba")):
        raise ModelError("it does not say how sure it is.")
    name, width = proto.graph.output[1].name, len(estimator.classes_)
    if not (decision and by_decision(estimator)):
        logarithms = log_source(proto, name) if decision and family.scale == "logarithm" else None
        return LabelScores(name, width, "sum") if logarithms is None else LabelScores(logarithms, width, "logarithm")
    # Of two classes there is one column, or two of which one is the other's opposite; support vectors have it first.
    first = any(node.op_type == "SVMClassifier" for node in proto.graph.node)
    return LabelScores(name, width, "decision", column=0 if first else -1)


def log_source(proto: Any, name: str) -> str:
    """What the probabilities of this name are the exponential of."""
    for node in proto.graph.node:
        if node.op_type == "Exp" and name in node.output:
            return str(node.input[0])
    raise ModelError("the logarithms of its probabilities are not in its graph.")


def with_link(scores: LabelScores) -> LabelScores:
    """The scores, if they can become probabilities."""
    if not scores.link:
        raise ModelError("it does not say how sure it is.")
    return scores


def _proto(estimator: Any, n_features: int, *, double: bool, scores: bool = False) -> Any:
    """The estimator's graph, by the converter its family has: first input the rows, first output the local label.

    With `scores` the second output of a converted graph is a table, also where it is a decision function's.
    """
    export = family_of(estimator).export
    if export is not None:
        with library_code():
            return export(estimator)
    own = _own_graph(estimator, double=double)
    if own is not None:
        return own
    if type(estimator).__name__ == "Pipeline" and len(estimator) > 1:
        own = _own_graph(estimator[-1], double=False)
        if own is not None:
            # The steps before are the converter's, the classifier's graph is ours: faster, and exact on ties.
            return join_graphs(_convert(estimator[:-1], n_features, double=double), own)
    *first, last = _options(estimator, scores=scores and by_decision(estimator))
    for options in first:
        with suppress(LibraryFailure):
            return _convert(estimator, n_features, double=double, options=options)
    return _convert(estimator, n_features, double=double, options=last)


def _options(estimator: Any, *, scores: bool) -> list[dict[Any, Any] | None]:
    """With what options skl2onnx may be asked for an estimator, and for its decision function's `scores`, in turn."""
    # Probabilities as a table; by default they are wrapped into dictionaries.
    plain: dict[Any, Any] = {"zipmap": False}
    # By its identity, or the end of a pipeline would not hear of it.
    end = id(last_step(estimator))
    if hasattr(estimator, "predict_proba"):
        return [{end: {**plain, "raw_scores": True}} if scores else plain]
    # At the end of a pipeline LinearSVC is asked to wrap probabilities, which it does not know, unless it has options.
    return [*([plain] if scores else []), None, {end: {}}]


def _convert(steps: Any, n_features: int, *, double: bool, options: dict[Any, Any] | None = None) -> Any:
    """What skl2onnx makes of an estimator, or of the steps before one."""
    from skl2onnx import to_onnx as convert
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    kind = DoubleTensorType if double else FloatTensorType
    rows = [("rows", kind([None, n_features]))]
    with library_code():
        return convert(steps, initial_types=rows, target_opset=dict(OPSETS), options=options)


def _own_graph(estimator: Any, *, double: bool) -> Any:
    """The graph of a classifier that we write ourselves, from its rows to its local labels; None for others."""
    graph = family_of(estimator).graph
    if graph is not None:
        return graph(estimator, double=double)
    forest = tree_graphs.forest_of(estimator)
    if forest is None:
        return None
    return tree_graphs.forest_graph(forest, list(range(forest.n_classes)), int(estimator.n_features_in_))
