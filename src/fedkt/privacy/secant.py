"""The least amount of noise that keeps a budget, from as few prices as can be.

The logarithm of ε nearly is a straight line over that of the amount, so a curve through the prices that are known needs
about five where halving a bracket needs fifteen. The curve decides where to look, never what is answered: more noise
may cost the exact game more, so the amount returned is one whose own price was computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

MOST, LEAST = math.log(1e12), math.log(1e-9)
FARTHEST = math.log(4)
"""The longest step while one side is unknown."""


@dataclass(frozen=True)
class _Priced:
    """An amount and its price, both in logarithms."""

    amount: float
    over: float
    """ln(price / budget): above zero the budget is not kept."""


def least_amount(price_of: Callable[[float], float], budget: float, *, start: float, tolerance: float) -> float:
    """An amount whose price was at most the budget, while one at most a tolerance below it cost more; infinite if none.

    A budget that an amount of 1e-9 still keeps is answered with the least amount that was priced.
    """
    low, high = -math.inf, math.inf  # the largest amount known to cost too much, the least one known to keep the budget
    points: list[_Priced] = []
    amount, width, slow = math.log(start), math.inf, 0
    while high - low > math.log1p(tolerance):
        price = price_of(math.exp(amount))
        points.append(_Priced(amount, math.log(price / budget) if price > 0 else -math.inf))
        low, high = (low, amount) if price <= budget else (amount, high)
        if math.isinf(high - low):
            amount += _stride(points, tolerance) * (-1 if price <= budget else 1)
            if amount > MOST or amount < LEAST:
                break
            continue
        # At a jump or a kink the curve misleads: where two prices did not halve the bracket, its middle is next.
        slow = 0 if high - low <= width / 2 else slow + 1
        width = min(width, high - low) if slow else high - low
        guess = _meeting(points)
        guess += math.copysign(tolerance * 0.4, (high - guess) - (guess - low))  # the end further away is to come near
        amount = guess if slow < 2 and low < guess < high else (low + high) / 2
    return math.exp(high)


def _stride(points: Sequence[_Priced], tolerance: float) -> float:
    """How far it is to just beyond the budget by the curve; at least further every time, as a price may not fall."""
    last, farther = points[-1], tolerance / 8 * 4.0 ** min(len(points), 20)
    ahead = abs(_meeting(points) - last.amount) + tolerance * 0.4 if math.isfinite(last.over) else FARTHEST
    return min(FARTHEST, max(ahead, farther))


def _meeting(points: Sequence[_Priced]) -> float:
    """Where the curve through the three prices nearest to the budget meets it (inverse interpolation, by Neville).

    Not a number where every price is zero or infinite.
    """
    near = {each.over: each.amount for each in points if math.isfinite(each.over)}
    overs = sorted(near, key=abs)[:3]
    amounts = [near[over] for over in overs]
    if len(overs) < 2:
        return amounts[0] + overs[0] if overs else math.nan  # ε goes about as 1 / amount
    for span in range(1, len(overs)):
        ends = zip(overs, overs[span:], amounts, amounts[1:], strict=False)
        amounts = [(right * one - left * other) / (one - other) for one, other, left, right in ends]
    return amounts[0]
