"""What a party sends: put into a mailbox whole, and numbered where it replaces a bundle that was signed before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fedkt.bundle import Bundle, peek
from fedkt.bundle.manifest import MOST_ISSUE
from fedkt.bundle.signing import SigningKey
from fedkt.errors import BundleError, ConfigurationError
from fedkt.federation import Diary
from fedkt.live.mailbox import Mailbox, bundle_name
from fedkt.models.onnx_rules import Limits


def check_issue(issue: int | None, key: SigningKey | None) -> None:
    """Refuse, before anything is trained, a number that no bundle can carry."""
    if issue is None:
        return
    if key is None:
        raise ConfigurationError(
            "Only a signed bundle has an issue: without a signature anybody could send a newer one. Leave --issue out."
        )
    if not 1 <= issue <= MOST_ISSUE:
        raise ConfigurationError(f"--issue takes a whole number from 1 to {MOST_ISSUE}, got {issue}.")


def send(
    outbox: Mailbox,
    bundle: Bundle,
    pack: Callable[[Bundle], bytes],
    *,
    key: SigningKey | None,
    issue: int | None,
    resumed: bool,
    diary: Diary,
) -> bytes:
    """Put a bundle into the outbox, numbered; the bytes that lie there now.

    Bytes that a resumed run finds there stay: an earlier run wrote them and was stopped before its end.
    """
    name = bundle_name(bundle.sender)
    place = outbox.where(name)
    there, before = read_earlier(outbox, name)
    earlier = None if key is None or before is None else signed_issue(before, place, bundle, key)
    if earlier is not None and issue is not None and issue < earlier:
        diary.notes.append(
            f"{place} was issue {earlier} and is replaced by issue {issue}, which is lower: a server that has both "
            f"counts the old one. Leave --issue out to get {earlier + 1}."
        )
    packed = pack_issue(bundle, pack, issue=issue, before=before, earlier=earlier)
    if resumed and before == packed:
        diary.say(f"{place} was there already: an earlier run wrote it and was stopped before its end. It is whole.")
        return packed
    if there:
        diary.say(f"{place} of an earlier run is replaced.")
    outbox.put(name, packed)
    return packed


def pack_issue(
    bundle: Bundle, pack: Callable[[Bundle], bytes], *, issue: int | None, before: bytes | None, earlier: int | None
) -> bytes:
    """The bytes to send: of this issue, else the next one after the `earlier` issue, whose bytes are `before`.

    The same content keeps its number, so that a party which starts again sends the same bytes.
    """
    if issue is not None:
        return pack(replace(bundle, issue=issue))
    if earlier is None:
        return pack(bundle)
    again = pack(replace(bundle, issue=earlier))
    return again if again == before else pack(replace(bundle, issue=earlier + 1))


def read_earlier(outbox: Mailbox, name: str) -> tuple[bool, bytes | None]:
    """Whether something lies in the outbox under this name, and its bytes, None where they cannot be read."""
    try:
        return True, outbox.read(name, Limits().bundle_bytes)
    except FileNotFoundError:
        return False, None
    except OSError:
        return True, None


def signed_issue(data: bytes, place: str, bundle: Bundle, key: SigningKey) -> int | None:
    """The issue of a bundle of the same party and plan that this key has signed; None if it is not one."""
    try:
        manifest = peek(data, source=place, keys={bundle.sender: key.public})
    except BundleError:
        return None
    same = (manifest.party, manifest.plan) == (bundle.sender, bundle.plan)
    return manifest.issue or 0 if same else None
