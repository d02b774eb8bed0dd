"""Train many models for an algorithm, groups of them over processes (see `models.ensemble`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.models.base import FittedModel
from fedkt.models.ensemble import Group, TrainingTask, fit_and_ask, fit_group, group_tasks, is_neural
from fedkt.system.parallel import in_parallel
from fedkt.system.stages import in_stage
from fedkt.system.threads import one_thread

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
    for group, fitted in over_groups(tasks, n_classes, None, jobs=jobs, done=done, say=say, what=what):
        models.update(zip(group.places, fitted, strict=True))
    return [models[place] for place in range(len(tasks))]


def train_and_ask(
    tasks: Sequence[TrainingTask],
    n_classes: int,
    queries: Sequence[Any],
    *,
    jobs: int = 1,
    done: Done | None = None,
    say: Say | None = None,
    what: str = "models",
) -> Iterator[tuple[int, Labels | str]]:
    """What each trained model says about its rows in `queries`, with its number, in any order; the models are dropped.

    A model that may fail and does gives its reason instead.
    """
    for group, answers in over_groups(tasks, n_classes, queries, jobs=jobs, done=done, say=say, what=what):
        yield from zip(group.places, answers, strict=True)


def over_groups(
    tasks: Sequence[TrainingTask],
    n_classes: int,
    queries: Sequence[Any] | None,
    *,
    jobs: int,
    done: Done | None,
    say: Say | None,
    what: str,
) -> Iterator[tuple[Group, Any]]:
    """Each group of tasks with its models, or with what they say about their `queries`."""
    groups = group_tasks(tasks, n_classes)
    note = how_trained([group for group in groups if is_neural(tasks[group.places[0]].estimator)], what)
    if say is not None and note is not None:
        say(note)
    batches = [
        (
            [tasks[place] for place in group.places],
            None if queries is None else [queries[place] for place in group.places],
        )
        for group in groups
    ]
    work = partial(_fit_or_ask, n_classes=n_classes)
    sizes = [sum(task.n_rows for task in batch[0]) for batch in batches]
    results = in_stage(what, in_parallel(work, batches, jobs=jobs, sizes=sizes))
    for group, result in zip(groups, results, strict=True):
        yield group, result
        if done is not None:
            done(len(group.places))


def _fit_or_ask(batch: tuple[Sequence[TrainingTask], Sequence[Any] | None], n_classes: int) -> Any:
    tasks, queries = batch
    with one_thread():
        return fit_group(tasks, n_classes) if queries is None else fit_and_ask(tasks, n_classes, queries)


def how_trained(groups: Sequence[Group], what: str) -> str | None:
    """In words, how the networks in these groups are trained; None where there are not several."""
    trained = sum(len(group.places) for group in groups)
    if trained < 2:
        return None
    reasons = Counter(group.reason for group in groups if group.reason)
    if reasons:
        return f"{trained} {what} were trained one by one: {reasons.most_common(1)[0][0]}."
    return f"{trained} {what} were trained in {len(groups)} stack{'s' if len(groups) > 1 else ''}."
