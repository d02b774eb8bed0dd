"""Rows as a network reads them: normalised, and images with their channels first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedkt.errors import ConfigurationError
from fedkt.models.base import Image
from fedkt.models.neural.networks import Shape

SHIFTS = ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1))
"""An image itself, and its copies by one pixel: how far down, and how far to the right."""
TensorKey = tuple[int, bytes, bytes]
"""Rows and a scale: the tensor made of them is made once for all networks of a stack."""


@dataclass(frozen=True)
class Scale:
    """What is subtracted from a row and what it is divided by: per column of a table, per channel of an image."""

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]

    def key(self, X: Any) -> TensorKey:
        """What the tensors of the same rows on the same scale have in common."""
        return id(X), self.mean.tobytes(), self.deviation.tobytes()


def flat_rows(X: Any) -> NDArray[Any]:
    """The rows as a 2-D array: images (N, H, W[, C]) become rows of pixels, channels last."""
    dense = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    return dense.reshape(len(dense), -1) if dense.ndim > 2 else dense


def scale_of(X: Any, normalise: Any, image: Image | None) -> Scale:
    """The scale that `normalise` asks for: "auto" and rows to measure it on, None for none, or (mean, deviation)."""
    rows = flat_rows(X)
    width = rows.shape[1] if image is None else image[2]
    if normalise is None:
        return Scale(np.zeros(width), np.ones(width))
    if isinstance(normalise, str):
        if normalise != "auto":
            raise ConfigurationError(f'normalise is "auto", None or (mean, deviation), got {normalise!r}.')
        axes = 0 if image is None else (0, 1)
        values = rows if image is None else rows.reshape(len(rows), -1, width)
        mean = values.mean(axis=axes, dtype=np.float64)
        deviation = values.std(axis=axes, dtype=np.float64)
        # A constant column says nothing; dividing by (nearly) nothing would make noise of it.
        return Scale(mean, np.where(deviation > 1e-8 * (1 + np.abs(mean)), deviation, 1.0))
    try:
        mean, deviation = (np.zeros(width) + np.asarray(each, dtype=np.float64) for each in normalise)
    except (TypeError, ValueError) as reason:
        what = "columns" if image is None else "channels"
        raise ConfigurationError(
            f'normalise is "auto", None or (mean, deviation) with one number or one for each of {width} {what}, got '
            f"{normalise!r}."
        ) from reason
    if not (np.isfinite(mean).all() and np.isfinite(deviation).all() and (deviation > 0).all()):
        raise ConfigurationError("normalise needs finite means and deviations above 0.")
    return Scale(mean, deviation)


def network_shape(n_columns: int, image: Image | None) -> Shape:
    """What one row looks like to a network."""
    return (n_columns,) if image is None else (image[2], image[0], image[1])


def as_tensor(X: Any, scale: Scale, image: Image | None, *, device: torch.device, dtype: torch.dtype) -> Tensor:
    """The rows normalised, in the shape a network reads."""
    # A copy in any case: it is changed in place below, and the rows may be somebody else's or read-only.
    kind = np.float64 if dtype == torch.float64 else np.float32
    rows = torch.from_numpy(np.array(flat_rows(X), dtype=kind, order="C")).to(device)
    if image is not None:
        rows = rows.view(-1, image[0] * image[1], image[2])
    rows.sub_(torch.as_tensor(scale.mean, dtype=dtype, device=device))
    rows.div_(torch.as_tensor(scale.deviation, dtype=dtype, device=device))
    if image is None:
        return rows
    return rows.view(-1, *image).permute(0, 3, 1, 2).contiguous()


def shifted(images: Tensor, numbers: Tensor) -> Tensor:
    """Each image moved by the one of SHIFTS that its number says; pixels at the edge it leaves are repeated."""
    height, width = images.shape[-2:]
    result = images.clone()
    for number, (down, right) in enumerate(SHIFTS[1:], start=1):
        chosen = numbers == number
        wide = torch.nn.functional.pad(images[chosen], (1, 1, 1, 1), mode="replicate")
        result[chosen] = wide[..., 1 - down : 1 - down + height, 1 - right : 1 - right + width]
    return result
