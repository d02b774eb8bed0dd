"""Expert voting without counts: students that say which rows are not their party's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import multivariate_normal
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier

from fedkt import FedKTClassifier
from fedkt.algorithms import FedKT
from fedkt.algorithms.voting.background import claimed_rows
from fedkt.bundle import Bundle, Expected, pack, unpack
from fedkt.errors import BundleError, ConfigurationError, ModelError, UnsuitedModel
from fedkt.federation import Party, Server, simulate
from fedkt.models.base import FittedModel
from fedkt.pooling import normalise_rows
from fedkt.privacy import Laplace
from fedkt.votes import NO_VOTE
from skewed_parties import CLASSES, accuracy, background, fresh, labels_here_and_from_afar, skewed_parties

FOREST = RandomForestClassifier(20, max_depth=6)
EXPECTED = Expected(plan="", classes=CLASSES, n_features=2, soft=True)


@pytest.fixture(scope="module")
def skewed():
    return skewed_parties()


def test_with_perfect_students_the_sum_of_their_claims_is_the_posterior_of_the_pooled_rows():
    """Whatever a class looks like at each party (feature shift), and whatever the public rows are."""
    rng = np.random.default_rng(0)
    n_parties, n_classes, n_public = 4, 3, 200
    counts = rng.integers(1, 500, (n_parties, n_classes))
    centres = rng.normal(0, 1.5, (n_parties, n_classes, 2))
    public_centre = np.array([0.5, -0.5])
    x = rng.normal(public_centre, 1.2, (n_public, 2))
    densities = np.array(
        [[multivariate_normal.pdf(x, centres[i, y], 0.8) for y in range(n_classes)] for i in range(n_parties)]
    ).transpose(0, 2, 1)
    joint = counts[:, None, :] * densities
    public = n_public * multivariate_normal.pdf(x, public_centre, 1.2**2)
    said = [normalise_rows(np.column_stack([each, public])) for each in joint]
    # Rows that no honest sureness bound touches.
    kept = np.min([each[:, -1] for each in said], axis=0) > 2e-3
    assert kept.sum() > 50
    together = normalise_rows(np.sum([claimed_rows(each) for each in said], axis=0))
    assert np.allclose(together[kept], normalise_rows(joint.sum(axis=0))[kept], atol=1e-9)


@pytest.mark.parametrize("family", ["logistic", FOREST], ids=str)
def test_who_knows_a_class_is_not_outvoted(skewed, family):
    plain, _ = accuracy(FedKT(family, partitions=1, subsets=1), skewed)
    weighed, outcome = accuracy(background(family), skewed)
    assert weighed > plain + 0.02
    assert all(bundle.counts is None and len(bundle.models) == 1 for bundle in outcome.bundles)
    weights = outcome.server.vote.weights
    assert sum(weights.values()) == pytest.approx(1)
    assert {"p0", "p1"} == set(sorted(weights, key=lambda name: -weights[name])[:2])


def test_networks_learn_whose_a_row_is(skewed):
    pytest.importorskip("torch")
    found, outcome = accuracy(background("mlp"), skewed)
    assert found > 0.75
    said = outcome.bundles[0].models[0].predict_proba(skewed[1].public, 4)
    assert (said[:, 3] > 0.5).any()
    assert (said[:, 3] < 0.5).any()


def test_two_classes_are_enough():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 1200)
    X = (np.where(y, 1.2, -1.2)[:, None] + rng.normal(0, 1, (1200, 2))).astype(np.float32)
    # One party has the rare class to itself.
    owner = np.where((y == 1) & (rng.random(1200) < 0.97), 0, rng.integers(1, 6, 1200))
    public = (np.where(rng.integers(0, 2, 300), 1.2, -1.2)[:, None] + rng.normal(0, 1, (300, 2))).astype(np.float32)
    truth = public.sum(axis=1) > 0
    model = FedKTClassifier(FOREST, voting="expert-no-counts", random_state=0)
    model.fit(X, y, parties=owner, public=public)
    assert np.mean(model.predict(public) == truth) > 0.8
    plain = FedKTClassifier(FOREST, voting="consistent", random_state=0).fit(X, y, parties=owner, public=public)
    assert np.mean(plain.predict(public) == truth) < 0.7


@pytest.mark.parametrize("family", ["logistic", FOREST, "boosting"], ids=str)
def test_the_server_makes_the_same_of_students_that_have_travelled(skewed, family):
    one, two, _ = labels_here_and_from_afar(background(family), skewed, background_class=True)
    assert np.mean(one == two) > 0.995, "up to rounding"


def test_a_bundle_of_another_voting_is_refused(skewed):
    parties, server, _ = skewed
    own = background("tree").party_step(fresh(parties)[1], None)
    packed = pack(own, check_rows=server.public)
    with pytest.raises(BundleError, match="refused"):
        unpack(packed, source="x", expected=EXPECTED)
    other = FedKT("tree", partitions=1).party_step(fresh(parties)[1], None)
    with pytest.raises(BundleError, match="does not say how sure it is"):
        unpack(pack(other, check_rows=server.public), source="x", expected=replace(EXPECTED, background_class=True))
    three = pack(Bundle("p1", CLASSES, other.models, soft=True), check_rows=server.public)
    with pytest.raises(BundleError, match="refused"):
        unpack(three, source="x", expected=replace(EXPECTED, background_class=True))


def test_a_student_that_only_names_a_class_is_not_heard(skewed):
    parties, server, _ = skewed
    bundles = [background("logistic").party_step(party, None) for party in fresh(parties)]
    bundles[3] = replace(bundles[3], models=(FittedModel(Mute(), np.arange(4), 2),))
    listening = Server(server.public, CLASSES, 99)
    background("logistic").server_step(listening, bundles)
    assert any("'p3' does not vote" in note and "how sure" in note for note in listening.diary.notes)
    with pytest.raises(ModelError, match="how sure it is"):
        pack(bundles[3], check_rows=server.public)


class Mute:
    """A student that only names a class."""

    def predict(self, X):
        return np.zeros(len(X), dtype=np.int64)


def test_who_claims_more_rows_than_it_may_have_is_scaled_down(skewed):
    parties, server, truth = skewed
    honest = [background("logistic").party_step(party, None) for party in fresh(parties)]
    boast = [*honest[:7], replace(honest[7], models=(FittedModel(Boaster(), np.arange(4), 2),))]

    def heard(sent, **settings):
        side = Server(server.public, CLASSES, 99)
        background("logistic", **settings).server_step(side, sent)
        (labels,) = side.diary.vote.labels
        return np.mean(labels[1] == truth), side.diary

    bound = {"most_rows": {party.name: len(party.y) for party in parties}}
    (fooled, loud), (kept, quiet) = heard(boast), heard(boast, **bound)
    assert any("'p7' claims by its student" in note for note in loud.notes)
    assert fooled < 0.6 < kept
    assert not any("'p7' claims by its student" in note for note in quiet.notes)
    assert kept > heard(honest)[0] - 0.1


class Boaster:
    """A student to whom every row is its own, and of the last class."""

    classes_ = np.arange(4)

    def predict_proba(self, X):
        return np.tile([0.0, 0.0, 1.0, 0.0], (len(X), 1))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"level": "L1", "noise": Laplace(0.1)}, "one party's vote"),
        ({"level": "L2", "noise": Laplace(0.1)}, "adds no noise"),
        ({"subsets": 5}, "one subset"),
        ({"partitions": 2}, "one partition"),
    ],
)
def test_what_it_cannot_do_is_refused(settings, why):
    with pytest.raises(ConfigurationError, match=why):
        background("tree", **settings).check()


def test_a_family_without_probabilities_is_refused_in_words(skewed):
    with pytest.raises(UnsuitedModel, match=r"'p0'.*family SVC does not say how sure"):
        background("svm").party_step(fresh(skewed[0])[0], None)
    with pytest.raises(ConfigurationError, match=r"'p0'.*KNeighborsClassifier cannot learn"):
        background(KNeighborsClassifier()).party_step(fresh(skewed[0])[0], None)


@pytest.mark.parametrize("final", ["logistic", "mlp"])
def test_rows_that_nobody_claims_are_left_out(skewed, final):
    if final == "mlp":
        pytest.importorskip("torch")
    parties, server, _ = skewed
    bundles = [background("logistic").party_step(party, None) for party in fresh(parties)[:2]]
    lost = np.arange(len(server.public)) % 3 == 0

    def heard(unclaimed):
        sent = [
            replace(each, models=(FittedModel(Without(each.models[0], unclaimed), np.arange(4), 2),))
            for each in bundles
        ]
        side = Server(server.public, CLASSES, 99)
        background("logistic", final=final).server_step(side, sent)
        return side.diary

    diary = heard(lost)
    ((_, labels),) = diary.vote.labels
    assert np.array_equal(labels == NO_VOTE, lost)
    assert any(f"{lost.sum()} public rows are like no party's" in note for note in diary.notes)
    with pytest.raises(ModelError, match="of every public row"):
        heard(np.ones_like(lost))


class Without:
    """A student that is sure that some rows are not its party's."""

    def __init__(self, model, rows):
        self.model, self.rows, self.classes_ = model, rows, np.arange(4)

    def predict(self, X):
        return self.predict_proba(X).argmax(axis=1)

    def predict_proba(self, X):
        said = self.model.predict_proba(X, 4)
        said[self.rows] = [0, 0, 0, 1]
        return said


def test_dense_rows_go_with_sparse_public_ones(skewed):
    parties, server, _ = skewed
    dense, mixed = (
        [replace(party, public=kind(party.public)) for party in fresh(parties)[:2]] for kind in (np.array, csr_array)
    )
    said = [
        [background("tree").party_step(party, None).models[0].predict(server.public) for party in each]
        for each in (dense, mixed)
    ]
    assert np.array_equal(*said)


@pytest.mark.parametrize("n_public", [1, 2, 40])
def test_tiny_parties_take_part(skewed, n_public):
    parties, server, _ = skewed
    public = server.public[:n_public]
    tiny = Party(public, CLASSES, 1, name="tiny", X=parties[0].X[:1], y=parties[0].y[:1])
    small = Party(public, CLASSES, 2, name="small", X=parties[3].X[:30:10], y=parties[3].y[:30:10])
    for family in ("forest", "logistic"):
        outcome = simulate(background(family), [tiny, replace(small, shelf={})], Server(public, CLASSES, 3))
        assert set(outcome.final.models[0].predict(public)) <= set(CLASSES)
        tiny.shelf.clear()


def test_a_finished_student_is_not_trained_again(skewed):
    party = fresh(skewed[0])[0]
    first = background("tree").party_step(party, None)
    again = background(RandomForestClassifier()).party_step(party, None)
    assert again.models[0] is first.models[0]
