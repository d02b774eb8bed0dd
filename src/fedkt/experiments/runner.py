"""Run one algorithm on one drawn split, as many times as wanted, and never the same thing twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.algorithms import ALGORITHMS, FedKT
from fedkt.algorithms.fedkt import number_of_queries
from fedkt.algorithms.levels import calibrated, cautions
from fedkt.bundle import Bundle, pack
from fedkt.data import DATASETS, Dataset, load
from fedkt.data.partition import PARTITIONERS, partition
from fedkt.errors import ConfigurationError, DataError
from fedkt.federation import Outcome, Party, Server, seed_for, simulate
from fedkt.models.catalogue import as_estimator, trained_for
from fedkt.models.ensemble import is_neural
from fedkt.parallel import Progress
from fedkt.privacy import Laplace, Noise, make_noise, statement
from fedkt.privacy.diagnostic import Diagnostic, diagnose, diagnose_parties
from fedkt.report import Report, accuracies, label_accuracy, mean_and_spread, notes, versions, vote_figures


@dataclass(frozen=True)
class Setting:
    """Everything that decides a result. Whatever is None follows the dataset's default."""

    dataset: str
    algorithm: str = "fedkt"
    model: str | None = None
    parties: int | None = None
    partition: str | None = None
    beta: float = 0.5
    partitions: int | None = None
    """s; None is 2 at L0 and 1 where noise is on."""
    subsets: int = 5
    level: str = "L0"
    seed: int = 0
    teacher: str | None = None
    student: str | None = None
    final: str | None = None
    party_models: tuple[str, ...] = ()
    """Families given to the parties in turn: a federation of different models."""
    mechanism: str | None = None
    """Noise at L1 and L2, with `scale`, or with `epsilon` to find the smallest scale."""
    scale: tuple[tuple[str, float], ...] = ()
    epsilon: float | None = None
    delta: float = 1e-5
    queries: float = 1.0
    """Public rows asked where noise is on: a number of rows, or a fraction of them."""
    epochs: int | None = None
    """How long neural networks are trained; None is the network's default."""

    def filled(self) -> Setting:
        """The same with the dataset's defaults written out, or a refusal in words."""
        if self.dataset not in DATASETS:
            raise ConfigurationError(f"There is no dataset {self.dataset!r}. Choose one of: {', '.join(DATASETS)}.")
        if self.algorithm not in ALGORITHMS:
            raise ConfigurationError(
                f"There is no algorithm {self.algorithm!r}. Choose one of: {', '.join(ALGORITHMS)}."
            )
        about = DATASETS[self.dataset]
        partition = self.partition or about.partition
        if partition not in PARTITIONERS:
            raise ConfigurationError(f"There is no partition {partition!r}. Choose one of: {', '.join(PARTITIONERS)}.")
        if self.level == "L0" and (self.mechanism or self.scale or self.epsilon is not None):
            raise ConfigurationError("Level L0 adds no noise. Choose --level L1 or L2 with a mechanism or an epsilon.")
        if self.party_models and self.algorithm not in ("fedkt", "solo"):
            raise ConfigurationError(f"Algorithm {self.algorithm!r} pools the rows; there are no parties with models.")
        if self.level != "L0" and self.algorithm != "fedkt":
            raise ConfigurationError(f"Algorithm {self.algorithm!r} has no private level; only fedkt does.")
        if partition == "column" and self.parties is not None:
            raise ConfigurationError(
                "With the partition 'column' the data says who the parties are; leave the number of parties out, or "
                "choose another partition."
            )
        return replace(
            self,
            model=self.model or about.model,
            parties=self.parties if self.parties is not None or partition == "column" else about.n_parties,
            partition=partition,
            partitions=(2 if self.level == "L0" else 1) if self.partitions is None else self.partitions,
        )


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
) -> Report:
    """Draw the split and the parties from the seed, run the algorithm, and measure it on the test rows."""
    full = setting.filled()
    data = load(full.dataset, seed=full.seed, data_dir=data_dir)
    owners = draw_parties(full, data)
    parties = [replace(party, diagnostic=diagnostic is not None) for party in assemble(full, data, owners)]
    assert full.model is not None
    sizes = [len(party.y) for party in parties]
    algorithm = ALGORITHMS[full.algorithm](
        trained_for(full.model, full.epochs),
        parties=len(parties),
        partitions=full.partitions,
        subsets=full.subsets,
        level=full.level,
        noise=chosen_noise(full, data, sizes),
        queries=full.queries,
        teacher=trained_for(full.teacher, full.epochs),
        student=trained_for(full.student, full.epochs),
        final=trained_for(full.final, full.epochs),
    )
    price = None
    if isinstance(algorithm, FedKT):
        algorithm.check()
        price = algorithm.price(
            public_rows=len(data.X_public), classes=len(data.classes), party_rows=sizes, delta=full.delta
        )
    promise = statement(full.level, price, reproducible_noise=price is not None)
    told = cautions(full.level, price, sizes)
    for each in told:
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
    outcome = simulate(algorithm, parties, server, jobs=jobs, progress=progress)
    if diagnostic is not None:
        diagnostic(outcome, full)
    plain, balanced = accuracies(outcome.final.models, data.X_test, data.y_test)
    return Report(
        dataset=full.dataset,
        algorithm=full.algorithm,
        model=f"{','.join(full.party_models)} -> {full.model}" if full.party_models else full.model,
        parties=len(parties),
        partitions=getattr(algorithm, "partitions", None),
        subsets=getattr(algorithm, "subsets", None),
        level=full.level,
        seed=full.seed,
        accuracy=float(np.mean(plain)),
        balanced_accuracy=float(np.mean(balanced)),
        label_accuracy=label_accuracy(outcome, data.y_public),
        epsilon=promise.epsilon,
        delta=promise.delta,
        privacy=str(promise),
        privacy_statement=promise.as_dict(),
        bytes_sent=bytes_sent(outcome.bundles, data.X_public) if measure_bytes and algorithm.sends else None,
        seconds=outcome.seconds,
        cpu_seconds=outcome.cpu_seconds if jobs == 1 else None,
        versions=versions(),
        command=command,
        partition=full.partition or "",
        beta=full.beta if full.partition in ("dirichlet", "balanced") else None,
        rows={"parties": len(data.y), "public": len(data.X_public), "test": len(data.y_test)},
        votes=vote_figures(outcome),
        party_accuracy=dict(zip([p.name for p in parties], plain, strict=True)) if len(plain) == len(parties) else {},
        notes=(*told, *notes(outcome)),
        source=data.source,
        epochs=longest_training(trained_for(each, full.epochs) for each in (full.model, *full.party_models)),
    )


def longest_training(models: Iterable[Any]) -> int | None:
    """The epochs of the networks among these models, None where there are none."""
    chosen = [as_estimator(model) for model in models]
    return max((int(each.epochs) for each in chosen if is_neural(each)), default=None)


def data_dependent(outcome: Outcome, setting: Setting) -> Diagnostic:
    """The paper's data-dependent ε of a simulated run (confidential: it depends on the votes)."""
    noise = make_noise(setting.mechanism or "", dict(setting.scale))
    if not isinstance(noise, Laplace):
        raise ConfigurationError("The paper's data-dependent epsilon is for laplace noise with a given --gamma.")
    if setting.level == "L1":
        return diagnose(outcome.server.bare_votes[0], noise, setting.delta)
    votes = [np.concatenate(diary.bare_votes) for diary in outcome.parties.values()]
    return diagnose_parties(votes, noise, setting.delta)


def chosen_noise(setting: Setting, data: Dataset, sizes: Sequence[int]) -> Noise | None:
    """The noise a setting names, or the smallest one that keeps its ε."""
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
        subsets=setting.subsets,
        classes=len(data.classes),
        party_rows=sizes,
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
                model=trained_for(families[position % len(families)], setting.epochs) if families else None,
                noise_seed=seed_for(setting.seed, f"{name}'s noise"),
            )
        )
    return members


def bytes_sent(bundles: Sequence[Bundle], public: NDArray[np.float32]) -> int:
    """The size of what the parties would send, measured by packing it."""
    return sum(len(pack(bundle, check_rows=public)) for bundle in bundles)


def run_all(
    settings: Sequence[Setting],
    *,
    results: Path | None = None,
    on_start: Callable[[int, Setting], None] | None = None,
    **options: Any,
) -> Iterator[Report]:
    """A report per setting. With a results file each one is kept as soon as it is there, and never run again."""
    known = stored(results)
    for number, setting in enumerate(settings):
        full = setting.filled()
        key = fingerprint(full)
        unmeasured = key in known and known[key].bytes_sent is None and full.algorithm == "fedkt"
        if key not in known or (unmeasured and options.get("measure_bytes")):
            if on_start is not None:
                on_start(number, full)
            report = run(full, **options)
            if results is not None:
                append_line(results, {"setting": asdict(full), "report": report.as_dict()})
            known[key] = report
        yield known[key]


DEFAULTS = json.loads(json.dumps(asdict(Setting(""))))


def fingerprint(setting: Setting) -> str:
    """What decides whether a stored result is the one asked for."""
    return said(asdict(setting))


def said(setting: dict[str, Any]) -> str:
    """The part of a setting that is not the default: a field added later does not make old results strangers."""
    plain = json.loads(json.dumps(setting))
    return json.dumps({name: value for name, value in plain.items() if value != DEFAULTS.get(name)}, sort_keys=True)


def stored(results: Path | None) -> dict[str, Report]:
    """The reports in a results file, by setting; a last line cut off by a kill is not counted."""
    if results is None or not results.exists():
        return {}
    found: dict[str, Report] = {}
    lines = results.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            report = Report(**{**entry["report"], "notes": tuple(entry["report"]["notes"])})
            found[said(entry["setting"])] = report
        except (ValueError, KeyError, TypeError) as reason:
            if number < len(lines):
                raise DataError(
                    f"Line {number} of {results} is not a stored result ({reason}). Move the file away and run again."
                ) from reason
    return found


def append_line(results: Path, entry: dict[str, Any]) -> None:
    """Add one line; a cut-off last line of an earlier run is ended first so that it cannot spoil this one."""
    results.parent.mkdir(parents=True, exist_ok=True)
    existing = results.read_bytes() if results.exists() else b""
    if existing and not existing.endswith(b"\n"):
        results.write_bytes(existing[: existing.rfind(b"\n") + 1])
    with results.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")
        file.flush()


@dataclass(frozen=True)
class Summary:
    """One algorithm over several seeds."""

    algorithm: str
    seeds: tuple[int, ...]
    accuracy: tuple[float, float] | None
    """Mean and standard deviation; None where no run was measured."""
    balanced_accuracy: tuple[float, float] | None
    label_accuracy: tuple[float, float] | None
    seconds: float
    bytes_sent: float | None
    epsilon: float | None = None
    """The largest ε of the runs; None without a promise."""

    @property
    def mean_accuracy(self) -> float:
        """The mean accuracy, NaN where no run was measured."""
        return float("nan") if self.accuracy is None else self.accuracy[0]


def summarise(reports: Sequence[Report]) -> list[Summary]:
    """Mean and spread per algorithm, in the order the algorithms first appear."""
    found: list[Summary] = []
    for algorithm in dict.fromkeys(report.algorithm for report in reports):
        group = [report for report in reports if report.algorithm == algorithm]
        sent = [report.bytes_sent for report in group if report.bytes_sent is not None]
        found.append(
            Summary(
                algorithm,
                tuple(report.seed or 0 for report in group),
                over_seeds([report.accuracy for report in group]),
                over_seeds([report.balanced_accuracy for report in group]),
                over_seeds([report.label_accuracy for report in group]),
                float(np.mean([report.seconds for report in group])),
                float(np.mean(sent)) if sent else None,
                max((report.epsilon for report in group if report.epsilon is not None), default=None),
            )
        )
    return found


def over_seeds(values: Sequence[float | None]) -> tuple[float, float] | None:
    """Mean and standard deviation of the values that were measured."""
    measured = [value for value in values if value is not None]
    return mean_and_spread(measured) if measured else None
