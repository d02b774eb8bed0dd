"""A live server: a folder of bundles and the public rows in, the final model as one file out.

A bundle that is refused is named with the reason, and the others go on. The final file carries classes and columns
with it, so that whoever has it needs nothing else to predict.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.algorithms.fedkt import FedKT, Heard
from fedkt.algorithms.levels import cautions
from fedkt.bundle import Bundle
from fedkt.errors import BundleError, ConfigurationError, ModelError, PlanError, PrivacyError
from fedkt.federation import Diary, Server, seed_for
from fedkt.locks import if_free
from fedkt.models.exchange import OnnxModel, to_onnx
from fedkt.models.prediction import predict_all, probabilities_of_all
from fedkt.parallel import cpu_clock
from fedkt.plan import Plan
from fedkt.privacy import Ledger, statement
from fedkt.privacy.ledger import total_of
from fedkt.privacy.statement import rounded_up
from fedkt.report import Report, accuracies
from fedkt.server_side.claims import dearest, largest_total
from fedkt.server_side.final_file import write_final, write_signed
from fedkt.server_side.inbox import FOLDER_BYTES, Arrival, gather, not_enough, passed_over, without_reasons
from fedkt.server_side.noise import KeptNoise, bare_reasons, kept_noise, ledger_at, open_ledger
from fedkt.signing import SigningKey
from fedkt.transport.folder import write_atomically
from fedkt.versions import versions

LOCK = ".fedkt-server.lock"


@dataclass(frozen=True)
class Hosted:
    """What the server has made, and of what."""

    report: Report
    arrivals: tuple[Arrival, ...]
    missing: tuple[str, ...]
    final: Path
    plan: str
    details: tuple[str, ...] = ()
    """Level L1: why files were refused or students not run. For the eyes of the server only: it is stored nowhere."""
    final_sha256: str = ""
    """Of the bytes of the final file: which one this report is about."""
    signed_by: str | None = None
    """The public key that fits the signature beside the final file."""

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
                # A digest of students tells whoever guesses the rows that the guess is right.
                **({} if self.report.level == "L1" else {"bytes": each.bytes, "sha256": each.sha256}),
                **(
                    {}
                    if each.bundle is None or each.bundle.claim is None
                    else {"claim": each.bundle.claim.model_dump(exclude_none=True)}
                ),
            }
            for each in self.arrivals
        ]
        made = {"plan": self.plan, "bundles": came, "missing": self.missing, "final": str(self.final)}
        made |= {"final_sha256": self.final_sha256, "signed_by": self.signed_by}
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
    ledger: Path | None = None,
    memory: int = FOLDER_BYTES,
    key: SigningKey | None = None,
    jobs: int = 1,
    command: str = "",
    tell: Callable[[int, int], None] | None = None,
) -> Hosted:
    """Gather the bundles, let the students vote, train the final model, and write final.onnx and report.json.

    At level L1 the noisy vote is written into the `ledger` before it is counted.
    With a `key` the final model is signed.
    """
    needed = needed_parties(plan, min_parties)
    ledger = ledger_at(plan, ledger)
    new = ledger is not None and not ledger.exists()
    door = Ledger() if ledger is None else open_ledger(plan, ledger)
    rows = plan.columns.encode(plan.read_public(public))
    # Before anybody waits: a test file that does not fit should be heard of now.
    asked = None if test is None else labelled_rows(plan, test)
    diary = Diary()
    if new and ledger is not None:
        diary.say(
            f"{ledger.name} is new: if noisy votes about these parties were written into another ledger, pass it with "
            "--ledger, or they are not counted."
        )
    if asked is not None:
        diary.notes.extend(asked[2])
    arrivals = gather(plan, bundles, wait=wait, memory=memory, tell=tell)
    heard = [each.bundle for each in arrivals if each.bundle is not None]
    heard.sort(key=lambda bundle: plan.names.index(bundle.sender))
    if len(heard) < needed:
        raise BundleError(not_enough(arrivals, plan, needed, bundles))
    diary.notes.extend(passed_over(bundles, plan.names))
    started, cpu_started = time.perf_counter(), cpu_clock()
    seed = secrets.randbits(64) if plan.seed == "private" else seed_for(plan.seed, "the server")
    algorithm = plan.algorithm()
    server = Server(rows, plan.classes, seed, image=plan.image, jobs=jobs, diary=diary, ledger=door)
    said = algorithm.heard(server, heard)
    silent: dict[str, str] = diary.figures.pop("silent", {})
    voting = [bundle for bundle, _ in said]
    # Where a vote is paid for, whoever cannot vote is out before.
    if len(voting) < needed:
        raise BundleError(not_running(silent, len(voting), needed))
    noise = None if ledger is None else kept_noise(ledger, plan, voting)
    trained = concluded(algorithm, server, said, noise)
    price = door.price() if plan.level == "L1" else dearest(plan, voting)
    total, releases = (total_spent(door) if plan.level == "L1" else largest_total(voting)) or (None, None)
    promise = statement(
        plan.level,
        price,
        total_epsilon=total,
        releases=releases,
        counts=plan.counts,
        count_noise=plan.count_noise(),
    )
    open_figures = plan.level != "L1"
    told = silent if open_figures else bare_reasons(silent)
    shown = {why: told[name] for name, why in silent.items()}
    arrivals = [
        replace(each, reason=told[each.party], bundle=None)
        if each.bundle is not None and each.party in silent
        else each
        for each in arrivals
    ]
    missing = tuple(name for name in plan.names if name not in {bundle.sender for bundle in voting})
    try:
        final = to_onnx(trained, n_features=rows.shape[1], n_classes=len(plan.classes), check_rows=rows)
    except ModelError as reason:
        raise ModelError(f"The final model cannot be written: {reason} Choose another --final family.") from reason
    # At L1 students leave the server only through the noise: no size, score, error or vote of theirs is in the report.
    scores = measure(final, voting if open_figures else (), *asked[:2]) if asked is not None else Scores()
    seconds, cpu_seconds = time.perf_counter() - started, cpu_clock() - cpu_started
    report = Report(
        dataset=plan.task,
        algorithm=plan.algorithm().name,
        model=plan.models.final or plan.models.default,
        parties=len(voting),
        partitions=plan.partitions,
        subsets=plan.subsets,
        level=plan.level,
        seed=plan.seed if isinstance(plan.seed, int) else None,
        accuracy=scores.accuracy,
        balanced_accuracy=scores.balanced,
        label_accuracy=None,
        epsilon=promise.epsilon,
        delta=promise.delta,
        privacy=str(promise),
        privacy_statement=promise.as_dict(),
        bytes_sent=sum(each.bytes for each in arrivals if each.bundle is not None) if open_figures else None,
        seconds=seconds if open_figures else float(round(seconds)),
        cpu_seconds=cpu_seconds if open_figures else float(round(cpu_seconds)),
        versions=versions(),
        command=command,
        rows={"public": len(rows)} | ({"test": len(asked[1])} if asked is not None else {}),
        votes={name: value for name, value in diary.figures.items() if name != "labels"} if open_figures else {},
        party_accuracy=scores.parties or {},
        notes=(
            *cautions(plan.level, price, [1] * len(voting)),
            *reruns(door),
            *dict.fromkeys(shown.get(note, note) for note in diary.notes),
            *(f"Party {name!r} has not sent a bundle that counts." for name in missing if name not in silent),
        ),
    )
    shown_arrivals, unsaid = (arrivals, ()) if open_figures else without_reasons(arrivals)
    details = () if open_figures else (*unsaid, *silent.values())
    data = write_final(final, plan, promise)
    hosted = Hosted(
        report,
        tuple(shown_arrivals),
        missing,
        result / "final.onnx",
        plan.digest,
        details,
        hashlib.sha256(data).hexdigest(),
        None if key is None else key.public,
    )
    write_atomically(result / "privacy.txt", f"{promise}\n".encode())
    write_signed(hosted.final, data, key)
    text = json.dumps(hosted.as_dict(), ensure_ascii=False, indent=1, allow_nan=False)
    write_atomically(result / "report.json", text.encode() + b"\n")
    return hosted


def concluded(algorithm: FedKT, server: Server, said: Sequence[Heard], noise: KeptNoise | None) -> Any:
    """The trained final model; at level L1 with kept noise, whose labels are held before anything learns them."""
    if noise is None:
        return algorithm.conclude(server, said).models[0]
    server.ledger.hold = noise.hold
    try:
        return algorithm.conclude(replace(server, noise_seed=noise.seed), said).models[0]
    except PrivacyError:
        noise.forget()
        raise


@dataclass(frozen=True)
class Scores:
    """How the final model and each party's students do on the test rows."""

    accuracy: float | None = None
    balanced: float | None = None
    parties: dict[str, float] | None = None


@contextmanager
def sole_server(result: Path) -> Iterator[None]:
    """No other server writes into this result folder inside the block; their files would mix."""
    there = result.is_dir()
    try:
        with if_free(result / LOCK) as ours:
            if not ours:
                raise ConfigurationError(
                    f"Another server is working for {result}. Wait until it has finished, or pass another --output."
                )
            yield
    finally:
        if not there:
            with suppress(OSError):
                result.rmdir()


def measure(final: OnnxModel, heard: Sequence[Bundle], X: Any, y: Any) -> Scores:
    """Accuracy of the final model, and of each party's students on their own (the mean over its students)."""
    plain, balanced = accuracies([final], X, y)
    alone: dict[str, float] = {}
    for bundle in heard:
        answers = [each for each in labels_of(bundle, X) if not isinstance(each, str)]
        if answers:
            alone[bundle.sender] = float(np.mean([np.mean(each == y) for each in answers]))
    return Scores(plain[0], balanced[0], alone)


def labels_of(bundle: Bundle, X: Any) -> list[NDArray[np.int64] | str]:
    """The class that each of a party's students finds likeliest, never "not mine"; or why it says nothing."""
    if not bundle.not_mine:
        return predict_all(bundle.models, X)
    said = probabilities_of_all(bundle.models, X, bundle.n_outputs)
    return [each if isinstance(each, str) else each[:, :-1].argmax(axis=1) for each in said]


def labelled_rows(plan: Plan, path: Path) -> tuple[Any, Any, tuple[str, ...]]:
    """The rows and class indices of a labelled file, and what is odd about its values."""
    table = plan.columns.read(path)
    X, y = plan.columns.encode(table), plan.columns.labels(table, plan.classes)
    return X, y, plan.columns.unseen_notes(table)


def reruns(ledger: Ledger) -> tuple[str, ...]:
    """What all releases of this owner cost together, where there were others before."""
    total = total_spent(ledger)
    if ledger.book is None or total is None or total[1] < 2:
        return ()
    return (
        f"The ledger {ledger.book.path.name} holds {total[1]} releases about these parties. A budget of "
        f"epsilon {rounded_up(total[0])} at delta {ledger.delta:g}, fixed beforehand, covers all of them.",
    )


def total_spent(ledger: Ledger) -> tuple[float, int] | None:
    """The ε of everything this owner has written into its ledger, and how many releases that are."""
    spent = [] if ledger.book is None else ledger.book.spent(who=ledger.owner)
    return (total_of(spent, ledger.delta), len(spent)) if spent else None


def not_running(silent: dict[str, str], voters: int, needed: int) -> str:
    """The words for a vote that too few parties could take part in."""
    told = "".join(f"\n  {note}" for note in silent.values())
    return (
        f"{voters} of the {needed} parties needed could vote; nothing was written.{told}\n"
        "Ask them for another bundle, or go on without (--min-parties K)."
    )
