"""Many models to be trained: which of them belong together, and the training of such a group.

Most families are trained one by one. Neural networks of one kind are trained as a stack (see `neural.stack`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedkt.errors import ConfigurationError, DataError, FedKTError, ModelError
from fedkt.models.base import FittedModel, count_rows, fit_model, take_rows, training_failure
from fedkt.models.catalogue import Roles, canonical_name, family_of, known_models
from fedkt.models.families.family import Family
from fedkt.models.parameters import untrained_copy
from fedkt.models.row_weights import weighted_targets
from fedkt.models.soft import fit_soft

if TYPE_CHECKING:
    from fedkt.models.forests.bins import Bins

ENOUGH_FOR_TWO = 16
"""From so many networks on there are at least two stacks, so that two processes have something to do.

The number of processes itself must not matter: networks in other company end with other last digits.
"""
SHARERS = 8
"""So many forests at most share the bins of their rows: making these then costs about a hundredth of growing them."""
BUSY = 8
"""So many processes have forests to grow, where there are as many forests. These are the same in any company."""


@dataclass(frozen=True)
class TrainingTask:
    """One model to be trained."""

    estimator: Any
    X: Any
    y: NDArray[np.int64] | NDArray[np.float64]
    """The agreed class of each row, or for each row a distribution over the classes."""
    rng: np.random.Generator
    rows: NDArray[np.int64] | None = None
    """Which rows of X these are; None for all. X itself may be shared by many tasks."""
    who: str = ""
    """What messages call this model."""
    start: tuple[NDArray[Any], ...] | None = None
    """Weights a network starts from; None draws new ones."""
    correction: Any = None
    """A `neural.recipe.Correction` of the network's gradients."""
    may_fail: bool = False
    """Whether a failure of this model is an answer, its reason, instead of an error."""
    alone: bool = False
    """Whether a network is trained by itself: in other company it ends with other last digits."""
    copies: bool = False
    """Whether a network alone also learns every image shifted by one pixel, up, down, left and right."""
    weights: NDArray[np.float64] | None = None
    """How much each of its rows counts, where they have labels; None for all the same."""
    beside: int = 0
    """How many rows the student of a teacher learns: where that forest is grown on bins, the teacher's may be too."""

    @property
    def n_rows(self) -> int:
        """How many rows it is trained on."""
        return len(self.y)

    @property
    def shares(self) -> NDArray[np.float64] | None:
        """What it learns, where that is distributions."""
        return np.asarray(self.y, dtype=np.float64) if self.y.ndim == 2 else None

    @property
    def labels(self) -> NDArray[np.int64]:
        """The class of each row, the likeliest one where there are several."""
        return np.asarray(self.y if self.y.ndim == 1 else self.y.argmax(axis=1), dtype=np.int64)

    @property
    def own_rows(self) -> Any:
        """The rows it is trained on."""
        return self.X if self.rows is None else take_rows(self.X, self.rows)


@dataclass(frozen=True)
class Group:
    """Tasks to be done at once, by their places, and why there are not more of them."""

    places: tuple[int, ...]
    reason: str | None = None


def is_neural(estimator: Any) -> bool:
    """Whether this is one of our networks; nobody has to import torch to know."""
    return family_of(estimator).network


def trains_networks(roles: Iterable[Roles]) -> bool:
    """Whether any teacher or student in these roles is one of our networks."""
    return any(is_neural(each.teacher) or is_neural(each.student) for each in roles)


def learns_distributions(estimator: Any) -> bool:
    """Whether this can be trained on distributions over the classes."""
    return family_of(estimator).learns_distributions


def is_calibrated(model: Any) -> bool:
    """Whether this finds a class about as probable as it is; of a name it is known without the family's library."""
    return known_family(model).calibrated


def is_hesitant(model: Any) -> bool:
    """Whether this is less sure of a class than it could be; of a name it is known without the family's library."""
    return known_family(model).hesitant


def known_family(model: Any) -> Family:
    """The family of a model or of its name."""
    return known_models()[canonical_name(model)] if isinstance(model, str) else family_of(model)


def fit_to_rows(estimator: Any, public: Any, image: tuple[int, int, int] | None) -> Any:
    """The estimator with what its family takes from public rows: a network knows their scale and shape, say."""
    adapt = family_of(estimator).fit_to_public
    return estimator if adapt is None else adapt(estimator, public, image)


def group_tasks(tasks: Sequence[TrainingTask], n_classes: int) -> list[Group]:
    """The tasks in groups: networks of one kind in stacks of similar length, forests of the same rows, others alone."""
    kinds: dict[Any, list[int]] = {}
    for place, task in enumerate(tasks):
        kinds.setdefault(_group_key(task, place), []).append(place)
    groups: list[Group] = []
    for places in kinds.values():
        first = tasks[places[0]]
        if not is_neural(first.estimator):
            count = max(-(-len(places) // SHARERS), min(len(places), BUSY))
            groups += [Group(tuple(part.tolist())) for part in np.array_split(np.array(places), count)]
            continue
        if first.alone:
            groups.append(Group((places[0],), "no network may touch another's last digits"))
            continue
        from fedkt.models.neural.ensemble import stack_size

        most, reason = stack_size(first.estimator, first.X, n_classes)
        # Networks that train equally long stand together; none waits for another.
        recipe = first.estimator.recipe
        places.sort(key=lambda place: -recipe.steps(tasks[place].n_rows))
        count = max(-(-len(places) // most), 2 if len(places) >= ENOUGH_FOR_TWO else 1)
        groups += [Group(tuple(part.tolist()), reason) for part in np.array_split(np.array(places), count)]
    return groups


def fit_group(tasks: Sequence[TrainingTask], n_classes: int) -> list[FittedModel]:
    """The trained models of one group, in its order."""
    first = tasks[0]
    # A network alone that has one class is a constant; in a stack it trains along, for the sake of the others.
    if is_neural(first.estimator) and (len(tasks) > 1 or not _is_constant(first)):
        with _said_of(first if len(tasks) == 1 else None):
            return _fit_stack(tasks, n_classes)
    bins = _bins_of(first.own_rows) if len(tasks) > 1 else None
    return [_fit_alone(task, bins) for task in tasks]


def _fit_alone(task: TrainingTask, bins: Bins | None) -> FittedModel:
    """The trained model of one task; `bins` are those of its rows, where others share them."""
    if bins is None and _grows_on_bins(task):
        bins = _bins_of(task.own_rows)
    with _said_of(task):
        if task.shares is not None:
            return fit_soft(task.estimator, task.own_rows, task.shares, rng=task.rng, bins=bins)
        return fit_model(task.estimator, task.own_rows, task.labels, rng=task.rng, weights=task.weights, bins=bins)


@contextmanager
def _said_of(task: TrainingTask | None) -> Iterator[None]:
    """An error says of whose model it is."""
    try:
        yield
    except FedKTError as reason:
        raise type(reason)(f"{task.who}: {reason}" if task is not None and task.who else str(reason)) from reason


def _grows_on_bins(task: TrainingTask) -> bool:
    """Whether this is a forest that is grown on bins: the shapes of tables say so, and nothing in them."""
    if family_of(task.estimator).grow is None:
        return False
    from fedkt.models.forests.training import grows

    return grows(task.estimator, max(task.n_rows, task.beside))


def _bins_of(X: Any) -> Bins | None:
    """The bins of rows; None where they have none."""
    from fedkt.models.forests.training import bins_of

    try:
        return bins_of(X)
    except (ValueError, TypeError):
        # What is wrong with the rows, the training of each model says.
        return None


def _group_key(task: TrainingTask, place: int) -> Any:
    """What tasks of one group have in common. Never a label: a record must not decide who stands with whom.

    Networks in other company end with other last digits, so a record would otherwise touch teachers that never saw it.
    Forests share nothing but the bins of the very same rows.
    """
    if task.alone or task.may_fail:
        return _stack_key(task, place)
    if task.rows is None and _grows_on_bins(task):
        return "bins", id(task.X)
    return _stack_key(task, place)


def _stack_key(task: TrainingTask, place: int) -> Any:
    """What tasks of one stack of networks have in common; of others, nothing."""
    if task.alone or not is_neural(task.estimator):
        return place
    from fedkt.models.neural.ensemble import stack_key

    return stack_key(task.estimator, int(np.prod(task.X.shape[1:])))


def _is_constant(task: TrainingTask) -> bool:
    """Whether there is nothing to learn. Who was given weights goes on with them all the same."""
    if task.start is not None or task.shares is not None:
        return False
    return len(task.y) == 0 or bool((task.y == task.y[0]).all())


def _fit_stack(tasks: Sequence[TrainingTask], n_classes: int) -> list[FittedModel]:
    """The trained networks of one stack; the first that failed is an error."""
    models = _fit_networks(tasks, n_classes)
    for task, model in zip(tasks, models, strict=True):
        if isinstance(model, FedKTError):
            # Of a single model `fit_group` says whose it is.
            raise type(model)(f"{task.who}: {model}" if task.who and len(tasks) > 1 else str(model))
    return [model for model in models if isinstance(model, FittedModel)]


def _fit_networks(tasks: Sequence[TrainingTask], n_classes: int) -> list[FittedModel | FedKTError]:
    """The trained networks of one stack, and in the place of one whose training ran away what is to be said of it."""
    from fedkt.models.neural.ensemble import StartFailure, fit_networks

    estimators = [untrained_copy(each.estimator, each.rng).set_params(classes=range(n_classes)) for each in tasks]
    try:
        failures = fit_networks(estimators, [_with_targets(each, n_classes) for each in tasks])
    except StartFailure as reason:
        task = tasks[reason.place]
        prefix = f"{task.who}: " if task.who and len(tasks) > 1 else ""
        raise DataError(f"{prefix}{training_failure(estimators[0], task.labels, reason.cause)}") from reason
    except ConfigurationError:
        raise
    except Exception as reason:
        # Whatever a stranger's network raises, its user needs to know what it was given.
        labels = np.concatenate([each.labels for each in tasks])
        raise ModelError(training_failure(estimators[0], labels, reason)) from reason
    # A network has an output for every agreed class, so its labels are the agreed ones.
    return [
        ModelError(training_failure(each, tasks[place].labels, failures[place]))
        if place in failures
        else FittedModel(each, np.arange(n_classes), each.n_features_in_)
        for place, each in enumerate(estimators)
    ]


def _with_targets(task: TrainingTask, n_classes: int) -> TrainingTask:
    """The task of a network, in whose targets the weights of its rows are."""
    if task.weights is None or not len(task.weights):
        return task
    return replace(task, y=weighted_targets(task.labels, task.weights, n_classes), weights=None)


def fit_and_ask(tasks: Sequence[TrainingTask], n_classes: int, queries: Sequence[Any]) -> list[NDArray[np.int64] | str]:
    """What each model of a group says about its rows once it is trained; where it may fail and does, why it does not.

    A model that fails takes no other along: what the others say is what they would have said beside any other. Rows of
    networks must be finite numbers (`within`): a stack that cannot even begin is an error.
    """
    if not all(each.may_fail for each in tasks):
        return list(ask_group(fit_group(tasks, n_classes), queries))
    models: Sequence[FittedModel | FedKTError]
    if len(tasks) > 1:
        models = _fit_networks(tasks, n_classes)
    else:
        try:
            models = fit_group(tasks, n_classes)
        except ConfigurationError:
            raise
        except FedKTError as reason:
            models = [reason]
    return [_answer(model, rows, n_classes) for model, rows in zip(models, queries, strict=True)]


def _answer(model: FittedModel | FedKTError, rows: Any, n_classes: int) -> NDArray[np.int64] | str:
    """The classes that a model finds, or why it finds none."""
    if isinstance(model, FedKTError):
        return str(model)
    try:
        answer = model.predict(rows)
    except Exception as reason:  # whatever an arbitrary estimator raises
        return f"{type(reason).__name__}: {reason}"
    if answer.shape != (count_rows(rows),) or not ((answer >= 0) & (answer < n_classes)).all():
        return "it does not answer with one of the classes for each row"
    return answer


def ask_group(models: Sequence[FittedModel], queries: Sequence[Any]) -> list[NDArray[np.int64]]:
    """What each model of a group says about its rows; networks read the same rows together."""
    if len(models) > 1 and all(is_neural(each.estimator) for each in models):
        from fedkt.models.neural.ensemble import network_answers

        networks = [model.estimator for model in models]
        places: dict[Any, list[int]] = {}
        for place, rows in enumerate(queries):
            places.setdefault(networks[place].scale_.key(rows), []).append(place)
        answers: dict[int, NDArray[np.int64]] = {}
        for same in places.values():
            answers.update(zip(same, network_answers([networks[each] for each in same], queries[same[0]]), strict=True))
        return [answers[place] for place in range(len(models))]
    return [model.predict(rows) for model, rows in zip(models, queries, strict=True)]
