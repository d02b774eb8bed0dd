"""A dataset's file: found in a folder or downloaded once, and never used unverified.

What is found counts only if it becomes exactly the content that `fedkt.data.sources` expects, whatever its packing.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedkt.data.sources import FILES, RemoteFile
from fedkt.errors import ConfigurationError, DataError
from fedkt.system.files import unfinished

Progress = Callable[[int, int], None]
"""Called with the bytes received so far and the bytes expected in all."""

TIMEOUT_SECONDS = 30.0
"""Longest silence of a server."""
DEADLINE_SECONDS = 600.0
"""Longest time one file may take beside its bytes: a server that sends a byte a second is never silent."""
SLOWEST = 500_000
"""Bytes a second that a large file has to arrive at."""


@dataclass(frozen=True)
class VerifiedFile:
    """A file of a dataset, verified."""

    name: str
    """Its name in `FILES`."""
    path: Path
    content: bytes

    @property
    def source(self) -> str:
        """Where the content came from, in words."""
        return f"{self.path.name} (sha256 of the content {FILES[self.name].sha256[:12]})"


def find_file(name: str, *, data_dir: str | Path | None = None, progress: Progress | None = None) -> Path:
    """The verified file called `name`: from `data_dir`, else $FEDKT_DATA, else the cache, else downloaded into it."""
    return find_content(name, data_dir=data_dir, progress=progress).path


def find_content(*names: str, data_dir: str | Path | None = None, progress: Progress | None = None) -> VerifiedFile:
    """The first of the named files that is in a folder, else the last one downloaded; always verified."""
    for name in names:
        if name not in FILES:
            raise ConfigurationError(f"Unknown data file {name!r}. Known are: {', '.join(FILES)}.")
    folders = _folders(data_dir)
    for folder in folders:
        for name in names:
            file = _find_in(folder, name)
            if file is not None:
                return file
    remote = FILES[names[-1]]
    content = _download(remote, [each for name in names for each in FILES[name].names], folders, progress)
    return VerifiedFile(names[-1], _keep(content, cache_dir() / remote.names[-1]), content)


def _find_in(folder: Path, name: str) -> VerifiedFile | None:
    """The verified file called `name` in one folder, under one of its names or as the public source's raw files."""
    remote = FILES[name]
    for each in remote.names:
        if (folder / each).is_file():
            return VerifiedFile(name, folder / each, read_verified(folder / each, remote))
    raw = [folder / url.rpartition("/")[2] for url in remote.urls]
    # Or the same file already unpacked, where only that is there.
    raw = [path.with_suffix("") if path.suffix == ".gz" and not path.is_file() else path for path in raw]
    if not raw or not all(path.is_file() for path in raw):
        return None
    content = _join([_read(path, remote) for path in raw], remote, " and ".join(map(str, raw)))
    return VerifiedFile(name, _keep(content, cache_dir() / remote.names[-1]), content)


def read_verified(path: Path, remote: RemoteFile) -> bytes:
    """The content of a file on disk, unpacked; refused unless it is the content expected."""
    content = _read(path, remote)
    digest = hashlib.sha256(content).hexdigest()
    if digest != remote.sha256:
        raise DataError(
            f"{path} is not the file expected: the sha256 of its content is {digest}, expected {remote.sha256}. "
            f"{_instead(remote)}"
        )
    return content


def _read(path: Path, remote: RemoteFile) -> bytes:
    """The content of a file, unpacked, cut off after the most bytes it can have and one more."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            content = stream.read(remote.most_bytes + 1)
        return remote.from_npz(content) if remote.from_npz is not None and path.suffix == ".npz" else content
    except (OSError, EOFError, ValueError, zlib.error) as reason:
        raise DataError(f"{path} cannot be read: {reason}. {_instead(remote)}") from reason


def _instead(remote: RemoteFile) -> str:
    """What to do about a file that is not the one expected."""
    return "Remove or replace it; without it fedkt downloads " + ("the file." if remote.urls else "the public files.")


def cache_dir() -> Path:
    """Where downloads are kept: $XDG_CACHE_HOME/fedkt, else ~/.cache/fedkt."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification has relative paths ignored.
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "fedkt"


def _folders(data_dir: str | Path | None) -> list[Path]:
    """The folders a file is looked for in, in order."""
    folders: list[Path] = []
    for folder, origin in ((data_dir, "the data folder"), (os.environ.get("FEDKT_DATA"), "$FEDKT_DATA")):
        if folder:
            if not Path(folder).is_dir():
                raise DataError(f"{folder}, given as {origin}, is not a folder. Create it or name another.")
            folders.append(Path(folder))
    return [*folders, cache_dir()]


def _download(remote: RemoteFile, names: Sequence[str], folders: Sequence[Path], progress: Progress | None) -> bytes:
    """The verified content of a file of these names, downloaded from the public source."""
    otherwise = (
        f"The file {' or '.join(names)} was not in {', '.join(map(str, folders))}. Without internet access, get "
        f"{' and '.join(remote.urls)} elsewhere, put what you get into a folder and name that folder with --data-dir "
        "or FEDKT_DATA."
    )
    parts: list[bytes] = []
    n_bytes = 0
    for url in remote.urls:

        def report(count: int, before: int = n_bytes) -> None:
            if progress is not None:
                progress(before + count, remote.sent or remote.size)

        part = _fetch(url, remote.most_bytes - n_bytes, report, otherwise)
        n_bytes += len(part)
        parts.append(_unpack(part, remote.most_bytes, url, otherwise) if url.endswith(".gz") else part)
    return _join(parts, remote, f"What {' and '.join(remote.urls)} sent", otherwise)


def _unpack(part: bytes, most_bytes: int, url: str, otherwise: str) -> bytes:
    """A gzip file unpacked, cut off after `most_bytes` and one more."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(part)) as stream:
            return stream.read(most_bytes + 1)
    except (OSError, EOFError, zlib.error) as reason:
        raise DataError(f"What {url} sent cannot be unpacked: {reason}; nothing was kept. {otherwise}") from reason


def _join(parts: Sequence[bytes], remote: RemoteFile, origin: str, otherwise: str = "") -> bytes:
    """The public source's raw files as the content expected, refused if they are not."""
    try:
        content = remote.join(parts)
    except ValueError as reason:
        raise DataError(f"{origin} is not the data of {remote.names[-1]}: {reason}. {otherwise}".strip()) from reason
    digest = hashlib.sha256(content).hexdigest()
    if digest != remote.sha256:
        raise DataError(
            f"{origin} is not the data of {remote.names[-1]}: the sha256 of the content is {digest}, expected "
            f"{remote.sha256}; nothing was kept. {otherwise}".strip()
        )
    return content


def _fetch(url: str, most_bytes: int, report: Callable[[int], None], otherwise: str) -> bytes:
    """The bytes behind a URL, at most `most_bytes` of them."""
    import httpx

    body = bytearray()
    seconds = DEADLINE_SECONDS + most_bytes / SLOWEST
    deadline = time.monotonic() + seconds
    try:
        # Compressed transfer is declined, so that the cap counts what really arrives.
        with httpx.stream(
            "GET", url, timeout=TIMEOUT_SECONDS, follow_redirects=True, headers={"Accept-Encoding": "identity"}
        ) as response:
            response.raise_for_status()
            for chunk in response.iter_bytes(65_536):
                body += chunk
                if len(body) > most_bytes:
                    raise DataError(f"{url} sent more than the {most_bytes:,} bytes the file can have. {otherwise}")
                if time.monotonic() > deadline:
                    raise DataError(f"{url} took longer than {seconds:.0f} seconds. {otherwise}")
                report(len(body))
    except httpx.HTTPStatusError as reason:
        raise DataError(f"{url} answered {reason.response.status_code}. {otherwise}") from reason
    except httpx.HTTPError as reason:
        raise DataError(f"{url} could not be downloaded ({type(reason).__name__}: {reason}). {otherwise}") from reason
    return bytes(body)


def _keep(content: bytes, path: Path) -> Path:
    """`content` written to `path` in one step: another name first, then a rename, so half a file never counts."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with unfinished(path) as (handle, temporary):
            with os.fdopen(handle, "wb", closefd=False) as stream:
                stream.write(content)
            os.replace(temporary, path)
    except OSError as reason:
        raise DataError(
            f"The download could not be kept in {path.parent}: {reason}. Set XDG_CACHE_HOME to a folder you may write."
        ) from reason
    return path
