"""Moments at level L1: no party moves the total by more than Δ, whatever it holds or sends, and the rest is noise."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.stats import norm
from sklearn.ensemble import RandomForestClassifier

from fedkt import FedKTClassifier
from fedkt.algorithms.class_sums import GRAM, MOMENTS, sums_of
from fedkt.algorithms.moments import Moments, noise_for_epsilon
from fedkt.algorithms.party_total import FEWEST, MOST, PartyTotal, shares_in_order, whitened
from fedkt.bundle import Bundle
from fedkt.errors import ConfigurationError, PrivacyError
from fedkt.federation import Party, Server, simulate
from fedkt.models.base import FittedModel
from fedkt.privacy import Ledger
from fedkt.privacy.sums import SENSITIVITY, GaussianSums
from fedkt.report import promise_of, public_notes

SHARES = {"public": (0.7, 0.3), "unknown": None}
QUIET = GaussianSums(0.01)


def draw(count, seed, share=0.3):
    rng = np.random.default_rng(seed)
    y = (rng.random(count) < share).astype(np.int64)
    return rng.normal(size=(count, 4)) + y[:, None] * [1.5, 0.5, 0, -1], y


PUBLIC, _ = draw(400, 1)
TEST, TRUTH = draw(800, 2)


def party(name, X, y, **more):
    return Party(PUBLIC, ("no", "yes"), 1, name=name, X=X, y=y, **more)


def parties(count=60, rows=40):
    return [party(f"party {seed}", *draw(rows, 100 + seed)) for seed in range(count)]


def server(**more):
    return Server(PUBLIC, ("no", "yes"), 9, **more)


def algorithm(shares=None, sigma=2.0, **more):
    return Moments("tree", level="L1", noise=GaussianSums(sigma), class_shares=shares, **more)


class Silence:
    """A source that draws no noise: what is left is what would be protected."""

    def normal(self, loc, scale, size, /):
        return np.zeros(size)


@pytest.fixture
def bare(monkeypatch):
    """Totals without their noise, in units of c."""

    def total(bundles, shares, count=None):
        quiet = PartyTotal(QUIET, count or len(bundles), 2, shares)
        heard = algorithm(shares).hear(server(), bundles)
        monkeypatch.setattr(Server, "noise_rng", lambda self, *path: Silence())
        sums = [each.moments for each in heard.received.sums]
        return quiet.mean(server(), sums, heard.features(PUBLIC)) * quiet.parties / quiet.longest

    return total


def with_sums(name, moments):
    return Bundle(name, ("no", "yes"), (), arrays={MOMENTS: moments})


@pytest.mark.parametrize("shares", SHARES.values(), ids=SHARES)
def test_no_two_parties_are_further_apart_than_the_sensitivity_and_some_are_as_far(shares):
    """By a search uphill over whatever a party could hold, far outside of what rows can have as well."""
    total = PartyTotal(QUIET, 50, 2, shares)

    def apart(numbers):
        one, other = (half.reshape(4, 2) for half in np.split(numbers, 2))
        tables = [total.table(np.vstack([np.exp(np.clip(half[:1], -20, 20)), half[1:] * 50])) for half in (one, other)]
        return np.linalg.norm(tables[0] - tables[1])

    worst = 0.0
    for seed in range(8):
        start = np.random.default_rng(seed).normal(size=16)
        found = minimize(lambda numbers: -apart(numbers), start, method="Nelder-Mead", options={"maxfev": 3000})
        worst = max(worst, -found.fun)
    assert worst <= SENSITIVITY
    assert worst == pytest.approx(SENSITIVITY, rel=1e-3)


@pytest.mark.parametrize("shares", SHARES.values(), ids=SHARES)
def test_replacing_all_that_a_party_has_moves_the_total_by_at_most_the_sensitivity(shares, bare):
    members = parties(12)
    own = algorithm(shares)
    sent = own.party_steps(members, None)
    before = bare(sent, shares)
    X, y = draw(40, 1)
    others = [
        (X[y == 1], y[y == 1]),
        (X[:1], y[:1]),
        (X * 1e9, y),
        (-X, 1 - y),
        (np.full_like(X, np.nan), y),
        draw(3000, 5),
    ]
    for rows in others:
        after = bare([own.party_step(party("party 0", *rows), None), *sent[1:]], shares)
        assert np.linalg.norm(after - before) <= SENSITIVITY + 2 * QUIET.step * np.sqrt(before.size)


def test_what_a_party_sends_is_of_one_shape_whatever_it_holds():
    X, y = draw(3000, 5)
    gaps = np.full((2, 4), np.nan)
    shapes = set()
    for rows in ((X, y), (X[:1], y[:1]), (X[y == 1], y[y == 1]), (gaps, y[:2])):
        sent = algorithm().party_step(party("north", *rows), None)
        shapes.add((sent.models, sent.counts, tuple((k, v.shape, v.dtype.str) for k, v in sent.arrays.items())))
    assert shapes == {((), None, ((MOMENTS, (5, 2), "<f8"),))}


HOSTILE = {
    "another shape": np.ones((3, 2)),
    "no numbers": np.full((5, 2), np.nan),
    "far too large": np.full((5, 2), 1e300),
    "negative counts": np.vstack([[-5.0, 5.0], np.ones((4, 2))]),
    "half a row": np.vstack([[5.5, 5.0], np.ones((4, 2))]),
    "too long": np.vstack([[5.0, 5.0], np.full((4, 2), 1e6)]),
    "no rows at all": np.zeros((5, 2)),
    "words": np.full((5, 2), "a"),
}


@pytest.mark.parametrize("shares", SHARES.values(), ids=SHARES)
@pytest.mark.parametrize("moments", HOSTILE.values(), ids=HOSTILE)
def test_sums_that_no_rows_have_count_as_nothing_and_are_no_failure(moments, shares, bare):
    sent = algorithm(shares).party_steps(parties(6), None)
    with_liar = bare([*sent, with_sums("liar", moments)], shares)
    without = bare(sent, shares, count=7)
    np.testing.assert_array_equal(with_liar, without)
    extra = replace(sent[0], sender="liar", arrays={**sent[0].arrays, GRAM: np.zeros(3)})
    np.testing.assert_array_equal(bare([*sent, extra], shares), without)


def test_a_party_of_one_class_is_nothing_where_the_shares_are_public(bare):
    sent = algorithm(SHARES["public"]).party_steps(parties(6), None)
    X, y = draw(50, 3)
    alone = algorithm(SHARES["public"]).party_step(party("alone", X[y == 1], y[y == 1]), None)
    np.testing.assert_array_equal(bare([*sent, alone], (0.7, 0.3)), bare(sent, (0.7, 0.3), count=7))


@pytest.mark.parametrize("shares", SHARES.values(), ids=SHARES)
def test_a_table_is_what_its_words_say(shares):
    X, y = draw(300, 4)
    features = algorithm(shares).feature_map(server())
    moments = whitened(sums_of(features, X, y, 2, gram=False).moments, features(PUBLIC), 4)
    phi = features(X) / np.r_[1, features(PUBLIC)[:, 1:].std(axis=0)]
    if shares is not None:
        away = phi[y == 1, 1:].mean(axis=0) - phi[y == 0, 1:].mean(axis=0)
        expected = np.column_stack([-away / 2, away / 2])
        longest = 0.6 * np.sqrt(0.5 * (1 / 0.7 + 1 / 0.3))
    else:
        signed = ((2 * y - 1)[:, None] * phi).mean(axis=0)
        expected = np.column_stack([-signed / 2, signed / 2])
        longest = 0.6 * np.sqrt(0.5)
    length = np.linalg.norm(expected)
    total = PartyTotal(QUIET, 50, 2, shares)
    np.testing.assert_allclose(total.table(moments), expected / max(length, longest), atol=1e-9)


def test_the_noise_on_the_mean_is_as_large_as_it_is_said_to_be():
    """Each number's noise is c·σ over the parties; what does not add up to 0 over the classes is dropped of it."""
    total = PartyTotal(GaussianSums(5.0), 50, 2, (0.7, 0.3))
    features = algorithm((0.7, 0.3)).feature_map(server())
    nobody, public = [np.zeros((features.width, 2))] * 50, features(PUBLIC)
    numbers = np.array([total.mean(server(noise_seed=seed), nobody, public) for seed in range(600)])
    assert numbers.shape[1:] == (4, 2)
    np.testing.assert_allclose(numbers.sum(axis=2), 0, atol=1e-12)
    expected = 0.6 * np.sqrt(0.5 * (1 / 0.7 + 1 / 0.3)) * 5.0 / 50 * np.sqrt(0.5)
    assert numbers.std() == pytest.approx(expected, rel=0.04)
    assert total.deviation == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0])
def test_the_price_of_a_run_is_that_of_one_gaussian_vector(epsilon):
    """Balle and Wang 2018, Theorem 8, solved here by another library."""

    def excess(mu):
        return norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu) - 1e-5

    mu = brentq(excess, 1e-3, 10)
    own = Moments("tree", level="L1", noise=GaussianSums(2 / mu))
    price = own.price(public_rows=400, classes=2, parties=60, delta=1e-5)
    assert price.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert (price.release.unit, price.release.voters, price.release.queries) == ("party", 60, 1)
    assert noise_for_epsilon(epsilon=epsilon, delta=1e-5, classes=2).sigma == pytest.approx(2 / mu, rel=2e-4)


@pytest.mark.parametrize("shares", SHARES.values(), ids=SHARES)
def test_it_learns_from_many_parties_and_says_how_sure_it_is(shares):
    outcome = simulate(algorithm(shares, sigma=3.0), parties(), server(noise_seed=4))
    (model,) = outcome.final.models
    assert np.mean(model.predict(TEST) == TRUTH) > 0.8
    probabilities = model.predict_proba(TEST, 2)
    loss = -np.log(probabilities[np.arange(len(TRUTH)), TRUTH]).mean()
    assert loss < 0.55 < -np.log(0.7) * 0.7 - np.log(0.3) * 0.3
    assert abs(probabilities[:, 1].mean() - 0.3) < 0.12


def test_with_public_class_shares_labels_have_about_these_shares_whatever_parties_say():
    outcome = simulate(algorithm((0.9, 0.1), sigma=3.0), parties(), server(noise_seed=4))
    # To the power of 1.1: 0.082.
    assert np.mean(outcome.final.models[0].predict(PUBLIC)) == pytest.approx(0.082, abs=0.01)


def test_one_release_leaves_and_the_server_writes_it_down():
    judge = server(noise_seed=4)
    simulate(algorithm(), parties(20), judge)
    (release,) = judge.ledger.releases
    assert (release.noise, release.unit, release.voters, release.adjacency) == (
        GaussianSums(2.0),
        "party",
        20,
        "replace-one",
    )


def test_beyond_the_budget_nothing_is_added_up():
    with pytest.raises(PrivacyError, match="does not cover"):
        simulate(algorithm(), parties(20), server(ledger=Ledger(owner="server", budget=0.5)))


def test_what_is_said_of_a_run_hangs_on_no_party_beyond_the_noise():
    """Parties whose rows differ in everything leave the same words, and figures of votes there are none."""
    said = []
    for rows in ((40, 0.3), (3, 1.0)):
        judge = server(noise_seed=4)
        members = [party(f"party {seed}", *draw(rows[0], 100 + seed, rows[1])) for seed in range(20)]
        outcome = simulate(algorithm(sigma=1e4), members, judge)
        assert outcome.server.vote.figures() == {}
        said.append((public_notes(outcome, "L1"), outcome.server.vote.silent))
    assert said[0] == said[1]


def test_of_a_party_that_sends_nonsense_its_server_hears_and_no_report_does():
    own, judge = algorithm(), server(noise_seed=4)
    sent = own.party_steps(parties(20), None)
    own.server_step(judge, [*sent[1:], with_sums("party 0", np.ones((2, 2)))])
    assert judge.diary.vote.silent["party 0"].startswith("Party 'party 0' does not count, because")
    assert judge.diary.notes == []


def test_the_promise_of_a_run_is_in_words():
    noise = noise_for_epsilon(epsilon=1.0, delta=1e-5, classes=2)
    own = Moments("tree", level="L1", noise=noise)
    promise, notes, alarms = promise_of(own, parties(60), level="L1", delta=1e-5, reproducible_noise=True)
    assert 0.999 < promise.epsilon <= 1.0
    assert "the total of 60 parties' class means with gaussian-sums noise" in str(promise)
    assert "the server, which sees every party's sums without noise" in str(promise)
    assert (notes, alarms) == ((), ())
    _, _, alarms = promise_of(own, parties(20), level="L1", delta=1e-5, reproducible_noise=True)
    assert alarms[0].startswith("With 20 parties the noise that gives epsilon 1.000 hides most")


@pytest.mark.parametrize(
    ("sigma", "count", "classes", "expected"), [(7.46, 50, 2, FEWEST), (3.99, 50, 2, 17), (2.16, 50, 2, MOST)]
)
def test_how_many_directions_are_looked_at_follows_from_public_figures(sigma, count, classes, expected):
    assert PartyTotal(GaussianSums(sigma), count, classes, None).directions(100) == expected
    assert PartyTotal(GaussianSums(sigma), count, classes, None).directions(4) == 4


def test_three_classes_are_told_apart_one_against_the_others():
    rng = np.random.default_rng(0)
    centres = np.array([[0, 0, 0], [2.5, 0, 0], [0, 2.5, 1]])

    def rows(count):
        y = rng.integers(0, 3, count)
        return centres[y] + rng.normal(size=(count, 3)), y

    public, _ = rows(300)
    X, y = rows(600)
    for shares in (None, (1 / 3, 1 / 3, 1 / 3)):
        members = []
        for number in range(120):
            own, labels = rows(30)
            kept = labels != number % 3
            members.append(Party(public, (0, 1, 2), 1, name=f"{number:03d}", X=own[kept], y=labels[kept]))
        outcome = simulate(algorithm(shares, sigma=3.0), members, Server(public, (0, 1, 2), 9, noise_seed=3))
        assert np.mean(outcome.final.models[0].predict(X) == y) > 0.8


def test_another_family_can_learn_what_the_head_says():
    outcome = simulate(algorithm((0.7, 0.3), final="forest"), parties(), server(noise_seed=4))
    assert isinstance(outcome.final.models[0].estimator, RandomForestClassifier)
    assert np.mean(outcome.final.models[0].predict(TEST) == TRUTH) > 0.75


def test_a_classifier_is_told_class_shares_by_label():
    X, y = draw(2400, 7)
    model = FedKTClassifier(
        voting="moments",
        level="L1",
        noise=GaussianSums(3.0),
        class_labels=["no", "yes"],
        class_shares={"yes": 0.3},
        noise_seed=1,
        random_state=0,
    ).fit(X, np.array(["no", "yes"])[y], parties=np.arange(2400) % 60, public=PUBLIC)
    assert np.mean(model.predict(TEST) == np.array(["no", "yes"])[TRUTH]) > 0.8
    assert model.report_.votes == {}
    assert isinstance(model.final_model_, FittedModel)
    with pytest.raises(ConfigurationError, match="only moments have a use"):
        FedKTClassifier(class_shares={"yes": 0.3}).fit(X, y)


def test_one_class_is_refused_before_anything_is_released():
    X, y = draw(50, 1)
    only = [Party(PUBLIC, ("no",), 1, name=f"{number}", X=X, y=y * 0) for number in range(3)]
    judge = Server(PUBLIC, ("no",), 9, noise_seed=1)
    with pytest.raises(ConfigurationError, match="two classes or more"):
        simulate(algorithm(), only, judge)
    assert judge.ledger.releases == []


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ({"perhaps": 0.3}, "'perhaps' is none"),
        ({}, "'no', 'yes' have none"),
        ({"no": 0.5, "yes": 0.6}, "sum to 1"),
        ({"yes": 1.2}, "a number above 0"),
    ],
)
def test_class_shares_that_are_none_are_refused_in_words(shares, words):
    with pytest.raises(ConfigurationError, match=words):
        shares_in_order(shares, ["no", "yes"])


def test_a_class_that_is_left_out_has_the_rest():
    assert shares_in_order({"yes": 0.25}, ["no", "yes"]) == (0.75, 0.25)
