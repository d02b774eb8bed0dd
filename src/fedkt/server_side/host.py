"""A live server: a folder of bundles and the public rows in, the final model as one file out.

A bundle that is refused is named with the reason, and the others go on. The final file carries classes and columns
with it, so that whoever has it needs nothing else to predict.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fedkt.bundle import Bundle, unpack
from fedkt.errors import BundleError, DataError, ModelError, PlanError
from fedkt.federation import Diary, Server, cpu_clock, seed_for
from fedkt.models.exchange import OnnxModel, to_onnx
from fedkt.models.onnx_rules import Limits
from fedkt.models.prediction import predict_all
from fedkt.plan import Plan
from fedkt.report import NO_PRIVACY, Report, accuracies, versions
from fedkt.server_side.final_file import write_final
from fedkt.transport.folder import read_at_most, waiting_files, write_atomically

ENDING = ".fedkt"
POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Arrival:
    """One file of the inbox: accepted with its party's bundle, or refused with a reason."""

    file: str
    party: str | None
    reason: str = ""
    """Why it was refused; empty if it was accepted."""
    bundle: Bundle | None = None
    bytes: int = 0
    sha256: str = ""


@dataclass(frozen=True)
class Hosted:
    """What the server has made, and of what."""

    report: Report
    arrivals: tuple[Arrival, ...]
    missing: tuple[str, ...]
    final: Path
    plan: str

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values: the report, the files that came, and the final file."""
        came = [
            {
                "file": each.file,
                "party": each.party,
                "accepted": not each.reason,
                "reason": each.reason or None,
                "students": 0 if each.bundle is None else len(each.bundle.models),
                "bytes": each.bytes,
                "sha256": each.sha256,
            }
            for each in self.arrivals
        ]
        made = {"plan": self.plan, "bundles": came, "missing": self.missing, "final": str(self.final)}
        return {**asdict(self.report), **made}


def gather(
    plan: Plan,
    folder: Path,
    *,
    wait: float = 0.0,
    tell: Callable[[int, int], None] | None = None,
) -> list[Arrival]:
    """Every bundle file in the folder, looked at; waits up to `wait` seconds for parties that have not sent yet.

    Two different bundles of one party are both refused, since nobody here can tell which one is meant; the same bytes
    under two names count once.
    """
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder. --bundles takes the folder that the parties' .fedkt files are in.")
    looked: dict[tuple[str, int, int], Arrival] = {}
    deadline = time.monotonic() + wait
    while True:
        present = []
        for path in waiting_files(folder, ENDING):
            mark = marked(path)
            if mark not in looked:
                looked[mark] = look(plan, path)
            present.append(looked[mark])
        arrivals = without_twins(present)
        accepted = {each.party for each in arrivals if not each.reason}
        if tell is not None:
            tell(len(accepted), len(plan.names))
        left = deadline - time.monotonic()
        if len(accepted) == len(plan.names) or left <= 0:
            return arrivals
        time.sleep(min(POLL_SECONDS, left))


def marked(path: Path) -> tuple[str, int, int]:
    """What tells a file that has been looked at from one that was replaced since."""
    try:
        facts = path.stat()
    except OSError:
        return path.name, -1, -1
    return path.name, facts.st_size, facts.st_mtime_ns


def look(plan: Plan, path: Path) -> Arrival:
    """One file, checked from the outside in; a refusal is an answer, not an error."""
    limits = Limits()
    # A file's name may hold anything, also what makes a terminal misbehave.
    name = "".join(each if each.isprintable() else "?" for each in path.name)
    try:
        data = read_at_most(path, limits.bundle_bytes)
    except OSError as reason:
        return Arrival(name, None, f"it cannot be read: {reason.strerror}")
    if data is None:
        return Arrival(name, None, f"it is larger than {limits.bundle_bytes:,} bytes.")
    digest = hashlib.sha256(data).hexdigest()
    try:
        bundle = unpack(
            data,
            source=name,
            plan=plan.digest,
            classes=plan.classes,
            n_features=plan.columns.n_features,
            max_models=plan.partitions,
            parties=plan.names,
            keys=plan.keys,
            limits=limits,
        )
    except BundleError as reason:
        return Arrival(name, claimed_sender(data, name), str(reason), bytes=len(data), sha256=digest)
    if len(bundle.models) != plan.partitions:
        # Fewer students agree more easily: a party that sends one of two would vote on every row.
        reason_ = f"it holds {len(bundle.models)} students, but {plan.partitions} were agreed on (partitions)."
        return Arrival(name, bundle.sender, reason_, bytes=len(data), sha256=digest)
    return Arrival(name, bundle.sender, "", bundle, len(data), digest)


def claimed_sender(data: bytes, source: str) -> str | None:
    """Who a refused bundle says it is from, where that much can be read; for the message only."""
    from fedkt.bundle import peek

    try:
        return peek(data, source=source).party
    except BundleError:
        return None


def without_twins(arrivals: Sequence[Arrival]) -> list[Arrival]:
    """The arrivals, with both refused where one party has sent two different bundles."""
    result: list[Arrival] = []
    for each in arrivals:
        same = [other for other in arrivals if not other.reason and other.party == each.party]
        if each.reason or len(same) == 1:
            result.append(each)
        elif len({other.sha256 for other in same}) > 1:
            files = ", ".join(other.file for other in same)
            reason = f"{each.party!r} has sent different bundles ({files}), and nobody can tell which one is meant."
            result.append(replace(each, reason=f"{reason} Keep one in the folder.", bundle=None))
        elif each is same[0]:
            result.append(each)
        else:
            result.append(replace(each, reason=f"it is a copy of {same[0].file}, which is counted.", bundle=None))
    return result


def needed_parties(plan: Plan, asked: int | None) -> int:
    """How many parties the server goes on with at least: all of them, unless the plan or the server says fewer."""
    if asked is None:
        return plan.min_parties if plan.min_parties is not None else len(plan.names)
    if not 1 <= asked <= len(plan.names):
        raise PlanError(f"--min-parties must lie between 1 and the plan's {len(plan.names)} parties, got {asked}.")
    if plan.min_parties is not None and asked < plan.min_parties:
        raise PlanError(f"--min-parties {asked} is below the {plan.min_parties} that everybody agreed on in the plan.")
    return asked


def run_server(
    plan: Plan,
    *,
    public: Path,
    bundles: Path,
    result: Path,
    min_parties: int | None = None,
    wait: float = 0.0,
    test: Path | None = None,
    jobs: int = 1,
    command: str = "",
    tell: Callable[[int, int], None] | None = None,
) -> Hosted:
    """Gather the bundles, let the students vote, train the final model, and write final.onnx and report.json."""
    needed = needed_parties(plan, min_parties)
    rows = plan.columns.encode(plan.read_public(public))
    # Before anybody waits: a test file that does not fit should be heard of now.
    asked = None if test is None else labelled_rows(plan, test)
    arrivals = gather(plan, bundles, wait=wait, tell=tell)
    heard = [each.bundle for each in arrivals if each.bundle is not None]
    heard.sort(key=lambda bundle: plan.names.index(bundle.sender))
    missing = tuple(name for name in plan.names if name not in {bundle.sender for bundle in heard})
    if len(heard) < needed:
        raise BundleError(not_enough(arrivals, missing, len(heard), needed, bundles))
    started, cpu_started = time.perf_counter(), cpu_clock()
    diary = Diary()
    seed = secrets.randbits(64) if plan.seed == "private" else seed_for(plan.seed, "the server")
    server = Server(rows, plan.classes, seed, jobs=jobs, diary=diary)
    trained: Any = plan.algorithm().server_step(server, heard).models[0]
    try:
        final = to_onnx(trained, n_features=rows.shape[1], n_classes=len(plan.classes), check_rows=rows)
    except ModelError as reason:
        raise ModelError(f"The final model cannot be written: {reason} Choose another --final family.") from reason
    scores = measure(final, heard, *asked) if asked is not None else Scores()
    report = Report(
        dataset=plan.task,
        algorithm="fedkt",
        model=plan.models.final or plan.models.default,
        parties=len(heard),
        partitions=plan.partitions,
        subsets=plan.subsets,
        level=plan.level,
        seed=plan.seed if isinstance(plan.seed, int) else None,
        accuracy=scores.accuracy,
        balanced_accuracy=scores.balanced,
        label_accuracy=None,
        epsilon=None,
        privacy=NO_PRIVACY,
        bytes_sent=sum(each.bytes for each in arrivals if each.bundle is not None),
        seconds=time.perf_counter() - started,
        cpu_seconds=cpu_clock() - cpu_started,
        versions=versions(),
        command=command,
        rows={"public": len(rows)} | ({"test": len(asked[1])} if asked is not None else {}),
        votes={name: value for name, value in diary.figures.items() if name != "labels"},
        party_accuracy=scores.parties or {},
        notes=(*diary.notes, *(f"Party {name!r} has not sent a bundle that counts." for name in missing)),
    )
    hosted = Hosted(report, tuple(arrivals), missing, result / "final.onnx", plan.digest)
    write_atomically(hosted.final, write_final(final, plan))
    text = json.dumps(hosted.as_dict(), ensure_ascii=False, indent=1, allow_nan=False)
    write_atomically(result / "report.json", text.encode() + b"\n")
    return hosted


@dataclass(frozen=True)
class Scores:
    """How the final model and each party's students do on the test rows."""

    accuracy: float | None = None
    balanced: float | None = None
    parties: dict[str, float] | None = None


def measure(final: OnnxModel, heard: Sequence[Bundle], X: Any, y: Any) -> Scores:
    """Accuracy of the final model, and of each party's students on their own (the mean over its students)."""
    plain, balanced = accuracies([final], X, y)
    alone: dict[str, float] = {}
    for bundle in heard:
        answers = [each for each in predict_all(bundle.models, X) if not isinstance(each, str)]
        if answers:
            alone[bundle.sender] = float(np.mean([np.mean(each == y) for each in answers]))
    return Scores(plain[0], balanced[0], alone)


def labelled_rows(plan: Plan, path: Path) -> tuple[Any, Any]:
    """The rows and class indices of a labelled file."""
    table = plan.columns.read(path)
    return plan.columns.encode(table), plan.columns.labels(table, plan.classes)


def not_enough(arrivals: Sequence[Arrival], missing: Sequence[str], heard: int, needed: int, folder: Path) -> str:
    """The words for a server that cannot start."""
    refused = "".join(f"\n  refused: {each.file}: {each.reason}" for each in arrivals if each.reason)
    return (
        f"{heard} of the {needed} bundles needed are in {folder}. Missing: {', '.join(missing)}.{refused}\n"
        "Wait for them (--wait SECONDS) or go on without (--min-parties K)."
    )
