"""Rows that are made: shares and correlations as asked for, found again by other means."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import eval_hermitenorm, factorial
from scipy.stats import norm, spearmanr

from fedkt.data.copula import fit_copula, hermite, known_copula, nearest_correlations, shares_of
from fedkt.data.description import Description, KnownColumn
from fedkt.data.marginals import scores_of, tell

AGE = KnownColumn(name="age", edges=tuple(range(0, 101, 10)))
WARD = KnownColumn(name="ward", categories=("a", "b", "c"), shares=(0.5, 0.3, 0.2), missing=0.1)


def numbers(made, name):
    return np.array([float(each) for each in made.columns[name]])


def test_noisy_counts_become_the_nearest_shares():
    # Hand-made: 6, 5 and -1 of 10 are (.6, .5, -.1); the nearest point of the simplex is (.55, .45, 0).
    assert shares_of(np.array([6.0, 5.0, -1.0]), gaps=True).tolist() == pytest.approx([0.55, 0.45, 0])
    assert shares_of(np.array([1.0, 3.0, 4.0]), gaps=False).tolist() == pytest.approx([0.25, 0.75, 0])
    assert shares_of(np.array([-1.0, -3.0, 9.0]), gaps=False).tolist() == pytest.approx([0.5, 0.5, 0])


def test_hermite_coefficients_are_those_of_the_integral():
    shares, scores = np.array([0.2, 0.5, 0.3]), np.array([-1.0, 0.3, 1.0])
    borders = norm.ppf([0.2, 0.7])
    for degree, found in enumerate(hermite(shares, scores)[:6], start=1):

        def term(u, degree=degree):
            return scores[np.searchsorted(borders, u)] * eval_hermitenorm(degree, u) * norm.pdf(u)

        expected = quad(term, -9, 9, points=borders, limit=300)[0] / np.sqrt(factorial(degree))
        assert found == pytest.approx(expected, abs=1e-6)


def test_rows_of_what_everybody_knows_have_its_shares():
    made = known_copula(Description(label="ill", columns=(AGE, WARD))).draw(20_000, np.random.default_rng(0))
    ward = made.columns["ward"].tolist()
    assert [ward.count(each) / 20_000 for each in ("a", "b", "c", "")] == pytest.approx(
        [0.45, 0.27, 0.18, 0.1], abs=0.01
    )
    assert np.histogram(numbers(made, "age"), 10, (0, 100))[0] / 20_000 == pytest.approx(np.full(10, 0.1), abs=0.01)
    assert abs(np.corrcoef(numbers(made, "age"), [each == "a" for each in ward])[0, 1]) < 0.03


@pytest.mark.parametrize("noise", [0.0, 30.0])
@pytest.mark.parametrize("rho", [-0.7, 0.0, 0.4])
def test_columns_go_together_as_they_did_in_the_rows_that_were_counted(rho, noise):
    rng = np.random.default_rng(3)
    drawn = norm.cdf(rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], 20_000)) * 100
    column = {name: AGE.model_copy(update={"name": name}) for name in ("x", "y")}
    description = Description(label="ill", columns=tuple(column.values()))
    codes = np.clip(drawn // 10, 0, 9).astype(np.int64)
    counts, products = tell(codes, scores_of(description), paired=True)
    noisy = [each + rng.normal(0, noise, each.shape) for each in counts]
    pairs = (noisy, products + rng.normal(0, noise, products.shape))
    made = fit_copula(description, noisy, pairs=pairs, variance=noise**2).draw(20_000, rng)
    found = spearmanr(numbers(made, "x"), numbers(made, "y")).statistic
    # Within a bin values are drawn anywhere, which takes a little off the strongest.
    assert found == pytest.approx(spearmanr(*drawn.T).statistic, abs=0.04)


def test_correlations_that_noise_could_have_made_are_left_out():
    description = Description(label="ill", columns=(AGE, AGE.model_copy(update={"name": "size"})))
    counts = [np.append(np.full(10, 10.0), 0.0)] * 2
    # 100 rows, a variance of about .4 of the scores: a sum of 8 is a correlation of .2, and its noise as large.
    strong = fit_copula(description, counts, pairs=(counts, np.array([8.0])), variance=0.0)
    weak = fit_copula(description, counts, pairs=(counts, np.array([8.0])), variance=64.0)
    assert strong.correlations[0, 1] > 0.15
    assert weak.correlations[0, 1] == 0


def test_correlations_that_no_rows_can_have_become_some_that_rows_can_have():
    found = nearest_correlations(np.array([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]]))
    assert np.linalg.eigvalsh(found).min() > -1e-9
    assert np.diag(found) == pytest.approx([1, 1, 1])


def test_a_column_of_a_single_value_can_be_made():
    only = KnownColumn(name="site", categories=("x",))
    description = Description(label="ill", columns=(only, AGE))
    counts = [np.array([50.0, 0]), np.append(np.full(10, 5.0), 0.0)]
    made = fit_copula(description, counts, pairs=(counts, np.array([0.0]))).draw(50, np.random.default_rng(0))
    assert set(made.columns["site"]) == {"x"}
