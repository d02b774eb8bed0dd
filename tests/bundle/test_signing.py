"""Signatures: made by one key, checked by its public half."""

import base64

import pytest

from fedkt.bundle.signing import check_public_key, load_key, new_key, sign_final, verify, verify_final
from fedkt.errors import ConfigurationError


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

    from fedkt.bundle.signing import SigningKey

    secret = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
    key = SigningKey(Ed25519PrivateKey.from_private_bytes(secret))
    assert check_public_key(key.public).hex() == "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
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
        check_public_key(text)


PRIME = 2**255 - 19
D = (-121665 * pow(121666, -1, PRIME)) % PRIME


def added(one, two):
    """The sum of two points, by the formula of RFC 8032 in plain coordinates."""
    (x1, y1), (x2, y2) = one, two
    product = D * x1 * x2 * y1 * y2 % PRIME
    x = (x1 * y2 + x2 * y1) * pow(1 + product, -1, PRIME) % PRIME
    return x, (y1 * y2 + x1 * x2) * pow(1 - product, -1, PRIME) % PRIME


def eight_points():
    """All points whose order divides 8: what is left of any point once the large prime order is taken out."""
    order, found, y = 2**252 + 27742317777372353535851937790883648493, {(0, 1)}, 2
    while len(found) < 8:
        y += 1
        square = (y * y - 1) * pow(D * y * y + 1, -1, PRIME) % PRIME
        x = pow(square, (PRIME + 3) // 8, PRIME)
        x = x if (x * x - square) % PRIME == 0 else x * pow(2, (PRIME - 1) // 4, PRIME) % PRIME
        if (x * x - square) % PRIME:
            continue
        point, power, left = (0, 1), (x, y), order
        while left:
            point = added(point, power) if left & 1 else point
            power, left = added(power, power), left >> 1
        multiple = point
        while multiple not in found:
            found.add(multiple)
            multiple = added(multiple, point)
    return found


def as_text(y, sign):
    return base64.b64encode((y | sign << 255).to_bytes(32, "little")).decode()


def test_points_of_small_order_are_no_keys_however_they_are_written():
    points = eight_points()
    assert len(points) == 8
    small = {y for _, y in points}
    # Nineteen numbers below 2^255 are not below the prime: they stand for 0 … 18 a second time.
    written = {(y, sign) for y in small for sign in (0, 1)} | {(PRIME + y, s) for y in range(19) for s in (0, 1)}
    for y, sign in written:
        with pytest.raises(ConfigurationError, match=r"small order|the one way there is"):
            check_public_key(as_text(y, sign))
        with pytest.raises(ConfigurationError, match="public key"):
            verify(as_text(y, sign), b"any message", bytes(64))


def test_a_signature_that_fits_every_message_under_a_key_of_small_order_is_not_believed():
    # Under the neutral point R = neutral and S = 0 satisfy S·B = R + h·A whatever was said.
    neutral, signature = as_text(1, 0), (1).to_bytes(32, "little") + bytes(32)
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    Ed25519PublicKey.from_public_bytes(base64.b64decode(neutral)).verify(signature, b"the library takes this")
    with pytest.raises(ConfigurationError, match="small order"):
        verify(neutral, b"the library takes this", signature)


def test_bytes_that_are_no_point_are_no_key_and_honest_keys_are():
    # y = 2 gives x² = 3 / (4d + 1), which is no square.
    with pytest.raises(ConfigurationError, match="no point of the curve"):
        check_public_key(as_text(2, 0))
    for _ in range(200):
        check_public_key(new_key().public)


def test_a_final_models_signature_fits_its_bytes_and_key_and_serves_for_nothing_else():
    key = new_key()
    signature = sign_final(key, b"model")
    assert verify_final(key.public, b"model", signature)
    assert not verify_final(key.public, b"model!", signature)
    assert not verify_final(new_key().public, b"model", signature)
    assert not verify(key.public, b"model", base64.b64decode(signature))
    for damaged in (b"", b"****", signature[:-9], base64.b64encode(key.sign(b"model"))):
        assert not verify_final(key.public, b"model", damaged)
