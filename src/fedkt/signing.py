"""Signatures: who a bundle is from. The private Ed25519 key stays with its party, the public one is in the plan."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fedkt.errors import ConfigurationError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SIGNATURE_BYTES = 64


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
        raise ConfigurationError(
            f"The signing key in {source} could not be read: it is damaged, is not a PEM private key, or the password "
            "is wrong. Make a new one and send its public key to whoever keeps the plan."
        ) from reason
    if not isinstance(private, Ed25519PrivateKey):
        raise ConfigurationError(f"The signing key in {source} is not an Ed25519 key, the only kind used here.")
    return SigningKey(private)


def check_public(text: str, *, source: str = "the plan") -> bytes:
    """The 32 bytes of a public key written as base64."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as reason:
        raise ConfigurationError(f"The public key {text[:60]!r} in {source} is not base64 text.") from reason
    if len(raw) != 32:
        raise ConfigurationError(f"The public key {text[:60]!r} in {source} has {len(raw)} bytes, not 32.")
    return raw


def verify(public: str, message: bytes, signature: bytes) -> bool:
    """Whether the owner of this public key signed exactly this message."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    key = Ed25519PublicKey.from_public_bytes(check_public(public))
    try:
        key.verify(signature, message)
    except InvalidSignature:
        return False
    return True
