"""Runs of several rounds: what each round gave and sent, and where a killed run goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile
from zlib import error as BadStream

import numpy as np
from numpy.typing import NDArray

from fedkt.bundle import Bundle, pack
from fedkt.errors import DataError
from fedkt.federation import Checkpoint, Outcome, Round
from fedkt.report import label_accuracy, notes, vote_figures
from fedkt.system.files import named, write_atomically
from fedkt.votes import Labels


@dataclass(frozen=True)
class RoundFigures:
    """One round, for the curve: accuracy on the test rows and bytes over the wire, all parties together."""

    round: int
    """Counted from 1."""
    accuracy: float | None
    """None in a run of one round, whose report has it."""
    sent: int | None
    """By the parties; None where models were not packed."""
    received: int
    """By the parties."""
    by_party: dict[str, dict[str, int | None]] = field(default_factory=dict)
    """Sent and received by each party that took part."""


@dataclass(frozen=True)
class Told:
    """What a report tells beside the figures of its rounds: a run that was killed had written some of it already."""

    label_accuracy: float | None = None
    votes: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    @classmethod
    def by(cls, outcome: Outcome, truth: Labels) -> Told:
        """What the sides of a simulation wrote down."""
        right = label_accuracy(outcome, truth)
        return cls(right, vote_figures(outcome), notes(outcome), outcome.seconds, outcome.cpu_seconds)

    def and_then(self, later: Told) -> Told:
        """Both parts of a run that was killed in between."""
        return Told(
            self.label_accuracy if later.label_accuracy is None else later.label_accuracy,
            later.votes or self.votes,
            self.notes + later.notes,
            self.seconds + later.seconds,
            self.cpu_seconds + later.cpu_seconds,
        )


@dataclass
class Rounds:
    """What is written down after each round, and kept in a folder if there is one."""

    score: Callable[[Bundle], float] | None
    """The accuracy of what the server made of a round, for the curve. It decides nothing."""
    public: NDArray[np.float32]
    pack_models: bool
    folder: Path | None = None
    told: Callable[[], Told] = Told
    """What was written down since this process began."""
    figures: list[RoundFigures] = field(default_factory=list)
    earlier: Told = field(default_factory=Told)
    """What was written down before the run was killed."""

    def hear(self, played: Round) -> None:
        """Measure one round."""
        down = 0 if played.down is None else len(self.packed(played.down))
        measured = self.pack_models or not any(bundle.models for bundle in played.up)
        sent = {each.sender: len(self.packed(each)) for each in played.up} if measured else {}
        by_party = {each.sender: {"sent": sent.get(each.sender), "received": down} for each in played.up}
        accuracy = None if self.score is None else self.score(played.after)
        up = sum(sent.values()) if measured else None
        self.figures.append(RoundFigures(played.number + 1, accuracy, up, down * len(played.up), by_party))

    @property
    def sent(self) -> int | None:
        """Bytes the parties sent in all rounds, None where a message was not packed."""
        each = [figures.sent for figures in self.figures]
        return sum(count or 0 for count in each) if each and None not in each else None

    @property
    def received(self) -> int | None:
        """Bytes the parties received in all rounds."""
        return sum(figures.received for figures in self.figures) if self.figures else None

    def packed(self, bundle: Bundle) -> bytes:
        """The bundle as it would travel."""
        return pack(bundle, check_rows=self.public)

    def keep(self, reached: Checkpoint) -> None:
        """Write down where to go on, first the arrays, then the word that they are there."""
        if self.folder is None or not reached.broadcast.arrays:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        arrays = {f"broadcast/{name}": each for name, each in reached.broadcast.arrays.items()}
        for party, shelf in reached.shelves.items():
            for kept, values in shelf.items():
                if isinstance(values, tuple):
                    arrays |= {f"shelf/{party}/{kept}/{place}": each for place, each in enumerate(values)}
        written = self.folder / f"round-{reached.rounds}.npz"
        with named(written), written.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        said = {
            "rounds": reached.rounds,
            "figures": [asdict(each) for each in self.figures],
            "told": asdict(self.earlier.and_then(self.told())),
        }
        write_atomically(self.folder / "reached.json", json.dumps(said).encode())
        for old in self.folder.glob("round-*.npz"):
            if old != written:
                old.unlink()

    def resume(self, classes: Sequence[Any]) -> Checkpoint | None:
        """Where a killed run was, None for the beginning."""
        if self.folder is None or not (self.folder / "reached.json").exists():
            return None
        try:
            said = json.loads((self.folder / "reached.json").read_text(encoding="utf-8"))
            with (
                (self.folder / f"round-{said['rounds']}.npz").open("rb") as file,
                np.load(file, allow_pickle=False) as stored,
            ):
                arrays = {name: stored[name] for name in stored.files}
            figures = [RoundFigures(**each) for each in said["figures"]]
            told = said.get("told", {})
            earlier = Told(**{**told, "notes": tuple(told.get("notes", ()))})
            if len(figures) != said["rounds"]:
                raise ValueError(f"figures of {len(figures)} rounds, {said['rounds']} are done")
            broadcast = {
                name.removeprefix("broadcast/"): each for name, each in arrays.items() if name.startswith("broadcast/")
            }
            shelves: dict[str, dict[str, Any]] = {}
            for name in sorted((each for each in arrays if each.startswith("shelf/")), key=_place):
                # A party's name may hold a slash, what it keeps does not.
                party, kept, _ = name.removeprefix("shelf/").rsplit("/", 2)
                shelf = shelves.setdefault(party, {})
                shelf[kept] = (*shelf.get(kept, ()), arrays[name])
        except (OSError, ValueError, LookupError, TypeError, RuntimeError, EOFError, BadZipFile, BadStream) as reason:
            raise DataError(
                f"{self.folder} does not hold the rounds of an interrupted run ({reason}). Remove it to start again."
            ) from reason
        self.figures, self.earlier = figures, earlier
        return Checkpoint(said["rounds"], Bundle("server", tuple(classes), (), arrays=broadcast), shelves)


def forget(folder: Path | None) -> None:
    """Remove the rounds that were kept, once their result is safe."""
    if folder is None or not folder.exists():
        return
    for each in (*folder.glob("round-*.npz"), folder / "reached.json"):
        each.unlink(missing_ok=True)
    folder.rmdir()
    # The runs of one results file share the folder above; the last one takes it away.
    if not any(folder.parent.iterdir()):
        folder.parent.rmdir()


def folder_for(results: Path | None, fingerprint: str) -> Path | None:
    """Where the rounds of one run are kept beside its results file."""
    if results is None:
        return None
    return results.with_suffix(".rounds") / hashlib.sha256(fingerprint.encode()).hexdigest()[:16]


def _place(name: str) -> tuple[str, int]:
    head, _, number = name.rpartition("/")
    return head, int(number)
