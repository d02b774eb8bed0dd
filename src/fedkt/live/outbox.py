"""The file that a party sends: written whole, and numbered where it replaces one that was signed before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from fedkt.bundle import Bundle, peek
from fedkt.bundle.manifest import MOST_ISSUE
from fedkt.bundle.signing import SigningKey
from fedkt.errors import BundleError, ConfigurationError
from fedkt.models.onnx_rules import Limits
from fedkt.system.files import read_at_most


def check_issue(asked: int | None, key: SigningKey | None) -> None:
    """Refuse, before anything is trained, a number that no bundle can carry."""
    if asked is None:
        return
    if key is None:
        raise ConfigurationError(
            "Only a signed bundle has an issue: without a signature anybody could send a newer one. Leave --issue out."
        )
    if not 1 <= asked <= MOST_ISSUE:
        raise ConfigurationError(f"--issue takes a whole number from 1 to {MOST_ISSUE}, got {asked}.")


def packed_issue(
    path: Path, bundle: Bundle, packed: Callable[[Bundle], bytes], key: SigningKey | None, asked: int | None
) -> bytes:
    """The bytes to send: of the issue asked for, else the next one after the bundle that lies in the outbox.

    The same content keeps its number, so that a party which starts again sends the same bytes.
    """
    if key is None or asked is not None:
        return packed(replace(bundle, issue=asked or 0))
    before = previous(path, bundle, key)
    if before is None:
        return packed(bundle)
    data, issue = before
    again = packed(replace(bundle, issue=issue))
    return again if again == data else packed(replace(bundle, issue=issue + 1))


def lower_issue(path: Path, bundle: Bundle, key: SigningKey | None, asked: int | None) -> tuple[str, ...]:
    """A note where the issue asked for is lower than that of the bundle it replaces: a server counts the higher one."""
    before = None if key is None or asked is None else previous(path, bundle, key)
    if before is None or asked is None or asked >= before[1]:
        return ()
    return (
        f"{path} was issue {before[1]} and is replaced by issue {asked}, which is lower: a server that has both counts "
        f"the old one. Leave --issue out to get {before[1] + 1}.",
    )


def issue_in(packed: bytes, path: Path) -> int | None:
    """The issue in the bytes of a bundle that was just made."""
    return peek(packed, source=str(path), contents=False).issue


def previous(path: Path, bundle: Bundle, key: SigningKey) -> tuple[bytes, int] | None:
    """The bundle of the same party and plan that this key has signed before, with its issue; None without one."""
    data = sent_before(path)
    if data is None:
        return None
    try:
        said = peek(data, source=str(path), keys={bundle.sender: key.public})
    except BundleError:
        return None
    same = (said.party, said.plan) == (bundle.sender, bundle.plan)
    return (data, said.issue or 0) if same else None


def sent_before(path: Path) -> bytes | None:
    """The bytes of the file that lies there, None without one that can be read."""
    try:
        return read_at_most(path, Limits().bundle_bytes)
    except OSError:
        return None
