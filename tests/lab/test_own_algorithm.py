"""An algorithm in a file of the user's own, named on the command line."""

import json
import sys

import pytest

from command_line import fedkt
from fedkt.algorithms import ALGORITHMS
from fedkt.errors import ConfigurationError
from fedkt.lab.own_algorithm import is_own, own_algorithm

MINE = '''"""Somebody's method. A conference, 2024."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sklearn.tree import DecisionTreeClassifier

from fedkt import Bundle
from fedkt.algorithms.card import Card
from fedkt.algorithms.solo import Solo


@dataclass(frozen=True)
class Depth:
    most: int = 8


class Stump(DecisionTreeClassifier):
    """A tree that no module has."""


class First(Solo):
    """The model of the first party."""

    name = "first"
    sends = True

    def model_of(self, party):
        return Stump(max_depth=Depth().most)

    def server_step(self, server, bundles):
        return replace(bundles[0], sender="server")


CALLED = Card("anything", "The first", "what the first party knows", First)
NUMBER = 3
'''
DIGITS = ("digits", "--model", "tree", "--parties", "3", "--json")


@pytest.fixture
def folder(tmp_path):
    """A folder with the file; the catalogue is as before when the test is over."""
    (tmp_path / "mine.py").write_text(MINE)
    before = dict(ALGORITHMS)
    yield tmp_path
    ALGORITHMS.clear()
    ALGORITHMS.update(before)


def run(verb, *words, cwd):
    done = fedkt(verb, *words, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_it_is_run_by_its_file_and_name_and_told_with_the_digest_of_the_file(folder):
    report = run("simulate", *DIGITS, "--algorithm", "mine.py:First", "--bytes", cwd=folder)
    assert report["algorithm"] == "mine.py:First"
    assert report["versions"]["mine.py:First"].startswith("sha256 ")
    assert report["bytes_sent"] > 0
    assert not any(name.startswith("fedkt_own") for name in sys.modules)
    assert not (folder / "__pycache__").exists()


def test_other_processes_are_sent_what_no_module_has(folder):
    alone, spread = (
        run("simulate", *DIGITS, "--algorithm", "mine.py:First", "--jobs", jobs, cwd=folder) for jobs in ("1", "2")
    )
    assert alone["accuracy"] == spread["accuracy"]


def test_a_changed_file_is_another_run(folder):
    words = (*DIGITS, "--algorithms", "solo,mine.py:First,mine.py:CALLED", "--seeds", "1", "--results", "r.jsonl")
    first = run("compare", *words, cwd=folder)
    assert [each["algorithm"] for each in first["algorithms"]] == ["solo", "mine.py:First", "mine.py:CALLED"]
    assert run("compare", *words, cwd=folder) == first
    (folder / "mine.py").write_text(MINE.replace("most: int = 8", "most: int = 1"))
    changed = run("compare", *words, cwd=folder)
    assert changed["runs"][0] == first["runs"][0]
    assert changed["runs"][1]["accuracy"] < first["runs"][1]["accuracy"]
    stored = [json.loads(line)["setting"]["algorithm_file"] for line in (folder / "r.jsonl").read_text().splitlines()]
    assert (len(stored), len(set(stored)), stored.count(None)) == (5, 3, 1)


def test_a_card_says_more_than_a_class(folder):
    name = own_algorithm(str(folder / "mine.py:CALLED"))
    assert (ALGORITHMS[name].title, ALGORITHMS[name].summary) == ("The first", "what the first party knows")
    assert ALGORITHMS[own_algorithm(str(folder / "mine.py:First"))].summary == "The model of the first party."


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mine.py", r"Which algorithm of .*mine\.py\? Write --algorithm .*mine\.py:CLASS"),
        ("none.py:First", "none.py cannot be read: No such file"),
        ("mine.py:Last", r"mine.py has no 'Last'\. It has: Depth, Stump, First, CALLED\."),
        ("mine.py:Depth", "Depth is no algorithm: an algorithm is a Card, or a class derived from fedkt.Algorithm"),
        ("mine.py:NUMBER", "NUMBER is no algorithm"),
        ("wrong.py:First", "wrong.py, line 2: SyntaxError"),
        ("lacks.py:First", "lacks.py, line 3: ModuleNotFoundError: No module named 'nowhere'.* has to be installed"),
        ("leaves.py:First", "leaves.py, line 1: SystemExit"),
        ("half.py:Half", "Half is no algorithm: Half lacks party_step, server_step"),
        ("bare.py:Bare", "has to take the model as the first argument"),
    ],
)
def test_what_is_no_algorithm_is_refused_in_words(folder, text, words):
    half = "from fedkt import Algorithm\nclass Half(Algorithm):\n    name = 'half'\n"
    bare = MINE + "\nclass Bare(First):\n    def __init__(self):\n        pass\n"
    files = {"wrong": "\nclass First(:\n", "lacks": "\n\nimport nowhere\n", "leaves": "raise SystemExit(3)\n"}
    for name, content in {**files, "half": half, "bare": bare}.items():
        (folder / f"{name}.py").write_text(content)
    with pytest.raises(ConfigurationError, match=words):
        own_algorithm(str(folder / text))


def test_two_files_of_one_name_are_not_compared(folder):
    (folder / "other").mkdir()
    (folder / "other" / "mine.py").write_text(MINE)
    words = ("digits", "--algorithms", "mine.py:First,other/mine.py:First", "--json")
    assert "Two files have an algorithm mine.py:First" in fedkt("compare", *words, cwd=folder).stderr


def test_a_file_is_known_by_how_it_is_written():
    assert [is_own(text) for text in ("mine.py:Mine", "a b/mine.py", "fedkt-expert", "mine:Mine", ".py")] == [
        True,
        True,
        False,
        False,
        False,
    ]
