"""The one thing that crosses the wire: a party's models and what they are, as bytes.

    bundle.zip
    ├── manifest.json    format, party, plan, classes, versions, at level L2 a privacy claim, for expert voting the
    │                    rows of each class; which issue it is, if not the first; name, size and SHA-256 of every
    │                    model, kind and shape besides of arrays
    ├── manifest.sig     64 bytes, Ed25519 over manifest.json; optional
    ├── models/0.onnx …  one per student
    └── arrays/0.bin …   weights, for methods that average them: little-endian numbers, nothing else

There is no field for votes or anything else computed from a party's rows but what it trained, and the class counts
where a plan says expert voting; a claim at level L2 tells nothing about the party but what it has spent. An array could
hold anything, so who unpacks says which are expected, and FedKT's server expects none. Received bytes are distrusted in
this order: sizes, number of members, names, signature, manifest, plan, classes, party, and only then the members: each
is unpacked once, its digest is checked, then what it holds. Nothing is built before it is checked.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from fedkt.errors import BundleError, ModelError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from fedkt.bundle.manifest import Claim, Manifest
    from fedkt.bundle.signing import SigningKey
    from fedkt.models.base import FittedModel, Model
    from fedkt.models.onnx_rules import Limits

Label = str | int

MANIFEST = "manifest.json"
SIGNATURE = "manifest.sig"


@dataclass(frozen=True)
class Bundle:
    """What a party sends, or a server sends back."""

    sender: str
    """The party's name."""
    classes: tuple[Label, ...]
    """The class list all parties agreed on."""
    models: tuple[Model, ...]
    """Trained models: native in a simulation, OnnxModel once they have travelled."""
    plan: str = ""
    """The digest of the plan it was made under."""
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Named arrays of float32, float64 or int64, for algorithms that send weights."""
    claim: Claim | None = None
    """What the sender says its noise promises (level L2), not checked yet."""
    counts: tuple[int, ...] | None = None
    """How many rows of each class the sender says it has, where the vote weighs parties by them."""
    soft: bool = False
    """Whether its models also say how sure they are, as far as they can."""
    background_class: bool = False
    """Whether its models know one class more, after the agreed ones: a row that is not the sender's."""
    calibrated: bool = False
    """Whether its models are agreed to be of families that find a class about as probable as it is."""
    identity: str = ""
    """The SHA-256 of the manifest it came with, which holds the digests of all the rest; the zip file is not in it."""
    issue: int = 0
    """Of two signed bundles of one party the one with the larger number counts."""
    signed: bool = False
    """Whether it came with a signature that fits the sender's key."""

    @property
    def n_outputs(self) -> int:
        """How many classes its models know."""
        return len(self.classes) + self.background_class

    @property
    def has_probabilities(self) -> bool:
        """Whether all its models say how sure they are."""
        from fedkt.models.prediction import has_probabilities

        return all(map(has_probabilities, self.models))


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What a reader expects of a bundle: whatever is otherwise is refused."""

    plan: str
    """The digest of the plan."""
    classes: Sequence[Label]
    n_features: int
    max_models: int | None = None
    """0 for who expects no models; None for as many as the limits allow."""
    arrays: Mapping[str, tuple[int, ...]] | None = None
    """By name and shape: exactly these must be there, None for none at all. Whether they are float32, float64 or int64
    is the sender's choice."""
    counts: bool = False
    """Whether the rows of each class must be told; if not, they must not."""
    soft: bool = False
    """Whether models may also give probabilities."""
    background_class: bool = False
    """Whether models must do so, and know one class more."""
    parties: Collection[str] | None = None
    """From whom; None for anybody."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Public keys by party: a party with a key must have signed."""

    @property
    def n_outputs(self) -> int:
        """How many classes a model tells apart."""
        return len(self.classes) + self.background_class


def pack(
    bundle: Bundle,
    *,
    check_rows: ArrayLike | None = None,
    n_features: int | None = None,
    key: SigningKey | None = None,
    claim: Claim | None = None,
) -> bytes:
    """The bundle as bytes, the same bytes for the same bundle, signed if a key is given.

    `claim` is what the noise promises; without it the bundle's own, which it has where it was received with one.
    Models that are not ONNX yet are converted and must label every one of `check_rows` as before. A bundle
    of arrays only needs no such rows: `n_features` says how many columns the agreed rows have.
    """
    from fedkt.bundle.arrays import array_members
    from fedkt.bundle.manifest import FORMAT, FileEntry, Manifest
    from fedkt.models.exchange import OnnxModel, converter
    from fedkt.system.versions import versions

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
            converted = convert(native, n_features=width, n_classes=bundle.n_outputs, check_rows=rows)
        except ModelError as reason:
            raise ModelError(f"Model {place} of {bundle.sender!r} cannot be sent: {reason}") from reason
        graphs.append(converted.data)
    files = [
        FileEntry(name=f"models/{place}.onnx", size=len(data), sha256=hashlib.sha256(data).hexdigest())
        for place, data in enumerate(graphs)
    ]
    arrays = array_members(bundle.arrays, bundle.sender)
    try:
        manifest = Manifest(
            format=FORMAT,
            kind="models",
            party=bundle.sender,
            plan=bundle.plan,
            classes=tuple(bundle.classes),
            n_features=width,
            versions=versions(),
            files=tuple(files),
            arrays=tuple(entry for entry, _ in arrays),
            claim=claim if claim is not None else bundle.claim,
            counts=bundle.counts,
            issue=bundle.issue or None,
        )
    except ValueError as reason:
        raise BundleError(f"The bundle of {bundle.sender!r} cannot be described: {reason}") from reason
    said = manifest.model_dump(mode="json", exclude_none=True, exclude=None if arrays else {"arrays"})
    text = json.dumps(said, ensure_ascii=False, indent=1, sort_keys=True).encode()
    members = [(MANIFEST, text)]
    if key is not None:
        members.append((SIGNATURE, key.sign(text)))
    members += [(entry.name, data) for entry, data in zip(files, graphs, strict=True)]
    members += [(f"arrays/{place}.bin", content) for place, (_, content) in enumerate(arrays)]
    return _zipped(members)


def unpack(data: bytes, *, source: str, expected: Expected, limits: Limits | None = None) -> Bundle:
    """The bundle in received bytes, or a BundleError that names the source and the reason.

    `source` is what messages call the bytes before the sender is known, for instance the file's name.
    """
    from fedkt.bundle.arrays import array_from
    from fedkt.bundle.opening import manifest_room, open_under_plan
    from fedkt.models.onnx_rules import Limits

    bounds = limits or Limits()
    most = bounds.models if expected.max_models is None else min(expected.max_models, bounds.models)
    # Count before content: what nobody agreed on is not unpacked, and a manifest needs room for what was agreed only.
    room = min(bounds.manifest_bytes, manifest_room(expected.classes, most, len(expected.arrays or {})))
    narrow = replace(bounds, models=most, manifest_bytes=room)
    found = open_under_plan(expected.plan, data, source, expected.keys, narrow)
    manifest, who = found.manifest, found.who
    _check_manifest(manifest, expected, who)
    arrays = {
        entry.name: array_from(entry, found.read(f"arrays/{place}.bin"), who)
        for place, entry in enumerate(manifest.arrays)
    }
    models = [
        _checked_model(found.read(entry.name), entry.name, place, manifest.party, expected, bounds, who)
        for place, entry in enumerate(manifest.files)
    ]
    return Bundle(
        manifest.party,
        tuple(expected.classes),
        tuple(models),
        manifest.plan,
        arrays,
        manifest.claim,
        manifest.counts,
        expected.soft,
        expected.background_class,
        identity=found.identity,
        issue=manifest.issue or 0,
        signed=found.signed,
    )


def _check_manifest(manifest: Manifest, expected: Expected, who: str) -> None:
    """What a bundle says it is must be what was expected, before any member of it is unpacked."""
    from fedkt.bundle.arrays import check_names_and_shapes

    if not _same(manifest.classes, expected.classes):
        raise BundleError(
            f"{who} is about the classes {list(manifest.classes)[:20]}, but {list(expected.classes)[:20]} were agreed "
            "on, in this order."
        )
    if expected.parties is not None and manifest.party not in expected.parties:
        raise BundleError(
            f"{who} is from a party that nobody expects. Expected: {', '.join(sorted(expected.parties)) or 'none'}."
        )
    if manifest.n_features != expected.n_features:
        raise BundleError(
            f"{who} reads rows of {manifest.n_features} columns; the agreed rows have {expected.n_features}."
        )
    check_names_and_shapes(manifest.arrays, expected.arrays, who)
    _check_counts(manifest.counts, len(expected.classes), wanted=expected.counts, who=who)


def _checked_model(
    data: bytes, name: str, place: int, party: str, expected: Expected, limits: Limits, who: str
) -> Model:
    """A received model, which is built of the graph that was checked."""
    from fedkt.models.exchange import OnnxModel
    from fedkt.models.onnx_rules import check_graph

    width, outputs = expected.n_features, expected.n_outputs
    try:
        graph = check_graph(data, n_features=width, n_classes=outputs, limits=limits, soft=expected.soft)
    except ModelError as reason:
        raise BundleError(f"{who}: {name} is refused: {reason}") from reason
    if expected.background_class and not graph.soft:
        raise BundleError(f"{who}: {name} is refused: it does not say how sure it is.")
    return OnnxModel(graph.data, width, outputs, f"model {place} of {party!r}", soft=graph.soft, limits=limits)


def peek(
    data: bytes,
    *,
    source: str,
    keys: Mapping[str, str] | None = None,
    limits: Limits | None = None,
    contents: bool = True,
) -> Manifest:
    """What a bundle says it is: sizes, names, signature and, with `contents`, digests are checked, no more."""
    from fedkt.bundle.opening import open_bundle
    from fedkt.models.onnx_rules import Limits

    found = open_bundle(data, source, keys or {}, limits or Limits())
    if contents:
        for name in found.digests:
            found.read(name)
    return found.manifest


def _check_counts(counts: tuple[int, ...] | None, n_classes: int, *, wanted: bool, who: str) -> None:
    """Class counts are there where they are wanted and nowhere else, and there is one for each class."""
    if not wanted:
        if counts is not None:
            raise BundleError(f"{who} tells how many rows of each class its party has, which nobody asked for.")
        return
    if counts is None:
        raise BundleError(f"{who} does not tell how many rows of each class its party has, as was agreed on.")
    if len(counts) != n_classes:
        raise BundleError(f"{who} counts rows of {len(counts)} classes; there are {n_classes}.")


def _same(ours: Sequence[Label], theirs: Sequence[Label]) -> bool:
    """Equal class lists; True and 1, or '1' and 1, are different labels."""
    return len(ours) == len(theirs) and all(type(a) is type(b) and a == b for a, b in zip(ours, theirs, strict=True))


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
