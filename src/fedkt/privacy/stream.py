"""Noise from a keyed cryptographic stream: whoever has not the key cannot tell it from true randomness.

A generator made for simulations (numpy's PCG64) promises good statistics, not that nobody can work out its state from
what it gave, and labels are what it gave. Here every draw comes from the key stream of AES-256 in counter mode.

**How exact it is.** A draw takes 128 bits: one says which half of the distribution it is from, 127 how far out, as a
number v in (0, 1/2] that is as precise near 0 as anywhere, and the closed form of the quantile does the rest. What lies
further out than v = 2⁻¹²⁹ never comes: less than 2⁻¹²⁷ of the mass. Otherwise a draw is a double next to the ideal one:
they differ by less than 2⁻⁴⁸ of the noise's scale and of its own size. A winner among K counts of N voters changes by
that only if two of them lie so close, which has a chance below K²·2⁻⁴⁶·(1 + N/scale): with 10 classes, 10,000 queries
and N no larger than the scale 3e-8 in all. Next to δ = 1e-5 that is nothing; next to δ = 1e-9 it is not.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
KEY_BYTES = 32
Shape = int | tuple[int, ...]


class Source(Protocol):
    """Where a mechanism draws its noise from: a `Stream`; in tests and simulations also numpy's generator."""

    def normal(self, loc: float, scale: float, size: Shape, /) -> Floats:
        """Gaussian noise."""
        ...

    def laplace(self, loc: float, scale: float, size: Shape, /) -> Floats:
        """Laplace noise."""
        ...

    def gumbel(self, loc: float, scale: float, size: Shape, /) -> Floats:
        """Gumbel noise."""
        ...

    def random(self, size: Shape, /) -> Floats:
        """Uniform draws from [0, 1), to break ties with."""
        ...


def new_secret() -> int:
    """A secret of 256 bits from the operating system, from which a stream can be made again."""
    return secrets.randbits(8 * KEY_BYTES)


class Stream:
    """Independent draws, the same whenever a stream is made from the same key."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import AES
        from cryptography.hazmat.primitives.ciphers.modes import CTR

        # One key, one stream: so the counter may begin at 0.
        self._cipher = Cipher(AES(key), CTR(bytes(16))).encryptor()

    @classmethod
    def fresh(cls) -> Stream:
        """A stream that nobody can make again."""
        return cls(secrets.token_bytes(KEY_BYTES))

    @classmethod
    def of(cls, secret: int, *path: int) -> Stream:
        """The stream for one purpose, named by numbers, of a secret; streams of other paths tell nothing about it."""
        name = "/".join(map(str, (secret, *path)))
        return cls(hashlib.sha256(f"fedkt noise stream 1: {name}".encode()).digest())

    def words(self, count: int) -> NDArray[np.uint64]:
        """So many words of 64 random bits."""
        return np.frombuffer(self._cipher.update(bytes(8 * count)), dtype="<u8").astype(np.uint64)

    def normal(self, loc: float, scale: float, size: Shape, /) -> Floats:
        """Gaussian noise with this mean and standard deviation."""
        from scipy.special import ndtri

        out, upper = self._halves(size)
        return np.asarray(loc + scale * np.where(upper, -1.0, 1.0) * ndtri(out), dtype=np.float64)

    def laplace(self, loc: float, scale: float, size: Shape, /) -> Floats:
        """Laplace noise with this median and scale."""
        out, upper = self._halves(size)
        return loc + scale * np.where(upper, -1.0, 1.0) * np.log(2 * out)

    def gumbel(self, loc: float, scale: float, size: Shape, /) -> Floats:
        """Gumbel noise with this mode and scale: −ln of an exponential draw, which is small in the upper half."""
        out, upper = self._halves(size)
        return loc - scale * np.log(np.where(upper, -np.log1p(-out), -np.log(out)))

    def random(self, size: Shape, /) -> Floats:
        """Uniform draws from [0, 1), multiples of 2⁻⁵³."""
        shape = (size,) if isinstance(size, int) else size
        return (self.words(int(np.prod(shape))) >> np.uint64(11)).reshape(shape).astype(np.float64) * 2.0**-53

    def _halves(self, size: Shape) -> tuple[Floats, NDArray[np.bool_]]:
        """How far out each draw is, as the mass v in (0, 1/2] beyond it in its half, and whether that is the upper."""
        shape = (size,) if isinstance(size, int) else size
        words = self.words(2 * int(np.prod(shape))).reshape(2, *shape)
        rest = (words[1] >> np.uint64(1)).astype(np.float64) + 0.5
        out = (words[0].astype(np.float64) + rest * 2.0**-63) * 2.0**-65
        return out, (words[1] & np.uint64(1)).astype(np.bool_)
