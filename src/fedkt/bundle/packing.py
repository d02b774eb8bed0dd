"""From a bundle to bytes: the same bytes for the same bundle."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from fedkt.bundle.arrays import array_members
from fedkt.bundle.content import MANIFEST, SIGNATURE, Bundle
from fedkt.bundle.manifest import FORMAT, ArrayEntry, Claim, FileEntry, Manifest
from fedkt.errors import BundleError, ModelError
from fedkt.system.versions import versions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fedkt.bundle.signing import SigningKey
    from fedkt.models.base import FittedModel


def pack(
    bundle: Bundle,
    *,
    check_rows: ArrayLike | None = None,
    n_features: int | None = None,
    key: SigningKey | None = None,
    claim: Claim | None = None,
    packages: Mapping[str, str] = MappingProxyType({}),
) -> bytes:
    """The bundle as bytes, the same bytes for the same bundle, signed if a key is given.

    `claim` is what the noise promises; without it the bundle's own, which it has where it was received with one.
    Models that are not ONNX yet are converted and must label every one of `check_rows` as before. A bundle
    of arrays only needs no such rows: `n_features` says how many columns the agreed rows have. `packages` are the
    versions of the plug-ins that took part.
    """
    graphs, width = _graphs(bundle, check_rows, n_features)
    files = [
        FileEntry(name=f"models/{place}.onnx", size=len(data), sha256=hashlib.sha256(data).hexdigest())
        for place, data in enumerate(graphs)
    ]
    arrays = array_members(bundle.arrays, bundle.sender)
    entries = [entry for entry, _ in arrays]
    text = _manifest_text(bundle, width, files, entries, claim if claim is not None else bundle.claim, packages)
    members = [(MANIFEST, text)]
    if key is not None:
        members.append((SIGNATURE, key.sign(text)))
    members += [(entry.name, data) for entry, data in zip(files, graphs, strict=True)]
    members += [(f"arrays/{place}.bin", content) for place, (_, content) in enumerate(arrays)]
    return _zipped(members)


def _graphs(bundle: Bundle, check_rows: ArrayLike | None, n_features: int | None) -> tuple[list[bytes], int]:
    """The models as ONNX, and how many columns they read."""
    from fedkt.models.exchange import OnnxModel, converter

    width = _width(bundle, check_rows, n_features)
    graphs: list[bytes] = []
    for place, model in enumerate(bundle.models):
        if isinstance(model, OnnxModel):
            graphs.append(model.data)
            continue
        try:
            native = cast("FittedModel", model)
            rows = cast("ArrayLike", check_rows)
            convert = converter(soft=bundle.soft, must=bundle.background_class)
            onnx = convert(native, n_features=width, n_classes=bundle.n_outputs, check_rows=rows)
        except ModelError as reason:
            raise ModelError(f"Model {place} of {bundle.sender!r} cannot be sent: {reason}") from reason
        graphs.append(onnx.data)
    return graphs, width


def _manifest_text(
    bundle: Bundle,
    width: int,
    files: Sequence[FileEntry],
    arrays: Sequence[ArrayEntry],
    claim: Claim | None,
    packages: Mapping[str, str],
) -> bytes:
    """What the bundle is, as JSON in one form only."""
    try:
        manifest = Manifest(
            format=FORMAT,
            kind="models",
            party=bundle.sender,
            plan=bundle.plan,
            classes=tuple(bundle.classes),
            n_features=width,
            versions=versions() | dict(packages),
            files=tuple(files),
            arrays=tuple(arrays),
            claim=claim,
            counts=bundle.counts,
            issue=bundle.issue or None,
        )
    except ValueError as reason:
        raise BundleError(f"The bundle of {bundle.sender!r} cannot be described: {reason}") from reason
    values = manifest.model_dump(mode="json", exclude_none=True, exclude=None if arrays else {"arrays"})
    return json.dumps(values, ensure_ascii=False, indent=1, sort_keys=True).encode()


def _width(bundle: Bundle, check_rows: Any, n_features: int | None) -> int:
    """The columns of the agreed rows; a bundle that cannot be packed for want of something is refused here."""
    if not bundle.models and not bundle.arrays:
        raise BundleError(f"The bundle of {bundle.sender!r} holds neither models nor arrays: there is nothing to send.")
    if check_rows is None:
        if bundle.models:
            raise BundleError(f"The bundle of {bundle.sender!r} holds models: packing them needs check rows.")
        if n_features is None:
            raise BundleError("Packing arrays needs n_features, the number of columns of the agreed rows.")
        return n_features
    shape = getattr(check_rows, "shape", None)
    if shape is None or len(shape) != 2:
        raise BundleError(f"Packing needs check rows as a table (rows × columns), got the shape {shape}.")
    if n_features not in (None, shape[1]):
        raise BundleError(f"The check rows have {shape[1]} columns, but n_features is {n_features}.")
    return int(shape[1])


def _zipped(members: Sequence[tuple[str, bytes]]) -> bytes:
    """A zip archive whose bytes depend on the members only: no clock, no user, no system in it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.create_system = 3
            info.external_attr = 0o600 << 16
            # What compresses too well looks like a zip bomb to the receiver: it travels as it is. So do arrays of which
            # compressing saves less than a tenth, as it does for the weights of networks in float32.
            size, packed = len(content), len(zlib.compress(content, 6))
            as_it_is = size > 90 * packed or (name.startswith("arrays/") and 10 * packed > 9 * size)
            info.compress_type = zipfile.ZIP_STORED if as_it_is else zipfile.ZIP_DEFLATED
            archive.writestr(info, content, compresslevel=6)
    return buffer.getvalue()
