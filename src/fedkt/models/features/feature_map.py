"""A feature map φ: from a plain encoded row to D numbers, the first of them 1 and the others no longer than 1.

Whoever has the same public rows and the same seed has the same map; whoever may not make it himself is given its
graph, whose digest tells it from others. A row's numbers are divided by a limit, which the public rows set, and those
of a row that still has a length above 1 are shortened to 1. So one row in a sum of φ has a known largest weight:
‖φ‖² ≤ 2, and ‖φ(x) − φ(x')‖ ≤ 2 for any two rows, since the constant does not differ (docs/guide/moments.md).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fedkt.errors import DataError
from fedkt.models.base import count_rows
from fedkt.models.exchange import float_rows
from fedkt.models.graphs import initialisers
from fedkt.models.onnx_rules import OPSETS
from fedkt.system.threads import one_thread

Table = NDArray[Any]
BLOCK_ROWS = 1_024
"""Rows mapped at once: the patches of so many images still fit into memory."""
ROUNDING = 2.0**-20
"""By so much features stay under 1 in length, so that no rounding lifts them above it."""
ALIKE = 1e-6
"""Public rows that differ by a smaller part of the largest number differ by rounding only."""
LARGEST_ROW = 2.0**0.5
"""The length of φ is never above it: a constant 1 beside numbers of length 1 at most."""


class Features(Protocol):
    """A map φ, made here or received."""

    @property
    def n_features(self) -> int:
        """Columns of the rows it reads."""
        ...

    @property
    def width(self) -> int:
        """D, the constant included."""
        ...

    @property
    def prefixes(self) -> tuple[int, ...]:
        """Widths at which it may be cut off."""
        ...

    def __call__(self, X: Any) -> Table:
        """The features of each row."""
        ...

    def add_to(self, graph: Graph, source: str) -> str:
        """The name of φ in a graph whose rows are `source`."""
        ...


class Layer(Protocol):
    """One step of a map, in numpy and as nodes of a graph."""

    def __call__(self, rows: Table) -> Table:
        """What it makes of rows."""
        ...

    def add_to(self, graph: Graph, source: str) -> str:
        """The name of what it makes of `source` in a graph."""
        ...


class Graph:
    """Nodes and tables of a graph in the making, in float32 or float64 throughout."""

    def __init__(self, kind: Any = np.float32) -> None:
        self.kind = kind
        self.nodes: list[Any] = []
        self.tables: dict[str, NDArray[Any]] = {}

    def table(self, values: Any, kind: Any = None) -> str:
        """The name of a stored table; whole numbers keep their kind."""
        name = f"map_table_{len(self.tables)}"
        self.tables[name] = np.asarray(values, dtype=self.kind if kind is None else kind)
        return name

    @property
    def is_double(self) -> bool:
        """Whether its numbers are float64."""
        return bool(np.dtype(self.kind) == np.float64)

    def node(self, operator: str, *inputs: str, **options: Any) -> str:
        """The name of what an operator gives."""
        from onnx import helper

        name = f"map_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **options))
        return name

    def binary(self, operator: str, source: str, values: Any) -> str:
        """An operator with a stored table as its second input."""
        return self.node(operator, source, self.table(values))


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """φ of plain encoded rows. Call it with rows to have their features, a row each."""

    n_features: int
    """Columns of the rows it reads."""
    width: int
    """D, the constant included."""
    layers: tuple[Layer, ...]
    limit: float
    """What the features are divided by: a length that public rows have."""
    prefixes: tuple[int, ...] = ()
    """Widths at which the map may be cut off: so many of its first numbers are a map of their own."""

    def __call__(self, X: Any) -> Table:
        """The features of each row, in blocks."""
        rows = float_rows(X, self.n_features)
        features = np.empty((count_rows(rows), self.width))
        with one_thread():
            for start in range(0, len(rows), BLOCK_ROWS):
                features[start : start + BLOCK_ROWS] = self._block(rows[start : start + BLOCK_ROWS])
        return features

    def _block(self, rows: Table) -> Table:
        numbers = np.asarray(self.plain(rows), dtype=np.float64) / self.limit
        # Whatever odd number a row had: nothing in a sum may be more than a row can be.
        numbers[~np.isfinite(numbers).all(axis=1)] = 0.0
        length = np.sqrt((numbers**2).sum(axis=1, keepdims=True))
        numbers *= (1 - ROUNDING) / np.maximum(length, 1.0)
        return np.concatenate([np.ones((len(rows), 1)), numbers], axis=1)

    def plain(self, rows: Table) -> Table:
        """What the layers make of rows, neither divided nor shortened."""
        result = rows
        for layer in self.layers:
            result = layer(result)
        return result

    def add_to(self, graph: Graph, source: str) -> str:
        """The name of φ in a graph whose rows are `source`."""
        for layer in self.layers:
            source = layer.add_to(graph, source)
        numbers = graph.binary("Div", source, self.limit)
        axis = graph.table([1], np.int64)
        square = graph.node("ReduceSum", graph.node("Mul", numbers, numbers), axis, keepdims=1)
        length = graph.node("Clip", graph.node("Sqrt", square), graph.table(1.0))
        short = graph.node("Div", graph.binary("Mul", numbers, 1 - ROUNDING), length)
        # A constant for each row, without an operator that could make more of little: 0 · length + 1.
        one = graph.binary("Add", graph.binary("Mul", length, 0.0), 1.0)
        return graph.node("Concat", one, short, axis=1)

    @cached_property
    def onnx(self) -> bytes:
        """The map as one ONNX graph from `rows` to `features`; the bytes depend on the map only."""
        from onnx import TensorProto, helper

        graph = Graph()
        last = self.add_to(graph, "rows")
        graph.nodes[-1].output[:] = ["features"]
        assert last == f"map_{len(graph.nodes) - 1}"
        joint = helper.make_graph(
            graph.nodes,
            "fedkt features",
            [helper.make_tensor_value_info("rows", TensorProto.FLOAT, [None, self.n_features])],
            [helper.make_tensor_value_info("features", TensorProto.FLOAT, [None, self.width])],
            initialisers(graph.tables),
        )
        model = helper.make_model(joint, opset_imports=[helper.make_opsetid("", OPSETS[""])], ir_version=8)
        return bytes(model.SerializeToString(deterministic=True))

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of its graph."""
        return hashlib.sha256(self.onnx).hexdigest()


@dataclass(frozen=True, eq=False)
class Turn:
    """Numbers moved to the public mean and turned to the directions in which public rows differ most."""

    centre: Table
    directions: Table

    def __call__(self, rows: Table) -> Table:
        """The numbers in those directions."""
        return (rows - self.centre) @ self.directions

    def add_to(self, graph: Graph, source: str) -> str:
        """The same in a graph."""
        return graph.binary("MatMul", graph.binary("Sub", source, self.centre), self.directions)


def turn_of(numbers: Table, width: int, power: float) -> Turn:
    """The `width` main directions of public rows, each divided by its variance to the `power`.

    A power of 1/4 whitens by half: directions of little variance count for more than they are, and still for less than
    others.
    """
    centre = numbers.mean(axis=0)
    away = np.asarray(numbers - centre)
    if np.abs(away).max() <= ALIKE * np.abs(numbers).max():
        raise DataError("No public row differs from another, so no features can be found in them.")
    variances, vectors = main_directions(away, width)
    # A direction and its opposite are the same to an eigenvalue; the same one is taken everywhere.
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(len(variances))])
    return Turn(centre, (vectors * signs / variances**power).astype(numbers.dtype))


def main_directions(away: Table, width: int) -> tuple[Table, Table]:
    """The `width` largest variances of centred rows, and their directions.

    Rows that are fewer than their numbers have them from their products with each other, of which there are fewer.
    """
    from scipy.linalg import eigh

    few = len(away) < away.shape[1]
    away = away.astype(np.float64) if few else away
    spread = np.asarray(away @ away.T if few else away.T @ away, dtype=np.float64) / max(len(away) - 1, 1)
    total = len(spread)
    width = min(width, away.shape[1], max(len(away) - 1, 1))
    variances, vectors = eigh(spread, subset_by_index=(total - width, total - 1))
    kept = variances > 1e-9 * max(float(variances[-1]), 1e-30)
    variances, vectors = variances[kept][::-1], vectors[:, kept][:, ::-1]
    if few:
        vectors = away.T @ vectors
        vectors /= np.linalg.norm(vectors, axis=0)
    return variances, vectors


def finish_map(
    n_features: int, numbers: Table, layers: tuple[Layer, ...], *, quantile: float, prefixes: tuple[int, ...] = ()
) -> FeatureMap:
    """The map of these layers, its limit the length that a share of what they make of public rows does not exceed."""
    lengths = np.sqrt((np.asarray(numbers, dtype=np.float64) ** 2).sum(axis=1))
    limit, width = float(np.quantile(lengths, quantile)) or 1.0, numbers.shape[1] + 1
    return FeatureMap(n_features, width, layers, limit, tuple(each for each in prefixes if each < width))
