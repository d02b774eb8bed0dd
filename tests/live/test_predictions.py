"""Probabilities of a final model: in its file, in what is predicted, and against thresholds."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import onnx
import pytest
from sklearn.linear_model import LogisticRegression

from fedkt.data.columns import Table
from fedkt.errors import ConfigurationError, DataError, ModelError
from fedkt.live.final_file import read_final, write_final
from fedkt.live.predictions import Predictions, labels_by_thresholds, shortest_decimals, to_csv
from fedkt.models.base import fit_model
from fedkt.models.exchange import to_onnx, to_soft_onnx
from fedkt.models.prediction import predict_all, probabilities_of_all
from fedkt.plan import read_plan
from fedkt.privacy import statement
from live_federation import build, fedkt


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with final models that give probabilities (soft.onnx) and that do not (hard.onnx), and the estimator."""
    folder = tmp_path_factory.mktemp("finals")
    build(folder)
    plan = read_plan(folder / "plan.toml")
    table = plan.columns.read(folder / "test.csv")
    X, y = plan.columns.encode(table), plan.columns.labels(table, plan.classes)
    model = fit_model(LogisticRegression(), X, y, rng=np.random.default_rng(0))
    options = {"n_features": X.shape[1], "n_classes": 2, "check_rows": X}
    soft, hard = to_soft_onnx(model, **options), to_onnx(model, **options)
    assert (soft.soft, hard.soft) == (True, False)
    promise = statement("L0", None)
    (folder / "soft.onnx").write_bytes(write_final(soft, plan, promise))
    (folder / "hard.onnx").write_bytes(write_final(hard, plan, promise))
    # A card that claims what the graph has not, and a graph that has what the card does not claim.
    (folder / "boast.onnx").write_bytes(write_final(replace(hard, soft=True), plan, promise))
    (folder / "hush.onnx").write_bytes(write_final(replace(soft, soft=False), plan, promise))
    return folder, model.estimator, X


def predicted(folder, *more, model="soft.onnx"):
    return json.loads(fedkt("predict", folder / model, folder / "test.csv", "--json", *more).out)


def test_probabilities_come_out_in_a_column_per_class_named_by_it(made):
    folder, estimator, X = made
    rows = list(
        csv.DictReader(io.StringIO(fedkt("predict", folder / "soft.onnx", folder / "test.csv", "--probabilities").out))
    )
    assert list(rows[0])[-3:] == ["prediction", "probability_malignant", "probability_benign"]
    native = estimator.predict_proba(X)
    for place, name in enumerate(("malignant", "benign")):
        np.testing.assert_allclose([float(row[f"probability_{name}"]) for row in rows], native[:, place], atol=1e-5)
    listed = predicted(folder, "--probabilities")
    np.testing.assert_allclose(listed["probabilities"]["benign"], native[:, 1], atol=1e-5)
    assert "probabilities" not in predicted(folder)
    assert listed["predictions"] == predicted(folder)["predictions"]


def test_probabilities_that_differ_are_written_so_that_they_differ():
    """Next to 0 and to 1 six decimals are no order any more."""
    column = np.array([1e-20, 2e-20, 0.3, 0.7, 1 - 2**-23, 1 - 2**-24], np.float32)
    written = shortest_decimals(column)
    assert np.array_equal(np.array(written).astype(np.float32), column)
    assert written[:4] == [1e-20, 2e-20, 0.3, 0.7]


def test_a_row_gets_a_class_where_it_is_as_probable_as_its_threshold_and_of_two_classes_the_other_below(made):
    folder, estimator, X = made
    share = estimator.predict_proba(X)[:, 0]
    for least in (0.05, 0.9):
        said = predicted(folder, "--threshold", f"malignant={least}")["predictions"]
        assert said == ["malignant" if each >= least else "benign" for each in share]


def test_of_several_thresholds_the_one_exceeded_by_the_largest_ratio_decides_and_below_all_the_models_own_label():
    shares = np.array([[0.5, 0.3, 0.2], [0.2, 0.7, 0.1], [0.45, 0.15, 0.4], [0.6, 0.1, 0.3]], np.float32)
    own = np.array([0, 1, 2, 0])
    # Row 0: 0.5/0.7 < 1 and 0.3/0.1 = 3. Row 1: 0.2/0.7 and 7. Row 2: 1.5 for class 1. Row 3: exactly at 0.1.
    assert labels_by_thresholds(own, shares, {0: 0.7, 1: 0.1}).tolist() == [1, 1, 1, 1]
    # 0.5/0.25 = 2 against 0.3/0.2 = 1.5; 3.5; 0.45/0.25 = 1.8; 2.4.
    assert labels_by_thresholds(own, shares, {0: 0.25, 1: 0.2}).tolist() == [0, 1, 0, 0]
    # Nobody reaches 0.9: class 0 is not given, the likeliest of the others is; own labels without a threshold stay.
    assert labels_by_thresholds(own, shares, {0: 0.9}).tolist() == [1, 1, 2, 2]
    # Every class has a threshold and none is reached: the model's own label.
    assert labels_by_thresholds(own, shares, dict.fromkeys(range(3), 0.95)).tolist() == [0, 1, 2, 0]
    # 0.7 and 0.6 as float32 are a little less and a little more.
    assert labels_by_thresholds(own, shares, {1: 0.7}).tolist() == [0, 1, 2, 0]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--threshold", "malignant"], "takes CLASS=P"),
        (["--threshold", "malignant=much"], "takes CLASS=P"),
        (["--threshold", "=0.5"], "takes CLASS=P"),
        (["--threshold", "healthy=0.5"], "knows no class 'healthy'.*malignant, benign"),
        (["--threshold", "malignant=0"], "above 0 and at most 1"),
        (["--threshold", "malignant=nan"], "above 0 and at most 1"),
        (["--threshold", "malignant=1.5"], "above 0 and at most 1"),
        (["--threshold", "malignant=0.5", "--threshold", "malignant=0.6"], "given twice"),
    ],
)
def test_a_threshold_that_means_nothing_is_refused_in_words(made, words, reason):
    with pytest.raises(ConfigurationError, match=reason):
        predicted(made[0], *words)


@pytest.mark.parametrize("words", [["--probabilities"], ["--threshold", "malignant=0.5"]])
def test_a_model_that_only_names_a_class_says_so_instead_of_making_probabilities_up(made, words):
    with pytest.raises(ConfigurationError, match="only names a class"):
        predicted(made[0], *words, model="hard.onnx")


def test_inspect_says_whether_there_are_probabilities(made):
    assert "the probability of each class" in fedkt("inspect", made[0] / "soft.onnx").out
    assert "no probabilities" in fedkt("inspect", made[0] / "hard.onnx").out


@pytest.mark.parametrize(
    ("file", "words"),
    [("boast.onnx", "says that it gives probabilities, but only names a class"), ("hush.onnx", "does not say so")],
)
def test_a_final_file_whose_card_and_graph_disagree_about_probabilities_is_refused(made, file, words):
    with pytest.raises(ModelError, match=words):
        read_final(made[0] / file)
    assert words in fedkt("inspect", made[0] / file).out


def test_a_final_file_of_a_graph_with_a_third_output_is_refused(made, tmp_path):
    proto = onnx.load(made[0] / "soft.onnx")
    proto.graph.output.append(onnx.helper.make_tensor_value_info("more", 1, [None, 2]))
    (tmp_path / "final.onnx").write_bytes(proto.SerializeToString())
    with pytest.raises(ModelError, match="3 outputs"):
        read_final(tmp_path / "final.onnx")


def test_a_final_models_label_may_be_another_class_than_its_likeliest_and_a_students_may_not(made, tmp_path):
    """The labels of the graph are turned round: the final model is heard, the same graph as a student is not."""
    folder, estimator, X = made
    proto = onnx.load(folder / "soft.onnx")
    (node,) = [each for each in proto.graph.node if "label" in each.output]
    node.output[list(node.output).index("label")] = "turned"
    one = onnx.helper.make_tensor("one", 7, [1], [1])
    proto.graph.initializer.append(one)
    proto.graph.node.append(onnx.helper.make_node("Sub", ["one", "turned"], ["label"]))
    (tmp_path / "final.onnx").write_bytes(proto.SerializeToString())
    final = read_final(tmp_path / "final.onnx").model
    (labels,) = predict_all([final], X)
    assert (labels == 1 - estimator.predict(X)).all()
    (shares,) = probabilities_of_all([final], X, 2)
    np.testing.assert_allclose(shares, estimator.predict_proba(X), atol=1e-5)
    said = json.loads(fedkt("predict", tmp_path / "final.onnx", folder / "test.csv", "--probabilities", "--json").out)
    assert said["predictions"] == [("malignant", "benign")[each] for each in labels]
    (refused,) = probabilities_of_all([replace(final, free_label=False)], X, 2)
    assert "finds" in refused


def test_columns_of_probabilities_do_not_overwrite_what_is_there_and_cannot_be_formulas():
    table = Table({"probability_yes": np.zeros(1)}, "new.csv")
    shares = {"yes": [0.25], "no": [0.75]}
    with pytest.raises(DataError, match="already has a column 'probability_yes'"):
        to_csv(Predictions(table, ("no",), None, (), shares))
    written = to_csv(
        Predictions(Table({"a": np.zeros(1)}, "new.csv"), ("=no",), None, (), {"=1+1": [0.25], "=no": [0.75]})
    )
    assert written == "a,prediction,probability_=1+1,probability_=no\n0.0,'=no,0.25,0.75\n"
