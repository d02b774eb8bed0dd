"""Signatures: made by one key, checked by its public half."""

import pytest

from fedkt.errors import ConfigurationError
from fedkt.signing import check_public, load_key, new_key, verify


def test_a_signature_fits_its_message_and_its_key_only():
    key, other = new_key(), new_key()
    signature = key.sign(b"manifest")
    assert len(signature) == 64
    assert verify(key.public, b"manifest", signature)
    assert not verify(key.public, b"manifest!", signature)
    assert not verify(other.public, b"manifest", signature)


def test_the_signature_is_the_one_of_rfc_8032():
    # Test 2 of section 7.1: secret key, public key, the message 0x72 and its signature.
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from fedkt.signing import SigningKey

    secret = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
    key = SigningKey(Ed25519PrivateKey.from_private_bytes(secret))
    assert check_public(key.public).hex() == "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
    assert key.sign(b"\x72").hex() == (
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )


@pytest.mark.parametrize("password", [None, "correct horse"])
def test_a_key_survives_being_written_and_read(password):
    key = new_key()
    assert load_key(key.to_pem(password), password=password).public == key.public


def test_a_private_key_does_not_show_in_its_repr():
    assert "private" not in repr(new_key()).lower()


@pytest.mark.parametrize(
    ("pem", "password", "word"),
    [
        (b"not a key", None, "could not be read"),
        (new_key().to_pem("secret"), None, "encrypted"),
        (new_key().to_pem("secret"), "wrong", "password"),
        (new_key().to_pem(), "unneeded", "not encrypted"),
    ],
)
def test_an_unreadable_key_is_refused_in_words(pem, password, word):
    with pytest.raises(ConfigurationError, match=word) as caught:
        load_key(pem, password=password, source="north.pem")
    assert "north.pem" in str(caught.value)


def test_a_key_of_another_kind_is_refused():
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    pem = generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with pytest.raises(ConfigurationError, match="Ed25519"):
        load_key(pem)


@pytest.mark.parametrize("text", ["***", "AAAA", ""])
def test_a_public_key_that_is_none_is_refused(text):
    with pytest.raises(ConfigurationError, match="public key"):
        check_public(text)
