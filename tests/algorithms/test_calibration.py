"""The private levels: what is asked, what is released, and what is refused."""

import math
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from fedkt.algorithms import FedKT
from fedkt.algorithms.calibration import cautions, noise_for_epsilon
from fedkt.algorithms.chances import chances_in_words, label_chances
from fedkt.algorithms.fedkt import number_of_queries
from fedkt.errors import ConfigurationError, ModelError, PrivacyError
from fedkt.federation import Party, Server, simulate
from fedkt.privacy import ConfidentGaussian, Gaussian, Gumbel, Laplace, Ledger, Release, price_together, statement
from fedkt.privacy.accountant import price
from fedkt.privacy.ledger_file import LedgerFile

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 3))
Y = (X[:, 0] > 0).astype(int)
PUBLIC = RNG.normal(size=(200, 3))
CLASSES = ("no", "yes")
LOUD, QUIET = Laplace(0.001), Laplace(50.0)


def parties(count=20, **more):
    size = len(Y) // count
    return [
        Party(
            PUBLIC,
            CLASSES,
            i,
            name=f"P{i}",
            X=X[i * size : (i + 1) * size],
            y=Y[i * size : (i + 1) * size],
            **{"noise_seed": 100 + i, **more},
        )
        for i in range(count)
    ]


def server(**more):
    return Server(PUBLIC, CLASSES, 5, **{"noise_seed": 7, **more})


class Noting(DecisionTreeClassifier):
    """A tree that remembers how many rows each fit saw."""

    seen: ClassVar[list[int]] = []

    def fit(self, rows, labels):
        Noting.seen.append(len(rows))
        return super().fit(rows, labels)


@pytest.fixture(autouse=True)
def _forget():
    Noting.seen = []


@pytest.mark.parametrize("noise", [Laplace(5.0), Gaussian(0.2), Gumbel(5.0)], ids=lambda noise: noise.name)
@pytest.mark.parametrize("level", ["L1", "L2"])
def test_with_little_noise_a_private_level_learns(level, noise):
    outcome = simulate(FedKT("tree", level=level, noise=noise, queries=100), parties(), server())
    assert np.mean(outcome.final.models[0].predict(X) == Y) > 0.8


@pytest.mark.parametrize("level", ["L1", "L2"])
def test_noise_that_drowns_the_votes_leaves_nothing_to_learn(level):
    outcome = simulate(FedKT("tree", level=level, noise=LOUD, queries=200), parties(), server())
    # Labels are coin tosses: the share of right ones stays within 5 standard deviations of a half. At L1 the server
    # tosses 200 times, at L2 each of the 20 parties does.
    truth = (PUBLIC[:, 0] > 0).astype(int)
    sides = [outcome.server] if level == "L1" else list(outcome.parties.values())
    tosses = np.concatenate([labels == truth[rows] for side in sides for rows, labels in side.vote.labels])
    assert len(tosses) == (200 if level == "L1" else 20 * 200)
    assert abs(np.mean(tosses) - 0.5) < 5 * 0.5 / math.sqrt(len(tosses))
    # Nor does the final model know more than its labels. As it answers for whole regions alike, its score wanders more.
    assert np.mean(outcome.final.models[0].predict(X) == Y) < 0.7


def test_at_l1_students_see_all_public_rows_and_the_final_model_only_the_queries():
    simulate(FedKT("tree", teacher="tree", student=Noting(), level="L1", noise=QUIET, queries=30), parties(3), server())
    assert set(Noting.seen) == {200}
    Noting.seen = []
    simulate(FedKT("tree", final=Noting(), level="L1", noise=QUIET, queries=30), parties(3), server())
    # The halves of its rows tell how sure it should be.
    first, *halves = Noting.seen
    assert (first, sum(halves)) == (30, 30)


def test_at_l2_students_see_only_the_queries_and_the_final_model_all_public_rows():
    simulate(FedKT("tree", teacher="tree", student=Noting(), level="L2", noise=QUIET, queries=30), parties(3), server())
    assert set(Noting.seen) == {30}
    Noting.seen = []
    outcome = simulate(FedKT("tree", final=Noting(), level="L2", noise=QUIET, queries=30), parties(3), server())
    first, *halves = Noting.seen
    assert first == sum(halves) == 200 - outcome.server.vote.unlabelled


def test_with_very_little_noise_l1_gives_the_labels_of_l0():
    bare = simulate(FedKT("tree", partitions=1), parties(5), server())
    noisy = simulate(FedKT("tree", level="L1", noise=Laplace(1e4), queries=200), parties(5), server())
    rows, labels = noisy.server.vote.labels[0]
    assert rows.tolist() == list(range(200))
    assert labels.tolist() == bare.server.vote.labels[0][1].tolist()


def test_queries_are_chosen_by_a_public_rule_that_looks_at_nothing():
    algorithm = FedKT("tree", level="L1", noise=QUIET, queries=50)
    chosen = algorithm.query_rows(200)
    assert chosen.tolist() == FedKT("forest", level="L2", noise=LOUD, queries=50).query_rows(200).tolist()
    assert len(set(chosen.tolist())) == 50
    more = FedKT("tree", level="L1", noise=QUIET, queries=80).query_rows(200)
    assert set(chosen.tolist()) <= set(more.tolist())


@pytest.mark.parametrize(("queries", "k"), [(1, 1), (81, 81), (1.0, 200), (0.01, 2), (0.5, 100)])
def test_queries_are_a_number_of_rows_or_a_fraction_of_them(queries, k):
    assert number_of_queries(queries, 200) == k


@pytest.mark.parametrize("queries", [0, -3, 201, 0.0, 1.5, 0.001, "many", True, float("nan")])
def test_queries_that_cannot_be_asked_are_refused(queries):
    with pytest.raises(ConfigurationError, match="queries"):
        number_of_queries(queries, 200)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"level": "L1"}, r"Level L1 needs a noise, e\.g\. --noise gaussian:40"),
        ({"level": "L2", "noise": "loud"}, "got 'loud'"),
        ({"level": "L0", "noise": Laplace(1)}, "L0 adds no noise"),
        ({"level": "L3", "noise": Laplace(1)}, "no privacy level 'L3'"),
    ],
)
def test_level_and_noise_that_do_not_fit_are_refused_in_words(settings, words):
    with pytest.raises(ConfigurationError, match=words):
        FedKT("tree", **settings).check()


def test_level_l0_asks_every_row():
    with pytest.raises(ConfigurationError, match="asks all 200 public rows"):
        FedKT("tree", queries=10).query_rows(200)
    with pytest.raises(ConfigurationError, match="asks all 200 public rows"):
        simulate(FedKT("tree", queries=10), parties(3), server())


def test_one_partition_is_the_default_where_noise_is_on():
    assert FedKT("tree").partitions == 2
    assert FedKT("tree", level="L2", noise=QUIET).partitions == 1


def test_at_l2_every_partition_of_a_party_is_paid_for():
    for s in (1, 3):
        members = parties(2)
        algorithm = FedKT("tree", level="L2", noise=Laplace(0.1), queries=20, partitions=s, subsets=5)
        simulate(algorithm, members, server())
        assert sum(release.queries for release in members[0].ledger.releases) == 20 * s
        asked = algorithm.price(public_rows=200, classes=2, parties=2, delta=1e-5)
        assert asked.epsilon == price(Release(Laplace(0.1), 20 * s, 5, 2, "record"), 1e-5).epsilon
        assert members[0].ledger.price().epsilon == asked.epsilon


def test_at_l2_the_ledger_names_the_student_that_labels_were_released_for(tmp_path):
    member = parties(1, noise_seed=None)[0]
    member.ledger.file = LedgerFile.open(tmp_path / "north.ledger")
    FedKT("tree", level="L2", noise=Laplace(0.05), queries=20, partitions=2).party_step(member, None)
    entries = LedgerFile.open(tmp_path / "north.ledger").entries
    assert [entry.release.purpose.partition(" (")[0] for entry in entries] == ["student 1", "student 2"]


def test_at_l2_a_teacher_is_tried_on_twenty_public_rows_of_each_class_at_least():
    """However few there are: one that needs more rows than that of a class would stand aside at every subset."""
    member = replace(parties(1)[0], public=PUBLIC[:7], classes=("a", "b", "c"))
    FedKT("tree", teacher=Noting(), level="L2", noise=QUIET, queries=5, subsets=1).party_step(member, None)
    assert Noting.seen[0] == 60


@pytest.mark.parametrize("level", ["L0", "L2"])
def test_only_where_noise_protects_a_record_are_its_values_held_to_those_of_public_rows(level):
    class Seeing(DecisionTreeClassifier):
        highest: ClassVar[list[float]] = []

        def fit(self, rows, labels):
            Seeing.highest.append(float(np.max(rows)))
            return super().fit(rows, labels)

    member = parties(1)[0]
    absurd = member.X.copy()
    absurd[0, 0] = 1e9
    settings = {"level": "L2", "noise": QUIET, "queries": 5} if level == "L2" else {}
    algorithm = FedKT("tree", teacher=Seeing(), student="tree", partitions=1, subsets=1, **settings)
    algorithm.party_step(replace(member, X=absurd), None)
    # Last of all the one teacher is trained, on the party's rows.
    held = np.clip(absurd, PUBLIC.min(axis=0), PUBLIC.max(axis=0))
    assert Seeing.highest[-1] == pytest.approx(1e9 if level == "L0" else held.max())


def test_at_l2_a_party_of_two_rows_pays_what_every_other_does():
    algorithm = FedKT("tree", level="L2", noise=Gaussian(3.0), queries=20, subsets=9)
    members = parties(3)
    members[0] = replace(members[0], X=members[0].X[:2], y=members[0].y[:2])
    simulate(algorithm, members, server())
    wanted = price(Release(Gaussian(3.0), 20, 9, 2, "record"), 1e-5).epsilon
    assert [each.ledger.price().epsilon for each in members] == [wanted] * 3
    assert algorithm.price(public_rows=200, classes=2, parties=3, delta=1e-5).epsilon == wanted


@pytest.mark.parametrize(("level", "adjacency"), [("L1", "add-or-remove"), ("L2", "nonsense"), ("L0", "add-or-remove")])
def test_an_adjacency_that_a_level_does_not_have_is_refused(level, adjacency):
    noise = None if level == "L0" else Gaussian(3.0)
    with pytest.raises(ConfigurationError, match="adjacency"):
        FedKT("tree", level=level, noise=noise, adjacency=adjacency).check()


def test_at_l1_a_party_is_one_vote_and_may_abstain():
    side = server()
    simulate(FedKT("tree", level="L1", noise=Laplace(0.1), queries=25, partitions=2), parties(20), side)
    assert side.ledger.releases == [Release(Laplace(0.1), 25, 20, 2, "party", abstentions=True)]


def test_at_l1_nothing_but_labels_is_kept_of_the_vote():
    side = server()
    simulate(FedKT("tree", level="L1", noise=QUIET, queries=25), parties(5), side)
    assert side.diary.vote.figures() == {}
    assert side.diary.vote.silent == {}


def test_a_budget_is_refused_before_a_teacher_is_trained():
    members = parties(1)
    members[0].ledger.budget = 0.5
    with pytest.raises(PrivacyError, match=r"does not cover.*Nothing was counted"):
        FedKT("tree", teacher=Noting(), level="L2", noise=Laplace(0.1), queries=100).party_step(members[0], None)
    # A trial on the 200 public rows, and nothing on the party's 600.
    assert Noting.seen == [200]


def test_reruns_on_the_same_party_compose_in_a_ledger_that_outlives_them(tmp_path):
    path = tmp_path / "north.ledger"
    algorithm = FedKT("tree", level="L2", noise=Laplace(0.05), queries=40)
    one = price(Release(Laplace(0.05), 40, 5, 2, "record"), 1e-5).epsilon
    two = price(Release(Laplace(0.05), 80, 5, 2, "record"), 1e-5).epsilon
    for run in range(3):
        member = parties(1, noise_seed=run)[0]
        member.ledger.owner, member.ledger.budget, member.ledger.file = (
            "north",
            (one + two) / 2 + one / 2,
            LedgerFile.open(path),
        )
        if run < 2:
            algorithm.party_step(member, None)
        else:
            with pytest.raises(PrivacyError, match="budget"):
                algorithm.party_step(member, None)
    assert len(LedgerFile.open(path).entries) == 2


def test_the_same_noise_again_is_the_same_release_and_costs_nothing_more(tmp_path):
    path = tmp_path / "north.ledger"
    algorithm = FedKT("tree", level="L2", noise=Laplace(0.05), queries=40)
    labels = []
    for _ in range(2):
        member = parties(1)[0]
        member.ledger.file = LedgerFile.open(path)
        algorithm.party_step(member, None)
        labels.append(member.diary.vote.labels[0][1].tolist())
    assert labels[0] == labels[1]
    assert len(LedgerFile.open(path).entries) == 1


def test_fresh_noise_is_charged_every_time(tmp_path):
    path = tmp_path / "server.ledger"
    algorithm = FedKT("tree", level="L1", noise=Laplace(0.05), queries=40)
    for _ in range(2):
        side = server(noise_seed=None)
        side.ledger.file = LedgerFile.open(path)
        simulate(algorithm, parties(3), side)
    assert len(LedgerFile.open(path).entries) == 2


def test_the_same_noise_from_another_process_is_seen_although_the_ledger_was_opened_before(tmp_path):
    """Two processes of a party open its ledger at once: whoever comes second finds the first one's release paid."""
    files = [LedgerFile.open(tmp_path / "north.ledger") for _ in range(2)]
    algorithm = FedKT("tree", level="L2", noise=Laplace(0.05), queries=40)
    labels = []
    for file in files:
        member = parties(1)[0]
        member.ledger.file = file
        # One release is all that the budget covers.
        member.ledger.budget = price(Release(Laplace(0.05), 40, 5, 2, "record"), 1e-5).epsilon * 1.01
        algorithm.party_step(member, None)
        labels.append(member.diary.vote.labels[0][1].tolist())
    assert labels[0] == labels[1]
    assert len(LedgerFile.open(tmp_path / "north.ledger").entries) == 1


def test_without_a_seed_noise_comes_from_the_operating_system():
    algorithm = FedKT("tree", level="L1", noise=LOUD, queries=200)
    drawn = [
        simulate(algorithm, parties(5), server(noise_seed=None)).server.vote.labels[0][1].tolist() for _ in range(2)
    ]
    assert drawn[0] != drawn[1]


def test_seeded_noise_is_called_what_it_is():
    priced = price(Release(Laplace(0.1), 5, 20, 2, "party", abstentions=True), 1e-5)
    assert "protects nobody" in str(statement("L1", priced, reproducible_noise=True))
    assert "protects nobody" not in str(statement("L1", priced))


def test_an_epsilon_is_never_rounded_down():
    from fedkt.privacy.statement import rounded_up

    assert rounded_up(1.3716) == "1.372"
    assert rounded_up(2.0) == "2.000"
    assert rounded_up(2.0000000001) == "2.001"
    assert rounded_up(math.inf) == "∞"


@pytest.mark.parametrize("noise", [Laplace(360.0), Laplace(1e5), Gaussian(1e-12), Gumbel(1e4)], ids=repr)
def test_noise_that_hides_nothing_has_a_price_or_none_but_no_accident(noise):
    assert price(Release(noise, 3, 2, 2, "record"), 1e-5).epsilon > 100


@pytest.mark.parametrize("value", [1e300, 1e-300, 1e13, 9e-13])
@pytest.mark.parametrize("make", [Laplace, Gaussian, Gumbel, lambda x: ConfidentGaussian(1.0, x, 1.0, 5)])
def test_a_scale_of_a_size_that_no_noise_has_is_refused(make, value):
    with pytest.raises(ConfigurationError, match=r"noise (is at most 1e\+12|must lie between 1e-12 and 1e\+12), got"):
        make(value)


def test_a_threshold_of_a_size_that_no_vote_has_is_refused():
    with pytest.raises(ConfigurationError, match=r"threshold .* at most 1e\+12, got -1e\+300"):
        ConfidentGaussian(-1e300, 1.0, 1.0, 5)


def test_a_weak_noise_is_not_called_level_l0():
    weak = replace(price(Release(Gaussian(1e-12), 3, 2, 2, "record"), 1e-5), epsilon=math.inf)
    assert str(statement("L2", weak)).startswith("none: the noise of level L2 is too weak")


def test_so_many_queries_that_the_game_takes_too_long_are_priced_by_others():
    found = price(Release(Gaussian(500.0), 5000, 50, 2, "party", abstentions=True), 1e-5)
    assert found.accountants["exact"] == math.inf
    assert 0 < found.epsilon < 2


def test_a_statement_carries_everything_that_gives_epsilon_a_meaning():
    priced = price(Release(Laplace(0.1), 5, 20, 2, "party", abstentions=True), 1e-5)
    said = statement("L1", priced).as_dict()
    for name in ("epsilon", "delta", "unit", "adjacency", "queries", "mechanism", "accountant", "voters", "classes"):
        assert said[name] is not None
    assert statement("L0", None).epsilon is None


def test_unanswered_queries_are_left_out_and_none_answered_is_refused():
    sure = ConfidentGaussian(threshold=1.0, sigma_test=0.1, sigma=0.1, answers=12)
    side = server()
    simulate(FedKT("tree", final=Noting(), level="L1", noise=sure, queries=50), parties(5), side)
    assert Noting.seen == [12]
    never = ConfidentGaussian(threshold=1e6, sigma_test=0.1, sigma=0.1, answers=12)
    with pytest.raises(ModelError, match="No query was answered"):
        simulate(FedKT("tree", level="L1", noise=never, queries=50), parties(5), server())


def test_the_cap_on_answers_is_paid_once_per_partition():
    noise = ConfidentGaussian(threshold=3.0, sigma_test=4.0, sigma=4.0, answers=10)
    one = FedKT("tree", level="L2", noise=noise, queries=50, partitions=1)
    two = FedKT("tree", level="L2", noise=noise, queries=50, partitions=2)
    figures = {"public_rows": 200, "classes": 2, "parties": 3, "delta": 1e-5}
    single = Release(noise, 50, 5, 2, "record")
    assert two.price(**figures).epsilon > one.price(**figures).epsilon
    assert two.price(**figures).epsilon == price_together([single, single], 1e-5).epsilon


def test_few_parties_and_a_large_delta_are_warned_of_with_numbers():
    noise = Gaussian(2.0)
    poor = price(Release(noise, 100, 10, 2, "party", abstentions=True), 1e-5)
    told = cautions("L1", poor, [50] * 10)
    assert f"epsilon is {math.ceil(poor.epsilon * 1000) / 1000:.3f}" in told[0]
    assert "With 10 parties" in told[0]
    careless = price(Release(Gaussian(50.0), 10, 10, 2, "party", abstentions=True), 0.2)
    assert "larger than one in 10 parties" in cautions("L1", careless, [50] * 10)[-1]
    assert "With 10 parties the noise" in cautions("L1", careless, [50] * 10)[0]


def test_at_level_l2_a_delta_is_held_against_the_number_of_rows_and_not_of_parties():
    """Two parties of 500 rows: one record in a thousand may be revealed at δ = 0.002, though two parties may not."""
    found = price(Release(Gaussian(5.0), 10, 25, 2, "record"), 0.002)
    told = cautions("L2", found, [500, 500])
    assert any("delta 0.002 is larger than one in 1000 rows: it allows to reveal one of them" in each for each in told)
    assert not any("larger than one in" in each for each in cautions("L2", found, [200, 200]))


@pytest.mark.parametrize(("delta", "warned"), [(0.9, True), (1e-3, True), (9e-4, False)])
def test_a_delta_that_no_number_of_rows_excuses_is_warned_of(delta, warned):
    found = price(Release(Gaussian(5.0), 10, 25, 2, "record"), delta)
    assert any(f"delta {delta:g} is a chance of" in each for each in cautions("L2", found, [1])) == warned


@pytest.mark.parametrize("noise", [Gaussian(18.0), Laplace(0.05), Gumbel(0.05)], ids=str)
def test_noise_that_drowns_the_votes_of_a_party_is_warned_of(noise):
    few, many = (price(Release(noise, 40, voters, 2, "record"), 1e-5) for voters in (5, 100))
    assert any("drowns the votes: where all 5 teachers" in each for each in cautions("L2", few, [500]))
    assert not any("drowns" in each for each in cautions("L2", many, [500]))


def test_the_documented_example_of_two_classes_is_warned_of_and_half_the_queries_are_not():
    """ε 2 on 40 labels of 25 teachers needs σ 14.5: 19 against 6 votes stand with Φ(13/(√2·14.5)) = 0.737."""
    bare = FedKT("tree", level="L2", queries=40, subsets=25)
    figures = {"public_rows": 200, "classes": 2, "parties": 3, "delta": 1e-5}
    found = bare.with_noise(noise_for_epsilon(bare, "gaussian", epsilon=2.0, **figures)).price(**figures)
    (told,) = cautions("L2", found, [500])
    assert "where 19 of 25 teachers of a party agree, their label survives in 73% of the cases" in told
    assert "hardly beats naming the most frequent class" in told
    assert cautions("L2", price(Release(Gaussian(10.4), 20, 25, 2, "record"), 1e-5), [500]) == ()


@pytest.mark.parametrize(
    ("noise", "expected"),
    [
        # Φ(x/√2σ) of the leads 25, 13 and 5, from a table of the normal distribution: x = 1.219, 0.634, 0.244.
        (Gaussian(14.5), (0.8886, 0.7370, 0.5963)),
        # 1 − (2 + γx)/4 · e^{−γx} at γx = 2.5, 1.3, 0.5.
        (Laplace(0.1), (0.90766, 0.77516, 0.62092)),
        # 1/(1 + e^{−θx}) at the same.
        (Gumbel(0.1), (0.92414, 0.78583, 0.62246)),
    ],
    ids=str,
)
def test_the_chance_of_the_label_of_most_is_known_before_anything_is_trained(noise, expected):
    chances = label_chances(price(Release(noise, 40, 25, 2, "record"), 1e-5))
    assert [(each.agree, each.voters) for each in chances] == [(25, 25), (19, 25), (15, 25)]
    assert [each.right for each in chances] == pytest.approx(expected, abs=2e-4)
    assert all(each.exact for each in chances)
    assert [each.answered for each in chances] == pytest.approx([1, 1, 1])


@pytest.mark.parametrize("noise", [Gaussian(6.0), Laplace(0.3)], ids=str)
def test_with_many_classes_the_chance_is_that_of_the_largest_of_all_noisy_counts(noise):
    drawn = np.random.default_rng(0)
    for each in label_chances(price(Release(noise, 40, 20, 6, "record"), 1e-5)):
        votes = np.zeros((200_000, 6))
        votes[:, 0], votes[:, 1] = each.agree, 20 - each.agree
        added = (
            drawn.normal(0, 6, votes.shape) if isinstance(noise, Gaussian) else drawn.laplace(0, 1 / 0.3, votes.shape)
        )
        assert each.right == pytest.approx(np.mean(np.argmax(votes + added, axis=1) == 0), abs=0.005)


def test_a_noise_that_may_not_answer_tells_how_often_it_does_and_is_then_right():
    noise = ConfidentGaussian(threshold=15.0, sigma_test=5.0, sigma=5.0, answers=30)
    found = price(Release(noise, 40, 25, 2, "record"), 1e-5)
    # Φ((25 − 15)/5) and Φ(25/(√2·5)); Φ((19 − 15)/5) and Φ(13/(√2·5)).
    assert [each.answered for each in label_chances(found)[:2]] == pytest.approx([0.97725, 0.78814], abs=1e-4)
    assert [each.right for each in label_chances(found)[:2]] == pytest.approx([0.99980, 0.96700], abs=1e-4)
    assert "do 97%, 78%, 50% while answers are left" in chances_in_words(found)


def test_a_noise_whose_chances_nobody_knows_says_so():
    class Silent(Gaussian):
        has_win_probability = False

        def class_probabilities(self, votes):
            return None

    found = price(Release(Silent(5.0), 40, 5, 2, "party"), 1e-5)
    assert label_chances(found) == ()
    assert "is not known" in chances_in_words(found)
    assert any("With 5 parties the noise" in each for each in cautions("L1", found, [10] * 5))


def test_among_very_many_classes_the_chance_is_at_most_what_is_told():
    found = price(Release(Gaussian(3.0), 40, 25, 1000, "record"), 1e-5)
    assert not any(each.exact for each in label_chances(found))
    assert "standing at most" in chances_in_words(found)


@pytest.mark.parametrize("voters", [1, 2])
def test_one_or_two_voters_have_only_unanimity_to_be_told_of(voters):
    (only,) = label_chances(price(Release(Gaussian(1.0), 4, voters, 2, "party"), 1e-5))
    assert only.agree == only.voters == voters


def test_many_parties_whose_votes_stand_are_not_warned_of_and_as_many_that_drown_are():
    fine, drowned = (price(Release(Gaussian(s), 20, 50, 2, "party", abstentions=True), 1e-5) for s in (10.4, 40.0))
    assert cautions("L1", fine, [10] * 50) == ()
    assert "if 38 of 50 agree, their label survives in 67%" in cautions("L1", drowned, [10] * 50)[0]


def test_so_few_labels_that_nothing_can_be_learned_are_warned_of():
    few, enough = (price(Release(Gaussian(2.0), k, 25, 3, "record"), 1e-5) for k in (14, 15))
    assert any("14 labels of 3 classes" in each for each in cautions("L2", few, [500]))
    assert not any("labels of 3 classes" in each for each in cautions("L2", enough, [500]))


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "gumbel"])
@pytest.mark.parametrize("level", ["L1", "L2"])
def test_calibrated_noise_keeps_its_promise_and_wastes_little(level, mechanism):
    federation = {"public_rows": 200, "classes": 2, "parties": 3, "delta": 1e-5}
    bare = FedKT("tree", level=level, queries=30, subsets=6)
    noise = noise_for_epsilon(bare, mechanism, epsilon=2.0, **federation)
    found = FedKT("tree", level=level, noise=noise, queries=30, subsets=6).price(**federation)
    assert 1.9 < found.epsilon <= 2.0


def test_different_noises_on_one_party_compose():
    first, second = Release(Laplace(0.1), 20, 5, 2, "record"), Release(Gaussian(5.0), 20, 5, 2, "record")
    together = price_together([first, second], 1e-5)
    assert together.epsilon >= max(price(each, 1e-5).epsilon for each in (first, second))
    assert together.epsilon <= sum(price(each, 5e-6).epsilon for each in (first, second))


def test_releases_about_different_units_have_no_common_price():
    party = Release(Laplace(0.1), 5, 20, 2, "party")
    record = Release(Laplace(0.1), 5, 20, 2, "record")
    with pytest.raises(PrivacyError, match="different things"):
        price_together([party, record], 1e-5)


def test_a_bare_release_takes_away_every_promise():
    ledger = Ledger()
    votes = np.array([[3, 2]])
    rng = np.random.default_rng(0)
    ledger.release(lambda: votes, Release(Laplace(1.0), 1, 5, 2, "party"), rng=rng)
    assert ledger.price().epsilon <= 2.0
    ledger.release_bare(lambda: votes, queries=1, voters=5, classes=2, rng=rng)
    with pytest.raises(PrivacyError, match="without noise"):
        ledger.price()


@pytest.mark.parametrize(
    ("votes", "words"),
    [
        ([[1, 2], [3, 4]], "shape"),
        ([[9, 9]], "More votes were counted than there are voters"),
        ([[3, 3]], r"More votes were counted than there are voters \(5\)"),
        ([[0, 6]], r"More votes were counted than there are voters \(5\)"),
    ],
)
def test_votes_that_are_not_what_was_paid_for_are_not_released(votes, words):
    with pytest.raises(PrivacyError, match=words):
        Ledger().release(lambda: np.array(votes), Release(Laplace(1.0), 1, 5, 2, "party"), rng=np.random.default_rng(0))


@pytest.mark.parametrize("noise", [None, Laplace(1e4)])
@pytest.mark.parametrize("votes", [[1, 4], [0, 5], [1, 3]])
def test_as_many_votes_as_there_are_voters_are_released(votes, noise):
    ledger, rng = Ledger(), np.random.default_rng(0)
    if noise is None:
        labels = ledger.release_bare(lambda: np.array([votes]), queries=1, voters=5, classes=2, rng=rng)
    else:
        labels = ledger.release(lambda: np.array([votes]), Release(noise, 1, 5, 2, "party"), rng=rng)
    assert labels.tolist() == [1]


def test_more_votes_than_voters_do_not_leave_without_noise_either():
    figures = {"queries": 2, "voters": 5, "classes": 2, "rng": np.random.default_rng(0)}
    with pytest.raises(PrivacyError, match="More votes were counted"):
        Ledger().release_bare(lambda: np.array([[2, 3], [2, 4]]), **figures)
