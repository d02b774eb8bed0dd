"""FedKT with expert voting: who is weighed how, what is sent, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from fedkt.algorithms import FedKT
from fedkt.algorithms.calibration import count_noise, noise_for_epsilon
from fedkt.algorithms.soft_lesson import learn_all
from fedkt.algorithms.voting import Expert
from fedkt.algorithms.voting.weights import note_weights
from fedkt.bundle import Bundle, Expected, pack, unpack
from fedkt.errors import BundleError, ConfigurationError, ModelError, PrivacyError
from fedkt.federation import Party, Server, seed_for, simulate
from fedkt.models.base import FittedModel, fit_model
from fedkt.models.catalogue import as_estimator
from fedkt.privacy import ConfidentGaussian, Gaussian, Laplace, Ledger, Release, price_together
from fedkt.privacy.accountant.gdp import from_mu
from fedkt.privacy.gaussian import GaussianCounts
from skewed_parties import CLASSES, accuracy, expert, fresh, labels_here_and_from_afar, roles_of, skewed_parties


@pytest.fixture(scope="module")
def skewed():
    return skewed_parties()


def test_who_knows_a_class_is_not_outvoted(skewed):
    plain, _ = accuracy(FedKT("logistic", partitions=1, subsets=1), skewed)
    weighed, outcome = accuracy(expert("logistic"), skewed)
    assert weighed > plain + 0.04
    weights = outcome.server.vote.weights
    assert sum(weights.values()) == pytest.approx(1)
    assert {"p0", "p1"} == set(sorted(weights, key=lambda name: -weights[name])[:2])


def test_a_class_that_nobody_has_gives_nobody_weight():
    """Shares of such a class are even; a party of three rows would seem to have a third of it."""
    server = Server(np.zeros((4, 2)), ("ill", "well", "odd"), 0)
    parties = [Bundle(name, ("ill", "well", "odd"), ()) for name in ("north", "south", "tiny")]
    note_weights(server, parties, np.array([[60, 40, 0], [40, 57, 0], [0, 3, 0]]), "says it has")
    weights, largest = (server.diary.vote.weights, server.diary.vote.largest_shares)
    assert weights["tiny"] == pytest.approx(0.015)
    assert largest["tiny"] == ["well", pytest.approx(0.03)]
    assert sum(weights.values()) == pytest.approx(1)


@pytest.mark.parametrize("family", ["logistic", "forest", "svm"])
def test_counts_that_a_student_was_not_taught_from_are_noticed(skewed, family):
    """A party may not have more rows than agreed on, but it could say that they are all of one class."""
    parties, server, _ = skewed
    algorithm = expert(family)
    honest = [algorithm.party_step(party, None) for party in fresh(parties)]
    liar = honest[2]
    turned = replace(liar, counts=tuple(sum(liar.counts) * (each == min(liar.counts)) for each in liar.counts))
    for sent, noticed in ((honest, False), ([*honest[:2], turned, *honest[3:]], True)):
        listening = Server(server.public, CLASSES, 0)
        algorithm.server_step(listening, sent)
        notes = [note for note in listening.diary.notes if "do not fit what their students say" in note]
        assert bool(notes) is noticed
        assert not noticed or f"those of {liar.sender!r} by" in notes[0]


def saying(probability, **more):
    """A party of 50 rows of each class whose student finds the first class so probable on every row."""
    labels = np.arange(2000) >= round(2000 * probability)
    student = fit_model(DummyClassifier(), np.zeros((2000, 2)), labels, rng=np.random.default_rng(0))
    return Bundle(classes=("ill", "well"), models=(student,), counts=(50, 50), soft=True, **more)


@pytest.mark.parametrize(
    ("probability", "misfit"),
    [(0.359, None), (0.341, "'west' do not fit what their students say, those of 'west' by 31%"), (0.26, "by 36%")],
)
def test_counts_further_than_three_tenths_from_what_a_student_says_are_named_and_nearer_ones_are_not(
    probability, misfit
):
    """Of equal counts all shares are a third, so the pooled posterior is the mean, and what each party should say.

    Beside two that say 0.8, who says 0.8 − d is 2d/3 from the mean and they are d/3 from it.
    """
    listening = Server(np.zeros((4, 2)), ("ill", "well"), 0)
    honest = [saying(0.8, sender=name) for name in ("north", "south")]
    expert("logistic").server_step(listening, [*honest, saying(probability, sender="west")])
    notes = [note for note in listening.diary.notes if "do not fit" in note]
    assert len(notes) == (misfit is not None)
    assert not notes or misfit in notes[0]
    assert not notes or "'north'" not in notes[0]


def test_a_party_whose_teachers_weigh_classes_is_not_accused():
    """Weights of classes are undone as well as can be, and what is left is nobody's boast."""
    listening = Server(np.zeros((4, 2)), ("ill", "well"), 0)
    honest = [saying(0.8, sender=name) for name in ("north", "south")]
    expert("logistic").server_step(listening, [*honest, saying(0.26, sender="west", weighted=True)])
    assert not any("do not fit" in note for note in listening.diary.notes)


def test_students_that_only_name_a_class_are_weighed_too(skewed):
    plain, _ = accuracy(FedKT("svm", partitions=1, subsets=1), skewed)
    weighed, _ = accuracy(expert("svm"), skewed)
    assert not hasattr(as_estimator("svm"), "predict_proba")
    assert weighed > plain + 0.02


def test_networks_are_asked_how_sure_they_are(skewed, monkeypatch):
    pytest.importorskip("torch")
    from fedkt.algorithms import final

    asked, fitted = [], final.fit_group
    monkeypatch.setattr(final, "fit_group", lambda problems, n: asked.extend(problems) or fitted(problems, n))
    found, _ = accuracy(expert("mlp"), skewed)
    assert found > 0.8
    (labels,) = (problem.shares for problem in asked)
    assert np.allclose(labels.sum(axis=1), 1)
    assert (labels.max(axis=1) < 0.999).any()


@pytest.mark.parametrize("family", ["logistic", "forest", "mlp"])
def test_students_learn_how_sure_their_teachers_are(family):
    """Where chance decides among three classes, one student says so and the other names the commonest one."""
    if family == "mlp":
        pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 2)).astype(np.float32), rng.choice(3, 600, p=(0.5, 0.3, 0.2))
    party = Party(rng.normal(size=(300, 2)).astype(np.float32), CLASSES, seed_for(0, "p"), name="p", X=X, y=y)
    sure = expert(family).party_step(replace(party, shelf={}), None).models[0].predict_proba(party.public, 3)
    named = FedKT(family, teacher=family, partitions=1, subsets=1).party_step(replace(party, shelf={}), None).models[0]
    assert np.abs(sure.mean(axis=0) - [0.5, 0.3, 0.2]).max() < 0.05
    assert named.predict_proba(party.public, 3).mean(axis=0)[0] > 0.7


def test_only_what_was_agreed_on_is_sent(skewed):
    parties, server, _ = skewed
    party = fresh(parties)[1]
    sent = expert("tree").party_step(party, None)
    assert sent.counts == (400, 20, 20)
    assert len(sent.models) == 1
    assert FedKT("tree").party_step(fresh(parties)[1], None).counts is None
    packed = pack(sent, check_rows=server.public)
    counted = Expected(plan="", classes=CLASSES, n_features=2, soft=True, counts=True)
    bare = replace(counted, counts=False)
    assert unpack(packed, source="x", expected=counted).counts == sent.counts
    with pytest.raises(BundleError, match="nobody asked for"):
        unpack(packed, source="x", expected=bare)
    plain = pack(Bundle("p1", CLASSES, sent.models), check_rows=server.public)
    with pytest.raises(BundleError, match="does not tell how many rows"):
        unpack(plain, source="x", expected=counted)


@pytest.mark.parametrize("counts", [(1, 2), (1,) * 4], ids=["too few", "too many"])
def test_counts_that_do_not_fit_the_classes_are_refused(skewed, counts):
    parties, server, _ = skewed
    sent = expert("tree").party_step(fresh(parties)[1], None)
    packed = pack(Bundle("p1", sent.classes, sent.models, counts=counts), check_rows=server.public)
    with pytest.raises(BundleError, match="counts rows of"):
        unpack(packed, source="x", expected=Expected(plan="", classes=CLASSES, n_features=2, counts=True, soft=True))


@pytest.mark.parametrize("family", ["logistic", "tree", "svm"])
def test_the_server_makes_the_same_of_students_that_have_travelled(skewed, family):
    one, two, travelled = labels_here_and_from_afar(expert(family), skewed, counts=True)
    assert all(model.soft == (family != "svm") for each in travelled for model in each.models)
    assert np.mean(one == two) > 0.995, "up to rounding"


def test_one_party_that_only_votes_does_not_silence_the_others(skewed):
    parties, server, truth = skewed
    bundles = [expert("logistic").party_step(party, None) for party in fresh(parties)]
    voting = expert("svm").party_step(fresh(parties)[7], None)

    def right(sent):
        side = Server(server.public, CLASSES, 99)
        expert("logistic").server_step(side, sent)
        return np.mean(side.diary.vote.labels[0][1] == truth), side.diary.notes

    (all_soft, quiet), (mixed, told) = right(bundles), right([*bundles[:7], voting])
    assert mixed > all_soft - 0.02
    assert any("'p7' only name a class" in note for note in told)
    assert not any("only name a class" in note for note in quiet)


@pytest.mark.parametrize("numbers", [np.nan, 50.0, -0.2])
def test_numbers_that_are_no_probabilities_are_refused_here_as_from_afar(skewed, numbers):
    parties, server, _ = skewed
    bundles = [expert("logistic").party_step(party, None) for party in fresh(parties)]
    bundles[3] = replace(bundles[3], models=(FittedModel(Constant(numbers), np.arange(3), 2),))
    listening = Server(server.public, CLASSES, 99)
    expert("logistic").server_step(listening, bundles)
    assert any("'p3' does not vote" in note and "no probabilities" in note for note in listening.diary.notes)


class Constant:
    """A student that says the same number about everything."""

    classes_ = np.arange(3)

    def __init__(self, number):
        self.number = number

    def predict_proba(self, X):
        return np.full((len(X), 3), self.number)


def test_a_party_whose_student_fails_is_named_and_left_out(skewed):
    parties, server, _ = skewed
    bundles = [expert("logistic").party_step(party, None) for party in fresh(parties)]
    bundles[3] = replace(bundles[3], models=(FittedModel(Broken(), np.arange(3), 2),))
    listening = Server(server.public, CLASSES, 99)
    expert("logistic").server_step(listening, bundles)
    assert any("'p3' does not vote" in note for note in listening.diary.notes)
    assert "p3" not in listening.diary.vote.weights


class Broken:
    """A student that cannot answer."""

    def predict_proba(self, X):
        raise ValueError("no")


def test_a_single_teacher_is_of_its_students_family(skewed):
    parties, _, _ = skewed
    assert type(roles_of(expert("forest")).teacher).__name__ == "RandomForestClassifier"
    assert isinstance(roles_of(expert("forest", subsets=3)).teacher, DecisionTreeClassifier)
    assert isinstance(roles_of(expert("forest", teacher="tree")).teacher, DecisionTreeClassifier)
    own = replace(parties[0], model="forest")
    assert type(roles_of(expert("boosting", teacher="tree"), own.model).teacher).__name__ == "RandomForestClassifier"


@pytest.mark.parametrize(
    ("settings", "so"),
    [
        ({"model": "logistic"}, True),
        ({"model": "boosting"}, True),
        ({"model": "tree"}, True),
        ({"model": "mlp"}, True),
        ({"model": "forest"}, False),
        ({"model": "extra-trees"}, False),
        ({"model": "svm"}, False),
        ({"model": "naive-bayes"}, False),
        ({"model": KNeighborsClassifier()}, False),
        ({"model": "logistic", "teacher": "forest"}, False),
        ({"model": "forest", "student": "logistic"}, True),
        ({"model": "tree", "subsets": 3}, False),
        ({"model": "logistic", "level": "L2", "noise": Gaussian(4.0), "queries": 9}, False),
    ],
    ids=str,
)
def test_who_finds_a_class_about_as_probable_as_it_is(settings, so):
    if settings["model"] == "mlp":
        pytest.importorskip("torch")
    if settings["model"] == "boosting":
        pytest.importorskip("xgboost")
    algorithm = expert(**settings)
    assert algorithm.voting.calibrated(algorithm) is so
    assert algorithm.voting.calibrated(algorithm, "forest") is False


@pytest.mark.parametrize("voting", ["expert", "expert-no-counts"])
@pytest.mark.parametrize(("family", "moved"), [("logistic", False), ("tree", False), ("forest", True)])
def test_only_students_that_are_not_sure_enough_have_their_labels_pulled_back(voting, family, moved):
    """A class that is never the likelier one, and rightly so: logistic regression is left in peace."""
    rng = np.random.default_rng(0)

    def drawn(count):
        X = rng.normal(size=(count, 3)).astype(np.float32)
        return X, (rng.random(count) < 1 / (1 + np.exp(1.5 - 0.8 * X[:, 0]))).astype(np.int64)

    public, _ = drawn(600)
    own = {name: drawn(300) for name in "ab"}
    parties = [Party(public, (0, 1), seed_for(0, name), name=name, X=X, y=y) for name, (X, y) in own.items()]
    outcome = simulate(FedKT(family, voting=voting), parties, Server(public, (0, 1), 0))
    ((_, labels),) = outcome.server.vote.labels
    assert bool(np.mean(labels == 1) > 0.15) is moved
    assert any("pulled back" in note for note in outcome.server.notes) is moved


def test_a_family_that_cannot_learn_distributions_learns_labels(skewed):
    """Its students must not be worse for it: repeated rows under several labels ruin them."""
    model = KNeighborsClassifier(1)
    plain, _ = accuracy(FedKT(model, partitions=1, subsets=1), skewed)
    weighed, _ = accuracy(expert(model), skewed)
    assert weighed > plain


@pytest.mark.parametrize(
    ("teacher", "why"),
    [
        (lambda X: np.full((len(X), 3), np.nan), "no numbers"),
        (lambda X: (_ for _ in ()).throw(NotImplementedError("later")), "NotImplementedError: later"),
    ],
    ids=["NaN", "raises"],
)
def test_a_teacher_that_does_not_say_how_sure_it_is_is_named(skewed, monkeypatch, teacher, why):
    monkeypatch.setattr(DecisionTreeClassifier, "predict_proba", lambda self, X: teacher(X))
    with pytest.raises(ModelError, match=rf"'p0', .*teacher.*{why}.*voting='consistent'"):
        expert("tree").party_step(fresh(skewed[0])[0], None)


def test_progress_counts_students_of_both_kinds_once(skewed):
    parties = [replace(party, model=model) for party, model in zip(fresh(skewed[0])[:2], ("svm", "tree"), strict=True)]
    seen = []
    algorithm = expert("tree")
    lessons = [lesson for party in parties for lesson in algorithm.lessons(party, roles_of(algorithm, party.model))]
    learn_all(lessons, jobs=1, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_a_party_with_most_of_the_rows_is_named(skewed):
    parties, server, _ = skewed
    bundles = [expert("tree").party_step(party, None) for party in fresh(parties)]
    boasting = [Bundle(each.sender, each.classes, each.models, counts=each.counts) for each in bundles]
    boasting[1] = Bundle("p1", bundles[1].classes, bundles[1].models, counts=tuple(100 * n for n in bundles[1].counts))
    listening = Server(server.public, server.classes, 99)
    expert("tree").server_step(listening, boasting)
    assert any("'p1' says it has" in note for note in listening.diary.notes)
    quiet = Server(server.public, server.classes, 99)
    expert("tree").server_step(quiet, bundles)
    assert not any("says it has" in note for note in quiet.diary.notes)
    # One of two always has half of the rows.
    halves = [replace(each, counts=(50, 50 + place, 0)) for place, each in enumerate(bundles[:2])]
    two = Server(server.public, server.classes, 99)
    expert("tree").server_step(two, halves)
    assert not any("says it has" in note for note in two.diary.notes)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"voting": "expert", "level": "L1", "noise": Laplace(0.1)}, "one party's vote"),
        ({"voting": "expert", "level": "L2", "noise": GaussianCounts(3.0)}, "not for votes"),
        ({"voting": "loudest"}, "There is no voting 'loudest'"),
    ],
)
def test_what_cannot_be_promised_is_refused(settings, why):
    with pytest.raises(ConfigurationError, match=why):
        FedKT("tree", **settings).check()


def test_at_level_l2_counts_are_noisy_and_paid_for(skewed):
    parties, _, _ = skewed
    shape = {"public_rows": 600, "classes": 3, "parties": 1, "delta": 1e-5}
    private = {"level": "L2", "noise": Gaussian(4.0), "queries": 40}
    votes = FedKT("tree", partitions=1, **private).price(**shape)
    both = expert("tree", **private).price(**shape)
    assert votes.epsilon < both.epsilon
    party = replace(fresh(parties)[0], noise_seed=7, ledger=Ledger(delta=1e-5))
    sent = expert("tree", **private).party_step(party, None)
    assert sent.counts != (400, 20, 20)
    assert np.abs(np.subtract(sent.counts, (400, 20, 20))).max() < 20
    assert party.ledger.price().epsilon <= both.epsilon
    assert [each.noise.name for each in party.ledger.releases] == ["gaussian", "gaussian-counts"]
    again = replace(fresh(parties)[0], noise_seed=7, ledger=Ledger())
    assert expert("tree", **private).party_step(again, None).counts == sent.counts
    other = replace(fresh(parties)[0], noise_seed=8, ledger=Ledger())
    assert expert("tree", **private).party_step(other, None).counts != sent.counts


@pytest.mark.parametrize("level", ["L1", "L2"])
def test_counts_never_leave_a_private_level_without_noise(skewed, level):
    """Whoever asks for them without the checks that come before."""
    with pytest.raises(PrivacyError, match="with noise only"):
        Expert().count_classes(expert("tree", level=level), fresh(skewed[0])[0])


def test_a_budget_that_does_not_cover_the_counts_is_kept(skewed):
    parties, _, _ = skewed
    private = {"level": "L2", "noise": Gaussian(4.0), "queries": 40}
    votes = FedKT("tree", partitions=1, **private).price(public_rows=600, classes=3, parties=1, delta=1e-5)
    party = replace(fresh(parties)[0], noise_seed=7, ledger=Ledger(delta=1e-5, budget=votes.epsilon))
    with pytest.raises(PrivacyError, match="does not cover"):
        expert("tree", **private).party_step(party, None)


@pytest.mark.parametrize("classes", [2, 4])
def test_released_counts_are_never_priced_as_if_only_a_winner_left(classes):
    counted = Release(GaussianCounts(3.0), 1, 1, classes, "record")
    found = price_together([counted], 1e-5)
    assert np.isinf(found.accountants["exact"])
    assert np.isinf(found.accountants["arg-max"])
    # A Gaussian mechanism of sensitivity √2.
    assert found.epsilon == pytest.approx(from_mu(np.sqrt(2) / 3.0, 1e-5), rel=1e-3)


def test_counts_cost_a_twentieth_beside_votes_of_which_only_some_are_answered():
    votes = ConfidentGaussian(threshold=10, sigma_test=60, sigma=10, answers=50)
    assert 2 / count_noise(votes, 1000).sigma ** 2 == pytest.approx(votes.gdp_of(1000) ** 2 / 20)
    assert 2 / count_noise(Gaussian(10), 1000).sigma ** 2 == pytest.approx(2 * 1000 / 10**2 / 20)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_noise_is_found_that_keeps_an_epsilon_with_counts(mechanism):
    bare = expert("tree", level="L2", queries=20, subsets=5)
    noise = noise_for_epsilon(bare, mechanism, epsilon=2.0, delta=1e-5, public_rows=100, classes=3, parties=1)
    algorithm = expert("tree", level="L2", noise=noise, queries=20, subsets=5)
    price = algorithm.price(public_rows=100, classes=3, parties=1, delta=1e-5)
    assert 1.8 < price.epsilon <= 2.0
