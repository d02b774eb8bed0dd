"""Digests of content: whatever differs in anything has another one, and what cannot be described has none."""

from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from fedkt.errors import ConfigurationError
from fedkt.models.catalogue import MODELS, as_estimator
from fedkt.models.content import Undescribed, content_digest, rows_digest

TABLE = np.arange(6.0).reshape(2, 3)


def changed(place, value):
    table = TABLE.copy()
    table[place] = value
    return table


DIFFERENT = [
    (),
    (None,),
    (0,),
    (0.0,),
    (-0.0,),
    (False,),
    ("",),
    ("0",),
    (b"0",),
    ("a", "b"),
    ("ab",),
    (("a", "b"),),
    (["a", "b"],),
    ({"a": "b"},),
    ({1: "b"},),
    ({"1": "b"},),
    (np.float64(0),),
    (np.float32(0),),
    (TABLE,),
    (changed((1, 2), 5.000000000000001),),
    (TABLE.astype(np.float32),),
    (TABLE.reshape(3, 2),),
    (np.asfortranarray(TABLE),),
    (csr_array(TABLE),),
    (TABLE[:0],),
    (TABLE[:0, :2],),
    (LogisticRegression(),),
    (LogisticRegression(C=2.0),),
    (LogisticRegression(class_weight={0: 2}),),
    (make_pipeline(StandardScaler(), LogisticRegression()),),
    (make_pipeline(StandardScaler(), LogisticRegression(C=2.0)),),
    (make_pipeline(StandardScaler(with_mean=False), LogisticRegression()),),
    (RandomForestClassifier(),),
    (RandomForestClassifier(random_state=1),),
]


def test_no_two_different_things_share_a_digest():
    digests = [content_digest(*each) for each in DIFFERENT]
    same = [(DIFFERENT[i], DIFFERENT[j]) for i, j in combinations(range(len(digests)), 2) if digests[i] == digests[j]]
    assert same == []


def test_the_same_content_has_the_same_digest_whoever_holds_it():
    assert [content_digest(*each) for each in DIFFERENT] == [content_digest(*each) for each in DIFFERENT]
    assert content_digest({"a": 1, "b": 2}) == content_digest({"b": 2, "a": 1})
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(C=2.0))
    again = make_pipeline(StandardScaler(), LogisticRegression(C=2.0))
    assert content_digest(pipeline) == content_digest(again)


def test_an_estimator_that_holds_more_than_its_parameters_is_another():
    fitted = StandardScaler().fit(TABLE)
    assert content_digest(fitted) != content_digest(StandardScaler())


def test_rows_are_the_same_however_they_lie_in_memory():
    assert rows_digest(np.asfortranarray(TABLE)) == rows_digest(TABLE)
    assert rows_digest(TABLE[:, :2]) == rows_digest(TABLE[:, :2].copy())


class Own(LogisticRegression):
    """A stranger's class, of which no version is known."""


@pytest.mark.parametrize(
    "value",
    [
        len,
        LogisticRegression,
        Own(),
        make_pipeline(FunctionTransformer(np.abs), LogisticRegression()),
        object(),
        np.array([object()]),
        np.random.default_rng(0),
        {"a": {1, 2}},
        np.ma.masked_array([1.0, 2.0], [True, False]),
    ],
    ids=[
        "function",
        "class",
        "own class",
        "function inside",
        "object",
        "array of objects",
        "generator",
        "set inside",
        "mask",
    ],
)
def test_what_cannot_be_described_has_no_digest(value):
    with pytest.raises(Undescribed):
        content_digest(value)


@pytest.mark.parametrize("name", MODELS)
def test_the_catalogues_models_are_described(name):
    try:
        one, other = as_estimator(name), as_estimator(name)
    except ConfigurationError as reason:
        pytest.skip(str(reason))
    assert content_digest(one) == content_digest(other)
