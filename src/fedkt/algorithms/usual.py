"""What runs where nobody chose an algorithm: what was best wherever it was measured (docs/decisions/0017-defaults.md).

Whoever names a family, or the shape of a vote, wants votes of that family. Who names neither is served by the better of
two ways at level L0 (`auto`), and by moments where noise is added.
"""

from __future__ import annotations

from collections.abc import Collection

from fedkt.algorithms.auto import Auto
from fedkt.algorithms.moments import Moments
from fedkt.algorithms.voting import algorithm_name, make_voting, usual_voting

TEXT_FAMILY = "logistic"
"""Who learns texts where nobody names a family: trees ask for one word at a time (docs/guide/data.md, Texts)."""
OF_VOTES = frozenset(
    {
        *("model", "teacher", "student", "final", "party_models", "epochs", "copies"),
        *("partitions", "subsets", "queries", "mechanism", "weights"),
    }
)
"""What is chosen by whoever wants votes."""


def usual_algorithm(level: str, chosen: Collection[str] = ()) -> str:
    """The name of what runs at a level where these settings were chosen, and no algorithm."""
    if OF_VOTES.intersection(chosen):
        return algorithm_name(make_voting(usual_voting(level)))
    return Auto.name if level == "L0" else Moments.name
