"""The pictures: what they show, and that nothing a party is called can break them."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from fedkt.errors import ConfigurationError
from fedkt.lab.figures import figure_bars, vote_histograms, votes_in_words
from fedkt.lab.partition_figure import (
    partition_bubbles,
    round_down,
    rows_by_party,
    without_shared_word,
)
from fedkt.lab.results import Summary
from fedkt.lab.svg import is_narrow

SVG = "{http://www.w3.org/2000/svg}"
OWNERS = np.array(["north", "north", "south", "south", "south", "west"])
Y = np.array([0, 1, 1, 1, 1, 0])


def texts(svg: str) -> list[str]:
    """The words written in the picture."""
    return ["".join(element.itertext()) for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def description(svg: str) -> str:
    """The picture in words."""
    return ElementTree.fromstring(svg).findtext(f"{SVG}desc") or ""


def votes(unlabelled: int = 3, ties: int = 44) -> dict[str, object]:
    """A vote on ten rows: all agree on 8 of them, half on 2."""
    agreement, abstention = [0] * 20, [0] * 20
    agreement[19], agreement[10], abstention[0] = 8, 2, 10
    return {
        "agreement_histogram": agreement,
        "abstention_histogram": abstention,
        "unlabelled": unlabelled,
        "ties": ties,
    }


def test_rows_are_counted_per_party_and_class() -> None:
    names, counts = rows_by_party(OWNERS, Y, 2)
    assert names == ["north", "south", "west"]
    assert counts.tolist() == [[1, 1], [0, 3], [1, 0]]


def test_the_bubble_plot_says_in_words_who_is_small_and_who_lacks_a_class() -> None:
    told = description(partition_bubbles(OWNERS, Y, ["no", "yes"]).svg())
    assert "3 parties, 2 classes, 6 rows" in told
    assert "Fewest rows: west with 1; most: south with 3." in told
    assert "without any row of some class: 2." in told


def test_few_parties_have_their_numbers_of_rows_written_out() -> None:
    written = texts(partition_bubbles(OWNERS, Y, ["no", "yes"]).svg())
    assert {"north", "south", "west", "no", "yes", "3"} <= set(written)


def test_the_area_of_a_bubble_grows_with_the_rows() -> None:
    owners, y = np.repeat(["a", "b"], [400, 100]), np.zeros(500, dtype=int)
    svg = partition_bubbles(owners, y, ["only"]).svg()
    shapes = re.findall(r'PathCollection_\d+">\s*<defs>\s*<path id="[^"]*" d="M 0 ([\d.]+)', svg)
    small, large = sorted(float(radius) for radius in shapes)
    assert large / small == pytest.approx(2.0, rel=0.01)


@pytest.mark.parametrize("parties", [1, 4, 50, 200, 1000])
def test_any_number_of_parties_gives_a_picture_of_bounded_size(parties: int) -> None:
    owners = np.array([f"party {number:04d}" for number in range(parties)] * 4)
    svg = partition_bubbles(owners, np.repeat([0, 1, 2, 3], parties), list("abcd")).svg()
    _, _, width, height = (float(number) for number in (ElementTree.fromstring(svg).get("viewBox") or "").split())
    # A few fit on a phone: 4.4 inches of 72 units, 8 inches for more.
    assert width == pytest.approx(316.8 if parties <= 6 else 576)
    assert is_narrow(svg) == (parties <= 6)
    assert height < 1400
    assert len(svg) < 1_000_000


def test_the_word_all_parties_share_is_written_once() -> None:
    assert without_shared_word(["party 0", "party 1"]) == ("party", ["0", "1"])
    assert without_shared_word(["Cleveland", "Long Beach"]) == ("", ["Cleveland", "Long Beach"])
    assert without_shared_word(["party 0"]) == ("", ["party 0"])


def test_a_hostile_party_name_stays_text() -> None:
    names = ["<script>alert(1)</script>", "$\\frac{", 'id="x" href="#y"', "a\x00b\u202e", "</text>", "]]>&amp;"]
    svg = partition_bubbles(np.array(names), np.zeros(len(names), dtype=int), ["<b>"]).svg()
    assert "<script" not in svg
    written = texts(svg)
    assert "<b>" in written
    assert 'id="x" href="#y"' in written
    assert "a\ufffdb\ufffd" in written
    assert "$\\frac{" in written


def test_the_same_numbers_give_the_same_bytes_and_no_date() -> None:
    first, second = (partition_bubbles(OWNERS, Y, ["no", "yes"]).svg() for _ in range(2))
    assert first == second
    assert "<metadata" not in first
    assert "<style" not in first


def test_ids_of_two_pictures_on_one_page_do_not_clash() -> None:
    first, second = partition_bubbles(OWNERS, Y, ["no", "yes"]).svg(), vote_histograms(votes())[0].svg()
    ids = [set(re.findall(r'\bid="([^"]+)"', svg)) for svg in (first, second)]
    assert ids[0]
    assert not ids[0] & ids[1]
    for svg, own in zip((first, second), ids, strict=True):
        assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg)) <= own


def test_what_the_vote_pictures_do_not_show_is_said_in_words() -> None:
    drawn = votes(unlabelled=3, ties=44)
    assert votes_in_words(drawn) == "Of 10 public rows, 3 got no vote and no label; 44 had a tie, broken at random."
    svg, _ = (picture.svg() for picture in vote_histograms(drawn))
    # Bins at their middles: (8 · 0.975 + 2 · 0.525) / 10 = 0.885.
    assert "Mean agreement about 88%" in description(svg)


def test_each_figure_has_a_picture_of_its_own_for_the_algorithms_that_it_was_measured_of() -> None:
    summaries = [
        Summary("fedkt", (0, 1, 2), (0.842, 0.005), (0.76, 0.01), None, 1.0, None, auc=(0.9, 0.02)),
        Summary("solo", (0,), (0.79, 0.0), (0.7, 0.0), None, 1.0, None),
    ]
    accuracy, balanced, auc = (picture.svg() for picture in figure_bars(summaries))
    assert {"FedKT", "Solo", "84.2 %", "79.0 %"} <= set(texts(accuracy))
    assert "Test accuracy: FedKT 84.2% ± 0.5; Solo 79.0%." in description(accuracy)
    assert {"FedKT", "Solo", "76.0 %", "70.0 %"} <= set(texts(balanced))
    assert "AUC: FedKT 90.0% ± 2.0." in description(auc)
    assert all(map(is_narrow, (accuracy, balanced, auc))), "a phone shows them without scrolling"
    assert len(figure_bars([summaries[1]])) == 2


@pytest.mark.parametrize(("value", "expected"), [(0.3, 1), (1, 1), (4.9, 2), (5, 5), (999, 500), (1000, 1000)])
def test_round_sizes_for_the_legend(value: float, expected: int) -> None:
    assert round_down(value) == expected


@pytest.mark.parametrize(("ending", "opening"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_a_partition_is_saved_by_the_ending_of_its_name(tmp_path: Path, ending: str, opening: bytes) -> None:
    first, second = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    for path in (first, second):
        partition_bubbles(OWNERS, Y, ["no", "yes"]).save(path)
    assert first.read_bytes().startswith(opening)
    assert first.read_bytes() == second.read_bytes()


def test_an_unknown_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"\.png, \.svg or \.pdf, got 'a\.gif'"):
        partition_bubbles(OWNERS, Y, ["no", "yes"]).save(tmp_path / "a.gif")


def test_a_class_outside_the_list_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="with 1 classes"):
        partition_bubbles(OWNERS, Y, ["no"])


def test_drawing_leaves_the_users_matplotlib_settings_alone() -> None:
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    partition_bubbles(OWNERS, Y, ["no", "yes"]).svg()
    assert dict(mpl.rcParams) == before
