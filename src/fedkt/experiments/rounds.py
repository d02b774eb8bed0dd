"""Runs of several rounds: what each round gave and sent, and where a killed run goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.bundle import Bundle, pack
from fedkt.errors import DataError
from fedkt.federation import Checkpoint, Round
from fedkt.transport.folder import write_atomically


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


@dataclass
class Rounds:
    """What is written down after each round, and kept in a folder if there is one."""

    score: Callable[[Bundle], float] | None
    """The accuracy of what the server made of a round, for the curve. It decides nothing."""
    public: NDArray[np.float32]
    pack_models: bool
    folder: Path | None = None
    figures: list[RoundFigures] = field(default_factory=list)

    def hear(self, played: Round) -> None:
        """Measure one round."""
        down = 0 if played.down is None else len(self.packed(played.down)) * len(played.up)
        has_models = any(bundle.models for bundle in played.up)
        up = None if has_models and not self.pack_models else sum(len(self.packed(each)) for each in played.up)
        accuracy = None if self.score is None else self.score(played.after)
        self.figures.append(RoundFigures(played.number + 1, accuracy, up, down))

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
        with written.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        said = {"rounds": reached.rounds, "figures": [asdict(each) for each in self.figures]}
        write_atomically(self.folder / "reached.json", json.dumps(said).encode())
        for old in self.folder.glob("round-*.npz"):
            if old != written:
                old.unlink()

    def resume(self, classes: Sequence[Any]) -> Checkpoint | None:
        """Where a killed run was, None for the beginning."""
        place = None if self.folder is None else self.folder / "reached.json"
        if self.folder is None or place is None or not place.exists():
            return None
        try:
            said = json.loads(place.read_text(encoding="utf-8"))
            with np.load(self.folder / f"round-{said['rounds']}.npz", allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
            self.figures = [RoundFigures(**each) for each in said["figures"]]
        except (OSError, ValueError, KeyError, TypeError) as reason:
            raise DataError(
                f"{self.folder} does not hold the rounds of an interrupted run ({reason}). Remove it to start again."
            ) from reason
        broadcast = {name.removeprefix("broadcast/"): each for name, each in arrays.items() if "broadcast/" in name}
        shelves: dict[str, dict[str, Any]] = {}
        for name in sorted((each for each in arrays if each.startswith("shelf/")), key=_place):
            _, party, kept, _ = name.split("/")
            shelf = shelves.setdefault(party, {})
            shelf[kept] = (*shelf.get(kept, ()), arrays[name])
        return Checkpoint(said["rounds"], Bundle("server", tuple(classes), (), arrays=broadcast), shelves)

    def forget(self) -> None:
        """Remove what was kept: the result is there."""
        if self.folder is not None and self.folder.exists():
            for each in (*self.folder.glob("round-*.npz"), self.folder / "reached.json"):
                each.unlink(missing_ok=True)
            self.folder.rmdir()


def folder_for(results: Path | None, fingerprint: str) -> Path | None:
    """Where the rounds of one run are kept beside its results file."""
    if results is None:
        return None
    return results.with_suffix(".rounds") / hashlib.sha256(fingerprint.encode()).hexdigest()[:16]


def _place(name: str) -> tuple[str, int]:
    head, _, number = name.rpartition("/")
    return head, int(number)
