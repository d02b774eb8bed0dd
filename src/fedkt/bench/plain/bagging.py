"""Federated XGBoost as Flower's FedXgbBagging has it: what a user may pick instead, in a bare loop.

In each round every party boosts one tree onto the global model with its own rows, and the server appends all of them.
Trees of depth 6; what all trees of a round may add together is a rate, since fifty trees with a step of their own each
would overshoot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fedkt.bench.work import Array, Work
from fedkt.system.stages import stage

ROUNDS, DEPTH = 10, 6
RATES = {"heart": 0.3, "cod-rna": 2.0, "adult": 1.0}
"""What the trees of a round may add together, as a multiple of one tree's own step of 1.

Chosen on seeds 210 and 211, on rows that are no test rows (`python paper/moments_rivals.py bagging --rates`).
"""
USUAL_RATE = 1.0


def play(work: Work) -> Array:
    """The class of each test row, of two."""
    shares = [(X, y) for X, y, _ in work.parties]
    rate = RATES.get(work.dataset, USUAL_RATE)
    *_, (margins, _) = rounds_of(shares, work.test, rate=rate, seed=work.server_seed)
    return (margins > 0).astype(np.int64)


def rounds_of(
    shares: Sequence[tuple[Array, Array]], test: Array, *, rate: float, seed: int, rounds: int = ROUNDS
) -> Iterator[tuple[Array, int]]:
    """After each round the margins of the test rows, and the bytes that all parties have sent so far."""
    import xgboost

    options = {
        **{"objective": "binary:logistic", "max_depth": DEPTH, "eta": rate / len(shares), "base_score": 0.5},
        **{"nthread": 1, "tree_method": "hist", "seed": seed % 2**31},
    }
    with stage("boosting"):
        held = [xgboost.DMatrix(X, label=y) for X, y in shares]
        # A tree is asked about all rows at once, in one process; parties would ask it each about their own.
        known, sizes = xgboost.DMatrix(np.concatenate([X for X, _ in shares])), [len(y) for _, y in shares]
        margin = np.zeros(sum(sizes))
        tested, score, sent = xgboost.DMatrix(test), np.zeros(len(test)), 0
    for _ in range(rounds):
        with stage("boosting"):
            for own, part in zip(held, np.split(margin, np.cumsum(sizes)[:-1]), strict=True):
                own.set_base_margin(part)
            trees = [xgboost.train(options, own, num_boost_round=1) for own in held]
        with stage("margins"):
            # Trees alone, without the margin that they were boosted onto.
            for tree in trees:
                score += tree.predict(tested, output_margin=True)
                margin += tree.predict(known, output_margin=True)
            sent += sum(len(tree.save_raw("ubj")) for tree in trees)
        yield score.copy(), sent
