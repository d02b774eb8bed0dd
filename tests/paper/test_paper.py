"""Experiments, their tables beside the paper's numbers, and the verbs about them, on a dataset that is always there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedkt.data import DATASETS
from fedkt.errors import ConfigurationError, DataError
from fedkt.lab.setting import fingerprint
from fedkt.report import Report
from paper.__main__ import app
from paper.comparison import comparison_table, result_in_words, tables_beside, verdicts_in_words
from paper.experiment import read_experiment, read_experiments
from paper.markdown import markdown
from paper.outcome import BETTER, WITHIN, WORSE, Cell, ResultTable, finished_runs, read_expected, table_of, verdicts
from paper.page import private_section, write_paper_page
from paper.private_federations import PartyNoise, ServerNoise
from paper.private_levels import LEVELS
from paper.private_study import QUICK, group_runs, paper_settings
from paper.work import result_tables
from paper.workplace import Workplace

REPOSITORY = Path(__file__).parents[2]
EXPERIMENT = """
title = "Number of subsets t"
where = "the appendix"
across = "subsets"
expected = "subsets"
picture = "lines"
seeds = 2

[[runs]]
dataset = "digits"
model = "tree"
parties = 3
subsets = [1, 2]
quick = { subsets = [2] }
"""
EXPECTED = """
[subsets.digits."1"]
accuracy = 50.0
spread = 1.0
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "subsets.toml").write_text(EXPERIMENT)
    (tmp_path / "expected.toml").write_text(EXPECTED)
    (tmp_path / "epsilon_rows.csv").write_text((REPOSITORY / "paper" / "epsilon_rows.csv").read_text())
    return tmp_path


def report(accuracy: float, seed: int) -> Report:
    return Report(
        **{
            **dict.fromkeys(("balanced_accuracy", "label_accuracy", "epsilon", "delta", "bytes_sent", "cpu_seconds")),
            "dataset": "digits",
            "algorithm": "fedkt",
            "model": "tree",
            "parties": 3,
            "partitions": 2,
            "subsets": 1,
            "level": "L0",
            "seed": seed,
            "accuracy": accuracy,
            "privacy": "none",
            "privacy_statement": {},
            "seconds": 1.0,
            "versions": {},
        }
    )


def known(folder: Path, accuracies: dict[str, list[float]]) -> dict[str, Report]:
    experiment = read_experiments(folder)["subsets"]
    found = {}
    for run in experiment.runs():
        values = accuracies.get(run.column, [])
        if run.setting.seed < len(values):
            found[fingerprint(run.setting)] = report(values[run.setting.seed], run.setting.seed)
    return found


def test_an_experiment_sweeps_its_lists_over_its_seeds(folder):
    experiment = read_experiments(folder)["subsets"]
    assert [(run.setting.subsets, run.setting.seed) for run in experiment.runs()] == [(1, 0), (2, 0), (1, 1), (2, 1)]
    assert len(experiment.runs(seeds=5)) == 10
    assert [(run.row, run.column, run.setting.seed) for run in experiment.runs(quick=True)] == [("digits", "2", 0)]


def test_a_block_may_name_its_column(folder):
    path = folder / "experiments" / "subsets.toml"
    path.write_text(EXPERIMENT.replace("subsets = [1, 2]", 'partition = "even"\ncolumn = "even"'))
    assert {run.column for run in read_experiment(path).runs()} == {"even"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "Number of subsets t"', "", "no 'title'"),
        ('across = "subsets"', 'across = "colour"', "no field of a setting"),
        ("parties = 3", "partys = 3", "'partys' in a block"),
        ('picture = "lines"', 'picture = "cake"', "picture = 'cake'"),
        ('dataset = "digits"', 'dataset = "nowhere"', "no dataset 'nowhere'"),
        ('dataset = "digits"', "", "names no dataset"),
        ("[[runs]]", "[runs]", r"begin with \[\[runs\]\]"),
        ("seeds = 2", "seeds = ", "not an experiment"),
        ("quick = {", "quick = { colour = 1,", "'colour' in a block"),
        ('where = "the appendix"', 'wher = "x"', "no 'wher' in an experiment"),
    ],
)
def test_a_faulty_experiment_is_refused_with_its_name_and_what_is_wrong(folder, old, new, message):
    path = folder / "experiments" / "subsets.toml"
    path.write_text(EXPERIMENT.replace(old, new, 1))
    with pytest.raises(ConfigurationError, match=message) as refused:
        read_experiment(path)
    assert "subsets.toml" in str(refused.value)


def test_a_folder_without_experiments_says_what_to_do(tmp_path):
    with pytest.raises(ConfigurationError, match="--folder"):
        read_experiments(tmp_path)
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "a.toml").write_text(EXPERIMENT)
    with pytest.raises(DataError, match="the numbers that the paper prints"):
        result_tables(Workplace(tmp_path))


@pytest.mark.parametrize(
    ("accuracies", "verdict", "said"),
    [
        ([0.49, 0.52], WITHIN, "50.5 ± 2.1 (50.0 ± 1.0; +0.2 sd)"),
        ([0.70, 0.71], BETTER, "70.5 ± 0.7 (50.0 ± 1.0; +29.0 sd)"),
        ([0.30, 0.31], WORSE, "30.5 ± 0.7 (50.0 ± 1.0; -27.6 sd)"),
        ([0.49], "", "49.0 [1 of 2] (50.0 ± 1.0; -1.0 points)"),
        ([], "", "– (50.0 ± 1.0)"),
    ],
    ids=["within", "better", "worse", "one seed", "no run"],
)
def test_a_cell_says_how_far_ours_lies_from_the_papers(folder, accuracies, verdict, said):
    experiment = read_experiments(folder)["subsets"]
    expected = {"subsets": {"digits": {"1": {"accuracy": 50.0, "spread": 1.0}}}}
    table = table_of(experiment, known(folder, {"1": accuracies, "2": [0.8, 0.9]}), expected)
    assert table.cells["digits", "1"].verdict == verdict
    text = markdown(comparison_table(table))
    assert said in text
    assert "| 85.0 ± 7.1 |" in text, "what the paper does not print stands alone"
    counts = verdicts([table])
    assert sum(map(len, counts.values())) == (1 if verdict else 0)
    if verdict in (WORSE, BETTER):
        assert f"{verdict.capitalize()} than printed" in verdicts_in_words([table])
    explained = replace(
        table, experiment=replace(experiment, reasons={"digits": "Few rows.", "digits,2": "Not this one."})
    )
    assert ("Few rows." in verdicts_in_words([explained])) == (verdict == WORSE)
    assert "Not this one." not in verdicts_in_words([explained])


def test_a_spread_of_zero_decides_nothing():
    assert Cell("a", "b", (report(0.5, 0), report(0.5, 1)), 2, paper=40.0).verdict == ""


def test_runs_are_made_once_whoever_needs_them_and_resume(folder, monkeypatch):
    monkeypatch.setattr("paper.experiment.why_unavailable", lambda name, _: None if name == "digits" else "not here")
    runner = CliRunner()
    quick = runner.invoke(app, ["run", "subsets", "--quick", "--folder", str(folder), "--json"])
    assert quick.exit_code == 0, quick.output
    assert json.loads(quick.stdout)[0]["made"] == 1
    kept = folder / "results" / "quick" / "subsets.jsonl"
    before = kept.read_text()
    twin = replace(read_experiments(folder)["subsets"], name="twin")
    (folder / "experiments" / f"{twin.name}.toml").write_text(EXPERIMENT)
    again = runner.invoke(app, ["run", "all", "--quick", "--folder", str(folder)])
    assert again.exit_code == 0, again.output
    assert kept.read_text() == before
    assert not (folder / "results" / "quick" / "twin.jsonl").exists()
    assert "private: cod-rna was left out: not here" in again.stderr
    listed = runner.invoke(app, ["list", "--quick", "--folder", str(folder), "--json"])
    assert [(each["name"], each["made"]) for each in json.loads(listed.stdout)["experiments"]] == [
        ("subsets", 1),
        ("twin", 1),
        ("private", 0),
        ("private-curve", 0),
    ]
    assert finished_runs(folder / "results") == {}, "rehearsals are no results"


def test_a_run_that_cannot_be_had_does_not_keep_the_others_waiting(folder):
    text = EXPERIMENT.replace("subsets = [1, 2]", 'partition = "balanced"\nparties = [3, 1000]\nsubsets = 2')
    (folder / "experiments" / "subsets.toml").write_text(text.replace("parties = 3\n", "").replace("quick", "# quick"))
    done = CliRunner().invoke(app, ["run", "subsets", "--seeds", "1", "--folder", str(folder), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)[0]["made"] == 1
    assert "subsets: fedkt on digits, seed 0 was left out" in done.stderr
    assert "too few for 1000 parties" in done.stderr


def test_an_unknown_name_is_refused_with_those_there_are(folder):
    refused = CliRunner().invoke(app, ["run", "nothing", "--folder", str(folder)])
    assert isinstance(refused.exception, ConfigurationError)
    assert "all, subsets, private" in str(refused.exception)


def test_the_page_is_one_file_with_the_tables_and_the_picture(folder):
    pytest.importorskip("matplotlib")
    experiment = read_experiments(folder)["subsets"]
    expected = {"subsets": {"digits": {"1": {"accuracy": 50.0}}}}
    table = table_of(experiment, known(folder, {"1": [0.49, 0.52], "2": [0.8, 0.9]}), expected)
    empty = table_of(replace(experiment, title="Not yet"), {}, expected)
    private = private_section(REPOSITORY / "paper", REPOSITORY / "paper" / "results")
    write_paper_page(folder / "page.html", [table, empty], private)
    page = (folder / "page.html").read_text()
    assert page.count("<svg") == 2
    assert "50.5 ± 2.1" in page
    assert 'class="within"' in page
    assert "Not run yet: Not yet." in page
    assert "<script" not in page
    assert "src=" not in page


def test_the_repositorys_experiments_can_be_read_and_name_what_the_paper_prints():
    experiments, expected = read_experiments(REPOSITORY / "paper"), read_expected(REPOSITORY / "paper")
    for experiment in experiments.values():
        cells = table_of(experiment, {}, expected).cells
        assert experiment.expected == "" or any(cell.paper is not None for cell in cells.values()), experiment.name
        assert {run.setting.dataset for run in experiment.runs()} <= set(DATASETS)
    assert {"effectiveness", "public-size", "partitions", "subsets", "rounds"} <= set(experiments)


def test_the_papers_private_settings_are_all_planned():
    folder = REPOSITORY / "paper"
    settings = paper_settings(folder)
    assert sum(map(len, settings.values())) == 72
    assert len(group_runs(LEVELS, Workplace(folder))) == 3 * len(settings)
    assert {each.group for each in group_runs(LEVELS, Workplace(folder, quick=True))} == set(QUICK)


@pytest.mark.parametrize("side", [ServerNoise, PartyNoise], ids=["L1", "L2"])
def test_noise_is_drawn_anew_on_students_or_teachers_that_are_trained_once(side):
    import numpy as np
    from sklearn.datasets import make_classification

    from fedkt.data import Dataset
    from fedkt.federation import Party
    from fedkt.models.catalogue import roles
    from fedkt.privacy import Laplace

    X, y = make_classification(900, n_features=5, random_state=0)
    X = X.astype(np.float32)
    names = tuple("abcde")
    data = Dataset("toy", X[:600], y[:600], X[600:750], y[600:750], X[750:], y[750:], (0, 1), None, "made up", names)
    parties = [
        Party(data.X_public, data.classes, seed, name=str(seed), X=X[start : start + 150], y=y[start : start + 150])
        for seed, start in enumerate(range(0, 600, 150))
    ]
    federation = side(parties, data, roles("tree"))
    rows = np.arange(40)
    bare = federation.bare()
    assert np.mean(bare.predict(data.X_test) == data.y_test) > 0.7
    gentle, harsh = Laplace(50.0), Laplace(0.001)
    said = [
        federation.run(noise, rows, seed).predict(data.X_test) for noise, seed in ((gentle, 1), (harsh, 1), (harsh, 2))
    ]
    assert np.mean(said[0] == data.y_test) > 0.65
    assert (said[1] != said[2]).any()
    assert federation.diagnostic(gentle, rows) > federation.diagnostic(harsh, rows)


def test_algorithms_are_held_against_others_seed_by_seed(folder):
    text = EXPERIMENT.replace(
        'across = "subsets"', 'across = "subsets"\ndown = "dataset,algorithm"\nagainst = ["fedkt"]'
    )
    text = text.replace("seeds = 2", "seeds = 2\nfirst_seed = 100")
    text = text.replace("subsets = [1, 2]", 'algorithm = ["fedkt", "solo"]\nsubsets = [1, 2]')
    (folder / "experiments" / "subsets.toml").write_text(text)
    experiment = read_experiments(folder)["subsets"]
    assert {run.setting.seed for run in experiment.runs()} == {100, 101}
    figures = {"fedkt": (0.5, 0.6), "solo": (0.7, 0.75)}
    runs = {
        fingerprint(run.setting): report(figures[run.setting.algorithm][run.setting.seed - 100], run.setting.seed)
        for run in experiment.runs()
    }
    table = table_of(experiment, runs, {})
    assert table.rows == ("digits,fedkt", "digits,solo")
    (beside,) = tables_beside(table)
    said = markdown(beside)
    assert "Less FedKT on the same seeds" in beside.title
    assert "| digits, Solo | +17.5 ± 3.5 (2 of 2 ahead) | +17.5 ± 3.5 (2 of 2 ahead) |" in said
    assert "| digits, FedKT" not in said
    write_paper_page(folder / "page.html", [replace(table, experiment=replace(experiment, picture=""))])
    assert "<td>+17.5 ± 3.5 <small>(2 of 2 ahead)</small></td>" in (folder / "page.html").read_text()


def test_bytes_stand_beside_a_table_where_they_were_measured(folder):
    text = EXPERIMENT.replace("seeds = 2", "seeds = 2\nbytes = true")
    (folder / "experiments" / "subsets.toml").write_text(text)
    experiment = read_experiments(folder)["subsets"]
    assert tables_beside(table_of(experiment, {}, {})) == []
    runs = {
        fingerprint(run.setting): replace(report(0.5, run.setting.seed), bytes_sent=24_000, parties=4)
        for run in experiment.runs()
        if run.column == "1"
    }
    assert "| digits | 6.0 |  |" in "".join(map(markdown, tables_beside(table_of(experiment, runs, {}))))


def test_who_is_held_against_others_must_have_a_row(folder):
    (folder / "experiments" / "subsets.toml").write_text(
        EXPERIMENT.replace("seeds = 2", 'seeds = 2\nagainst = ["fedkt"]')
    )
    with pytest.raises(ConfigurationError, match="down names 'algorithm'"):
        read_experiments(folder)


def test_the_result_is_one_sentence(folder):
    def table(**rows):
        cells = {
            (name.replace("_", "-"), column): Cell(
                name, column, tuple(report(each, seed) for seed, each in enumerate(values)), len(values)
            )
            for name, columns in rows.items()
            for column, values in columns.items()
        }
        return ResultTable(read_experiments(folder)["subsets"], (), ("adult", "mnist"), cells)

    votes = table(
        fedkt_expert={"adult": [0.8, 0.9], "mnist": [0.95, 0.97]},
        fedkt={"adult": [0.7, 0.8], "mnist": [0.9, 0.9]},
        pate={"adult": [0.84, 0.86], "mnist": [0.99, 0.99]},
    )
    alone = table(solo={"adult": [0.6, 0.62, 0.64], "mnist": [0.5]})
    # Means by hand: 85.0 and 96.0, 75.0 and 90.0, 62.0 and 50.0, 85.0 and 99.0.
    assert result_in_words(votes, alone) == (
        "With one message from each party the final model is right on 85.0 % of adult and 96.0 % of mnist, where FedKT "
        "as in its paper gives 75.0 and 90.0 %, a party alone 62.0 and 50.0 %, and PATE, which needs everybody's rows "
        "in one place, 85.0 and 99.0 % (mean test accuracy over 2 seeds; a party alone over 1 to 3 others)."
    )
