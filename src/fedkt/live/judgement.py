"""Whether the final model is better for a party than its own: judged at the party, by rows laid aside before training.

Nothing of it leaves the party. At levels L1 and L2 the promise is about what was sent; whoever passes these figures on
tells something about the rows that no noise covers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedkt.algorithms.lesson import cut_by_identity
from fedkt.algorithms.solo import Solo
from fedkt.data.format import PLAIN, Format
from fedkt.data.mapping import NO_MAPPING, TableMapping
from fedkt.data.values import plural
from fedkt.errors import DataError, ModelError
from fedkt.federation import Diary, Party, seed_for
from fedkt.live.aside import AGAIN, AsideRecord, aside_key, aside_path, check_same_data, check_share, read_record
from fedkt.live.final_file import FinalModel
from fedkt.live.mapping_file import mapping_path, open_mapping
from fedkt.live.measure import quality_on
from fedkt.live.records import Records, check_identity, data_digest, read_records
from fedkt.live.result import bundle_behind
from fedkt.models.base import FittedModel
from fedkt.models.catalogue import trained_for
from fedkt.plan import Plan
from fedkt.quality import Difference, Quality, compare_accuracy, verdicts
from fedkt.votes import Labels

FOLDS = 5
"""Parts of the rows learned from, each left out once, by which families are compared; no row aside is looked at."""


@dataclass(frozen=True)
class OwnModel:
    """The best that a party has without the federation."""

    model: FittedModel
    family: str
    tried: dict[str, float]
    """Accuracy of each family on rows left out in turn, where there were several to choose from."""


@dataclass(frozen=True)
class Judgement:
    """The final model beside the party's own, on the rows laid aside."""

    party: str
    plan: str
    rows: int
    """Those laid aside, on which both are judged."""
    learned: int
    """Those that the party's own model has learned from."""
    family: str
    """Of the party's own model."""
    tried: dict[str, float]
    final: Quality
    own: Quality
    difference: Difference
    """Accuracy of the final model less that of the party's own."""
    bundle: str
    """SHA-256 of the bundle that was sent when these rows were laid aside."""
    bundle_known: bool
    """Whether the server's report says that the final model was made from it, or without any of this party's."""
    notes: tuple[str, ...]

    @property
    def outcome(self) -> str:
        """In a word or two: better, worse, or neither beyond chance."""
        if self.difference.better or self.difference.worse:
            return "better" if self.difference.better else "worse"
        return "no difference beyond chance"

    @property
    def verdict(self) -> str:
        """Whether the federation pays for this party, in a sentence or two."""
        points = f"{self.difference} of accuracy, 95 % interval, on {plural(self.rows, 'row')} laid aside"
        if self.difference.better:
            return f"The final model is better than your own ({self.family}): {points}."
        if self.difference.worse:
            return (
                f"The final model is worse than your own ({self.family}): {points}. On rows like yours the federation "
                "does not help you: use your own model."
            )
        return (
            f"The final model and your own ({self.family}) cannot be told apart: {points}. Whether the federation "
            "helps you is not shown by these rows."
        )

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        return {
            "party": self.party,
            "plan": self.plan,
            "outcome": self.outcome,
            "verdict": self.verdict,
            "rows": self.rows,
            "learned": self.learned,
            "family": self.family,
            "tried": self.tried,
            "difference": self.difference.as_dict(),
            "final": {**self.final.as_dict(), "verdicts": list(verdicts(self.final))},
            "own": {**self.own.as_dict(), "verdicts": list(verdicts(self.own))},
            "bundle": self.bundle,
            "bundle_known": self.bundle_known,
            "notes": list(self.notes),
        }


def judge_final(
    plan: Plan,
    name: str,
    final: FinalModel,
    *,
    data: Path,
    public: Path,
    identity: str | None = None,
    hold_out: float | None = None,
    form: Format = PLAIN,
    choices: TableMapping = NO_MAPPING,
    jobs: int = 1,
) -> Judgement:
    """The final model beside the party's own, on the rows that the party laid aside when it trained.

    Refused where it laid none aside, or where data, identities, share or plan are not those of that training.
    """
    plan.require(name)
    check_share(hold_out)
    if final.card.plan != plan.digest:
        raise ModelError(
            f"{final.model.name} was made under plan {final.card.plan[:12]}, and this is plan {plan.digest[:12]}. Pass "
            "the plan that it was made under, and the final model of that plan's server."
        )
    record = read_record(aside_path(plan, name, data), plan, name, identity=identity, share=hold_out)
    check_identity(plan, record.identity, share=record.share)
    mapping = open_mapping(mapping_path(name, data), choices, plan.columns, plan.classes).mapping
    check_same_data(record, data_digest(data, record.identity, record.share, form, mapping), data)
    used = bundle_behind(final, name)
    if used and used not in record.bundles:
        raise DataError(
            f"{final.model.name} was made from another bundle of {name!r} (SHA-256 {used[:12]}…) than the one that was "
            f"sent when these rows were laid aside ({record.bundles[-1][:12]}…). It may have learned from them. {AGAIN}"
        )
    diary = Diary()
    records = read_records(plan, name, data, record.identity, diary, share=record.share, form=form, mapping=mapping)
    aside = records.aside
    if aside is None or not len(aside.y):
        raise DataError(
            f"None of the {plural(len(records.y), 'row')} of {data} was laid aside: {record.share:g} of so few is "
            "none. Judge the final model by new rows: fedkt evaluate FINAL new.csv"
        )
    own = best_own_model(plan, name, records, plan.columns.encode(plan.read_public(public)), jobs=jobs)
    ours, labels = quality_on(final.model, aside.X, aside.y, plan.classes)
    theirs, own_labels = quality_on(own.model, aside.X, aside.y, plan.classes)
    return Judgement(
        party=name,
        plan=plan.digest,
        rows=len(aside.y),
        learned=len(records.y),
        family=own.family,
        tried=own.tried,
        final=ours,
        own=theirs,
        difference=compare_accuracy(aside.y, labels, own_labels),
        bundle=used or record.bundles[-1],
        bundle_known=used is not None,
        notes=(*dependent_rows(aside), *unknown_bundle(used, record)),
    )


def dependent_rows(aside: Records) -> Iterator[str]:
    """That intervals are too narrow, where several rows are one record's."""
    shared = sum(count for count in Counter(aside.ids or ()).values() if count > 1)
    if shared:
        yield (
            f"{plural(shared, 'row')} of those laid aside share their identity with others. The interval takes rows as "
            "independent, so it is too narrow."
        )


def unknown_bundle(used: str | None, record: AsideRecord) -> Iterator[str]:
    """That nobody could look up which bundle the final model was made from, or that it was made without one."""
    if used is None:
        digests = " or ".join(f"{each[:12]}…" for each in record.bundles)
        yield (
            f"Whether the server used the bundle that you sent when these rows were laid aside (SHA-256 {digests}) "
            "could not be looked up: no report.json beside the final model tells. If it used an earlier one, the final "
            "model has learned from these rows, and looks better here than it is."
        )
    elif not used:
        yield "By the server's report the final model was made without a bundle of yours."


def best_own_model(plan: Plan, name: str, records: Records, public: Any, *, jobs: int = 1) -> OwnModel:
    """The party's own model, of the plan's family for it or of the final model's, whichever does better.

    Which one is decided by the rows that are learned from, in folds: the rows aside have no say.
    """
    models = plan.models
    families = dict.fromkeys(
        (models.parties.get(name) or models.student or models.default, models.final or models.default)
    )
    solo = {family: Solo(trained_for(family, models.epochs)) for family in families}
    tried: dict[str, float] = {}
    if len(families) > 1:
        folds = left_out(records, aside_key(plan.digest, f"{name} folds"))
        tried = {family: fold_accuracy(plan, name, each, records, folds, public, jobs) for family, each in solo.items()}
    best = max(families, key=lambda family: tried.get(family, 0.0))
    (bundle,) = solo[best].party_steps([lone_party(plan, name, records, public)], None, jobs=jobs)
    (model,) = bundle.models
    assert isinstance(model, FittedModel)
    return OwnModel(model, best, tried)


def left_out(records: Records, key: bytes) -> list[Labels]:
    """The row numbers of each fold; rows of one identity stay together, and no fold is empty or everything."""
    places = list(map(str, range(len(records.y)))) if records.ids is None else records.ids
    folds = cut_by_identity(places, FOLDS, key)
    return [np.sort(fold) for fold in folds if 0 < len(fold) < len(records.y)]


def fold_accuracy(
    plan: Plan, name: str, solo: Solo, records: Records, folds: Sequence[Labels], public: Any, jobs: int
) -> float:
    """How often a family is right on rows that it has not learned from; 0 where there are too few rows to try."""
    rest = [records.take(np.setdiff1d(np.arange(len(records.y)), fold)) for fold in folds]
    parties = [lone_party(plan, name, part, public) for part in rest]
    if not parties:
        return 0.0
    bundles = solo.party_steps(parties, None, jobs=jobs)
    hits = sum(
        int(np.sum(bundle.models[0].predict(records.X[fold]) == records.y[fold]))
        for bundle, fold in zip(bundles, folds, strict=True)
    )
    return hits / sum(map(len, folds))


def lone_party(plan: Plan, name: str, records: Records, public: Any) -> Party:
    """The party as it is without the federation."""
    # Nothing leaves, so that a seed that others can work out gives nothing away.
    seed = seed_for(int(plan.digest[:15], 16), name)
    return Party(public, plan.classes, seed, image=plan.image, name=name, X=records.X, y=records.y)
