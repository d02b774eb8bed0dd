"""How CPU seconds grow with parties, rows, partitions, subsets and classes: an exponent for each, with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from fedkt.errors import ConfigurationError

AXES: dict[str, tuple[int, ...]] = {
    "parties": (4, 8, 16, 32),
    "public_rows": (1_000, 2_000, 4_000, 8_000, 16_000),
    "private_rows": (400, 800, 1_600, 3_200, 6_400),
    "partitions": (1, 2, 4, 8),
    "subsets": (2, 4, 8, 16, 32),
    "classes": (2, 4, 8, 16),
}
"""What is made larger, one at a time; all else is as `rows.made_up` has it. Private rows are those of one party."""
BAGGED = ("parties", "private_rows")
"""What bagging of boosted trees has as well."""
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Exponent:
    """The slope of a line through logarithms, and where it lies with 95 % confidence."""

    value: float
    low: float
    high: float


def exponent_of(values: Sequence[float], seconds: Sequence[float]) -> Exponent:
    """p of seconds ≈ c · valueᵖ, by least squares of the logarithms."""
    from scipy.stats import t

    x, y = np.log(values), np.log(seconds)
    away = x - x.mean()
    slope = float(away @ y / (away @ away))
    rest = y - y.mean() - slope * away
    freedom = len(x) - 2
    error = float(np.sqrt(rest @ rest / freedom / (away @ away)))
    reach = float(t.ppf((1 + CONFIDENCE) / 2, freedom)) * error
    return Exponent(slope, slope - reach, slope + reach)


def ways_along(axis: str) -> tuple[str, ...]:
    """Who is measured along this axis."""
    bagged = axis in BAGGED and find_spec("xgboost") is not None
    return ("fedkt", "plain", "bagging") if bagged else ("fedkt", "plain")


def measure_axis(axis: str, *, repeats: int, model: str, seed: int) -> list[dict[str, Any]]:
    """CPU seconds of every way at every value, in turn; in one process, whose first run is not counted."""
    from fedkt.bench.child import measure, way_of
    from fedkt.bench.plain.learners import MODELS
    from fedkt.bench.rows import made_up

    if model not in MODELS:
        raise ConfigurationError(f"There is no bare loop over {model!r}. Choose one of: {', '.join(MODELS)}.")
    plays = {way: way_of(way) for way in ways_along(axis)}
    for play in plays.values():
        play(made_up(model=model).toy())
    points = []
    for _ in range(repeats):
        for value in AXES[axis]:
            shape: dict[str, Any] = {axis: value}
            work = made_up(model=model, seed=seed, **shape)
            figures = {way: measure(work, play) for way, play in plays.items()}
            points.append({"value": value, **{way: each["cpu_seconds"] for way, each in figures.items()}})
    return points


def growth_along(axis: str, points: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The exponents of every way, and by how much fedkt costs more than others at the largest value."""
    values = [point["value"] for point in points]
    ways = [name for name in points[0] if name != "value"]
    last = [point for point in points if point["value"] == max(values)]
    return {
        "axis": axis,
        "exponents": {way: vars(exponent_of(values, [point[way] for point in points])) for way in ways},
        "ratios": {
            way: float(np.median([point["fedkt"] / point[way] for point in last])) for way in ways if way != "fedkt"
        },
        "points": list(points),
    }
