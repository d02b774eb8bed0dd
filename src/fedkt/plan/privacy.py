"""The private part of a plan: which noise, on how many public rows, at which δ, and what it may cost in all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, FiniteFloat, model_validator

from fedkt.errors import ConfigurationError
from fedkt.plan.parts import Part, Text
from fedkt.privacy import Noise, Release, check_level, make_noise
from fedkt.privacy.mechanisms import USUAL
from fedkt.privacy.price import Adjacency

if TYPE_CHECKING:
    from fedkt.plan.agreement import Plan
    from fedkt.privacy import Price

DELTA = 1e-5


class Privacy(Part):
    """What is released with noise, and what it may cost."""

    mechanism: Text
    scale: dict[Text, FiniteFloat] = Field(max_length=16)
    """The noise's parameters by name."""
    queries: Annotated[int, Field(ge=1, le=2**53)] | Annotated[float, Field(gt=0, le=1)]
    """k: how many public rows are asked, or which fraction of them."""
    delta: Annotated[float, Field(gt=0, lt=1)]
    budget: Annotated[FiniteFloat, Field(gt=0)] | None = None
    """The largest ε that all releases of one owner (the server at L1, a party at L2) may cost together."""
    adjacency: Adjacency = "replace-one"
    """Against what a unit is protected: see `fedkt.privacy.price`."""
    count_sigma: Annotated[FiniteFloat, Field(gt=0)] | None = None
    """Expert voting at level L2: the noise on a party's class counts, in rows."""

    @model_validator(mode="after")
    def _checked(self) -> Privacy:
        check_level("L2", make_noise(self.mechanism, self.scale))
        return self

    @property
    def noise(self) -> Noise:
        """The agreed noise."""
        return make_noise(self.mechanism, self.scale)


def privacy_table(
    given: Mapping[str, Any],
    *,
    level: str,
    public_rows: int,
    classes: int,
    parties: int,
    partitions: int,
    subsets: int,
    counts: bool = False,
) -> dict[str, Any] | None:
    """The [privacy] table for what was asked for: an ε becomes the smallest noise that keeps it."""
    asked = {name: value for name, value in given.items() if value is not None and value != {}}
    if level == "L0":
        if asked:
            raise ConfigurationError(
                f"Level L0 adds no noise, but {', '.join(asked)} was given. Leave it out, or choose level L1 (noise at "
                "the server, a party is protected) or L2 (noise at the parties, a record is protected)."
            )
        return None
    epsilon = asked.pop("epsilon", None)
    asked.setdefault("delta", DELTA)
    asked.setdefault("queries", 1.0)
    if epsilon is None and not ("mechanism" in asked and "scale" in asked):
        raise ConfigurationError(
            f"Level {level} needs a noise: a mechanism with its scale (mechanism gaussian, sigma 40), or an epsilon "
            "that the smallest noise is found for."
        )
    if epsilon is not None:
        if "scale" in asked:
            raise ConfigurationError("Give a noise scale or an epsilon to calibrate it to, not both.")
        from fedkt.algorithms.calibration import calibrated
        from fedkt.algorithms.fedkt import number_of_queries

        asked.setdefault("mechanism", USUAL)
        found = calibrated(
            asked["mechanism"],
            level=level,
            epsilon=epsilon,
            delta=asked["delta"],
            queries=number_of_queries(asked["queries"], public_rows),
            partitions=partitions,
            subsets=subsets,
            classes=classes,
            parties=parties,
            counts=counts,
        )
        asked["scale"] = dict(found.scale)
    if counts and level == "L2":
        from fedkt.algorithms.calibration import count_noise
        from fedkt.algorithms.fedkt import number_of_queries

        votes = partitions * number_of_queries(asked["queries"], public_rows)
        asked["count_sigma"] = count_noise(make_noise(asked["mechanism"], asked["scale"]), votes).sigma
    return asked


def run_releases(plan: Plan) -> tuple[Release, ...]:
    """All that one run releases with noise, for each owner of a budget."""
    if plan.privacy is None:
        return ()
    return plan.algorithm().releases(public_rows=plan.public.rows, classes=len(plan.classes), parties=len(plan.parties))


def run_price(plan: Plan) -> Price | None:
    """What one run costs each owner of a budget."""
    if plan.privacy is None:
        return None
    return plan.algorithm().price(
        public_rows=plan.public.rows,
        classes=len(plan.classes),
        parties=len(plan.parties),
        delta=plan.privacy.delta,
    )


def rounded_budget(epsilon: float) -> float:
    """ε rounded up to three decimals: what one run costs, and no more; a budget of nothing would be none."""
    return max(1, math.ceil(epsilon * 1000)) / 1000
