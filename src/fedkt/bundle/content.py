"""Bundle and Expected: what crosses the wire, and what whoever reads it expects."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fedkt.bundle.manifest import Claim
    from fedkt.models.base import Model

Label = str | int

MANIFEST = "manifest.json"
SIGNATURE = "manifest.sig"


@dataclass(frozen=True)
class Bundle:
    """What a party sends, or a server sends back."""

    sender: str
    """The party's name."""
    classes: tuple[Label, ...]
    """The class list all parties agreed on."""
    models: tuple[Model, ...]
    """Trained models: native in a simulation, OnnxModel once they have travelled."""
    plan: str = ""
    """The digest of the plan it was made under."""
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Named arrays of float32, float64 or int64, for algorithms that send weights."""
    claim: Claim | None = None
    """What the sender says its noise promises (level L2), not checked yet."""
    counts: tuple[int, ...] | None = None
    """How many rows of each class the sender says it has, where the vote weighs parties by them."""
    soft: bool = False
    """Whether its models also say how sure they are, as far as they can."""
    background_class: bool = False
    """Whether its models know one class more, after the agreed ones: a row that is not the sender's."""
    calibrated: bool = False
    """Whether its models are agreed to be of families that find a class about as probable as it is."""
    weighted: bool = False
    """Whether its models' teachers weighed classes. Known in a simulation only: no family of a plan does."""
    identity: str = ""
    """The SHA-256 of the manifest it came with, which holds the digests of all the rest; the zip file is not in it."""
    issue: int = 0
    """Of two signed bundles of one party the one with the larger number counts."""
    signed: bool = False
    """Whether it came with a signature that fits the sender's key."""

    @property
    def n_outputs(self) -> int:
        """How many classes its models know."""
        return len(self.classes) + self.background_class

    @property
    def has_probabilities(self) -> bool:
        """Whether all its models say how sure they are."""
        from fedkt.models.prediction import has_probabilities

        return all(map(has_probabilities, self.models))


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What a reader expects of a bundle: whatever is otherwise is refused."""

    plan: str
    """The digest of the plan."""
    classes: Sequence[Label]
    n_features: int
    max_models: int | None = None
    """0 for who expects no models; None for as many as the limits allow."""
    arrays: Mapping[str, tuple[int, ...]] | None = None
    """By name and shape: exactly these must be there, None for none at all. Whether they are float32, float64 or int64
    is the sender's choice."""
    counts: bool = False
    """Whether the rows of each class must be told; if not, they must not."""
    soft: bool = False
    """Whether models may also give probabilities."""
    background_class: bool = False
    """Whether models must do so, and know one class more."""
    parties: Collection[str] | None = None
    """From whom; None for anybody."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Public keys by party: a party with a key must have signed."""

    @property
    def n_outputs(self) -> int:
        """How many classes a model tells apart."""
        return len(self.classes) + self.background_class
