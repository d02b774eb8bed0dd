"""Pure composition: k queries of an ε-DP mechanism are k·ε-DP, for every δ."""

from __future__ import annotations

from fedkt.privacy.price import Release


def epsilon(release: Release, delta: float) -> float:
    """k times the ε of one query; infinite where the mechanism has no pure guarantee."""
    return release.queries * release.noise.pure()
