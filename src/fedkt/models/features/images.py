"""Features of images: how much each of some public patches is found in each part of a picture.

Coates, Ng and Lee: An Analysis of Single-Layer Networks in Unsupervised Feature Learning. AISTATS 2011. Filters are
the k-means centres of whitened patches of public images; what they say is cut off from both sides, summed up over a
grid of parts, and turned to the main directions of the public images.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedkt.errors import DataError
from fedkt.models.base import Image
from fedkt.models.exchange import float_rows
from fedkt.models.features.feature_map import BLOCK_ROWS, FeatureMap, Graph, Table, Turn, finish_map, turn_of
from fedkt.system.threads import one_thread

FILTERS = 160
PATCHES = 40_000
"""Public patches that filters are made of."""
CONTRAST = 0.1
"""Added to the variance of a patch, and of whitened directions, so that noise is not blown up."""
SILENCE = 0.5
"""What a filter has to say at least."""
GRID = 4
"""Parts of a picture in either direction."""
WIDTH = 247
"""Main directions of public images that are summed up: M and G of ten classes are under 150 kB."""
COLOUR_WIDTH = 1_000
"""The same of colours, which have more to tell apart than a digit: 2 MB."""
PRIVATE_WIDTH = 127
"""The same where noise is added to the sums."""
STEPS = 256
"""The numbers of directions are whole multiples of so small a part of the largest, which a plan packs well."""


@dataclass(frozen=True, eq=False)
class Patches:
    """What filters say about the parts of a picture."""

    image: Image
    top: float
    """The largest public pixel."""
    stride: int
    kernel: Table
    """Filters × (channels · size · size), each with mean 0."""
    bias: Table
    pooling: Table
    """Places × parts: the mean over the places of a part."""

    @property
    def size(self) -> int:
        """Pixels of a patch in either direction."""
        return math.isqrt(int(self.kernel.shape[1]) // self.image[2])

    def __call__(self, rows: Table) -> Table:
        """The square roots of what filters say for and against each part, in float32."""
        return np.concatenate([self._some(rows[start : start + 128]) for start in range(0, len(rows), 128)])

    def _some(self, rows: Table) -> Table:
        patches = patches_of(pictures(rows, self.image, self.top), self.size, self.stride)
        count = len(patches)
        deviation = np.sqrt(patches.var(axis=2, keepdims=True) + CONTRAST)
        said = patches @ self.kernel.T / deviation + self.bias
        parts = [np.matmul(self.pooling.T, np.maximum(sign * said - SILENCE, 0)) for sign in (1, -1)]
        both = np.concatenate([each.transpose(0, 2, 1).reshape(count, -1) for each in parts], axis=1)
        return np.asarray(np.sqrt(both))

    def add_to(self, graph: Graph, source: str) -> str:
        """The same in a graph."""
        height, width, channels = self.image
        x = graph.node("Clip", graph.binary("Div", source, self.top), graph.table(-1.0), graph.table(1.0))
        x = graph.node("Reshape", x, graph.table([-1, height, width, channels], np.int64))
        x = graph.node("Transpose", x, perm=[0, 3, 1, 2])
        if channels > 1:
            x = graph.node("Sub", x, graph.node("ReduceMean", x, axes=[1, 2, 3], keepdims=1))
            spread = graph.node("ReduceMean", graph.node("Mul", x, x), axes=[1, 2, 3], keepdims=1)
            x = graph.node("Div", x, graph.binary("Add", graph.node("Sqrt", spread), CONTRAST))
        size = self.size
        window = {"kernel_shape": [size, size], "strides": [self.stride, self.stride]}
        box = graph.table(np.full((1, channels, size, size), 1 / (channels * size * size)))
        mean = graph.node("Conv", x, box, **window)
        square = graph.node("Conv", graph.node("Mul", x, x), box, **window)
        variance = graph.node("Relu", graph.node("Sub", square, graph.node("Mul", mean, mean)))
        deviation = graph.node("Sqrt", graph.binary("Add", variance, CONTRAST))
        filters = self.kernel.reshape(len(self.kernel), channels, size, size)
        said = graph.node("Div", graph.node("Conv", x, graph.table(filters), **window), deviation)
        said = graph.binary("Add", said, self.bias[:, None, None])
        flat = graph.node("Reshape", said, graph.table([0, len(self.kernel), len(self.pooling)], np.int64))
        parts = []
        for each in (flat, graph.node("Neg", flat)):
            loud = graph.node("Relu", graph.binary("Sub", each, SILENCE))
            pooled = graph.binary("MatMul", loud, self.pooling)
            parts.append(graph.node("Flatten", pooled, axis=1))
        return graph.node("Sqrt", graph.node("Concat", *parts, axis=1))


def pictures(rows: Table, image: Image, top: float) -> Table:
    """Rows of pixels as channels × height × width, in float32; colours without their own brightness and contrast."""
    height, width, channels = image
    x = np.clip(np.nan_to_num(np.asarray(rows, dtype=np.float32)) / np.float32(top), -1, 1)
    x = x.reshape(-1, height, width, channels).transpose(0, 3, 1, 2)
    if channels > 1:
        x = x - x.mean(axis=(1, 2, 3), keepdims=True)
        x = x / (np.sqrt((x * x).mean(axis=(1, 2, 3), keepdims=True)) + np.float32(CONTRAST))
    return np.asarray(x)


def patches_of(x: Table, size: int, stride: int) -> Table:
    """Every patch of every picture: pictures × places × numbers."""
    windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(2, 3))[:, :, ::stride, ::stride]
    count, channels, down, across = windows.shape[:4]
    return np.asarray(windows.transpose(0, 2, 3, 1, 4, 5).reshape(count, down * across, channels * size * size))


def pooling_of(down: int, across: int) -> Table:
    """Places × parts of a grid, each part the mean of its places; parts overlap where they cannot be of one size."""

    def shares(places: int) -> Table:
        table = np.zeros((places, GRID), dtype=np.float32)
        for part in range(GRID):
            first, last = part * places // GRID, -(-(part + 1) * places // GRID)
            table[first:last, part] = 1 / (last - first)
        return table

    parts = np.einsum("ap,bq->abpq", shares(down), shares(across))
    return np.asarray(parts.reshape(down * across, GRID * GRID))


def filters_of(x: Table, size: int, *, filters: int, seed: int) -> tuple[Table, Table]:
    """Filters and what they say of nothing, from the whitened patches of public pictures."""
    from sklearn.cluster import MiniBatchKMeans

    rng, colour = np.random.default_rng(seed), x.shape[1] > 1
    who = rng.integers(0, len(x), PATCHES)
    down, across = (rng.integers(0, x.shape[axis] - size + 1, PATCHES) for axis in (2, 3))
    windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(2, 3))
    patches = windows[who, :, down, across].reshape(PATCHES, -1).astype(np.float64)
    patches -= patches.mean(axis=1, keepdims=True)
    spread = patches.std(axis=1)
    # Empty corners teach nothing.
    patches = patches[spread >= np.quantile(spread, 0.05 if colour else 0.25)]
    patches /= np.sqrt(patches.var(axis=1, keepdims=True) + CONTRAST)
    mean = patches.mean(axis=0)
    variances, vectors = np.linalg.eigh(np.cov(patches.T))
    if not float(variances[-1]) > 0:
        raise DataError("No patch of the public images differs from another, so no features can be found in them.")
    whitening = (vectors / np.sqrt(variances + CONTRAST * variances.mean())) @ vectors.T
    means = MiniBatchKMeans(filters, n_init=1, max_iter=20, batch_size=2_048, random_state=seed)
    centres = means.fit((patches - mean) @ whitening).cluster_centers_
    kernel = centres / (np.linalg.norm(centres, axis=1, keepdims=True) + 1e-6) @ whitening
    bias = -kernel @ mean
    return (kernel - kernel.mean(axis=1, keepdims=True)).astype(np.float32), bias.astype(np.float32)


def patches_layer(rows: Table, image: Image, *, seed: int, filters: int = FILTERS) -> Patches:
    """What filters of public pictures say."""
    top = float(np.nanmax(np.abs(rows), initial=0.0)) or 1.0
    shortest = min(image[:2])
    size, stride = (max(2, shortest // 4), 1) if image[2] == 1 else (max(2, min(6, shortest // 4)), 2)
    kernel, bias = filters_of(pictures(rows, image, top), size, filters=filters, seed=seed)
    down, across = ((each - size) // stride + 1 for each in image[:2])
    return Patches(image, top, stride, kernel, bias, pooling_of(down, across))


def image_map(public: Any, image: Image, *, seed: int, private: bool = False, filters: int = FILTERS) -> FeatureMap:
    """φ of rows of pixels, fixed by the public images and a public seed."""
    rows = float_rows(public, image[0] * image[1] * image[2])
    with one_thread():
        layer = patches_layer(rows, image, seed=seed, filters=filters)
        base = np.concatenate([layer(rows[start : start + BLOCK_ROWS]) for start in range(0, len(rows), BLOCK_ROWS)])
        width = PRIVATE_WIDTH if private else WIDTH if image[2] == 1 else COLOUR_WIDTH
        turn = in_steps(turn_of(base, width, 0.25))
        prefixes = () if private else (WIDTH + 1,)
        return finish_map(rows.shape[1], turn(base), (layer, turn), quantile=0.5 if private else 1.0, prefixes=prefixes)


def in_steps(turn: Turn) -> Turn:
    """The turn with directions in whole multiples of 1/STEPS; the largest number becomes 1."""
    steps = np.rint(turn.directions * (STEPS / np.abs(turn.directions).max()))
    return replace(turn, directions=(steps / STEPS).astype(turn.directions.dtype))
