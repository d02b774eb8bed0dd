"""A feature map that somebody else made: its graph, which runs where every received model runs, row by row.

Nothing that it says is taken on trust. Whatever the graph is, a row's numbers hang on that row alone, since each row is
asked about by itself, and are no longer than those of an honest map, since they are cut to that length here: so the
sums keep their sensitivity under a plan of strangers as well. A row for which it gives no numbers has none but the
constant, a rule that looks at no other row.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.errors import ModelError
from fedkt.models.child_process import (
    START_SECONDS,
    ChildEnd,
    ChildReader,
    child_process,
    hand_over,
    plain_text,
    send_request,
)
from fedkt.models.exchange import float_rows
from fedkt.models.features.feature_map import ROUNDING, Graph, Table
from fedkt.models.onnx_rules import Limits, check_feature_graph
from fedkt.system.walls import memory_hidden

TRIAL_ROWS = 256
"""Public rows on which a graph has to work before it is let near others."""
TRIAL_GAP = 1e-3
"""How far it may be there from the constant and the length that an honest map has."""
ROW_SECONDS = 10
"""CPU time for one row; an image takes a few thousandths of a second."""
ROW_LIMITS = replace(Limits(), cpu_seconds=ROW_SECONDS, wall_seconds=6.0 * ROW_SECONDS)


@dataclass(frozen=True, eq=False)
class ReceivedMap:
    """φ as a plan has it. Call it with rows to have their features, a row each, the constant first."""

    graph: bytes = field(repr=False)
    """Checked, and written anew from what was checked."""
    n_features: int
    width: int
    prefixes: tuple[int, ...] = ()
    _last: dict[str, Table] = field(default_factory=dict, repr=False)
    """What it said of the rows that it was asked about last, by their digest: public rows are asked about often."""

    def __call__(self, X: Any) -> Table:
        """The features of each row, none longer than an honest map's."""
        rows = float_rows(X, self.n_features)
        digest = hashlib.sha256(rows.tobytes()).hexdigest()
        if digest not in self._last:
            found = shortened(map_rows(self.graph, rows, self.width))
            self._last.clear()
            self._last[digest] = found
        return self._last[digest]

    def try_on(self, public: Any) -> None:
        """Refuse, by public rows only, a graph that is no feature map: before a private row is read."""
        rows = float_rows(public, self.n_features)[:TRIAL_ROWS]
        found = map_rows(self.graph, rows, self.width).astype(np.float64)
        lengths = np.sqrt((found[:, 1:] ** 2).sum(axis=1))
        # Written so that NaN is refused too.
        fine = (np.abs(found[:, 0] - 1) <= TRIAL_GAP) & (lengths <= 1 + TRIAL_GAP)
        if not fine.all():
            raise ModelError(
                f"the feature map is none: of public row {int(np.flatnonzero(~fine)[0])} it gives no 1 with numbers "
                "of length 1 at most beside it."
            )

    def add_to(self, graph: Graph, source: str) -> str:
        """The name of φ in a graph whose rows are `source`."""
        from onnx import ModelProto, numpy_helper

        if graph.is_double:
            raise ModelError("a received feature map has float32 numbers, and no others can be made of it.")
        proto = ModelProto()
        proto.ParseFromString(self.graph)
        names = {"": "", "rows": source}
        for table in proto.graph.initializer:
            names[table.name] = f"plan_{table.name}"
            graph.tables[names[table.name]] = numpy_helper.to_array(table)
        for node in proto.graph.node:
            names |= {each: f"plan_{each}" for each in node.output}
            node.input[:] = [names.get(each, f"plan_{each}") for each in node.input]
            node.output[:] = [names[each] for each in node.output]
            graph.nodes.append(node)
        return names["features"]

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of its graph."""
        return hashlib.sha256(self.graph).hexdigest()


def received_map(data: bytes, *, n_features: int, width: int, prefixes: tuple[int, ...] = ()) -> ReceivedMap:
    """The map in received bytes, or a ModelError that says which rule they break. Nothing is run."""
    return ReceivedMap(check_feature_graph(data, n_features=n_features, width=width), n_features, width, prefixes)


def shortened(found: NDArray[np.float32]) -> Table:
    """What a graph gave, as a map may give it: 1, and numbers of length 1 at most; of a row with odd numbers, none."""
    numbers = found.astype(np.float64)
    numbers[~np.isfinite(numbers).all(axis=1)] = 0.0
    numbers[:, 0] = 0.0
    length = np.sqrt((numbers**2).sum(axis=1, keepdims=True))
    most = 1 - ROUNDING
    numbers *= np.where(length > most, most / np.maximum(length, most), 1.0)
    numbers[:, 0] = 1.0
    return numbers


def map_rows(graph: bytes, rows: NDArray[np.float32], width: int) -> NDArray[np.float32]:
    """What a graph says of each row by itself, in a child process; NaN of one that it fails on, or ends the child on.

    No limit is shared by rows: what one of them takes is not taken from another.
    """
    found = np.full((len(rows), width), np.nan, dtype=np.float32)
    done = 0
    while done < len(rows):
        for raw in _answers(graph, rows[done:], width):
            found[done] = np.frombuffer(raw, dtype="<f4")
            done += 1
        # Where the child is gone, the row that it was asked about has no features, and the next child goes on.
        done += 1
    return found


def _answers(graph: bytes, rows: NDArray[np.float32], width: int) -> Iterator[bytes]:
    """The numbers of one row after the other, as far as the child lives."""
    bounds = replace(ROW_LIMITS, party_cpu_seconds=ROW_SECONDS * (len(rows) + 6))
    table = np.ascontiguousarray(rows, dtype="<f4")
    with ExitStack() as resources:
        where = [resources.enter_context(hand_over(each)) for each in ([table.data], [graph])]
        request = {
            "parent": os.getpid(),
            "rows": where[0],
            "models": where[1],
            "shape": list(table.shape),
            "features": width,
            "memory": bounds.memory_bytes,
            "cpu": bounds.cpu_seconds,
            "budget": bounds.party_cpu_seconds,
        }
        resources.enter_context(memory_hidden())
        child = resources.enter_context(child_process([each for each in where if isinstance(each, int)]))
        try:
            reader = resources.enter_context(closing(ChildReader(child, bounds)))
            send_request(child, request)
            reader.line()
            reader.allow(START_SECONDS + bounds.wall_seconds)
            head = reader.line()
        except ChildEnd as end:
            raise ModelError(f"the feature map could not be run: {end}") from end
        if head.get("rows") != len(rows):
            reason = plain_text(head.get("reason", "the child answered about other rows"))
            raise ModelError(f"the feature map could not be run: {reason}")
        for _ in range(len(rows)):
            reader.allow(bounds.wall_seconds)
            try:
                raw = reader.take(4 * width)
            except ChildEnd:
                return
            yield raw
