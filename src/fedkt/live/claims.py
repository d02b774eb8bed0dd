"""What parties at level L2 claim their noise promises: worked out again from public figures, never taken on trust."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fedkt.bundle import Bundle
from fedkt.bundle.manifest import Claim
from fedkt.errors import FedKTError
from fedkt.plan import Plan
from fedkt.privacy import Price, Release, make_noise
from fedkt.privacy.gaussian import GaussianCounts
from fedkt.privacy.statement import rounded_up

SLACK = 1e-6
"""How much smaller than ours a claimed ε may be, relative to it: another library's last digits, not a lie."""


def claim_for(plan: Plan) -> Claim:
    """What a party's noise promises, from the plan alone: nothing about the party is in it."""
    price = plan.price()
    assert price is not None
    return claim_of(price)


def claim_of(price: Price) -> Claim:
    """What the releases of one party's run promise at their price."""
    main, beside = main_releases(price.releases)
    assert all(release == main[0] for release in main), "every partition is asked the same"
    return Claim(
        mechanism=main[0].noise.name,
        scale=dict(main[0].noise.scale),
        queries=main[0].queries,
        partitions=len(main),
        voters=main[0].voters,
        classes=main[0].classes,
        epsilon=price.epsilon,
        delta=price.delta,
        unit="record",
        adjacency=main[0].adjacency,
        total_epsilon=price.epsilon,
        releases=len(price.releases),
        count_sigma=beside[0].noise.spread if beside else None,
    )


def main_releases(releases: Sequence[Release]) -> tuple[list[Release], list[Release]]:
    """What a party's run is about, that is votes or sums of features, and the class counts released beside them."""
    beside = [each for each in releases if isinstance(each.noise, GaussianCounts) and not each.noise.for_votes]
    return [each for each in releases if each not in beside], beside


def claim_fault(plan: Plan, claim: Claim | None) -> str:
    """Why a claim does not hold, or nothing where it does."""
    privacy = plan.privacy
    if plan.level != "L2" or privacy is None:
        return "" if claim is None else f"it makes a privacy claim, but at level {plan.level} a party adds no noise."
    if claim is None:
        return "it makes no privacy claim, which every bundle has at level L2."
    try:
        same_noise = make_noise(claim.mechanism, claim.scale, counts=True) == privacy.noise
    except FedKTError as reason:
        return f"its privacy claim names an impossible noise: {reason}"
    main, _ = main_releases(plan.releases)
    for what, claimed, expected in (
        ("noise", f"{claim.mechanism} {claim.scale}", None if same_noise else f"{privacy.mechanism} {privacy.scale}"),
        ("queries", claim.queries, main[0].queries),
        ("partitions", claim.partitions, len(main)),
        ("classes", claim.classes, len(plan.classes)),
        ("delta", claim.delta, privacy.delta),
        ("adjacency", claim.adjacency, privacy.adjacency),
        ("noise on the class counts", claim.count_sigma or 0.0, privacy.count_sigma or 0.0),
    ):
        if expected is not None and claimed != expected:
            return f"its privacy claim differs from the plan: {what} {str(claimed)[:200]}, agreed was {expected}."
    if claim.voters > plan.subsets:
        return f"its privacy claim has {claim.voters} voters, more than the {plan.subsets} subsets agreed on."
    if claim.releases < len(plan.releases):
        return f"its privacy claim counts {claim.releases} releases, fewer than the {len(plan.releases)} of this run."
    epsilon = price_of(plan, claim).epsilon
    if not claim.epsilon >= epsilon * (1 - SLACK):
        return f"its privacy claim understates epsilon: it says {claim.epsilon:.6g}, its figures cost {epsilon:.6g}."
    budget = plan.budget
    if budget is not None and not epsilon <= budget:
        return f"its noise costs epsilon {rounded_up(epsilon)}, more than the budget of {budget:g} agreed on."
    if budget is not None and not claim.epsilon <= budget * (1 + SLACK):
        return f"it claims epsilon {rounded_up(claim.epsilon)}, more than the budget of {budget:g} agreed on."
    return ""


def price_of(plan: Plan, claim: Claim) -> Price:
    """The price of what a claim describes: the plan's.

    Version 0.1 claimed fewer voters for a party with few rows, which may cost a little more or less: there the larger
    price counts, since nobody here can count a party's teachers.
    """
    voters = {plan.subsets, claim.voters}
    prices = [plan.model_copy(update={"subsets": each}).price() for each in sorted(voters)]
    return max((each for each in prices if each is not None), key=lambda price: price.epsilon)


def dearest(plan: Plan, bundles: Sequence[Bundle]) -> Price | None:
    """The price of the party whose record is protected least: parties' records are disjoint (Theorem 4).

    Who claims to pay more than we find is believed.
    """
    pairs = [(price_of(plan, bundle.claim), bundle.claim) for bundle in bundles if bundle.claim is not None]
    prices = [replace(price, epsilon=max(price.epsilon, claim.epsilon)) for price, claim in pairs]
    return max(prices, key=lambda price: price.epsilon, default=None)


def largest_total(bundles: Sequence[Bundle]) -> tuple[float, int] | None:
    """The ε of all releases of the party that has released most about its records, and how many they are."""
    claims = [bundle.claim for bundle in bundles if bundle.claim is not None]
    return max(((claim.total_epsilon, claim.releases) for claim in claims), default=None)
