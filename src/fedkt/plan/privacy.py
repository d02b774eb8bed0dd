"""The private part of a plan: which noise, on how many public rows, at which δ, and what it may cost in all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, FiniteFloat, model_validator

from fedkt.errors import ConfigurationError
from fedkt.plan.method import Method
from fedkt.plan.parts import MAX_CLASSES, Part, Text
from fedkt.privacy import Noise, make_noise
from fedkt.privacy.price import Adjacency

DELTA = 1e-5


class Privacy(Part):
    """What is released with noise, and what it may cost."""

    mechanism: Text
    scale: dict[Text, FiniteFloat] = Field(max_length=16)
    """The noise's parameters by name."""
    queries: Annotated[int, Field(ge=1, le=2**53)] | Annotated[float, Field(gt=0, le=1)] | None = None
    """k: how many public rows are asked, or which fraction of them; None where none are."""
    delta: Annotated[float, Field(gt=0, lt=1)]
    budget: Annotated[FiniteFloat, Field(gt=0)] | None = None
    """The largest ε that all releases of one owner (the server at L1, a party at L2) may cost together."""
    adjacency: Adjacency = "replace-one"
    """Against what a unit is protected: see `fedkt.privacy.price`."""
    count_sigma: Annotated[FiniteFloat, Field(gt=0)] | None = None
    """Expert voting at level L2: the noise on a party's class counts, in rows."""
    class_shares: (
        Annotated[tuple[Annotated[FiniteFloat, Field(gt=0, lt=1)], ...], Field(max_length=MAX_CLASSES)] | None
    ) = None
    """Moments at level L1: the share of each class, in the plan's order, where everybody knows it."""

    @model_validator(mode="after")
    def _check(self) -> Privacy:
        assert self.noise
        return self

    @property
    def noise(self) -> Noise:
        """The agreed noise."""
        return make_noise(self.mechanism, self.scale, counts=True)


def privacy_table(
    request: Mapping[str, Any], *, method: Method, level: str, figures: dict[str, int], shape: Mapping[str, int]
) -> dict[str, Any] | None:
    """The [privacy] table for what was asked for: an ε becomes the smallest noise that keeps it."""
    table = {name: value for name, value in request.items() if value is not None and value != {}}
    if level == "L0":
        if table:
            raise ConfigurationError(
                f"Level L0 adds no noise, but {', '.join(table)} was given. Leave it out, or choose level L1 (noise at "
                "the server, a party is protected) or L2 (noise at the parties, a record is protected)."
            )
        return None
    if "epsilon" in table and "scale" in table:
        raise ConfigurationError("Give a noise scale or an epsilon to calibrate it to, not both.")
    table.setdefault("delta", DELTA)
    return method.privacy_table(table, level, figures, shape)


def rounded_budget(epsilon: float) -> float:
    """ε rounded up to three decimals: what one run costs, and no more; a budget of nothing would be none."""
    return max(1, math.ceil(epsilon * 1000)) / 1000
