"""The product equals Algorithm 1 as it stands in the paper."""

import numpy as np
from algorithm1 import fedkt
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from fedkt.algorithms import FedKT
from fedkt.algorithms.lesson import CUT, TIES
from fedkt.federation import Party, Server, simulate
from fedkt.votes import NO_VOTE

TEACHER = DecisionTreeClassifier(max_depth=1, random_state=0)
STUDENT = DecisionTreeClassifier(max_depth=2, random_state=0)
GRID = [(a, b) for a in range(4) for b in range(4)]
FINAL = DecisionTreeClassifier(random_state=0)


def trainer(estimator):
    """A scikit-learn fit as the oracle's `train`; labels are text, so that no index can be mistaken for another."""

    def train(rows, labels):
        if len(set(labels)) == 1:
            return lambda row: labels[0]
        own = DecisionTreeClassifier(**estimator.get_params())
        # Zero-padded text sorts as the numbers do: the tree sees the same class order as the product's.
        own.fit(np.array(rows), np.array([f"class {label:03d}" for label in labels]))
        known = [int(name.removeprefix("class ")) for name in own.predict(np.array(GRID, dtype=float))]
        return dict(zip(GRID, known, strict=True)).__getitem__

    return train


@st.composite
def federations(draw):
    u = draw(st.integers(1, 4))
    rows = st.tuples(st.integers(0, 3), st.integers(0, 3))
    parties = draw(
        st.lists(st.lists(st.tuples(rows, st.integers(0, u - 1)), min_size=1, max_size=9), min_size=1, max_size=4)
    )
    public = draw(st.lists(rows, min_size=1, max_size=8))
    return parties, public, u, draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(0, 2**32))


@settings(max_examples=100, deadline=None)
@given(federations())
def test_the_product_labels_and_predicts_as_algorithm_1_does(federation):
    parties, public, u, s, t, seed = federation
    classes = tuple(range(u))
    d_aux = np.array(public, dtype=float)
    members = [
        Party(
            d_aux,
            classes,
            seed + i,
            name=f"P{i}",
            X=np.array([row for row, _ in rows], dtype=float),
            y=np.array([label for _, label in rows]),
        )
        for i, rows in enumerate(parties)
    ]
    server = Server(d_aux, classes, seed + 1000)
    algorithm = FedKT(FINAL, teacher=TEACHER, student=STUDENT, partitions=s, subsets=t, soft_final=False)

    expected, final = fedkt(
        datasets=[([row for row, _ in rows], [label for _, label in rows]) for rows in parties],
        s=s,
        t=t,
        u=u,
        d_aux=[tuple(row) for row in d_aux.tolist()],
        train_teacher=trainer(TEACHER),
        train_student=trainer(STUDENT),
        train_final=trainer(FINAL),
        order=lambda i, j: np.random.default_rng([seed + i, j, CUT]).permutation(len(parties[i])).tolist(),
        party_uniform=lambda i, j, q: np.random.default_rng([seed + i, j, TIES]).random(len(public))[q],
        server_uniform=lambda q: np.random.default_rng([seed + 1000, 0, TIES]).random(len(public))[q],
    )
    outcome = simulate(algorithm, members, server)

    labels = [None if label == NO_VOTE else label for label in outcome.server.vote.labels[0][1].tolist()]
    assert labels == expected
    assert outcome.final.models[0].predict(np.array(GRID, dtype=float)).tolist() == [final(row) for row in GRID]
