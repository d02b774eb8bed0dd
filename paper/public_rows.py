"""Made public rows beside real ones: what expert voting and moments reach with each, on the same parties and test rows.

    python paper/public_rows.py [--seeds 310-312] [--datasets heart,adult-table,cod-rna] [--data-dir DIR]

A line of paper/results/public-rows.jsonl for each dataset, seed, way to the public rows and method; a finished one is
kept. There are as many public rows as the dataset has real ones, and the plan's columns are fitted on them, as between
organisations. Ranges, categories and bins come from the real public rows: they stand for a data dictionary.
"""

from __future__ import annotations

import argparse
import io
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

# `python paper/public_rows.py` finds what lies beside it, but not the package itself.
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from numpy.typing import NDArray

from fedkt.data import load
from fedkt.data.adult import CLASSES as INCOMES
from fedkt.data.columns import Table
from fedkt.data.copula import Copula, fit_copula, known_copula
from fedkt.data.dataset import Dataset, Split, assign_rows, split_rows, split_rows_within
from fedkt.data.describing import describe
from fedkt.data.description import Description
from fedkt.data.download import find_content
from fedkt.data.heart import CATEGORICAL, HELD_OUT, NEVER_ZERO
from fedkt.data.heart import CLASSES as ILL
from fedkt.data.marginals import layout_of, scores_of, tell
from fedkt.data.schema import fit_schema
from fedkt.data.table import parse_csv
from fedkt.federation import simulate
from fedkt.lab.results import append_line, read_lines
from fedkt.lab.runner import assemble, draw_parties, make_algorithm, make_server
from fedkt.lab.setting import Setting
from fedkt.live.made_rows import FINE
from fedkt.privacy.calibrate import smallest_noise
from fedkt.privacy.sums import GaussianSums
from fedkt.report import qualities
from fedkt.system.threads import one_thread
from paper.final_quality import figures_of, seed_range

RESULTS = Path(__file__).parent / "results" / "public-rows.jsonl"
SEEDS = range(310, 313)
PARTIES = {"heart": None, "cod-rna": 20, "adult-table": 20}
"""None where the data says who they are."""
EPSILON, DELTA = 1.0, 1e-5
METHODS: dict[str, dict[str, Any]] = {
    "expert": {"algorithm": "fedkt-expert"},
    "moments": {"algorithm": "fedkt-moments"},
    "moments, ε = 1": {"algorithm": "fedkt-moments", "level": "L2", "epsilon": EPSILON},
}
FEWER, FEWEST = (5, 20), 40
"""Parts of the real public rows that are tried too, and the fewest rows that are."""


@dataclass(frozen=True)
class Raw:
    """A dataset before anything is agreed on: its table with labels, and who gets which rows."""

    table: Table
    label: str
    classes: tuple[str | int, ...]
    rows: Split
    categorical: tuple[str, ...] = ()
    groups: NDArray[np.str_] | None = None


def raw_dataset(name: str, seed: int, data_dir: Path | None) -> Raw:
    """The dataset's own table, split as its loader splits it."""
    if name == "adult-table":
        text = find_content("adult.csv", data_dir=data_dir).content.decode("utf-8")
        table = parse_csv(io.StringIO(text), "adult.csv")
        table = table.take(np.flatnonzero(table.columns["split"] == "train"))
        columns = {name: values for name, values in table.columns.items() if name != "split"}
        return Raw(replace(table, columns=columns), "income", INCOMES, split_rows(table.n_rows, seed=seed))
    if name == "heart":
        text = find_content("heart_disease_4sites.csv", data_dir=data_dir).content.decode("utf-8")
        table = parse_csv(io.StringIO(text), "heart_disease_4sites.csv")
        columns = dict(table.columns)
        for each in NEVER_ZERO:
            columns[each] = np.where(columns[each] == "0", "", columns[each])
        columns["num"] = np.where(columns["num"] == "0", ILL[0], ILL[1]).astype(object)
        sites = np.array(columns.pop("site").tolist())
        rows = split_rows_within(sites, seed=seed, held_out=HELD_OUT)
        return Raw(replace(table, columns=columns), "num", ILL, rows, CATEGORICAL, sites)
    data = load(name, seed=seed, data_dir=data_dir)
    assert data.y_public is not None
    parts = (len(data.y), len(data.X_public), len(data.y_test))
    X = np.concatenate([data.X, data.X_public, data.X_test]).astype(np.float64)
    labels = np.array(data.classes)[np.concatenate([data.y, data.y_public, data.y_test])]
    columns = {f"f{place + 1}": X[:, place] for place in range(X.shape[1])}
    rows = Split(*np.split(np.arange(len(X)), np.cumsum(parts)[:-1]))
    return Raw(Table({**columns, "label": labels}, name), "label", data.classes, rows)


def dataset_with(name: str, raw: Raw, public: Table) -> Dataset:
    """The dataset with these public rows, its columns fitted on them."""
    schema = fit_schema(public, label=raw.label, categorical=raw.categorical, missing="allow")
    y = schema.labels(raw.table, raw.classes)
    data = assign_rows(
        name,
        schema.encode(raw.table),
        y,
        raw.rows,
        classes=raw.classes,
        source="",
        feature_names=schema.feature_names,
        groups=raw.groups,
    )
    # Nobody knows classes of rows that were made; these are only counted.
    return replace(data, X_public=schema.encode(public), y_public=np.zeros(public.n_rows, dtype=np.int64))


def counted(description: Description, table: Table) -> tuple[list[NDArray[np.float64]], NDArray[np.float64]]:
    """The marginals of rows, without noise."""
    return tell(description.codes(table), scores_of(description), paired=True)


def pooled_copula(description: Description, parts: list[Table], epsilon: float | None, seed: int) -> Copula:
    """Of what all parties tell about their columns, with the noise of an ε for a record of each, or without."""
    layout = layout_of(description, paired=True)
    rng = np.random.default_rng([seed, 0x9B])
    totals, variance = [], 0.0
    for part in parts:
        total = layout.total(description.codes(part), scores_of(description))
        if epsilon is not None:
            noise = smallest_noise(
                GaussianSums.name, epsilon=epsilon, delta=DELTA, queries=1, voters=1, classes=2, unit="record"
            )
            assert isinstance(noise, GaussianSums)
            total = noise.sums(total, rng).astype(np.float64) * noise.step
            variance += noise.variance / layout.product_weight**2
        totals.append(total)
    pair = layout.parts(np.sum(totals, axis=0))
    return fit_copula(description, pair[0], pairs=pair, variance=variance)


def ways(name: str, raw: Raw, seed: int) -> dict[str, Callable[[np.random.Generator], Table]]:
    """Every way to public rows, by its name; each has a generator of its own."""
    real, n_rows = raw.table.take(raw.rows.public), len(raw.rows.public)
    known = describe(real, label=raw.label, categorical=raw.categorical)
    owners = draw_parties(setting_of(name, seed, "moments"), dataset_with(name, raw, real))
    parts = [raw.table.take(raw.rows.train[owners == each]) for each in np.unique(owners)]
    largest = max(parts, key=lambda part: part.n_rows)

    def ranges(rng: np.random.Generator) -> Table:
        columns = [
            each if each.categories else each.model_copy(update={"edges": (min(each.edges), max(each.edges))})
            for each in known.columns
        ]
        return known_copula(known.model_copy(update={"columns": tuple(columns)})).draw(n_rows, rng)

    def shares(rng: np.random.Generator) -> Table:
        return fit_copula(known, counted(known, real)[0]).draw(n_rows, rng)

    def consented(rng: np.random.Generator) -> Table:
        own = describe(largest, label=raw.label, categorical=raw.categorical, bins=FINE)
        pair = counted(own, largest)
        return fit_copula(own, pair[0], pairs=pair).draw(n_rows, rng)

    fewer = {
        f"real, 1 in {part}": lambda rng, part=part: real.take(rng.permutation(n_rows)[: n_rows // part])
        for part in FEWER
        if n_rows // part >= FEWEST
    }
    return {
        "real": lambda rng: real,
        **fewer,
        "ranges": ranges,
        "shares": shares,
        "marginals": lambda rng: pooled_copula(known, parts, None, seed).draw(n_rows, rng),
        "marginals, ε = 1": lambda rng: pooled_copula(known, parts, EPSILON, seed).draw(n_rows, rng),
        "one party's rows": lambda rng: largest.take(rng.permutation(largest.n_rows)[:n_rows]),
        "made from one party's rows": consented,
    }


def setting_of(name: str, seed: int, method: str) -> Setting:
    """A run in the form that the laboratory knows."""
    partition = None if PARTIES[name] is None else "balanced"
    return Setting(name, seed=seed, parties=PARTIES[name], partition=partition, **METHODS[method]).with_defaults()


def measure(setting: Setting, data: Dataset) -> dict[str, float | None]:
    """Figures on the test rows, and what it took."""
    started = time.process_time()
    parties = assemble(setting, data, draw_parties(setting, data))
    algorithm = make_algorithm(setting, data, len(parties))
    outcome = simulate(algorithm, parties, make_server(setting, data, diagnostic=False))
    (quality,) = qualities(outcome.final.models, data.X_test, data.y_test, data.classes)
    figures = figures_of(quality)
    seconds = round(time.process_time() - started, 1)
    return {**{name: figures[name] for name in ("accuracy", "auc", "calibration_error")}, "seconds": seconds}


def main() -> None:
    """Make what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--seeds", type=seed_range, default=SEEDS, metavar="A-B")
    parser.add_argument("--datasets", default=",".join(PARTIES))
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    with one_thread():
        for seed in options.seeds:
            for name in options.datasets.split(","):
                raw = raw_dataset(name, seed, options.data_dir)
                for place, (way, make) in enumerate(ways(name, raw, seed).items()):
                    keys = [{"dataset": name, "seed": seed, "public": way, "method": each} for each in METHODS]
                    made = read_lines(options.results) if options.results.exists() else []
                    missing = [key for key in keys if not any(key.items() <= each.items() for each in made)]
                    if not missing:
                        continue
                    data = dataset_with(name, raw, make(np.random.default_rng([seed, 0x9C, place])))
                    for key in missing:
                        found = measure(setting_of(name, seed, str(key["method"])), data)
                        append_line(options.results, {**key, "public_rows": len(data.X_public), **found})
                        print(key, found, flush=True)


if __name__ == "__main__":
    main()
