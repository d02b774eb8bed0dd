"""The model families a plan or a command may name, those known by their estimators, and who teaches whom.

Adding a family is one file in `families/` and one line here; it then inherits the contract tests.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from fedkt.errors import ConfigurationError
from fedkt.models.families import catboost, features, lightgbm, networks, plain, sklearn_boosting, trees, xgboost
from fedkt.models.families.family import UNKNOWN, Family
from fedkt.system.plug_ins import add_plug_ins, why_left_out

MODELS: dict[str, Family] = {
    family.name: family
    for family in (
        trees.FOREST,
        trees.EXTRA_TREES,
        trees.TREE,
        xgboost.BOOSTING,
        sklearn_boosting.HIST_BOOSTING,
        lightgbm.LIGHTGBM,
        plain.LOGISTIC,
        plain.SVM,
        plain.NAIVE_BAYES,
        features.LINEAR,
        networks.MLP,
        networks.CNN,
    )
}
OTHERS = (sklearn_boosting.GRADIENT_BOOSTING, catboost.CATBOOST, plain.LINEAR, plain.NEIGHBOURS, networks.NETWORK)
"""Families without a name, known by the estimators that users bring."""
ALIASES = {
    "random_forest": trees.FOREST,
    "rf": trees.FOREST,
    "extra_trees": trees.EXTRA_TREES,
    "decision_tree": trees.TREE,
    "xgboost": xgboost.BOOSTING,
    "xgb": xgboost.BOOSTING,
    "hist_gradient_boosting": sklearn_boosting.HIST_BOOSTING,
    "lgbm": lightgbm.LIGHTGBM,
    "logistic_regression": plain.LOGISTIC,
    "lr": plain.LOGISTIC,
    "nb": plain.NAIVE_BAYES,
}
"""What else people call them, besides the class of their usual estimator; see `canonical_name`."""
SOLVED = (features.FEATURE_HEAD,)
"""Families that nobody trains: solved from sums, they only answer and travel."""


def known_models() -> dict[str, Family]:
    """The catalogue with the families of installed plug-ins."""
    return add_plug_ins(MODELS, "fedkt.models", read_plug_in)


def read_plug_in(found: object, name: str) -> Family:
    """What a plug-in holds, as an entry of the catalogue: it must not change what is known of other estimators."""
    if not isinstance(found, Family):
        raise TypeError(f"a model is a fedkt.models.families.family.Family, got {str(found)[:80]}")
    if found.name != name:
        raise ValueError(f"its record calls it {found.name!r}, its entry {name!r}; give both one name")
    if found.make is None:
        raise ValueError("its record makes no estimator")
    taken = {each for family in (*MODELS.values(), *OTHERS, *SOLVED) for each in family.classes}
    if both := sorted(taken.intersection(found.classes)):
        raise ValueError(f"another family has estimators of the class {', '.join(both)}; derive one of your own")
    return found


@dataclass(frozen=True)
class Roles:
    """Which model teaches, which one studies, and which one the server trains at the end."""

    teacher: Any
    student: Any
    final: Any


def roles(model: Any, *, teacher: Any = None, student: Any = None, final: Any = None) -> Roles:
    """The three roles: what is not given follows from `model`; names are looked up in MODELS."""
    own = as_estimator(model)
    pupil = own if student is None else as_estimator(student)
    return Roles(
        teacher=default_teacher(pupil) if teacher is None else as_estimator(teacher),
        student=pupil,
        final=own if final is None else as_estimator(final),
    )


def family_of(estimator: Any) -> Family:
    """The record of an estimator's family, by its class; a cautious one where no record is about it.

    A class that only derives from a known one may do anything in its `fit`, so no fact but one holds for it: its
    trained trees are read as the known one's. A network is trained by our code whatever derives from it.
    """
    kind = type(estimator)
    if kind.__name__ == "Pipeline":
        last = family_of(estimator.steps[-1][1])
        # What stands before the classifier belongs into its graph; and a pipeline trains a network without our code.
        alone = replace(last, fit_to_public=None, grow=None, trees=None, graph=None, export=None)
        return UNKNOWN if last.network else alone
    families = {name: family for family in (*known_models().values(), *OTHERS, *SOLVED) for name in family.classes}
    origins = (
        family
        for each in kind.__mro__
        if (family := families.get(each.__name__)) is not None and each.__module__.partition(".")[0] == family.library
    )
    origin, own = next(origins, UNKNOWN), families.get(kind.__name__, UNKNOWN)
    if own is origin or origin.network:
        return origin
    return replace(UNKNOWN if own.network else own, trees=origin.trees)


def canonical_name(name: str) -> str:
    """The name in the catalogue of what somebody calls so; of what nobody does, a refusal with the nearest name.

    Upper case, spaces, - and _ are no difference. Plans and results have the names of MODELS alone.
    """
    if name in MODELS:
        return name
    models = known_models()
    known = {_spelling(each): each for each in models} | {_spelling(each): own.name for each, own in ALIASES.items()}
    known |= {_spelling(each): own.name for own in models.values() for each in own.classes[:1]}
    if (found := known.get(_spelling(name))) is not None:
        return found
    near = get_close_matches(_spelling(name), known, n=1)
    hint = f" Did you mean {known[near[0]]!r}?" if near else ""
    raise ConfigurationError(
        f"There is no model {name!r}.{hint} Choose one of: {', '.join(models)}.{why_left_out('fedkt.models', name)}"
    )


def _spelling(name: str) -> str:
    """A name without what people leave out."""
    return name.casefold().translate({ord(each): None for each in " -_"})


def as_estimator(model: Any) -> Any:
    """An untrained estimator for a name in MODELS; an estimator is passed through."""
    if isinstance(model, str):
        return known_models()[canonical_name(model)].estimator()
    # Some have a method only once they are trained; their class has it before.
    missing = [
        name
        for name in ("fit", "predict", "get_params", "set_params")
        if not hasattr(model, name) and not hasattr(type(model), name)
    ]
    if missing or isinstance(model, type):
        what = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}"
        if is_torch_module(model):
            raise ConfigurationError(
                f"{what[0].upper()}{what[1:]} is a torch network, and every party trains copies of its own. Wrap a "
                "function that builds it: NeuralClassifier(build) from fedkt, where build(shape, n_outputs) gives one."
            )
        raise ConfigurationError(
            f"A model is an instance of a scikit-learn compatible classifier or one of {', '.join(known_models())}; "
            f"got {what}."
        )
    from sklearn.base import is_regressor

    if is_regressor(model):
        raise ConfigurationError(
            f"{type(model).__name__} predicts numbers, not classes. A model is a classifier, or one of: "
            f"{', '.join(known_models())}."
        )
    return model


def is_torch_module(model: Any) -> bool:
    """Whether this is a network of torch's, known without torch."""
    return any(
        each.__name__ == "Module" and each.__module__.partition(".")[0] == "torch" for each in type(model).__mro__
    )


def trained_for(model: Any, epochs: int | None, learning_rate: float | None = None) -> Any:
    """The model, trained so long and with such steps if it is a neural network; None stays None."""
    options = {"epochs": epochs, "learning_rate": learning_rate}
    settings = {name: value for name, value in options.items() if value is not None}
    if model is None or not settings:
        return model
    estimator = as_estimator(model)
    if not family_of(estimator).network:
        return model
    from sklearn.base import clone

    return clone(estimator).set_params(**settings)


def default_teacher(student: Any) -> Any:
    """Who teaches this student: what its family's record says, else its own like; steps before it stay."""
    from sklearn.base import clone
    from sklearn.pipeline import Pipeline

    if isinstance(student, Pipeline):
        head: list[Any] = [step for step in clone(student).steps[:-1]]
        name, last = student.steps[-1]
        return Pipeline([*head, (name, default_teacher(last))])
    teacher = family_of(student).teacher
    return student if teacher is None else teacher(student)
