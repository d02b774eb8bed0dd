"""A network with the face of a scikit-learn classifier."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sklearn.base import clone  # noqa: E402
from sklearn.datasets import load_digits, make_blobs  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402
from torch import nn  # noqa: E402

from fedkt.errors import ConfigurationError, DataError, ModelError  # noqa: E402
from fedkt.models.neural.classifier import NeuralClassifier  # noqa: E402
from fedkt.models.neural.recipe import Correction  # noqa: E402

X, Y = make_blobs(300, centers=4, n_features=6, random_state=0)
X = X.astype(np.float32)
PIXELS, DIGITS = load_digits(return_X_y=True)
IMAGES = PIXELS.reshape(-1, 8, 8)


def quick(**settings) -> NeuralClassifier:
    return NeuralClassifier(**{"epochs": 5, "learning_rate": 1e-2, "random_state": 0, **settings})


@parametrize_with_checks([NeuralClassifier(epochs=30, learning_rate=0.01, random_state=0)])
def test_it_keeps_the_conventions_of_scikit_learn(estimator, check):
    check(estimator)


def test_it_learns_and_its_probabilities_sum_to_one():
    model = quick().fit(X, Y)
    assert model.score(X, Y) > 0.9
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert (model.classes_[probabilities.argmax(axis=1)] == model.predict(X)).all()


def test_the_seed_decides_everything():
    first, again, other = quick().fit(X, Y), quick().fit(X, Y), quick(random_state=1).fit(X, Y)
    assert all((a == b).all() for a, b in zip(first.get_weights(), again.get_weights(), strict=True))
    assert any((a != b).any() for a, b in zip(first.get_weights(), other.get_weights(), strict=True))


def test_a_class_it_was_not_shown_is_never_predicted():
    few = Y < 2
    model = quick(epochs=1, classes=(0, 1, 2, 3)).fit(X[few], Y[few])
    assert model.network_[-1].out_features == 4
    assert model.classes_.tolist() == [0, 1]
    assert set(model.predict(X)) <= {0, 1}
    assert model.predict_proba(X).shape == (300, 2)


def test_a_label_outside_the_declared_classes_is_refused():
    with pytest.raises(ValueError, match=r"classes \[3\]"):
        quick(classes=(0, 1, 2)).fit(X, Y)


def test_images_and_rows_of_pixels_give_the_same_network():
    as_images = quick(epochs=1).fit(IMAGES, DIGITS)
    as_rows = quick(epochs=1, image=(8, 8)).fit(PIXELS, DIGITS)
    assert all((a == b).all() for a, b in zip(as_images.get_weights(), as_rows.get_weights(), strict=True))
    assert (as_images.predict(IMAGES[:9]) == as_rows.predict(PIXELS[:9])).all()


def seen_by(network):
    """A network that keeps the first batch it is shown."""

    class Looking(nn.Module):
        def __init__(self, shape, n_outputs):
            super().__init__()
            self.shape, self.last = shape, nn.Linear(int(np.prod(shape)), n_outputs)

        def forward(self, rows):
            network.append(rows.detach().clone())
            return self.last(rows.flatten(1))

    return Looking


def test_a_network_sees_channels_first_and_the_declared_scale():
    batches: list[torch.Tensor] = []
    colours = np.arange(2 * 4 * 5 * 3, dtype=np.float32).reshape(2, 4, 5, 3)
    model = quick(module=seen_by(batches), epochs=1, normalise=([1.0, 2.0, 3.0], [2.0, 4.0, 8.0])).fit(colours, [0, 1])
    assert model.network_.shape == (3, 4, 5)
    batches.clear()
    model.predict(colours)
    expected = (colours.transpose(0, 3, 1, 2) - np.array([1, 2, 3])[:, None, None]) / np.array([2, 4, 8])[:, None, None]
    np.testing.assert_allclose(batches[0].numpy(), expected, rtol=1e-6)


def test_a_table_is_normalised_column_by_column_and_a_constant_column_stays_finite():
    batches: list[torch.Tensor] = []
    table = np.array([[1.0, 7.0, 1e6], [3.0, 7.0, 3e6]])
    quick(module=seen_by(batches), epochs=1).fit(table, [0, 1]).predict(table)
    np.testing.assert_allclose(batches[-1].numpy(), [[-1, 0, -1], [1, 0, 1]], atol=1e-6)


def test_pixels_may_be_bytes():
    as_bytes = quick(epochs=1).fit(IMAGES.astype(np.uint8), DIGITS)
    as_floats = quick(epochs=1).fit(IMAGES.astype(np.float32), DIGITS)
    assert (as_bytes.predict(IMAGES) == as_floats.predict(IMAGES)).all()


def test_weights_travel_from_one_network_to_another():
    model = quick().fit(X, Y)
    copy = quick(random_state=9).initialise(X, classes=model.classes_).set_weights(model.get_weights())
    np.testing.assert_allclose(copy.decision_scores(X), model.decision_scores(X), rtol=1e-5, atol=1e-5)
    with pytest.raises(ConfigurationError, match="shapes"):
        copy.set_weights(model.get_weights()[:-1])


def test_training_that_runs_away_is_refused():
    with pytest.raises(ModelError, match="ran away"):
        quick(optimiser="sgd", learning_rate=1e30, weight_decay=1.0).fit(X, Y)


def test_a_warm_start_goes_on_from_the_weights_there_are():
    model = quick(warm_start=True).fit(X, Y)
    before = model.get_weights()
    model.set_params(epochs=0).fit(X, Y)
    assert all((a == b).all() for a, b in zip(before, model.get_weights(), strict=True))
    model.set_params(warm_start=False).fit(X, Y)
    assert any((a != b).any() for a, b in zip(before, model.get_weights(), strict=True))


def test_partial_fit_sees_the_rows_once_more_each_time():
    model = quick()
    with pytest.raises(ValueError, match="all classes"):
        model.partial_fit(X, Y)
    for _ in range(10):
        model.partial_fit(X, Y, classes=[0, 1, 2, 3])
    assert model.score(X, Y) > 0.9


def test_soft_labels_that_are_certain_are_the_labels():
    hard = quick(classes=(0, 1, 2, 3)).fit(X, Y)
    soft = quick(classes=(0, 1, 2, 3)).fit_soft(X, np.eye(4)[Y])
    np.testing.assert_allclose(soft.decision_scores(X), hard.decision_scores(X), rtol=1e-3, atol=1e-3)
    for wrong in (np.eye(4)[Y] * 2, -np.eye(4)[Y], np.eye(4)[Y][:5], np.eye(4)[Y][:, :3]):
        with pytest.raises(DataError):
            quick(classes=(0, 1, 2, 3)).fit_soft(X, wrong)


def test_an_endless_pull_keeps_the_weights_where_they_are_pulled_to():
    """FedProx with μ → ∞, by hand: with SGD and step 1/μ every step lands on the point of attraction."""
    start = quick(epochs=0, classes=(0, 1, 2, 3)).fit(X, Y).get_weights()
    far = tuple(each + 1 for each in start)
    pulled = quick(optimiser="sgd", learning_rate=1e-8, classes=(0, 1, 2, 3))
    pulled.fit(X, Y, correction=Correction(1e8, far))
    for a, b in zip(far, pulled.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_early_stopping_stops_and_keeps_the_best_weights():
    stopped = quick(epochs=200, early_stopping=True, patience=2).fit(X, Y)
    assert stopped.score(X, Y) > 0.9
    with pytest.raises(ConfigurationError, match="hold out"):
        quick(early_stopping=True).fit(X[:3], Y[:3])


def test_a_cnn_refuses_tables_in_words_and_reads_images():
    with pytest.raises(ConfigurationError, match="reads images"):
        quick(module="cnn").fit(X, Y)
    with pytest.raises(ConfigurationError, match="at least 16"):
        quick(module="cnn").fit(IMAGES, DIGITS)
    big = np.kron(IMAGES[:50], np.ones((1, 3, 3)))
    assert quick(module="cnn", epochs=1).fit(big, DIGITS[:50]).predict(big).shape == (50,)


@pytest.mark.parametrize(
    "settings",
    [
        {"epochs": -1},
        {"epochs": 1.5},
        {"batch_size": 0},
        {"learning_rate": 0.0},
        {"learning_rate": float("nan")},
        {"weight_decay": -1.0},
        {"momentum": 1.0},
        {"optimiser": "lbfgs"},
        {"module": "transformer"},
        {"module": nn.Linear(6, 4)},
        {"module": lambda shape, n_outputs: "nothing"},
        {"normalise": "columns"},
        {"normalise": (0.0, 0.0)},
        {"normalise": ([1.0, 2.0], 1.0)},
        {"image": (6,)},
        {"dtype": "float16"},
    ],
    ids=lambda options: " ".join(f"{name} {getattr(value, '__name__', value)}" for name, value in options.items()),
)
def test_impossible_settings_are_refused_in_words(settings):
    with pytest.raises(ConfigurationError):
        quick(**settings).fit(X, Y)


def test_an_image_shape_that_does_not_fit_the_rows_is_refused():
    with pytest.raises(DataError, match="16 values, but a row has 6"):
        quick(image=(4, 4)).fit(X, Y)


def test_it_can_be_cloned_searched_over_and_dropped_into_a_grid():
    search = GridSearchCV(quick(epochs=2), {"learning_rate": [1e-4, 1e-2]}, cv=2).fit(X, Y)
    assert search.best_params_ == {"learning_rate": 1e-2}
    assert clone(quick(module=nn.Identity)).module is nn.Identity


def regularised(shape: tuple[int, ...], n_outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(shape[0], 30), nn.BatchNorm1d(30), nn.ReLU(), nn.Dropout(0.2), nn.Linear(30, n_outputs)
    )


def test_batch_normalisation_and_dropout_are_repeatable_and_switched_off_when_predicting():
    first, again = (quick(module=regularised).fit(X, Y) for _ in range(2))
    assert (first.decision_scores(X) == again.decision_scores(X)).all()
    np.testing.assert_allclose(first.decision_scores(X[:1]), first.decision_scores(X)[:1], rtol=1e-4, atol=1e-5)
    assert len(first.get_weights()) == 9


def test_image_arrays_can_be_trained_on_again():
    model = quick(epochs=1, warm_start=True).fit(IMAGES, DIGITS).fit(IMAGES, DIGITS)
    assert model.n_features_in_ == 64
    again = quick().partial_fit(IMAGES, DIGITS, classes=range(10)).partial_fit(IMAGES, DIGITS)
    assert again.predict(IMAGES[:3]).shape == (3,)


def test_soft_labels_refuse_classes_whose_order_is_not_that_of_the_columns():
    with pytest.raises(ConfigurationError, match="ascending order"):
        quick(classes=["b", "a"]).fit_soft(X, np.full((300, 2), 0.5))


def test_a_correction_reaches_its_own_weights_past_running_statistics():
    """FedProx with batch normalisation: the pull must not land on the neighbouring layer."""
    start = quick(module=regularised, epochs=0).fit(X, Y).get_weights()
    still = quick(module=regularised, optimiser="sgd", learning_rate=1e-8)
    still.fit(X, Y, correction=Correction(1e8, tuple(start)))
    names = list(still.network_.state_dict())
    for name, before, after in zip(names, start, still.get_weights(), strict=True):
        if "running" not in name and "num_batches" not in name:
            np.testing.assert_allclose(before, after, atol=1e-5)


@pytest.mark.parametrize(
    ("factory", "words"),
    [
        (lambda shape, n: nn.Linear(shape[0], n + 4), "one logit for each of 4 classes"),
        (lambda shape, n: nn.Linear(shape[0], 1), "one logit for each of 4 classes"),
        (lambda shape, n: nn.Identity(), "no weights"),
        (lambda shape, n: nn.GRU(shape[0], n), "it gives tuple"),
        (lambda shape, n: nn.Linear(99, n), "cannot read a batch of shape"),
        (lambda shape: nn.Linear(shape[0], 4), r"a function \(shape, n_outputs\)"),
    ],
    ids=["too wide", "too narrow", "no weights", "a tuple", "wrong input", "wrong arguments"],
)
def test_a_network_that_cannot_answer_is_refused_before_training(factory, words):
    with pytest.raises(ConfigurationError, match=words):
        quick(module=factory).fit(X, Y)


def test_numbers_too_large_for_the_network_are_refused_and_not_guessed():
    model = quick(epochs=1).fit(X, Y)
    far = X[:2].astype(np.float64)
    far[0, 0] = 1e39
    with pytest.raises(DataError, match="too large"):
        model.predict(far)
    with pytest.raises(DataError, match="NaN"):
        model.set_weights([np.full_like(each, np.nan) for each in model.get_weights()])


def test_a_device_that_is_not_there_is_refused():
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(ConfigurationError, match="no device 'cuda'"):
        quick(device="cuda").fit(X, Y)
