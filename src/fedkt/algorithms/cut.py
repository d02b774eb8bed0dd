"""How a party's rows are cut into subsets, one teacher each.

Without noise at the party the cut is a shuffle: subsets of nearly equal size. At level L2 a record may move one teacher
of a partition and no other. A shuffle of row numbers cannot promise that: where rows are sorted by anything a record
decides (images in folders by class), one changed record moves every row between its two places. So the subset of a
record is there a keyed hash of the record's own identity, whatever other records there are and wherever they stand.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from fedkt.errors import ConfigurationError
from fedkt.votes import Labels


def cut(n_rows: int, subsets: int, rng: np.random.Generator) -> list[Labels]:
    """The row numbers of `subsets` nearly equal random subsets; fewer where there are fewer rows than subsets."""
    if subsets < 1:
        raise ConfigurationError(f"A partition needs at least one subset, got {subsets}.")
    return [np.sort(piece) for piece in np.array_split(rng.permutation(n_rows), min(subsets, n_rows))]


def cut_by_identity(identities: Sequence[str], subsets: int, key: bytes) -> list[Labels]:
    """The row numbers of exactly `subsets` subsets, some of them perhaps empty; rows of one identity stay together.

    The rows of a subset stand in the order of their hashes: where a record stood in its file decides nothing.
    """
    marks = np.array([_mark(each, key) for each in identities], dtype=np.uint64)
    # Stable, so that rows of one identity keep their order.
    order = np.argsort(marks, kind="stable")
    home = (marks[order] % np.uint64(subsets)).astype(np.int64)
    return [order[home == number].astype(np.int64) for number in range(subsets)]


def cut_key(seed: int, partition: int) -> bytes:
    """The key of one partition's cut: every partition cuts anew."""
    return hashlib.sha256(f"fedkt cut {seed} {partition}".encode()).digest()


def positions(n_rows: int) -> list[str]:
    """Identities of rows that have none of their own: the place of each in its file."""
    return [str(place) for place in range(n_rows)]


def _mark(identity: str, key: bytes) -> int:
    # 64 bits: the remainder by any number of subsets is even to within one in 10¹⁴.
    return int.from_bytes(hashlib.blake2b(identity.encode(), digest_size=8, key=key).digest(), "big")
