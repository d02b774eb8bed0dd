"""Which of expert voting and moments is served: by two numbers a party, and never by numbers that cannot be."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from fedkt import FedKTClassifier
from fedkt.algorithms.auto import REST, Auto
from fedkt.algorithms.class_sums import GRAM, MOMENTS
from fedkt.algorithms.expectation import ASIDE, expected_brier, linear_part, rows_aside, score
from fedkt.algorithms.heads import Sums
from fedkt.cli.runs import full_name
from fedkt.errors import ConfigurationError, ModelError
from fedkt.federation import Party, Server, simulate
from fedkt.models.features.head import FeatureHead

CLASSES = ("no", "yes")


def steps(count, seed):
    """Thresholds in three of thirty columns: a tree finds them, a linear score of waves of all columns hardly does."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 30))
    y = ((X[:, 0] > 0.3) & (X[:, 1] < 0.5)) | (X[:, 2] > 1)
    return X.astype(np.float32), y.astype(np.int64)


def slope(count, seed):
    """What is linear in the columns, and seldom certain."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 6))
    return X.astype(np.float32), (X.sum(axis=1) + rng.normal(size=count) > 0).astype(np.int64)


def federation(draw, *, parties=3, rows=600, public=900):
    """Parties of a table, their server, and fresh rows."""
    unlabelled, _ = draw(public, 0)
    members = []
    for number in range(1, parties + 1):
        X, y = draw(rows, number)
        members.append(Party(unlabelled, CLASSES, number, name=f"party {number}", X=X, y=y))
    return members, Server(unlabelled, CLASSES, 9), draw(1_000, 99)


@pytest.fixture(scope="module")
def sent_once():
    """What three parties have sent, their server, and fresh rows."""
    members, server, fresh = federation(steps)
    return Auto("tree").party_steps(members, None), server, fresh


def accuracy(final, fresh):
    return np.mean(final.models[0].predict(fresh[0]) == fresh[1])


def served(outcome):
    (note,) = [each for each in outcome.server.notes if each.startswith("Served is")]
    return note.split()[2].rstrip(",:")


def test_where_trees_know_more_experts_are_served_and_where_features_do_moments_are():
    for draw, name, least in ((steps, "fedkt-expert", 0.95), (slope, "fedkt-moments", 0.8)):
        members, server, fresh = federation(draw)
        outcome = simulate(Auto("tree"), members, server)
        assert served(outcome) == name
        assert accuracy(outcome.final, fresh) > least
        assert isinstance(outcome.final.models[0].estimator, FeatureHead) == (name == "fedkt-moments")
        assert "3 of 3 parties laid" in outcome.server.notes[0]


def test_a_party_sends_a_student_of_all_its_rows_their_sums_and_two_numbers(sent_once):
    bundles, *_ = sent_once
    members, *_ = federation(steps)
    for bundle, party in zip(bundles, members, strict=True):
        assert len(bundle.models) == 1
        assert sorted(bundle.arrays) == [GRAM, MOMENTS, REST]
        assert bundle.arrays[REST].shape == (2,)
        assert bundle.counts == tuple(np.bincount(party.y))
        assert bundle.arrays[MOMENTS][0].tolist() == list(bundle.counts)


def factorial(times):
    """Every pair of signs so often, and the features that see the first sign only."""
    rows = np.array(list(product((-1.0, 1.0), repeat=2)) * times)
    return rows, np.column_stack([np.ones(len(rows)), rows[:, 0]])


class Second:
    """A model that looks at the second sign, and is a little sure."""

    def predict(self, rows):
        return (rows[:, 1] > 0).astype(np.int64)


def test_the_two_numbers_are_those_of_what_the_features_do_not_see():
    rows, _ = factorial(25)
    y = (rows[:, 1] > 0).astype(np.int64)
    party = Party(rows, CLASSES, 0, name="north", X=rows, y=y)

    def features(some):
        return np.column_stack([np.ones(len(some)), some[:, 0]])

    aside = np.arange(40)
    # The student is certain, and right. Of its (0, 1) the features see (½, ½), and so are the shares of the classes:
    # the rest of a row is (−½, ½), as far as its label is from these shares. That agrees by ½, and is as large.
    agreement, size = score(party, aside, [Second()], features)
    assert agreement == pytest.approx(20, abs=1e-3)
    assert size == pytest.approx(20, abs=1e-3)
    other = replace(party, y=1 - y)
    assert score(other, aside, [Second()], features)[0] == pytest.approx(-20, abs=1e-3)


def test_what_is_linear_in_the_features_leaves_no_rest():
    _, features = factorial(25)
    said = features @ np.array([[0.5, 0.5], [0.2, -0.2]])
    weights, rest = linear_part(said, features)
    np.testing.assert_allclose(weights, [[0.5, 0.5], [0.2, -0.2]], atol=1e-4)
    assert rest < 1e-6


def test_the_expected_brier_score_is_that_of_what_is_said_stretched_as_is_best():
    rows, features = factorial(500)
    for place, believed, brier in (
        # What the features see needs no belief: said with less certainty than it has, it is as good as certain.
        (0, 0.0, 0.0),
        (1, 0.0, 0.5),
        # Said ±.3 where ±.5 is true: it is to be believed 5/3 times, and is then certain.
        (1, 5 / 3, 0.0),
        # Half of that explains a quarter of the score.
        (1, 5 / 6, 0.375),
    ):
        yes = 0.5 + 0.3 * rows[:, place]
        labels = np.eye(2)[(rows[:, place] > 0).astype(int)]
        sums = Sums(features.T @ labels, features.T @ features)
        found = expected_brier(np.column_stack([1 - yes, yes]), sums, features, believed)
        assert found == pytest.approx(brier, abs=5e-3)


def test_who_has_too_few_rows_or_one_class_has_no_say_and_with_nobody_moments_are_served():
    members, server, _ = federation(steps)
    few = replace(members[0], X=members[0].X[:39], y=members[0].y[:39])
    one = replace(members[1], X=members[1].X[members[1].y == 1], y=members[1].y[members[1].y == 1])
    outcome = simulate(Auto("tree"), [few, one], server)
    assert served(outcome) == "fedkt-moments"
    assert "no party could lay rows aside" in outcome.server.notes[0]
    assert [REST in bundle.arrays for bundle in outcome.bundles] == [False, False]
    for name in ("party 1", "party 2"):
        assert "lays no rows aside" in outcome.parties[name].notes[0]


def test_a_quarter_of_the_rows_is_laid_aside_by_the_partys_own_generator():
    members, *_ = federation(steps)
    rows = rows_aside(members[0])
    assert rows.tolist() == sorted(members[0].rng(ASIDE).permutation(600)[:150])
    assert rows.tolist() != rows_aside(members[1]).tolist()


@pytest.mark.parametrize(
    "numbers",
    [[np.nan, 1.0], [np.inf, 1.0], [1.0, -1.0], [0.0, 1201.0], [50.0, 2.0], [1.0, 1.0, 1.0], [[1.0, 1.0]]],
    ids=str,
)
def test_numbers_that_no_rows_have_do_not_count(sent_once, numbers):
    bundles, server, _ = sent_once
    server = replace(server, diary=type(server.diary)())
    auto, (first, *others) = Auto("tree"), bundles
    lie = replace(first, arrays={**first.arrays, REST: np.array(numbers)})
    final = auto.expert.server_step(replace(server, diary=type(server.diary)()), bundles).models[0]
    with_lie, without = auto.expect(server, [lie, *others], final), auto.expect(server, bundles, final)
    silent = replace(first, arrays={name: each for name, each in first.arrays.items() if name != REST})
    assert with_lie == auto.expect(server, [silent, *others], final)
    assert with_lie != without
    assert server.diary.notes == [
        "What party 'party 1' says of the rows it laid aside is not true of any rows, and does not count."
    ]


def test_where_one_way_has_nothing_to_go_by_the_other_is_served(sent_once):
    bundles, server, fresh = sent_once
    no_sums = [replace(each, arrays={REST: each.arrays[REST]}) for each in bundles]
    for sent, name in ((no_sums, "fedkt-expert"), ([replace(each, models=(Broken(),)) for each in bundles], "moments")):
        own = replace(server, diary=type(server.diary)())
        final = Auto("tree").server_step(own, sent)
        assert any("the only way that has a final model" in note and name in note for note in own.diary.notes)
        assert accuracy(final, fresh) > 0.45
    with pytest.raises(ModelError, match=r"fedkt-expert has no final model.*fedkt-moments has no final model"):
        Auto("tree").server_step(server, [replace(each, models=(Broken(),)) for each in no_sums])


class Broken:
    """A model that does not answer."""

    def predict(self, rows):
        raise RuntimeError("no answer")


def test_private_levels_are_refused_in_words():
    for level in ("L1", "L2"):
        with pytest.raises(ConfigurationError, match=f"At level {level} whatever is compared has a price"):
            Auto("tree", level=level).check()
        with pytest.raises(ConfigurationError, match="Choose moments at level L2"):
            FedKTClassifier(voting="auto", level=level).fit(*slope(100, 0))


def test_the_classifier_knows_it_and_says_what_was_served():
    X, y = slope(900, 1)
    model = FedKTClassifier("tree", voting="auto", n_parties=3, random_state=0).fit(X, y)
    assert model.report_.algorithm == "fedkt-auto"
    assert any(note.startswith("Served is fedkt-moments") for note in model.report_.notes)
    assert model.score(*slope(500, 2)) > 0.8


def test_its_short_name_is_understood():
    assert [full_name(name) for name in ("auto", "expert", "fedkt", "solo", "nobody")] == [
        "fedkt-auto", "fedkt-expert", "fedkt", "solo", "nobody"
    ]  # fmt: skip
