"""Run one algorithm on one drawn split."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.algorithms import ALGORITHMS, FedKT, FedKTProx
from fedkt.algorithms.calibration import calibrated, cautions
from fedkt.algorithms.fedkt import number_of_queries
from fedkt.algorithms.voting import make_voting
from fedkt.bundle import Bundle
from fedkt.data import Dataset, load
from fedkt.data.dataset import with_fewer_public, with_skewed_public
from fedkt.data.partition import partition
from fedkt.errors import ConfigurationError
from fedkt.federation import Outcome, Party, Server, seed_for, simulate
from fedkt.lab.rounds import Rounds, Told
from fedkt.lab.setting import Setting
from fedkt.models.catalogue import as_estimator, trained_for
from fedkt.models.ensemble import is_neural
from fedkt.privacy import Noise, make_noise, statement
from fedkt.privacy.diagnostic import Diagnostic, diagnose, diagnose_parties
from fedkt.privacy.ledger import known_level
from fedkt.report import Report, accuracies, versions
from fedkt.system.parallel import Progress, cpu_clock


def run(
    setting: Setting,
    *,
    jobs: int = 1,
    data_dir: Path | None = None,
    measure_bytes: bool = False,
    command: str = "",
    progress: Progress | None = None,
    diagnostic: Callable[[Outcome, Setting], None] | None = None,
    caution: Callable[[str], None] | None = None,
    round_folder: Path | None = None,
) -> Report:
    """Draw the split and the parties from the seed, run the algorithm, and measure it on the test rows.

    A run of several rounds that is given a `round_folder` goes on where it was killed; `forget` the folder when the
    report is safe.
    """
    full = setting.filled()
    data = load(full.dataset, seed=full.seed, data_dir=data_dir)
    data = with_skewed_public(data, full.public_beta, seed=full.seed)
    data = with_fewer_public(data, full.public_share, seed=full.seed)
    owners = draw_parties(full, data)
    parties = [replace(party, diagnostic=diagnostic is not None) for party in assemble(full, data, owners)]
    # The parties have the rows now; a second copy of them is not needed any more.
    data = replace(data, X=data.X[:0].copy())
    assert full.model is not None
    sizes = [len(party.y) for party in parties]
    tuned = partial(trained_for, epochs=full.epochs, learning_rate=full.learning_rate)
    algorithm = ALGORITHMS[full.algorithm].build(
        tuned(full.model),
        teachers=len(parties),
        partitions=full.partitions,
        subsets=full.subsets,
        level=full.level,
        noise=chosen_noise(full, data, len(sizes)),
        queries=full.queries,
        teacher=tuned(full.teacher),
        student=tuned(full.student),
        final=tuned(full.final),
        rounds=full.rounds,
        participation=full.participation,
        local_epochs=full.local_epochs,
        distil_epochs=full.distil_epochs,
        mu=full.mu,
        learning_rate=full.learning_rate,
    )
    price = on_counts = None
    if isinstance(algorithm, FedKT):
        algorithm.check()
        price = algorithm.price(
            public_rows=len(data.X_public), classes=len(data.classes), parties=len(sizes), delta=full.delta
        )
        on_counts = algorithm.voting.count_noise(algorithm, len(data.X_public))
    promise = statement(
        full.level,
        price,
        reproducible_noise=price is not None,
        counts=isinstance(algorithm, FedKT) and algorithm.voting.class_counts,
        count_noise=on_counts,
    )
    cautioned = cautions(full.level, price, sizes)
    for each in cautioned:
        if caution is not None:
            caution(each)
    server = Server(
        data.X_public,
        data.classes,
        seed_for(full.seed, "the server"),
        image=data.image,
        noise_seed=seed_for(full.seed, "the server's noise"),
        diagnostic=diagnostic is not None,
    )
    several = algorithm.rounds > 1

    def score(after: Bundle) -> float:
        return float(np.mean(accuracies(algorithm.finish(server, after).models, data.X_test, data.y_test)[0]))

    started, cpu_started = time.perf_counter(), cpu_clock()

    def told() -> Told:
        diaries = {party.name: party.diary for party in parties}
        spent = time.perf_counter() - started, cpu_clock() - cpu_started
        return Told.by(Outcome(Bundle("server", data.classes, ()), (), diaries, server.diary, *spent), data.y_public)

    rounds = Rounds(
        score if several else None,
        data.X_public,
        # Beside many rounds of training the students of FedKT-Prox are soon packed, and its curve needs their bytes.
        measure_bytes or several,
        round_folder if several else None,
        told,
    )
    outcome = simulate(
        algorithm,
        parties,
        server,
        jobs=jobs,
        progress=progress,
        on_round=rounds.hear if algorithm.sends else None,
        keep=rounds.keep,
        resume=rounds.resume(data.classes),
    )
    whole = rounds.earlier.and_then(Told.by(outcome, data.y_public))
    if diagnostic is not None:
        diagnostic(outcome, full)
    plain, balanced = accuracies(outcome.final.models, data.X_test, data.y_test)
    shape = algorithm.first if isinstance(algorithm, FedKTProx) else algorithm
    return Report(
        dataset=full.dataset,
        algorithm=full.algorithm,
        model=f"{','.join(full.party_models)} -> {full.model}" if full.party_models else full.model,
        parties=len(parties),
        partitions=getattr(shape, "partitions", None),
        subsets=getattr(shape, "subsets", None),
        level=full.level,
        seed=full.seed,
        accuracy=float(np.mean(plain)),
        balanced_accuracy=float(np.mean(balanced)),
        label_accuracy=whole.label_accuracy,
        epsilon=promise.epsilon,
        delta=promise.delta,
        privacy=str(promise),
        privacy_statement=promise.as_dict(),
        bytes_sent=rounds.sent,
        bytes_received=rounds.received,
        seconds=whole.seconds,
        cpu_seconds=whole.cpu_seconds if jobs == 1 else None,
        versions=versions(),
        command=command,
        partition=full.partition or "",
        beta=full.beta if full.partition in ("dirichlet", "balanced") else None,
        party_rows={} if full.level == "L1" else {party.name: len(party.y) for party in parties},
        rows={"parties": len(data.y), "public": len(data.X_public), "test": len(data.y_test)},
        votes=whole.votes,
        party_accuracy=dict(zip([p.name for p in parties], plain, strict=True)) if len(plain) == len(parties) else {},
        notes=(*cautioned, *whole.notes),
        source=data.source,
        epochs=epochs_of(tuned(each) for each in (full.model, *full.party_models)),
        local_epochs=full.local_epochs,
        learning_rate=full.learning_rate,
        mu=full.mu,
        distil_epochs=full.distil_epochs,
        rounds=algorithm.rounds,
        participation=algorithm.participation,
        history=tuple(asdict(each) for each in rounds.figures) if several else (),
    )


def epochs_of(models: Iterable[Any]) -> int | str | None:
    """The epochs of the networks among these models, None where there are none."""
    networks = [chosen for model in models if is_neural(chosen := as_estimator(model))]
    if not networks:
        return None
    return "auto" if networks[0].epochs is None else int(networks[0].epochs)


def data_dependent(outcome: Outcome, setting: Setting) -> Diagnostic:
    """The data-dependent ε of a simulated run (confidential: it depends on the votes)."""
    if setting.algorithm != "fedkt" or not setting.scale:
        raise ConfigurationError("The data-dependent epsilon is for the votes of fedkt, with a noise of a given scale.")
    noise = make_noise(setting.mechanism or "", dict(setting.scale))
    if setting.level == "L1":
        return diagnose(outcome.server.bare_votes[0], noise, setting.delta)
    diaries = outcome.parties.values()
    votes = [np.concatenate(diary.bare_votes) for diary in diaries]
    return diagnose_parties(votes, noise, setting.delta, partitions=max(len(diary.bare_votes) for diary in diaries))


def chosen_noise(setting: Setting, data: Dataset, parties: int) -> Noise | None:
    """The noise a setting names, or the smallest one that keeps its ε."""
    known_level(setting.level)
    if setting.level == "L0":
        return None
    if setting.epsilon is None:
        return make_noise(setting.mechanism, dict(setting.scale)) if setting.mechanism else None
    if setting.scale:
        raise ConfigurationError("Give a noise scale or an epsilon to calibrate it to, not both.")
    return calibrated(
        setting.mechanism or "gaussian",
        level=setting.level,
        epsilon=setting.epsilon,
        delta=setting.delta,
        queries=number_of_queries(setting.queries, len(data.X_public)),
        partitions=setting.partitions or 1,
        subsets=setting.subsets or 5,
        classes=len(data.classes),
        parties=parties,
        counts=make_voting(setting.algorithm).class_counts,
    )


def draw_parties(setting: Setting, data: Dataset) -> NDArray[np.str_]:
    """The name of the party of each training row."""
    owners = partition(
        setting.partition or "dirichlet",
        data.y,
        setting.parties or 1,
        rng=np.random.default_rng([setting.seed, 1]),
        beta=setting.beta,
        groups=data.groups,
    )
    if owners.dtype.kind == "U":
        return owners
    width = len(str(owners.max()))
    return np.array([f"party {number:0{width}d}" for number in owners])


def assemble(setting: Setting, data: Dataset, owners: NDArray[np.str_]) -> list[Party]:
    """One Party per name, each with a seed of its own."""
    families = setting.party_models
    members = []
    for position, name in enumerate(np.unique(owners).tolist()):
        rows = np.flatnonzero(owners == name)
        members.append(
            Party(
                data.X_public,
                data.classes,
                seed_for(setting.seed, name),
                image=data.image,
                name=name,
                X=data.X[rows],
                y=data.y[rows],
                model=trained_for(
                    families[position % len(families)] if families else None,
                    epochs=setting.epochs,
                    learning_rate=setting.learning_rate,
                ),
                noise_seed=seed_for(setting.seed, f"{name}'s noise"),
            )
        )
    return members
