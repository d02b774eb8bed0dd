"""What the server's final model learns, and how its labels and probabilities are read."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import Perceptron, SGDClassifier
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, LinearSVC

from fedkt.algorithms import FedKT, Moments
from fedkt.algorithms.final import final_lesson
from fedkt.algorithms.voting.base import LabelledRows
from fedkt.errors import ConfigurationError
from fedkt.federation import Party, Server
from fedkt.models.exchange import run_with_probabilities
from fedkt.models.final_exchange import to_final_onnx
from fedkt.models.reading import class_scores
from fedkt.privacy import Laplace

SLOPE = 2.0


def server_of(rows=800, seed=0, classes=("no", "yes")):
    public = np.random.default_rng(seed).normal(size=(rows, 3)).astype(np.float32)
    return Server(public, classes, seed)


def posterior(public):
    yes = 1 / (1 + np.exp(-(SLOPE * public[:, 0] - 2)))
    return np.column_stack([1 - yes, yes])


def fit(model, server, labelled, **settings):
    return final_lesson(FedKT(model, **settings), server, labelled).fit()


def labelled_by(server, shares=None):
    known = posterior(server.public)
    return LabelledRows(known.argmax(axis=1), distributions=known, shares=shares)


def test_a_final_model_learns_how_probable_the_classes_are_and_not_only_which_wins():
    server = server_of()
    fresh = posterior(np.random.default_rng(9).normal(size=(2_000, 3)))
    rows = np.random.default_rng(9).normal(size=(2_000, 3)).astype(np.float32)
    soft = fit(HistGradientBoostingClassifier(max_iter=60), server, labelled_by(server))
    hard = fit(HistGradientBoostingClassifier(max_iter=60), server, LabelledRows(labelled_by(server).labels))
    gap = {name: np.abs(each.predict_proba(rows, 2) - fresh).mean() for name, each in (("s", soft), ("h", hard))}
    assert gap["s"] < 0.05 < 0.1 < gap["h"]


def test_a_family_that_learns_labels_only_is_calibrated_by_the_distributions():
    server = server_of()
    model = fit(SVC(), server, labelled_by(server))
    rows = np.random.default_rng(9).normal(size=(2_000, 3)).astype(np.float32)
    true = posterior(rows)[:, 1]
    says = model.predict_proba(rows, 2)[:, 1]
    certain = model.predict(rows)
    assert np.abs(says - true).mean() < 0.6 * np.abs(certain - true).mean()
    assert np.array_equal(model.predict(rows), np.asarray(model.estimator.predict(rows)))


def test_rows_that_a_model_has_learned_do_not_calibrate_it():
    """A forest without limits is all but certain of what it has learned, whatever the labels: here they are coins."""
    server = server_of(400)
    coins = np.random.default_rng(3).integers(0, 2, 400)
    labelled = LabelledRows(coins, distributions=np.eye(2)[coins])
    model = fit(RandomForestClassifier(50), server, labelled)
    rows = np.random.default_rng(9).normal(size=(500, 3)).astype(np.float32)
    spread = model.predict_proba(rows, 2)[:, 1].std()
    native = np.asarray(model.estimator.predict_proba(rows))[:, 1].std()
    assert spread < native / 2


def test_labels_are_moved_towards_a_class_that_would_be_lost_and_probabilities_are_not():
    server = server_of(2_000)
    known = np.clip(posterior(server.public) * [1, 0.3], 0, 1)
    known[:, 0] = 1 - known[:, 1]
    plain = LabelledRows(known.argmax(axis=1), distributions=known)
    assert plain.labels.sum() == 0
    expected = known.mean(axis=0)
    lost = fit("forest", server, plain)
    kept = fit("forest", server, plain._replace(shares=expected))
    assert lost.predict(server.public).mean() == 0
    assert kept.predict(server.public).mean() == pytest.approx(expected[1], abs=0.05)
    assert np.array_equal(kept.predict_proba(server.public, 2), lost.predict_proba(server.public, 2))


def test_a_model_that_only_names_a_class_says_so():
    server = server_of(300, classes=("a", "b", "c"))
    labels = np.random.default_rng(0).integers(0, 3, 300)
    model = fit(SVC(decision_function_shape="ovo"), server, LabelledRows(labels, distributions=np.eye(3)[labels]))
    assert not model.has_probabilities
    assert any("only names a class" in note for note in server.diary.notes)


def test_noisy_labels_do_not_make_a_forest_doubt_what_it_learned():
    """At a private level its own probabilities stay as they are."""
    server = server_of()
    model = final_lesson(FedKT("forest", level="L2"), server, labelled_by(server)).fit()
    assert model.reading is None


def test_naive_bayes_is_calibrated_whatever_the_noise():
    """Columns that repeat each other make it far too sure, and noisy labels do not make it doubt."""
    rng = np.random.default_rng(1)
    server = server_of()
    public = np.tile(server.public[:, :1], 20)
    server = Server(public, server.classes, 0)
    known = posterior(public)
    labels = np.where(rng.random(len(known)) < 0.3, rng.integers(0, 2, len(known)), known.argmax(axis=1))
    labelled = LabelledRows(labels, distributions=np.eye(2)[labels])
    model = final_lesson(FedKT("naive-bayes", level="L2"), server, labelled).fit()
    sure = model.predict_proba(public, 2).max(axis=1).mean()
    native = np.asarray(model.estimator.predict_proba(public)).max(axis=1).mean()
    right = np.mean(model.predict(public) == labels)
    assert abs(sure - right) < 0.05 < native - right


def test_neighbours_learn_labels_and_are_calibrated():
    server = server_of()
    model = fit(KNeighborsClassifier(15), server, labelled_by(server))
    rows = np.random.default_rng(9).normal(size=(1_000, 3)).astype(np.float32)
    truth = np.random.default_rng(4).random(1_000) < posterior(rows)[:, 1]
    assert model.has_probabilities
    assert roc_auc_score(truth, model.predict_proba(rows, 2)[:, 1]) > 0.75


def test_few_public_rows_calibrate_nothing():
    server = server_of(15)
    assert fit("forest", server, labelled_by(server)).reading is None


def test_weights_of_classes_move_the_label_of_a_final_model_and_not_its_probabilities():
    server = server_of(2_000)
    known = posterior(server.public)
    plain = fit(HistGradientBoostingClassifier(max_iter=60, random_state=0), server, labelled_by(server))
    weighted = HistGradientBoostingClassifier(max_iter=60, random_state=0, class_weight="balanced")
    model = fit(weighted, server, labelled_by(server), voting="expert")
    assert np.array_equal(model.predict_proba(server.public, 2), plain.predict_proba(server.public, 2))
    # Balanced: the label is "yes" from the share of "yes" among all rows on.
    expected = model.predict_proba(server.public, 2)[:, 1] > known[:, 1].mean()
    assert np.array_equal(model.predict(server.public), expected.astype(int))


class OtherScale(SVC):
    """Scores that depend on how many rows it has learned: those of half as many say nothing about its own."""

    def fit(self, X, y, sample_weight=None):
        self.side_ = 1.0 if len(X) < FEW else -1e3
        return super().fit(X, y, sample_weight)

    def decision_function(self, X):
        return self.side_ * super().decision_function(X)


FEW = 500


def test_a_calibration_that_does_not_fit_the_model_is_none_and_said():
    server = server_of()
    model = fit(OtherScale(), server, labelled_by(server))
    assert not model.has_probabilities
    assert any("only names a class" in note for note in server.diary.notes)


def rows_as(kind, n_rows, seed):
    """Rows, how probable each class is on them, and a class drawn from that."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 6))
    yes = 1 / (1 + np.exp(-2 * (1.5 * X[:, 0] - X[:, 1] + 0.5 * X[:, 2] - 1)))
    if kind == "repeated":
        X = np.tile(X, (1, 400))
    elif kind == "heavy tails":
        X = np.sign(X) * np.exp(3 * np.abs(X))
    elif kind == "outliers":
        X[rng.random(n_rows) < 0.01] *= 1e6
    return X.astype(np.float32), np.column_stack([1 - yes, yes]), rng.random(n_rows) < yes


@pytest.mark.parametrize(
    ("estimator", "kind"),
    [
        (SGDClassifier(loss="modified_huber", random_state=0), "usual"),
        (SGDClassifier(loss="log_loss", random_state=0), "repeated"),
        (SGDClassifier(loss="hinge", random_state=0), "outliers"),
        (Perceptron(random_state=0), "outliers"),
        (LinearSVC(random_state=0), "heavy tails"),
        (LinearDiscriminantAnalysis(), "usual"),
        (GaussianNB(), "repeated"),
        (BernoulliNB(), "repeated"),
    ],
    ids=lambda each: str(each)[:30],
)
def test_probabilities_rank_rows_as_well_as_the_scores_behind_them_also_after_travelling(estimator, kind):
    public, known, _ = rows_as(kind, 1_000, 0)
    X, _, truth = rows_as(kind, 2_000, 1)
    server = Server(public, ("no", "yes"), 0)
    model = fit(estimator, server, LabelledRows(known.argmax(axis=1), distributions=known))
    scores = class_scores(model.estimator, X)
    best = roc_auc_score(truth, scores[:, 1] - scores[:, 0])
    sent = to_final_onnx(model, n_features=X.shape[1], n_classes=2, check_rows=public)
    assert sent.soft
    labels, travelled = run_with_probabilities(sent.data, X, 2)
    says = model.predict_proba(X, 2)
    assert travelled == pytest.approx(says, abs=1e-4)
    assert np.array_equal(labels, model.predict(X))
    for each in (says, says.astype(np.float32), travelled):
        assert roc_auc_score(truth, each[:, 1]) == pytest.approx(best, abs=1e-3)
        assert roc_auc_score(~truth, each[:, 0]) == pytest.approx(best, abs=1e-3)


def pictures_of(classes=2):
    """A server with 30 public pictures of 4 × 4 pixels, and labels for all of them but the first."""
    public = np.random.default_rng(0).normal(size=(30, 16)).astype(np.float32)
    labels = np.r_[-1, np.arange(29) % classes]
    return Server(public, tuple(range(classes)), 0, image=(4, 4, 1)), LabelledRows(labels)


def network_of(**settings):
    pytest.importorskip("torch")
    from fedkt import NeuralClassifier

    return NeuralClassifier("mlp", **settings)


def test_a_network_with_copies_learns_five_times_the_labelled_pictures_at_every_level():
    server, labelled = pictures_of()
    network = network_of(epochs=3, batch_size=29)
    for settings in ({}, {"level": "L1", "noise": Laplace(0.1)}):
        plain, copies = (fit(network, server, labelled, copies=each, **settings) for each in (False, True))
        assert (plain.estimator.n_steps_, copies.estimator.n_steps_) == (3, 15)


def test_copies_are_refused_for_what_is_no_network_and_for_rows_that_are_no_pictures():
    server, labelled = pictures_of()
    with pytest.raises(ConfigurationError, match="the final model is RandomForestClassifier"):
        fit(RandomForestClassifier(), server, labelled, copies=True)
    with pytest.raises(ConfigurationError, match="these rows are no images"):
        fit(network_of(), server_of(), labelled_by(server_of()), copies=True)


@pytest.mark.parametrize("algorithm", [FedKT("forest", copies=True), Moments("forest", final="forest", copies=True)])
def test_copies_are_refused_before_a_party_has_done_anything(algorithm):
    server, _ = pictures_of()
    party = Party(
        server.public, server.classes, 0, image=server.image, name="north", X=server.public[:4], y=[0, 1, 0, 1]
    )
    with pytest.raises(ConfigurationError, match="the final model is forest"):
        algorithm.party_step(party, None)


def test_the_head_of_moments_learns_no_copies():
    with pytest.raises(ConfigurationError, match="Name a final family, or leave copies out"):
        Moments("forest", copies=True).check()
