"""Train many models for an algorithm, groups of them over processes (see `models.ensemble`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.models.base import FittedModel, one_thread
from fedkt.models.ensemble import Group, TrainingTask, fit_and_ask, fit_group, grouped, is_neural
from fedkt.system.parallel import in_parallel

Labels = NDArray[np.int64]
Done = Callable[[int], None]
"""Called with the number of models that were just trained."""


Say = Callable[[str], None]
"""Keeps a sentence for the report."""


def train_models(
    tasks: Sequence[TrainingTask],
    n_classes: int,
    *,
    jobs: int = 1,
    done: Done | None = None,
    say: Say | None = None,
    what: str = "models",
) -> list[FittedModel]:
    """The trained model of each task; `say` is told how the networks among them, called `what`, are trained."""
    models: dict[int, FittedModel] = {}
    for group, fitted in over_groups(_fit, tasks, n_classes, None, jobs=jobs, done=done, say=say, what=what):
        models.update(zip(group.places, fitted, strict=True))
    return [models[place] for place in range(len(tasks))]


def train_and_ask(
    tasks: Sequence[TrainingTask],
    n_classes: int,
    asked: Sequence[Any],
    *,
    jobs: int = 1,
    done: Done | None = None,
    say: Say | None = None,
    what: str = "models",
) -> Iterator[tuple[int, Labels | str]]:
    """What each trained model says about its rows in `asked`, with its number, in any order; the models are dropped.

    A model that may fail and does gives its reason instead.
    """
    for group, answers in over_groups(_fit_and_ask, tasks, n_classes, asked, jobs=jobs, done=done, say=say, what=what):
        yield from zip(group.places, answers, strict=True)


def over_groups(
    work: Callable[[Any], Any],
    tasks: Sequence[TrainingTask],
    n_classes: int,
    asked: Sequence[Any] | None,
    *,
    jobs: int,
    done: Done | None,
    say: Say | None,
    what: str,
) -> Iterator[tuple[Group, Any]]:
    """Each group of tasks with the result of its work."""
    groups = grouped(tasks, n_classes)
    note = how_trained([group for group in groups if is_neural(tasks[group.places[0]].estimator)], what)
    if say is not None and note is not None:
        say(note)
    batches = [
        (
            [tasks[place] for place in group.places],
            n_classes,
            None if asked is None else [asked[place] for place in group.places],
        )
        for group in groups
    ]
    sizes = [sum(task.n_rows for task in batch[0]) for batch in batches]
    for group, result in zip(groups, in_parallel(work, batches, jobs=jobs, sizes=sizes), strict=True):
        yield group, result
        if done is not None:
            done(len(group.places))


def _fit(batch: tuple[list[TrainingTask], int, None]) -> list[FittedModel]:
    tasks, n_classes, _ = batch
    with one_thread():
        return fit_group(tasks, n_classes)


def _fit_and_ask(batch: tuple[list[TrainingTask], int, list[Any]]) -> list[Labels | str]:
    tasks, n_classes, asked = batch
    with one_thread():
        return fit_and_ask(tasks, n_classes, asked)


def how_trained(groups: Sequence[Group], what: str) -> str | None:
    """In words, how the networks in these groups are trained; None where there are not several."""
    trained = sum(len(group.places) for group in groups)
    if trained < 2:
        return None
    reasons = Counter(group.reason for group in groups if group.reason)
    if reasons:
        return f"{trained} {what} were trained one by one: {reasons.most_common(1)[0][0]}."
    return f"{trained} {what} were trained in {len(groups)} stack{'s' if len(groups) > 1 else ''}."
