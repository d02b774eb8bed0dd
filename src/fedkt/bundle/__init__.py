"""The one thing that crosses the wire: a party's models and what they are, as bytes.

    bundle.zip
    ├── manifest.json    format, party, plan, classes, versions, at level L2 a privacy claim, for expert voting the
    │                    rows of each class; which issue it is, if not the first; name, size and SHA-256 of every
    │                    model, kind and shape besides of arrays
    ├── manifest.sig     64 bytes, Ed25519 over manifest.json; optional
    ├── models/0.onnx …  one per student
    └── arrays/0.bin …   sums, where a plan says moments; weights, for methods that average them: little-endian numbers,
                         nothing else

There is no field for votes or anything else computed from a party's rows but what it trained, and the class counts
where a plan says expert voting, or sums of its rows' features where it says moments; a claim at level L2 tells nothing
about the party but what it has spent. An array could hold anything, so who unpacks says which are expected: FedKT's
server none, or those sums. Received bytes are distrusted in this order: sizes, number of members, names, manifest,
signature, plan, classes, party, and only then the members: each is unpacked once, its digest is checked, then what it
holds. Nothing is built before it is checked.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fedkt.bundle.content import MANIFEST, SIGNATURE, Bundle, Expected, Label

if TYPE_CHECKING:
    from fedkt.bundle.packing import pack
    from fedkt.bundle.unpacking import peek, unpack

__all__ = ["MANIFEST", "SIGNATURE", "Bundle", "Expected", "Label", "pack", "peek", "unpack"]

_HOMES = {"pack": "packing", "peek": "unpacking", "unpack": "unpacking"}
"""Loaded when they are first used: a simulation that measures no bytes needs no checker of manifests."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fedkt.bundle' has no attribute {name!r}")
    return getattr(import_module(f"fedkt.bundle.{_HOMES[name]}"), name)
