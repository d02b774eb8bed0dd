"""The shelf: finished students in a working folder, which survives being killed and belongs to one run only.

A shelf belongs to one plan, one party, one data file and one set of library versions. Only files that fedkt has put
there are ever removed, and only one process at a time works in a folder.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import shutil
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.bundle import Expected
from fedkt.errors import ConfigurationError, DataError, ModelError, PrivacyError
from fedkt.federation import Diary, seed_for
from fedkt.models.base import FittedModel
from fedkt.models.exchange import OnnxModel, converter
from fedkt.models.onnx_rules import Limits, SafeGraph, check_graph
from fedkt.plan import Plan
from fedkt.privacy.stream import new_secret
from fedkt.system.files import read_at_most, write_atomically
from fedkt.system.locks import if_free
from fedkt.system.parallel import Progress
from fedkt.system.versions import versions

WORK = Path(".fedkt-work")
STATE = "shelf.json"
LOCK = "shelf.lock"
ROWS = "rows"
"""The folder in it for arrays that several processes work on."""
ENDING = ".student"
STUDENT = re.compile(r"student-[0-9]+\.student")
UNFINISHED = re.compile(r"\.(shelf\.json|student-[0-9]+\.student)\.[^.]+\.part")
BELONGS = {
    "plan": "plan",
    "party": "party",
    "data": "data file or --id, or --hold-out, or mapping of names and codes",
    "versions": "version of fedkt or a library",
}
"""What a shelf belongs to, and what messages call it."""
OLD_NOISE = "noise_seed"
LIBRARIES = ("scipy", "joblib", "cryptography")
"""What votes and noise also depend on, beside what a model does."""


@dataclass(frozen=True, eq=False)
class Shelf(MutableMapping[str, Any]):
    """Finished students as files: a student is converted the moment it is put here, and checked when it is taken."""

    folder: Path
    public: NDArray[np.float32] = field(repr=False)
    """The rows on which a converted student must say what it said before."""
    expected: Expected
    """What the plan wants of a student."""
    diary: Diary

    def __setitem__(self, name: str, model: Any) -> None:
        student = model if isinstance(model, OnnxModel) else self._convert(name, model)
        write_atomically(self._path(name), hashlib.sha256(student.data).digest() + student.data, private=True)

    def __getitem__(self, name: str) -> OnnxModel:
        width = self.public.shape[1]
        try:
            stored = read_at_most(self._path(name), Limits().member_bytes + 32)
        except OSError:
            raise KeyError(name) from None
        damage, graph = "it is too large" if stored is None else "", SafeGraph(b"", soft=False)
        data = b"" if stored is None else stored[32:]
        if stored is not None and hashlib.sha256(data).digest() != stored[:32]:
            damage = "its digest does not fit"
        elif not damage:
            try:
                graph = check_graph(data, n_features=width, n_classes=self.expected.n_outputs, soft=self.expected.soft)
            except ModelError as reason:
                damage = str(reason)
        if damage:
            self.diary.say(f"{self._path(name)} was damaged ({damage}) and is trained again.")
            self._path(name).unlink(missing_ok=True)
            raise KeyError(name)
        return OnnxModel(graph.data, width, self.expected.n_outputs, name, soft=graph.soft)

    def __contains__(self, name: object) -> bool:
        try:
            self[str(name)]
        except KeyError:
            return False
        return True

    def __delitem__(self, name: str) -> None:
        try:
            self._path(name).unlink()
        except FileNotFoundError:
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        names = (path.name for path in self.folder.iterdir())
        return iter(sorted(name.removesuffix(ENDING) for name in names if STUDENT.fullmatch(name)))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}{ENDING}"

    def _convert(self, name: str, model: FittedModel) -> OnnxModel:
        try:
            convert = converter(soft=self.expected.soft, must=self.expected.background_class)
            n_features, n_classes = self.public.shape[1], self.expected.n_outputs
            return convert(model, n_features=n_features, n_classes=n_classes, check_rows=self.public)
        except ModelError as reason:
            raise ModelError(f"{name} cannot be sent: {reason}") from reason


@dataclass(frozen=True)
class TeacherProgress:
    """Teachers trained so far, over all partitions."""

    show: Progress
    shelf: Shelf
    partitions: int

    def __call__(self, done: int, total: int) -> None:
        self.show(len(self.shelf) * total + done, self.partitions * total)


@contextmanager
def sole_worker(name: str, folder: Path) -> Iterator[None]:
    """Nobody else works in this folder inside the block; a killed process gives its place back.

    Where the system has no flock, nobody is kept out.
    """
    check_is_shelf(folder)
    try:
        with if_free(folder / LOCK, mode=0o700) as ours:
            if not ours:
                raise ConfigurationError(
                    f"Another process is working for {name!r} in {folder}. Wait until it has finished, or stop it "
                    "first."
                )
            # Whoever came first may have left something between the look and the lock.
            check_is_shelf(folder)
            yield
    finally:
        # A folder with unfinished work in it stays; so does one that others have put files into.
        with suppress(OSError):
            folder.rmdir()
            if folder.parent.name == WORK.name:
                folder.parent.rmdir()


def check_is_shelf(folder: Path) -> None:
    """Refuse a folder with files in it that is no shelf; nothing in it is touched."""
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is not a folder. Pass an empty or new folder as --work.")
    if not folder.is_dir() or read_state(folder):
        return
    names = sorted(path.name for path in folder.iterdir())
    foreign = [name for name in names if name != LOCK and not name.startswith(f".{STATE}.")]
    if foreign:
        raise DataError(
            f"{folder} holds files that are not fedkt's ({', '.join(map(repr, foreign[:3]))}"
            f"{', …' * (len(foreign) > 3)}), so it is not used and nothing in it is touched. Pass an empty or new "
            "folder as --work."
        )


@dataclass(frozen=True)
class Seeds:
    """What this run draws its randomness from."""

    seed: int
    noise_seed: int | None = field(repr=False)
    """Secret, and only at level L2: with it, a run that was killed makes the same release again, not another one."""
    resumed: bool
    """Whether an earlier run had drawn them."""


def claim_shelf(folder: Path, plan: Plan, name: str, data_digest: str, diary: Diary) -> Seeds:
    """This party's seeds; students that were made from something else are removed first.

    Not where a secret noise lies beside them: that run is paid for, and without its noise it could not be finished.
    """
    seeds, difference = unfinished_run(folder, plan, name, data_digest)
    if seeds is not None:
        return seeds
    if difference:
        diary.say(f"{folder} holds work that was begun with another {difference}; it is done again from the beginning.")
        clear(folder, keep=(STATE,))
    seed = secrets.randbits(64) if plan.seed == "private" else seed_for(plan.seed, name)
    secret = new_secret() if plan.level == "L2" else None
    belongs = belonging(plan, name, data_digest)
    write_state(folder, {**belongs, "seed": seed} | ({} if secret is None else {"noise_secret": secret}))
    return Seeds(seed, secret, resumed=False)


def belonging(plan: Plan, name: str, data_digest: str) -> dict[str, Any]:
    """What a shelf of this run belongs to."""
    values: tuple[Any, ...] = (plan.digest, name, data_digest, versions(*LIBRARIES))
    return dict(zip(BELONGS, values, strict=True))


def unfinished_run(folder: Path, plan: Plan, name: str, data_digest: str) -> tuple[Seeds | None, str]:
    """The seeds of the run in a folder, if this one goes on with it; else by what it differs, if one is there.

    Refused where the other one is paid for. Nothing is touched.
    """
    belongs = belonging(plan, name, data_digest)
    state = read_state(folder)
    seed, secret = state.pop("seed", None), state.pop("noise_secret", None)
    state.pop("labels", None)
    if state == belongs and (secret is not None) == (plan.level == "L2"):
        return Seeds(int(seed), secret, resumed=True), ""
    if state:
        # An earlier version drew its noise in another way, from what it called a seed.
        changes = [BELONGS[key] for key in belongs if state.get(key) != belongs[key]]
        difference = " and ".join(changes) or "settings"
        if secret is not None or OLD_NOISE in state:
            raise PrivacyError(
                f"{folder} holds a run that is paid for and not finished, begun with another {difference}. Start it as "
                f"it was begun, and it is finished at no further charge. Or give it up: remove {folder}, or pass "
                "another folder as --work; what you run then is charged anew. Nothing was touched."
            )
        return None, difference
    return None, ""


def write_state(folder: Path, state: dict[str, Any]) -> None:
    """Write down what a shelf belongs to, with its secrets, for its owner's eyes only."""
    write_atomically(folder / STATE, json.dumps(state, indent=1).encode(), private=True)


def hold(folder: Path, noise_key: str, digest: str) -> None:
    """Write down which labels a kept noise has given, before anything learns them; refused where it gave others.

    What decides the votes belongs to the shelf; but round-off on another machine may still move one.
    """
    state = read_state(folder)
    labels = state.get("labels", {})
    if labels.get(noise_key, digest) != digest:
        raise PrivacyError(
            "The same rows gave other votes than before this run was interrupted, and the same noise on both would "
            "give them away. Nothing was written. Go on where and as it was begun (same machine, same --jobs); or "
            f"remove {folder} and start again, which is a new release and is charged."
        )
    if noise_key not in labels:
        write_state(folder, {**state, "labels": {**labels, noise_key: digest}})


def read_state(folder: Path) -> dict[str, Any]:
    """What the shelf in a folder belongs to; empty where there is none or it is not one of ours."""
    try:
        stored = json.loads(read_at_most(folder / STATE, 2**20) or b"")
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(stored, dict) or set(stored) - {OLD_NOISE, "noise_secret", "labels"} != {*BELONGS, "seed"}:
        return {}
    seeds = [stored["seed"], stored.get("noise_secret", 0)]
    valid = all(type(each) is int and 0 <= each < 2**256 for each in seeds)
    return stored if valid and isinstance(stored.get("labels", {}), dict) else {}


def clear(folder: Path, *, keep: tuple[str, ...] = ()) -> None:
    """Remove what a shelf has put into its folder, its state last: killed half-way, the rest still says whose it is."""
    shutil.rmtree(folder / ROWS, ignore_errors=True)
    names = [path.name for path in folder.iterdir() if STUDENT.fullmatch(path.name) or UNFINISHED.fullmatch(path.name)]
    for name in [*sorted(names), STATE]:
        if name not in keep and not (folder / name).is_dir():
            (folder / name).unlink(missing_ok=True)
