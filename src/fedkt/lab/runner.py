"""Run one algorithm on one split, drawn from a seed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.algorithms import FedKT, FedKTProx, Moments, known_algorithm
from fedkt.algorithms.calibration import noise_for_epsilon
from fedkt.algorithms.party_total import shares_in_order
from fedkt.bundle import Bundle
from fedkt.data import Dataset
from fedkt.data.partition import partition
from fedkt.errors import ConfigurationError
from fedkt.federation import Algorithm, Outcome, Party, Server, seed_for, simulate
from fedkt.lab.kept import with_cache, with_spared
from fedkt.lab.rounds import Rounds
from fedkt.lab.rows import load_split, run_notes
from fedkt.lab.setting import Setting, packages_in
from fedkt.models.catalogue import as_estimator, trained_for
from fedkt.models.ensemble import is_neural
from fedkt.privacy import Noise, make_noise
from fedkt.privacy.diagnostic import Diagnostic, diagnose, diagnose_parties
from fedkt.privacy.mechanisms import USUAL
from fedkt.privacy.sums import GaussianSums
from fedkt.report import (
    Report,
    RunLog,
    accuracies,
    build_report,
    figures_alone,
    promise_of,
    qualities,
    run_log,
)
from fedkt.system.cache import Cache
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
    cache: Cache | None = None,
) -> Report:
    """Draw the split and the parties from the seed, run the algorithm, and measure it on the test rows.

    A run of several rounds that is given a `round_folder` goes on where it was killed; `forget` the folder when the
    report is safe. Students whose lessons are in the `cache` are not trained again.
    """
    full = setting.with_defaults()
    data = load_split(full, data_dir)
    parties = assemble(full, data, draw_parties(full, data), diagnostic=diagnostic is not None)
    # The parties have the rows now; a second copy of them is not needed any more.
    data = replace(data, X=data.X[:0].copy())
    algorithm = make_algorithm(full, data, len(parties))
    # Packing students takes the models themselves.
    if cache is not None and not measure_bytes:
        parties = with_cache(parties, cache, full)
    private = isinstance(algorithm, FedKT | Moments) and full.level != "L0"
    promise, warnings, alarms = promise_of(
        algorithm, parties, level=full.level, delta=full.delta, reproducible_noise=private
    )
    warnings += run_notes(full, data)
    for warning in warnings:
        if caution is not None:
            caution(warning)
    server = make_server(full, data, diagnostic=diagnostic is not None)
    rounds = make_rounds(algorithm, parties, server, data, full.level, measure_bytes=measure_bytes, folder=round_folder)
    outcome = simulate(
        algorithm,
        parties,
        server,
        jobs=jobs,
        progress=progress,
        on_round=rounds.measure if algorithm.sends else None,
        keep=rounds.keep,
        resume=rounds.resume(data.classes),
    )
    if diagnostic is not None:
        diagnostic(outcome, full)
    outcome, more_notes = with_spared(outcome)
    return build_report(
        promise,
        rounds.earlier.followed_by(run_log(outcome, full.level, truth=data.y_public)),
        notes=(*warnings, *more_notes),
        alarms=alarms,
        processes=jobs,
        laboratory=True,
        command=command,
        packages=packages_in(full),
        **quality_facts(outcome.final, data, parties),
        bytes_sent=rounds.sent,
        bytes_received=rounds.received,
        history=tuple(asdict(each) for each in rounds.figures) if algorithm.rounds > 1 else (),
        **input_facts(full, algorithm, data, parties),
    )


def quality_facts(final: Bundle, data: Dataset, parties: Sequence[Party]) -> dict[str, Any]:
    """The fields of a report that say how good the final model is, or the models of the parties where each has one."""
    measured = qualities(final.models, data.X_test, data.y_test, data.classes)
    plain = [each.accuracy.value for each in measured]
    facts = {"accuracy": float(np.mean(plain))}
    facts["balanced_accuracy"] = float(np.mean([each.balanced_accuracy.value for each in measured]))
    several = len(measured) == len(parties)
    return {
        **facts,
        "quality": measured[0] if len(measured) == 1 else None,
        "party_accuracy": {party.name: each for party, each in zip(parties, plain, strict=True)} if several else {},
        "alone": figures_alone(measured, [len(party.y) for party in parties]) if several and len(parties) > 1 else None,
    }


def make_algorithm(setting: Setting, data: Dataset, parties: int) -> Algorithm:
    """The algorithm of a setting, its models trained as the setting says."""
    # A field of a setting is named as the algorithms that take it name it.
    own = {name: value for name, value in vars(setting).items() if name != "model"}
    if setting.class_shares is not None:
        own["class_shares"] = shares_in_order(dict(setting.class_shares), [str(each) for each in data.classes])
    roles = {name: with_recipe(setting, own[name]) for name in ("teacher", "student", "final")}
    noise = noise_for(setting, data, parties)
    model = with_recipe(setting, setting.model)
    return known_algorithm(setting.algorithm).build(model, **{**own, **roles}, teachers=parties, noise=noise)


def with_recipe(setting: Setting, model: Any) -> Any:
    """A model that trains as long and in such steps as the setting says."""
    return trained_for(model, epochs=setting.epochs, learning_rate=setting.learning_rate)


def make_server(setting: Setting, data: Dataset, *, diagnostic: bool) -> Server:
    """The server, with a seed of its own."""
    return Server(
        data.X_public,
        data.classes,
        seed_for(setting.seed, "the server"),
        image=data.image,
        noise_seed=seed_for(setting.seed, "the server's noise"),
        diagnostic=diagnostic,
    )


def make_rounds(
    algorithm: Algorithm,
    parties: Sequence[Party],
    server: Server,
    data: Dataset,
    level: str,
    *,
    measure_bytes: bool,
    folder: Path | None,
) -> Rounds:
    """What is measured of each round and kept of it. The clock of its log begins now."""
    several = algorithm.rounds > 1
    started, cpu_started = time.perf_counter(), cpu_clock()

    def score(after: Bundle) -> float:
        return float(np.mean(accuracies(algorithm.finish(server, after).models, data.X_test, data.y_test)[0]))

    def current_log() -> RunLog:
        diaries = {party.name: party.diary for party in parties}
        clocks = time.perf_counter() - started, cpu_clock() - cpu_started
        outcome = Outcome(Bundle("server", data.classes, ()), (), diaries, server.diary, *clocks)
        return run_log(outcome, level, truth=data.y_public)

    return Rounds(
        score if several else None,
        data.X_public,
        # Beside many rounds of training the students of FedKT-Prox are soon packed, and its curve needs their bytes.
        measure_bytes or several,
        folder if several else None,
        current_log,
    )


def input_facts(setting: Setting, algorithm: Algorithm, data: Dataset, parties: Sequence[Party]) -> dict[str, Any]:
    """The fields of a report that say what was run, and on what."""
    voting = algorithm.first if isinstance(algorithm, FedKTProx) else algorithm
    families = setting.party_models
    same = ("dataset", "algorithm", "seed", "local_epochs", "learning_rate", "mu", "distil_epochs")
    return {
        **{name: getattr(setting, name) for name in same},
        "model": f"{','.join(families)} -> {setting.model}" if families else setting.model,
        "partitions": getattr(voting, "partitions", None),
        "subsets": getattr(voting, "subsets", None),
        "partition": setting.partition or "",
        "beta": setting.beta if setting.partition in ("dirichlet", "balanced") else None,
        "epochs": epochs_of(with_recipe(setting, model) for model in (setting.model, *families)),
        "rounds": algorithm.rounds,
        "participation": algorithm.participation,
        "parties": len(parties),
        "party_rows": {party.name: len(party.y) for party in parties},
        "rows": {"parties": len(data.y), "public": len(data.X_public), "test": len(data.y_test)},
        "source": data.source,
    }


def epochs_of(models: Iterable[Any]) -> int | str | None:
    """The epochs of the networks among these models, None where there are none."""
    networks = [estimator for model in models if is_neural(estimator := as_estimator(model))]
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


def noise_for(setting: Setting, data: Dataset, parties: int) -> Noise | None:
    """The noise a setting names, or the smallest one that keeps its ε."""
    if setting.level == "L0":
        return None
    if setting.epsilon is None:
        return make_noise(setting.mechanism, dict(setting.scale), counts=True) if setting.mechanism else None
    if setting.scale:
        raise ConfigurationError("Give a noise scale or an epsilon to calibrate it to, not both.")
    own = known_algorithm(setting.algorithm).noise_for_epsilon
    if own is not None:
        if setting.mechanism not in (None, GaussianSums.name):
            raise ConfigurationError(
                f"Algorithm {setting.algorithm!r} has a noise of its own, {GaussianSums.name}. Leave --noise out, or "
                f"give its scale instead of --epsilon: --noise {GaussianSums.name}:7.5."
            )
        return own(epsilon=setting.epsilon, delta=setting.delta, classes=len(data.classes))
    return noise_for_epsilon(
        FedKT(
            None,
            voting=setting.algorithm,
            partitions=setting.partitions,
            subsets=setting.subsets,
            level=setting.level,
            queries=setting.queries,
        ),
        setting.mechanism or USUAL,
        epsilon=setting.epsilon,
        delta=setting.delta,
        public_rows=len(data.X_public),
        classes=len(data.classes),
        parties=parties,
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


def assemble(setting: Setting, data: Dataset, owners: NDArray[np.str_], *, diagnostic: bool = False) -> list[Party]:
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
                model=with_recipe(setting, families[position % len(families)] if families else None),
                noise_seed=seed_for(setting.seed, f"{name}'s noise"),
                diagnostic=diagnostic,
            )
        )
    return members
