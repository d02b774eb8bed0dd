"""What trees answer: rows walk down them side by side. Compiled by numba; kept on disk."""

from __future__ import annotations

import numpy as np

from fedkt.models.forests.growth import Table, compiled

WALKERS = 64
"""Rows that walk down a tree side by side."""


@compiled
def add_shares(X: Table, roots: Table, depth: int, nodes: tuple[Table, ...], shares: Table, gaps: bool) -> None:
    """Add what each tree says of each row of X (float32) to `shares`, tree by tree.

    Some rows walk side by side, level by level: a processor waits for none of them. Who is at a leaf stays there.
    """
    feature, threshold, left, missing_left, value = nodes
    at = np.empty(WALKERS, np.int32)
    # Column by column, each row's value next to its neighbour's.
    block = np.zeros(X.shape[1] * WALKERS, np.float32)
    for first in range(0, len(X), WALKERS):
        here = min(WALKERS, len(X) - first)
        for j in range(X.shape[1]):
            for r in range(here):
                block[j * WALKERS + r] = X[first + r, j]
        for root in roots:
            for r in range(WALKERS):
                at[r] = root
            for _ in range(depth):
                for r in range(WALKERS):
                    node = np.uint32(at[r])
                    x = block[np.uint32(feature[node]) * np.uint32(WALKERS) + np.uint32(r)]
                    right = x > threshold[node]
                    if gaps:
                        # Of a missing value no comparison holds.
                        right |= (x != x) & (not missing_left[node])
                    at[r] = left[node] + right
            for r in range(here):
                for c in range(shares.shape[1]):
                    shares[first + r, c] += value[at[r], c]
