"""Numbers as a person would write them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any


def distinct(values: Iterable[Any]) -> str:
    """The different values, without None, separated by commas."""
    return ", ".join(dict.fromkeys(str(value) for value in values if value is not None))


def with_noun(number: int, one: str, many: str) -> str:
    """A number with its noun."""
    return f"{number:,} {one if number == 1 else many}"


def percent(value: float | None) -> str:
    """A share as a percentage, a dash where there is none."""
    return "–" if value is None or not math.isfinite(value) else f"{100 * value:.1f}\u00a0%"


def points(value: float | None) -> str:
    """The same without its sign, for a column that has it in its head."""
    return "–" if value is None else f"{100 * value:.1f}"


def points_with_spread(pair: tuple[float, float] | None, several: bool = True) -> str:
    """Mean ± standard deviation in percent without a sign; a single seed has no spread."""
    return "–" if pair is None else f"{100 * pair[0]:.1f} ± {100 * pair[1]:.1f}" if several else points(pair[0])


def with_spread(value: tuple[float, float] | None, several: bool) -> str:
    """A mean with the spread over its seeds."""
    if value is None:
        return "–"
    # Spaces that do not break: a number stays on one line with its spread and its sign.
    return f"{100 * value[0]:.1f}\u00a0±\u00a0{100 * value[1]:.1f}\u00a0%" if several else percent(value[0])


def human_seconds(number: float | None) -> str:
    """Seconds as a person would write them."""
    if number is None:
        return "–"
    return (
        f"{number:.1f} s" if number < 99.95 else f"{number / 60:.1f} min" if number < 5940 else f"{number / 3600:.1f} h"
    )


def seeds_in_words(seeds: Sequence[int]) -> str:
    """Seeds as a range where they form one."""
    several = len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds)))
    return f"{seeds[0]} … {seeds[-1]}" if several else ", ".join(str(seed) for seed in seeds)


def megabytes(count: float) -> str:
    """Millions of bytes with three digits or more."""
    millions = count / 1e6
    return f"{millions:,.0f}" if millions >= 99.95 else f"{millions:.1f}" if millions >= 9.995 else f"{millions:.2f}"


def human_bytes(number: float | None) -> str:
    """A number of bytes with three digits and a unit of 1,000s."""
    if number is None:
        return "–"
    for unit in ("B", "kB", "MB", "GB"):
        if number < 999.5:
            return f"{number:.0f} {unit}" if unit == "B" or number >= 99.95 else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"
