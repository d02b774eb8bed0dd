"""Models that travel with their probabilities, and graphs that only pretend to have some."""

from __future__ import annotations

import warnings

import numpy as np
import onnx
import pytest
import skl2onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from fedkt.errors import ModelError
from fedkt.models import exchange, graphs, sandbox_child
from fedkt.models.base import FittedModel, fit_model
from fedkt.models.catalogue import MODELS, as_estimator
from fedkt.models.exchange import OnnxModel, to_onnx, to_soft_onnx
from fedkt.models.onnx_rules import check_graph
from fedkt.models.prediction import has_probabilities, probabilities_of_all
from fedkt.models.sandbox import ask_models

FAMILIES = [name for name, family in MODELS.items() if family.probabilities and not family.only_images]


def run_soft_models(models, rows, *, n_classes):
    """The probabilities that each model gives, or why it gives none."""
    answers = ask_models(models, rows, n_classes=n_classes, soft=[True] * len(models))
    return [each if isinstance(each, str) else each[1] for each in answers]


def table(loader, missing):
    data = loader()
    X, y = data.data.astype(np.float32)[:300], data.target[:300]
    return X, y, np.flatnonzero(y != missing), int(data.target.max()) + 1


@pytest.mark.parametrize("loader", [load_digits, load_breast_cancer], ids=["ten classes", "two classes"])
@pytest.mark.parametrize("family", [*FAMILIES, "pipeline"])
def test_probabilities_travel_with_a_class_that_was_never_seen(family, loader):
    if family in ("boosting", "lightgbm", "mlp"):
        pytest.importorskip({"boosting": "xgboost", "lightgbm": "lightgbm", "mlp": "torch"}[family])
    X, y, present, n_classes = table(loader, missing=3)
    estimator = (
        make_pipeline(StandardScaler(), as_estimator("logistic")) if family == "pipeline" else as_estimator(family)
    )
    if family in ("forest", "extra-trees", "boosting", "lightgbm"):
        estimator.set_params(n_estimators=10)
    if family == "mlp":
        estimator.set_params(epochs=2)
    model = fit_model(estimator, X[present], y[present], rng=np.random.default_rng(0))
    sent = to_soft_onnx(model, n_features=X.shape[1], n_classes=n_classes, check_rows=X)
    assert sent.soft
    (answer,) = probabilities_of_all([sent], X, n_classes)
    assert np.abs(answer - model.predict_proba(X, n_classes)).max() < 1e-3
    assert (sent.predict(X) == model.predict(X)).all()
    plain = to_onnx(model, n_features=X.shape[1], n_classes=n_classes, check_rows=X)
    assert not plain.soft
    assert not check_graph(plain.data, n_features=X.shape[1], n_classes=n_classes, soft=True).soft


def test_whoever_only_names_a_class_travels_as_before():
    X, y, _, n_classes = table(load_digits, missing=None)
    model = fit_model(as_estimator("svm"), X, y, rng=np.random.default_rng(0))
    sent = to_soft_onnx(model, n_features=64, n_classes=n_classes, check_rows=X)
    assert not sent.soft
    assert not has_probabilities(sent)
    assert not has_probabilities(model)


@pytest.mark.parametrize("family", ["tree", "logistic"], ids=["a graph of ours", "a converted graph"])
def test_a_fault_of_ours_is_raised_and_costs_nobody_its_probabilities_unseen(family, monkeypatch):
    X, y, _, n_classes = table(load_digits, missing=None)
    model = fit_model(as_estimator(family), X, y, rng=np.random.default_rng(0))

    def fault(*_):
        raise KeyError("a fault of ours")

    for module in (exchange, graphs):
        monkeypatch.setattr(module, "add_probability", fault)
    with pytest.raises(KeyError, match="a fault of ours"):
        to_soft_onnx(model, n_features=64, n_classes=n_classes, check_rows=X)


def test_where_no_label_can_travel_either_a_fault_of_ours_is_said_in_words(monkeypatch):
    X, y, _, n_classes = table(load_digits, missing=None)
    model = fit_model(as_estimator("tree"), X, y, rng=np.random.default_rng(0))
    monkeypatch.setattr(exchange.tree_graphs, "forest_graph", lambda *_: {}["a fault of ours"])
    with pytest.raises(ModelError, match=r"DecisionTreeClassifier cannot be converted.*KeyError: 'a fault of ours'"):
        to_soft_onnx(model, n_features=64, n_classes=n_classes, check_rows=X)


@pytest.mark.parametrize("culprit", ["the converter", "the runtime", "the estimator"])
def test_a_library_that_has_no_probabilities_leaves_the_label_to_travel(culprit, monkeypatch):
    X, y, _, n_classes = table(load_digits, missing=None)
    model = fit_model(as_estimator("logistic"), X, y, rng=np.random.default_rng(0))
    convert, run, failures = skl2onnx.to_onnx, sandbox_child.predict_blocks, []

    def fail_once(call):
        if not failures:
            failures.append(culprit)
            raise RuntimeError("a fault of the library")
        return call()

    if culprit == "the converter":
        monkeypatch.setattr(skl2onnx, "to_onnx", lambda *a, **k: fail_once(lambda: convert(*a, **k)))
    elif culprit == "the runtime":
        monkeypatch.setattr(sandbox_child, "predict_blocks", lambda *a: fail_once(lambda: run(*a)))
    else:
        monkeypatch.setattr(type(model.estimator), "predict_proba", lambda *_: fail_once(list))
    sent = to_soft_onnx(model, n_features=64, n_classes=n_classes, check_rows=X)
    assert failures == [culprit]
    assert not sent.soft
    assert sent.predict(X).tolist() == model.predict(X).tolist()


def test_a_constant_is_certain_whatever_it_reads():
    rows = np.full((3, 4), np.nan, np.float32)
    sent = to_soft_onnx(FittedModel(None, np.array([2]), 4), n_features=4, n_classes=5, check_rows=rows)
    (answer,) = run_soft_models([sent.data], rows, n_classes=5)
    assert answer.tolist() == [[0, 0, 1, 0, 0]] * 3


def soft_graph(probability, *, name="probability", kind=TensorProto.FLOAT, shape=(None, 2), n_features=2):
    """A graph that labels every row 0 and says of each the same numbers."""
    tables = {
        "zeros": np.zeros((n_features, 1), np.float32),
        "labels": np.array([0], np.int64),
        "said": np.asarray([probability], np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["rows", "zeros"], ["column"]),
        helper.make_node("ArgMax", ["column"], ["local"], axis=1, keepdims=0),
        helper.make_node("Gather", ["labels", "local"], ["label"]),
        helper.make_node("Gather", ["said", "local"], [name]),
    ]
    graph = helper.make_graph(
        nodes,
        "fedkt",
        [helper.make_tensor_value_info("rows", TensorProto.FLOAT, [None, n_features])],
        [
            helper.make_tensor_value_info("label", TensorProto.INT64, [None]),
            helper.make_tensor_value_info(name, kind, list(shape)),
        ],
        [numpy_helper.from_array(value, key) for key, value in tables.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


def test_a_graph_as_it_should_be_is_run():
    data = soft_graph([0.75, 0.25])
    assert check_graph(data, n_features=2, n_classes=2, soft=True).soft
    (answer,) = run_soft_models([data], np.zeros((3, 2), np.float32), n_classes=2)
    assert answer.tolist() == [[0.75, 0.25]] * 3


def test_a_model_that_names_one_class_and_finds_another_likelier_is_not_heard():
    rows = np.zeros((3, 2), np.float32)
    answers = run_soft_models([soft_graph([0.25, 0.75]), soft_graph([0.75, 0.25])], rows, n_classes=2)
    assert answers[0] == "it gives the label 0 to row 0 but finds 1 likelier, and so on 3 of 3 rows."
    assert answers[1].tolist() == [[0.75, 0.25]] * 3


@pytest.mark.parametrize(
    ("numbers", "accepted"), [([0.5, 0.5], True), ([0.49996, 0.50004], True), ([0.4999, 0.5001], False)]
)
def test_a_near_tie_may_go_either_way(numbers, accepted):
    (answer,) = run_soft_models([soft_graph(numbers)], np.zeros((3, 2), np.float32), n_classes=2)
    assert isinstance(answer, str) != accepted


def test_a_classifier_whose_label_is_not_its_likeliest_class_travels_without_probabilities():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3)).astype(np.float32)
    y = (X[:, 0] + rng.normal(size=120) > 0.8).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        # Its probabilities are fitted to the scores afterwards, and not to where the label changes.
        model = fit_model(SVC(probability=True, random_state=0), X, y, rng=rng)
    assert (model.predict(X) != model.predict_proba(X, 2).argmax(axis=1)).any()
    sent = to_soft_onnx(model, n_features=3, n_classes=2, check_rows=X)
    assert not sent.soft
    assert sent.predict(X).tolist() == model.predict(X).tolist()


def test_models_with_and_without_probabilities_share_one_child(monkeypatch):
    from fedkt.models import child_process

    started = []
    popen = child_process.subprocess.Popen
    monkeypatch.setattr(child_process.subprocess, "Popen", lambda *a, **k: started.append(1) or popen(*a, **k))
    X, y, _, n_classes = table(load_digits, missing=None)
    only_names = to_soft_onnx(
        fit_model(as_estimator("svm"), X, y, rng=np.random.default_rng(0)),
        n_features=64,
        n_classes=n_classes,
        check_rows=X,
    )
    constant = to_soft_onnx(FittedModel(None, np.array([2]), 64), n_features=64, n_classes=n_classes, check_rows=X)
    hard, soft = probabilities_of_all([only_names, constant], X[:5], n_classes)
    assert hard.argmax(axis=1).tolist() == only_names.predict(X[:5]).tolist()
    assert soft.tolist() == [[0, 0, 1, 0, 0, 0, 0, 0, 0, 0]] * 5
    assert len(started) == 2, "one for both, and one for predict"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (soft_graph([0.5, 0.5], name="certainty"), "not 'probability' in float32"),
        (soft_graph([0.5, 0.5], kind=TensorProto.DOUBLE), "not 'probability' in float32"),
        (soft_graph([0.5, 0.5], shape=(None, 3)), r"not \(N, 2\)"),
        (soft_graph([0.5, 0.5], shape=(7, 2)), r"not \(N, 2\)"),
        (soft_graph([0.5, 0.5], shape=(None,)), r"not \(N, 2\)"),
    ],
    ids=["another name", "another kind", "other classes", "a number of rows", "flat"],
)
def test_another_second_output_is_refused(data, why):
    with pytest.raises(ModelError, match=why):
        check_graph(data, n_features=2, n_classes=2, soft=True)


def test_probabilities_that_nobody_asked_for_are_refused():
    with pytest.raises(ModelError, match="2 outputs, not one"):
        check_graph(soft_graph([0.5, 0.5]), n_features=2, n_classes=2)


def test_a_third_output_is_refused():
    model = onnx.load_from_string(soft_graph([0.5, 0.5]))
    model.graph.output.append(helper.make_tensor_value_info("column", TensorProto.FLOAT, [None, 1]))
    with pytest.raises(ModelError, match="3 outputs"):
        check_graph(model.SerializeToString(), n_features=2, n_classes=2, soft=True)


@pytest.mark.parametrize(
    "numbers",
    [[0.9, 0.9], [-0.5, 1.5], [np.nan, 1.0], [np.inf, 0.0], [0.0, 0.0], [0.2, 0.3, 0.5]],
    ids=["too much", "negative", "NaN", "infinite", "nothing", "three classes"],
)
def test_numbers_that_are_no_probabilities_are_not_believed(numbers):
    data = soft_graph(numbers)
    check_graph(data, n_features=2, n_classes=2, soft=True)
    answers = run_soft_models([data, soft_graph([0.5, 0.5])], np.zeros((4, 2), np.float32), n_classes=2)
    assert isinstance(answers[0], str)
    assert not isinstance(answers[1], str), "the next model is run all the same"


def test_a_model_that_fails_is_named_by_its_reason():
    data = soft_graph([0.5, 0.5], n_features=3)
    (answer,) = probabilities_of_all([OnnxModel(data, 3, 2, soft=True)], np.zeros((4, 2), np.float32), 2)
    assert isinstance(answer, str)
