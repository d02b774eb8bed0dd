"""The head of noisy sums: level L2, where M has noise of a known size, and G is that of the public rows.

In the main directions of the public rows, of variance g, ΣM tells of each class m = g·β + noise, β being the head's
weight there. The noise is τ² of the sums, and g·ν because so many rows, and so many public rows, are a sample. With
β ~ N(0, s²·g^a) before anything is seen, the likeliest β afterwards is s²g^(a+1) / (s²g^(a+2) + τ² + gν) · m: what
drowns in noise is left out little by little, which no ridge does. Size s² and slope a are those under which the sums
are likeliest (empirical Bayes; MacKay 1992): nothing is tuned, and what is done to noisy sums is free.

Public rows of other class shares than the parties' make another G. The head says how probable each public row's class
is, and that says which class shares the public rows have (Saerens, Latinne, Decaestecker 2002); each row then weighs as
much as its class is rarer there than at the parties, up to a limit, and the head is solved again.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from fedkt.algorithms.heads import FREE, CalibratedHead, Head, Sums, calibrate, centred
from fedkt.pooling import Matrix

SLOPES = (-1.0, -0.5, 0.0, 0.5, 1.0)
"""a: how fast weights become smaller where public rows vary less."""
SIZES = tuple(10.0 ** (power / 4) for power in range(-8, 37))
"""s², in units of τ²."""
TURNS = 2
"""How often public rows are weighed again."""
RAREST = 3.0
"""A row of a class that is rare among the public rows weighs so much at most."""
SHARE_STEPS = 100
"""Steps of Saerens' estimate of the public class shares."""
DIFFERENT = 2e-3
"""From this distance between public and parties' rows on, as a share of how far rows are from each other, public rows
are weighed."""
CERTAIN = 2.0
"""A distance counts only where it is so many standard deviations above what noise makes of none."""


def distance(sums: Sums, public: Matrix) -> float:
    """How far the mean of the parties' rows is from that of the public rows, as a share of how far rows are apart.

    What noise and chance make of it is taken off, and it is 0 where they might have made all of it.
    """
    gap = sums.moments[1:].sum(axis=1) / sums.rows - public[:, 1:].mean(axis=0)
    spread = float(public[:, 1:].var(axis=0).sum())
    noise = float(len(gap) * sums.moments.shape[1] * sums.variance / sums.rows**2)
    noise += spread * (1 / len(public) + 1 / max(sums.rows, 1.0))
    beyond = float(gap @ gap) - noise
    if beyond <= CERTAIN * math.sqrt(2 / len(gap)) * noise:
        return 0.0
    return beyond / max(spread, 1e-12)


def posterior_head(sums: Sums, public_rows: float) -> Head:
    """The likeliest head, before which weights of every size and slope were as likely as each other."""
    n_classes, shares = sums.moments.shape[1], sums.shares
    moments, gram = sums.moments / sums.rows, sums.gram / sums.rows
    mean = gram[1:, 0]
    variances, directions = np.linalg.eigh(gram[1:, 1:] - np.outer(mean, mean))
    used = variances > FREE * max(float(variances[-1]), FREE)
    variances, directions = variances[used], directions[:, used]
    seen = directions.T @ centred(moments[1:] - np.outer(mean, shares))
    noise = sums.variance / sums.rows**2
    chance = float((shares * (1 - shares)).sum()) / (n_classes - 1) * (1 / sums.rows + 1 / public_rows)
    around, squares = noise + chance * variances, (seen**2).sum(axis=1)
    likeliest, factors = -np.inf, np.zeros(len(variances))
    for slope in SLOPES:
        prior = (variances / variances.mean()) ** (slope + 2)
        for size in SIZES:
            signal = noise * size * prior
            total = signal + around
            found = -float(((n_classes - 1) * np.log(total) + squares / total).sum())
            if found > likeliest:
                likeliest, factors = found, signal / total / variances
    body = directions @ (factors[:, None] * seen)
    weights = centred(np.vstack([shares - mean @ body, body]))
    # Each class's own noise has gone into its weights.
    extra = (n_classes - 1) * noise * float(factors.sum())
    return Head("posterior", weights, float((weights * moments).sum()) - extra)


def class_weights(head: CalibratedHead, shares: Matrix, public: Matrix) -> Matrix:
    """Weights of public rows, summing to 1, under which their classes are about as frequent as these shares."""
    probable = head.probabilities(public)
    own, rows = shares, probable
    for _ in range(SHARE_STEPS):
        rows = probable * (own / shares)
        rows /= rows.sum(axis=1, keepdims=True)
        own = np.maximum(rows.mean(axis=0), FREE)
    weights = rows @ np.minimum(shares / own, RAREST)
    return np.asarray(weights / weights.sum())


def solve_noisy(sums: Sums, public: Matrix) -> CalibratedHead:
    """The calibrated head of noisy sums; public rows that are unlike the parties' are weighed first."""
    head = calibrate(posterior_head(sums, len(public)), sums, public)
    for _ in range(TURNS if distance(sums, public) > DIFFERENT else 0):
        weights = class_weights(head, sums.shares, public)
        sums = replace(sums, gram=(public * weights[:, None]).T @ public * sums.rows)
        head = calibrate(posterior_head(sums, 1 / float((weights**2).sum())), sums, public, weights)
    return head
