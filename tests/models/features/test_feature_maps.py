"""Feature maps: the same for everybody, in numpy and as a graph, and no row weighs more than it may."""

from functools import partial

import numpy as np
import pytest
from onnx import ModelProto
from scipy.stats import rankdata
from sklearn.preprocessing import StandardScaler

from fedkt.errors import DataError, ModelError
from fedkt.models.base import FittedModel
from fedkt.models.exchange import run_with_probabilities
from fedkt.models.features.feature_map import LARGEST_ROW, main_directions
from fedkt.models.features.head import FeatureHead
from fedkt.models.features.images import CONTRAST, SILENCE, Patches, image_map, pooling_of
from fedkt.models.features.tables import Standardise, ranks_of, table_map
from fedkt.models.features.whitened import whitened_map
from fedkt.models.final_exchange import to_final_onnx
from fedkt.models.onnx_rules import OPERATORS, Limits
from fedkt.models.onnx_walk import walk
from fedkt.models.reading import Reading
from fedkt.models.sandbox_child import open_session

RNG = np.random.default_rng(0)
PLAIN = RNG.normal(size=(200, 4)) * [1, 5, 0.1, 1] + [0, 100, 0, 0]
PLAIN[:, 3] = 7.0  # says nothing
SKEWED = np.column_stack([np.exp(2 * RNG.normal(size=200)), RNG.integers(0, 2, 200), RNG.exponential(size=200)])
GREY = RNG.integers(0, 17, size=(60, 64)).astype(float)
COLOUR = RNG.integers(0, 256, size=(40, 12 * 12 * 3)).astype(float)

MAPS = {
    "table": (lambda: table_map(PLAIN, seed=1), PLAIN),
    "skewed table": (lambda: table_map(SKEWED, seed=1), SKEWED),
    "table, private": (lambda: table_map(SKEWED, seed=1, private=True), SKEWED),
    "grey": (lambda: image_map(GREY, (8, 8, 1), seed=1, filters=12), GREY),
    "colour": (lambda: image_map(COLOUR, (12, 12, 3), seed=1, filters=12), COLOUR),
    "table, whitened": (lambda: whitened_map(SKEWED, None, seed=1, width=3), SKEWED),
    "grey, whitened": (lambda: whitened_map(GREY, (8, 8, 1), seed=1, width=6), GREY),
    "grey, private": (lambda: image_map(GREY, (8, 8, 1), seed=1, private=True, filters=12), GREY),
}


@pytest.fixture(scope="module", params=MAPS)
def features_and_rows(request):
    make, rows = MAPS[request.param]
    return make(), rows


def odd_rows(rows):
    """Rows, and what no row should be."""
    odd = np.repeat(rows[:1], 6, axis=0)
    for place, value in enumerate((np.nan, np.inf, -np.inf, 1e30, -1e30, 0.0)):
        odd[place] = value
    return np.concatenate([rows, odd, 3 * rows, -rows])


def test_the_first_feature_is_one_and_the_others_are_no_longer_than_one(features_and_rows):
    features, rows = features_and_rows
    phi = features(odd_rows(rows))
    assert phi.shape == (3 * len(rows) + 6, features.width)
    assert np.isfinite(phi).all()
    assert (phi[:, 0] == 1).all()
    lengths = np.linalg.norm(phi[:, 1:], axis=1)
    assert lengths.max() <= 1
    assert np.linalg.norm(phi, axis=1).max() <= LARGEST_ROW
    # The limit is one that public rows have: they are not all tiny.
    assert lengths[: len(rows)].max() > 0.99


def test_the_graph_says_what_numpy_says(features_and_rows):
    features, rows = features_and_rows
    (answer,) = open_session(features.onnx).run(["features"], {"rows": rows.astype(np.float32)})
    np.testing.assert_allclose(answer, features(rows), atol=2e-4)


def test_the_graph_keeps_the_rules_for_graphs_that_are_received(features_and_rows):
    features, _ = features_and_rows
    bounds = Limits()
    walk(features.onnx, max_fields=bounds.fields, max_elements=bounds.elements, max_modes=bounds.tree_nodes)
    nodes = ModelProto.FromString(features.onnx).graph.node
    assert {f"{each.domain}.{each.op_type}".lstrip(".") for each in nodes} <= OPERATORS


@pytest.mark.parametrize("name", ["table", "grey"])
def test_the_same_public_rows_make_the_same_map_and_others_another(name):
    make, rows = MAPS[name]
    assert make().digest == make().digest
    other = table_map(rows, seed=2) if name == "table" else image_map(rows, (8, 8, 1), seed=2, filters=12)
    assert other.digest != make().digest


def test_a_gap_is_the_public_mean():
    features = table_map(PLAIN, seed=1)
    gap, mean = PLAIN[:1].copy(), PLAIN[:1].copy()
    gap[0, 1], mean[0, 1] = np.nan, PLAIN[:, 1].mean()
    np.testing.assert_allclose(features(gap), features(mean), atol=1e-6)


def test_columns_are_standardised_as_scikit_learn_does_it_and_end_at_four():
    layer = table_map(PLAIN, seed=1).layers[0]
    assert isinstance(layer, Standardise)
    expected = StandardScaler().fit(PLAIN).transform(PLAIN)[:, :3]
    np.testing.assert_allclose(layer(PLAIN.astype(np.float32)), np.clip(expected, -4, 4), atol=1e-4)


def test_ranks_are_those_of_the_public_rows():
    numbers = RNG.exponential(size=(1000, 1))
    found = ranks_of(numbers)(numbers)[:, 0]
    assert np.corrcoef(found, rankdata(numbers[:, 0]))[0, 1] > 0.9995
    assert found.std() == pytest.approx(1.0, abs=0.01)


def test_columns_that_are_not_skewed_have_no_ranks():
    assert ranks_of(RNG.uniform(size=(1000, 3))) is None
    assert ranks_of(RNG.integers(0, 2, size=(1000, 3)).astype(float)) is None


def test_what_filters_say_is_what_plain_loops_say():
    image, size = (5, 5, 1), 2
    kernel = RNG.normal(size=(3, size * size))
    kernel -= kernel.mean(axis=1, keepdims=True)
    layer = Patches(image, 10.0, 1, kernel, np.array([0.1, -0.2, 0.7]), pooling_of(4, 4))
    row = RNG.uniform(0, 10, size=(1, 25))
    picture, parts = row.reshape(5, 5) / 10, np.zeros((2, 3, 4, 4))
    for a in range(4):
        for b in range(4):
            patch = picture[a : a + size, b : b + size].ravel()
            for f in range(3):
                said = kernel[f] @ patch / np.sqrt(patch.var() + CONTRAST) + layer.bias[f]
                parts[:, f, a, b] = max(said - SILENCE, 0), max(-said - SILENCE, 0)
    np.testing.assert_allclose(layer(row)[0], np.sqrt(parts).ravel(), atol=1e-6)


def test_every_part_of_a_picture_is_a_mean_of_its_places():
    pooling = pooling_of(22, 9)
    assert pooling.shape == (22 * 9, 16)
    np.testing.assert_allclose(pooling.sum(axis=0), 1, rtol=1e-6)
    assert (pooling.sum(axis=1) > 0).all()


def test_rows_in_which_nothing_varies_are_refused_in_words():
    with pytest.raises(DataError, match="Every column of the public rows is constant"):
        table_map(np.ones((20, 3)), seed=1)


@pytest.mark.parametrize("rows", [GREY[:1], np.repeat(GREY[:1], 3, axis=0)], ids=["one", "all the same"])
@pytest.mark.parametrize(
    "make_map",
    [partial(image_map, private=False), partial(image_map, private=True), partial(whitened_map, width=3)],
    ids=["L0", "L2", "L1"],
)
def test_pictures_that_do_not_differ_are_refused_in_words(make_map, rows):
    """Their patches differ, so filters can be made, but no direction tells one picture from another."""
    with pytest.raises(DataError, match="No public row differs from another"):
        make_map(rows, (8, 8, 1), seed=1)


def test_a_head_travels_with_its_probabilities_and_answers_in_the_agreed_classes(features_and_rows):
    features, rows = features_and_rows
    rng = np.random.default_rng(3)
    head = FeatureHead(features, rng.normal(size=(features.width, 2)) * 3, np.array([0.2, -0.2]))
    model = FittedModel(head, np.array([0, 2]), features.n_features)
    onnx = to_final_onnx(model, n_features=features.n_features, n_classes=3, check_rows=rows)
    assert onnx.soft
    label, probability = run_with_probabilities(onnx.data, rows.astype(np.float32), 3)
    logits = features(rows) @ head.weights + head.offsets
    second = 1 / (1 + np.exp(logits[:, 0] - logits[:, 1]))
    np.testing.assert_allclose(probability, np.column_stack([1 - second, 0 * second, second]), atol=1e-3)
    sure = np.abs(second - 0.5) > 1e-2
    np.testing.assert_array_equal(label[sure], np.where(second > 0.5, 2, 0)[sure])


@pytest.mark.parametrize(("rows", "image"), [(SKEWED, None), (GREY, (8, 8, 1))], ids=["table", "grey"])
def test_whitened_features_of_public_rows_are_uncorrelated_and_of_variance_one(rows, image):
    features = whitened_map(rows, image, seed=1, width=3)
    numbers = features(rows)[:, 1:] * features.limit
    np.testing.assert_allclose(np.cov(numbers.T), np.eye(3), atol=1e-3)
    np.testing.assert_allclose(numbers.mean(axis=0), 0, atol=1e-3)


def test_few_rows_have_the_directions_that_their_covariance_has():
    rows = np.random.default_rng(4).normal(size=(30, 50)) * np.linspace(1, 5, 50)
    away = rows - rows.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(rows.T))
    variances, directions = main_directions(away, 12)
    np.testing.assert_allclose(variances, values[::-1][:12])
    np.testing.assert_allclose(np.abs((vectors[:, ::-1][:, :12] * directions).sum(axis=0)), 1)
    assert main_directions(away, 40)[1].shape == (50, 29)
    assert main_directions(np.repeat(away[:3], 4, axis=0) - away[:3].mean(axis=0), 40)[1].shape == (50, 2)


def test_fewer_directions_are_the_first_of_more():
    few, many = (whitened_map(GREY, (8, 8, 1), seed=1, width=width) for width in (3, 8))
    np.testing.assert_allclose(few(GREY)[:, 1:] * few.limit, many(GREY)[:, 1:4] * many.limit, rtol=1e-3, atol=1e-3)


def test_a_head_travels_with_labels_that_were_moved():
    features = whitened_map(PLAIN, None, seed=1, width=3)
    head = FeatureHead(features, np.outer([0, 1, 1, 1], [-3.0, 3.0]), np.zeros(2))
    model = FittedModel(head, np.array([0, 1]), features.n_features, Reading(factors=np.array([1.0, 0.2])))
    onnx = to_final_onnx(model, n_features=features.n_features, n_classes=2, check_rows=PLAIN)
    assert onnx.soft
    label, probability = run_with_probabilities(onnx.data, PLAIN.astype(np.float32), 2)
    scores = features(PLAIN) @ head.weights
    second = 1 / (1 + np.exp(scores[:, 0] - scores[:, 1]))
    np.testing.assert_allclose(probability[:, 1], second, atol=1e-3)
    # One to five is where the weighted classes are even.
    sure = np.abs(second - 5 / 6) > 1e-2
    assert ((second > 0.5) & (second < 5 / 6))[sure].any()
    np.testing.assert_array_equal(label[sure], (second > 5 / 6)[sure])


def test_a_head_is_not_trained_on_rows():
    features = table_map(PLAIN, seed=1)
    with pytest.raises(ModelError, match="solves it from sums"):
        FeatureHead(features, np.zeros((features.width, 2)), np.zeros(2)).fit(PLAIN, np.zeros(200))
