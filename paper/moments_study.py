"""Moments beside voting, pooled training and a rival of many rounds: every run that `docs/moments-results.md` shows.

    python paper/moments_study.py main --seeds 300-309
    python paper/moments_study.py epsilon --seeds 300-304 --datasets adult,cod-rna
    python paper/moments_study.py spread --seeds 300-309 --algorithms fedkt-moments
    python paper/moments_study.py votes --seeds 300-302

`main` is every method on eight tables; `epsilon` is accuracy against ε; `votes` is what noisy votes reach at the same
ε, with the choices that `private-curve` made on its development seeds; `spread` is heterogeneity, parties and public
rows. The runs are made in the order of MAIN, EPSILON and SPREAD, the decisive ones first; `--list` says which are
missing. A finished run is kept at once and never made again, and a command that is started twice shares the work. What
this version does not know (an algorithm, a level, a package) is left out in words.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any

# `python paper/moments_study.py` finds what lies beside it, but not the package itself.
sys.path.insert(0, str(Path(__file__).parents[1]))

from fedkt.algorithms import ALGORITHMS
from fedkt.data import DATASETS
from fedkt.errors import FedKTError
from fedkt.lab.results import stored
from fedkt.lab.series import run_all
from fedkt.lab.setting import Setting, fingerprint
from paper.final_quality import seed_range
from paper.kept import Key, make_missing
from paper.moments_data import register
from paper.private_curve import run_curve
from paper.private_study import GroupRun
from paper.workplace import Workplace

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results"
MOMENTS, EXPERT, FEDKT, AUTO = "fedkt-moments", "fedkt-expert", "fedkt", "fedkt-auto"
DISTILLED = "distilled"
"""Moments that teach the dataset's family."""
BOOSTED = "boosted"
"""Boosting on all rows in one place."""
TABLES = ("heart", "segments", "flights", "cod-rna", "adult", "digits")
EPSILONS = (1.0, 0.5, 2.0, 0.25, 4.0, 0.1, 8.0)
SPREAD_OF = ("adult", "cod-rna")
PUBLIC_ROWS = {"adult": 4_070, "cod-rna": 7_442}
"""All of them, without a share."""
CLASS_SHARES: dict[str, Any] = {"adult": ((">50K", 0.24),), "cod-rna": (("1", 0.33),)}
"""What a census would say, for level L1; the other class has the rest."""
SHARES = "class_shares"
"""The field of a Setting for it, where this version has one."""


@dataclass(frozen=True)
class Batch:
    """Runs of one kind: on these datasets, by these methods, on so many of the seeds."""

    datasets: Sequence[str]
    methods: Sequence[str]
    seeds: int = 10


MAIN = (
    Batch(TABLES, (MOMENTS, EXPERT)),
    Batch(("mnist",), (MOMENTS, EXPERT), 5),
    Batch(TABLES, (DISTILLED, AUTO, FEDKT, "pate-soft", "pate", "centralised", BOOSTED)),
    Batch(("svhn",), (MOMENTS,), 5),
    Batch(("mnist",), (DISTILLED, AUTO, "pate-soft", "pate", "centralised"), 3),
    Batch(("mnist",), (FEDKT, "feddf"), 2),
    Batch(("svhn",), ("pate-soft", EXPERT), 1),
)
"""In the order in which they are made."""
TUNED = {("mnist", "feddf"): {"local_epochs": 100, "distil_epochs": 40}}
"""As `tune_baselines.py` found it best."""
LEVELS = {
    "L2": {"adult": 20, "cod-rna": 20, "mnist": 10, "svhn": 10},
    "L1": {"adult": 50, "cod-rna": 50},
}
"""The parties, which are those of the paper's private experiments where it has the dataset."""
CURVE_SEEDS = {"mnist": 3, "svhn": 1}
"""Of datasets whose curves have fewer seeds."""
VOTES = {"subsets": 25, "queries": 200}
"""Of expert voting with noise, as final models are compared with it."""


def setting_of(dataset: str, method: str, seed: int, **more: Any) -> Setting:
    """A run in the form that the laboratory knows."""
    partition = None if DATASETS[dataset].partition == "column" else "balanced"
    # Final models learn distributions, as they do by default; methods that have no such choice leave it aside.
    options: dict[str, Any] = {"partition": partition, "soft_final": True, **TUNED.get((dataset, method), {}), **more}
    if method == DISTILLED:
        return Setting(dataset, MOMENTS, final=DATASETS[dataset].model, seed=seed, **options)
    if method == BOOSTED:
        return Setting(dataset, "centralised", model="boosting", seed=seed, **options)
    return Setting(dataset, method, seed=seed, **options)


def main_settings(seeds: Sequence[int]) -> Iterator[Setting]:
    """The main table, in its order: seed by seed within a batch."""
    for batch in MAIN:
        for seed, dataset, method in product(seeds[: batch.seeds], batch.datasets, batch.methods):
            # Two families of the same name are one run.
            if method == BOOSTED and DATASETS[dataset].model == "boosting":
                continue
            yield setting_of(dataset, method, seed)


def epsilon_settings(seeds: Sequence[int]) -> Iterator[Setting]:
    """Moments at every ε, of images on one partition (sums do not depend on it); expert voting at two of them."""
    for epsilon, level in product(EPSILONS, LEVELS):
        for dataset, parties in LEVELS[level].items():
            few = seeds[: CURVE_SEEDS.get(dataset, len(seeds))]
            if dataset == "svhn" and epsilon not in (1.0, 4.0):
                continue
            for seed, partition in product(few, ("balanced", "even") if dataset in SPREAD_OF else ("balanced",)):
                common = {"parties": parties, "partition": partition, "level": level, "epsilon": epsilon}
                yield from level_variants(dataset, seed, common)
    for epsilon, seed, dataset, partition in product((1.0, 4.0), seeds[:2], SPREAD_OF, ("balanced", "even")):
        common = {"parties": 20, "partition": partition, "level": "L2", "epsilon": epsilon}
        yield setting_of(dataset, EXPERT, seed, **common, **VOTES)


def level_variants(dataset: str, seed: int, common: dict[str, Any]) -> Iterator[Setting]:
    """Moments at a level; at L1 with public class shares as well, where this version can."""
    yield setting_of(dataset, MOMENTS, seed, **common)
    if common["level"] == "L1" and knows_shares():
        yield setting_of(dataset, MOMENTS, seed, **common, **{SHARES: CLASS_SHARES[dataset]})


def knows_shares() -> bool:
    """Whether class shares can be public here."""
    return SHARES in (each.name for each in fields(Setting))


SPREAD: tuple[tuple[str, dict[str, Any]], ...] = (
    ("ε = 1", {"level": "L2", "epsilon": 1.0}),
    ("β = .1, 10 parties", {"beta": 0.1, "parties": 10, "partition": "dirichlet"}),
    ("β = 5", {"beta": 5.0}),
    ("even shares", {"partition": "even"}),
    *((f"{parties} parties", {"parties": parties}) for parties in (10, 100)),
    ("1,000 parties, even shares", {"parties": 1_000, "partition": "even"}),
    *((f"public β = {beta:g}", {"public_beta": beta}) for beta in (0.1, 0.5)),
    *((f"public β = {beta:g}, ε = 1", {"public_beta": beta, "level": "L2", "epsilon": 1.0}) for beta in (0.1, 0.5)),
    *((f"{rows:,} public rows", {"public_rows": rows}) for rows in (100, 300, 1_000)),
    *(
        (f"{rows:,} public rows, ε = 1", {"public_rows": rows, "level": "L2", "epsilon": 1.0})
        for rows in (100, 300, 1_000)
    ),
)
"""What is changed of the main table's setting, which has β = .5, 50 parties and all public rows.

The balanced partition cannot be drawn with β = .1 for 50 parties, nor any Dirichlet partition for 1,000.
"""
EXPERT_SEEDS = 3


def spread_settings(seeds: Sequence[int]) -> Iterator[Setting]:
    """Moments at every point and seed, then expert voting on a few seeds where it has no noise."""
    for seed, dataset, (_, change) in product(seeds, SPREAD_OF, SPREAD):
        yield changed_setting(dataset, MOMENTS, seed, change)
    for seed, dataset, (_, change) in product(seeds[:EXPERT_SEEDS], SPREAD_OF, SPREAD):
        if "level" not in change and change.get("parties", 0) <= 100:
            yield changed_setting(dataset, EXPERT, seed, change)


def changed_setting(dataset: str, method: str, seed: int, change: dict[str, Any]) -> Setting:
    """The main table's setting with one thing changed."""
    more = {**change}
    if "public_rows" in more:
        more["public_share"] = more.pop("public_rows") / PUBLIC_ROWS[dataset]
    return setting_of(dataset, method, seed, **more)


PARTS: dict[str, Callable[[Sequence[int]], Iterator[Setting]]] = {
    "main": main_settings,
    "epsilon": epsilon_settings,
    "spread": spread_settings,
}
VOTE_GROUPS = tuple(
    f"{dataset}-{level}-{kind}" for level in ("L2", "L1") for dataset in SPREAD_OF for kind in ("het", "hom")
)


def file_of(part: str) -> Path:
    """Where a part's runs are kept."""
    return RESULTS / f"moments-{part}.jsonl"


def known(setting: Setting) -> str:
    """Why this version cannot make a run; empty where it can."""
    if setting.algorithm not in ALGORITHMS:
        return f"there is no algorithm {setting.algorithm!r} here"
    if setting.level not in ALGORITHMS[setting.algorithm].levels:
        return f"{setting.algorithm!r} has no level {setting.level} here"
    return ""


def make_part(settings: Sequence[Setting], results: Path, *, data_dir: Path | None) -> dict[str, str]:
    """Make what is missing; what cannot be had is given back with the reason."""
    left_out = {describe(each): reason for each in settings if (reason := known(each))}
    wanted = [each.with_defaults() for each in settings if not known(each)]
    current: list[Setting] = []

    def start(_: int, setting: Setting) -> None:
        current[:] = [setting]
        print(describe(setting), flush=True)

    while True:
        try:
            run_all(
                wanted,
                results=results,
                measure_bytes=True,
                on_start=start,
                data_dir=data_dir,
                command=f"python paper/moments_study.py {results.stem.removeprefix('moments-')}",
            )
        except FedKTError as reason:
            if not current:
                raise
            # One run that cannot be had does not keep the others waiting.
            left_out[describe(current[0])] = str(reason)
            wanted = [each for each in wanted if each != current[0]]
        else:
            return left_out


def describe(setting: Setting) -> str:
    """Which run this is, in words."""
    plain = vars(Setting(""))
    changes = [f"{name} {value}" for name, value in vars(setting).items() if value != plain[name]]
    return ", ".join(changes)


def make_votes(seeds: Sequence[int], results: Path, data_dir: Path | None) -> None:
    """The curves of noisy votes on other seeds."""
    place = Workplace(FOLDER, data_dir=data_dir)

    def curve(key: Key) -> dict[str, Any]:
        return run_curve(GroupRun(key["group"], key["seed"]), place)

    make_missing(results, ({"group": group, "seed": seed} for seed, group in product(seeds, VOTE_GROUPS)), curve)


def main() -> None:
    """Make what is missing of one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=[*PARTS, "votes"])
    parser.add_argument("--seeds", type=seed_range, required=True, metavar="A-B")
    parser.add_argument("--datasets", type=words, default=None, help="only these, with commas")
    parser.add_argument("--algorithms", type=words, default=None, help="only these, with commas, as fedkt names them")
    parser.add_argument("--results", type=Path, default=None)
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--list", action="store_true", help="say what is missing, and make nothing")
    options = parser.parse_args()
    register()
    results = options.results or file_of(options.part)
    if options.part == "votes":
        make_votes(options.seeds, results, options.data_dir)
        return
    settings = [
        each
        for each in dict.fromkeys(PARTS[options.part](options.seeds))
        if (options.datasets is None or each.dataset in options.datasets)
        and (options.algorithms is None or each.algorithm in options.algorithms)
    ]
    if options.list:
        done = stored(results)
        missing = [each for each in settings if known(each) or fingerprint(each.with_defaults()) not in done]
        print("\n".join(f"{known(each) or 'missing'}: {describe(each)}" for each in missing))
        print(f"{len(missing)} of {len(settings)} runs are missing")
        return
    for run, reason in make_part(settings, results, data_dir=options.data_dir).items():
        print(f"left out ({run}): {reason}", file=sys.stderr)


def words(text: str) -> list[str]:
    """Words between commas."""
    return text.split(",")


if __name__ == "__main__":
    main()
