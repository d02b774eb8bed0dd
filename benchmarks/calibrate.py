"""What it costs to find the smallest noise for a budget, beside halving a bracket, as it was done before.

    python benchmarks/calibrate.py [--queries 40,2000] [--json FILE]

Both run in turn, on the same accountants with nothing remembered: CPU seconds of one process, the number of exact games
played, and the scale that was found. Two classes, 50 voters, ε = 2 at δ = 1e-5, one party that may abstain.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from fedkt.privacy import Release, accountant
from fedkt.privacy.accountant import game, price
from fedkt.privacy.calibrate import SLOW, TOLERANCE, smallest_noise
from fedkt.privacy.mechanisms import calibrated_alone, noise_class
from fedkt.privacy.noise import Noise
from fedkt.system.versions import versions

EPSILON, DELTA, VOTERS, CLASSES = 2.0, 1e-5, 50, 2


def by_halves(mechanism: str, queries: int) -> Noise:
    """The smallest noise by bisection: first by the quick accountants, then by all."""
    build = noise_class(mechanism).of_amount
    names = tuple(accountant.ACCOUNTANTS)

    def fits(amount: float, use: tuple[str, ...]) -> bool:
        release = Release(build(amount, queries=queries), queries, VOTERS, CLASSES, "party", abstentions=True)
        return price(release, DELTA, accountants=use).epsilon <= EPSILON

    def least(start: float, use: tuple[str, ...]) -> float:
        high, factor = start, 1.25
        while not fits(high, use):
            high, factor = high * factor, min(4.0, factor**1.5)
        low, factor = high / 1.25, 1.25
        while fits(low, use):
            factor = min(4.0, factor**1.5)
            high, low = low, low / factor
        while high > low * (1 + TOLERANCE):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if fits(middle, use) else (middle, high)
        return high

    start = least(math.sqrt(queries) / EPSILON, tuple(name for name in names if name not in SLOW))
    return build(least(start, names), queries=queries)


def by_secants(mechanism: str, queries: int) -> Noise:
    """What fedkt does."""
    return smallest_noise(
        mechanism,
        epsilon=EPSILON,
        delta=DELTA,
        queries=queries,
        voters=VOTERS,
        classes=CLASSES,
        unit="party",
        abstentions=True,
    )


def measured(way: Callable[[str, int], Noise], mechanism: str, queries: int) -> dict[str, float]:
    """CPU seconds, games and the scale of one calibration from scratch."""
    accountant._cached_epsilon.cache_clear()
    game.game_values.cache_clear()
    with mock.patch.object(game, "game_values", wraps=game.game_values) as played:
        started = time.process_time()
        noise = way(mechanism, queries)
        spent = time.process_time() - started
    return {"cpu_seconds": round(spent, 3), "games": played.call_count, **noise.scale}


def main() -> None:
    """Runs both in turn and prints a line each, then the ratio of all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--queries", default="40,2000")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    by_secants("gaussian", 2)  # imports are no calibration
    runs = []
    for queries in map(int, arguments.queries.split(",")):
        for mechanism in calibrated_alone():
            halves, secants = (measured(way, mechanism, queries) for way in (by_halves, by_secants))
            runs.append({"queries": queries, "mechanism": mechanism, "halves": halves, "secants": secants})
            print(json.dumps(runs[-1]))
    ratios = {}
    for queries in {run["queries"]: None for run in runs}:
        spent = {
            way: sum(run[way]["cpu_seconds"] for run in runs if run["queries"] == queries)
            for way in ("halves", "secants")
        }
        ratios[str(queries)] = round(spent["halves"] / spent["secants"], 2)
        print(f"{queries} queries: {spent['halves']:.2f} s by halves, {spent['secants']:.2f} s by secants")
    if arguments.json:
        result = {
            "benchmark": "calibrate",
            "command": f"python benchmarks/calibrate.py --queries {arguments.queries}",
            "epsilon": EPSILON,
            "delta": DELTA,
            "voters": VOTERS,
            "classes": CLASSES,
            "runs": runs,
            "CPU seconds, halves / secants": ratios,
            "versions": versions(),
        }
        arguments.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
