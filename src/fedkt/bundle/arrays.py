"""Named arrays as bytes and back: the numbers and nothing else, little-endian, last axis fastest.

What they mean stands in the manifest (name, kind, shape), so a member has no header that could be forged, and nothing
is parsed: its length and digest are checked, then its bytes are the numbers.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fedkt.bundle.manifest import ARRAY_NAME, KINDS, MOST_AXES, ArrayEntry
from fedkt.errors import BundleError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def array_members(arrays: Mapping[str, NDArray[Any]], sender: str) -> list[tuple[ArrayEntry, bytes]]:
    """What the manifest says of each array, and its bytes, by name: the order of the mapping leaves no trace."""
    for name in arrays:
        if not isinstance(name, str) or re.fullmatch(ARRAY_NAME, name) is None:
            raise BundleError(
                f"The bundle of {sender!r} holds an array named {str(name)[:120]!r}. Names have up to 100 characters, "
                "begin with a small letter and go on with small letters, digits, '_', '.' or '-'."
            )
    return [_member(name, np.asarray(arrays[name]), sender) for name in sorted(arrays)]


def check_names_and_shapes(
    entries: Sequence[ArrayEntry], expected: Mapping[str, tuple[int, ...]] | None, who: str
) -> None:
    """Nothing, if these are exactly the expected arrays; otherwise a BundleError that names the first that is not."""
    shapes = {name: tuple(shape) for name, shape in (expected or {}).items()}
    if entries and not shapes:
        raise BundleError(f"{who} holds arrays ({_names(entry.name for entry in entries)}), but none are expected.")
    for entry in entries:
        if entry.name not in shapes:
            raise BundleError(f"{who} holds an array {entry.name!r} that is not expected. Expected: {_names(shapes)}.")
        if entry.shape != shapes[entry.name]:
            raise BundleError(
                f"{who}: the array {entry.name!r} has the shape {entry.shape}, but {shapes[entry.name]} was agreed on."
            )
    missing = shapes.keys() - {entry.name for entry in entries}
    if missing:
        raise BundleError(f"{who}: arrays are missing: {_names(sorted(missing))}.")


def array_from(entry: ArrayEntry, content: bytes, who: str) -> NDArray[Any]:
    """The array in a member whose length and digest fit its entry: read-only, in this machine's byte order."""
    little = np.dtype(entry.kind).newbyteorder("<")
    array = np.frombuffer(content, little).reshape(entry.shape).astype(entry.kind, copy=True)
    if not _finite(array):
        raise BundleError(f"{who}: the array {entry.name!r} holds numbers that are not finite (NaN or infinite).")
    array.setflags(write=False)
    return array


def _member(name: str, array: NDArray[Any], sender: str) -> tuple[ArrayEntry, bytes]:
    what = f"The array {name!r} of {sender!r} cannot be sent:"
    kind = array.dtype.name
    if kind not in KINDS:
        raise BundleError(f"{what} its numbers are {kind}; {', '.join(KINDS)} travel. Convert it first.")
    if array.ndim > MOST_AXES:
        raise BundleError(f"{what} it has {array.ndim} dimensions; at most {MOST_AXES} travel. Reshape it first.")
    if array.size == 0:
        raise BundleError(f"{what} it is empty, its shape is {array.shape}. Leave it out.")
    if not _finite(array):
        raise BundleError(f"{what} it holds numbers that are not finite (NaN or infinite). Did the training diverge?")
    data = array.astype(np.dtype(kind).newbyteorder("<"), copy=False).tobytes(order="C")
    digest = hashlib.sha256(data).hexdigest()
    return ArrayEntry.model_validate(
        {"name": name, "kind": kind, "shape": array.shape, "size": len(data), "sha256": digest}
    ), data


def _finite(array: NDArray[Any]) -> bool:
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


def _names(names: Iterable[str]) -> str:
    """The first names, for a message that stays short."""
    words = list(names)
    return ", ".join(words[:5]) + (f", … ({len(words)} in all)" if len(words) > 5 else "")
