"""Signatures: who a bundle or a final model is from. The private Ed25519 key stays with its owner.

The public key is in the plan, or goes to whoever uses the final model.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fedkt.errors import ConfigurationError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SIGNATURE_BYTES = 64
FINAL = b"fedkt final model\n"
"""Stands before the digest of a final model that is signed, so that no signature serves for a bundle as well."""

PRIME = 2**255 - 19
D = -121665 * pow(121666, -1, PRIME) % PRIME
_OF_ORDER_8 = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
SMALL_ORDER = frozenset({0, 1, PRIME - 1, _OF_ORDER_8, PRIME - _OF_ORDER_8})
"""The y of the eight points whose order divides 8: under such a key one signature fits many messages."""


@dataclass(frozen=True)
class SigningKey:
    """A party's private key."""

    private: Ed25519PrivateKey = field(repr=False)

    def sign(self, message: bytes) -> bytes:
        """The 64 bytes that only this key can make for this message."""
        return self.private.sign(message)

    @property
    def public(self) -> str:
        """The public key as base64 text, as it stands in the plan."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        return base64.b64encode(self.private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)).decode()

    def to_pem(self, password: str | None = None) -> bytes:
        """The private key as PEM text, encrypted if a password is given."""
        from cryptography.hazmat.primitives import serialization as formats

        protection: Any = formats.BestAvailableEncryption(password.encode()) if password else formats.NoEncryption()
        return self.private.private_bytes(formats.Encoding.PEM, formats.PrivateFormat.PKCS8, protection)


def new_key() -> SigningKey:
    """A fresh private key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return SigningKey(Ed25519PrivateKey.generate())


def load_key(pem: bytes, *, password: str | None = None, source: str = "the key file") -> SigningKey:
    """The private key in PEM text; `source` is what messages call it."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        private = load_pem_private_key(pem, password.encode() if password else None)
    except TypeError as reason:
        advice = "It is encrypted: give its password." if password is None else "It is not encrypted: give no password."
        raise ConfigurationError(f"The signing key in {source} could not be opened. {advice}") from reason
    except (ValueError, UnsupportedAlgorithm) as reason:
        if is_public(pem):
            private_one = f"{source.removesuffix('.pub')}.key" if source.endswith(".pub") else "the .key file"
            raise ConfigurationError(
                f"{source} holds a public key; only a private one can sign. Pass {private_one}."
            ) from reason
        raise ConfigurationError(
            f"The signing key in {source} could not be read: it is damaged, is not a PEM private key, or the password "
            "is wrong. Make a new one and send its public key to whoever keeps the plan."
        ) from reason
    if not isinstance(private, Ed25519PrivateKey):
        raise ConfigurationError(f"The signing key in {source} is not an Ed25519 key, the only kind used here.")
    return SigningKey(private)


def is_public(data: bytes) -> bool:
    """Whether these bytes are a public key, as `fedkt keys new` writes it or as PEM."""
    if b"PUBLIC KEY-----" in data:
        return True
    try:
        check_public_key(data.decode("ascii").strip())
    except ValueError:
        # Also what is not ASCII; a ConfigurationError is a ValueError.
        return False
    return True


@lru_cache(maxsize=20_000)
def check_public_key(text: str, *, source: str = "the plan") -> bytes:
    """The 32 bytes of a public key written as base64."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as reason:
        raise ConfigurationError(f"The public key {text[:60]!r} in {source} is not base64 text.") from reason
    if len(raw) != 32:
        raise ConfigurationError(f"The public key {text[:60]!r} in {source} has {len(raw)} bytes, not 32.")
    fault = point_fault(raw)
    if fault:
        raise ConfigurationError(
            f"The public key {text[:60]!r} in {source} is refused: {fault}. No honest key is; make another one: "
            "fedkt keys new NAME"
        )
    return raw


def point_fault(raw: bytes) -> str:
    """What is wrong with the point of the curve that 32 bytes stand for; nothing where it may be a key."""
    number = int.from_bytes(raw, "little")
    y = number & (2**255 - 1)
    if y >= PRIME:
        return "it is not written in the one way there is (y is not below the prime)"
    if y in SMALL_ORDER:
        return "it is a point of small order, under which signatures of anybody fit"
    x_squared = (y * y - 1) * pow(D * y * y + 1, -1, PRIME) % PRIME
    if pow(x_squared, (PRIME - 1) // 2, PRIME) != 1:
        return "it is no point of the curve"
    return ""


def verify(public: str, message: bytes, signature: bytes) -> bool:
    """Whether the owner of this public key signed exactly this message."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    key = Ed25519PublicKey.from_public_bytes(check_public_key(public))
    try:
        key.verify(signature, message)
    except InvalidSignature:
        return False
    return True


def sign_final(key: SigningKey, data: bytes) -> bytes:
    """The signature of a final model's bytes, as a line of base64 text."""
    return base64.b64encode(key.sign(FINAL + hashlib.sha256(data).digest())) + b"\n"


def verify_final(public: str, data: bytes, signature: bytes) -> bool:
    """Whether the owner of this public key signed exactly this final model."""
    try:
        raw = base64.b64decode(signature.strip(), validate=True)
    except (binascii.Error, ValueError):
        return False
    return len(raw) == SIGNATURE_BYTES and verify(public, FINAL + hashlib.sha256(data).digest(), raw)
