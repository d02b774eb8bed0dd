"""FedKT by moments: exact at level L0, one noisy vector at level L2, and distrustful of what it is sent."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from fedkt import FedKTClassifier
from fedkt.algorithms.auto import Auto
from fedkt.algorithms.class_sums import GRAM, MOMENTS, sums_of, unpacked
from fedkt.algorithms.moments import MAP_SEED, Moments, noise_for_epsilon
from fedkt.algorithms.received_sums import Received, note_skew
from fedkt.errors import ConfigurationError, DataError, ModelError, PrivacyError
from fedkt.federation import Party, Server, simulate
from fedkt.models.features.head import FeatureHead
from fedkt.models.features.tables import table_map
from fedkt.privacy import Gaussian, Ledger
from fedkt.privacy.sums import GaussianSums
from fedkt.report import promise_of

CLASSES = ("low", "middle", "high")
RNG = np.random.default_rng(0)
CENTRES = np.array([[0, 0, 0, 0], [2, 2, 0, 0], [0, 2, 2, 1]])


def draw(count, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, count)
    return CENTRES[y] + rng.normal(size=(count, 4)), y


X, Y = draw(900, 1)
PUBLIC, _ = draw(300, 2)
TEST, TRUTH = draw(600, 3)


def party(name, rows, *, classes=CLASSES, **more):
    return Party(PUBLIC, classes, 1, name=name, X=X[rows], y=Y[rows], **more)


def server(**more):
    return Server(PUBLIC, CLASSES, 9, **more)


def dealt_out(cuts):
    """Parties of whole runs of rows, sorted by class: as different as can be."""
    order = np.argsort(Y, kind="stable")
    return [party(f"party {number}", rows) for number, rows in enumerate(np.split(order, cuts))]


def probabilities(outcome):
    return outcome.final.models[0].predict_proba(TEST, 3)


def test_the_head_is_that_of_the_pooled_rows_however_they_are_dealt_out():
    one = simulate(Moments("tree"), dealt_out([]), server())
    many = simulate(Moments("tree"), dealt_out([200, 320, 500, 640]), server())
    np.testing.assert_allclose(probabilities(one), probabilities(many), atol=1e-4)
    assert np.mean(probabilities(many).argmax(axis=1) == TRUTH) > 0.8


def test_a_party_sends_the_sums_of_its_rows_and_nothing_else():
    own = party("north", np.arange(60))
    sent = Moments("tree").party_step(own, None)
    phi = table_map(PUBLIC, seed=MAP_SEED)(own.X)
    assert sent.models == ()
    assert sent.counts is None
    assert sorted(sent.arrays) == [GRAM, MOMENTS]
    for label in range(3):
        np.testing.assert_allclose(sent.arrays[MOMENTS][:, label], phi[own.y == label].sum(axis=0))
    expected = sum(np.outer(row, row) for row in phi)
    np.testing.assert_allclose(sent.arrays[GRAM], expected[np.triu_indices(phi.shape[1])], rtol=1e-5, atol=1e-5)


def test_strange_parties_count_as_far_as_they_can():
    first = np.flatnonzero(Y == 0)
    gaps = X[:50].copy()
    gaps[3, 2], gaps[4, 0] = np.nan, np.inf
    strange = [
        party("one class", first[:100]),
        party("three rows", np.arange(3)),
        replace(party("gaps", np.arange(50)), X=gaps),
        party("others", np.arange(300, 900)),
    ]
    outcome = simulate(Moments("tree"), strange, server())
    assert np.mean(probabilities(outcome).argmax(axis=1) == TRUTH) > 0.75
    (note,) = outcome.parties["three rows"].notes
    assert note.startswith("Party 'three rows' leaves out its rows of")


def test_a_class_that_nobody_has_is_never_named_and_one_class_alone_is_a_constant():
    two = [party("north", np.flatnonzero(Y != 1))]
    outcome = simulate(Moments("tree"), two, server())
    assert (probabilities(outcome)[:, 1] == 0).all()
    only = [party("north", np.flatnonzero(Y == 2))]
    assert (probabilities(simulate(Moments("tree"), only, server()))[:, 2] == 1).all()


def test_rows_of_a_class_that_has_few_stay_at_home_unless_they_may_leave():
    rows = np.concatenate([np.flatnonzero(Y == 0)[:40], np.flatnonzero(Y == 1)[:9]])
    shy = Moments("tree").party_step(party("north", rows), None)
    assert shy.arrays[MOMENTS][0].tolist() == [40, 0, 0]
    assert shy.arrays[GRAM][0] == 40
    open_ = Moments("tree", smallest_class=1).party_step(party("north", rows), None)
    assert open_.arrays[MOMENTS][0].tolist() == [40, 9, 0]


def test_without_any_rows_there_is_nothing_to_solve():
    with pytest.raises(ModelError, match="No class has rows enough"):
        simulate(Moments("tree"), [party("north", np.arange(9))], server())


def test_a_row_can_be_read_out_of_the_exact_sum_of_one_row():
    """What SECURITY.md says of exact sums, shown: why classes of few rows stay at home."""
    alone = np.concatenate([np.flatnonzero(Y == 0)[:40], np.flatnonzero(Y == 1)[:1]])
    sent = Moments("tree", smallest_class=1).party_step(party("north", alone), None)
    features = table_map(PUBLIC, seed=MAP_SEED)
    column, scale = sent.arrays[MOMENTS][:, 1], features.layers[0]
    standard = column[1 : 1 + len(scale.columns)] * features.limit
    recovered = standard * scale.deviation + scale.mean
    np.testing.assert_allclose(recovered, X[alone[-1]], atol=1e-3)


LIES = {
    "negative counts": (lambda m, g: (m - np.eye(len(m), 3) * 500, g), "class counts are not whole"),
    "half a row": (lambda m, g: (m + np.eye(len(m), 3) / 2, g), "class counts are not whole"),
    "a long class": (lambda m, g: (m * np.r_[1, np.full(len(m) - 1, 50)][:, None], g), "longer sum than"),
    "another first row": (lambda m, g: (m, np.r_[g[0], g[1:] + 30]), "first row of its Gram matrix"),
    "a large Gram matrix": (lambda m, g: (m, with_diagonal(g, len(m), 1e3)), "trace of its Gram matrix"),
    "a crooked Gram matrix": (lambda m, g: (m, crooked(g, len(m))), "not positive semidefinite"),
    "another shape": (lambda m, g: (m[:-1], g), "arrays of the shapes"),
}


def with_diagonal(half, width, value):
    gram = np.zeros((width, width))
    gram[np.triu_indices(width)] = half
    gram[np.arange(2, width), np.arange(2, width)] += value
    return gram[np.triu_indices(width)]


def crooked(half, width):
    gram = np.zeros((width, width))
    gram[np.triu_indices(width)] = half
    gram[2, 3] += 200
    return gram[np.triu_indices(width)]


@pytest.mark.parametrize("lie", LIES)
def test_sums_that_no_rows_have_are_left_out_by_name_and_the_others_go_on(lie):
    change, words = LIES[lie]
    algorithm, parties = Moments("tree"), dealt_out([450])
    honest, liar = (algorithm.party_step(each, None) for each in parties)
    m, g = change(liar.arrays[MOMENTS], liar.arrays[GRAM].astype(float))
    judge = server()
    final = algorithm.server_step(judge, [honest, replace(liar, arrays={MOMENTS: m, GRAM: g})])
    alone = algorithm.server_step(server(), [honest])
    assert words in judge.diary.vote.silent["party 1"]
    np.testing.assert_array_equal(final.models[0].predict(TEST), alone.models[0].predict(TEST))


def test_what_a_party_sends_is_within_its_bounds():
    sent = Moments("tree").party_step(party("north", np.arange(500)), None)
    features = table_map(PUBLIC, seed=MAP_SEED)
    assert unpacked(sent.arrays, features, 3).counts.sum() == 500


def test_who_moves_the_head_most_is_named_with_how_far():
    flipped = replace(party("liar", np.arange(450)), y=(Y[:450] + 1) % 3)
    outcome = simulate(Moments("tree"), [flipped, party("north", np.arange(450, 900))], server())
    found = outcome.server.vote.influence
    assert found["liar"] > 0.2
    # Left out, the head is that of the others, on whatever rows.
    assert any("Without party 'liar'" in note for note in outcome.server.notes)


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [
        (Moments("tree", level="L1"), "Level L1 needs a noise for sums of features. Give"),
        (Moments("tree", level="L2"), "Level L2 needs a noise for sums of features. Give"),
        (Moments("tree", class_shares=(0.2, 0.3, 0.5)), "parties tell the class shares themselves"),
        (Moments("tree", level="L2", noise=Gaussian(40)), "for sums of features, got Gaussian"),
        (Moments("tree", noise=GaussianSums(1)), "Level L0 adds no noise"),
        (Moments("tree", smallest_class=0), "at least 1, got 0"),
        (Moments("tree", level="L7"), "no privacy level"),
    ],
)
def test_settings_that_cannot_work_are_refused_in_words(algorithm, words):
    with pytest.raises(ConfigurationError, match=words):
        algorithm.check()


def private(parties, sigma=2.0):
    return simulate(Moments("tree", level="L2", noise=GaussianSums(sigma)), parties, server())


def test_at_level_l2_one_noisy_vector_leaves_through_the_ledger():
    own = party("north", np.arange(300), noise_seed=5)
    sent = Moments("tree", level="L2", noise=GaussianSums(2.0)).party_step(own, None)
    assert list(sent.arrays) == [MOMENTS]
    assert sent.arrays[MOMENTS].dtype == np.int64
    (release,) = own.ledger.releases
    assert (release.noise, release.queries, release.unit) == (GaussianSums(2.0), 1, "record")
    # Every number within what noise of this size may do to the true sums.
    features = table_map(PUBLIC, seed=MAP_SEED, private=True)
    true = sums_of(features, own.X, own.y, 3, gram=False).moments
    away = sent.arrays[MOMENTS] * GaussianSums(2.0).step - true
    assert 1.5 < away.std() < 2.5


def test_at_level_l2_the_head_still_learns_and_its_price_is_told():
    parties = [party(f"party {number}", np.arange(number, 900, 3), noise_seed=number) for number in range(3)]
    noise = noise_for_epsilon(epsilon=1.0, delta=1e-5, classes=3)
    algorithm = Moments("tree", level="L2", noise=noise)
    promise, _, _ = promise_of(algorithm, parties, level="L2", delta=1e-5, reproducible_noise=True)
    assert 0.999 < promise.epsilon <= 1.0
    assert "sums of features with gaussian-sums noise" in str(promise)
    assert "all numbers that leave a party" in str(promise)
    assert promise.count_sigma is None
    outcome = simulate(Moments("tree", level="L2", noise=GaussianSums(1.0)), parties, server())
    assert np.mean(probabilities(outcome).argmax(axis=1) == TRUTH) > 0.7


def test_at_level_l2_nothing_is_summed_up_beyond_the_budget():
    own = party("north", np.arange(300), ledger=Ledger(owner="north", budget=0.1), noise_seed=5)
    with pytest.raises(PrivacyError, match="does not cover"):
        Moments("tree", level="L2", noise=GaussianSums(2.0)).party_step(own, None)


def test_at_level_l2_noise_that_drowns_everything_is_said():
    with pytest.raises(ModelError, match="through the noise"):
        private([party("north", np.arange(100), noise_seed=1)], sigma=1e4)


def test_public_rows_that_do_not_resemble_the_parties_are_told_of_at_level_l2():
    features = table_map(PUBLIC, seed=MAP_SEED, private=True)
    noise = GaussianSums(2.0)
    for rows, told in ((np.arange(900), False), (np.flatnonzero(Y == 2), True)):
        judge = server()
        noisy = sums_of(features, X[rows], Y[rows], 3, gram=False)
        noisy = replace(noisy, moments=noisy.moments + np.random.default_rng(1).normal(size=noisy.moments.shape) * 2)
        note_skew(judge, Received((), (noisy,), noise.variance), features(PUBLIC))
        assert bool(judge.diary.notes) is told


def test_a_family_can_learn_what_the_head_says():
    outcome = simulate(Moments("tree", final="forest"), dealt_out([300]), server())
    assert isinstance(outcome.final.models[0].estimator, RandomForestClassifier)
    assert np.mean(probabilities(outcome).argmax(axis=1) == TRUTH) > 0.7


def test_a_classifier_takes_moments_for_a_voting():
    words = np.array(["a", "b", "c"])[Y]
    model = FedKTClassifier(voting="moments", random_state=0).fit(X, words, parties=np.arange(900) % 4, public=PUBLIC)
    assert isinstance(model.final_estimator_, FeatureHead)
    assert model.report_.algorithm == "fedkt-moments"
    assert np.mean(model.predict(TEST) == np.array(["a", "b", "c"])[TRUTH]) > 0.8
    np.testing.assert_allclose(model.predict_proba(TEST).sum(axis=1), 1)


def test_a_classifier_gives_moments_its_noise():
    noisy = FedKTClassifier(
        voting="moments", level="L2", noise=GaussianSums(2.0), class_labels=[0, 1, 2], noise_seed=1, random_state=0
    ).fit(X, Y, parties=np.arange(900) % 3, public=PUBLIC)
    assert noisy.report_.epsilon == pytest.approx(5.0, abs=1.0)


@pytest.mark.parametrize("kind", [Moments, Auto])
def test_a_second_run_has_the_map_of_what_the_public_rows_are_by_then(kind):
    """The rows lie where those of the first run lay."""
    public, algorithm = PUBLIC.copy(), kind("logistic")
    own = Party(public, CLASSES, 1, name="north", X=X[:200], y=Y[:200])
    algorithm.party_step(own, None)
    public[:, 1] = public[:, 0] ** 2
    again, anew = algorithm.party_step(own, None), kind("logistic").party_step(own, None)
    np.testing.assert_array_equal(again.arrays[MOMENTS], anew.arrays[MOMENTS])


@pytest.mark.parametrize("algorithm", [Moments("tree"), Auto("tree")])
def test_the_map_of_the_same_public_rows_is_made_once_a_run(algorithm, monkeypatch):
    made = []

    def map_of(self, public, image):
        made.append(public)
        return table_map(public, seed=MAP_SEED)

    monkeypatch.setattr(Moments, "map_of", map_of)
    simulate(algorithm, dealt_out([450]), server())
    assert len(made) == 1
    algorithm.party_step(replace(party("north", np.arange(900)), public=PUBLIC + 1.0), None)
    assert len(made) == 2


def test_public_rows_without_anything_that_varies_are_refused_before_rows_are_read():
    own = replace(party("north", np.arange(100)), public=np.ones((50, 4)))
    with pytest.raises(DataError, match="Every column of the public rows is constant"):
        Moments("tree").party_step(own, None)
