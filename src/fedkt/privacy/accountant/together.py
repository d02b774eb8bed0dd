"""What several releases of the same unit cost together: reruns on the same parties compose.

Sound answers, of which the smallest is taken: releases that differ only in their number of queries are one longer
release, priced by every accountant; different ones add up by pure composition, by their Rényi curves, as Gaussian
mechanisms (μ² adds up), or, each at its share of δ, by their own best prices; votes of one kind with released numbers
beside them by the exact game (`joint`). That is for releases whose figures were all fixed without looking at a label.

**Releases chosen as one goes** (`adaptive`): whether there is another one, and with which noise, may hang on labels
that are out. Then an ε is that of a filter: a budget B, fixed beforehand, that every new release is checked against
with all earlier ones. A rule is such a filter alone if its cost never falls as releases are added and whatever it
accepts is (B, its δ)-private however it was chosen:

    pure        Σε, at δ = 0 (Rogers et al. 2016)
    one kind    all releases have the noise, classes and voters of the first (fewer, where voters may abstain). Only the
                number of queries is left to choose, and stopping before the largest that fits B is post-processing: any
                accountant, each of which lets the queries themselves be chosen as one goes
    gdp         Σμ² (Smith and Thakurta 2022), where the first run is Gaussian
    zcdp        Σρ, D_α ≤ ρα at all orders (Feldman and Zrnic 2021), where it is not

Accepting what *any* of these accepts is no rule of that kind. Let R_i be the outcomes whose releases rule i accepts and
no earlier rule does. On R_i the releases are those of rule i's filter run alone, so P(E ∩ R_i) ≤ e^B Q(E ∩ R_i) + δ_i
for every event E, and summed up P(E) ≤ e^B Q(E) + Σδ_i. So the shares must sum to δ, with a number of rules that no
label can move: pure has none, `one kind` half of δ, and gdp or zcdp, by the first run's noise, the other half.

The first run is fixed before any label is out, and so is whether anything beyond it can ever fit B. If not, nothing
else is released, and its price at the whole δ is the promise. If so, the rule that accepts more accepts the first run
too (its cost by that rule is no larger), and the sum above covers both. Hence the first run alone is priced at δ, and
by any sound answer: also one that no later release can be added to, as votes with class counts by the exact game.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fedkt.errors import PrivacyError
from fedkt.privacy.accountant import check_delta, gdp, price, rdp
from fedkt.privacy.price import Price, Release, common_adjacency


def merge_releases(releases: Sequence[Release]) -> list[Release]:
    """The releases with those of the same noise made into one; whatever could matter to a price is made no smaller."""
    groups: dict[object, Release] = {}
    for number, each in enumerate(releases):
        if each.queries == 0:
            continue
        # A cap on answers holds for one release at a time: two are not one of both lengths.
        alone = None if each.noise.most_answers is None else number
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


def price_together(releases: Sequence[Release], delta: float, *, adaptive: bool = False, first: int = 1) -> Price:
    """The price of all releases at δ; its `release` is the first kind with all queries that were voted on.

    `adaptive` is for releases chosen by what earlier ones said, all but the `first` so many, which were fixed together
    before any label was out: then ε is the least budget, fixed beforehand, whose filter accepts them all.
    """
    delta = check_delta(delta)
    units = {each.unit for each in releases}
    if len(units) > 1:
        raise PrivacyError(
            f"Releases protect different things and have no common ε: {', '.join(sorted(units))}. Price each alone."
        )
    releases = [replace(each, adjacency=common_adjacency(releases)) for each in releases]
    votes = [each for each in releases if each.queries]
    if not votes:
        raise PrivacyError("Nothing was released, so there is nothing to price.")
    if adaptive:
        run = sum(each.queries > 0 for each in releases[:first])
        total = _as_one_goes(votes, max(1, run), delta)
    else:
        total = _fixed_beforehand(votes, delta)
    return replace(total, releases=tuple(releases))


def _fixed_beforehand(releases: list[Release], delta: float) -> Price:
    """The price of releases whose figures were all fixed without looking at a label."""
    groups = merge_releases(releases)
    if len(groups) == 1:
        return price(groups[0], delta)
    share = delta / len(groups)
    answers = {
        "pure": _pure(groups),
        "rdp": rdp.from_curve(np.array([rdp.rdp_curve(each) for each in groups]).sum(axis=0), delta),
        "gdp": _sum_of_squares(groups, delta) if _all_gaussian(groups) else math.inf,
        "exact": _exact(groups, delta),
        "shares of δ": sum(price(each, share).epsilon for each in groups),
    }
    return _smallest(answers, groups, delta)


def _as_one_goes(releases: list[Release], run: int, delta: float) -> Price:
    """The filter's price, where the first `run` releases were fixed together (see the top of this page)."""
    groups, opening = merge_releases(releases), releases[0]
    alike = all(_of_kind(each, opening) for each in releases[1:])
    one_kind = replace(opening, queries=sum(each.queries for each in releases))
    if len(releases) == run:
        if alike:
            return price(one_kind, delta)
        answers = {"pure": _pure(groups), "zcdp": _concentrated(groups, delta), "exact": _exact(groups, delta)}
        answers["gdp"] = _sum_of_squares(groups, delta) if _all_gaussian(groups) else math.inf
        return _smallest(answers, groups, delta)
    half = delta / 2
    answers = {"pure": _pure(groups)}
    if _all_gaussian(releases[:run]):
        answers["gdp"] = _sum_of_squares(groups, half)
    else:
        answers["zcdp"] = _concentrated(groups, half)
    if alike:
        together = price(one_kind, half)
        if together.epsilon <= min(answers.values()):
            return replace(together, delta=delta)
    return _smallest(answers, groups, delta)


def _of_kind(each: Release, opening: Release) -> bool:
    """Whether a release could be more queries of the opening one: its votes are also votes of that one's voters."""
    return (
        each.noise == opening.noise
        and each.noise.most_answers is None  # a cap holds for one release at a time
        and each.classes == opening.classes
        and (
            (each.voters, each.abstentions) == (opening.voters, opening.abstentions)
            or (opening.abstentions and each.voters <= opening.voters)
        )
    )


def _all_gaussian(releases: Sequence[Release]) -> bool:
    return all(math.isfinite(each.noise.gdp_of(each.queries)) for each in releases)


def _smallest(answers: dict[str, float], groups: list[Release], delta: float) -> Price:
    best = min(answers, key=lambda name: answers[name])
    votes = [each for each in groups if each.noise.for_votes]
    release = replace(votes[0], queries=sum(each.queries for each in votes)) if votes else groups[0]
    many = f"{len(groups)} kind{'s' * (len(groups) > 1)} of release"
    return Price(answers[best], delta, f"{best} over {many}", release, answers)


def _pure(groups: list[Release]) -> float:
    return sum(each.queries * each.noise.pure() for each in groups)


def _concentrated(groups: list[Release], delta: float) -> float:
    """ε by Σρ: D_α ≤ ρα at every order of the grid, so one number bounds the whole curve and a filter can add it up."""
    curves = np.array([rdp.rdp_curve(each) for each in groups])
    return rdp.from_curve((curves / rdp.orders()).max(axis=1).sum() * rdp.orders(), delta)


def _sum_of_squares(groups: list[Release], delta: float) -> float:
    """ε by Σμ²."""
    mu = math.sqrt(sum(_mu(each) ** 2 for each in groups))
    return gdp.from_mu(mu, delta) if math.isfinite(mu) else math.inf


def _exact(groups: list[Release], delta: float) -> float:
    """ε by the exact game, where all but one kind of votes are released numbers with Gaussian noise."""
    from fedkt.privacy.accountant import joint

    votes = [each for each in groups if each.noise.for_votes]
    mu = math.sqrt(sum(each.noise.gdp_of(each.queries) ** 2 for each in groups if not each.noise.for_votes))
    return joint.epsilon(votes[0], mu, delta) if len(votes) == 1 and 0 < mu < math.inf else math.inf


def _mu(release: Release) -> float:
    """The μ of a release."""
    own = release.noise.gdp_of(release.queries)
    return own if math.isfinite(own) else math.sqrt(release.queries) * gdp.mu_of_pure(release.noise.pure())
