"""The same models in bare loops, as somebody who knows NumPy, scikit-learn and PyTorch writes them without fedkt.

Rows are dealt to subsets, ties broken and models seeded by the numbers that fedkt draws, so that both sides train the
same models on the same rows; `SEED_PATHS` in `learners` says how. One process, one thread, nothing slow on purpose.
"""

from __future__ import annotations

from fedkt.bench.plain import bagging, experts, sums, votes
from fedkt.bench.work import Array, Work

LOOPS = {
    "consistent": votes.play,
    "expert": experts.with_counts,
    "expert-no-counts": experts.without_counts,
    "moments": sums.play,
}


def play(work: Work) -> Array:
    """The class that the plain loop's final model finds for each test row."""
    return LOOPS[work.voting](work)


def play_bagging(work: Work) -> Array:
    """The same of federated bagging of boosted trees, whatever the voting."""
    return bagging.play(work)
