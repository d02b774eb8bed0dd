"""The generated part of `docs/guide/public-rows.md`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedkt.lab.grid import Grid
from fedkt.lab.results import read_lines
from paper.markdown import markdown
from paper.public_rows import METHODS, PARTIES

WORDS = {
    "real": "real rows of the same register",
    "real, 1 in 5": "a fifth of them",
    "real, 1 in 20": "a twentieth of them",
    "ranges": "`--schema`, ranges and categories alone",
    "shares": "`--schema`, with true shares",
    "marginals": "`--marginals`, exact",
    "marginals, ε = 1": "`--marginals`, ε = 1 for each party",
    "one party's rows": "the rows of the largest party as they are",
    "made from one party's rows": "`--from`, the rows of the largest party",
}
"""Every way to public rows, as the page calls it."""


def public_rows_tables(path: Path) -> str:
    """A table for each dataset: every way to public rows, by method."""
    lines = read_lines(path) if path.exists() else []
    if not lines:
        return "Nobody has run `python paper/public_rows.py` yet: there are no numbers."
    tables = []
    for dataset in PARTIES:
        own = [each for each in lines if each["dataset"] == dataset]
        if own:
            seeds = sorted({each["seed"] for each in own})
            tables.append(f"**{dataset}**, seeds {seeds[0]} to {seeds[-1]}:\n\n{markdown(dataset_table(own))}")
    return "\n\n".join(tables)


def dataset_table(lines: Sequence[dict[str, Any]]) -> Grid:
    """What each method reaches with each way."""
    found = []
    for way, words in WORDS.items():
        own = [each for each in lines if each["public"] == way]
        if own:
            rows = f"{round(float(np.mean([each['public_rows'] for each in own]))):,}"
            found.append([words, rows, *(cell([each for each in own if each["method"] == name]) for name in METHODS)])
    return Grid(["public rows", "how many", *METHODS], found)


def cell(lines: Sequence[dict[str, Any]]) -> str:
    """Accuracy in percent with its spread over seeds, AUC, and the calibration error in points."""
    if not lines:
        return ""
    accuracy, auc, off = (
        np.array([each[name] for each in lines], dtype=float) for name in ("accuracy", "auc", "calibration_error")
    )
    spread = f" ± {100 * accuracy.std(ddof=1):.1f}" if len(lines) > 1 else ""
    return f"{100 * accuracy.mean():.1f}{spread} / {auc.mean():.2f} / {100 * off.mean():.0f}"
