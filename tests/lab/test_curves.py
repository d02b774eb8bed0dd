"""The picture of rounds: what it shows, and where it is refused."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest.importorskip("matplotlib")

from test_traffic import run

from fedkt.errors import ConfigurationError
from fedkt.lab.curves import accuracy_curves, check_curve, draw_curves
from fedkt.lab.setting import Setting
from fedkt.lab.svg import drawing
from fedkt.lab.traffic import Curve, curves

MB = 1_000_000
RUNS = [
    run("fedavg", [0.2, 0.5, 0.8], sent=MB, received=MB),
    run("fedavg", [0.4, 0.7, 0.8], sent=MB, received=MB, seed=1),
    run("fedkt", [0.6], sent=2 * MB, received=0),
    run("solo", [0.3], sent=None, received=None),
]


def panels(found: list[Curve]) -> list:  # type: ignore[type-arg]
    """The axes of the picture, with their lines."""
    with drawing():
        return draw_curves(found).axes


def heights(line) -> list[float]:  # type: ignore[no-untyped-def]
    """The values of a drawn line, in percent."""
    return [round(float(value), 6) for value in line.get_ydata()]


def test_rounds_are_lines_and_methods_of_one_round_dashed_levels() -> None:
    left, _ = panels(curves(RUNS))
    rising, fedkt, solo = left.get_lines()
    assert list(rising.get_xdata()) == [1, 2, 3]
    assert heights(rising) == [30, 60, 80]
    assert rising.get_linestyle() == "-"
    assert [heights(fedkt), heights(solo)] == [[60, 60], [30, 30]]
    assert {fedkt.get_linestyle(), solo.get_linestyle()} == {"--"}


def test_against_bytes_only_what_was_measured_is_drawn() -> None:
    _, right = panels(curves(RUNS))
    rising, fedkt = right.get_lines()
    assert list(rising.get_xdata()) == [2, 4, 6]
    assert (list(fedkt.get_xdata()), heights(fedkt)) == ([2], [60])


def test_a_band_is_one_standard_deviation_and_only_where_there_are_several_seeds() -> None:
    left, _ = panels(curves(RUNS))
    (band,) = left.collections
    seen = [point[1] for point in band.get_paths()[0].vertices if point[0] == 2]
    # 50 and 70: a mean of 60 with a spread of 20 / √2.
    assert (min(seen), max(seen)) == (pytest.approx(60 - 200**0.5), pytest.approx(60 + 200**0.5))
    assert not panels(curves(RUNS[:1]))[0].collections


def test_without_any_bytes_there_is_one_panel() -> None:
    assert len(panels(curves([run("fedavg", [0.2, 0.5], sent=None)]))) == 1


def test_bytes_over_a_wide_range_are_drawn_by_powers_of_ten() -> None:
    cheap = run("fedkt", [0.6], sent=MB // 10, received=0)
    assert panels(curves([RUNS[0], cheap]))[1].get_xscale() == "log"
    assert panels(curves(RUNS))[1].get_xscale() == "linear"


def test_the_picture_says_in_words_what_it_shows() -> None:
    told = ElementTree.fromstring(accuracy_curves(RUNS).svg()).findtext("{http://www.w3.org/2000/svg}desc")
    assert told == (
        "FedAvg: 80.0 ± 0.0 % after 3 rounds and 6.0 MB; FedKT: 60.0 % in one round and 2.0 MB; "
        "Solo: 30.0 % in one round."
    )


def test_an_algorithm_nobody_knows_stays_text() -> None:
    evil = "<script>alert(1)</script>"
    svg = accuracy_curves([run(evil, [0.2, 0.5])]).svg()
    assert "<script" not in svg
    ElementTree.fromstring(svg)


@pytest.mark.parametrize(("ending", "opening"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_a_curve_is_saved_by_the_ending_of_its_name_and_the_same_each_time(
    tmp_path: Path, ending: str, opening: bytes
) -> None:
    for name in ("a", "b"):
        accuracy_curves(RUNS).save(tmp_path / f"{name}.{ending}")
    first = (tmp_path / f"a.{ending}").read_bytes()
    assert first.startswith(opening)
    assert first == (tmp_path / f"b.{ending}").read_bytes()


def test_what_cannot_be_drawn_is_refused_before_it_is_run() -> None:
    rounds = [Setting("digits", algorithm="fedavg", rounds=2)]
    check_curve(Path("a.svg"), rounds)
    check_curve(Path("a.png"), [Setting("digits", algorithm="fedkt-prox")])
    with pytest.raises(ConfigurationError):
        check_curve(Path("a.png"), [Setting("digits", algorithm="fedkt-prox", rounds=1)])
    with pytest.raises(ConfigurationError, match=r"got 'a.gif'"):
        check_curve(Path("a.gif"), rounds)
    with pytest.raises(ConfigurationError, match="a method of several rounds"):
        check_curve(Path("a.svg"), [Setting("digits"), Setting("digits", algorithm="fedavg", rounds=1)])
    with pytest.raises(ConfigurationError, match="a method of several rounds"):
        accuracy_curves(RUNS[2:])
