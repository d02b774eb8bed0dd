"""A received bundle as far as it can be checked without unpacking a model: archive, signature, manifest, sizes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fedkt.bundle.archive import Archive
from fedkt.bundle.content import MANIFEST, SIGNATURE
from fedkt.bundle.manifest import Manifest, parse_manifest
from fedkt.errors import BundleError, ConfigurationError

if TYPE_CHECKING:
    from fedkt.models.onnx_rules import Limits


@dataclass(frozen=True)
class OpenBundle:
    """A bundle whose manifest describes exactly the members that are there; none of them has been unpacked."""

    archive: Archive
    manifest: Manifest
    identity: str
    """The SHA-256 of the manifest's bytes."""
    signed: bool
    """Whether the sender's key made the signature."""
    who: str
    """What messages call it."""
    digests: Mapping[str, str]
    """The name of every member beside the manifest, and its SHA-256."""

    def read(self, name: str) -> bytes:
        """The content of a member, unpacked now, if it is what the manifest says."""
        content = self.archive.read(name)
        if hashlib.sha256(content).hexdigest() != self.digests[name]:
            raise BundleError(f"{self.who}: {name} does not match its digest. It was damaged or changed on the way.")
        return content


def manifest_room(classes: Sequence[str | int], models: int, arrays: int) -> int:
    """More bytes than an honest manifest has that tells of so many things: one of two classes needs no megabyte."""
    # Versions, claim and names have caps of their own, 64 KB together; a count has up to 16 digits in a line.
    labels = len(json.dumps([str(each) for each in classes]))
    return 2**16 + 2 * labels + 32 * len(classes) + 256 * models + 1024 * arrays


def open_under_plan(plan: str, data: bytes, source: str, keys: Mapping[str, str], bounds: Limits) -> OpenBundle:
    """The bundle, open, if it was made under the plan with this digest.

    A bundle of another plan may break many rules of this one, and is refused for what explains them all.
    """
    try:
        bundle = open_bundle(data, source, keys, bounds)
    except BundleError:
        foreign = read_refused_manifest(data, source, bounds)
        if foreign is None or foreign.plan == plan:
            raise
        manifest = foreign
    else:
        manifest = bundle.manifest
        if manifest.plan == plan:
            return bundle
    raise BundleError(
        f"Bundle from {manifest.party!r} was made under plan {manifest.plan[:6] or '(none)'}; this server runs "
        f"{plan[:6] or '(none)'}. Send {manifest.party!r} the current plan.toml. (File: {source})"
    )


def read_refused_manifest(data: bytes, source: str, bounds: Limits) -> Manifest | None:
    """What a refused bundle says it is, for the words of its refusal only; None where that cannot be read.

    Its directory may list as many models as a bundle of any plan, but the manifest alone is unpacked, under its cap.
    """
    from fedkt.models.onnx_rules import Limits

    try:
        archive = Archive(data, source, replace(bounds, models=Limits().models))
        return parse_manifest(archive.read(MANIFEST), source)
    except BundleError:
        return None


def open_bundle(data: bytes, source: str, keys: Mapping[str, str], bounds: Limits) -> OpenBundle:
    """The bundle, once every check has passed that needs no plan and unpacks no model."""
    archive = Archive(data, source, bounds)
    text = archive.read(MANIFEST)
    manifest = parse_manifest(text, source)
    signature = archive.read(SIGNATURE) if SIGNATURE in archive.names else None
    signed = _check_signature(text, signature, manifest, source, keys)
    who = f"Bundle from {manifest.party!r} ({source})"
    digests = _check_members(archive, manifest, who)
    return OpenBundle(archive, manifest, hashlib.sha256(text).hexdigest(), signed, who, digests)


def _check_members(archive: Archive, manifest: Manifest, who: str) -> dict[str, str]:
    """Every member beside the manifest with its SHA-256; refused where manifest and archive differ."""
    models, arrays = manifest.files, manifest.arrays
    sizes = {entry.name: entry.size for entry in models}
    sizes |= {f"arrays/{place}.bin": entry.size for place, entry in enumerate(arrays)}
    present = [name for name in archive.names if name not in (MANIFEST, SIGNATURE)]
    if list(sizes) != present or len(sizes) != len(models) + len(arrays):
        raise BundleError(
            f"{who}: the manifest lists {len(models)} models and {len(arrays)} arrays, but the archive's "
            f"{len(present)} members are others."
        )
    if not sizes:
        raise BundleError(f"{who} holds neither models nor arrays.")
    for name, size in sizes.items():
        if archive.size(name) != size:
            raise BundleError(f"{who}: {name} has {archive.size(name)} bytes, its manifest says size {size}.")
    digests = [entry.sha256 for entry in models] + [entry.sha256 for entry in arrays]
    return dict(zip(sizes, digests, strict=True))


def _check_signature(
    text: bytes, signature: bytes | None, manifest: Manifest, source: str, keys: Mapping[str, str]
) -> bool:
    """Whether the sender's key made the signature; refused where it did not, though the plan lists one.

    One key is tried, that of whom the manifest names: with all of a large plan's, a folder of small files would keep
    the server busy for hours.
    """
    from fedkt.bundle.signing import SIGNATURE_BYTES, verify

    who = f"Bundle from {manifest.party!r} ({source})"
    if signature is not None and len(signature) != SIGNATURE_BYTES:
        raise BundleError(f"{who}: the signature has {len(signature)} bytes, not {SIGNATURE_BYTES}.")
    public = keys.get(manifest.party)
    if signature is None and public is not None:
        raise BundleError(
            f"{who} is not signed, but the plan lists a key for this party. Ask {manifest.party!r} to sign it."
        )
    if signature is None or not keys:
        return False
    if public is None:
        raise BundleError(f"{who} is signed, but the plan lists no key for {manifest.party!r} to check that by.")
    try:
        fits = verify(public, text, signature)
    except ConfigurationError as reason:
        raise ConfigurationError(f"The key of {manifest.party!r} is unusable: {reason}") from reason
    if not fits:
        raise BundleError(f"{who}: the signature is not {manifest.party!r}'s. It was changed, or signed by others.")
    return True
