"""What several releases of the same unit cost together: reruns on the same parties compose.

Sound answers, of which the smallest is taken: releases that differ only in their number of queries are one longer
release, priced by every accountant; different ones add up by pure composition, by their Rényi curves, as Gaussian
mechanisms (μ² adds up), or, each at its share of δ, by their own best prices.

The figures of all releases must be fixed without looking at earlier labels. Where they are chosen as one goes
(`adaptive`), what is promised is that of a filter: a budget that every new release is checked against beforehand. That
is sound for costs that are one number and add up on every path: pure ε (Rogers et al. 2016), ρ at all Rényi orders
(Feldman and Zrnic 2021), μ² (Smith and Thakurta 2022). With one noise and the same voters only the number of
queries is left to choose, and stopping before the largest that fits the budget is post-processing: then every
accountant stays sound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fedkt.errors import PrivacyError
from fedkt.privacy.accountant import check_delta, gdp, price, rdp
from fedkt.privacy.confident import ConfidentGaussian
from fedkt.privacy.gaussian import Gaussian, GaussianCounts
from fedkt.privacy.price import Price, Release


def merged(releases: Sequence[Release]) -> list[Release]:
    """The releases with those of the same noise made into one; whatever could matter to a price is made no smaller."""
    groups: dict[object, Release] = {}
    for number, each in enumerate(releases):
        if each.queries == 0:
            continue
        # The cap on answers of confident-gaussian holds for one release at a time: two are not one of both lengths.
        alone = number if isinstance(each.noise, ConfidentGaussian) else None
        # With three classes or more no accountant asks how many there are.
        key = (each.noise, min(each.classes, 3), alone)
        if key in groups:
            other = groups[key]
            each = replace(
                other,
                queries=other.queries + each.queries,
                # With abstentions, every vote of fewer voters is also one of more voters.
                voters=max(other.voters, each.voters),
                abstentions=other.abstentions or each.abstentions or other.voters != each.voters,
                classes=max(other.classes, each.classes),
            )
        groups[key] = each
    return list(groups.values())


def price_together(releases: Sequence[Release], delta: float, *, adaptive: bool = False) -> Price:
    """The price of all releases at δ; its `release` is the first kind with all queries that were voted on.

    `adaptive` keeps to what also holds, as a filter, when releases are chosen by what earlier ones said.
    """
    delta = check_delta(delta)
    kinds = {(each.unit, each.adjacency) for each in releases}
    if len(kinds) > 1:
        raise PrivacyError(
            "Releases protect different things and have no common ε: "
            + "; ".join(sorted(f"{unit}, {adjacency}" for unit, adjacency in kinds))
            + ". Price each kind alone."
        )
    groups = merged(releases)
    if not groups:
        raise PrivacyError("Nothing was released, so there is nothing to price.")
    same = len({(each.voters, each.classes, each.abstentions) for each in releases}) == 1
    if len(groups) == 1 and (same or not adaptive):
        return price(groups[0], delta)
    answers = {"pure": sum(each.queries * each.noise.pure() for each in groups)}
    curves = np.array([rdp.curve(each) for each in groups])
    if adaptive:
        # D_α ≤ ρα at every order of the grid, so one number bounds the whole curve and a filter can add it up.
        answers["zcdp"] = rdp.from_curve((curves / rdp.orders()).max(axis=1).sum() * rdp.orders(), delta)
    else:
        answers["rdp"] = rdp.from_curve(curves.sum(axis=0), delta)
    mu = math.sqrt(sum(_mu(each) ** 2 for each in groups))
    answers["gdp"] = gdp.from_mu(mu, delta) if math.isfinite(mu) else math.inf
    if not adaptive:
        share = delta / len(groups)
        answers["shares of δ"] = sum(price(each, share).epsilon for each in groups)
    best = min(answers, key=lambda name: answers[name])
    votes = [each for each in groups if not isinstance(each.noise, GaussianCounts)]
    whole = replace(votes[0], queries=sum(each.queries for each in votes)) if votes else groups[0]
    return Price(answers[best], delta, f"{best} over {len(groups)} kinds of release", whole, answers)


def _mu(release: Release) -> float:
    """The μ of a release with Gaussian noise; infinite for the others."""
    if isinstance(release.noise, ConfidentGaussian):
        return release.noise.gdp_of(release.queries)
    if isinstance(release.noise, Gaussian):
        return math.sqrt(2 * release.queries) / release.noise.sigma
    return math.inf
