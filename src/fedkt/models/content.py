"""The content of rows, models and settings as one digest: two that differ in anything have different ones.

Numbers count by their bytes, shape and order, an estimator by its class, its parameters and whatever else it holds,
everything by its kind. What cannot be described so (a function, an object of a stranger's class) has no digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

LIBRARIES = frozenset({"fedkt", "sklearn", "xgboost", "lightgbm", "catboost"})
"""The packages whose objects are known by their class and what they hold: their versions are told beside them."""
PLAIN = (bool, int, str, bytes)


class Undescribed(Exception):
    """A value whose content cannot be told."""


def content_digest(*values: Any) -> str:
    """The SHA-256 of these values."""
    digest = hashlib.sha256()
    for token in _tokens(values):
        # With its length before it no token can pass for two.
        digest.update(len(token).to_bytes(8, "big"))
        digest.update(token)
    return digest.hexdigest()


def rows_digest(rows: Any) -> str:
    """The digest of rows alone, however they lie in memory."""
    return content_digest(np.ascontiguousarray(rows) if isinstance(rows, np.ndarray) else rows)


def _tokens(value: Any) -> Iterable[Any]:
    kind = type(value)
    if value is None or kind in PLAIN:
        yield f"{kind.__name__} {value!r}".encode()
    elif kind is float:
        yield f"float {value.hex()}".encode()
    elif kind in (tuple, list):
        yield f"{kind.__name__} {len(value)}".encode()
        for each in value:
            yield from _tokens(each)
    elif isinstance(value, Mapping):
        yield f"mapping {len(value)}".encode()
        # By the digests of their names: 1 and "1" may stand side by side.
        for name in sorted(value, key=content_digest):
            yield from _tokens(name)
            yield from _tokens(value[name])
    elif isinstance(value, np.ma.MaskedArray):
        raise Undescribed("an array with a mask")
    elif isinstance(value, np.ndarray | np.generic):
        yield from _array_tokens(np.asarray(value))
    elif hasattr(value, "tocsr"):
        yield from _sparse_tokens(value)
    else:
        yield from _object_tokens(value)


def _array_tokens(array: Any) -> Iterable[Any]:
    if array.dtype.kind not in "biufcSUmM":
        raise Undescribed(f"an array of {array.dtype}")
    # By the order in memory arithmetic may end with other last digits.
    order = f"{array.flags.c_contiguous:d}{array.flags.f_contiguous:d}"
    yield f"array {array.dtype.str} {array.shape} {order}".encode()
    whole = np.ascontiguousarray(array)
    yield whole.view(np.uint8).reshape(-1).data if whole.size else b""


def _sparse_tokens(value: Any) -> Iterable[Any]:
    if not all(hasattr(value, part) for part in ("data", "indices", "indptr")):
        raise Undescribed(f"sparse rows of the kind {type(value).__name__}")
    yield f"sparse {_class_name(value, more=('scipy',))} {value.shape}".encode()
    for part in (value.data, value.indices, value.indptr):
        yield from _array_tokens(part)


def _object_tokens(value: Any) -> Iterable[Any]:
    if isinstance(value, type):
        raise Undescribed(f"the class {value.__name__}")
    held: dict[str, Any]
    if is_dataclass(value):
        held = {each.name: getattr(value, each.name) for each in fields(value)}
    elif hasattr(value, "get_params"):
        # What it holds beside its parameters may decide as much.
        held = {**vars(value), **value.get_params(deep=False)}
    else:
        raise Undescribed(f"an object of the class {type(value).__name__}")
    yield f"object {_class_name(value)}".encode()
    yield from _tokens(held)


def _class_name(value: Any, more: tuple[str, ...] = ()) -> str:
    kind = type(value)
    if kind.__module__.partition(".")[0] not in {*LIBRARIES, *more}:
        raise Undescribed(f"an object of the class {kind.__module__}.{kind.__qualname__}")
    return f"{kind.__module__}.{kind.__qualname__}"
