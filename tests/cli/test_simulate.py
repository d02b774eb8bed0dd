"""The commands that run everything on one machine."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from command_line import fedkt
from fedkt.cli import final_path, output
from fedkt.cli.catalogues import usual_algorithms
from fedkt.privacy import Gaussian, Release
from fedkt.privacy.accountant import price

REQUIRED = """
dataset algorithm model parties partitions subsets level seed accuracy balanced_accuracy label_accuracy epsilon
bytes_sent seconds versions
"""
QUICK = ("--model", "tree", "--parties", "3", "--subsets", "2")


def test_moments_at_level_l1_take_public_class_shares_of_all_classes_or_all_but_one(tmp_path):
    words = ("simulate", "digits", "--algorithm", "fedkt-moments", "--level", "L1", "--epsilon", "4", "--parties", "6")
    shares = ",".join(f"{label}=0.1" for label in range(9))
    done = fedkt(*words, "--class-shares", shares, "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert (found["privacy_statement"]["unit"], found["privacy_statement"]["mechanism"]) == ("party", "gaussian-sums")
    assert 3.99 < found["epsilon"] <= 4
    assert (found["votes"], found["party_rows"]) == ({}, {})
    assert found["alarms"][0].startswith("With 6 parties the noise that gives epsilon 4.000 hides most")
    for wrong, said in (("0=0.5,10=0.5", "'10' is none"), ("0=0.5", "have none"), ("half", "is like yes=0.24")):
        assert said in " ".join(fedkt(*words, "--class-shares", wrong, cwd=tmp_path).stderr.split())
    unused = fedkt("simulate", "digits", "--class-shares", "0=0.1,1=0.9", cwd=tmp_path)
    assert "--class-shares would do nothing" in unused.stderr


def test_simulate_prints_exactly_one_json_object(tmp_path):
    # In a process of its own, whose libraries might print something too.
    words = [sys.executable, "-c", "from fedkt.cli import main; main()", "simulate", "digits", *QUICK, "--json"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(REQUIRED.split()) <= set(found)
    assert found["algorithm"] == "fedkt-expert"
    assert done.stdout.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_simulate_prints_a_table_and_writes_a_report(tmp_path):
    done = fedkt("simulate", "digits", *QUICK, "--report", "seen.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "accuracy" in done.stdout
    page = (tmp_path / "seen.html").read_text()
    assert "<svg" in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_compare_keeps_results_and_prints_json(tmp_path):
    words = (
        "compare",
        "digits",
        "--algorithms",
        "fedkt,solo",
        "--seeds",
        "2",
        *QUICK,
        "--results",
        "r.jsonl",
    )
    first = json.loads(fedkt(*words, "--json", cwd=tmp_path).stdout)
    assert [each["algorithm"] for each in first["algorithms"]] == ["fedkt", "solo"]
    assert len(first["runs"]) == 4
    assert json.loads(fedkt(*words, "--json", cwd=tmp_path).stdout) == first
    score = {(each["algorithm"], each["seed"]): 100 * each["accuracy"] for each in first["runs"]}
    apart = [score["solo", seed] - score["fedkt", seed] for seed in (0, 1)]
    assert first["differences"]["less"] == "fedkt"
    assert first["differences"]["points"] == {"solo": pytest.approx(apart)}
    shown = fedkt(*words, cwd=tmp_path).stdout
    assert "Less fedkt on the same seeds" in shown
    assert f"{np.mean(apart):+.1f} ± {np.std(apart, ddof=1):.1f}" in shown
    assert "(0 of 2)" in shown


def test_compare_knows_what_simulate_does_by_default():
    assert usual_algorithms("L0") == "fedkt,fedkt-expert,fedkt-moments,solo,pate,centralised"
    assert usual_algorithms("L1") == "fedkt,fedkt-moments"
    assert usual_algorithms("L2") == "fedkt,fedkt-expert,fedkt-moments"
    for level, noise in (("L1", "--sigma"), ("L2", "--sigma")):
        for algorithm in usual_algorithms(level, ["mechanism"]).split(","):
            words = ("simulate", "digits", *QUICK, "--algorithm", algorithm, "--level", level, noise, "4", "--json")
            done = fedkt(*words, "--queries", "20")
            assert json.loads(done.stdout)["privacy_statement"]["mechanism"] == "gaussian", done.stderr


def test_what_is_named_twice_is_compared_once(tmp_path):
    words = ("compare", "digits", *QUICK, "--algorithms", "fedkt,fedkt", "--seeds", "1,1", "--json")
    done = json.loads(fedkt(*words, cwd=tmp_path).stdout)
    assert [each["seeds"] for each in done["algorithms"]] == [[1]]


def test_compare_fits_80_columns_and_draws_rounds(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    # A console keeps the width that the environment names when it is made.
    monkeypatch.setattr(output.stdout, "_width", 80)
    words = ("compare", "digits", "--model", "mlp", "--parties", "3", "--subsets", "2", "--epochs", "1", "--seeds", "2")
    chosen = ("--algorithms", "fedkt,centralised,fedavg,fedkt-prox", "--rounds", "2", "--bytes", "--curve", "curve.svg")
    done = fedkt(*words, *chosen, "--report", "seen.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    above = done.stdout.partition("Data:")[0].splitlines()
    assert max(len(line) for line in above if not line.startswith(("Attention: ", "With a final model"))) <= 80
    assert "…" not in done.stdout
    for whole in ("fedkt-prox", "centralised", "accuracy %", "ε", "n·M·(s+2·(r−1))", "M bytes of one model"):
        assert whole in done.stdout
    assert (tmp_path / "curve.svg").read_text().startswith("<?xml")
    assert "Round after round" in (tmp_path / "seen.html").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("simulate", "moon"), "no dataset 'moon'"),
        (("simulate", "digits", "--model", "oracle"), "no model 'oracle'"),
        (("simulate", "digits", "--level", "L1"), "L1 needs a noise"),
        (("simulate", "digits", "--sigma", "3"), "L0 adds no noise"),
        (("simulate", "digits", "--level", "L1", "--mechanism", "laplace"), "gamma is missing"),
        (("simulate", "digits", "--level", "L1", "--sigma", "3", "--gamma", "1"), "One noise at a time"),
        (("simulate", "digits", "--beta", "-1"), "beta"),
        (("simulate", "digits", "--epochs", "3", "--mu", "0.1"), "--mu, --epochs would do nothing"),
        (("simulate", "heart", "--beta", "0.3"), "--beta would do nothing"),
        (
            ("simulate", "digits", "--algorithm", "fedkt-expert-no-counts", "--subsets", "5"),
            "--subsets would do nothing",
        ),
        (
            ("simulate", "digits", "--algorithm", "solo", "--partitions", "3", "--teacher", "tree"),
            "--partitions, --teacher would do nothing: algorithm solo",
        ),
        (
            ("simulate", "digits", "--algorithm", "pate", "--final", "tree", "--queries", "20"),
            "--final, --queries would do nothing: algorithm pate",
        ),
        (("simulate", "digits", "--algorithm", "solo", "--voting", "expert"), "--voting would do nothing"),
        (("compare", "digits", "--algorithms", "solo", "--voting", "expert"), "--voting would do nothing"),
        (("simulate", "digits", "--voting", "loud"), "no voting 'loud'"),
        (
            ("simulate", "digits", "--algorithm", "fedkt-expert", "--voting", "consistent"),
            "'fedkt-expert' has the voting expert, and --voting says consistent",
        ),
        (("simulate", "digits", "--noise", "gaussian:3"), "L0 adds no noise"),
        (("simulate", "digits", "--level", "L1", "--noise", "gaussian"), "Write gaussian:SIGMA."),
        (("simulate", "digits", "--level", "L1", "--noise", "pink:3"), "no noise 'pink'"),
        (
            ("simulate", "digits", "--level", "L1", "--noise", "gaussian:3", "--mechanism", "gaussian", "--sigma", "3"),
            "--noise gaussian:3 names the noise and its scale: leave --mechanism, --sigma out",
        ),
        (("simulate", "digits", "--level", "L1", "--noise", "gaussian:3", "--epsilon", "2"), "not both"),
        (
            ("simulate", "digits", "--level", "L2", "--gamma", "1", "--algorithm", "fedkt-expert", "--diagnostic"),
            "votes of",
        ),
        (("compare", "digits", "--seeds", "7-3"), "--seeds"),
        (("simulate", "digits", "--parties", "5000"), "5000"),
        (("simulate", "digits", "--jobs", "0"), "--jobs"),
        (("compare", "digits", "--seeds", "some"), "--seeds"),
        (("compare", "digits", "--algorithms", ","), "nothing to compare"),
        (("compare", "digits", "--algorithms", "fedavg", "--rounds", "2", "--curve", "a.gif"), ".png, .svg or .pdf"),
        (("compare", "digits", "--algorithms", "fedkt,solo", "--curve", "a.svg"), "a method of several rounds"),
    ],
)
def test_a_choice_that_cannot_work_is_one_sentence_and_exit_code_1(words, said):
    done = fedkt(*words)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("level", "noise"),
    [
        ("L1", ("--mechanism", "laplace", "--gamma", "0.5")),
        ("L2", ("--mechanism", "laplace", "--gamma", "0.5")),
        ("L1", ("--sigma", "2")),
        ("L2", ("--threshold", "1", "--sigma-test", "2", "--sigma", "2", "--answers", "7")),
    ],
)
def test_the_data_dependent_figure_is_printed_as_confidential_and_stored_nowhere(tmp_path, level, noise):
    words = (
        "simulate",
        "digits",
        *QUICK,
        "--level",
        level,
        *noise,
        "--queries",
        "9",
    )
    done = fedkt(*words, "--diagnostic", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "confidential: depends on the private votes, do not publish" in done.stderr
    assert json.loads(done.stdout)["epsilon"] > 0
    plain = fedkt(*words, "--json", cwd=tmp_path)
    assert "confidential" not in plain.stderr
    assert set(json.loads(plain.stdout)) == set(json.loads(done.stdout))


def test_at_L1_neither_the_report_nor_its_page_tells_of_a_single_party(tmp_path):
    # Of twenty parties drawn from Dirichlet(0.5), some have fewer than 30 rows.
    words = ("simulate", "digits", "--model", "tree", "--algorithm", "fedkt", "--parties", "20", "--subsets", "30")
    noise = ("--partitions", "1", "--level", "L1", "--sigma", "3", "--queries", "20")
    bare = json.loads(fedkt(*words, "--json", cwd=tmp_path).stdout)
    assert any("rows, fewer than 30 subsets" in note for note in bare["notes"])
    hidden = json.loads(fedkt(*words, *noise, "--json", "--bytes", "--report", "seen.html", cwd=tmp_path).stdout)
    assert not any("rows, fewer than" in note for note in hidden["notes"])
    assert "party 1" not in " ".join(hidden["notes"])
    assert (hidden["party_rows"], hidden["party_accuracy"], hidden["votes"], hidden["history"]) == ({}, {}, {}, [])
    page = (tmp_path / "seen.html").read_text()
    assert "party 1" not in page
    # What the researcher measures of the whole run stays.
    assert hidden["rows"] == bare["rows"]
    assert None not in (hidden["accuracy"], hidden["label_accuracy"], hidden["bytes_sent"])


@pytest.mark.parametrize(
    ("algorithm", "level", "release"),
    [
        # Three partitions of ten queries are thirty labels that one record moves.
        ("fedkt", "L2", {"queries": 30, "voters": 4, "unit": "record"}),
        ("fedkt-expert", "L2", {"queries": 30, "voters": 4, "unit": "record"}),
        ("fedkt", "L1", {"queries": 10, "voters": 7, "unit": "party", "abstentions": True}),
    ],
)
def test_an_epsilon_that_is_asked_for_is_kept_and_nearly_used_up(tmp_path, algorithm, level, release):
    done = fedkt(
        *("simulate", "digits", "--algorithm", algorithm, "--level", level, "--epsilon", "2", "--queries", "10"),
        *("--model", "tree", "--parties", "7", "--partitions", "3", "--subsets", "4", "--json"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)["privacy_statement"]
    votes = price(Release(Gaussian(said["scale"]["sigma"]), classes=10, **release), 1e-5).epsilon
    counted = algorithm == "fedkt-expert"
    # Class counts have their part of it too.
    assert (1.6 if counted else 1.9) < votes <= (1.99 if counted else 2.0)
    assert 1.9 < said["epsilon"] <= 2.0


def test_an_error_is_an_object_where_a_result_would_be_one(tmp_path):
    done = fedkt("simulate", "adult", "--data-dir", str(tmp_path / "nowhere"), "--json")
    said = json.loads(done.stdout)
    assert (done.returncode, said["exit_code"], said["kind"]) == (1, 1, "DataError")
    assert said["error"] in " ".join(done.stderr.split("error: ")[1].split("\n"))
    assert "nowhere" in said["error"]


def test_missing_data_says_where_it_was_looked_for(tmp_path):
    done = fedkt("simulate", "adult", "--data-dir", str(tmp_path / "nowhere"))
    assert done.returncode == 1
    assert "nowhere" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("verb", ["demo", "simulate", "compare", "datasets", "party", "server", "inspect", "predict"])
def test_every_verb_shows_an_example_in_its_help(verb):
    done = fedkt(verb, "--help")
    assert done.returncode == 0
    assert f"fedkt {verb}" in done.stdout


@pytest.mark.parametrize(("number", "left_with"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_and_a_request_to_end_are_answered_in_words_and_with_their_code(tmp_path, number, left_with):
    code = "from fedkt.cli import main; main()"
    compare = ("compare", "digits", *QUICK, "--seeds", "1000", "--results", str(tmp_path / "r.jsonl"))
    words = [sys.executable, "-c", code, *compare]
    running = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "r.jsonl").exists():
        assert running.poll() is None
        time.sleep(0.02)
    running.send_signal(number)
    _, err = running.communicate(timeout=60)
    assert running.returncode == left_with
    assert "stopped" in err
    assert "Traceback" not in err


def test_ctrl_c_while_a_model_is_trained_is_no_fault_of_the_model(monkeypatch):
    from sklearn.tree import DecisionTreeClassifier

    from fedkt.cli import stop

    monkeypatch.setattr(DecisionTreeClassifier, "fit", lambda *_, **__: stop(2, None))
    done = fedkt("simulate", "digits", *QUICK)
    assert (done.returncode, "could not be trained" in done.stderr) == (130, False)


def test_a_file_that_cannot_be_written_is_named_and_not_its_temporary_name():
    assert final_path("/proc/.pred.csv.1l1xx8s8.part") == "/proc/pred.csv"
    assert final_path(".plan.toml.abc.part") == "plan.toml"
    assert final_path("/data/x.csv") == "/data/x.csv"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--algorithm", "solo"), "--cache would do nothing: no students are kept of solo"),
        (("--voting", "expert", "--bytes"), "--bytes packs the students themselves"),
        (("--voting", "expert"), "Others can write into"),
    ],
)
def test_a_cache_that_would_do_nothing_or_is_not_ones_own_is_refused(tmp_path, words, reason):
    tmp_path.chmod(0o777)
    done = fedkt("simulate", "digits", *QUICK[:4], *words, "--cache", str(tmp_path), "--json")
    assert done.returncode == 1
    assert reason in " ".join(done.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_datasets_are_listed():
    assert {"digits", "adult", "adult-table", "cod-rna", "heart"} <= set(json.loads(fedkt("datasets", "--json").stdout))


def test_a_simulation_whose_noise_drowns_the_votes_says_so_before_any_figure(tmp_path):
    done = fedkt("simulate", "digits", *QUICK, "--level", "L2", "--noise", "gaussian:20", cwd=tmp_path)
    assert done.stdout.startswith("Attention: fedkt: The noise drowns the votes: where all 2 teachers of a party agree")
    assert done.stdout.count("The noise drowns the votes") == 1


def test_simulate_and_compare_show_ranking_and_probabilities_beside_accuracy(tmp_path):
    one = fedkt("simulate", "digits", *QUICK, cwd=tmp_path).stdout
    several = ("compare", "digits", *QUICK, "--algorithms", "fedkt,solo", "--seeds", "2", "--results", "runs.jsonl")
    compared = fedkt(*several, cwd=tmp_path)
    words = json.loads(fedkt(*several, "--json", cwd=tmp_path).stdout)
    for text in (one, compared.stdout):
        head = text.partition("────")[0]
        for column in ("accuracy", "balanced", "AUC", "off"):
            assert column in head
    assert "±: the standard deviation over 2 seeds, which is no interval of 95 %" in compared.stdout
    assert "95 % between" in one
    assert set(words["differences"]) == {"less", "points", "balanced_accuracy", "auc", "calibration_error"}
    (auc,) = (each["auc"] for each in words["algorithms"] if each["algorithm"] == "fedkt")
    assert f"{100 * auc[0]:.1f} ± {100 * auc[1]:.1f}" in compared.stdout
