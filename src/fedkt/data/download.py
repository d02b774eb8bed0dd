"""A dataset's file: found in a folder or downloaded once, and never used unverified.

One digest stands for a file however it is packed: the sha256 of its text after decompression and, where the public
source serves several raw files, after joining them into our table. So a9a as plain text and as a9a.gz are the same
file, and a download counts only if it becomes exactly the text that is expected.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedkt.errors import ConfigurationError, DataError

Progress = Callable[[int, int], None]
"""Called with the bytes received so far and the bytes expected in all."""

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"

TIMEOUT_SECONDS = 30.0
"""Longest silence of a server."""
DEADLINE_SECONDS = 600.0
"""Longest time one file may take: a server that sends a byte a second is never silent."""

HEART_SITES = ("cleveland", "hungarian", "switzerland", "va_long_beach")


def join_plain(parts: Sequence[bytes]) -> bytes:
    """The parts one after the other, unchanged."""
    return b"".join(parts)


def join_adult(parts: Sequence[bytes]) -> bytes:
    """UCI's adult.data and adult.test as one CSV with a header and a column `split`."""
    lines = [
        "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,"
        "capital-gain,capital-loss,hours-per-week,native-country,income,split"
    ]
    for split, part in zip(("train", "test"), parts, strict=True):
        for line in part.decode("ascii").splitlines():
            # adult.test opens with a comment, and its labels end in a dot.
            if line and not line.startswith("|"):
                lines.append(f"{line.replace(', ', ',').removesuffix('.')},{split}")
    return ("\n".join(lines) + "\n").encode("ascii")


def join_heart(parts: Sequence[bytes]) -> bytes:
    """UCI's four processed heart-disease files as one CSV with a header, a column `site` and empty missing values."""
    lines = ["site,age,sex,cp,trestbps,chol,fbs,restecg,thalach,exang,oldpeak,slope,ca,thal,num"]
    oldpeak = 9
    for site, part in zip(HEART_SITES, parts, strict=True):
        for line in part.decode("ascii").splitlines():
            # The files disagree about 63.0 and 63, 0.7 and .7; only oldpeak has decimals that mean something.
            values = [
                "" if text == "?" else repr(float(text)) if place == oldpeak else f"{float(text):g}"
                for place, text in enumerate(line.strip().split(","))
            ]
            if line.strip():
                lines.append(",".join([site, *values]))
    return ("\n".join(lines) + "\n").encode("ascii")


@dataclass(frozen=True)
class RemoteFile:
    """A file of a dataset: its names on disk, where the public keeps it, and how it is recognised."""

    names: tuple[str, ...]
    """File names it is looked for under; the last one is the name in the cache."""
    urls: tuple[str, ...]
    """The public files it is made of."""
    sha256: str
    """Of the text, decompressed and joined."""
    size: int
    """Bytes of that text."""
    join: Callable[[Sequence[bytes]], bytes] = join_plain

    @property
    def most_bytes(self) -> int:
        """More than this is not the file: nothing longer is downloaded or decompressed."""
        return 2 * self.size + 65_536


FILES: dict[str, RemoteFile] = {
    "a9a": RemoteFile(
        names=("a9a.gz", "a9a"),
        urls=(f"{LIBSVM}/a9a",),
        sha256="7ba53cccb27e2e525f0fb173e1f446d49856e3fb007eb43be4ec6d0f5b3335ca",
        size=2_327_314,
    ),
    "cod-rna": RemoteFile(
        names=("cod-rna.gz", "cod-rna"),
        urls=(f"{LIBSVM}/cod-rna",),
        sha256="65b7cc0689fc29bba5db8b50fab0b6446d985f4bf8f6f5dd474f7df8b2f1ab6c",
        size=4_667_176,
    ),
    "adult.csv": RemoteFile(
        names=("adult.csv.gz", "adult.csv"),
        urls=(f"{UCI}/adult/adult.data", f"{UCI}/adult/adult.test"),
        sha256="d99d5b2c07ff6c7e09b6e0cefe115f6835d5c7b6efebdb9276238f1243c6369b",
        size=5_554_299,
        join=join_adult,
    ),
    "heart_disease_4sites.csv": RemoteFile(
        names=("heart_disease_4sites.csv.gz", "heart_disease_4sites.csv"),
        urls=tuple(
            f"{UCI}/heart-disease/processed.{site}.data" for site in ("cleveland", "hungarian", "switzerland", "va")
        ),
        sha256="f560e924ab09a3fc583e97b36abeb178e3459dddc358f40d90e080176237d687",
        size=41_779,
        join=join_heart,
    ),
}
"""Every file a dataset may need, by name."""


def find_file(name: str, *, data_dir: str | Path | None = None, progress: Progress | None = None) -> Path:
    """The verified file called `name`: from `data_dir`, else $FEDKT_DATA, else the cache, else downloaded into it."""
    return _find(name, data_dir, progress)[0]


def read_text(name: str, *, data_dir: str | Path | None = None, progress: Progress | None = None) -> tuple[bytes, str]:
    """The verified text of the file called `name`, and where it came from in words."""
    path, text = _find(name, data_dir, progress)
    return text, f"{path.name} (sha256 of the text {FILES[name].sha256[:12]})"


def _find(name: str, data_dir: str | Path | None, progress: Progress | None) -> tuple[Path, bytes]:
    """The file called `name` and its verified text."""
    if name not in FILES:
        raise ConfigurationError(f"Unknown data file {name!r}. Known are: {', '.join(FILES)}.")
    remote = FILES[name]
    folders = _folders(data_dir)
    for folder in folders:
        for each in remote.names:
            if (folder / each).is_file():
                return folder / each, read_verified(folder / each, remote)
        raw = [folder / url.rpartition("/")[2] for url in remote.urls]
        if all(path.is_file() for path in raw):
            text = _joined([_read(path, remote.most_bytes) for path in raw], remote, " and ".join(map(str, raw)))
            return _keep(text, cache_dir() / remote.names[-1]), text
    text = _download(remote, folders, progress)
    return _keep(text, cache_dir() / remote.names[-1]), text


def read_verified(path: Path, remote: RemoteFile) -> bytes:
    """The text of a file on disk, decompressed; refused unless it is the text expected."""
    text = _read(path, remote.most_bytes)
    digest = hashlib.sha256(text).hexdigest()
    if digest != remote.sha256:
        raise DataError(
            f"{path} is not the file expected: the sha256 of its text is {digest}, expected {remote.sha256}. "
            "Remove or replace it; without it fedkt downloads the file."
        )
    return text


def _read(path: Path, most_bytes: int) -> bytes:
    """The bytes of a file, decompressed, cut off after `most_bytes` and one more."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            return stream.read(most_bytes + 1)
    except (OSError, EOFError, zlib.error) as reason:
        raise DataError(f"{path} cannot be read: {reason}. Remove it to have it downloaded again.") from reason


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


def _download(remote: RemoteFile, folders: Sequence[Path], progress: Progress | None) -> bytes:
    """The verified text, downloaded from the public source."""
    otherwise = (
        f"The file {' or '.join(remote.names)} was not in {', '.join(map(str, folders))}. Without internet access, get "
        f"{' and '.join(remote.urls)} elsewhere, put what you get into a folder and name that folder with --data-dir "
        "or FEDKT_DATA."
    )
    parts: list[bytes] = []
    for url in remote.urls:
        before = sum(map(len, parts))

        def report(done: int, before: int = before) -> None:
            if progress is not None:
                progress(before + done, remote.size)

        parts.append(_fetch(url, remote.most_bytes - before, report, otherwise))
    return _joined(parts, remote, f"What {' and '.join(remote.urls)} sent", otherwise)


def _joined(parts: Sequence[bytes], remote: RemoteFile, origin: str, otherwise: str = "") -> bytes:
    """The public source's raw files as the text expected, refused if they are not."""
    try:
        text = remote.join(parts)
    except ValueError as reason:
        raise DataError(f"{origin} is not the data of {remote.names[-1]}: {reason}. {otherwise}".strip()) from reason
    digest = hashlib.sha256(text).hexdigest()
    if digest != remote.sha256:
        raise DataError(
            f"{origin} is not the data of {remote.names[-1]}: the sha256 of the text is {digest}, expected "
            f"{remote.sha256}; nothing was kept. {otherwise}".strip()
        )
    return text


def _fetch(url: str, most_bytes: int, report: Callable[[int], None], otherwise: str) -> bytes:
    """The bytes behind a URL, at most `most_bytes` of them."""
    import httpx

    body = bytearray()
    deadline = time.monotonic() + DEADLINE_SECONDS
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
                    raise DataError(f"{url} took longer than {DEADLINE_SECONDS:.0f} seconds. {otherwise}")
                report(len(body))
    except httpx.HTTPStatusError as reason:
        raise DataError(f"{url} answered {reason.response.status_code}. {otherwise}") from reason
    except httpx.HTTPError as reason:
        raise DataError(f"{url} could not be downloaded ({type(reason).__name__}: {reason}). {otherwise}") from reason
    return bytes(body)


def _keep(text: bytes, path: Path) -> Path:
    """`text` written to `path` in one step: another name first, then a rename, so half a file never counts."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, unfinished = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(text)
            os.replace(unfinished, path)
        except BaseException:
            Path(unfinished).unlink(missing_ok=True)
            raise
    except OSError as reason:
        raise DataError(
            f"The download could not be kept in {path.parent}: {reason}. Set XDG_CACHE_HOME to a folder you may write."
        ) from reason
    return path
