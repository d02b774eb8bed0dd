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

from fedkt.algorithms.calibration import cautions
from fedkt.algorithms.fedkt import FedKT
from fedkt.algorithms.voting import StudentAnswers
from fedkt.bundle import Bundle
from fedkt.bundle.signing import SigningKey
from fedkt.errors import BundleError, ConfigurationError, ModelError, PlanError, PrivacyError
from fedkt.federation import Diary, Server, seed_for
from fedkt.live.claims import dearest, largest_total
from fedkt.live.final_file import write_final, write_signed
from fedkt.live.inbox import Arrival, gather, not_enough, passed_over, without_reasons
from fedkt.live.kept_noise import KeptNoise, bare_reasons, kept_noise, ledger_at, open_ledger
from fedkt.live.measure import Scores, labelled_rows, measure
from fedkt.models.exchange import OnnxModel, to_onnx
from fedkt.models.onnx_rules import Limits
from fedkt.plan import Plan
from fedkt.privacy import Ledger, Price, Statement, statement
from fedkt.privacy.ledger import total_of
from fedkt.privacy.statement import rounded_up
from fedkt.report import Report
from fedkt.system.files import write_atomically
from fedkt.system.locks import if_free
from fedkt.system.parallel import cpu_clock
from fedkt.system.versions import versions

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
        made: dict[str, Any] = {"plan": self.plan, "bundles": came, "missing": self.missing, "final": str(self.final)}
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
    limits: Limits | None = None,
    key: SigningKey | None = None,
    jobs: int = 1,
    command: str = "",
    tell: Callable[[int, int], None] | None = None,
) -> Hosted:
    """Gather the bundles, let the students vote, train the final model, and write final.onnx and report.json.

    At level L1 the noisy vote is written into the `ledger` before it is counted. With a `key` the final model is
    signed. `limits` are what all parties may take together.
    """
    needed = needed_parties(plan, min_parties)
    ledger = ledger_at(plan, ledger)
    with sole_server(result):
        diary = Diary()
        door = Ledger() if ledger is None else opened(plan, ledger, diary)
        rows = plan.columns.encode(plan.read_public(public))
        # Before anybody waits: a test file that does not fit should be heard of now.
        asked = None if test is None else labelled_rows(plan, test, diary)
        arrivals = gather(plan, bundles, wait=wait, limits=limits, tell=tell)
        heard = [each.bundle for each in arrivals if each.bundle is not None]
        heard.sort(key=lambda bundle: plan.names.index(bundle.sender))
        if len(heard) < needed:
            raise BundleError(not_enough(arrivals, plan, needed, bundles))
        diary.notes.extend(passed_over(bundles, plan.names))
        started, cpu_started = time.perf_counter(), cpu_clock()
        seed = secrets.randbits(64) if plan.seed == "private" else seed_for(plan.seed, "the server")
        server = Server(rows, plan.classes, seed, image=plan.image, jobs=jobs, diary=diary, ledger=door)
        vote = held_vote(plan, server, heard, needed, ledger)
        # At L1 students leave the server only through the noise: no size, score, error or vote of theirs is told.
        scores = Scores() if asked is None else measure(vote.final, vote.voting if plan.level != "L1" else (), *asked)
        clocks = time.perf_counter() - started, cpu_clock() - cpu_started
        report = report_of(plan, server, vote, arrivals, scores, clocks, command, 0 if asked is None else len(asked[1]))
        return written(plan, vote, arrivals, report, result, key)


@dataclass(frozen=True)
class Vote:
    """What came of a vote: who took part, what is promised, and the final model."""

    voting: list[Bundle]
    silent: dict[str, str]
    """Who could not be heard, and why."""
    price: Price | None
    promise: Statement
    final: OnnxModel


def opened(plan: Plan, path: Path, diary: Diary) -> Ledger:
    """The server's ledger; a new one is told of, since it knows of no release before."""
    if not path.exists():
        diary.say(
            f"{path.name} is new: if noisy votes about these parties were written into another ledger, pass it with "
            "--ledger, or they are not counted."
        )
    return open_ledger(plan, path)


def held_vote(plan: Plan, server: Server, heard: Sequence[Bundle], needed: int, ledger: Path | None) -> Vote:
    """The vote of the parties' students and the model that learned from it; at level L1 paid for before it counts."""
    algorithm = plan.algorithm()
    answers = algorithm.student_answers(server, heard)
    silent, voting = answers.silent, answers.bundles
    # Where a vote is paid for, whoever cannot vote is out before.
    if len(voting) < needed:
        raise BundleError(not_running(silent, len(voting), needed))
    noise = None if ledger is None else kept_noise(ledger, plan, voting)
    trained = concluded(algorithm, server, answers, noise)
    price = server.ledger.price() if plan.level == "L1" else dearest(plan, voting)
    total, releases = (total_spent(server.ledger) if plan.level == "L1" else largest_total(voting)) or (None, None)
    promise = statement(
        plan.level,
        price,
        total_epsilon=total,
        releases=releases,
        counts=plan.voting_rule.class_counts,
        count_noise=plan.count_noise(),
    )
    width, classes = server.public.shape[1], len(plan.classes)
    try:
        final = to_onnx(trained, n_features=width, n_classes=classes, check_rows=server.public)
    except ModelError as reason:
        raise ModelError(f"The final model cannot be written: {reason} Choose another --final family.") from reason
    return Vote(voting, silent, price, promise, final)


def report_of(
    plan: Plan,
    server: Server,
    vote: Vote,
    arrivals: Sequence[Arrival],
    scores: Scores,
    clocks: tuple[float, float],
    command: str,
    test_rows: int,
) -> Report:
    """What is told of the vote. At level L1 nothing of single parties is in it, and no times but whole seconds."""
    told = silences(plan, vote)
    shown = {why: told[name] for name, why in vote.silent.items()}
    open_figures, promise = plan.level != "L1", vote.promise
    seconds, cpu_seconds = clocks if open_figures else (float(round(each)) for each in clocks)
    absent = [name for name in missing(plan, vote) if name not in vote.silent]
    counted = [each for each in arrivals if each.bundle is not None and each.party not in vote.silent]
    return Report(
        dataset=plan.task,
        algorithm=plan.algorithm().name,
        model=plan.models.final or plan.models.default,
        parties=len(vote.voting),
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
        bytes_sent=sum(each.bytes for each in counted) if open_figures else None,
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        versions=versions(),
        command=command,
        rows={"public": len(server.public)} | ({"test": test_rows} if test_rows else {}),
        votes=server.diary.vote.figures() if open_figures else {},
        party_accuracy=scores.parties or {},
        notes=(
            *cautions(plan.level, vote.price, [1] * len(vote.voting)),
            *reruns(server.ledger),
            *dict.fromkeys(shown.get(note, note) for note in server.diary.notes),
            *(f"Party {name!r} has not sent a bundle that counts." for name in absent),
        ),
    )


def missing(plan: Plan, vote: Vote) -> tuple[str, ...]:
    """The parties without a vote, in the plan's order."""
    voted = {bundle.sender for bundle in vote.voting}
    return tuple(name for name in plan.names if name not in voted)


def silences(plan: Plan, vote: Vote) -> dict[str, str]:
    """Why parties could not vote, as it may be told to everybody: at level L1 that they could not, and no more."""
    return bare_reasons(vote.silent) if plan.level == "L1" else vote.silent


def written(
    plan: Plan, vote: Vote, arrivals: Sequence[Arrival], report: Report, result: Path, key: SigningKey | None
) -> Hosted:
    """The final model, the promise and the report, on the disk, the report last."""
    told = silences(plan, vote)
    known: Sequence[Arrival] = [
        replace(each, reason=told[each.party], bundle=None)
        if each.bundle is not None and each.party in vote.silent
        else each
        for each in arrivals
    ]
    details: tuple[str, ...] = ()
    if plan.level == "L1":
        known, unsaid = without_reasons(known)
        details = (*unsaid, *vote.silent.values())
    data = write_final(vote.final, plan, vote.promise)
    hosted = Hosted(
        report,
        tuple(known),
        missing(plan, vote),
        result / "final.onnx",
        plan.digest,
        details,
        hashlib.sha256(data).hexdigest(),
        None if key is None else key.public,
    )
    write_atomically(result / "privacy.txt", f"{vote.promise}\n".encode())
    write_signed(hosted.final, data, key)
    text = json.dumps(hosted.as_dict(), ensure_ascii=False, indent=1, allow_nan=False)
    write_atomically(result / "report.json", text.encode() + b"\n")
    return hosted


def concluded(algorithm: FedKT, server: Server, answers: StudentAnswers, noise: KeptNoise | None) -> Any:
    """The trained final model; at level L1 with kept noise, whose labels are held before anything learns them."""
    if noise is None:
        return algorithm.train_final(server, answers).models[0]
    server.ledger.hold = lambda _, digest: noise.hold(digest)
    try:
        return algorithm.train_final(replace(server, noise_seed=noise.seed), answers).models[0]
    except PrivacyError:
        noise.forget()
        raise


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


def reruns(ledger: Ledger) -> tuple[str, ...]:
    """What all releases of this owner cost together, where there were others before."""
    total = total_spent(ledger)
    if ledger.file is None or total is None or total[1] < 2:
        return ()
    return (
        f"The ledger {ledger.file.path.name} holds {total[1]} releases about these parties. A budget of "
        f"epsilon {rounded_up(total[0])} at delta {ledger.delta:g}, fixed beforehand, covers all of them.",
    )


def total_spent(ledger: Ledger) -> tuple[float, int] | None:
    """The ε of everything this owner has written into its ledger, and how many releases that are."""
    spent = [] if ledger.file is None else ledger.file.spent(who=ledger.owner)
    return (total_of(spent, ledger.delta), len(spent)) if spent else None


def not_running(silent: dict[str, str], voters: int, needed: int) -> str:
    """The words for a vote that too few parties could take part in."""
    told = "".join(f"\n  {note}" for note in silent.values())
    return (
        f"{voters} of the {needed} parties needed could vote; nothing was written.{told}\n"
        "Ask them for another bundle, or go on without (--min-parties K)."
    )
