"""The two sides of a federation: a party with its rows, and the server, which sees public rows and bundles only."""

from __future__ import annotations

import hashlib
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.bundle import Bundle, Label
from fedkt.errors import DataError
from fedkt.privacy import Ledger
from fedkt.privacy.stream import Stream
from fedkt.system.cache import Cache
from fedkt.system.parallel import Progress
from fedkt.votes import Labels, Vote


@dataclass
class Spared:
    """What did not have to be trained because an earlier run had."""

    students: int = 0
    seconds: float = 0.0
    """What their training took when it was done."""
    cpu_seconds: float = 0.0


@dataclass
class Diary:
    """What happened on one side, for whoever runs that side. It is never sent."""

    notes: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)
    """Why the final model may be of little use, as far as the sums or votes tell: what must not be overlooked."""
    vote: Vote = field(default_factory=Vote)
    """The vote that this side has held: the server's, or that of a party's teachers."""
    bare_votes: list[Any] = field(default_factory=list, repr=False)
    """Votes before their noise, kept only where a simulation asked for the confidential diagnostic."""
    spared: Spared = field(default_factory=Spared)

    def say(self, note: str) -> None:
        """Keep a sentence for the report."""
        self.notes.append(note)

    def alarm(self, sentence: str) -> None:
        """Keep a sentence that stands before all others, and goes with the final model."""
        self.alarms.append(sentence)


@dataclass(frozen=True)
class Side:
    """What a party and the server have in common."""

    public: Any
    """The public rows D_aux, the same for everybody, without labels."""
    classes: tuple[Label, ...]
    """The agreed classes; labels and predictions are indices into this list."""
    seed: int
    image: tuple[int, int, int] | None = field(default=None, kw_only=True)
    """Height, width and channels, where a row holds the pixels of an image."""
    jobs: int = field(default=1, kw_only=True)
    """Models trained at the same time, each on one thread."""
    diary: Diary = field(default_factory=Diary, kw_only=True)
    progress: Progress | None = field(default=None, kw_only=True)
    noise_seed: int | None = field(default=None, kw_only=True)
    """None draws privacy noise from the operating system's entropy. A seed is for tests and simulations: whoever knows
    it can take the noise off again. A live side may keep a secret one, so that a resumed run releases the same labels.
    """
    round: int = field(default=0, kw_only=True)
    """Which round this is, counted from 0."""
    diagnostic: bool = field(default=False, kw_only=True)
    """Keep bare votes in the diary, for the paper's data-dependent ε. For simulations only."""
    ledger: Ledger = field(default_factory=Ledger, kw_only=True)
    """The door through which this side's labels leave a vote, and its budget."""

    def noise_rng(self, *path: int) -> Stream:
        """The stream for the noise of one release; it has nothing to do with any other, nor with any generator."""
        return Stream.fresh() if self.noise_seed is None else Stream.of(self.noise_seed, *path)

    def rng(self, *path: int) -> np.random.Generator:
        """The generator for one piece of work: the same whenever, wherever and in whatever order it is done."""
        return np.random.default_rng([self.seed, *path])


@dataclass(frozen=True)
class Party(Side):
    """One organisation and its labelled rows."""

    name: str = field(kw_only=True)
    X: Any = field(kw_only=True)
    y: Labels = field(kw_only=True)
    ids: Sequence[str] | None = field(default=None, kw_only=True, repr=False)
    """What tells each record from all others, by which level L2 cuts the rows; None for its place among them."""
    weights: NDArray[np.float64] | None = field(default=None, kw_only=True, repr=False)
    """How much each row counts in the training of teachers, None for all the same; one of weight 0 does not exist."""
    usual_weight: float = field(default=1.0, kw_only=True)
    """What a usual row weighs, the same for all parties: class counts are told in such rows."""
    model: Any = field(default=None, kw_only=True)
    """A family of its own (name or estimator); None follows the algorithm's."""
    shelf: MutableMapping[str, Any] = field(default_factory=dict, kw_only=True)
    """Finished students by name. A shelf that outlives the process lets a killed party resume."""
    cache: Cache | None = field(default=None, kw_only=True, repr=False)
    """Where a simulation keeps what students say, so that none is trained twice."""
    asked_too: Any = field(default=None, kw_only=True, repr=False)
    """Rows that its students are asked about besides the public ones."""

    def __post_init__(self) -> None:
        if len(self.y) == 0:
            raise DataError(f"Party {self.name!r} has no rows. A party needs at least one; leave it out of this run.")
        if self.weights is not None:
            check_row_weights(self.weights, len(self.y), f"Party {self.name!r}")

    @property
    def counted_rows(self) -> Labels:
        """The row numbers of those that count."""
        return np.arange(len(self.y)) if self.weights is None else np.flatnonzero(self.weights)


@dataclass(frozen=True)
class Server(Side):
    """The one who asks the students: it sees public rows and bundles, nothing else."""

    last: Bundle | None = field(default=None, kw_only=True)
    """What it sent out before this round."""
    scratch: Path | None = field(default=None, kw_only=True)
    """Where on disk lies meanwhile what is too much for memory; None for the system's temporary folder."""
    parties: int = field(default=0, kw_only=True)
    """How many parties there are, whether they took part in a round or not; 0 where nobody said."""


def check_row_weights(weights: NDArray[np.float64], n_rows: int, who: str) -> None:
    """Refuse weights that are not one number of at least 0 for each row."""
    if weights.shape != (n_rows,):
        raise DataError(f"{who}: {n_rows} rows need as many weights in one column, got the shape {weights.shape}.")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise DataError(f"{who}: weights of rows are numbers of at least 0; some are negative, missing or infinite.")


def seed_for(seed: int, name: str) -> int:
    """A party's own seed, from the seed of the run and its name: the same on any machine and in any order."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:8], "big")
