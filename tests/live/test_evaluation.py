"""`fedkt evaluate`: a final model on labelled rows, beside another one, whatever these files hold."""

import csv
import json
import shutil

import numpy as np
import onnx
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from fedkt.errors import ConfigurationError, DataError, ModelError
from fedkt.live.final_file import read_final
from fedkt.live.predictions import predict_file
from live_federation import NAMES, build, fedkt, party, server


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluation")
    build(folder)
    for name in NAMES:
        party(folder, name)
    server(folder)
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return tmp_path


def evaluated(folder, *more, rows="test.csv"):
    return json.loads(fedkt("evaluate", folder / "result" / "final.onnx", folder / rows, "--json", *more).out)


def lines_of(folder):
    return list(csv.reader((folder / "test.csv").read_text().splitlines()))


def with_lines(folder, lines):
    with (folder / "rows.csv").open("w", newline="") as file:
        csv.writer(file).writerows(lines)


def final_with(folder, name, *, change=None, nodes=()):
    """A copy of the final model whose card, or whose graph, says something else."""
    proto = onnx.load(folder / "result" / "final.onnx")
    (note,) = [each for each in proto.metadata_props if each.key == "fedkt"]
    card = json.loads(note.value)
    card.update(change or {})
    note.value = json.dumps(card)
    for output, operator, inputs, table in nodes:
        (node,) = [each for each in proto.graph.node if output in each.output]
        node.output[list(node.output).index(output)] = f"own_{output}"
        options = {"axis": 1} if operator == "Gather" else {}
        proto.graph.node.append(onnx.helper.make_node(operator, inputs, [output], **options))
        proto.graph.initializer.append(onnx.numpy_helper.from_array(table, f"table_{output}"))
    (folder / name).write_bytes(proto.SerializeToString())
    return folder / name


def test_figures_are_those_of_scikit_learn_on_what_predict_says(finished):
    said = evaluated(finished)["quality"]
    final = read_final(finished / "result" / "final.onnx")
    predictions = predict_file(final, finished / "test.csv", probabilities=True)
    truth = [line[-1] for line in lines_of(finished)[1:]]
    share = np.array(predictions.probabilities["benign"])
    benign = np.array(truth) == "benign"
    assert said["accuracy"]["value"] == pytest.approx(np.mean(np.array(predictions.labels) == np.array(truth)))
    assert said["auc"]["value"] == pytest.approx(roc_auc_score(benign, share))
    least = np.finfo(np.float32).eps
    assert said["log_loss"] == pytest.approx(log_loss(benign, np.clip(share, least, 1 - least)), abs=1e-5)


def test_a_baseline_that_lists_the_same_classes_in_another_order_is_the_same_model(folder):
    turned = final_with(
        folder,
        "turned.onnx",
        change={"classes": ["benign", "malignant"]},
        nodes=[
            ("label", "Sub", ["table_label", "own_label"], np.array([1], np.int64)),
            ("probability", "Gather", ["own_probability", "table_probability"], np.array([1, 0], np.int64)),
        ],
    )
    said = evaluated(folder, "--baseline", turned)
    assert said["baseline"]["quality"] == said["quality"]
    assert said["baseline"]["difference"]["value"] == 0


@pytest.mark.parametrize("classes", [["benign", "other"], ["malignant", "benign", "other"]])
def test_a_baseline_for_other_classes_is_refused(folder, classes):
    other = final_with(folder, "other.onnx", change={"classes": classes})
    # Of three classes the graph is refused already.
    with pytest.raises((ConfigurationError, ModelError), match=r"tells other classes apart|not \(N, 3\)"):
        evaluated(folder, "--baseline", other)


@pytest.mark.parametrize("classes", [["benign", "benign"], ["1", 1]])
def test_a_final_file_with_the_same_class_twice_is_refused(folder, classes):
    twice = final_with(folder, "twice.onnx", change={"classes": classes})
    for command in (["evaluate", twice, folder / "test.csv"], ["predict", twice, folder / "public.csv"]):
        with pytest.raises(ModelError, match=r"at 'classes'.*the same class twice"):
            fedkt(*command)


@pytest.mark.parametrize("label", ["", "nan", "unknown", "Benign"])
def test_a_row_whose_class_is_not_known_is_named(folder, label):
    lines = lines_of(folder)
    with_lines(folder, [*lines[:4], [*lines[4][:-1], label], *lines[5:]])
    with pytest.raises(DataError, match=f"line 5: the label '{label}' in column 'diagnosis' is not one of the agreed"):
        evaluated(folder, rows="rows.csv")
    assert f"No accuracy: {folder / 'rows.csv'}, line 5" in " ".join(
        fedkt("predict", folder / "result" / "final.onnx", folder / "rows.csv").err.replace("\n", " ").split()
    )


def test_rows_of_one_class_a_single_row_and_none(folder):
    lines = lines_of(folder)
    one = [line for line in lines[1:] if line[-1] == "benign"]
    with_lines(folder, [lines[0], *one])
    said = evaluated(folder, rows="rows.csv")
    assert said["quality"]["auc"] is None
    assert said["verdicts"][0].startswith(f"All {len(one)} rows are of class 'benign'")
    with_lines(folder, [lines[0], lines[1]])
    assert evaluated(folder, rows="rows.csv")["verdicts"][0].startswith("This is a single row, of class")
    with_lines(folder, [lines[0]])
    with pytest.raises(DataError, match="no rows"):
        evaluated(folder, rows="rows.csv")
    with_lines(folder, [line[:-1] for line in lines])
    with pytest.raises(DataError, match="no label column 'diagnosis'"):
        evaluated(folder, rows="rows.csv")


def test_bundles_are_looked_into_beside_the_final_model(finished):
    said = evaluated(finished, "--bundles", finished / "inbox", "--plan", finished / "plan.toml")
    names = [each["name"].partition(",")[0] for each in said["students"]]
    assert sorted(set(names)) == sorted(NAMES)
    with pytest.raises(ConfigurationError, match="--bundles needs the plan"):
        evaluated(finished, "--bundles", finished / "inbox")
    with pytest.raises(ConfigurationError, match="--plan is for reading bundles"):
        evaluated(finished, "--plan", finished / "plan.toml")
