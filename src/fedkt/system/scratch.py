"""Arrays that may be too many for memory, laid aside where nobody else can read them."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

MEMORY_BYTES = 2**28
"""What is laid aside up to here stays in memory."""


class KeptArray(Protocol):
    """An array of two axes or more that was laid aside; numpy reads all of it where it needs an array."""

    @property
    def shape(self) -> tuple[int, ...]:
        """As of any array."""
        ...

    def columns(self, start: int, stop: int) -> NDArray[Any]:
        """This part of its second axis, and all of the others."""
        ...

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]: ...


@dataclass(frozen=True, eq=False)
class InMemory:
    """One that stayed in memory."""

    array: NDArray[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """As of any array."""
        return self.array.shape

    def columns(self, start: int, stop: int) -> NDArray[Any]:
        """This part of its second axis, and all of the others."""
        return self.array[:, start:stop]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.array, dtype=dtype, copy=copy)


@dataclass(frozen=True, eq=False)
class OnDisk:
    """One that lies in a file; only what is asked for is read."""

    scratch: Scratch
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def columns(self, start: int, stop: int) -> NDArray[Any]:
        """This part of its second axis, and all of the others."""
        _, width, *rest = self.shape
        start, stop, _ = slice(start, stop).indices(width)
        part = np.empty((self.shape[0], max(0, stop - start), *rest), self.dtype)
        each = self.dtype.itemsize * int(np.prod(rest, dtype=np.int64))
        for place, table in enumerate(part):
            self.scratch.read(self.offset + (place * width + start) * each, table)
        return part

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.columns(0, self.shape[1]).astype(self.dtype if dtype is None else dtype, copy=False)


class Scratch:
    """Where arrays are laid aside: in memory as long as they are few, then in a file on disk.

    The file has no name where a system knows such files, and else can be read by its owner only; it is gone with this
    object, however its process ends.
    """

    def __init__(self, folder: Path | None = None, *, memory: int | None = None) -> None:
        self.folder = Path(tempfile.gettempdir()) if folder is None else folder
        self._memory = MEMORY_BYTES if memory is None else memory
        self._file: FileIO | None = None
        self._end = 0
        self._lock = threading.Lock()

    def lacks(self, size: int) -> int:
        """How many bytes of disk are missing to keep so many; 0 where there is room."""
        missing = size - self._memory - shutil.disk_usage(self.folder).free
        return max(0, missing) if size > self._memory else 0

    def keep(self, array: NDArray[Any]) -> KeptArray:
        """The array, laid aside; several threads may do so at once."""
        with self._lock:
            if array.nbytes <= self._memory:
                self._memory -= array.nbytes
                return InMemory(array)
            if self._file is None:
                self._file = self._unnamed_file()
            offset = self._file.seek(self._end)
            view = np.ascontiguousarray(array).view(np.uint8).reshape(-1).data
            while view:
                view = view[self._file.write(view) :]
            self._end += array.nbytes
        return OnDisk(self, offset, array.shape, array.dtype)

    def _unnamed_file(self) -> FileIO:
        with tempfile.TemporaryFile(dir=self.folder) as file:
            kept = FileIO(os.dup(file.fileno()), "r+b")
        weakref.finalize(self, kept.close)
        return kept

    def read(self, offset: int, into: NDArray[Any]) -> None:
        """Fill an array with what lies there."""
        view = into.view(np.uint8).reshape(-1).data
        with self._lock:
            assert self._file is not None
            self._file.seek(offset)
            while view:
                count = self._file.readinto(view)
                if not count:
                    raise OSError(f"what was laid aside in {self.folder} is gone")
                view = view[count:]
