"""Labels that lost a class are always told of."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from fedkt.algorithms import FedKT
from fedkt.algorithms.voting.lost import note_absent_classes
from fedkt.federation import Party, Server, simulate
from fedkt.privacy import Laplace
from fedkt.votes import NO_VOTE


def notes_about(labels, classes):
    server = Server(np.zeros((len(labels), 2)), classes, 0)
    note_absent_classes(server, np.array(labels))
    return server.diary.notes


def test_a_class_that_is_the_label_of_no_row_is_named():
    (note,) = notes_about([0, 0, 2, NO_VOTE], ("no", "yes", "odd"))
    assert note.startswith("Not one of the 3 labelled public rows is of class 'yes'. The final model may never name it")


def test_where_every_class_is_a_label_nothing_is_said():
    assert notes_about([0, 1, NO_VOTE], ("no", "yes")) == []


def test_of_many_lost_classes_five_are_named():
    (note,) = notes_about([0] * 4, tuple(range(10_000)))
    assert "is of 9999 classes: 1, 2, 3, 4, 5 and 9994 more. The final model may never name them" in note


@pytest.mark.parametrize(
    ("voting", "level"),
    [("consistent", "L0"), ("consistent", "L1"), ("consistent", "L2"), ("expert", "L0"), ("expert-no-counts", "L0")],
)
def test_every_voting_at_every_level_tells_of_a_class_that_nobody_holds(voting, level):
    rng = np.random.default_rng(0)
    X, public = rng.normal(size=(120, 2)), rng.normal(size=(30, 2))
    y = (X[:, 0] > 0).astype(np.int64)
    classes = ("no", "yes", "rare")
    parties = [
        Party(public, classes, number, name=f"party {number}", X=X[number::2], y=y[number::2], noise_seed=number)
        for number in range(2)
    ]
    noise = None if level == "L0" else Laplace(50.0)
    fedkt = FedKT(DecisionTreeClassifier(max_depth=3), voting=voting, level=level, noise=noise)
    outcome = simulate(fedkt, parties, Server(public, classes, 9, noise_seed=1))
    assert any("labelled public rows is of class 'rare'" in note for note in outcome.server.notes)
