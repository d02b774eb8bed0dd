"""The cryptographic stream that noise is drawn from: its bits, its distributions and their tails."""

import math

import numpy as np
import pytest
from scipy import stats

from fedkt.federation import Server
from fedkt.privacy import Gaussian, Gumbel, Laplace
from fedkt.privacy.stream import Stream, new_secret

LAWS = {"normal": stats.norm, "laplace": stats.laplace, "gumbel": stats.gumbel_r}
DRAWS = 200_000


class Given(Stream):
    """A stream of chosen words."""

    def __init__(self, *words):
        self.given = np.array(words, dtype=np.uint64)

    def words(self, count):
        assert count == len(self.given)
        return self.given


def test_the_bits_are_those_of_aes_256_in_counter_mode():
    # FIPS 197, C.3 says that it is AES-256; counter mode is its blocks of 0, 1, 2, …
    key = bytes(range(32))
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    block = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    assert block.update(bytes.fromhex("00112233445566778899aabbccddeeff")).hex() == "8ea2b7ca516745bfeafc49904b496089"
    expected = b"".join(block.update(number.to_bytes(16, "big")) for number in range(3))
    stream = Stream(key)
    drawn = np.concatenate([stream.words(1), stream.words(5)])
    assert drawn.astype("<u8").tobytes() == expected


@pytest.mark.parametrize("law", LAWS)
def test_a_distribution_is_what_it_is_called(law):
    drawn = getattr(Stream.of(1, 2), law)(3.0, 2.5, (DRAWS // 4, 4))
    assert drawn.shape == (DRAWS // 4, 4)
    expected = LAWS[law](3.0, 2.5)
    # A fixed key: this neither fails by chance nor passes by it.
    assert stats.kstest(drawn.ravel(), expected.cdf).pvalue > 0.01
    for part in (1e-3, 1e-2, 0.1):
        for beyond in (drawn <= expected.ppf(part), drawn >= expected.isf(part)):
            assert abs(beyond.mean() - part) < 4 * math.sqrt(part / DRAWS)
    assert abs(np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1]) < 4 / math.sqrt(DRAWS / 4)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("bits", [2, 60, 100, 126])
def test_the_tails_reach_as_far_as_128_bits_and_are_as_exact_there(law, bits):
    # The mass 2^-bits, a little more because a draw stands in the middle of its cell; upper half and lower half.
    first, second = (1 << 65 - bits, 0) if bits < 65 else (0, 1 << 129 - bits)
    mass = 2.0**-bits + 2.0**-129
    low = getattr(Given(first, second), law)(0.0, 1.0, 1)[0]
    high = getattr(Given(first, second | 1), law)(0.0, 1.0, 1)[0]
    assert low == pytest.approx(LAWS[law].ppf(mass), rel=1e-12)
    assert high == pytest.approx(LAWS[law].isf(mass), rel=1e-12)
    assert low < high


@pytest.mark.parametrize("law", LAWS)
def test_no_draw_is_infinite(law):
    top = 2**64 - 1
    for words in ((0, 0), (0, 1), (top, top), (top, top - 1), (top, 0)):
        assert np.isfinite(getattr(Given(*words), law)(0.0, 1.0, 1)).all()


def test_uniform_draws_stay_below_one():
    assert Given(2**64 - 1, 0).random(2).tolist() == [1 - 2.0**-53, 0.0]
    assert stats.kstest(Stream.of(3).random(DRAWS), "uniform").pvalue > 0.01


def test_a_secret_gives_the_same_stream_again_and_every_path_another():
    paths = [(), (0,), (1,), (0, 0), (10,), (1, 0), (100,)]
    streams = {(secret, *path): Stream.of(secret, *path).words(4).tolist() for secret in (7, 70, 71) for path in paths}
    assert streams[7, 1, 0] == Stream.of(7, 1, 0).words(4).tolist()
    assert len({tuple(each) for each in streams.values()}) == len(streams)
    assert Stream.fresh().words(4).tolist() != Stream.fresh().words(4).tolist()
    assert new_secret() != new_secret()
    assert new_secret() < 2**256


def test_sides_draw_their_noise_from_such_a_stream():
    rows = np.zeros((2, 1))
    side = Server(rows, ("a", "b"), 5, noise_seed=9)
    assert side.noise_rng(3).words(2).tolist() == Stream.of(9, 3).words(2).tolist()
    fresh = Server(rows, ("a", "b"), 5)
    assert fresh.noise_rng(3).words(2).tolist() != fresh.noise_rng(3).words(2).tolist()


@pytest.mark.parametrize("noise", [Laplace(0.3), Gaussian(4.0), Gumbel(0.3)], ids=lambda noise: noise.name)
def test_labels_drawn_from_the_stream_win_as_often_as_they_should(noise):
    votes = np.broadcast_to([7.0, 4.0, 0.0], (DRAWS, 3))
    shares = np.bincount(noise.labels(votes, Stream.of(4)), minlength=3) / DRAWS
    assert np.abs(shares - noise.class_probabilities([7, 4, 0])).max() < 5 * math.sqrt(0.25 / DRAWS)
