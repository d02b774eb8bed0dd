"""A party at level L2: what its noise costs is claimed in the bundle and written into its ledger before it trains."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from fedkt.algorithms.calibration import cautions
from fedkt.bundle.manifest import Claim
from fedkt.data.values import plural
from fedkt.errors import ConfigurationError, PrivacyError
from fedkt.federation import Diary
from fedkt.live.shelf import Seeds, clear, hold
from fedkt.plan import Plan
from fedkt.privacy import Ledger
from fedkt.privacy.entries import Spending
from fedkt.privacy.ledger import total_of
from fedkt.privacy.ledger_file import LedgerFile, reserve
from fedkt.privacy.statement import rounded_up


def ledger_path(plan: Plan, data: Path, ledger: Path | None) -> Path | None:
    """Where this party's releases are written down: beside its data unless said otherwise; nowhere without noise."""
    if plan.level != "L2":
        if ledger is not None:
            raise ConfigurationError(
                f"At level {plan.level} a party adds no noise and keeps no ledger. Leave --ledger out."
            )
        return None
    if ledger is not None:
        return ledger
    # "." is a folder whose name only its full path tells.
    data = data if data.name else data.resolve()
    return data.with_name(f"{data.name}.ledger")


def check_limits(plan: Plan, name: str, *, most_epsilon: float | None, most_delta: float | None) -> None:
    """Refuse a plan that asks more of this party than it allows, before anything of it is read.

    At level L1 the server spends: there the budget of all its releases counts, at L2 the ledger keeps to the limit.
    """
    for option, most, end in (("--most-epsilon", most_epsilon, math.inf), ("--most-delta", most_delta, 1.0)):
        if most is not None and not 0 < most < end:
            raise ConfigurationError(f"{option} must lie between 0 and {'1' if end == 1 else 'infinity'}, got {most}.")
    if most_epsilon is None and most_delta is None:
        return
    price, asks = plan.price(), []
    if price is None:
        asks.append(f"level {plan.level} adds no noise, so epsilon is infinite")
    else:
        unit = price.release.unit
        if most_epsilon is not None and not price.epsilon <= most_epsilon:
            asks.append(f"epsilon {rounded_up(price.epsilon)} for one {unit}, and you allow {most_epsilon:g}")
        elif most_epsilon is not None and plan.level == "L1" and not (plan.budget or math.inf) <= most_epsilon:
            asks.append(f"a budget of epsilon {plan.budget:g} for one {unit}, and you allow {most_epsilon:g}")
        if most_delta is not None and not price.delta <= most_delta:
            asks.append(f"delta {price.delta:g}, and you allow {most_delta:g}")
    if asks:
        raise PrivacyError(
            f"The plan asks more of {name!r} than its own limits allow: {'; '.join(asks)}. Nothing was read, trained "
            "or written. Agree on a plan with more noise, fewer queries or a smaller delta; or change --most-epsilon "
            "or --most-delta."
        )


def party_ledger(plan: Plan, name: str, path: Path, work: Path, most_epsilon: float | None = None) -> Ledger:
    """This party's ledger, under the plan's budget and its own; what kept noise gives is held in the working folder."""
    assert plan.privacy is not None
    return Ledger(
        owner=name,
        delta=plan.privacy.delta,
        budget=own_budget(plan, most_epsilon),
        file=LedgerFile.open(path),
        plan=plan.digest,
        hold=partial(hold, work),
    )


def spend(ledger: Ledger, plan: Plan, noise_seed: int) -> bool:
    """Write all releases of this run into the ledger before anything is trained, or refuse and write none.

    Whether anything was due.

    A run that goes on after being killed finds its own entries, by the key of its noise, and pays nothing.
    """
    ledger_file, budget = ledger.file, ledger.budget
    assert ledger_file is not None
    assert budget is not None
    due = due_releases(plan, ledger.owner, ledger_file, noise_seed)
    if not due:
        return False
    check_budget(plan, ledger_file, due, budget=budget, delta=ledger.delta)
    reserve(ledger_file, due, price=lambda entries: total_of(entries, ledger.delta), budget=budget)
    return True


def due_releases(plan: Plan, name: str, ledger_file: LedgerFile, noise_seed: int | None) -> list[Spending]:
    """The releases of this run that are not in the ledger; None for a noise that is yet to be drawn."""
    # As they will be written when they are released: found then, and not paid again.
    keyed = [each if noise_seed is None else each.keyed(noise_seed) for each in plan.releases]
    ours = [Spending(who=name, release=release, plan=plan.digest) for release in keyed]
    spent = ledger_file.spent(who=name)
    return [each for each in ours if noise_seed is None or not any(entry.is_same(each) for entry in spent)]


def check_budget(plan: Plan, ledger_file: LedgerFile, due: Sequence[Spending], *, budget: float, delta: float) -> float:
    """The ε of everything in the ledger with what is due, refused where the budget does not cover it."""
    name = due[0].who
    spent = ledger_file.spent(who=name)
    cost = total_of([*spent, *due], delta)
    if not cost <= budget:
        so_far = total_of(spent, delta)
        whose = "budget" if budget == plan.budget else "limit of its own (--most-epsilon)"
        raise PrivacyError(
            f"The {whose} of {name!r} does not cover this run: epsilon {so_far:.4g} is spent in "
            f"{plural(len(spent), 'earlier release')}, with this one it would be {cost:.4g}, allowed is {budget:g} "
            f"at delta {delta:g}. Nothing was trained or written. Training again on changed rows is a "
            "new release; if you need the file of the last run again, send the one you kept. Else agree on a plan "
            f"with a larger budget, more noise or fewer queries. (Ledger: {ledger_file.path})"
        )
    return cost


def own_budget(plan: Plan, most_epsilon: float | None) -> float | None:
    """What all releases of a party may cost: by the plan, and by a limit of its own."""
    return min((each for each in (plan.budget, most_epsilon) if each is not None), default=None)


def pay(
    plan: Plan,
    name: str,
    claim: Claim,
    seeds: Seeds,
    path: Path,
    folder: Path,
    diary: Diary,
    *,
    rows: int,
    most_epsilon: float | None = None,
) -> tuple[Ledger, Claim]:
    """The ledger in which this run is written down, and the claim with what all releases in it cost."""
    assert seeds.noise_seed is not None
    new = not path.exists()
    try:
        ledger = party_ledger(plan, name, path, folder, most_epsilon)
        charged = spend(ledger, plan, seeds.noise_seed)
    except PrivacyError:
        # Noise that was drawn for a run that is not paid for is nobody's; that of an earlier one is.
        if not seeds.resumed:
            clear(folder)
        raise
    assert ledger.file is not None
    spent = ledger.file.spent(who=ledger.owner)
    total = max(claim.epsilon, total_of(spent, ledger.delta))
    claim = claim.model_copy(update={"total_epsilon": total, "releases": len(spent)})
    tell(diary, plan, name, claim, rows, path, new=new, charged=charged)
    return ledger, claim


def tell(diary: Diary, plan: Plan, name: str, claim: Claim, rows: int, path: Path, *, new: bool, charged: bool) -> None:
    """What the party should know about its noise before it trusts it."""
    if new:
        diary.say(
            f"{path} is new: if releases about these rows were written into another ledger, pass it with --ledger, or "
            "they are not counted."
        )
    others = Counter(entry.who for entry in LedgerFile.open(path).entries if entry.who != name)
    for owner, count in others.items():
        diary.say(
            f"{path} also holds {plural(count, 'release')} of {owner!r}, not counted for {name!r}. If they were made "
            "from the same rows, only what all of them cost together is promised."
        )
    for caution in cautions(plan.level, plan.price(), [rows]):
        diary.say(caution)
    paid_for = (
        f"is written into {path}"
        if charged
        else f"was written into {path} when this run was begun, and nothing is charged now"
    )
    diary.say(
        f"epsilon {rounded_up(claim.epsilon)} at delta {claim.delta:g} {paid_for}. A budget of epsilon "
        f"{rounded_up(claim.total_epsilon)}, fixed beforehand, covers its {plural(claim.releases, 'release')} so far. "
        "Keep the bundle: making it again is another release, which is charged again."
    )
