"""Communication: formulas by hand, curves over seeds, and what an accuracy costs."""

from __future__ import annotations

from typing import Any

import pytest

from fedkt.lab.traffic import cost, curves, model_bytes, reach_cells, targets, traffic, worth_showing
from fedkt.report import NO_PRIVACY, Report


def run(algorithm: str, accuracies: list[float], *, sent: Any = 40, received: Any = 40, **changes: Any) -> Report:
    """A made-up run of ten parties; `sent` and `received` are bytes a round."""
    rounds = len(accuracies)
    history = [{"round": at + 1, "accuracy": value, "sent": sent, "received": received}
               for at, value in enumerate(accuracies)]  # fmt: skip
    values: dict[str, Any] = {
        "dataset": "svhn",
        "algorithm": algorithm,
        "model": "mlp",
        "parties": 10,
        "partitions": 3 if algorithm.startswith("fedkt") else None,
        "subsets": None,
        "level": "L0",
        "seed": 0,
        "accuracy": accuracies[-1],
        "balanced_accuracy": accuracies[-1],
        "label_accuracy": None,
        "epsilon": None,
        "privacy": NO_PRIVACY,
        "bytes_sent": None if sent is None else rounds * sent,
        "bytes_received": None if received is None else rounds * received,
        "seconds": 1.0,
        "cpu_seconds": None,
        "versions": {},
        "rounds": rounds,
        "history": tuple(history) if rounds > 1 else (),
    }
    return Report(**{**values, **changes})


def test_a_model_is_what_a_server_sends_to_one_party_in_one_round() -> None:
    # 40 bytes down to ten parties are 4 each; with half of them taking part they are 8.
    assert model_bytes([run("fedavg", [0.1, 0.2])]) == 4
    assert model_bytes([run("fedavg", [0.1, 0.2], participation=0.5)]) == 8
    # FedKT-Prox sends nothing down before its second round.
    assert model_bytes([run("fedkt-prox", [0.1, 0.2, 0.3], bytes_received=80)]) == 4
    # FedKT sends no model down, and SCAFFOLD more than a model.
    assert model_bytes([run("fedkt", [0.1], received=0), run("scaffold", [0.1, 0.2], received=80)]) is None


@pytest.mark.parametrize(
    ("algorithm", "rounds", "share", "formula", "expected"),
    [
        # n = 10, s = 3, M = 4.
        ("fedkt", 1, 1.0, "n·s·M", 120),
        ("fedavg", 5, 1.0, "2·n·M·r", 400),
        ("feddf", 5, 0.3, "2·n·M·r", 120),
        ("pfnm", 1, 1.0, "2·n·M·r", 80),
        ("scaffold", 5, 1.0, "4·n·M·r", 800),
        # 3 students of each party up, then four rounds of both ways: 120 + 4 · 80.
        ("fedkt-prox", 5, 1.0, "n·M·(s+2·(r−1))", 440),
    ],
)
def test_formulas_are_those_of_the_paper(
    algorithm: str, rounds: int, share: float, formula: str, expected: float
) -> None:
    # Whatever the run itself received is left out: M comes from FedProx.
    asked = run(algorithm, [0.1] * rounds, received=None, participation=share)
    line = next(each for each in traffic([run("fedprox", [0.1]), asked]) if each.algorithm == algorithm)
    assert (line.formula, line.formula_bytes) == (formula, expected)


def test_bytes_are_means_over_the_seeds_and_bounds_send_nothing() -> None:
    runs = [run("fedavg", [0.1, 0.2], sent=30), run("fedavg", [0.1, 0.2], sent=50, seed=1), run("solo", [0.5])]
    (line,) = traffic(runs)
    assert (line.sent, line.received, line.total) == (80, 80, 160)


def test_what_was_not_measured_is_no_zero() -> None:
    line = traffic([run("fedkt", [0.1], sent=None, received=None), run("fedavg", [0.1])])[0]
    assert (line.sent, line.received, line.total) == (None, 0, None)
    assert line.formula_bytes == 120
    # FedKT-Prox of a report that does not say s.
    assert traffic([run("fedkt-prox", [0.1, 0.2], partitions=None)])[0].formula_bytes is None


def test_bytes_are_shown_where_several_algorithms_can_be_compared() -> None:
    silent = run("solo", [0.5], sent=None, received=None)
    assert worth_showing([run("fedkt", [0.1]), silent])
    assert not worth_showing([run("fedkt", [0.1]), run("fedkt", [0.2], seed=1)])
    assert not worth_showing([silent, run("pate", [0.5], sent=None, received=None)])


def test_a_curve_is_the_mean_over_the_seeds_with_its_spread() -> None:
    (curve,) = curves([run("fedavg", [0.2, 0.5], sent=10), run("fedavg", [0.4, 0.9], sent=30, seed=1)])
    assert curve.mean.tolist() == pytest.approx([0.3, 0.7])
    # The sample standard deviation of two values is their distance divided by √2.
    assert curve.spread.tolist() == pytest.approx([0.2 / 2**0.5, 0.4 / 2**0.5])
    # (10 + 30) / 2 up and 40 down in each round.
    assert curve.bytes_so_far is not None
    assert curve.bytes_so_far.tolist() == [60, 120]


def test_seeds_of_different_length_are_compared_as_far_as_all_of_them_go() -> None:
    (curve,) = curves([run("fedavg", [0.2, 0.5, 0.9]), run("fedavg", [0.4, 0.7], seed=1)])
    assert curve.mean.tolist() == pytest.approx([0.3, 0.6])


def test_one_seed_has_no_spread_and_a_run_without_accuracy_no_curve() -> None:
    (curve,) = curves([run("fedavg", [0.2, 0.5]), run("fedkt", [0.5], accuracy=None)])
    assert curve.algorithm == "fedavg"
    assert curve.spread.tolist() == [0, 0]


def test_the_first_round_that_reaches_an_accuracy_counts_even_if_a_later_one_falls_back() -> None:
    (curve,) = curves([run("fedavg", [0.2, 0.6, 0.5, 0.7])])
    assert curve.reaches(0.2) == (1, 80)
    assert curve.reaches(0.55) == (2, 160)
    assert curve.reaches(0.61) == (4, 320)
    assert curve.reaches(0.71) is None


def test_targets_are_the_weakest_best_and_shares_of_the_best_of_all() -> None:
    # The bound is stronger than both, and no target: it does not communicate.
    found = curves([run("centralised", [0.99]), run("fedavg", [0.2, 0.6, 0.5]), run("fedkt-prox", [0.5, 0.8])])
    told = {each.why(): each.accuracy for each in targets(found)}
    assert told == {
        "the best of fedavg": pytest.approx(0.6),
        "80 % of the best of fedkt-prox": pytest.approx(0.64),
        "85 % of the best of fedkt-prox": pytest.approx(0.68),
        "90 % of the best of fedkt-prox": pytest.approx(0.72),
    }
    assert [name for name, *_ in reach_cells(found, targets(found))] == ["fedavg", "fedkt-prox"]


def test_only_bounds_have_no_targets() -> None:
    assert targets(curves([run("solo", [0.5])])) == []


def test_never_and_not_measured_are_told_apart() -> None:
    assert cost(None) == "–"
    assert cost((7, None)) == "7 · ?"
    assert cost((7, 12_340_000.0)) == "7 · 12.3"


def test_a_method_is_found_under_the_name_a_page_gives_it() -> None:
    lines = traffic([run("fedkt s=3 t=5 L0", [0.5]), run("fedavg", [0.1]), run("pate s=1", [0.5])])
    assert [each.formula for each in lines] == ["n·s·M", "2·n·M·r"]
