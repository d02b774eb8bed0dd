"""Features of tables: the standardised columns, and random Fourier features of them.

Rahimi and Recht: Random Features for Large-Scale Kernel Machines. NeurIPS 2007. cos(⟨w, z⟩ + b) with Gaussian w and
uniform b: a linear model of enough of them is a kernel machine with a Gaussian kernel. Where columns are skewed, most
rows lie close together on them, and the same is made of the rows' public ranks as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.errors import DataError
from fedkt.models.exchange import float_rows
from fedkt.models.features.feature_map import FeatureMap, Graph, Table, finish_map, turn_of
from fedkt.system.threads import one_thread

FURTHEST = 4.0
"""Standardised columns end here on either side."""
CONSTANT = 1e-3
"""A column of smaller deviation says nothing."""
KNOTS = 32
"""Public quantiles between which ranks are interpolated."""
FEW_VALUES = 10
"""A column of so few values has no ranks worth the name."""
SKEWED = 1.0
"""From this skewness on a column is skewed."""
FOURIER = 256
"""Random features of the columns, and as many of their ranks."""
FREQUENCIES = (0.5, 1.0)
"""How fast they wave, in turn: √k over the width of the kernel, for k columns."""
LARGEST = 540
"""With more features than that, G is longer than 600 kB; there are fewer waves where there are many columns."""
PRIVATE_WIDTH = 64
"""Main directions that are summed up where noise is added to the sums."""
MAIN_DIRECTIONS = 128
"""Directions of a map without waves, where there are so many columns."""
PRIVATE_FREQUENCIES = (0.25,)
"""There waves are slow: their first directions are columns and products of columns, not one wave each."""
PRIVATE_FOURIER = 128
FEW_COLUMNS = 16
"""Of so few columns every direction may matter: waves then go along those of little variance as well."""
SHARE = 4
"""There are so many public rows for a random feature, at the least."""


@dataclass(frozen=True, eq=False)
class Standardise:
    """The columns that vary, in deviations from the public mean, up to a bound; a gap is the mean."""

    columns: NDArray[np.int64]
    mean: Table
    deviation: Table

    def __call__(self, rows: Table) -> Table:
        """Standardised columns, in float64."""
        away = (rows[:, self.columns].astype(np.float64) - self.mean) / self.deviation
        return np.clip(np.where(np.isnan(away), 0.0, away), -FURTHEST, FURTHEST)

    def add_to(self, graph: Graph, source: str) -> str:
        """The same in a graph."""
        from onnx import TensorProto

        own = graph.node("Gather", source, graph.table(self.columns, np.int64), axis=1)
        if graph.is_double:
            own = graph.node("Cast", own, to=TensorProto.FLOAT)
        means = [float(each) for each in self.mean.astype(np.float32)]
        gap = {"imputed_value_floats": means, "replaced_value_float": float("nan")}
        own = graph.node("Imputer", own, domain="ai.onnx.ml", **gap)
        if graph.is_double:
            own = graph.node("Cast", own, to=TensorProto.DOUBLE)
        away = graph.binary("Div", graph.binary("Sub", own, self.mean), self.deviation)
        return graph.node("Clip", away, graph.table(-FURTHEST), graph.table(FURTHEST))


@dataclass(frozen=True, eq=False)
class Waves:
    """Standardised columns z, cos(⟨w, z⟩ + b) of them, and of their ranks."""

    frequencies: Table
    phases: Table
    ranks: Ranks | None = None
    rank_frequencies: Table | None = None
    rank_phases: Table | None = None

    def __call__(self, rows: Table) -> Table:
        """The columns and their waves."""
        parts = [rows, np.sqrt(2) * np.cos(rows @ self.frequencies + self.phases)]
        if self.ranks is not None:
            parts.append(np.sqrt(2) * np.cos(self.ranks(rows) @ self.rank_frequencies + self.rank_phases))
        return np.concatenate(parts, axis=1)

    def add_to(self, graph: Graph, source: str) -> str:
        """The same in a graph."""
        parts = [source, _waves(graph, source, self.frequencies, self.phases)]
        if self.ranks is not None:
            ranks = self.ranks.add_to(graph, source)
            parts.append(_waves(graph, ranks, self.rank_frequencies, self.rank_phases))
        return graph.node("Concat", *parts, axis=1)


@dataclass(frozen=True, eq=False)
class Ranks:
    """Where a number stands among the public ones of its column, from −√3 to √3, linear between public quantiles."""

    columns: NDArray[np.int64]
    """One place for each step between two quantiles."""
    low: Table
    size: Table
    weights: Table
    """Steps × columns: how much of the public rows each step passes."""

    def __call__(self, rows: Table) -> Table:
        """The ranks of the columns that have some."""
        passed = np.clip((rows[:, self.columns] - self.low) / self.size, 0.0, 1.0)
        return np.asarray((passed @ self.weights - 0.5) * np.sqrt(12))

    def add_to(self, graph: Graph, source: str) -> str:
        """The same in a graph."""
        own = graph.node("Gather", source, graph.table(self.columns, np.int64), axis=1)
        way = graph.binary("Div", graph.binary("Sub", own, self.low), self.size)
        passed = graph.node("Clip", way, graph.table(0.0), graph.table(1.0))
        ranks = graph.binary("Sub", graph.binary("MatMul", passed, self.weights), 0.5)
        return graph.binary("Mul", ranks, np.sqrt(12))


def _waves(graph: Graph, source: str, frequencies: Any, phases: Any) -> str:
    angle = graph.binary("Add", graph.binary("MatMul", source, frequencies), phases)
    return graph.binary("Mul", graph.node("Cos", angle), np.sqrt(2))


def ranks_of(numbers: Table) -> Ranks | None:
    """The public ranks of standardised columns, None where no column is skewed that has many values."""
    from scipy.stats import skew

    many = [j for j in range(numbers.shape[1]) if len(np.unique(numbers[:, j])) > FEW_VALUES]
    skewness = np.array([abs(float(skew(numbers[:, j]))) for j in many])
    if not (skewness > SKEWED).any():
        return None
    places, low, size, share = [], [], [], []
    for place, column in enumerate(many):
        knots = np.quantile(numbers[:, column], np.linspace(0, 1, KNOTS + 1))
        values, first, times = np.unique(knots, return_index=True, return_counts=True)
        # Where quantiles are equal, all rows there have the middle of their ranks.
        steps = np.diff(first + (times - 1) / 2) / KNOTS
        for left, right, passed in zip(values[:-1], values[1:], steps, strict=True):
            places.append((place, column))
            low.append(left)
            size.append(right - left)
            share.append(passed)
    if not places:
        return None
    weights = np.zeros((len(places), len(many)))
    weights[np.arange(len(places)), [place for place, _ in places]] = share
    return Ranks(np.array([column for _, column in places]), np.array(low), np.array(size), weights)


def table_map(public: Any, *, seed: int, private: bool = False, fourier: int = FOURIER) -> FeatureMap:
    """φ of a table's rows, fixed by the public rows and a public seed.

    Where noise will be added few numbers are better than many: then the map ends in the public rows' main directions.
    """
    rows = float_rows(public, np.shape(public)[1])
    scale = scale_of(rows)
    columns, standard = scale.columns, scale(rows)
    rng, ranks = np.random.default_rng(seed), ranks_of(standard)
    room = (LARGEST - 1 - len(columns)) // (1 if ranks is None else 2)
    count = max(1, min(fourier, len(rows) // SHARE, PRIVATE_FOURIER if private else room))
    scales = np.resize(PRIVATE_FREQUENCIES if private else FREQUENCIES, count)

    def draw(numbers: Table) -> tuple[Table, Table]:
        n_columns = numbers.shape[1]
        spread = rng.normal(size=(n_columns, count)) * scales / np.sqrt(n_columns)
        if private and n_columns <= FEW_COLUMNS:
            turn = turn_of(numbers, n_columns, 0.25)
            spread = turn.directions @ spread[: turn.directions.shape[1]] / turn(numbers).std()
        return spread, rng.uniform(0, 2 * np.pi, count)

    waves = Waves(*draw(standard), ranks, *(draw(ranks(standard)) if ranks is not None else (None, None)))
    with one_thread():
        full = waves(standard)
        if not private:
            prefixes = (1 + len(columns), 1 + len(columns) + count)[: 1 + (ranks is not None)]
            return finish_map(rows.shape[1], full, (scale, waves), quantile=1.0, prefixes=prefixes)
        turn = turn_of(full, PRIVATE_WIDTH, 0.25)
        return finish_map(rows.shape[1], turn(full), (scale, waves, turn), quantile=0.5)


def linear_map(public: Any) -> FeatureMap:
    """φ of a table's rows without waves: the public rows' main directions, half-whitened."""
    rows = float_rows(public, np.shape(public)[1])
    scale = scale_of(rows)
    with one_thread():
        standard = scale(rows)
        turn = turn_of(standard, MAIN_DIRECTIONS, 0.25)
        return finish_map(rows.shape[1], turn(standard), (scale, turn), quantile=1.0)


def scale_of(rows: Table) -> Standardise:
    """The public mean and deviation of every column that varies."""
    numbers = rows.astype(np.float64)
    numbers[~np.isfinite(numbers)] = np.nan
    known = np.flatnonzero(~np.isnan(numbers).all(axis=0))
    mean, deviation = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
    mean[known], deviation[known] = np.nanmean(numbers[:, known], axis=0), np.nanstd(numbers[:, known], axis=0)
    columns = np.flatnonzero(deviation > CONSTANT)
    if not len(columns):
        raise DataError("Every column of the public rows is constant: there is nothing to make features of.")
    return Standardise(columns, mean[columns], deviation[columns])
