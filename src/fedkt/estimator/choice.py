"""Which algorithm the parameters of a FedKTClassifier stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from fedkt.algorithms import Auto, FedKT, Moments
from fedkt.algorithms.party_total import shares_in_order
from fedkt.algorithms.usual import TEXT_FAMILY, usual_algorithm
from fedkt.errors import ConfigurationError
from fedkt.estimator.inputs import class_weights_by_place, estimator_of
from fedkt.privacy import check_level

if TYPE_CHECKING:
    from fedkt.estimator import FedKTClassifier


def algorithm_of(
    own: FedKTClassifier, classes: NDArray[Any] | None, *, weighted: bool, texts: bool = False
) -> FedKT | Moments | Auto:
    """The algorithm as the parameters say, for these classes once they are known; `texts` are words made numbers."""
    voting = voting_of(own, weighted=weighted, texts=texts)
    model = TEXT_FAMILY if texts and own.estimator is None else own.estimator
    parts = [estimator_of(model), own.teacher, own.student, own.final]
    if classes is not None:
        parts = [class_weights_by_place(part, classes) for part in parts]
    estimator, teacher, student, final = parts
    check_used(own, voting)
    if voting in (Moments.name, Moments.voting):
        shares = None
        if own.class_shares is not None and classes is not None:
            shares = shares_in_order(own.class_shares, classes.tolist())
        noise, copies = own.noise, own.copies
        return Moments(estimator, final=final, level=own.level, noise=noise, class_shares=shares, copies=copies)
    if own.class_shares is not None:
        raise ConfigurationError("class_shares would do nothing: only moments have a use for them. Leave it out.")
    families = {"teacher": teacher, "student": student, "final": final}
    if voting in (Auto.name, Auto.voting):
        if own.level == "L0":
            check_level(own.level, own.noise)
        return Auto(estimator, **families, level=own.level, copies=own.copies)
    return FedKT(
        estimator,
        voting=voting,
        **families,
        partitions=own.partitions,
        subsets=own.subsets,
        level=own.level,
        noise=own.noise,
        queries=own.queries,
        copies=own.copies,
    )


def models_in(own: FedKTClassifier, *, weighted: bool) -> list[Any]:
    """The models that will read rows: of moments the final one alone."""
    if voting_of(own, weighted=weighted) in (Moments.name, Moments.voting):
        return [own.final]
    return [own.estimator, own.teacher, own.student, own.final, *(own.party_estimators or {}).values()]


def label_of(label: Any) -> str | int:
    """A class as the agreed list names it."""
    return label if isinstance(label, str) or type(label) is int else str(label)


def check_used(own: FedKTClassifier, voting: Any) -> None:
    """Refuse what only votes have, where there are none, or none of another shape: whoever sets it believes in it."""
    shape = {
        "partitions": own.partitions,
        "subsets": own.subsets,
        "queries": None if own.queries == 1.0 else own.queries,
    }
    roles = {"teacher": own.teacher, "student": own.student, "party_estimators": own.party_estimators or None}
    idle: dict[str, Any] = {}
    if voting in (Moments.name, Moments.voting):
        idle = {**shape, **roles}
    elif voting in (Auto.name, Auto.voting):
        idle = shape
    given = [name for name, value in idle.items() if value is not None]
    if given:
        raise ConfigurationError(
            f"{', '.join(given)} would do nothing with voting={voting!r}: "
            + ("parties send sums and train nothing." if len(idle) > len(shape) else "its vote has one shape.")
            + " Leave it out, or choose voting='expert' or 'consistent'."
        )


def voting_of(own: FedKTClassifier, *, weighted: bool, texts: bool = False) -> Any:
    """How parties pass on what they know: as chosen, or what is usual for whoever chose everything else.

    Without noise texts are a choice of the family that is good at them.
    """
    if own.voting is not None:
        return own.voting
    choices = {
        "model": own.estimator is not None or (texts and own.level == "L0"),
        "teacher": own.teacher is not None,
        "student": own.student is not None,
        "final": own.final is not None,
        "party_models": bool(own.party_estimators),
        "partitions": own.partitions is not None,
        "subsets": own.subsets is not None,
        "queries": own.queries != 1.0,
        "mechanism": own.noise is not None and own.noise.for_votes,
        "copies": own.copies,
        "weights": weighted,
    }
    return usual_algorithm(own.level, [name for name, chosen in choices.items() if chosen])
