"""The feature map inside a plan: one ONNX graph, made once, that everybody runs instead of making one anew.

Filters and main directions of the same public rows differ in their last digits from machine to machine, and sums of
different features cannot be added up. The graph is compressed, and whoever reads it trusts nothing about it: how long
it is, what it is, and what it gives are checked in this order.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from typing import Annotated, Self

from pydantic import Field, model_validator

from fedkt.errors import ModelError
from fedkt.models.features.feature_map import FeatureMap
from fedkt.models.features.received import ReceivedMap, received_map
from fedkt.plan.parts import Part

MAX_GRAPH_BYTES = 24 * 2**20
"""Unpacked; the map of colour images has a little under sixteen million."""
MAX_GRAPH_TEXT = 14 * 2**20
"""Letters of the packed graph: the rest of a plan needs room as well."""
MAX_WIDTH = 2_048
LINE = 120


class Features(Part):
    """A feature map, as a plan has it."""

    width: Annotated[int, Field(ge=2, le=MAX_WIDTH)]
    """Numbers of a row, the constant included."""
    prefixes: Annotated[tuple[Annotated[int, Field(ge=2, le=MAX_WIDTH)], ...], Field(max_length=16)] = ()
    """So many of the first may be enough."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """Of the graph; this is what the plan's digest knows of it."""
    graph: Annotated[str, Field(min_length=1, max_length=MAX_GRAPH_TEXT)]
    """The ONNX graph, compressed (zlib), in base64."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if list(self.prefixes) != sorted({each for each in self.prefixes if each < self.width}):
            raise ValueError("prefixes: they grow, and are smaller than the width")
        return self

    @property
    def graph_bytes(self) -> bytes:
        """The graph as it was packed, if it is the one that the digest is of."""
        try:
            packed = base64.b64decode(self.graph.replace("\n", ""), validate=True)
            unpacker = zlib.decompressobj()
            data = unpacker.decompress(packed, MAX_GRAPH_BYTES + 1)
        except (binascii.Error, ValueError, zlib.error) as reason:
            raise ValueError(f"features.graph: it is damaged: {str(reason)[:100]}. Ask for the plan again") from reason
        if len(data) > MAX_GRAPH_BYTES:
            raise ValueError(f"features.graph: unpacked it has more than the {MAX_GRAPH_BYTES:,} bytes that are read")
        if not unpacker.eof or unpacker.unused_data:
            raise ValueError("features.graph: it is damaged: it was cut short, or something follows it")
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise ValueError("features.sha256: it is the digest of another graph. Ask for the plan again")
        return data

    def received(self, n_features: int) -> ReceivedMap:
        """The map, if the graph keeps to the rules of received ones; nothing of it is run."""
        try:
            return received_map(self.graph_bytes, n_features=n_features, width=self.width, prefixes=self.prefixes)
        except ModelError as reason:
            raise ValueError(f"features.graph: {str(reason).rstrip('.')}") from reason

    def to_toml(self) -> str:
        """The table as TOML, the graph in lines."""
        return (
            "\n[features]\n"
            "# The feature map that everybody sums up: an ONNX graph made of the public rows only, compressed (zlib),\n"
            "# in base64. Its SHA-256 is part of the agreement. prefixes: so many of its numbers may be enough.\n"
            f'width = {self.width}\nprefixes = {list(self.prefixes)}\nsha256 = "{self.sha256}"\n'
            f"graph = '''\n{self.graph}'''\n"
        )


def packed_features(features: FeatureMap) -> Features:
    """A map made here, as a plan has it."""
    text = base64.b64encode(zlib.compress(features.onnx, 9)).decode()
    lines = "".join(f"{text[start : start + LINE]}\n" for start in range(0, len(text), LINE))
    return Features(width=features.width, prefixes=features.prefixes, sha256=features.digest, graph=lines)
