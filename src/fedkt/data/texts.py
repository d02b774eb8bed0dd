"""A column of texts as it is kept in memory: different texts once, or packed, some rows at a time.

A text of its own takes about 50 bytes beside its characters and eight for each row that names it, so that ten million
numbers in a CSV file would be ten gigabytes before one of them is read. Here they are as large as in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

KEPT = 65_536
"""Different texts of a column that are kept once for all rows: as many as 16 bits tell apart."""
CHUNK = 65_536
"""Rows of an array that are looked at together."""
SEPARATOR = "\0"
FEW = 2
"""Texts are kept once where each stands for so many rows, or rather packed."""

TextList = list[str]


@dataclass(frozen=True, eq=False)
class Block:
    """The texts of some rows that follow each other."""

    rows: int
    texts: str | TextList
    """Packed in one, or a list, which several blocks may share."""
    codes: NDArray[np.uint16] | None = None
    """Which of the list each row has; None where each row has its own."""

    @property
    def different(self) -> TextList:
        """The texts among which all of its rows' are; those of its rows in order where there are no codes."""
        return self.texts.split(SEPARATOR) if isinstance(self.texts, str) else self.texts

    def of_rows(self) -> NDArray[Any]:
        """The text of each row."""
        texts = object_array(self.different)
        return texts if self.codes is None else texts[self.codes]


def pack(texts: TextList) -> Block:
    """Texts of which each row has its own."""
    joint = SEPARATOR.join(texts)
    # Files of other formats than text may have what stands between texts inside of them.
    return Block(len(texts), texts if joint.count(SEPARATOR) >= len(texts) else joint)


def are_whole(texts: TextList) -> bool:
    """Whether no text has a half of a character, which can be neither printed nor written."""
    try:
        SEPARATOR.join(texts).encode()
    except UnicodeEncodeError:
        return False
    return True


class Texts:
    """A column of texts; like an array it gives the text of a row, those of some rows, or all as a list."""

    dtype = np.dtype(object)

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = tuple(blocks)
        self._stops = np.cumsum([block.rows for block in self.blocks], dtype=np.int64)

    def __len__(self) -> int:
        return int(self._stops[-1]) if self.blocks else 0

    def __iter__(self) -> Iterator[str]:
        for block in self.blocks:
            yield from block.of_rows().tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return object_array(self.tolist()).astype(object if dtype is None else dtype, copy=False)

    def __eq__(self, other: object) -> Any:
        """Of which rows it is true, as of an array."""
        return np.asarray(self) == other

    __hash__ = object.__hash__

    def __getitem__(self, place: Any) -> Any:
        """The text of one row, or an array of those of a slice, of some rows or of a mask."""
        if isinstance(place, int | np.integer):
            return self[[range(len(self))[int(place)]]][0]
        rows = row_numbers(place, len(self))
        found = np.empty(len(rows), dtype=object)
        owners = np.searchsorted(self._stops, rows, side="right")
        order = np.argsort(owners, kind="stable")
        ends = np.searchsorted(owners[order], np.arange(len(self.blocks)), side="right")
        for block, stop, start, end in zip(self.blocks, self._stops, [0, *ends], ends, strict=False):
            if here := order[start:end].tolist():
                found[here] = block.of_rows()[rows[here] - (stop - block.rows)]
        return found

    def tolist(self) -> TextList:
        """The text of every row."""
        return list(self)

    def different(self) -> Iterator[str]:
        """Every text that some row has; some more than once."""
        lists: set[int] = set()
        for block in self.blocks:
            if block.codes is None or id(block.texts) not in lists:
                lists.add(id(block.texts))
                yield from block.different

    def replaced(self, function: Callable[[TextList], TextList]) -> Texts:
        """The column with what a function makes of texts in their place; it is asked about each a few times at most."""
        lists: dict[int, TextList] = {}
        blocks = []
        for block in self.blocks:
            if block.codes is None:
                blocks.append(pack(function(block.different)))
                continue
            if id(block.texts) not in lists:
                lists[id(block.texts)] = function(block.different)
            blocks.append(Block(block.rows, lists[id(block.texts)], block.codes))
        return Texts(blocks)


class TextColumn:
    """A column of texts in the making."""

    def __init__(self) -> None:
        self._kept: TextList = []
        self._places: dict[str, int] = {}
        self._blocks: list[Block] = []
        self._many = False

    def add(self, texts: TextList) -> None:
        """The texts of the next rows: where few differ, each is kept once."""
        different = {} if self._many else dict.fromkeys(texts)
        # Where many differ in some rows they do in others: looking takes longer than packing.
        self._many = self._many or len(different) * FEW > len(texts) or len(self._kept) + len(different) > KEPT
        if self._many:
            self._blocks.append(pack(texts))
            return
        for text in different:
            if text not in self._places:
                self._places[text] = len(self._kept)
                self._kept.append(text)
        codes = np.fromiter(map(self._places.__getitem__, texts), dtype=np.uint16, count=len(texts))
        self._blocks.append(Block(len(texts), self._kept, codes))

    def done(self) -> Texts:
        """The column."""
        return Texts(self._blocks)


class Unread:
    """A column that nobody asked for: it has a name and a length, and its values were never read."""

    dtype = np.dtype(object)

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, rows: Any) -> Unread:
        return Unread(len(row_numbers(rows, self._rows)))

    def __iter__(self) -> Iterator[Any]:
        raise LookupError("this column was not read, since nobody asked for it")

    def tolist(self) -> list[Any]:
        """None: whoever needs them has to ask for the column."""
        return list(self)


def row_numbers(place: Any, n_rows: int) -> NDArray[np.int64]:
    """The rows that a slice, a mask or a list of rows means."""
    if isinstance(place, slice):
        return np.arange(*place.indices(n_rows))
    rows = np.asarray(place)
    return np.flatnonzero(rows) if rows.dtype == bool else rows


def slices(n_rows: int) -> Iterator[slice]:
    """All rows, so many at a time as make no large copies."""
    return (slice(start, min(start + CHUNK, n_rows)) for start in range(0, n_rows, CHUNK))


def object_array(values: Sequence[Any]) -> NDArray[Any]:
    """An object array of the given values, also where they are sequences."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def by_value(values: Any, function: Callable[[list[Any]], NDArray[Any]]) -> NDArray[Any]:
    """What a function makes of every value of a column; it has to make the same of equal ones, whatever stands beside.

    It is asked about each different text of a block, or number of a chunk, once.
    """
    if isinstance(values, Texts):
        return _of_texts(values, function)
    parts = [values[start : start + CHUNK] for start in range(0, len(values), CHUNK)] or [values]
    if values.dtype == object:
        return np.concatenate([function(part.tolist()) for part in parts])
    pairs = [np.unique(part, return_inverse=True) for part in parts]
    return np.concatenate([function(different.tolist())[places] for different, places in pairs])


def _of_texts(values: Texts, function: Callable[[list[Any]], NDArray[Any]]) -> NDArray[Any]:
    lists: dict[int, NDArray[Any]] = {}
    parts = []
    for block in values.blocks:
        if block.codes is None:
            parts.append(function(block.different))
            continue
        if id(block.texts) not in lists:
            lists[id(block.texts)] = function(block.different)
        parts.append(lists[id(block.texts)][block.codes])
    return np.concatenate(parts)
