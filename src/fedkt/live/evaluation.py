"""How good a final model is on labelled rows of anybody's, beside other models on the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.bundle import Bundle
from fedkt.data.format import PLAIN, Format
from fedkt.data.mapping import NO_MAPPING, TableMapping, read_mapped
from fedkt.data.values import as_key, plural
from fedkt.errors import BundleError, ConfigurationError, DataError, PrivacyError
from fedkt.live.final_file import FinalModel
from fedkt.live.inbox import gather
from fedkt.live.mailbox import Mailbox
from fedkt.live.measure import answers_of, labels_of
from fedkt.models.prediction import probabilities_of_all
from fedkt.plan import Plan
from fedkt.quality import Difference, Quality, compare_accuracy, measure_quality, verdicts
from fedkt.report import protects_parties


@dataclass(frozen=True)
class Rival:
    """Another model on the same rows."""

    name: str
    quality: Quality
    difference: Difference
    """Accuracy of the final model less that of this one."""

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        return {
            "name": self.name,
            "difference": self.difference.as_dict(),
            "quality": self.quality.as_dict(),
            "verdicts": list(verdicts(self.quality)),
        }


@dataclass(frozen=True)
class Evaluation:
    """A final model's quality, and how it does beside others."""

    source: str
    """The file of labelled rows."""
    final: FinalModel
    quality: Quality
    baseline: Rival | None = None
    """Another final model."""
    students: tuple[Rival, ...] = ()
    """Each student that a party has sent, on its own; a party with several has a number after its name."""
    notes: tuple[str, ...] = ()

    @property
    def verdicts(self) -> tuple[str, ...]:
        """What is wrong with the final model; empty where nothing is."""
        better = [each.name for each in self.students if each.difference.worse]
        if not better:
            return verdicts(self.quality)
        names = f"{', '.join(better[:3])}{f' and {len(better) - 3} more' if len(better) > 3 else ''}"
        beaten = f"The final model is worse than {len(better)} of {plural(len(self.students), 'student')}: {names}."
        return (*verdicts(self.quality), beaten)

    @property
    def comparisons(self) -> list[tuple[str, Difference]]:
        """The other models by name, and how much better the final model is; the baseline first."""
        rivals = [*([] if self.baseline is None else [self.baseline]), *self.students]
        return [(each.name, each.difference) for each in rivals]

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        return {
            "rows": self.quality.rows,
            "file": self.source,
            "plan": self.final.card.plan,
            "level": self.final.card.level,
            "verdicts": list(self.verdicts),
            "alarms": list(self.final.card.alarms),
            "quality": self.quality.as_dict(),
            "baseline": None if self.baseline is None else self.baseline.as_dict(),
            "students": [each.as_dict() for each in self.students],
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class EvaluationRows:
    """Rows as a final model reads them, and their classes."""

    X: NDArray[np.float32]
    y: NDArray[np.int64]
    notes: tuple[str, ...]


def read_labelled(
    final: FinalModel, path: Path, form: Format = PLAIN, choices: TableMapping = NO_MAPPING
) -> EvaluationRows:
    """The labelled rows of a file by the columns and classes that a final model has inside; the table is let go."""
    schema = final.card.columns
    table = read_mapped(schema, path, choices, form=form)
    if table.n_rows == 0:
        raise DataError(f"{path} has no rows to judge a model by. Give labelled rows.")
    notes = (*table.notes, *schema.unseen_notes(table))
    return EvaluationRows(schema.encode(table), schema.labels(table, final.card.classes), notes)


def evaluate_file(
    final: FinalModel,
    path: Path,
    *,
    baseline: FinalModel | None = None,
    bundles: Mailbox | None = None,
    plan: Plan | None = None,
    form: Format = PLAIN,
    choices: TableMapping = NO_MAPPING,
) -> Evaluation:
    """The quality of a final model on the labelled rows of a file.

    Beside it, on the same rows: another final model as `baseline`, and each student in the mailbox `bundles`, which is
    read with the same distrust as by a server of the `plan`. `form` is how the file is written.
    """
    check_bundles(final, bundles, plan)
    classes = final.card.classes
    choices = choices.checked(final.card.columns, classes)
    rows = read_labelled(final, path, form, choices)
    labels, probabilities = answers_of(final.model, rows.X, len(classes))
    quality = measure_quality(rows.y, labels, classes, probabilities)
    rival = None if baseline is None else compare_baseline(final, baseline, labels, rows, path, form, choices)
    students: tuple[Rival, ...] = ()
    notes = rows.notes
    if bundles is not None and plan is not None:
        students, refusals = compare_students(plan, bundles, labels, rows)
        notes = (*notes, *refusals)
    return Evaluation(str(path), final, quality, rival, students, notes)


def check_bundles(final: FinalModel, bundles: Mailbox | None, plan: Plan | None) -> None:
    """Refuse, before a row is read, bundles that cannot or must not be looked into."""
    if bundles is None:
        if plan is not None:
            raise ConfigurationError("--plan is for reading bundles: it goes with --bundles FOLDER. Leave it out.")
        return
    if protects_parties(final.card.level):
        raise PrivacyError(
            "This final model was made at level L1, which protects the parties: how good one party's students are "
            "leaves the server only through the noise. Leave --bundles out."
        )
    if plan is None:
        raise ConfigurationError(
            "--bundles needs the plan, which says whose bundles they are and with which keys they are signed: "
            "--plan plan.toml"
        )
    if plan.digest != final.card.plan:
        raise ConfigurationError(
            f"{final.model.name} was made under plan {final.card.plan[:12]}, and --plan is {plan.digest[:12]}. Pass "
            "the plan that it was made under."
        )


def compare_baseline(
    final: FinalModel,
    baseline: FinalModel,
    labels: NDArray[np.int64],
    rows: EvaluationRows,
    path: Path,
    form: Format,
    choices: TableMapping = NO_MAPPING,
) -> Rival:
    """Another final model on the same rows, by columns of its own; its classes must be the same."""
    classes, theirs = final.card.classes, baseline.card.classes
    own, other = [as_key(each) for each in classes], [as_key(each) for each in theirs]
    if set(own) != set(other):
        raise ConfigurationError(
            f"{baseline.model.name} tells other classes apart ({', '.join(map(str, theirs[:10]))}) than "
            f"{final.model.name} ({', '.join(map(str, classes[:10]))}). Only models for the same task are compared."
        )
    X = rows.X
    if baseline.card.columns != final.card.columns:
        schema = baseline.card.columns
        X = schema.encode(read_mapped(schema, path, choices, labelled=False, form=form))
    # The same classes may stand in another order.
    order = [other.index(each) for each in own]
    place = np.argsort(order)
    codes, probabilities = answers_of(baseline.model, X, len(theirs))
    answer = place[codes]
    quality = measure_quality(rows.y, answer, classes, None if probabilities is None else probabilities[:, order])
    return Rival(baseline.model.name, quality, compare_accuracy(rows.y, labels, answer))


def compare_students(
    plan: Plan, bundles: Mailbox, labels: NDArray[np.int64], rows: EvaluationRows
) -> tuple[tuple[Rival, ...], tuple[str, ...]]:
    """Each student in the mailbox on the same rows, and why some are not among them."""
    arrivals = gather(plan, bundles)
    notes = [f"{each.status}: {each.file}: {each.reason}" for each in arrivals if each.reason]
    found = {each.bundle.sender: each.bundle for each in arrivals if each.bundle is not None}
    if not found:
        reasons = "".join(f"\n  {note}" for note in notes)
        raise BundleError(f"No bundle of this plan's parties is in {bundles}.{reasons}")
    rivals: list[Rival] = []
    for name in plan.names:
        if name not in found:
            notes.append(f"No bundle of {name!r} is in {bundles}, or none that counts.")
            continue
        for number, answer in enumerate(answers_of_students(found[name], rows.X)):
            student = name if len(found[name].models) == 1 else f"{name}, student {number + 1}"
            if isinstance(answer, str):
                notes.append(f"{student} could not be run: {answer}")
                continue
            quality = measure_quality(rows.y, answer[0], plan.classes, answer[1])
            rivals.append(Rival(student, quality, compare_accuracy(rows.y, labels, answer[0])))
    return tuple(rivals), tuple(notes)


def answers_of_students(bundle: Bundle, X: Any) -> Sequence[tuple[NDArray[np.int64], NDArray[Any] | None] | str]:
    """The labels and probabilities of each student of a party among the agreed classes, or why it says nothing."""
    if not bundle.has_probabilities or bundle.background_class:
        return [each if isinstance(each, str) else (each, None) for each in labels_of(bundle, X)]
    answers = probabilities_of_all(bundle.models, X, bundle.n_outputs)
    return [each if isinstance(each, str) else (each.argmax(axis=1), each) for each in answers]
