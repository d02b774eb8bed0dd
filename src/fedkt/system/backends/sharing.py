"""Large arrays that many tasks have in common: taken out of them, so that they travel once and not with each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import Any

LARGE = 100_000
"""Bytes from which on an array is worth a place of its own."""


@dataclass(frozen=True)
class Place:
    """Where something stood that was taken out."""

    number: int


def take_out(values: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The values with places for what more than half of them share, and what that is."""
    found: dict[int, Any] = {}
    often: Counter[int] = Counter()
    for value in values:
        inside = {id(each): each for each in leaves(value)}
        found |= inside
        often.update(inside.keys())
    shared = [found[number] for number, count in often.items() if count > max(1, len(values) / 2)]
    places = {id(each): Place(number) for number, each in enumerate(shared)}
    return [changed(value, lambda each: places.get(id(each), each)) for value in values], shared


def put_back(value: Any, shared: Sequence[Any]) -> Any:
    """A task as it was."""
    return changed(value, lambda each: shared[each.number] if isinstance(each, Place) else each)


def leaves(value: Any) -> Iterator[Any]:
    """The large tables inside a task."""
    if is_large(value):
        yield value
    else:
        for part in parts(value):
            yield from leaves(part)


def is_large(value: Any) -> bool:
    """Whether this is a table or an array that is worth a place of its own."""
    if not hasattr(value, "shape") or isinstance(value, type):
        return False
    size = getattr(value, "nbytes", None)
    # A data frame and a sparse matrix do not say, or not so.
    return size >= LARGE if isinstance(size, int) else hasattr(value, "iloc") or hasattr(value, "tocsr")


def parts(value: Any) -> list[Any]:
    """What a tuple, a list, a dataclass or a partial function is made of; nothing of anything else."""
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, partial):
        return [*value.args, *value.keywords.values()]
    if is_dataclass(value) and not isinstance(value, (type, Place)):
        return [getattr(value, each.name) for each in fields(value)]
    return []


def changed(value: Any, change: Callable[[Any], Any]) -> Any:
    """A copy of a task in which `change` was made to every part; itself where nothing changed."""
    new = change(value)
    if new is not value:
        return new
    old = parts(value)
    now = [changed(part, change) for part in old]
    if all(one is other for one, other in zip(old, now, strict=True)):
        return value
    if isinstance(value, partial):
        return partial(
            value.func, *now[: len(value.args)], **dict(zip(value.keywords, now[len(value.args) :], strict=True))
        )
    if isinstance(value, (list, tuple)):
        return type(value)(*now) if hasattr(value, "_fields") else type(value)(now)
    # Not made anew: that would check an array that is not there.
    own = copy(value)
    for each, part in zip(fields(value), now, strict=True):
        object.__setattr__(own, each.name, part)
    return own
