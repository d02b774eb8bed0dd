"""Sums made to ruin the head of honest parties, as an attacker tried them: refused, or named."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris

from fedkt import FedKTClassifier
from fedkt.algorithms.class_sums import MOMENTS, ClassSums, broken_bound, noisy_fault, packed, sums_of
from fedkt.algorithms.heads import Sums, lda_head, solve
from fedkt.algorithms.moments import MAP_SEED, Moments
from fedkt.bundle import Bundle
from fedkt.errors import ConfigurationError, DataError
from fedkt.federation import Server
from fedkt.models.features.images import image_map
from fedkt.models.features.tables import table_map
from fedkt.privacy.sums import GaussianSums

RNG = np.random.default_rng(0)
CENTRES = np.array([[0, 0, 0, 0], [2, 0, 0, 0], [0, 4, 0, 0.0]])


def draw(count, seed):
    rng = np.random.default_rng(seed)
    y = rng.choice(3, count, p=[0.6, 0.3, 0.1])
    return rng.normal(size=(count, 4)) + CENTRES[y], y


X, Y = draw(4_000, 1)
PUBLIC, _ = draw(500, 2)
TEST, TRUTH = draw(2_000, 3)
PARTS = np.array_split(np.arange(len(Y)), 5)


def recall(final):
    labels = final.models[0].predict(TEST)
    return [float(np.mean(labels[label == TRUTH] == label)) for label in range(3)]


@pytest.mark.parametrize("rows", [20, 60, 2_000])
def test_honest_sums_as_they_travel_keep_all_bounds(rows):
    phi = table_map(PUBLIC, seed=MAP_SEED)
    sums = sums_of(phi, X[:rows], Y[:rows], 3, gram=True)
    half = packed(sums)
    gram = np.zeros((phi.width, phi.width))
    gram[np.triu_indices(phi.width)] = half["gram"]
    assert broken_bound(ClassSums(half[MOMENTS], gram + np.triu(gram, 1).T)) == ""


def test_means_that_a_gram_matrix_has_no_room_for_are_no_rows():
    """Two classes at opposite ends of a direction in which the Gram matrix says that nothing varies."""
    phi = table_map(PUBLIC, seed=MAP_SEED)
    moments, gram = np.zeros((phi.width, 3)), np.zeros((phi.width, phi.width))
    moments[0, :2], moments[5, :2], gram[0, 0] = 20, (19.9, -19.9), 40
    assert broken_bound(ClassSums(moments, gram)) == "its Gram matrix has no room for the means of its classes"
    gram[5, 5] = 40
    assert broken_bound(ClassSums(moments, gram)) == ""


def test_a_gram_matrix_may_not_be_negative_by_as_little_as_a_thousandth_of_its_rows():
    phi = table_map(PUBLIC, seed=MAP_SEED)
    sums = sums_of(phi, X[:500], Y[:500], 3, gram=True)
    _, vectors = np.linalg.eigh(sums.gram[1:, 1:])
    away = np.r_[0, vectors[:, 0]]
    shifted = sums.gram - np.outer(away, away) * (away @ sums.gram @ away + 0.0009 * 500)
    assert "Gram matrix" in broken_bound(ClassSums(sums.moments, shifted))


def test_noisy_counts_are_held_class_by_class():
    """Fewer rows of a class than none takes it away from the others, however few rows the party has in all."""
    sigma = 7.46
    moments = np.zeros((10, 3))
    moments[0] = 2_050, 1_050, -1_050
    assert "fewer rows of a class than none" in noisy_fault(ClassSums(moments), sigma)
    moments[0] = 1_000, 10, 10
    moments[1, 1] = 900
    assert "longer than its rows" in noisy_fault(ClassSums(moments), sigma)
    assert noisy_fault(ClassSums(moments * 0), sigma) == ""


def test_honest_noisy_sums_keep_their_bounds():
    noise, phi = GaussianSums(7.46), table_map(PUBLIC, seed=MAP_SEED, private=True)
    for seed in range(50):
        sent = noise.sums(np.zeros((phi.width, 3)), np.random.default_rng(seed)) * noise.step
        assert noisy_fault(ClassSums(sent), noise.sigma) == ""


def test_a_party_that_makes_a_class_vanish_within_its_bounds_is_named():
    noise, phi = GaussianSums(7.46), table_map(PUBLIC, seed=MAP_SEED, private=True)
    algorithm = Moments(None, level="L2", noise=noise, features=phi)

    def sent(name, moments):
        return Bundle(name, (0, 1, 2), (), arrays={MOMENTS: np.rint(moments / noise.step).astype(np.int64)})

    honest = [sent(f"p{k}", sums_of(phi, X[part], Y[part], 3, gram=False).moments) for k, part in enumerate(PARTS)]
    # All rows of the rare class are said to lie where the frequent one does.
    liar = np.zeros((phi.width, 3))
    frequent = sums_of(phi, X[Y == 0], Y[Y == 0], 3, gram=False).moments[:, 0]
    liar[:, 2] = frequent / frequent[0] * 2_500
    judge = Server(PUBLIC, (0, 1, 2), 1, parties=6)
    final = algorithm.server_step(judge, [*honest, sent("liar", liar)])
    assert recall(final)[0] < 0.7
    assert judge.diary.vote.influence["liar"] > 0.1
    assert any("Without party 'liar'" in note for note in judge.diary.notes)


# What a head says where classes are well apart, and where it has not heard of some.


@pytest.mark.parametrize(("public", "seed"), [(225, 0), (400, 1), (700, 0)])
def test_handwritten_digits_are_not_named_more_surely_than_rows_can_tell(public, seed):
    """Ridges of one-hot labels cannot be calibrated there: the sums have scores agree more than any score is."""
    data, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(labels))
    seen, test, own = order[:public], order[public : public + 359], order[public + 359 :]
    phi = image_map(data[seen].astype(np.float32), (8, 8, 1), seed=MAP_SEED)
    sums = sums_of(phi, data[own].astype(np.float32), labels[own], 10, gram=True)
    head = solve(Sums(sums.moments, sums.gram), phi(data[seen].astype(np.float32)), [*phi.prefixes, phi.width])
    probable = head.probabilities(phi(data[test].astype(np.float32)))
    truth = np.maximum(probable[np.arange(len(test)), labels[test]], 1e-300)
    assert -np.log(truth).mean() < 0.15
    assert np.mean(probable.argmax(axis=1) == labels[test]) > 0.97
    assert head.log_loss >= 0


def test_a_rows_part_in_the_covariance_is_taken_off_as_well():
    """Leaving out each row by hand, from means and covariance, as many features as a third of the rows."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1, 2], 40)
    F = np.column_stack([np.ones(120), rng.normal(size=(120, 40)) + 0.3 * rng.normal(size=(3, 40))[y]])
    found = lda_head(Sums(F.T @ np.eye(3)[y], F.T @ F), 0.1).agreement
    own = []
    for place in range(120):
        others = np.arange(120) != place
        rest = Sums(F[others].T @ np.eye(3)[y[others]], F[others].T @ F[others])
        own.append(F[place] @ lda_head(rest, 0.1).weights[:, y[place]])
    plain = (F * lda_head(Sums(F.T @ np.eye(3)[y], F.T @ F), 0.1).weights[:, y].T).sum(axis=1).mean()
    assert found == pytest.approx(np.mean(own), abs=0.2 * abs(plain - np.mean(own)))


def test_by_default_no_class_is_given_up_for_few_rows_at_each_party():
    """Five parties have fewer than ten flowers of most kinds: their sums stay at home, and experts are served."""
    flowers, kinds = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    parties = np.where(order[:100] < 50, "a", np.where(order[:100] < 58, "b", "c"))
    parties[kinds[order[:100]] == 2] = np.array(["a", "b", "c", "d", "e"])[
        np.arange((kinds[order[:100]] == 2).sum()) % 5
    ]
    model = FedKTClassifier(random_state=0)
    model.fit(flowers[order[:100]], kinds[order[:100]], parties=parties, public=flowers[order[100:125]])
    assert model.score(flowers[order[125:]], kinds[order[125:]]) > 0.8


def test_classes_that_the_head_can_never_name_are_an_alarm():
    flowers, kinds = load_iris(return_X_y=True)
    few = np.r_[0:50, 50:100, 100:106]
    model = FedKTClassifier(voting="moments", random_state=0, n_parties=1)
    model.fit(flowers[few], kinds[few], public=flowers)
    (alarm,) = model.report_.alarms
    assert alarm.startswith("The final model can never name 2")
    assert "no party has the 10 rows" in alarm


def test_a_noise_without_a_level_is_refused_and_not_left_out():
    for voting in ("auto", None, "moments"):
        with pytest.raises(ConfigurationError, match="Level L0 adds no noise"):
            FedKTClassifier(noise=GaussianSums(7.5), voting=voting).fit(X[:50], Y[:50])
    with pytest.raises(ConfigurationError, match="whatever is compared has a price"):
        FedKTClassifier(noise=GaussianSums(7.5), voting="auto", level="L2").fit(X[:50], Y[:50])


def test_public_images_that_are_all_alike_are_refused_in_words():
    with pytest.raises(DataError, match="No patch of the public images differs"):
        image_map(np.zeros((30, 64), np.float32), (8, 8, 1), seed=1)


def test_at_level_l1_sums_of_nobody_still_give_a_final_model():
    algorithm = Moments(None, level="L1", noise=GaussianSums(5.0))
    phi = algorithm.map_of(PUBLIC, None)
    broken = Bundle("p", (0, 1, 2), (), arrays={MOMENTS: np.full((phi.width, 3), -1.0)})
    judge = Server(PUBLIC, (0, 1, 2), 1, parties=1, noise_seed=1)
    assert algorithm.server_step(judge, [broken]).models[0].predict(TEST).shape == (2_000,)
