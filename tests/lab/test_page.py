"""The HTML report: complete, escaped, self-contained."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from fedkt.errors import ConfigurationError
from fedkt.lab.grid import Grid, phone_width
from fedkt.lab.html import PHONE
from fedkt.lab.page import render_page, write_page
from fedkt.lab.words import human_bytes, human_seconds, megabytes, seeds_in_words
from fedkt.quality import measure_quality
from fedkt.report import NO_PRIVACY, Report

VOTES = {
    "agreement_histogram": [0] * 19 + [10],
    "abstention_histogram": [10] + [0] * 19,
    "unlabelled": 1,
    "ties": 2,
    "voters": 4,
}


def report(**changes: Any) -> Report:
    """A made-up FedKT run."""
    values: dict[str, Any] = {
        "dataset": "heart",
        "algorithm": "fedkt",
        "model": "forest",
        "parties": 4,
        "partitions": 2,
        "subsets": 5,
        "level": "L0",
        "seed": 0,
        "accuracy": 0.8,
        "balanced_accuracy": 0.75,
        "label_accuracy": 0.78,
        "epsilon": None,
        "privacy": NO_PRIVACY,
        "bytes_sent": 2_345_678,
        "seconds": 12.34,
        "cpu_seconds": 20.0,
        "versions": {"fedkt": "0.1.0", "numpy": "2.4.6"},
        "command": "fedkt simulate heart --seed 0",
        "partition": "dirichlet",
        "beta": 0.5,
        "rows": {"parties": 500, "public": 100, "test": 100},
        "votes": VOTES,
    }
    return Report(**{**values, **changes})


def solo(**changes: Any) -> Report:
    """A made-up run of the parties alone."""
    alone = {"algorithm": "solo", "partitions": None, "subsets": None, "label_accuracy": None, "votes": {}}
    return report(**{**alone, "accuracy": 0.7, **changes})


class Reader(HTMLParser):
    """Collects the tags and the words of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data + " "


def read(html: str) -> Reader:
    """The page as a browser reads it."""
    reader = Reader()
    reader.feed(html)
    reader.words = " ".join(reader.words.split())
    return reader


def test_the_headline_says_who_is_ahead_by_how_much() -> None:
    runs = [report(seed=0, accuracy=0.80), report(seed=1, accuracy=0.82), solo(seed=0), solo(seed=1, accuracy=0.72)]
    words = read(render_page(runs, title="Heart")).words
    # Mean 0.81, standard deviation 0.01 · √2.
    assert "FedKT on heart with 4 parties reaches a test accuracy of 81.0 ± 1.4 % (mean of 2 seeds)." in words
    assert "10.0 points more than a party alone on average (higher on 2 of 2 seeds)." in words


def test_an_upper_bound_that_is_ahead_is_named() -> None:
    words = read(render_page([report(), report(algorithm="centralised", accuracy=0.85, votes={})], title="x")).words
    assert "5.0 points less than training on the pooled rows." in words
    assert "Highest of all: Centralised with 85.0 %." in words


def test_the_page_carries_settings_seed_command_versions_and_privacy() -> None:
    words = read(render_page([report(seed=7)], title="Heart")).words
    for expected in (
        "Heart",
        "(seed 7)",
        "2.3 MB",
        "12.3 s",
        "β of the partition 0.5",
        "Partitions of a party's rows (s) 2",
        "Subsets of a partition (t) 5",
        "500 of the parties, 100 public, 100 test",
        "fedkt simulate heart --seed 0",
        "fedkt 0.1.0, numpy 2.4.6",
        "level L0 adds no noise",
        "single seed",
        "1 got no vote and no label; 2 had a tie",
    ):
        assert expected in words, expected


def test_hostile_strings_are_shown_and_never_run() -> None:
    evil = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
    hostile = [
        report(
            seed=seed,
            dataset=evil,
            algorithm=evil,
            model=evil,
            privacy=evil,
            command=evil,
            partition=evil,
            versions={evil: evil},
            notes=(evil,),
            rows={evil: 3},
            party_accuracy={evil: 0.5},
        )
        for seed in (0, 1)
    ]
    page = read(render_page(hostile, title=evil))
    assert not [tag for tag, _ in page.tags if tag in ("script", "img", "iframe", "object", "link")]
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert page.words.count(evil) >= 8


def test_nothing_is_loaded_from_anywhere() -> None:
    html = render_page([report(), solo()], title="x")
    loading = [value for _, given in read(html).tags for name, value in given.items() if name in ("src", "href")]
    assert all(value is not None and value.startswith("#") for value in loading)
    assert "@import" not in html
    assert not re.search(r"url\((?!#)", html)
    assert "default-src 'none'" in html


def test_ids_on_a_page_of_several_chapters_are_unique() -> None:
    runs = [report(seed=0), solo(seed=0), report(dataset="adult", accuracy=0.85), solo(dataset="adult")]
    ids = [given["id"] for _, given in read(render_page(runs, title="x")).tags if "id" in given]
    assert ids
    assert len(ids) == len(set(ids))


def test_runs_on_different_rows_are_not_compared() -> None:
    words = read(render_page([report(), solo(dataset="adult")], title="x")).words
    assert "points more" not in words
    assert "heart, 4 parties, model forest" in words
    assert "adult, 4 parties, model forest" in words


def test_the_same_algorithm_with_other_settings_is_a_line_of_its_own() -> None:
    words = read(render_page([report(), report(subsets=10, accuracy=0.9)], title="x")).words
    assert "FedKT s=2 t=5 L0" in words
    assert "FedKT s=2 t=10 L0" in words


def test_votes_above_level_l0_are_not_shown() -> None:
    assert "How the parties voted" in render_page([report()], title="x")
    assert "How the parties voted" not in render_page([report(level="L1")], title="x")


def test_a_run_without_test_rows_says_so_and_shows_no_zero() -> None:
    words = read(render_page([report(accuracy=None, balanced_accuracy=None)], title="x")).words
    assert "its accuracy is not known" in words
    assert "0.0 %" not in words


def test_the_same_note_of_many_runs_is_written_once() -> None:
    page = render_page([report(seed=seed, notes=("few rows",)) for seed in range(3)], title="x")
    assert page.count("few rows") == 1
    assert "3 runs, first FedKT, seed 0" in page


def rounds_of(algorithm: str, accuracies: list[float], **changes: Any) -> Report:
    """A made-up run of several rounds: 1 MB up and 1 MB down in each."""
    history = tuple(
        {"round": number, "accuracy": value, "sent": 1_000_000, "received": 1_000_000}
        for number, value in enumerate(accuracies, start=1)
    )
    total = 1_000_000 * len(accuracies)
    chosen = {"rounds": len(accuracies), "bytes_sent": total, "bytes_received": total, "history": history}
    return solo(**{"algorithm": algorithm, "accuracy": accuracies[-1], **chosen, **changes})


def test_rounds_are_shown_as_curves_with_what_an_accuracy_costs() -> None:
    page = read(render_page([rounds_of("fedavg", [0.5, 0.8]), report(accuracy=0.7, bytes_received=0)], title="x"))
    assert "Round after round" in page.words
    assert "FedAvg: 80.0 % after 2 rounds and 4.0 MB; FedKT: 70.0 % in one round and 2.3 MB." in page.words
    # Best of the weakest is FedKT's 70 %; of FedAvg's 80 % the shares are 64, 68 and 72 %.
    assert "Best % 64.0 % 68.0 % 70.0 % 72.0 % FedAvg 80.0 2 · 4.00 2 · 4.00 2 · 4.00 2 · 4.00" in page.words
    assert "FedKT 70.0 1 · 2.35 1 · 2.35 1 · 2.35 – " in page.words
    assert "64.0 % is 80 % of the best of FedAvg" in page.words


def test_bytes_stand_beside_the_formulas() -> None:
    words = read(render_page([rounds_of("fedavg", [0.5, 0.8]), report(bytes_received=0)], title="x")).words
    # Four parties: 1 MB down in a round is M = 250 kB, and FedKT with s = 2 should send 4 · 2 · 250 kB.
    assert "M bytes of one model (250 kB, as a server sends it)" in words
    assert "FedAvg 2 2.0 MB 2.0 MB 4.0 MB 2·n·M·r 4.0 MB" in words
    assert "FedKT 1 2.3 MB 0 B 2.3 MB n·s·M 2.0 MB" in words


def test_a_page_without_rounds_has_no_curve_and_one_without_company_no_bytes() -> None:
    words = read(render_page([report(), solo(bytes_sent=None)], title="x")).words
    assert "Round after round" not in words
    assert "to the same accuracy" not in words
    assert "Communication" not in read(render_page([report()], title="x")).words


def test_the_file_is_written_whole_and_the_same_each_time(tmp_path: Path) -> None:
    first, second = tmp_path / "new" / "a.html", tmp_path / "b.html"
    svg = '<svg xmlns="http://www.w3.org/2000/svg"></svg>'
    for path in (first, second):
        write_page(path, [report(), solo()], title="x", partition_svg=svg)
    assert first.read_bytes() == second.read_bytes()
    assert svg in first.read_text(encoding="utf-8")
    assert [path.name for path in first.parent.iterdir()] == ["a.html"]


@pytest.mark.parametrize("missing", ["matplotlib", "jinja2"])
def test_a_missing_extra_is_named(missing: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ConfigurationError, match=r"needs matplotlib and jinja2. Run: pip install 'fedkt\[report\]'"):
        write_page(tmp_path / "a.html", [report()], title="x")
    assert not list(tmp_path.iterdir())


def test_no_reports_and_no_svg_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="at least one report"):
        render_page([], title="x")
    with pytest.raises(ConfigurationError, match="partition_svg"):
        render_page([report()], title="x", partition_svg="<script>")


@pytest.mark.parametrize(
    ("number", "expected"),
    [(None, "–"), (0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (999_600, "1.0 MB"), (5e12, "5.0 TB")],
)
def test_bytes_for_people(number: float | None, expected: str) -> None:
    assert human_bytes(number) == expected


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0, "0.00"), (8_640_000, "8.64"), (9_996_000, "10.0"), (99.96e6, "100"), (1.2346e9, "1,235")],
)
def test_megabytes_for_people(number: float, expected: str) -> None:
    assert megabytes(number) == expected


@pytest.mark.parametrize(("number", "expected"), [(None, "–"), (0.04, "0.0 s"), (99.96, "1.7 min"), (7200, "2.0 h")])
def test_seconds_for_people(number: float | None, expected: str) -> None:
    assert human_seconds(number) == expected


def test_seeds_for_people() -> None:
    assert seeds_in_words([0, 1, 2]) == "0 … 2"
    assert seeds_in_words([3]) == "3"
    assert seeds_in_words([1, 5]) == "1, 5"


def test_a_page_opens_with_what_the_noise_leaves_of_a_final_model_and_has_it_once():
    words = "The noise drowns the votes: expect a model that hardly beats naming the most frequent class."
    page = render_page([report(level="L2", notes=(words,), alarms=(words,)), solo()], title="x")
    headline = page.partition('<div class="headline warning">')[2]
    assert headline.strip().startswith(f"<p>FedKT: {words}</p>")
    assert page.count(words) == 1


def test_a_headline_of_many_algorithms_names_the_ends_and_says_of_whom_it_speaks() -> None:
    others = {"solo": 0.70, "pate": 0.75, "fedkt-expert": 0.82, "centralised": 0.85}
    runs = [report(), *(report(algorithm=name, accuracy=value, votes={}) for name, value in others.items())]
    headline = render_page(runs, title="x").partition('<div class="headline')[2].partition("</div>")[0]
    assert "FedKT, experts has 12.0 points more than a party alone on average." in headline
    assert "FedKT, experts has 3.0 points less than training on the pooled rows." in headline
    assert "The other 2 lie in between." in headline
    assert "PATE" not in headline


def test_a_single_run_opens_with_its_interval_and_has_its_figures_once() -> None:
    """Wilson's interval of 9 of 10 is 59.6 to 98.2."""
    quality = measure_quality([0] * 6 + [1] * 4, [0] * 6 + [1] * 3 + [0], ["no", "yes"], [[0.5, 0.5]] * 10)
    page = read(render_page([report(accuracy=0.9, balanced_accuracy=0.875, quality=quality.as_dict())], title="x"))
    assert "FedKT on heart with 4 parties (seed 0): right on 90.0 % (59.6 to 98.2 %) of 10 rows" in page.words
    assert "Is it good enough?" not in page.words
    assert "The final model of FedKT, seed 0" in page.words


def test_figures_stand_beside_accuracy_with_differences_seed_by_seed() -> None:
    quality = [measure_quality([0, 1] * 5, [0, 1] * 5, ["no", "yes"], [[p, 1 - p]] * 10) for p in (0.5, 0.7)]
    runs = [report(seed=seed, quality=each.as_dict()) for seed, each in enumerate(quality)]
    runs += [report(seed=seed, algorithm="pate", quality=quality[0].as_dict(), votes={}) for seed in (0, 1)]
    words = read(render_page(runs, title="x")).words
    assert "Algorithm Accuracy % Balanced accuracy % AUC % Probabilities off by % Log loss" in words
    assert "More (+) or less (-) than FedKT on the same seeds, in points" in words
    # Off by 0 and .2, a mean of .1 with a standard deviation of .2/√2; of pate by 0 twice.
    assert "10.0 ± 14.1" in words
    assert "-10.0 ± 14.1 (1 of 2)" in words


def test_a_table_too_wide_for_a_phone_says_in_each_cell_what_it_is() -> None:
    quality = measure_quality([0, 1] * 5, [0, 1] * 5, ["no", "yes"], [[0.5, 0.5]] * 10).as_dict()
    page = read(render_page([report(quality=quality), report(algorithm="pate", quality=quality, votes={})], title="x"))
    heads = {given["data-head"] for tag, given in page.tags if tag == "td" and "data-head" in given}
    assert {"Accuracy %", "Balanced accuracy %", "AUC %"} <= heads
    assert ("table", {"class": "stack"}) in [(tag, dict(given)) for tag, given in page.tags]
    # Four short columns fit.
    assert phone_width(Grid(["Class", "rows", "found %"], [["yes", "1,000", "57.5"]])) < PHONE


def test_the_weights_of_experts_are_a_table() -> None:
    weighed = {**VOTES, "weights": {"north": 0.25, "south": 0.75}, "largest_shares": {"south": ["sick", 0.9]}}
    words = read(render_page([report(algorithm="fedkt-expert", votes=weighed)], title="x")).words
    assert "Party Weight Largest share south 75.0 % sick: 90.0 % north 25.0 % –" in words


def test_a_page_has_a_list_of_its_headings_and_no_column_in_which_nothing_was_measured() -> None:
    text = render_page([report(), solo()], title="x")
    links = re.findall(r'<a href="#(part-[0-9]+)">', text)
    assert len(links) >= 4
    assert all(f'id="{each}"' in text for each in links)
    assert re.findall(r"<h[23]>", text) == []
    assert "Log loss</th>" not in text
    assert re.findall(r"<th[^>]*></th>", text) == []


def test_what_draws_pictures_is_looked_for_before_anything_is_run(monkeypatch, tmp_path) -> None:
    from fedkt.cli import options
    from fedkt.errors import ConfigurationError

    monkeypatch.setattr(options, "has_pictures", lambda: False)
    with pytest.raises(ConfigurationError, match="need matplotlib and jinja2"):
        options.report_path(tmp_path / "page.html", as_json=False)
    assert options.report_path(None, as_json=True) is None
    assert options.report_path(None, as_json=False) is None
