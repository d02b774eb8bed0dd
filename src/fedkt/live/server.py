"""A live server: a mailbox of bundles and the public rows in, the final model as one file out.

A bundle that is refused is named with the reason, and the others go on. The final file carries classes and columns
with it, so that whoever has it needs nothing else to predict.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from fedkt.algorithms.calibration import cautions, label_alarms
from fedkt.algorithms.fedkt import FedKT
from fedkt.bundle import Bundle
from fedkt.bundle.signing import SigningKey
from fedkt.data.format import PLAIN, Format
from fedkt.data.mapping import NO_MAPPING, TableMapping
from fedkt.errors import BundleError, ConfigurationError, ModelError, PlanError, PrivacyError
from fedkt.federation import Diary, Outcome, Server, seed_for
from fedkt.live.arrivals import Arrival
from fedkt.live.claims import dearest, largest_total
from fedkt.live.inbox import gather, ignored_entries, not_enough
from fedkt.live.mailbox import Mailbox
from fedkt.live.measure import FinalScores, labelled_rows, measure
from fedkt.live.noise_file import NoiseFile, ledger_at, open_noise, server_ledger
from fedkt.live.result import ServerResult, VoteOutcome, final_in, parties_without_vote, write_result
from fedkt.models.final_exchange import to_final_onnx
from fedkt.models.onnx_rules import Limits
from fedkt.plan import Plan
from fedkt.privacy import Ledger, Price, statement
from fedkt.privacy.ledger import total_of
from fedkt.privacy.statement import rounded_up
from fedkt.report import Report, build_report, protects_parties, run_log
from fedkt.system.locks import if_free, signals_later
from fedkt.system.parallel import cpu_clock

LOCK = ".fedkt-server.lock"


def needed_parties(plan: Plan, min_parties: int | None) -> int:
    """How many parties the server goes on with at least: all of them, unless the plan or the server says fewer."""
    if min_parties is None:
        return plan.min_parties if plan.min_parties is not None else len(plan.names)
    if not 1 <= min_parties <= len(plan.names):
        raise PlanError(
            f"--min-parties must lie between 1 and the plan's {len(plan.names)} parties, got {min_parties}."
        )
    if plan.min_parties is not None and min_parties < plan.min_parties:
        raise PlanError(
            f"--min-parties {min_parties} is below the {plan.min_parties} that everybody agreed on in the plan."
        )
    return min_parties


def run_server(
    plan: Plan,
    *,
    public: Path,
    inbox: Mailbox,
    result: Path,
    min_parties: int | None = None,
    wait: float = 0.0,
    test: Path | None = None,
    test_form: Format = PLAIN,
    choices: TableMapping = NO_MAPPING,
    ledger: Path | None = None,
    limits: Limits | None = None,
    key: SigningKey | None = None,
    replace_result: bool = False,
    jobs: int = 1,
    command: str = "",
    tell: Callable[[int, int], None] | None = None,
) -> ServerResult:
    """Gather the bundles, let the students vote, train the final model, and write final.onnx and report.json.

    At level L1 the noisy vote is written into the `ledger` before it is counted. With a `key` the final model is
    signed. `limits` are what all parties may take together, `test_form` and `choices` how the test rows are written and
    what their columns and codes are called. A final model that is there is replaced only if asked for.
    """
    needed = needed_parties(plan, min_parties)
    ledger = ledger_at(plan, ledger)
    with signals_later():
        # What C++ libraries do with a signal while they are loaded is end without a word, or forget it.
        import onnx  # noqa: F401
        import sklearn.ensemble  # noqa: F401
    with sole_server(result):
        check_result(result, replace_result=replace_result)
        diary = Diary()
        account = Ledger() if ledger is None else server_ledger(plan, ledger, diary)
        rows = plan.columns.encode(plan.read_public(public))
        # Before anybody waits: a test file that does not fit should be heard of now.
        labelled = None if test is None else labelled_rows(plan, test, diary, test_form, choices)
        arrivals = gather(plan, inbox, wait=wait, limits=limits, tell=tell)
        bundles = accepted_bundles(plan, arrivals)
        if len(bundles) < needed:
            raise BundleError(not_enough(arrivals, plan, needed, inbox))
        diary.notes.extend(ignored_entries(inbox, plan.names))
        started, cpu_started = time.perf_counter(), cpu_clock()
        server = Server(
            rows,
            plan.classes,
            server_seed(plan),
            image=plan.image,
            jobs=jobs,
            diary=diary,
            ledger=account,
            scratch=result,
            parties=len(plan.names),
        )
        vote = hold_vote(plan, server, bundles, needed, ledger)
        # At level L1 students leave the server only through the noise: no size, score, error or vote of theirs is told.
        alone = () if protects_parties(plan.level) else vote.voting
        scores = FinalScores() if labelled is None else measure(vote.final, alone, *labelled, plan.classes)
        clocks = time.perf_counter() - started, cpu_clock() - cpu_started
        test_rows = 0 if labelled is None else len(labelled[1])
        report = report_of(plan, server, vote, arrivals, scores, clocks, command, test_rows)
        return write_result(plan, vote, arrivals, report, result, key)


def accepted_bundles(plan: Plan, arrivals: Sequence[Arrival]) -> list[Bundle]:
    """The bundles that count, in the plan's order of parties."""
    bundles = [each.bundle for each in arrivals if each.bundle is not None]
    return sorted(bundles, key=lambda bundle: plan.names.index(bundle.sender))


def server_seed(plan: Plan) -> int:
    """What the server draws its randomness from, apart from its noise."""
    return secrets.randbits(64) if plan.seed == "private" else seed_for(plan.seed, "the server")


def hold_vote(plan: Plan, server: Server, bundles: Sequence[Bundle], needed: int, ledger: Path | None) -> VoteOutcome:
    """The vote of the parties' students and the model that learned from it; at level L1 paid for before it counts."""
    algorithm, noted = plan.algorithm(), len(server.diary.notes)
    if isinstance(algorithm, FedKT):
        answers = algorithm.student_answers(server, bundles)
        silent, voting, conclude = answers.silent, answers.bundles, partial(algorithm.train_final, answers=answers)
    else:
        heard = algorithm.hear(server, bundles)
        silent, voting, conclude = dict(heard.silent), heard.bundles, partial(algorithm.train_final, heard=heard)
    # Where a vote is paid for, whoever cannot vote is out before.
    if len(voting) < needed:
        raise BundleError(not_running(silent, len(voting), needed))
    noise = None if ledger is None else open_noise(ledger, plan, voting)
    trained = train_final(conclude, server, noise)
    price = server.ledger.price() if plan.level == "L1" else dearest(plan, voting)
    total, releases = (total_spent(server.ledger) if plan.level == "L1" else largest_total(voting)) or (None, None)
    counts = plan.expected.counts or (plan.level == "L0" and plan.method.tells_counts)
    sums = bool(plan.expected.arrays)
    promise = statement(plan.level, price, total_epsilon=total, releases=releases, counts=counts, sums=sums)
    width, classes = server.public.shape[1], len(plan.classes)
    try:
        final = to_final_onnx(trained, n_features=width, n_classes=classes, check_rows=server.public)
    except ModelError as reason:
        raise ModelError(f"The final model cannot be written: {reason} Choose another --final family.") from reason
    notes = (*vote_cautions(plan, price, len(voting)), *server.diary.notes[noted:])
    return VoteOutcome(voting, silent, price, promise, replace(final, free_label=True), notes)


def vote_cautions(plan: Plan, price: Price | None, voters: int) -> tuple[str, ...]:
    """What is to be said of the price; how many records a party has, the server does not know: one is the least."""
    return cautions(plan.level, price, [1] * voters if protects_parties(plan.level) else [1])


def report_of(
    plan: Plan,
    server: Server,
    vote: VoteOutcome,
    arrivals: Sequence[Arrival],
    scores: FinalScores,
    clocks: tuple[float, float],
    command: str,
    test_rows: int,
) -> Report:
    """What is told of the vote; the parties' own diaries stay with the parties."""
    absent = [name for name in parties_without_vote(plan, vote) if name not in vote.silent]
    voters = [each for each in arrivals if each.bundle is not None and each.party not in vote.silent]
    final = Bundle("server", plan.classes, (vote.final,))
    log = run_log(Outcome(final, tuple(vote.voting), {}, server.diary, *clocks), plan.level)
    notes = (
        *dict.fromkeys(log.notes),
        *(f"Party {name!r} has not sent a bundle that counts." for name in absent),
    )
    return build_report(
        vote.promise,
        replace(log, notes=notes),
        notes=(*vote_cautions(plan, vote.price, len(vote.voting)), *reruns(server.ledger)),
        alarms=label_alarms(plan.level, vote.price),
        dataset=plan.task,
        algorithm=plan.algorithm().name,
        model=plan.method.final_name(plan),
        parties=len(vote.voting),
        partitions=plan.partitions,
        subsets=plan.subsets,
        seed=plan.seed if isinstance(plan.seed, int) else None,
        quality=scores.quality,
        accuracy=scores.accuracy,
        balanced_accuracy=scores.balanced,
        bytes_sent=sum(each.bytes for each in voters),
        command=command,
        packages=plan.packages(),
        rows={"public": len(server.public)} | ({"test": test_rows} if test_rows else {}),
        party_accuracy=scores.parties or {},
    )


def train_final(conclude: Callable[[Server], Bundle], server: Server, noise: NoiseFile | None) -> Any:
    """The trained final model; at level L1 with kept noise, whose output is held before anything learns from it."""
    if noise is None:
        return conclude(server).models[0]
    server.ledger.hold = lambda _, digest: noise.hold(digest)
    try:
        return conclude(replace(server, noise_seed=noise.seed)).models[0]
    except PrivacyError:
        noise.forget()
        raise


def check_result(result: Path, *, replace_result: bool) -> None:
    """Refuse, before anything is run, to write over a final model."""
    if final_in(result).exists() and not replace_result:
        raise ConfigurationError(
            f"{final_in(result)} is there already, made by an earlier run. Pass another --output, or --force to "
            "replace it and what lies beside it."
        )


@contextmanager
def sole_server(result: Path) -> Iterator[None]:
    """No other server writes into this result folder inside the block; their files would mix."""
    existed = result.is_dir()
    try:
        with if_free(result / LOCK) as ours:
            if not ours:
                raise ConfigurationError(
                    f"Another server is working for {result}. Wait until it has finished, or pass another --output."
                )
            yield
    finally:
        if not existed:
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
    reasons = "".join(f"\n  {note}" for note in silent.values())
    return (
        f"{voters} of the {needed} parties needed could vote; nothing was written.{reasons}\n"
        "Ask them for another bundle, or go on without (--min-parties K)."
    )
