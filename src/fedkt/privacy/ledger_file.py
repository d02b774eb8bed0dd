"""The ledger as a file: what was spent is written down, and on the disk, before a vote is read.

One JSON object a line, each with the digest of the line before it, in canonical form: a changed, removed or reordered
line is found on reading, and then nothing more is released. Beside the ledger lie

    <ledger>.head   how many entries there are and the digest of the last: a chain alone cannot miss its own end
    <ledger>.lock   held while the ledger is read or written; several processes may share one ledger

The releases of one run are written together, all of them or none: each entry says how many there are (`together`).
Writing puts their lines on the disk, then the head, and only then returns; so after a kill or a power cut at any moment

    the last lines are incomplete   their releases never happened; they are cut off, with a warning
    one run more than the head      its releases may not have happened; they count as spent
    fewer entries than the head     entries were lost: refused

The ledger protects its owner against accidents and shows tampering. It does not protect anybody against its owner: who
deletes the ledger and its head, or restores both from an old copy, starts again from there, and fools himself.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fedkt.errors import PrivacyError
from fedkt.privacy.entries import FIRST, Entry, Spending, canonical, entries_after
from fedkt.privacy.ledger_chain import MAX_LINE, check_kind, damage, read_bytes, read_chain, read_head, run_ends
from fedkt.system.locks import PAUSE, fcntl, try_lock, unlock

MAX_BYTES = 64 * 2**20
"""The longest ledger that is read: some hundred thousand releases."""
LOCK_SECONDS = 300.0
"""How long to wait for another process: it may be pricing a large release."""

_BINARY = getattr(os, "O_BINARY", 0)


def write_durably(path: Path, data: bytes, flags: int, *, sync_folder: bool) -> None:
    """Write the bytes and return when they are on the disk, with the file's name where asked for."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | _BINARY | flags, 0o600)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(handle, rest) :]
        os.fsync(handle)
    finally:
        os.close(handle)
    if sync_folder:
        sync(path.parent)


def sync(folder: Path) -> None:
    """Put the folder's names on the disk, where the system can."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Nobody else reads or writes this ledger inside the block; a killed process gives its lock back.

    Without flock the lock is the existence of the lock file, which a killed process leaves behind.
    """
    lock, until = path.with_name(f"{path.name}.lock"), time.monotonic() + LOCK_SECONDS
    handle = None
    try:
        while (handle := take_ledger_lock(lock)) is None:
            if time.monotonic() > until:
                stale = "" if fcntl else f" If no other process is running, it was killed: delete {lock}."
                raise PrivacyError(
                    f"The ledger {path} has been in use by another process for {LOCK_SECONDS:g} seconds; nothing is "
                    f"released. Wait until it has finished, then try again.{stale}"
                )
            time.sleep(PAUSE)
        yield
    except OSError as reason:
        raise PrivacyError(f"The ledger {path} cannot be used: {reason}. Nothing is released.") from reason
    finally:
        if handle is not None:
            unlock(handle)
            if not fcntl:
                lock.unlink()


def take_ledger_lock(lock: Path) -> int | None:
    """The handle that holds the lock, None while somebody else has it."""
    if fcntl:
        return try_lock(lock)
    try:
        return os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o600)
    except FileExistsError:
        return None


class LedgerFile:
    """A ledger that is a file: open it, then `reserve` or `append` before a vote is read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.head = path.with_name(f"{path.name}.head")
        self.repairs: tuple[str, ...] = ()
        """Interrupted lines that were cut off since this ledger was opened, in words."""
        self._entries: list[Entry] = []
        self._text = b""

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, create: bool = True) -> LedgerFile:
        """The ledger in this file, its whole chain checked; an empty one where there is no file and `create` is set.

        Nothing is created before the first entry, but the lock. A link is followed, so that all its names share one
        lock and one head.
        """
        ledger_file = cls(Path(path).resolve())
        if not ledger_file.path.parent.is_dir():
            raise PrivacyError(
                f"The ledger {ledger_file.path} cannot be opened: its folder does not exist. Create it first."
            )
        if not create and not ledger_file.path.exists() and not ledger_file.head.exists():
            raise PrivacyError(
                f"There is no ledger {ledger_file.path}. Check the path: an empty ledger has spent nothing."
            )
        ledger_file.refresh()
        return ledger_file

    @classmethod
    def peek(cls, path: str | os.PathLike[str]) -> LedgerFile:
        """The ledger as it lies there, its chain checked: nothing is made, locked or mended. Not for spending."""
        ledger_file = cls(Path(path).resolve())
        ledger_file._look()
        return ledger_file

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries when the file was last read: by `open`, `refresh`, `append` or `reserve`."""
        return tuple(self._entries)

    def spent(self, who: str | None = None, plan: str | None = None) -> list[Entry]:
        """The entries of one owner, of one plan, or of both; all where neither is named."""
        return [entry for entry in self._entries if who in (None, entry.who) and plan in (None, entry.plan)]

    def refresh(self) -> None:
        """Read what other processes have written since."""
        with locked(self.path):
            self._read()

    def append(self, spending: Spending) -> Entry:
        """The entry, on the disk: when this returns the release is spent, whatever happens next."""
        with locked(self.path):
            self._read()
            (entry,) = self._after([spending])
            self._write([entry])
        return entry

    def _after(self, spendings: Sequence[Spending]) -> list[Entry]:
        """The entries that would come next."""
        return entries_after(self._entries[-1] if self._entries else None, spendings)

    def _read(self) -> None:
        """Read and check everything, and finish what an interrupted append began. Needs the lock."""
        count, interrupted = self._look()
        if interrupted:
            self._cut(len(self._text), interrupted)
        if count < len(self._entries):
            # Its writer may have died before the line was on the disk; the head must not get there first.
            write_durably(self.path, b"", os.O_APPEND, sync_folder=True)
            self._write_head(self._entries[-1])

    def _look(self) -> tuple[int, str]:
        """Read and check everything: how many entries the head counts, and what is wrong with an interrupted end."""
        text = read_bytes(self.path, MAX_BYTES)
        if not text.startswith(self._text):
            raise damage(self.path, "entries that this process had already read were changed or are gone")
        if not self._text and not self.head.exists():
            check_kind(self.path, text)
        entries, end, interrupted = read_chain(self.path, text, self._entries, len(self._text))
        count, digest = read_head(self.path, self.head)
        if count > len(entries):
            what = f"{interrupted}, though it had been written whole" if interrupted else "entries were removed"
            raise damage(self.path, f"{what} (its head counts {count} entries, the ledger holds {len(entries)})")
        ends = run_ends(self.path, entries)
        if ends[-1] > len(entries) and count <= ends[-2]:
            # Of a run that was written in part nothing was released.
            present, together = len(entries) - ends[-2], ends.pop() - ends[-1]
            interrupted = interrupted or f"{present} of {together} entries that belong together are there"
            entries = entries[: ends[-1]]
            end = sum(len(each.line) for each in entries)
        if count not in ends[-2:]:
            raise damage(self.path, f"it holds {len(entries)} entries, but its head counts {count}, or is missing")
        if digest != (entries[count - 1].digest if count else FIRST):
            raise damage(self.path, f"entry {count} is not the one its head names")
        self._entries, self._text = entries, text[:end]
        return count, interrupted

    def _cut(self, end: int, interrupted: str) -> None:
        """Cut off the interrupted lines after byte `end`, and say so."""
        os.truncate(self.path, end)
        write_durably(self.path, b"", os.O_APPEND, sync_folder=False)
        repair = (
            f"The ledger {self.path} ended in an interrupted write ({interrupted}), which was cut off. The entries of "
            "a run are whole on the disk before its votes are read, so nothing had been released for it."
        )
        self.repairs += (repair,)
        warnings.warn(repair, RuntimeWarning, stacklevel=4)

    def _write(self, entries: Sequence[Entry]) -> None:
        """Write the entries of one run, then the head. Needs the lock and a ledger just read."""
        lines = [entry.line for entry in entries]
        longest = max(map(len, lines))
        if longest > MAX_LINE or len(self._text) + sum(map(len, lines)) > MAX_BYTES:
            raise PrivacyError(
                f"Entry {entries[0].number} of {longest:,} bytes does not fit into the ledger {self.path} (at most "
                f"{MAX_LINE:,} bytes an entry, {MAX_BYTES:,} in all); nothing was written, nothing is released."
            )
        text = b"".join(lines)
        write_durably(self.path, text, os.O_APPEND, sync_folder=not self._text)
        self._write_head(entries[-1])
        self._entries.extend(entries)
        self._text += text

    def _write_head(self, last: Entry) -> None:
        """Name the last entry in the head: the old head or the new one, never half of one."""
        fresh = self.head.with_name(f"{self.head.name}.new")
        text = canonical({"count": last.number, "digest": last.digest}) + b"\n"
        write_durably(fresh, text, os.O_TRUNC, sync_folder=False)
        os.replace(fresh, self.head)
        sync(self.path.parent)


def reserve(
    ledger_file: LedgerFile, spendings: Sequence[Spending], *, price: Callable[[Sequence[Entry]], float], budget: float
) -> list[Entry]:
    """The entries of one owner's run, on the disk, if all its entries with them cost at most `budget`; else none.

    Reading, pricing and writing happen under one lock: two processes cannot both slip under the budget. `price` must
    not touch the ledger.
    """
    if not budget >= 0:
        raise PrivacyError(f"A privacy budget is a number of at least 0, got {budget!r}; nothing is released.")
    who = {spending.who for spending in spendings}
    if len(who) != 1:
        raise PrivacyError(f"One run has one owner, got {', '.join(sorted(who)) or 'no release'}; nothing is released.")
    with locked(ledger_file.path):
        ledger_file._read()
        before = ledger_file.spent(who=spendings[0].who)
        entries = ledger_file._after(spendings)
        cost = float(price([*before, *entries]))
        # Also refuses a price that is no number.
        if not 0 <= cost <= budget:
            so_far = float(price(before)) if before else 0.0
            queries = sum(entry.release.queries for entry in entries)
            noises = " and ".join(dict.fromkeys(entry.release.noise.name for entry in entries))
            raise PrivacyError(
                f"The budget of {entries[0].who!r} does not cover this release of {queries:,} queries with {noises} "
                f"noise: epsilon {so_far:.6g} is spent in {len(before)} {'release' if len(before) == 1 else 'releases'}"
                f", with this one it would be {cost:.6g}, the budget is {budget:.6g}. "
                "Nothing was written, nothing is released. Ask fewer queries, add more noise, or agree on a larger "
                f"budget. (Ledger: {ledger_file.path})"
            )
        ledger_file._write(entries)
    return entries
