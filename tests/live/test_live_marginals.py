"""What a party tells of its columns: what it costs, what is in the file, and which files are refused."""

import itertools
import math
import tomllib

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from fedkt.data.columns import Table, texts
from fedkt.data.description import description_from
from fedkt.data.marginals import layout_of, scores_of
from fedkt.errors import ConfigurationError, DataError, PrivacyError
from fedkt.live.marginals import (
    check_told,
    pooled_copula,
    read_marginals,
    tell_exactly,
    tell_with_noise,
    write_marginals,
)
from fedkt.privacy.entries import Spending
from fedkt.privacy.ledger import total_of
from fedkt.privacy.ledger_file import LedgerFile
from fedkt.privacy.price import sums_release
from fedkt.privacy.stream import Stream
from fedkt.privacy.sums import GaussianSums

WARDS = [f"w{number}" for number in range(40)]
KNOWN = description_from(
    {
        "label": "ill",
        "columns": [
            {"name": "age", "low": 0, "high": 100, "bins": 50},
            {"name": "ward", "categories": WARDS, "missing": 0.1},
            *({"name": f"test {number}", "low": -3, "high": 3} for number in range(6)),
        ],
    },
    "schema.toml",
)


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    columns = {"age": rng.integers(0, 100, n).astype(str), "ward": rng.choice(WARDS, n), "ill": ["yes"] * n}
    columns |= {f"test {number}": rng.normal(size=n).astype(str) for number in range(6)}
    return Table({name: texts(values) for name, values in columns.items()}, "north.csv")


def noisy(tmp_path, table=None, name="north", **more):
    more = {"epsilon": 1.0, "delta": 1e-5, **more}
    path = tmp_path / f"{name}.ledger"
    return tell_with_noise(rows() if table is None else table, KNOWN, name, ledger_path=path, **more)


def written(tmp_path, told, name="north.toml"):
    (tmp_path / name).write_bytes(write_marginals(told))
    return tmp_path / name


@pytest.fixture
def known_noise(monkeypatch):
    """Noise that is the same whenever a test runs, and another for every release."""
    secrets = itertools.count()
    monkeypatch.setattr("fedkt.live.marginals.Stream.fresh", lambda: Stream.of(next(secrets)))


def changed(path, old, new):
    text = path.read_text()
    assert text.count(old) >= 1
    path.write_text(text.replace(old, new, 1))
    return path


def test_the_noise_is_that_of_the_analytic_gaussian_mechanism_at_a_sensitivity_of_two(tmp_path):
    """Balle and Wang 2018, Theorem 8, solved here by another library."""

    def excess(mu):
        return norm.cdf(mu / 2 - 1 / mu) - np.e * norm.cdf(-mu / 2 - 1 / mu) - 1e-5

    promise = noisy(tmp_path).marginals.promise
    assert promise.sigma == pytest.approx(2 / brentq(excess, 1e-3, 10), rel=3e-4)
    assert promise.sigma >= 2 / brentq(excess, 1e-3, 10) * (1 - 1e-9)
    assert 0.999 < promise.epsilon <= 1
    assert promise.sigma == float(f"{promise.sigma:.5g}")
    assert (promise.unit, promise.adjacency, promise.delta) == ("record", "replace-one", 1e-5)


def test_every_number_that_leaves_has_noise_of_that_size(tmp_path, known_noise):
    told, table = noisy(tmp_path).marginals, rows()
    layout = layout_of(KNOWN, paired=True)
    true = layout.total(KNOWN.codes(table), scores_of(KNOWN))
    scaled = np.concatenate(
        [*(np.array(own) * layout.bin_weight for own in told.counts), np.array(told.products) * layout.product_weight]
    )
    away = (scaled - true) / told.promise.sigma
    assert len(away) == 51 + 41 + 6 * 11 + 28
    assert away.std() == pytest.approx(1, abs=0.15)
    assert np.abs(away).min() > 0
    steps = scaled / GaussianSums(told.promise.sigma).step
    assert np.abs(steps - np.rint(steps)).max() < 1e-6


def test_two_releases_about_the_same_rows_are_both_in_the_ledger_and_cost_more_together(tmp_path):
    first, second = noisy(tmp_path), noisy(tmp_path)
    entries = LedgerFile.open(tmp_path / "north.ledger").entries
    assert [(each.who, each.release.purpose, each.release.unit) for each in entries] == [
        ("north", "marginals", "record")
    ] * 2
    assert first.total_epsilon == pytest.approx(first.marginals.promise.epsilon)
    assert math.sqrt(2) < second.total_epsilon < 2
    assert first.marginals.counts != second.marginals.counts


def test_marginals_and_a_run_of_moments_afterwards_cost_what_two_gaussian_releases_cost(tmp_path):
    """μ² adds up; that the second was chosen by the first costs half of δ (the filter of the ledger)."""
    sigma = noisy(tmp_path).marginals.promise.sigma
    entries = list(LedgerFile.open(tmp_path / "north.ledger").entries)
    run = Spending(who="north", release=sums_release(GaussianSums(sigma), 2), plan="ab" * 32)
    mu = math.sqrt(2) * 2 / sigma

    def excess(epsilon):
        return norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu) - 0.5e-5

    assert total_of([*entries, run], 1e-5) == pytest.approx(brentq(excess, 0.1, 10), rel=1e-6)


def test_nothing_is_counted_that_the_partys_own_limit_does_not_cover(tmp_path, monkeypatch):
    monkeypatch.setattr("fedkt.data.marginals.Layout.total", lambda *_: pytest.fail("rows were counted"))
    with pytest.raises(PrivacyError, match="does not cover"):
        noisy(tmp_path, most_epsilon=0.5)
    assert LedgerFile.open(tmp_path / "north.ledger").entries == ()


def test_what_leaves_has_the_same_form_whatever_is_in_the_rows(tmp_path):
    """Values that are unknown, missing or beyond the range refuse nothing: that would tell of a single record."""
    odd = rows(3)
    odd.columns["ward"][:] = ["stranger", "", "w3"]
    odd.columns["age"][:] = ["-50", "", "1e300"]
    for table in (rows(2000), odd, rows(3)):
        told = noisy(tmp_path, table).marginals
        assert [len(own) for own in told.counts] == [51, 41, *[11] * 6]
        assert len(told.products) == 28


def test_a_file_with_noise_says_nothing_that_was_not_released(tmp_path):
    values = tomllib.loads(written(tmp_path, noisy(tmp_path).marginals).read_text())
    assert set(values) == {"format", "party", "promise", "counts", "products", "description"}
    assert values["description"]["columns"][1]["missing"] == 0.05


def test_exact_counts_leave_out_small_cells_and_say_that_they_protect_nobody(tmp_path):
    table = rows(400)
    table.columns["age"][:] = ["5"] * 9 + ["15"] * 381 + ["25"] * 10
    told = tell_exactly(table, KNOWN, "north", paired=True).marginals
    assert [told.counts[0][place] for place in (2, 7, 12)] == [0, 381, 10]
    assert "protect nobody" in told.in_words
    assert told.in_words in written(tmp_path, told).read_text()
    assert len(told.products) == 28
    assert [len(tell_exactly(rows(n), KNOWN, "north", paired=True).marginals.products) for n in (99, 100)] == [0, 28]


def test_a_file_is_read_as_it_was_written(tmp_path):
    for told in (noisy(tmp_path).marginals, tell_exactly(rows(), KNOWN, "north", paired=False).marginals):
        assert read_marginals(written(tmp_path, told)) == told


def test_a_file_that_promises_more_than_its_noise_keeps_is_refused(tmp_path):
    path = written(tmp_path, noisy(tmp_path).marginals)
    epsilon = tomllib.loads(path.read_text())["promise"]["epsilon"]
    changed(path, f"epsilon = {epsilon}", "epsilon = 0.5")
    with pytest.raises(DataError, match=r"understates epsilon: it says 0\.5, its noise costs 0\.99"):
        read_marginals(path)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("counts = [[", "counts = [[nan, ", "finite number"),
        ("counts = [[", "counts = [[1e300, ", "less than or equal"),
        ("counts = [[", "counts = [[1.0, ", "not one count for each bin"),
        ("products = [", "products = [1.0, ", "29 products of columns, but 28 pairs"),
        ("format = 1", "format = 2", "format: Input should be 1"),
        ('party = "north"', 'party = "../north"', "party: "),
        ('unit = "record"', 'unit = "row"', "unit: "),
        ("delta = 1e-05", "delta = 2.0", "delta: "),
        ("format = 1", "format = 1\nextra = 2", "extra: "),
        ("format = 1", "format =", "is not TOML"),
        ("format = 1", "a.b.c.d.e.f.g.h.i.j = 1", "is in no file of marginals"),
    ],
)
def test_a_file_that_nobody_wrote_is_refused_in_words(tmp_path, old, new, words):
    path = changed(written(tmp_path, noisy(tmp_path).marginals), old, new)
    with pytest.raises(DataError, match=words) as caught:
        read_marginals(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("value", [-1e15, 0.0, 1e15])
def test_rows_can_be_made_of_whatever_numbers_a_file_may_have(tmp_path, value):
    told = noisy(tmp_path).marginals
    odd = told.model_copy(
        update={
            "counts": tuple(tuple(value for _ in own) for own in told.counts),
            "products": tuple(-value for _ in told.products),
        }
    )
    copula = pooled_copula([(tmp_path / "a", read_marginals(written(tmp_path, odd)))])
    made = copula.draw(50, np.random.default_rng(0))
    assert all(float(each) >= 0 for each in made.columns["age"])


def test_exact_counts_below_zero_are_refused(tmp_path):
    path = changed(written(tmp_path, tell_exactly(rows(), KNOWN, "north", paired=True).marginals), "[[", "[[-1.0, ")
    text = path.read_text()
    path.write_text(text.replace(", 0.0], [", "], [", 1))
    with pytest.raises(DataError, match="not below 0"):
        read_marginals(path)


def test_a_missing_and_a_far_too_large_file_are_refused(tmp_path, monkeypatch):
    with pytest.raises(DataError, match="is not a file"):
        read_marginals(tmp_path / "nowhere.toml")
    monkeypatch.setattr("fedkt.live.public_files.MAX_PLAN_BYTES", 100)
    with pytest.raises(DataError, match="larger than 100 bytes, which no file of marginals is"):
        read_marginals(written(tmp_path, noisy(tmp_path).marginals))


def test_parties_count_by_their_rows_and_each_once(tmp_path):
    parts = []
    for name, ward, n in (("north", "w1", 300), ("south", "w2", 100)):
        table = rows(n)
        table.columns["ward"][:] = [ward] * n
        told = tell_exactly(table, KNOWN, name, paired=True).marginals
        parts.append((tmp_path / name, told))
    shares = pooled_copula(parts).shares[1]
    assert (shares[1], shares[2]) == (0.75, 0.25)
    with pytest.raises(DataError, match="both from 'north'"):
        pooled_copula([parts[0], parts[0]])


def test_rows_are_made_with_word_of_how_much_noise_is_on_the_products(tmp_path, monkeypatch):
    parts = [(tmp_path / name, noisy(tmp_path, name=name).marginals) for name in ("north", "south")]
    parts.append((tmp_path / "exact", tell_exactly(rows(), KNOWN, "west", paired=True).marginals))
    heard = {}
    monkeypatch.setattr("fedkt.live.marginals.fit_copula", lambda *_, **words: heard.update(words))
    pooled_copula(parts)
    sigma = parts[0][1].promise.sigma
    # Eight columns: 1/β² = 2·4·4. Two of the three added noise, and rounded to steps of 2⁻⁶ at this σ.
    assert 4 <= sigma < 8
    assert heard["variance"] == pytest.approx(2 * 32 * (sigma**2 + 2**-12 / 12))


def test_a_single_column_is_told_alone(tmp_path):
    one = KNOWN.model_copy(update={"columns": KNOWN.columns[:1]})
    path = tmp_path / "north.ledger"
    told = tell_with_noise(rows(), one, "north", epsilon=1.0, delta=1e-5, ledger_path=path).marginals
    assert (len(told.counts), told.products) == (1, ())
    assert pooled_copula([(path, told)]).correlations is None


def test_other_bins_are_refused_and_other_shares_are_not(tmp_path):
    one = tell_exactly(rows(), KNOWN, "north", paired=True).marginals
    age = KNOWN.columns[0].model_copy(update={"edges": tuple(range(51))})
    other = KNOWN.model_copy(update={"columns": (age, *KNOWN.columns[1:])})
    two = tell_exactly(rows(), other, "south", paired=True).marginals
    with pytest.raises(DataError, match=r"south\.toml has other columns or bins than .*north\.toml"):
        pooled_copula([(tmp_path / "north.toml", one), (tmp_path / "south.toml", two)])


def test_the_label_and_names_that_no_party_has_are_not_told():
    with pytest.raises(ConfigurationError, match="The schema tells 'age', which is the label"):
        check_told(KNOWN, "north", "age")
    with pytest.raises(ConfigurationError, match=r"--name \.\./north"):
        check_told(KNOWN, "../north", None)
