"""Small runs on made-up rows, as both the maker of `written` and its tests make them."""

import numpy as np

from fedkt import FedKTClassifier

NOT_THE_RESULT = ("seconds", "cpu_seconds", "versions", "command")
"""What a report says of the machine and not of the run."""
VOTINGS = ("consistent", "expert", "expert-no-counts")


def plain_report(report):
    """A report without what differs from run to run."""
    return {key: value for key, value in report.items() if key not in NOT_THE_RESULT}


def classifier_answers():
    """What a FedKTClassifier with each voting says about rows of two overlapping clouds."""
    rng = np.random.default_rng(5)
    y = np.repeat(["no", "yes"], 90)
    X = rng.normal(size=(180, 4)) + 1.5 * (y == "yes")[:, None]
    parties, public, new = rng.integers(0, 3, 180), rng.normal(size=(60, 4)) + 0.7, rng.normal(size=(20, 4)) + 0.7
    found = {}
    for voting in VOTINGS:
        model = FedKTClassifier("tree", voting=voting, random_state=1).fit(X, y, parties=parties, public=public)
        found[voting] = {"labels": model.predict(new).tolist(), "report": plain_report(model.report_.as_dict())}
    return found
