"""From received bytes to a bundle: distrusted from the outside in, and built of what was checked only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fedkt.bundle.arrays import array_from, check_names_and_shapes
from fedkt.bundle.content import Bundle, Expected, Label
from fedkt.bundle.manifest import Manifest
from fedkt.bundle.opening import manifest_room, open_bundle, open_under_plan
from fedkt.errors import BundleError, ModelError

if TYPE_CHECKING:
    from fedkt.models.base import Model
    from fedkt.models.onnx_rules import Limits


def unpack(data: bytes, *, source: str, expected: Expected, limits: Limits | None = None) -> Bundle:
    """The bundle in received bytes, or a BundleError that names the source and the reason.

    `source` is what messages call the bytes before the sender is known, for instance the file's name.
    """
    from fedkt.models.onnx_rules import Limits

    bounds = limits or Limits()
    most = bounds.models if expected.max_models is None else min(expected.max_models, bounds.models)
    # Count before content: what nobody agreed on is not unpacked, and a manifest needs room for what was agreed only.
    room = min(bounds.manifest_bytes, manifest_room(expected.classes, most, len(expected.arrays or {})))
    narrow = replace(bounds, models=most, manifest_bytes=room)
    bundle = open_under_plan(expected.plan, data, source, expected.keys, narrow)
    manifest, who = bundle.manifest, bundle.who
    _check_manifest(manifest, expected, who)
    arrays = {
        entry.name: array_from(entry, bundle.read(f"arrays/{place}.bin"), who)
        for place, entry in enumerate(manifest.arrays)
    }
    models = [
        _model_from(bundle.read(entry.name), entry.name, place, manifest.party, expected, bounds, who)
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
        identity=bundle.identity,
        issue=manifest.issue or 0,
        signed=bundle.signed,
    )


def _check_manifest(manifest: Manifest, expected: Expected, who: str) -> None:
    """What a bundle says it is must be what was expected, before any member of it is unpacked."""

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
    _check_counts(manifest.counts, len(expected.classes), expected=expected.counts, who=who)


def _model_from(data: bytes, name: str, place: int, party: str, expected: Expected, limits: Limits, who: str) -> Model:
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
    from fedkt.models.onnx_rules import Limits

    bundle = open_bundle(data, source, keys or {}, limits or Limits())
    if contents:
        for name in bundle.digests:
            bundle.read(name)
    return bundle.manifest


def _check_counts(counts: tuple[int, ...] | None, n_classes: int, *, expected: bool, who: str) -> None:
    """Class counts are there where they are wanted and nowhere else, and there is one for each class."""
    if not expected:
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
