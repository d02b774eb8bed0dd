"""Level L2's promise around one record, for families × kinds of file: one teacher a partition, whatever it becomes."""

import hashlib
import warnings

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

from fedkt.algorithms import FedKT
from fedkt.algorithms.lesson import cut_by_identity
from fedkt.data.table import read_table
from fedkt.data.values import identities_of
from fedkt.errors import ConfigurationError, ModelError
from fedkt.federation import Party
from fedkt.live.records import follows_classes
from fedkt.models.base import within
from fedkt.models.catalogue import MODELS
from fedkt.models.ensemble import TrainingTask, fit_and_ask
from fedkt.privacy import Gaussian, Ledger
from one_record import KINDS, OWN_IDENTITIES, planned, played, records_for

SLOW = (("image folder", "cnn"), ("image folder", "mlp"), ("csv", "mlp"))
CHANGES = ("replaced", "relabelled", "moved", "removed")
IMAGES = ("image folder", "idx")


def fits(kind, family, change):
    """Whether the family reads such rows, and the change is one that the adjacency of such a file allows."""
    if MODELS[family].only_images and kind not in IMAGES:
        return False
    return change in ("replaced", "relabelled") or kind in OWN_IDENTITIES


def cases():
    """Every family on a table or on images, and every kind of file with a tree; benchmarks/records.py has the grid."""
    for kind in KINDS:
        for family in MODELS:
            chosen = kind == "csv with ids" or family == "tree" or (kind, family) in SLOW
            if chosen and (not MODELS[family].only_images or kind in IMAGES):
                yield kind, family


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The runs of a kind and a family on the records as they are, each made once."""
    made = {}

    def of(kind, family):
        if (kind, family) not in made:
            folder = tmp_path_factory.mktemp("records")
            adjacency = "add-or-remove" if kind in OWN_IDENTITIES else "replace-one"
            agreed = planned(folder, kind, family, adjacency=adjacency)
            made[kind, family] = agreed, played(folder / "as-they-are", *agreed, kind, records_for(family)), folder
        return made[kind, family]

    return of


@pytest.mark.parametrize(("kind", "family"), list(cases()), ids=lambda each: str(each).replace(" ", "-"))
def test_a_record_moves_one_teacher_of_a_partition_and_nothing_else(runs, kind, family):
    agreed, before, folder = runs(kind, family)
    for change in (each for each in CHANGES if fits(kind, family, each)):
        after = played(folder / change, *agreed, kind, getattr(records_for(family), change)())
        for one, other in zip(before.votes, after.votes, strict=True):
            assert np.abs(one - other).sum(axis=1).max() <= 2, change
            assert one.sum(axis=1).tolist() == other.sum(axis=1).tolist() == [3] * 10
        changed = [
            who for who in before.teachers | after.teachers if before.teachers.get(who) != after.teachers.get(who)
        ]
        for partition in ("partition 1", "partition 2"):
            assert sum(partition in who for who in changed) <= 1, (change, changed)
        assert before.files == after.files
        same = {name: value for name, value in before.manifest.items() if name != "files"}
        assert same == {name: value for name, value in after.manifest.items() if name != "files"}
        if change == "moved":
            assert not changed


class Fragile(DecisionTreeClassifier):
    """A tree that cannot stand one value."""

    def fit(self, X, y, **more):
        """Fails where a row holds the value 13 in its first column."""
        if (np.asarray(X)[:, 0] == 13).any():
            raise RuntimeError("thirteen")
        return super().fit(X, y, **more)


class Mute(DecisionTreeClassifier):
    """A tree that is trained on anything and then has no answer."""

    def predict(self, X, **more):
        """Fails where it was trained on the value 13."""
        if (self.tree_.threshold > 12).any():
            raise RuntimeError("thirteen")
        return super().predict(X, **more)


def member(X, y, public, **more):
    return Party(public, ("no", "yes"), 5, name="north", X=X, y=y, noise_seed=1, **more)


@pytest.mark.parametrize(
    "teacher",
    [
        Fragile(),
        Mute(),
        QuadraticDiscriminantAnalysis(),
        CalibratedClassifierCV(GaussianNB(), cv=2),
        KNeighborsClassifier(),
        LinearDiscriminantAnalysis(),
        MLPClassifier((4,), max_iter=20),
    ],
    ids=lambda each: type(each).__name__,
)
@pytest.mark.parametrize("value", [13.0, 3e38, np.inf, np.nan], ids=str)
def test_whatever_one_record_does_to_its_teacher_a_student_comes(teacher, value):
    rng = np.random.default_rng(0)
    public, X = rng.normal(size=(40, 3)), rng.normal(size=(24, 3))
    public[0, 0] = 14.0
    y = (X[:, 0] > 0).astype(np.int64)
    algorithm = FedKT("tree", teacher=teacher, student="tree", level="L2", noise=Gaussian(3.0), subsets=4, partitions=2)
    teacher_votes = []
    for place in range(2):
        own = X.copy()
        # The second record has the value, and stands alone with its class.
        own[1] = value if place else own[1]
        party = member(own, y, public, ledger=Watching())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert len(algorithm.party_step(party, None).models) == 2
        teacher_votes.append(party.ledger.votes)
    for one, other in zip(*teacher_votes, strict=True):
        assert np.abs(one - other).sum(axis=1).max() <= 2


class Watching(Ledger):
    """A ledger that remembers the votes it counted."""

    def _count(self, *given):
        votes = super()._count(*given)
        self.__dict__.setdefault("votes", []).append(votes)
        return votes


def test_a_network_that_runs_away_votes_by_the_fixed_rule_and_leaves_its_stack_alone():
    pytest.importorskip("torch")
    from fedkt.models.neural.classifier import NeuralClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)).astype(np.float32)
    y = (X[:, 0] > 0).astype(np.int64)

    def said(rows):
        network = NeuralClassifier("mlp", epochs=1, normalise=None)
        subsets = enumerate(np.array_split(np.arange(60), 3))
        problems = [
            TrainingTask(network, rows, y[part], np.random.default_rng(number), part, may_fail=True)
            for number, part in subsets
        ]
        return fit_and_ask(problems, 2, [X] * 3)

    mad = X.copy()
    mad[0] = 3e38
    before, after = said(X), said(mad)
    assert "ran away" in after[0]
    assert [each.tobytes() for each in after[1:]] == [each.tobytes() for each in before[1:]]


def test_a_teacher_that_is_set_up_wrongly_is_refused_before_a_row_is_looked_at():
    public = np.random.default_rng(0).normal(size=(40, 3))
    party = member(public, np.zeros(40, dtype=np.int64), public)
    wrong = FedKT("tree", teacher=DecisionTreeClassifier(max_depth=-3), level="L2", noise=Gaussian(3.0))
    with pytest.raises(ModelError, match="cannot teach at level L2"):
        wrong.party_step(party, None)
    assert not party.ledger.releases


def test_records_without_identities_are_refused_where_one_may_be_removed():
    public = np.random.default_rng(0).normal(size=(40, 3))
    party = member(public, np.zeros(40, dtype=np.int64), public)
    algorithm = FedKT("tree", level="L2", noise=Gaussian(3.0), adjacency="add-or-remove")
    with pytest.raises(ConfigurationError, match="Name a column of identities"):
        algorithm.party_step(party, None)


def test_the_subset_of_a_record_is_a_hash_of_its_identity_and_the_key():
    names = [f"patient {number}" for number in range(2_000)]
    pieces = cut_by_identity(names, 7, b"key")
    assert sorted(np.concatenate(pieces).tolist()) == list(range(2_000))
    home = {names[row]: place for place, piece in enumerate(pieces) for row in piece}
    # By hand for one of them: BLAKE2b of its name under the key, modulo seven.
    digest = hashlib.blake2b(b"patient 17", key=b"key", digest_size=8).digest()
    assert home["patient 17"] == int.from_bytes(digest, "big") % 7
    others = cut_by_identity(names[:1_000:-1], 7, b"key")
    assert all(home[names[:1_000:-1][row]] == place for place, piece in enumerate(others) for row in piece)
    # Even: every subset has a seventh, within five standard deviations.
    assert max(abs(len(piece) - 2_000 / 7) for piece in pieces) < 5 * (2_000 * 6 / 49) ** 0.5
    assert [len(piece) for piece in cut_by_identity(names, 7, b"other")] != [len(piece) for piece in pieces]


@pytest.mark.parametrize(
    ("names", "suspicious"),
    [
        ([f"{label}.{number}.png" for label in ("cat", "dog") for number in (7, 3, 12, 5)], True),
        ([f"{number:04d}.png" for _ in range(2) for number in range(4)], True),
        ([f"img{number}.png" for number in (1, 2, 3, 4, 10, 11, 12, 13)], True),
        ([f"img{number}.png" for number in (1, 3, 5, 7, 2, 4, 6, 8)], False),
        ([f"{number:x}.png" for number in (977, 113, 409, 751, 263, 587, 31, 641)], False),
    ],
    ids=["named after its class", "the same numbers in each", "a block each", "numbered over all", "random"],
)
def test_names_that_follow_the_classes_are_pointed_out(names, suspicious):
    assert follows_classes(names, ["cat"] * 4 + ["dog"] * 4) is suspicious


def test_one_missing_identity_does_not_spell_the_others_anew(tmp_path):
    whole, gap = tmp_path / "whole.npz", tmp_path / "gap.npz"
    np.savez(whole, X=np.zeros((3, 1)), ids=np.array([1, 2, 3]))
    np.savez(gap, X=np.zeros((3, 1)), ids=np.array([1, np.nan, 3]))
    one, other = (identities_of(read_table(path), None) for path in (whole, gap))
    assert (one[0], one[2]) == (other[0], other[2]) == ("1", "3")


def test_one_odd_value_of_a_data_frame_does_not_free_the_others_of_their_bounds():
    pandas = pytest.importorskip("pandas")
    public = pandas.DataFrame({"a": [0.0, 1.0], "b": ["x", "y"]})
    rows = pandas.DataFrame({"a": [5.0, None, "odd", -5.0], "b": ["x", "z", "y", "x"]}, dtype=object)
    inside = within(rows, public)
    assert inside["a"].tolist() == [1.0, 0.5, 0.5, 0.0]
    assert inside["b"].tolist() == ["x", "z", "y", "x"]
