"""A network says the same before and after it has travelled."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fedkt.bundle import Bundle, Expected, pack, unpack
from fedkt.bundle.signing import new_key
from fedkt.errors import ModelError
from fedkt.models import exchange
from fedkt.models.base import FittedModel, fit_model
from fedkt.models.ensemble import TrainingTask, fit_group
from fedkt.models.exchange import run_with_probabilities, to_onnx
from fedkt.models.sandbox import run_models

torch = pytest.importorskip("torch")
nn = torch.nn

from fedkt.models.neural.classifier import NeuralClassifier  # noqa: E402
from fedkt.models.neural.export import near_ties  # noqa: E402

RNG = np.random.default_rng(4)
IMAGES = RNG.integers(0, 256, (240, 16, 16, 3)).astype(np.float32)
IMAGES += 40 * RNG.normal(size=(240, 1, 1, 3)).astype(np.float32)
PIXELS = IMAGES.reshape(240, -1)
BRIGHTEST = IMAGES.mean(axis=(1, 2)).argmax(axis=1)
TABLE = RNG.normal(size=(240, 6)).astype(np.float32)
SIGN = (TABLE[:, 0] + TABLE[:, 1] > 0).astype(int)


class Residual(nn.Module):
    """Batch normalisation, a shortcut, and the mean over all pixels."""

    def __init__(self, shape, n_outputs):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(shape[0], 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, groups=2), nn.BatchNorm2d(8), nn.Dropout())
        self.last = nn.Linear(8, n_outputs)

    def forward(self, x):
        x = self.first(x)
        x = torch.relu(x + self.second(x))
        return self.last(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))


class Viewed(nn.Module):
    """Writes the number of rows into a shape, in one of the ways people do."""

    def __init__(self, shape, n_outputs, way):
        super().__init__()
        self.way, self.last = way, nn.Linear(768, n_outputs)
        # Called as the graph's own input is.
        self.rows = nn.Parameter(torch.ones(768))

    def forward(self, x):
        return self.last(self.way(x) * self.rows)


def sequence(*layers):
    """A function that builds such a network on images of 16 × 16 × 3; a layer is a function of nothing."""
    return lambda shape, n_outputs: nn.Sequential(*(each() for each in layers), nn.LazyLinear(n_outputs))


def initialised(build):
    """The network of `sequence` after it has seen its first rows, as lazy layers want."""

    def network(shape, n_outputs):
        module = build(shape, n_outputs).eval()
        module(torch.zeros(2, *shape))
        return module

    return network


ACTIVATIONS = (nn.GELU, nn.LeakyReLU, nn.Tanh, nn.SiLU, nn.ELU, nn.PReLU, nn.Hardswish, nn.Softplus)
MODULES = {
    "mlp": "mlp",
    "cnn": "cnn",
    "residual": Residual,
    "view": lambda shape, n: Viewed(shape, n, lambda x: x.view(x.size(0), -1)),
    "reshape by len": lambda shape, n: Viewed(shape, n, lambda x: x.reshape(len(x), -1)),
    "reshape by all sizes": lambda shape, n: Viewed(
        shape, n, lambda x: x.reshape(x.shape[0], x.shape[1] * x.shape[2] * x.shape[3])
    ),
    "average pooling": initialised(
        sequence(lambda: nn.AvgPool2d(3, 2, 1), lambda: nn.AdaptiveAvgPool2d(2), nn.Flatten, nn.Sigmoid)
    ),
    "activations": initialised(sequence(nn.Flatten, lambda: nn.Linear(768, 12), *ACTIVATIONS)),
    "layer normalisation": initialised(sequence(nn.Flatten, lambda: nn.Linear(768, 12), lambda: nn.LayerNorm(12))),
    "group normalisation": initialised(
        sequence(lambda: nn.Conv2d(3, 4, 3), lambda: nn.GroupNorm(2, 4), nn.ReLU, nn.Flatten)
    ),
}


def sent(model, rows, n_classes, *, n_check=60):
    """The model as ONNX, without a warning, compared on the first rows only."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return to_onnx(model, n_features=rows.shape[1], n_classes=n_classes, check_rows=rows[:n_check])


@pytest.mark.parametrize("name", MODULES)
def test_the_labels_agree_with_the_native_network(name):
    estimator = NeuralClassifier(MODULES[name], image=(16, 16, 3), epochs=4, learning_rate=0.01)
    model = fit_model(estimator, PIXELS[:150], BRIGHTEST[:150] * 2, rng=np.random.default_rng(0))
    graph = sent(model, PIXELS, 5)
    native = model.predict(PIXELS)
    assert len(np.unique(native)) > 1, "a constant would prove nothing"
    np.testing.assert_array_equal(run_with_probabilities(graph.data, PIXELS, 0)[0], native)
    np.testing.assert_array_equal(run_with_probabilities(graph.data, PIXELS[:1], 0)[0], native[:1])
    assert sent(model, PIXELS, 5).data == graph.data, "bytes differ"
    assert b"onnx::" not in graph.data
    assert b"torch" not in graph.data


def test_pixels_are_read_row_by_row_with_the_channels_last():
    """By hand: the class is the green value at row 1, column 2, minus its mean 10, over its deviation 4, above 0.5."""

    class Picks(nn.Module):
        def __init__(self, shape, n_outputs):
            super().__init__()
            assert shape == (3, 2, 4)
            self.bias = nn.Parameter(torch.tensor([0.5]))

        def forward(self, x):
            picked = x[:, 1, 1, 2]
            return torch.stack([0 * picked + self.bias, picked], 1)

    rows = np.zeros((4, 2, 4, 3), np.float32)
    rows[:, 1, 2, 1] = [11.9, 12.1, 13.0, 0.0]
    rows = rows.reshape(4, -1)
    rows[3] = 100.0
    rows[3, (1 * 4 + 2) * 3 + 1] = 11.9
    estimator = NeuralClassifier(Picks, image=(2, 4, 3), normalise=([0, 10, 0], [1, 4, 1]), classes=[0, 1])
    estimator.initialise(rows)
    graph = sent(FittedModel(estimator, np.array([7, 3]), 24), rows, 8)
    np.testing.assert_array_equal(run_with_probabilities(graph.data, rows, 0)[0], [7, 3, 3, 7])


def test_a_class_that_was_not_shown_is_never_the_answer():
    estimator = NeuralClassifier("mlp", epochs=2)
    (model,) = fit_group([TrainingTask(estimator, TABLE, SIGN * 2, np.random.default_rng(0))], 4)
    assert model.labels.tolist() == [0, 1, 2, 3]
    with torch.no_grad():
        model.estimator.network_[-1].bias[[1, 3]] += 1_000
    answers = run_with_probabilities(sent(model, TABLE, 4).data, TABLE, 0)[0]
    np.testing.assert_array_equal(answers, model.predict(TABLE))
    assert set(answers.tolist()) == {0, 2}


def test_a_network_that_saw_one_class_has_one_answer():
    estimator = NeuralClassifier("mlp", epochs=1).fit(TABLE, np.zeros(240, int))
    with torch.no_grad():
        estimator.network_[-1].bias[1] += 1_000
    graph = sent(FittedModel(estimator, np.array([2]), 6), TABLE, 3)
    assert run_with_probabilities(graph.data, TABLE, 0)[0].tolist() == [2] * 240


def test_a_network_of_float64_travels():
    model = fit_model(NeuralClassifier(dtype="float64", epochs=3), TABLE, SIGN, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(run_with_probabilities(sent(model, TABLE, 2).data, TABLE, 0)[0], model.predict(TABLE))


def test_a_network_behind_a_scaler_travels():
    wide = TABLE * 1_000 + 5_000
    model = fit_model(
        make_pipeline(StandardScaler(), NeuralClassifier(epochs=3)), wide, SIGN + 1, rng=np.random.default_rng(0)
    )
    graph = sent(model, wide, 3)
    np.testing.assert_array_equal(run_with_probabilities(graph.data, wide, 0)[0], model.predict(wide))
    assert sent(model, wide, 3).data == graph.data


def test_exporting_leaves_no_traces(capfd):
    model = fit_model(NeuralClassifier(epochs=1), TABLE, SIGN, rng=np.random.default_rng(0))
    model.estimator.network_.train()
    before = {name: value.clone() for name, value in model.estimator.network_.state_dict().items()}
    generator, threads = torch.get_rng_state(), torch.get_num_threads()
    logs = torch._C._jit_is_onnx_log_enabled()
    sent(model, TABLE, 2)
    assert all(part.training for part in model.estimator.network_.modules())
    assert all(torch.equal(value, before[name]) for name, value in model.estimator.network_.state_dict().items())
    assert torch.equal(torch.get_rng_state(), generator)
    assert torch.get_num_threads() == threads
    assert torch._C._jit_is_onnx_log_enabled() == logs
    assert capfd.readouterr() == ("", "")


class Odd(nn.Module):
    """A linear layer with something before it that does not travel."""

    def __init__(self, before):
        super().__init__()
        self.before, self.last = before, nn.Linear(6, 2)

    def forward(self, x):
        return self.last(self.before(x))


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (lambda x: torch.fft.fft(x).real, "operator aten::fft_fft, which ONNX does not have"),
        (lambda x: nn.functional.pad(x, (1, 1))[:, 1:-1], "operator Pad, which receivers do not run"),
        (lambda x: torch.cumsum(x, 1), "operator CumSum, which receivers do not run"),
        (lambda x: x * len(x), "another number of rows"),
        (lambda x: x + torch.arange(len(x))[:, None], "another number of rows"),
    ],
    ids=["no operator", "padding", "sums", "a factor", "a column"],
)
def test_a_module_that_does_not_travel_is_refused_in_words(before, words, capfd):
    estimator = NeuralClassifier(lambda shape, n_outputs: Odd(before), epochs=0).fit(TABLE, SIGN)
    with pytest.raises(ModelError, match=rf"(?s)NeuralClassifier cannot be .*{words}.*work:.*of linear, convolution"):
        sent(FittedModel(estimator, np.arange(2), 6), TABLE, 2)
    assert capfd.readouterr() == ("", ""), "something was printed"


def tied():
    """A network that copies its three columns, and rows of which the second is a tie but for rounding."""
    estimator = NeuralClassifier(lambda shape, n: nn.Linear(3, 3), normalise=None, classes=range(3))
    rows = np.array([[5, 1, 0], [4, 4.0001, 0], [4, 4.01, 0], [1e-5, 2e-5, -5]], np.float32)
    estimator.initialise(rows).set_weights([np.eye(3, dtype=np.float32), np.zeros(3, np.float32)])
    return FittedModel(estimator, np.arange(3), 3), rows


@pytest.mark.parametrize(
    ("labels", "differing"),
    [
        ([0, 1, 1, 1], 0),
        ([0, 0, 1, 1], 0),
        ([0, 0, 1, 0], 0),
        ([0, 0, 0, 0], 1),
        ([1, 0, 0, 0], 2),
        ([0, 2, 1, 1], 1),
        ([0, 1, 1, 2], 1),
    ],
)
def test_only_rows_that_are_tied_but_for_rounding_may_differ(labels, differing, monkeypatch):
    """By hand: of logits about 4, a gap of 1e-4 is within 1e-4 of their size and one of 1e-2 is not."""
    model, rows = tied()
    monkeypatch.setattr(
        exchange, "run_graph", lambda model, data, rows, n, **_: (np.array(labels), np.empty((0, n), np.float32))
    )
    if differing == 0:
        sent(model, rows, 3)
        return
    with pytest.raises(ModelError, match=f"another label on {differing} of 4 rows"):
        sent(model, rows, 3)


def test_a_tie_is_measured_by_the_size_of_logits_elsewhere_where_they_cancel():
    model, rows = tied()
    rows[3] = [1e-5, 2e-5, -1e-5]
    assert near_ties(model, rows, np.array([0, 0, 0, 0])).tolist() == [True, True, False, True]
    rows *= 1e-5
    assert near_ties(model, rows, np.array([0, 0, 0, 0])).tolist() == [True, True, False, True]


def test_a_signed_bundle_of_networks_comes_back_the_same():
    models = tuple(
        fit_model(
            NeuralClassifier(name, image=(16, 16, 3), epochs=2),
            PIXELS,
            BRIGHTEST,
            rng=np.random.default_rng(place),
        )
        for place, name in enumerate(("mlp", "cnn"))
    )
    key = new_key()
    bundle = Bundle("north", ("r", "g", "b"), models, "3fa9c1")
    data = pack(bundle, check_rows=PIXELS, key=key)
    assert data == pack(bundle, check_rows=PIXELS, key=key)
    expected = Expected(
        plan="3fa9c1", classes=("r", "g", "b"), n_features=768, parties=["north"], keys={"north": key.public}
    )
    received = unpack(data, source="north.zip", expected=expected)
    answers = run_models([model.data for model in received.models], PIXELS, n_classes=3)
    for model, answer in zip(models, answers, strict=True):
        np.testing.assert_array_equal(answer, model.predict(PIXELS))


def test_other_families_travel_without_torch():
    code = """
import sys, numpy as np
from sklearn.linear_model import LogisticRegression
from fedkt.models.base import fit_model
from fedkt.models.exchange import to_onnx
import fedkt.models.sandbox_child
X = np.arange(20, dtype=np.float32).reshape(10, 2)
model = fit_model(LogisticRegression(), X, [0] * 5 + [1] * 5, rng=np.random.default_rng(0))
to_onnx(model, n_features=2, n_classes=2, check_rows=X)
print("torch" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
