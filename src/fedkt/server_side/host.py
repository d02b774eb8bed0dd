"""A live server: a folder of bundles and the public rows in, the final model as one file out.

A bundle that is refused is named with the reason, and the others go on. The final file carries classes and columns
with it, so that whoever has it needs nothing else to predict.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fedkt.bundle import Bundle
from fedkt.errors import BundleError, ModelError, PlanError
from fedkt.federation import Diary, Server, cpu_clock, seed_for
from fedkt.models.exchange import OnnxModel, to_onnx
from fedkt.models.prediction import predict_all
from fedkt.plan import Plan
from fedkt.report import NO_PRIVACY, Report, accuracies
from fedkt.server_side.final_file import write_final
from fedkt.server_side.inbox import Arrival, gather, not_enough, passed_over
from fedkt.transport.folder import write_atomically
from fedkt.versions import versions


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
                "status": each.status,
                "reason": each.reason or None,
                "students": 0 if each.bundle is None else len(each.bundle.models),
                "bytes": each.bytes,
                "sha256": each.sha256,
            }
            for each in self.arrivals
        ]
        made = {"plan": self.plan, "bundles": came, "missing": self.missing, "final": str(self.final)}
        return {**asdict(self.report), **made}


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
    diary = Diary()
    if asked is not None:
        diary.notes.extend(asked[2])
    arrivals = gather(plan, bundles, wait=wait, tell=tell)
    heard = [each.bundle for each in arrivals if each.bundle is not None]
    heard.sort(key=lambda bundle: plan.names.index(bundle.sender))
    if len(heard) < needed:
        raise BundleError(not_enough(arrivals, plan, needed, bundles))
    diary.notes.extend(passed_over(bundles))
    started, cpu_started = time.perf_counter(), cpu_clock()
    seed = secrets.randbits(64) if plan.seed == "private" else seed_for(plan.seed, "the server")
    server = Server(rows, plan.classes, seed, jobs=jobs, diary=diary)
    trained: Any = plan.algorithm().server_step(server, heard).models[0]
    silent = silent_parties([bundle.sender for bundle in heard], diary.notes)
    voting = [bundle for bundle in heard if bundle.sender not in silent]
    if len(voting) < needed:
        raise BundleError(not_running(silent, len(voting), needed))
    arrivals = [
        replace(each, reason=silent[each.party], bundle=None)
        if each.bundle is not None and each.party in silent
        else each
        for each in arrivals
    ]
    missing = tuple(name for name in plan.names if name not in {bundle.sender for bundle in voting})
    try:
        final = to_onnx(trained, n_features=rows.shape[1], n_classes=len(plan.classes), check_rows=rows)
    except ModelError as reason:
        raise ModelError(f"The final model cannot be written: {reason} Choose another --final family.") from reason
    scores = measure(final, voting, *asked[:2]) if asked is not None else Scores()
    report = Report(
        dataset=plan.task,
        algorithm="fedkt",
        model=plan.models.final or plan.models.default,
        parties=len(voting),
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
        notes=(
            *dict.fromkeys(diary.notes),
            *(f"Party {name!r} has not sent a bundle that counts." for name in missing if name not in silent),
        ),
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


def labelled_rows(plan: Plan, path: Path) -> tuple[Any, Any, tuple[str, ...]]:
    """The rows and class indices of a labelled file, and what is odd about its values."""
    table = plan.columns.read(path)
    X, y = plan.columns.encode(table), plan.columns.labels(table, plan.classes)
    return X, y, plan.columns.unseen_notes(table)


def silent_parties(names: Sequence[str], notes: Sequence[str]) -> dict[str, str]:
    """Parties whose bundle was accepted but whose students could not be run: name -> what the vote said of it."""
    return {
        name: note
        for name in names
        for note in notes
        if note.startswith(f"Party {name!r} ") and "does not vote" in note
    }


def not_running(silent: dict[str, str], voters: int, needed: int) -> str:
    """The words for a vote that too few parties could take part in."""
    told = "".join(f"\n  {note}" for note in silent.values())
    return (
        f"{voters} of the {needed} parties needed could vote; nothing was written.{told}\n"
        "Ask them for another bundle, or go on without (--min-parties K)."
    )
