"""Every ε the paper prints, by the paper's own accountant, to the printed digit; and the misprints, listed."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from fedkt.privacy.accountant import ACCOUNTANTS, moments, price, pure
from fedkt.privacy.diagnostic import diagnose
from fedkt.privacy.laplace import Laplace
from fedkt.privacy.price import Release

DELTA = 1e-5
ROWS = list(
    csv.DictReader((Path(__file__).parents[3] / "paper" / "epsilon_rows.csv").read_text(encoding="utf-8").splitlines())
)
EXPLAINED_BY = {"DI": "paper", "DI+": "paper", "DI8": "paper-8", "PURE": "pure"}


def of_kind(*kinds):
    return [row for row in ROWS if row["kind"] in kinds]


def name(row):
    return "-".join(row[key] for key in ("table", "dataset", "level", "partition", "gamma", "queries"))


def release(row, gamma=None, queries=None):
    voters = 50 if row["level"] == "L1" else 25
    unit = "party" if row["level"] == "L1" else "record"
    return Release(Laplace(gamma or float(row["gamma"])), queries or int(row["queries"]), voters, 2, unit)


def printed(epsilon, text):
    """ε with as many digits as the paper printed."""
    return f"{epsilon:.{len(text.partition('.')[2])}f}"


def test_the_file_has_every_row_and_kind():
    kinds = [row["kind"] for row in ROWS]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        "DI": 29, "DI+": 7, "DI8": 5, "PURE": 3, "DD": 29, "TRUNC": 2, "MISPRINT": 5,
    }  # fmt: skip


@pytest.mark.parametrize("row", of_kind(*EXPLAINED_BY), ids=name)
def test_a_data_independent_epsilon_is_the_printed_one(row):
    epsilon = ACCOUNTANTS[EXPLAINED_BY[row["kind"]]](release(row), DELTA)
    assert printed(epsilon, row["paper_epsilon"]) == row["paper_epsilon"]


@pytest.mark.parametrize("row", of_kind("DI"), ids=name)
def test_eight_moments_are_enough_for_the_rows_called_di(row):
    assert moments.epsilon8(release(row), DELTA) == pytest.approx(moments.epsilon(release(row), DELTA), abs=1e-12)


@pytest.mark.parametrize("row", of_kind(*EXPLAINED_BY, "DD", "TRUNC"), ids=name)
def test_no_printed_epsilon_but_a_misprint_exceeds_the_eight_moments_figure(row):
    """Also the data-dependent ones, which can only be lower (printed digits are rounded)."""
    digits = len(row["paper_epsilon"].partition(".")[2])
    assert float(row["paper_epsilon"]) <= moments.epsilon8(release(row), DELTA) + 0.5 * 10**-digits


@pytest.mark.parametrize("row", of_kind("DD"), ids=name)
def test_a_data_dependent_epsilon_lies_between_unanimous_and_tied_votes(row):
    """Of 50 voters: no votes give less than unanimous ones, or more than ties."""
    gamma, queries = float(row["gamma"]), int(row["queries"])
    voters = 50
    least = diagnose(np.array([[voters, 0]] * queries), Laplace(gamma), DELTA)
    most = diagnose(np.array([[voters, voters]] * queries), Laplace(gamma), DELTA)
    digits = len(row["paper_epsilon"].partition(".")[2])
    slack = 0.5 * 10**-digits
    assert least.epsilon - slack <= float(row["paper_epsilon"]) <= most.epsilon_8 + slack


@pytest.mark.parametrize(
    ("gamma", "queries", "lowest"), [(0.06, 74, 2.564), (0.1, 74, 1.822), (0.06, 40, 1.727), (0.08, 81, 2.296)]
)
def test_fifty_unanimous_parties_give_the_decoded_lower_end(gamma, queries, lowest):
    assert diagnose(np.array([[50, 0]] * queries), Laplace(gamma), DELTA).epsilon == pytest.approx(lowest, abs=5e-4)


def test_the_misprints_are_these_and_are_what_they_are_said_to_be():
    said = {(name(row), row["paper_epsilon"]) for row in of_kind("MISPRINT")}
    assert said == {
        ("tbl:dp-Adult-L1-?-0.04-81", "4.73"),
        ("tbl:dp-cod-rna-L2-?-0.05-148", "4.51"),
        ("tbl:ktl1-Adult-L1-het-0.04-81", "4.73"),
        ("tbl:ktl1-cod-rna-L1-homo-0.02-29", "0.53"),
        ("tbl:fedktl2-Adult-L2-het-0.05-81", "4.76"),
    }
    any_row = ROWS[0]
    assert printed(moments.epsilon(release(any_row, 0.05, 81), DELTA), "4.73") == "4.73"
    assert moments.epsilon(release(any_row, 0.04, 81), DELTA) < 3.72
    assert printed(moments.epsilon(release(any_row, 0.05, 74), DELTA), "4.51") == "4.51"
    assert printed(moments.epsilon(release(any_row, 0.05, 82), DELTA), "4.76") == "4.76"
    assert diagnose(np.array([[50, 0]] * 29), Laplace(0.02), DELTA).epsilon > 0.53


def test_five_printed_epsilons_exceed_plain_composition():
    dear = [row for row in of_kind("DI8", "DD", "TRUNC") if float(row["paper_epsilon"]) > pure.epsilon(release(row), 1)]
    assert [(row["level"], row["paper_epsilon"]) for row in dear] == [
        ("L2", "1.13"), ("L2", "1.32"), ("L2", "1.96"), ("L2", "2.13"), ("L2", "2.97"),
    ]  # fmt: skip


def test_advanced_composition_of_the_papers_example_is_18_2():
    """The text says 20.2: Dwork and Roth, Theorem 3.20, at γ = .1 and 148 queries."""
    pure, queries = 0.2, 148
    advanced = math.sqrt(2 * queries * math.log(1 / DELTA)) * pure + queries * pure * math.expm1(pure)
    assert advanced == pytest.approx(18.2, abs=0.05)


@pytest.mark.parametrize("row", of_kind("DI", "DI+", "DI8", "PURE", "DD", "TRUNC"), ids=name)
def test_the_quick_sound_accountants_undercut_the_papers_formula(row):
    quick = price(release(row), DELTA, accountants=["pure", "rdp", "pld"]).epsilon
    assert quick <= moments.epsilon(release(row), DELTA)
