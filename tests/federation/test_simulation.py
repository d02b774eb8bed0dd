"""Simulations: the awkward parties, the shelf, and what crosses the wire."""

import inspect

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from fedkt.algorithms import PATE, Centralised, FedKT, Solo
from fedkt.algorithms.lesson import cut
from fedkt.bundle import Bundle
from fedkt.errors import ConfigurationError, DataError, FedKTError, ModelError
from fedkt.federation import Party, Server, seed_for, simulate
from fedkt.models.base import FittedModel
from fedkt.system.parallel import in_parallel

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = (X[:, 0] > 0).astype(int)
PUBLIC = RNG.normal(size=(50, 3))
CLASSES = ("no", "yes")


def party(name, rows, **more):
    return Party(PUBLIC, CLASSES, seed_for(0, name), name=name, X=X[rows], y=Y[rows], **more)


def server():
    return Server(PUBLIC, CLASSES, 5)


def test_a_party_with_fewer_rows_than_subsets_uses_fewer_and_says_so():
    outcome = simulate(FedKT("tree", subsets=5), [party("tiny", slice(0, 3)), party("large", slice(3, 90))], server())
    assert outcome.parties["tiny"].notes == [
        "Party 'tiny' has 3 rows, fewer than 5 subsets: it uses 3 subsets of one row."
    ]
    assert outcome.parties["large"].notes == []


def test_a_party_with_one_row_votes_for_its_only_class():
    outcome = simulate(FedKT("tree"), [party("one", slice(0, 1))], server())
    assert set(outcome.final.models[0].predict(PUBLIC).tolist()) == {Y[0]}


def test_a_party_without_rows_is_refused_by_name():
    with pytest.raises(DataError, match="'empty' has no rows"):
        party("empty", slice(0, 0))


def test_a_federation_without_parties_is_refused():
    with pytest.raises(ConfigurationError, match="at least one party"):
        simulate(FedKT("tree"), [], server())


def test_two_parties_of_one_name_are_refused():
    with pytest.raises(ConfigurationError, match="name of its own"):
        simulate(FedKT("tree"), [party("a", slice(0, 9)), party("a", slice(9, 20))], server())


@pytest.mark.parametrize(
    ("setting", "words"), [({"partitions": 0}, r"partitions \(s\)"), ({"subsets": 2.5}, "subsets")]
)
def test_impossible_numbers_are_refused_in_words(setting, words):
    with pytest.raises(ConfigurationError, match=words):
        FedKT("tree", **setting).check()


def test_parties_may_study_with_different_families():
    members = [
        party("north", slice(0, 30), model="logistic"),
        party("south", slice(30, 60), model="naive-bayes"),
        party("west", slice(60, 90)),
    ]
    outcome = simulate(FedKT("tree"), members, server())
    kinds = [type(bundle.models[0].estimator).__name__ for bundle in outcome.bundles]
    assert kinds == ["Pipeline", "GaussianNB", "DecisionTreeClassifier"]
    assert np.mean(outcome.final.models[0].predict(X) == Y) > 0.75


def test_teacher_student_and_final_are_choices_of_their_own():
    taught = []

    class Noting(DecisionTreeClassifier):
        def fit(self, rows, labels):
            taught.append(len(rows))
            return super().fit(rows, labels)

    algorithm = FedKT("forest", teacher=Noting(), student="naive-bayes", final="logistic", partitions=1, subsets=3)
    outcome = simulate(algorithm, [party("a", slice(0, 90))], server())
    assert taught == [30, 30, 30]
    assert type(outcome.bundles[0].models[0].estimator).__name__ == "GaussianNB"
    assert type(outcome.final.models[0].estimator).__name__ == "Pipeline"


def test_a_finished_partition_on_the_shelf_is_not_trained_again():
    shelf = {}
    algorithm = FedKT("tree", partitions=3)
    whole = algorithm.party_step(party("a", slice(0, 60), shelf=shelf), None)
    kept = {"student-0": shelf["student-0"]}
    resumed = algorithm.party_step(party("a", slice(0, 60), shelf=kept), None)
    assert resumed.models[0] is whole.models[0]
    for first, second in zip(whole.models, resumed.models, strict=True):
        assert first.predict(PUBLIC).tolist() == second.predict(PUBLIC).tolist()


def test_a_model_that_cannot_be_trained_is_named_with_party_partition_and_subset():
    class Stubborn(DecisionTreeClassifier):
        def fit(self, rows, labels):
            raise RuntimeError("out of patience")

    with pytest.raises(ModelError, match=r"'a', partition 1, the teacher of subset 1.*out of patience"):
        simulate(FedKT("tree", teacher=Stubborn()), [party("a", slice(0, 60))], server())


def test_a_party_whose_student_fails_does_not_vote_and_the_others_go_on():
    class Broken:
        def predict(self, rows):
            raise ModelError("it does not answer")

    good = FedKT("tree").party_step(party("good", slice(0, 60)), None)
    alone = server()
    FedKT("tree").server_step(alone, [good])
    # One working student agrees with itself everywhere: it must not get its party a vote on every row.
    half = Bundle("half", CLASSES, (FittedModel(None, np.array([1])), Broken()))
    side = server()
    FedKT("tree").server_step(side, [good, half])
    assert side.diary.vote.labels[0][1].tolist() == alone.diary.vote.labels[0][1].tolist()
    assert list(side.diary.vote.silent) == ["half"]
    assert "Party 'half' does not vote, because of student 2: ModelError: it does not answer" in side.diary.notes
    with pytest.raises(ModelError, match="nothing to vote with"):
        FedKT("tree").server_step(server(), [half])


def test_rows_nobody_votes_on_are_left_out_of_the_final_training_and_counted():
    half = len(PUBLIC) // 2

    class Says:
        def __init__(self, labels):
            self.labels = np.array(labels)

        def predict(self, rows):
            return self.labels

    sizes = []

    class Noting(DecisionTreeClassifier):
        def fit(self, rows, labels):
            sizes.append(len(rows))
            return super().fit(rows, labels)

    first = Says([0] * half + [1] * half)
    second = Says([1] * 10 + [0] * (half - 10) + [1] * half)
    side = server()
    FedKT("tree", final=Noting()).server_step(side, [Bundle("a", CLASSES, (first, second))])
    assert side.diary.vote.unlabelled == 10
    # The model itself, and a twin for each half of the rows, by which it is calibrated.
    assert sizes == [len(PUBLIC) - 10, (len(PUBLIC) - 10) // 2, (len(PUBLIC) - 10) // 2]


def test_where_no_students_ever_agree_every_vote_counts_and_the_report_says_so():
    one = FittedModel(None, np.array([0]))
    other = FittedModel(None, np.array([1]))
    side = server()
    FedKT("tree").server_step(side, [Bundle("a", CLASSES, (one, other))])
    assert "On no public row" in side.diary.notes[0]
    assert side.diary.vote.unlabelled == 0


def test_a_class_that_loses_every_row_although_many_vote_for_it_is_named():
    never = [FittedModel(None, np.array([0])) for _ in range(3)]
    always = [FittedModel(None, np.array([1])) for _ in range(2)]
    bundles = [Bundle(f"P{i}", CLASSES, (model,)) for i, model in enumerate([*never, *always])]
    side = server()
    FedKT("tree", partitions=1).server_step(side, bundles)
    assert side.diary.notes == [
        "Class 'yes' has 40.0% of the votes but is the label of only 0.0% of the public rows: most parties hardly know "
        "it and outvote the others. The final model may not know it.",
        "Not one of the 50 labelled public rows is of class 'yes'. The final model may never name it: look at the "
        "figures class by class before it is used. More public rows, or another voting, may help.",
    ]


def test_the_server_has_no_door_for_a_partys_rows():
    assert set(inspect.signature(FedKT.server_step).parameters) == {"self", "server", "bundles"}
    assert not {"X", "y", "rows"} & set(Server.__dataclass_fields__)
    assert not {"votes", "labels", "rows"} & set(Bundle.__dataclass_fields__)


def test_solo_gives_every_partys_own_model():
    outcome = simulate(Solo("tree"), [party("a", slice(0, 40)), party("b", slice(40, 90))], server())
    assert len(outcome.final.models) == 2
    assert np.mean(outcome.final.models[0].predict(X[:40]) == Y[:40]) == 1.0


def test_centralised_is_the_plain_fit_on_all_rows():
    members = [party("a", slice(0, 40)), party("b", slice(40, 90))]
    outcome = simulate(Centralised(DecisionTreeClassifier(random_state=3)), members, server())
    plain = DecisionTreeClassifier(random_state=3).fit(X, Y)
    assert outcome.final.models[0].predict(PUBLIC).tolist() == plain.predict(PUBLIC).tolist()


def test_a_pooled_bound_uses_the_algorithms_model_whatever_the_parties_bring():
    members = [party("a", slice(0, 40), model="logistic"), party("b", slice(40, 90), model="naive-bayes")]
    outcome = simulate(Centralised("tree"), members, server())
    assert type(outcome.final.models[0].estimator).__name__ == "DecisionTreeClassifier"


def test_pate_trains_one_teacher_per_party_on_the_pooled_rows():
    sizes = []

    class Noting(DecisionTreeClassifier):
        def fit(self, rows, labels):
            sizes.append(len(rows))
            return super().fit(rows, labels)

    members = [party("a", slice(0, 10)), party("b", slice(10, 90))]
    outcome = simulate(PATE("tree", teachers=2, teacher=Noting()), members, server())
    assert sizes == [45, 45]
    assert len(outcome.final.models) == 1


def test_subsets_are_disjoint_nearly_equal_and_hold_every_row():
    pieces = cut(23, 5, np.random.default_rng(0))
    assert sorted(len(piece) for piece in pieces) == [4, 4, 5, 5, 5]
    assert sorted(np.concatenate(pieces).tolist()) == list(range(23))
    with pytest.raises(ConfigurationError, match="at least one subset"):
        cut(23, 0, np.random.default_rng(0))


def double(number):
    return 2 * number


def test_parallel_results_keep_the_order_of_their_tasks():
    done = []
    results = in_parallel(double, [5, 6, 7, 8], jobs=2, sizes=[1, 9, 2, 3], progress=lambda d, t: done.append((d, t)))
    assert list(results) == [10, 12, 14, 16]
    assert done[-1] == (4, 4)


def test_every_error_is_a_fedkt_error():
    from fedkt import errors

    kinds = [each for each in vars(errors).values() if inspect.isclass(each)]
    assert len(kinds) == 9
    assert all(issubclass(each, FedKTError) for each in kinds)


def test_a_progress_bar_stays_in_its_own_process():
    import threading

    class Bar:
        def __init__(self):
            self.lock = threading.Lock()
            self.heard = []

        def __call__(self, done, total):
            self.heard.append((done, total))

    bar = Bar()
    simulate(PATE("tree", teachers=4), [party("a", slice(0, 90))], server(), jobs=2, progress=bar)
    assert bar.heard[-1] == (5, 5), "four teachers and their student"


def test_the_algorithm_in_the_docstring_runs():
    import doctest

    import fedkt.federation

    assert doctest.testmod(fedkt.federation) == (0, doctest.testmod(fedkt.federation).attempted)
    assert doctest.testmod(fedkt.federation).attempted > 10
