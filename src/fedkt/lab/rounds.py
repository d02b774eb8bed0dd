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
from fedkt.federation import Checkpoint, Round
from fedkt.lab.kept import run_cache
from fedkt.report import RunLog
from fedkt.system.files import name_in_errors, write_atomically

LOG = "told"
"""The entry of reached.json that holds the log of the rounds that are done."""


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


@dataclass
class Rounds:
    """What is written down after each round, and kept in a folder if there is one."""

    score: Callable[[Bundle], float] | None
    """The accuracy of what the server made of a round, for the curve. It decides nothing."""
    public: NDArray[np.float32]
    pack_models: bool
    folder: Path | None = None
    current_log: Callable[[], RunLog] = RunLog
    """What was written down since this process began."""
    figures: list[RoundFigures] = field(default_factory=list)
    earlier: RunLog = field(default_factory=RunLog)
    """What was written down before the run was killed."""

    def measure(self, exchange: Round) -> None:
        """Add the figures of one round."""
        down = 0 if exchange.down is None else len(self.packed(exchange.down))
        measured = self.pack_models or not any(bundle.models for bundle in exchange.up)
        sent = {each.sender: len(self.packed(each)) for each in exchange.up} if measured else {}
        by_party = {each.sender: {"sent": sent.get(each.sender), "received": down} for each in exchange.up}
        accuracy = None if self.score is None else self.score(exchange.after)
        up = sum(sent.values()) if measured else None
        self.figures.append(RoundFigures(exchange.number + 1, accuracy, up, down * len(exchange.up), by_party))

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

    def keep(self, checkpoint: Checkpoint) -> None:
        """Write down where to go on, first the arrays, then the word that they are there."""
        if self.folder is None or not checkpoint.broadcast.arrays:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"round-{checkpoint.rounds}.npz"
        with name_in_errors(path), path.open("wb") as file:
            np.savez(file, allow_pickle=False, **checkpoint_arrays(checkpoint))
        state = {
            "rounds": checkpoint.rounds,
            "figures": [asdict(each) for each in self.figures],
            LOG: asdict(self.earlier.followed_by(self.current_log())),
        }
        write_atomically(self.folder / "reached.json", json.dumps(state).encode())
        for old in self.folder.glob("round-*.npz"):
            if old != path:
                old.unlink()

    def resume(self, classes: Sequence[Any]) -> Checkpoint | None:
        """Where a killed run was, None for the beginning."""
        if self.folder is None or not (self.folder / "reached.json").exists():
            return None
        try:
            state = json.loads((self.folder / "reached.json").read_text(encoding="utf-8"))
            with (
                (self.folder / f"round-{state['rounds']}.npz").open("rb") as file,
                np.load(file, allow_pickle=False) as archive,
            ):
                arrays = {name: archive[name] for name in archive.files}
            figures = [RoundFigures(**each) for each in state["figures"]]
            log = state.get(LOG, {})
            earlier = RunLog(**{**log, **{name: tuple(log.get(name, ())) for name in ("notes", "alarms")}})
            if len(figures) != state["rounds"]:
                raise ValueError(f"figures of {len(figures)} rounds, {state['rounds']} are done")
            broadcast, shelves = split_arrays(arrays)
        except (OSError, ValueError, LookupError, TypeError, RuntimeError, EOFError, BadZipFile, BadStream) as reason:
            raise DataError(
                f"{self.folder} does not hold the rounds of an interrupted run ({reason}). Remove it to start again."
            ) from reason
        self.figures, self.earlier = figures, earlier
        return Checkpoint(state["rounds"], Bundle("server", tuple(classes), (), arrays=broadcast), shelves)


def checkpoint_arrays(checkpoint: Checkpoint) -> dict[str, NDArray[Any]]:
    """All arrays of a checkpoint by path: what the server would send, and what the parties have on their shelves."""
    arrays = {f"broadcast/{name}": array for name, array in checkpoint.broadcast.arrays.items()}
    for party, shelf in checkpoint.shelves.items():
        for name, values in shelf.items():
            if isinstance(values, tuple):
                arrays |= {f"shelf/{party}/{name}/{place}": array for place, array in enumerate(values)}
    return arrays


def split_arrays(
    arrays: dict[str, NDArray[Any]],
) -> tuple[dict[str, NDArray[Any]], dict[str, dict[str, tuple[NDArray[Any], ...]]]]:
    """What `checkpoint_arrays` has put together: the server's arrays, and the shelf of each party."""
    start = "broadcast/"
    broadcast = {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
    shelves: dict[str, dict[str, tuple[NDArray[Any], ...]]] = {}
    for path in sorted((path for path in arrays if path.startswith("shelf/")), key=array_place):
        # A party's name may hold a slash, what is on its shelf does not.
        party, name, _ = path.removeprefix("shelf/").rsplit("/", 2)
        shelf = shelves.setdefault(party, {})
        shelf[name] = (*shelf.get(name, ()), arrays[path])
    return broadcast, shelves


def array_place(path: str) -> tuple[str, int]:
    """By which the arrays of a shelf are sorted: the tenth after the ninth."""
    head, _, number = path.rpartition("/")
    return head, int(number)


def forget(folder: Path | None) -> None:
    """Remove the rounds and students that were kept, once their result is safe."""
    students = run_cache(folder)
    if folder is None or students is None or not folder.exists():
        return
    students.clear()
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
