"""A live party: its own file and the plan in, one bundle out, and a shelf that survives being killed half-way.

The shelf keeps every finished student in a working folder. It belongs to one plan, one data file, one seed and one set
of library versions: a party that starts again with the same four goes on where it stopped and sends the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.bundle import pack
from fedkt.errors import ConfigurationError, DataError, ModelError, PlanError
from fedkt.federation import Diary, Party, Progress, seed_for
from fedkt.models.base import FittedModel
from fedkt.models.exchange import OnnxModel, to_onnx
from fedkt.models.onnx_rules import Limits, check_graph
from fedkt.plan import NAME, Plan, file_digest
from fedkt.report import versions
from fedkt.signing import SigningKey, load_key, new_key
from fedkt.transport.folder import read_at_most, write_atomically

WORK = Path(".fedkt-work")
STATE = "shelf.json"
ENDING = ".student"


@dataclass(frozen=True)
class Sent:
    """What a party has written, and what it should know about it."""

    path: Path
    party: str
    plan: str
    students: int
    resumed: int
    """Students that an earlier, interrupted run had finished."""
    rows: int
    bytes: int
    sha256: str
    signed: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Shelf(MutableMapping[str, Any]):
    """Finished students as files: a student is converted the moment it is put here, and checked when it is taken."""

    folder: Path
    public: NDArray[np.float32] = field(repr=False)
    """The rows on which a converted student must say what it said before."""
    n_classes: int
    diary: Diary

    def __setitem__(self, name: str, model: Any) -> None:
        student = model if isinstance(model, OnnxModel) else self._converted(name, model)
        write_atomically(self._path(name), hashlib.sha256(student.data).digest() + student.data, private=True)

    def __getitem__(self, name: str) -> OnnxModel:
        width = self.public.shape[1]
        try:
            stored = read_at_most(self._path(name), Limits().member_bytes + 32)
        except OSError:
            raise KeyError(name) from None
        damage = "it is too large" if stored is None else ""
        data = b"" if stored is None else stored[32:]
        if stored is not None and hashlib.sha256(data).digest() != stored[:32]:
            damage = "its digest does not fit"
        elif not damage:
            try:
                check_graph(data, n_features=width, n_classes=self.n_classes)
            except ModelError as reason:
                damage = str(reason)
        if damage:
            self.diary.say(f"{self._path(name)} was damaged ({damage}) and is trained again.")
            self._path(name).unlink(missing_ok=True)
            raise KeyError(name)
        return OnnxModel(data, width, self.n_classes, name)

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
        return iter(sorted(path.name.removesuffix(ENDING) for path in self.folder.glob(f"[!.]*{ENDING}")))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}{ENDING}"

    def _converted(self, name: str, model: FittedModel) -> OnnxModel:
        try:
            return to_onnx(model, n_features=self.public.shape[1], n_classes=self.n_classes, check_rows=self.public)
        except ModelError as reason:
            raise ModelError(f"{name} cannot be sent: {reason}") from reason


def run_party(
    plan: Plan,
    name: str,
    *,
    data: Path,
    public: Path,
    outbox: Path,
    key: SigningKey | None = None,
    jobs: int = 1,
    work: Path | None = None,
    progress: Progress | None = None,
) -> Sent:
    """Train this party's students and write outbox/<name>.fedkt; the working folder is removed once it is there."""
    plan.require(name)
    check_key(plan, name, key)
    rows = plan.columns.encode(plan.read_public(public))
    if file_digest(data) == plan.public.sha256:
        raise DataError(f"{data} is the public file. --data takes your own labelled rows, --public the shared ones.")
    table = plan.columns.read(data)
    X, y = plan.columns.encode(table), plan.columns.labels(table, plan.classes)
    diary = Diary()
    if unused := plan.columns.unused(table):
        diary.say(f"{data} has columns that were not agreed on and are not used: {', '.join(unused[:20])}.")
    absent = [str(each) for place, each in enumerate(plan.classes) if not (y == place).any()]
    if absent:
        diary.say(f"No row of {data} is labelled {', '.join(absent[:20])}; the other parties may know it.")
    folder = work if work is not None else WORK / f"{name}-{plan.digest[:12]}"
    seed = claim_shelf(folder, plan, name, file_digest(data), diary)
    shelf = Shelf(folder, rows, len(plan.classes), diary)
    finished = sum(f"student-{partition}" in shelf for partition in range(plan.partitions))
    if finished:
        diary.say(f"{finished} of {plan.partitions} students were finished by an earlier run and are kept.")
    party = Party(
        rows,
        plan.classes,
        seed,
        name=name,
        X=X,
        y=y,
        model=plan.models.parties.get(name),
        shelf=shelf,
        jobs=jobs,
        diary=diary,
        progress=None if progress is None else Steps(progress, shelf, plan.partitions),
    )
    bundle = replace(plan.algorithm().party_step(party, None), plan=plan.digest)
    packed = pack(bundle, check_rows=rows, key=key)
    path = outbox / f"{name}.fedkt"
    write_atomically(path, packed)
    clear(folder)
    return Sent(
        path=path,
        party=name,
        plan=plan.digest,
        students=len(bundle.models),
        resumed=finished,
        rows=len(y),
        bytes=len(packed),
        sha256=hashlib.sha256(packed).hexdigest(),
        signed=key is not None,
        notes=tuple(diary.notes),
    )


def write_keys(name: str, folder: Path) -> str:
    """A new key pair as <name>.key and <name>.pub; the public key. A key that is there is never overwritten."""
    if not NAME.fullmatch(name):
        raise ConfigurationError(f"{name!r} cannot be a party: letters, digits, - and _ only, at most 64.")
    secret, public = folder / f"{name}.key", folder / f"{name}.pub"
    for path in (secret, public):
        if path.exists():
            raise ConfigurationError(
                f"{path} is there already. A plan may rely on it: choose another folder, or remove it yourself."
            )
    key = new_key()
    write_atomically(secret, key.to_pem(), private=True)
    write_atomically(public, f"{key.public}\n".encode())
    return key.public


def read_key(path: Path) -> SigningKey:
    """The private key in a file."""
    data = read_at_most(path, 2**16)
    if data is None:
        raise ConfigurationError(f"{path} is too large to be a key. Pass the .key file that `fedkt keys new` wrote.")
    return load_key(data, source=str(path))


def check_key(plan: Plan, name: str, key: SigningKey | None) -> None:
    """Refuse, before anything is trained, a key that the server would refuse afterwards."""
    agreed = plan.keys.get(name)
    if key is None and agreed is not None:
        raise PlanError(f"The plan lists a key for {name!r}, so its bundle must be signed. Pass --key {name}.key.")
    if key is not None and agreed is None:
        raise PlanError(
            f"The plan lists no key for {name!r}, so nobody could check the signature. Leave --key out, or have the "
            f"plan made again with --key {name}={key.public}."
        )
    if key is not None and key.public != agreed:
        raise PlanError(
            f"This is not the key that the plan lists for {name!r}: its public key is {key.public}, agreed was "
            f"{agreed}. Sign with the key that belongs to the plan, or have the plan made again."
        )


def claim_shelf(folder: Path, plan: Plan, name: str, data_digest: str, diary: Diary) -> int:
    """This party's seed; the folder is emptied first if what lies there was made from something else."""
    belongs = {"plan": plan.digest, "party": name, "data": data_digest, "versions": versions()}
    state = read_state(folder)
    seed = state.pop("seed", None)
    if state == belongs and isinstance(seed, int) and seed >= 0:
        return seed
    if state:
        changed = [key for key in belongs if state.get(key) != belongs[key]]
        diary.say(
            f"{folder} holds work that was begun with other {', '.join(changed) or 'settings'}; it is done again from "
            "the beginning."
        )
    clear(folder)
    if folder.is_dir() and any(folder.iterdir()):
        raise DataError(f"{folder} holds files that are not fedkt's. Pass an empty or new folder as --work.")
    drawn = secrets.randbits(64) if plan.seed == "private" else seed_for(plan.seed, name)
    write_atomically(folder / STATE, json.dumps({**belongs, "seed": drawn}, indent=1).encode(), private=True)
    return drawn


def read_state(folder: Path) -> dict[str, Any]:
    """What the shelf in a folder belongs to; empty where there is none or it cannot be read."""
    try:
        stored = json.loads(read_at_most(folder / STATE, 2**20) or b"")
    except (OSError, ValueError, RecursionError):
        return {}
    return stored if isinstance(stored, dict) else {}


def clear(folder: Path) -> None:
    """Remove what a shelf has put into its folder, and the folder if nothing else is in it."""
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        own = path.name == STATE or path.name.endswith(ENDING) or path.name.endswith(".part")
        if own and path.is_file():
            path.unlink(missing_ok=True)
    if not any(folder.iterdir()):
        shutil.rmtree(folder, ignore_errors=True)
        if folder.parent.name == WORK.name and not any(folder.parent.iterdir()):
            folder.parent.rmdir()


@dataclass(frozen=True)
class Steps:
    """Teachers trained so far, over all partitions."""

    show: Progress
    shelf: Shelf
    partitions: int

    def __call__(self, done: int, total: int) -> None:
        self.show(len(self.shelf) * total + done, self.partitions * total)
