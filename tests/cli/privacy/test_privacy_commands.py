"""`fedkt privacy …`: what the commands print, and when they refuse."""

import json
import math
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from command_line import fedkt
from fedkt.privacy import Gaussian, Laplace, Release
from fedkt.privacy.accountant.gdp import from_mu
from fedkt.privacy.ledger_file import LedgerFile, Spending

PRICE = ("price", "--mechanism", "laplace", "--gamma", "0.04", "--queries", "81", "--voters", "25", "--classes", "2")


def privacy(*words, cwd=None):
    return fedkt("privacy", *words, cwd=cwd)


def answer(*words, cwd=None, code=0):
    done = privacy(*words, "--json", cwd=cwd)
    assert done.returncode == code, done.stderr
    assert done.stdout.count("\n") == 1
    return json.loads(done.stdout)


def test_price_gives_every_accountant_and_names_the_smallest():
    found = answer(*PRICE, "--delta", "1e-5")
    told = {"delta": 1e-5, "unit": "record", "adjacency": "replace-one", "queries": 81, "voters": 25, "classes": 2}
    assert told.items() <= found.items()
    assert found["mechanism"] == "laplace"
    assert found["scale"] == {"gamma": 0.04}
    assert found["accountant"] == "exact"
    # The paper's Table: 3.72 at gamma 0.04 and 81 queries; pure composition is 81 · 2 · 0.04.
    assert found["accountants"]["paper"] == pytest.approx(3.72, abs=0.005)
    assert found["accountants"]["pure"] == pytest.approx(6.48)
    assert found["accountants"]["gdp"] is None
    assert found["epsilon"] == min(each for each in found["accountants"].values() if each is not None)
    assert 1.3 < found["epsilon"] <= 1.43


def test_labels_and_counts_are_priced_together_as_a_ledger_does():
    votes = ("price", "--sigma", "8", "--queries", "30", "--voters", "15")
    found = answer(*votes, "--count-sigma", "6.5")
    assert found["count_sigma"] == 6.5
    assert found["queries"] == 30
    as_counts = from_mu(math.sqrt(2 * 30 / 8**2 + 2 / 6.5**2), 1e-5)
    # Two classes: only the names of the winners are paid for, and the counts.
    assert answer(*votes)["epsilon"] < found["epsilon"] < 0.85 * as_counts
    assert found["accountant"] == "exact over 2 kinds of release"
    three = answer(*votes, "--count-sigma", "6.5", "--classes", "3")
    assert three["epsilon"] == pytest.approx(as_counts, rel=1e-6)
    assert "leave --accountant out" in privacy(*votes, "--count-sigma", "6.5", "--accountant", "gdp").stderr


def test_price_says_what_it_means_and_rounds_up():
    done = privacy(*PRICE)
    assert done.returncode == 0, done.stderr
    # 3.7183… rounds up.
    assert "3.719" in done.stdout
    assert "smallest" in done.stdout
    assert "one record of one party by at most a factor of" in done.stdout
    assert "the paper's formula" in done.stdout


def test_price_asks_only_the_accountants_that_were_named():
    found = answer(*PRICE, "--accountant", "paper")
    assert list(found["accountants"]) == ["paper"]
    assert found["epsilon"] == found["accountants"]["paper"]


def test_an_accountant_that_does_not_apply_promises_nothing():
    found = answer(*PRICE, "--accountant", "gdp")
    assert found["epsilon"] is None
    assert found["accountant"] is None
    assert "nothing can be promised" in privacy(*PRICE, "--accountant", "gdp").stdout


def test_the_scale_alone_names_the_mechanism_and_parties_may_abstain():
    found = answer("price", "--sigma", "40", "--queries", "20", "--voters", "50", "--unit", "party")
    assert found["mechanism"] == "gaussian"
    assert found["abstentions"] is True
    assert answer("price", "--sigma", "40", "--queries", "20", "--voters", "50")["abstentions"] is False


def test_ten_parties_are_told_that_a_party_is_hardly_protected():
    done = privacy("price", "--sigma", "1.5", "--queries", "20", "--voters", "10", "--unit", "party")
    assert "hardly a protection" in done.stdout


def test_calibrate_keeps_the_budget_and_puts_the_best_first():
    found = answer("calibrate", "--epsilon", "2", "--delta", "1e-5", "--queries", "10", "--voters", "50")
    assert found["target"] == 2
    assert found["margin"] == 20
    assert {each["mechanism"] for each in found["mechanisms"]} == {"laplace", "gaussian", "gumbel"}
    assert all(each["epsilon"] <= 2 for each in found["mechanisms"])
    chances = [each["chance"] for each in found["mechanisms"]]
    assert chances == sorted(chances, reverse=True)
    assert found["mechanism"] == found["mechanisms"][0]["mechanism"]
    again = answer("price", "--sigma", str(sigma_of(found)), "--queries", "10", "--voters", "50")
    assert again["epsilon"] <= 2


def sigma_of(found):
    return next(each["scale"]["sigma"] for each in found["mechanisms"] if each["mechanism"] == "gaussian")


def test_calibrate_prints_a_table_with_the_margin_explained():
    done = privacy("calibrate", "--epsilon", "4", "--queries", "4", "--voters", "20", "--mechanism", "gaussian,laplace")
    assert done.returncode == 0, done.stderr
    assert "best" in done.stdout
    assert "leads every other class by 8 of 20 votes" in done.stdout


def test_calibrate_takes_a_threshold_mechanism_with_its_threshold_and_cap():
    words = ("--queries", "20", "--voters", "50", "--mechanism", "confident-gaussian")
    found = answer("calibrate", "--epsilon", "2", *words, "--threshold", "30", "--answers", "10")
    assert found["scale"]["threshold"] == 30
    assert found["epsilon"] <= 2


def test_the_most_queries_fit_the_budget_and_one_more_does_not():
    found = answer("calibrate", "--epsilon", "2", "--voters", "50", "--most-queries", "--sigma", "12")
    assert found["epsilon"] <= 2
    more = ("--sigma", "12", "--voters", "50", "--queries", str(found["queries"] + 1))
    assert answer("price", *more)["epsilon"] > 2


@pytest.mark.parametrize("kind", ["svg", "png", "html"])
def test_plot_draws_every_noise(tmp_path, kind):
    words = ("--voters", "9", "--chance", "0.8", "--queries-up-to", "8", "-o", f"p.{kind}")
    found = answer("plot", *words, cwd=tmp_path)
    assert {line["name"] for line in found["lines"]} == {"laplace", "gaussian", "gumbel", "paper"}
    drawn = (tmp_path / f"p.{kind}").read_bytes()
    if kind == "png":
        assert drawn.startswith(b"\x89PNG")
        return
    text = drawn.decode()
    for said in ("laplace, the paper's formula".replace("'", "&#x27;"), "gaussian", "gumbel", "9 voters"):
        assert said in text or said.replace("&#x27;", "'") in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    if kind == "svg":
        assert ElementTree.fromstring(text).tag.endswith("svg")


def test_lines_of_the_plot_rise_and_the_papers_formula_is_above_its_noise(tmp_path):
    found = answer("plot", "--voters", "9", "--chance", "0.8", "--queries-up-to", "8", cwd=tmp_path)
    lines = {line["name"]: line["epsilons"] for line in found["lines"]}
    assert all(line == sorted(line) for line in lines.values())
    assert all(ours <= theirs for ours, theirs in zip(lines["laplace"], lines["paper"], strict=True))


def test_an_audit_that_holds_leaves_with_0_and_one_that_does_not_with_1():
    words = ("audit", "--mechanism", "gaussian", "--sigma", "10.43", "--seed", "1")
    held = answer(*words)
    assert held["holds"] is True
    assert 0 < held["empirical"] < held["claim"]
    broken = answer(*words, "--fault", "double-sensitivity", code=1)
    assert broken["holds"] is False
    assert broken["claim"] == held["claim"]


def test_noise_on_sums_is_audited_for_an_epsilon_or_with_its_scale():
    words = ("audit", "--noise", "gaussian-sums", "--epsilon", "1", "--unit", "party", "--seed", "1")
    found = answer(*words)
    assert (found["mechanism"], found["unit"], found["queries"]) == ("gaussian-sums", "party", 1)
    assert 0.999 < found["claim"] <= 1.0
    assert "each of two sums that differ by as much as one party can move them" in " ".join(
        privacy(*words).stdout.split()
    )
    assert answer("audit", "--noise", "gaussian-sums:3", "--seed", "1")["scale"] == {"sigma": 3.0}


def test_an_audit_without_noise_is_broken():
    found = answer("audit", "--bare", "--sigma", "10.43", code=1)
    assert found["empirical"] >= 9
    said = privacy("audit", "--bare", "--sigma", "10.43")
    assert said.returncode == 1
    assert "BROKEN" in said.stdout
    assert "level L0" in said.stdout


def spend(path, *releases):
    ledger_file = LedgerFile.open(path)
    for who, purpose, release in releases:
        ledger_file.append(Spending(who=who, release=replace(release, purpose=purpose)))
    return ledger_file


def test_the_ledger_shows_who_has_spent_what(tmp_path):
    path = tmp_path / "ledger.jsonl"
    laplace = Release(Laplace(0.05), 10, 25, 2, "record")
    spend(path, ("north", "vote 1", laplace), ("south", "vote", laplace), ("north", "[red]again", laplace))
    found = answer("ledger", str(path))
    totals = {each["owner"]: each for each in found["totals"]}
    assert totals["north"]["queries"] == 20
    assert totals["south"]["releases"] == 1
    once = answer("price", "--gamma", "0.05", "--voters", "25", "--queries", "20", "--delta", "5e-6")
    assert totals["north"]["epsilon"] == pytest.approx(once["epsilon"])
    assert [entry["purpose"] for entry in found["entries"]] == ["vote 1", "vote", "[red]again"]
    assert len(answer("ledger", str(path), "--owner", "south")["entries"]) == 1
    said = privacy("ledger", str(path))
    assert "north has spent epsilon" in said.stdout
    assert "20 labels in 2 releases" in said.stdout


def test_releases_of_both_adjacencies_have_one_total(tmp_path):
    path = tmp_path / "ledger.jsonl"
    kinds = [Release(Laplace(0.05), 10, 25, 2, "record", each) for each in ("replace-one", "add-or-remove")]
    spend(path, ("north", "vote 1", kinds[0]), ("north", "vote 2", kinds[1]))
    [total] = answer("ledger", str(path))["totals"]
    once = answer("price", "--gamma", "0.05", "--voters", "25", "--queries", "20", "--delta", "5e-6")
    assert total["epsilon"] == pytest.approx(once["epsilon"])
    # Who may be added or removed may be replaced too, and not the other way round.
    assert total["adjacency"] == "replace-one"


def test_parties_and_records_have_totals_of_their_own(tmp_path):
    path = tmp_path / "ledger.jsonl"
    spend(
        path,
        ("server", "a", Release(Gaussian(40.0), 5, 50, 2, "party", abstentions=True)),
        ("server", "b", Release(Gaussian(40.0), 5, 25, 2, "record")),
    )
    assert [each["unit"] for each in answer("ledger", str(path))["totals"]] == ["party", "record"]


def test_a_damaged_ledger_is_an_error_in_words(tmp_path):
    path = tmp_path / "ledger.jsonl"
    spend(path, ("north", "vote", Release(Laplace(0.05), 10, 25, 2, "record")))
    path.write_bytes(path.read_bytes().replace(b'"queries":10', b'"queries":11'))
    done = privacy("ledger", str(path))
    assert done.returncode == 1
    assert "is damaged" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("price", "--queries", "5", "--voters", "9"), "Which noise?"),
        (("price", "--queries", "5", "--voters", "9", "--sigma", "1", "--gamma", "1"), "One noise at a time"),
        (("price", "--queries", "5", "--voters", "9", "--mechanism", "pink"), "no noise 'pink'"),
        (("price", "--queries", "5", "--voters", "9", "--sigma", "-1"), "above zero"),
        (("price", "--queries", "5", "--voters", "9", "--sigma", "1", "--delta", "1"), "δ is a probability"),
        (("price", "--queries", "5", "--voters", "9", "--sigma", "1", "--unit", "town"), "--unit"),
        (("price", "--queries", "5", "--voters", "9", "--sigma", "1", "--accountant", "me"), "no accountant 'me'"),
        (("calibrate", "--epsilon", "2", "--voters", "9"), "How many queries?"),
        (("calibrate", "--epsilon", "-2", "--voters", "9", "--queries", "4"), "budget ε"),
        (("calibrate", "--epsilon", "2", "--voters", "9", "--queries", "4", "--sigma", "3"), "leave --sigma out"),
        (("calibrate", "--epsilon", "2", "--voters", "9", "--queries", "4", "--margin", "10"), "at most the 9 voters"),
        (("calibrate", "--epsilon", "2", "--voters", "9", "--most-queries"), "Which noise?"),
        (("plot", "-o", "privacy.doc"), ".svg, .png or .html"),
        (("plot", "--chance", "0.4"), "chance of the right label"),
        (("audit", "--sigma", "3", "--epsilon", "2"), "either --epsilon or a scale"),
        (("audit", "--noise", "gaussian-sums:3", "--epsilon", "2"), "either --epsilon or a scale"),
        (("audit", "--sigma", "3", "--fault", "gremlin"), "no fault 'gremlin'"),
        (("audit", "--sigma", "3", "--trials", "7"), "at least 1,000 trials"),
        (("ledger", "nowhere.jsonl"), "There is no ledger"),
    ],
)
def test_a_choice_that_cannot_work_is_one_sentence_and_exit_code_1(tmp_path, words, said):
    done = privacy(*words, cwd=tmp_path)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_the_command_leaves_with_the_audits_exit_code():
    words = ("audit", "--bare", "--sigma", "10.43", "--trials", "2000")
    code = "from fedkt.cli import main; main()"
    assert subprocess.run([sys.executable, "-c", code, "privacy", *words], capture_output=True).returncode == 1


def test_asking_for_help_loads_no_numbers_library():
    heavy = ("numpy", "scipy", "matplotlib", "dp_accounting")
    code = f"import sys, fedkt.cli; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize(
    ("now", "before"),
    [
        (("price", "--noise", "laplace:0.04"), ("price", "--mechanism", "laplace", "--gamma", "0.04")),
        (("price", "--noise", "gaussian:40"), ("price", "--sigma", "40")),
        (("audit", "--noise", "gaussian:10.43", "--seed", "1"), ("audit", "--sigma", "10.43", "--seed", "1")),
        (
            ("audit", "--noise", "gumbel", "--epsilon", "2", "--seed", "1"),
            ("audit", "--mechanism", "gumbel", "--seed", "1"),
        ),
    ],
    ids=" ".join,
)
def test_a_noise_is_named_in_one_word_and_the_flags_of_before_are_understood(now, before):
    more = ("--queries", "20", "--voters", "25")
    assert answer(*now, *more) == answer(*before, *more)


def test_calibrate_takes_a_noise_in_one_word_where_it_asks_for_queries():
    words = ("calibrate", "--epsilon", "2", "--voters", "50")
    once, again = (answer(*words, "--most-queries", *each) for each in (("--noise", "gaussian:12"), ("--sigma", "12")))
    assert once == again
    assert "leave --noise gaussian:12 out" in privacy(*words, "--queries", "4", "--noise", "gaussian:12").stderr
