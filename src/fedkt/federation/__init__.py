"""Party, Server, Algorithm: the two sides of a federation, and a simulation that plays both.

An algorithm is two functions: what a party does with its data, and what the server does with what it is sent. The
server's function has no parameter through which a party's rows could come. Here is a whole one, in which every party
sends a tree, and the server's tree learns what most of them say of the public rows:

    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from fedkt.bundle import Bundle
    >>> from fedkt.federation import Algorithm, Party, Server, simulate
    >>> from fedkt.models.base import fit_model
    >>> from fedkt.votes import count_votes, winners

    >>> class MajorityOfTrees(Algorithm):
    ...     name = "majority-of-trees"
    ...
    ...     def party_step(self, party, broadcast):
    ...         tree = fit_model(DecisionTreeClassifier(max_depth=3), party.X, party.y, rng=party.rng(0))
    ...         return Bundle(party.name, party.classes, (tree,))
    ...
    ...     def server_step(self, server, bundles):
    ...         answers = [bundle.models[0].predict(server.public) for bundle in bundles]
    ...         labels = winners(count_votes(answers, len(server.classes)), server.rng(0))
    ...         tree = fit_model(DecisionTreeClassifier(max_depth=3), server.public, labels, rng=server.rng(1))
    ...         return Bundle("server", server.classes, (tree,))

And a federation that runs it: four hospitals whose rows are labelled by the sign of their first column.

    >>> rng = np.random.default_rng(0)
    >>> public, X = rng.normal(size=(200, 3)), rng.normal(size=(4, 50, 3))
    >>> y = (X[..., 0] > 0).astype(int)
    >>> classes = ("ill", "well")
    >>> hospitals = [Party(public, classes, seed, name=f"hospital {seed}", X=X[seed], y=y[seed]) for seed in range(4)]
    >>> outcome = simulate(MajorityOfTrees(), hospitals, Server(public, classes, seed=9))
    >>> bool(np.mean(outcome.final.models[0].predict(public) == (public[:, 0] > 0)) > 0.9)
    True
"""

from fedkt.federation.algorithm import Algorithm
from fedkt.federation.sides import Diary, Party, Server, Side, seed_for
from fedkt.federation.simulation import (
    Checkpoint,
    Outcome,
    Round,
    pool,
    run_parties,
    run_party_step,
    simulate,
    stack_rows,
)

__all__ = [
    "Algorithm",
    "Checkpoint",
    "Diary",
    "Outcome",
    "Party",
    "Round",
    "Server",
    "Side",
    "pool",
    "run_parties",
    "run_party_step",
    "seed_for",
    "simulate",
    "stack_rows",
]
