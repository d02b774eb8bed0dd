"""What the sums in a party's bundle tell, in words, for whoever looks into it."""

from __future__ import annotations

import numpy as np

from fedkt.algorithms.class_sums import GRAM, MOMENTS
from fedkt.bundle.archive import Archive
from fedkt.bundle.arrays import array_from
from fedkt.bundle.manifest import Claim, Manifest
from fedkt.errors import FedKTError
from fedkt.privacy import make_noise
from fedkt.privacy.statement import rounded_up
from fedkt.privacy.sums import GaussianSums

MOST_CLASSES = 20


def sums_in_words(manifest: Manifest, archive: Archive, place: str) -> str:
    """What the sums in a bundle tell; empty where there are none, or none that can be read as such."""
    entries = {entry.name: (number, entry) for number, entry in enumerate(manifest.arrays)}
    if MOMENTS not in entries:
        return ""
    number, entry = entries[MOMENTS]
    if len(entry.shape) != 2 or entry.shape[1] != len(manifest.classes):
        return ""
    step = 1.0 if manifest.claim is None else step_of(manifest.claim)
    counts = array_from(entry, archive.read(f"arrays/{number}.bin"), place)[0] * step
    figures = [f"{label} {count:,.0f}" for label, count in zip(manifest.classes, counts, strict=True)]
    told = ", ".join(figures[:MOST_CLASSES]) + (f", … ({len(figures)} in all)" if len(figures) > MOST_CLASSES else "")
    what = f"sums of {entry.shape[0]:,} features for each of {entry.shape[1]:,} classes"
    if manifest.claim is not None:
        return (
            f"noisy {what}, by its claim epsilon {rounded_up(manifest.claim.epsilon)} at delta "
            f"{manifest.claim.delta:g} for one {manifest.claim.unit}. The party's rows of each class, with that noise: "
            f"{told}."
        )
    products = f", and {entries[GRAM][1].shape[0]:,} sums of their products" if GRAM in entries else ""
    return (
        f"exact {what}{products}. The party's rows of each class: {told} ({np.sum(counts):,.0f} in all). Sums of few "
        "rows tell much about them."
    )


def step_of(claim: Claim) -> float:
    """What whole numbers in a bundle are multiples of, as its claim says; 1 where it says nothing that can be."""
    try:
        noise = make_noise(claim.mechanism, claim.scale, counts=True)
    except FedKTError:
        return 1.0
    return noise.step if isinstance(noise, GaussianSums) else 1.0
