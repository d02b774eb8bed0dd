"""Every command that says a class is missed says which one moves labels."""

import csv
import io

import pytest

from fedkt.cli import grids, output, quality, tables
from fedkt.cli.tables import print_reports
from fedkt.quality import measure_quality
from fedkt.report import NO_PRIVACY, Report
from live_federation import NAMES, build, fedkt, party, server

OTHER = {"malignant": "benign", "benign": "malignant"}


def turned(path, to):
    """The same rows, each called what it is not."""
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    with to.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows({**line, "diagnosis": OTHER[line["diagnosis"]]} for line in lines)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A federation in which one of three hospitals confuses its classes, and its server's final model."""
    folder = tmp_path_factory.mktemp("advice")
    build(folder)
    turned(folder / "north.csv", folder / "north.csv.turned")
    (folder / "north.csv.turned").replace(folder / "north.csv")
    turned(folder / "test.csv", folder / "turned.csv")
    for name in NAMES:
        party(folder, name, "--hold-out", "0.3")
    return folder


def test_server_evaluate_and_party_name_the_command_with_the_file_it_is_about(folder):
    final = folder / "result" / "final.onnx"
    served = server(folder, "--test", folder / "turned.csv").out
    evaluated = fedkt("evaluate", final, folder / "turned.csv").out
    judged = party(folder, "north", "--evaluate", final).out
    for text in (served, evaluated, judged):
        assert "missed more often than found" in text
        assert f"fedkt predict {final} new.csv --threshold " in text
    card = (folder / "result" / "model-card.md").read_text(encoding="utf-8")
    assert "fedkt predict final.onnx new.csv --threshold " in card
    assert "--threshold" not in fedkt("evaluate", final, folder / "test.csv").out


def test_simulate_names_it_for_final_models_that_are_kept(monkeypatch):
    screen = output.Screen(file=io.StringIO(), width=80)
    for module in (grids, quality, tables):
        monkeypatch.setattr(module, "stdout", screen)
    missed = measure_quality([0] * 70 + [1] * 30, [0] * 95 + [1] * 5, ["no", "yes"], [[0.6, 0.4]] * 100)
    facts = {"partitions": 1, "subsets": 1, "label_accuracy": None, "epsilon": None, "bytes_sent": None, "seed": 0}
    facts |= {"seconds": 1.0, "cpu_seconds": 1.0, "privacy": NO_PRIVACY, "versions": {}, "level": "L0", "parties": 2}
    facts |= {"accuracy": 0.75, "balanced_accuracy": 0.58, "quality": missed.as_dict()}
    print_reports([Report(dataset="wards", algorithm="fedkt", model="tree", **facts)])
    assert "fedkt predict final.onnx new.csv --threshold yes=0.3 names 'yes'" in screen.file.getvalue()
