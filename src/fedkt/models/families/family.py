"""What one family of models can do, said once.

A plan is checked by these facts on machines that lack the family's library: a record never imports it, its functions do
when they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from fedkt.errors import ConfigurationError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fedkt.models.base import FittedModel
    from fedkt.models.graphs import LabelScores
    from fedkt.models.tree_graphs import Forest


def later(place: str, **options: Any) -> Callable[..., Any]:
    """The class or function "module:name" with these options, whose module is imported when it is called."""
    return partial(_import_and_call, place, **options)


def _import_and_call(place: str, /, *arguments: Any, **options: Any) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)(*arguments, **options)


@dataclass(frozen=True)
class Family:
    """The facts about one family. What is left out is the cautious answer, which suits any classifier."""

    name: str = ""
    """What plans and commands call it; empty where it is only known by estimators that users bring."""
    summary: str = ""
    """Its usual estimator in one line."""
    make: Callable[[], Any] | None = None
    """Its usual estimator, untrained."""
    classes: tuple[str, ...] = ()
    """The names of its estimators' classes."""
    library: str = "sklearn"
    """The package these classes come from."""
    needs: str = ""
    """The package that `make` cannot do without, where scikit-learn is not enough."""
    extra: str = ""
    """The extra of fedkt that brings it."""
    lack: str = "is not installed"
    """What is said of the family where that package is missing."""
    instead: str = ""
    """What else to choose then."""

    probabilities: bool = True
    """Whether its usual estimator gives probabilities; a user's own is asked itself."""
    calibrated: bool = False
    """Whether it is fitted to how often a class occurs, and so finds it about as probable as it is.

    Naive Bayes is surer than it has reason to be.
    """
    hesitant: bool = False
    """Whether it is an average of models that differ, which is never quite sure, with or without reason."""
    scale: Literal["probability", "logarithm", "decision"] = "probability"
    """By what it tells rows apart that it is sure of: its probabilities, their logarithms, or its decision function.

    Where not by probabilities, these are 0 and 1 on many rows whose order is known.
    """
    row_weight: float | None = None
    """What a row weighs in all where it stands under several labels; None where it cannot learn such rows.

    Those that hold rows back to calibrate themselves find rows among them that they have learned, a nearest neighbour
    has others at the same distance, and steps that grow with the weight of a row end nowhere.
    """
    training_bytes: int = 0
    """What training takes at least for each value of its rows, beside the rows: the library's own copies of them."""
    fit_shares: Callable[[Any, Any, NDArray[np.float64], float], Any] | None = None
    """(estimator, rows, each row's share of the second of two classes, its weight) -> the estimator, trained on them.

    None, or an answer of None, is left to rows that stand under several labels.
    """
    class_weights: Mapping[str, Any] = field(default_factory=dict)
    """Parameters that make a class weigh more or less than its rows, and what they are without it."""
    network: bool = False
    """Whether it is one of our networks, which learn distributions as they are and are trained in stacks."""
    only_images: bool = False
    """Whether it reads nothing but images."""
    fit_to_public: Callable[[Any, Any, Any], Any] | None = None
    """(estimator, public rows, image shape) -> a copy that has what it takes from public rows, such as their scale."""
    teacher: Callable[[Any], Any] | None = None
    """Who teaches a student of this family by default; None for the student's own like."""

    grow: Callable[..., Any] | None = None
    """(estimator, X, labels, *, rows, params, bins) -> what is trained in its place; None leaves it to its own `fit`.

    What it answers must not tell the two apart; whether it is done, the shape of the rows decides alone.
    """
    trees: Callable[[Any], Forest | None] | None = None
    """The trained trees, to be written as one ONNX node; an estimator that says None is left to skl2onnx."""
    graph: Callable[..., Any] | None = None
    """(estimator, *, double) -> an ONNX model of our own from `rows` to local labels; None is left to skl2onnx."""
    export: Callable[[Any], Any] | None = None
    """The library's own ONNX model of an estimator that stands alone."""
    scores: Callable[[Any], LabelScores] | None = None
    """Where the numbers behind the label stand in `graph`."""
    near_ties: Callable[[FittedModel, NDArray[Any], NDArray[np.int64]], NDArray[np.bool_]] | None = None
    """(model, rows, labels after travelling) -> the rows on which rounding may have decided."""

    @property
    def learns_distributions(self) -> bool:
        """Whether it can be trained on distributions over the classes."""
        return self.network or self.row_weight is not None

    def estimator(self) -> Any:
        """Its usual estimator, untrained, or in words what has to be installed for it."""
        if self.needs and find_spec(self.needs) is None:
            raise ConfigurationError(
                f"Model {self.name!r} {self.lack}. Run: pip install 'fedkt[{self.extra}]'{self.instead}."
            )
        if self.make is None:
            raise ConfigurationError(f"The family of {' and '.join(self.classes)} has no usual estimator. Give one.")
        return self.make()


UNKNOWN = Family(class_weights={"class_weight": None})
"""What is taken for granted of a classifier that no record is about: little more than scikit-learn's own word."""
