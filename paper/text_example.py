"""Texts between three organisations, beside each alone and all rows pooled.

    python paper/text_example.py [OUT.jsonl [SEEDS...]]

Each party holds entries of SciPy's manual (`text_data`), unevenly by area; a quarter of the entries is public, without
labels, and a quarter is for the test. All read the words of the public entries as a plan would agree on them, but for a
pipeline of scikit-learn's, in which every party has a vectoriser of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from statistics import mean, stdev
from typing import Any

# `python paper/text_example.py` finds what lies beside it, but not the package itself.
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from numpy.typing import NDArray

from fedkt.algorithms import ALGORITHMS
from fedkt.data.columns import Table
from fedkt.data.partition import by_dirichlet
from fedkt.data.schema import fit_schema
from fedkt.federation import Party, Server, seed_for, simulate
from fedkt.lab.grid import Grid
from fedkt.lab.results import read_lines
from paper.kept import make_missing
from paper.text_data import entries

RESULTS = Path(__file__).parent / "results" / "texts.jsonl"
PARTIES, BETA, FEWEST_ROWS = 3, 0.5, 60
SEEDS = (310, 311, 312, 313, 314)
PIPELINE = "pipeline"
MODELS = {
    "linear": "`linear`",
    "logistic": "`logistic`",
    "forest": "`forest`",
    PIPELINE: "TfidfVectorizer, LogisticRegression",
}
WAYS = {
    "solo": "each party alone",
    "fedkt": "consistent voting",
    "fedkt-expert": "expert voting",
    "fedkt-auto": "auto",
    "centralised": "all rows pooled",
}
MOMENTS = "fedkt-moments"


@dataclass(frozen=True)
class Task:
    """The rows of one seed."""

    X: Any
    y: NDArray[np.int64]
    owners: NDArray[np.int64]
    public: Any
    X_test: Any
    y_test: NDArray[np.int64]
    classes: tuple[str, ...]


@cache
def texts() -> tuple[NDArray[Any], NDArray[np.str_]]:
    """The entries, read once."""
    return entries()


def task_of(seed: int, *, raw: bool) -> Task:
    """Entries split by the seed: as they are, or as numbers of the words of the public ones."""
    rows, areas = texts()
    classes, y = np.unique(areas, return_inverse=True)
    order = np.random.default_rng([seed, 0]).permutation(len(y))
    public, test, own = np.split(order, [len(order) // 4, len(order) // 2])
    if not raw:
        table = Table({"entry": rows}, "SciPy's manual")
        schema = fit_schema(table.take(public), label="area", text=["entry"], missing="allow")
        rows = schema.encode(table)
    rng = np.random.default_rng([seed, 1])
    owners = by_dirichlet(y[own], PARTIES, beta=BETA, rng=rng, min_rows=FEWEST_ROWS)
    return Task(rows[own], y[own], owners, rows[public], rows[test], y[test], tuple(classes.tolist()))


def estimator_of(model: str) -> Any:
    """What a model is called here, or scikit-learn's pipeline."""
    if model != PIPELINE:
        return model
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    return make_pipeline(TfidfVectorizer(sublinear_tf=True), LogisticRegression(C=20, max_iter=1000))


def measure(key: dict[str, Any]) -> dict[str, Any]:
    """How often each final model is right on the test rows; alone there is one for each party."""
    seed, model = key["seed"], key["model"]
    task = task_of(seed, raw=model == PIPELINE)
    side: dict[str, Any] = {"public": task.public, "classes": task.classes}
    parties = [
        Party(**side, seed=seed_for(seed, str(each)), name=str(each), X=task.X[rows], y=task.y[rows])
        for each in np.unique(task.owners)
        for rows in [np.flatnonzero(task.owners == each)]
    ]
    algorithm = ALGORITHMS[key["algorithm"]].make(estimator_of(model))
    outcome = simulate(algorithm, parties, Server(**side, seed=seed_for(seed, "the server")))
    right = [float(np.mean(each.predict(task.X_test) == task.y_test)) for each in outcome.final.models]
    majority = float(np.bincount(task.y_test).max() / len(task.y_test))
    of = {"test_rows": len(task.y_test), "entries": len(texts()[0]), "scipy": version("scipy")}
    return {"accuracy": mean(right), "each": right, "majority": majority, **of}


def keys(seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """What is to be measured; sums are of no model, and pipelines of strings have none."""
    for seed in seeds:
        yield {"algorithm": MOMENTS, "model": "linear", "seed": seed}
        for model in MODELS:
            for algorithm in WAYS:
                if (model, algorithm) != (PIPELINE, "fedkt-auto"):
                    yield {"algorithm": algorithm, "model": model, "seed": seed}


def text_table(results: Path) -> Grid:
    """Accuracy by model and way, mean and spread over the seeds of the table."""
    found: dict[tuple[str, str], list[float]] = {}
    for line in read_lines(results):
        if line["seed"] in SEEDS:
            found.setdefault((line["model"], line["algorithm"]), []).append(100 * line["accuracy"])
    rows = [[title, *(in_cell(found.get((model, way), [])) for way in WAYS)] for model, title in MODELS.items()]
    sums = in_cell(found.get(("linear", MOMENTS), []))
    rows.append(["none: moments", "", "", sums, "", ""])
    return Grid(("model", *WAYS.values()), rows, caption=caption_of(results))


def caption_of(results: Path) -> str:
    """What the numbers are."""
    lines = [line for line in read_lines(results) if line["seed"] in SEEDS]
    majority = 100 * mean(line["majority"] for line in lines)
    return (
        f"Test accuracy in %, mean and spread over {len({line['seed'] for line in lines})} seeds of {PARTIES} parties "
        f"(Dirichlet, β = {BETA}) and {lines[0]['test_rows']} test rows, SciPy {lines[0]['scipy']}; always naming the "
        f"largest class has {majority:.1f}. The bottom row sends sums and trains no model."
    )


def in_cell(values: list[float]) -> str:
    """Mean and spread; a dash where nothing was measured."""
    if not values:
        return "–"
    return f"{mean(values):.1f} ± {stdev(values):.1f}" if len(values) > 1 else f"{mean(values):.1f}"


def main(arguments: Sequence[str]) -> None:
    """Whatever is not in the file yet, one line each."""
    path = Path(arguments[0]) if arguments else RESULTS
    make_missing(path, keys([int(each) for each in arguments[1:]] or SEEDS), measure)


if __name__ == "__main__":
    main(sys.argv[1:])
