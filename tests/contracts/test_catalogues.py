"""Adding an algorithm or a voting is one file and one line: a toy of each is added here, and everybody knows it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from command_line import fedkt
from fedkt import FedKTClassifier
from fedkt.algorithms import ALGORITHMS, FedKT, card_for
from fedkt.algorithms.card import ONE_MESSAGE, Card
from fedkt.algorithms.solo import Solo
from fedkt.algorithms.voting import VOTINGS, LabelledRows, Voting
from fedkt.bundle import pack, unpack
from fedkt.errors import ConfigurationError, PrivacyError
from fedkt.federation import Party, Server
from fedkt.lab.names import card_of, name_of
from fedkt.lab.page import write_page
from fedkt.lab.runner import run
from fedkt.lab.setting import Setting
from fedkt.lab.traffic import traffic
from fedkt.plan import make_plan, parse_plan
from fedkt.privacy import Gaussian
from fedkt.votes import count_votes, winners

QUICK = Setting("digits", model="tree", parties=3)


class Largest(Solo):
    """The model of the party whose model says most classes: a toy."""

    name = "largest"
    sends = True

    def server_step(self, server, bundles):
        said = [len(np.unique(bundle.models[0].predict(server.public))) for bundle in bundles]
        return replace(bundles[int(np.argmax(said))], sender="server")


@dataclass(frozen=True)
class Plain(Voting):
    """Every student has a vote of its own: a toy."""

    name = "plain"
    title = "FedKT, plainly"
    summary = "one message, every student votes"
    server_rule = "the server counts every student's vote"
    choice = "every student has a vote"
    assumption = "Students are about equally good."

    def label(self, fedkt, server, answers):
        votes = count_votes(np.concatenate([each for _, each in answers.voters]), len(server.classes))
        return LabelledRows(winners(votes, server.rng(0)))


@pytest.fixture
def largest(monkeypatch):
    card = Card("largest", "Largest", "the best known party's model", Largest, traffic=ONE_MESSAGE, colour="sky")
    monkeypatch.setitem(ALGORITHMS, card.name, card)
    return card


@pytest.fixture
def plain(monkeypatch):
    monkeypatch.setitem(VOTINGS, Plain.name, Plain)
    card = card_for(Plain())
    monkeypatch.setitem(ALGORITHMS, card.name, card)
    return card


def test_every_card_says_what_an_algorithm_is():
    for name, card in ALGORITHMS.items():
        assert card.name == name
        assert card.title
        assert card.summary
        made = card.build("mlp", teachers=2)
        assert made.name == name
        assert made.pooled or not made.sends or card.traffic is not None


def test_papers_are_cited():
    """What has no paper is a party alone, all rows pooled, and a bound of our own."""
    uncited = {name for name, card in ALGORITHMS.items() if not card.citation}
    assert uncited == {"solo", "centralised", "pate-soft"}
    assert ALGORITHMS["fedavg"].citation.startswith("McMahan, Moore, Ramage")
    assert "IJCAI 2021" in ALGORITHMS["fedkt-expert"].citation


def test_an_algorithm_takes_the_settings_of_its_constructor():
    assert ALGORITHMS["fedavg"].takes == {"local_epochs", "rounds", "participation"}
    assert ALGORITHMS["pate"].takes == {"teachers", "teacher", "student"}
    assert {"partitions", "subsets", "level", "noise"} <= ALGORITHMS["fedkt"].takes
    assert not {"partitions", "subsets"} & ALGORITHMS["fedkt-expert-no-counts"].takes
    assert {"mu", "partitions"} <= ALGORITHMS["fedkt-prox"].takes
    assert "level" not in ALGORITHMS["fedkt-prox"].takes


@pytest.mark.parametrize("card", ALGORITHMS.values(), ids=lambda card: card.name)
def test_a_card_knows_the_rounds_of_an_algorithm_that_nobody_gave_a_number(card):
    assert card.default_rounds == card.build("mlp", teachers=3).rounds


def test_a_new_algorithm_is_known_everywhere(largest, tmp_path):
    report = run(replace(QUICK, algorithm="largest"), measure_bytes=True)
    assert report.algorithm == "largest"
    assert report.bytes_sent > 0
    assert (name_of("largest"), card_of("largest").summary) == ("Largest", "the best known party's model")
    (line,) = traffic([report])
    assert line.formula == "n·s·M"
    write_page(tmp_path / "page.html", [report], title="toys")
    assert "Largest" in (tmp_path / "page.html").read_text()
    with pytest.raises(ConfigurationError, match=r"no algorithm 'none'.*largest"):
        Setting("digits", algorithm="none").with_defaults()
    with pytest.raises(ConfigurationError, match="has no private level"):
        Setting("digits", algorithm="largest", level="L1").with_defaults()


def test_a_new_voting_is_known_everywhere(plain, tmp_path):
    report = run(replace(QUICK, algorithm="fedkt-plain"))
    assert report.algorithm == "fedkt-plain"
    assert report.accuracy > 0.5
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    model = FedKTClassifier(voting="plain", n_parties=3, random_state=0).fit(X, X[:, 0] > 0)
    assert model.report_.algorithm == "fedkt-plain"
    assert model.score(X, X[:, 0] > 0) > 0.8
    with pytest.raises(ConfigurationError, match="'plain' has no level L1"):
        run(Setting("digits", algorithm="fedkt-plain", level="L1", mechanism="gaussian", scale=(("sigma", 9.0),)))


@pytest.mark.parametrize("level", ["L1", "L2"])
def test_a_voting_that_forgets_the_noise_is_refused_and_no_epsilon_is_printed(monkeypatch, level):
    """A level that a voting claims to have and does not keep would be a promise about bare labels."""

    @dataclass(frozen=True)
    class Forgetful(Plain):
        name = "forgetful"
        levels = ("L0", "L1", "L2")

        def lessons(self, fedkt, plain):
            return [replace(each, release=None) for each in plain]

    monkeypatch.setitem(VOTINGS, Forgetful.name, Forgetful)
    card = card_for(Forgetful())
    monkeypatch.setitem(ALGORITHMS, card.name, card)
    noise = {"mechanism": "gaussian", "scale": (("sigma", 9.0),), "queries": 20}
    with pytest.raises(PrivacyError, match=f"'forgetful' went past level {level} without the ledger's noise"):
        run(replace(QUICK, algorithm="fedkt-forgetful", level=level, **noise))


def test_a_voting_that_tells_bare_class_counts_at_level_l2_is_refused(monkeypatch):
    @dataclass(frozen=True)
    class Gossip(Plain):
        name = "gossip"
        levels = ("L0", "L2")

        def message(self, fedkt, party, students):
            return replace(students, counts=tuple(np.bincount(party.y, minlength=len(party.classes)).tolist()))

    X = np.random.default_rng(0).normal(size=(60, 2))
    party = Party(X[:30], ("no", "yes"), 1, name="north", X=X[30:], y=(X[30:, 0] > 0).astype(np.int64))
    algorithm = FedKT("tree", voting=Gossip(), level="L2", noise=Gaussian(9.0), queries=10)
    with pytest.raises(PrivacyError, match="'gossip' went past level L2 without the ledger's noise"):
        algorithm.party_step(party, None)


def test_a_voting_says_in_words_what_it_is():
    with pytest.raises(TypeError, match="Mute does not say its name, title, summary, server_rule, choice, assumption"):
        type("Mute", (Voting,), {})


def test_a_new_voting_can_be_agreed_on_and_its_students_travel(plain, tmp_path):
    rng = np.random.default_rng(0)
    public = tmp_path / "public.csv"
    public.write_text("a,b\n" + "".join(f"{a:.4f},{b:.4f}\n" for a, b in rng.normal(size=(60, 2))))
    plan = make_plan(public, label="y", classes=("no", "yes"), parties=["north", "south"], voting="plain", model="tree")
    assert parse_plan(plan.to_toml().encode(), "plan.toml").digest == plan.digest
    assert "The server counts every student's vote" in plan.explain()
    algorithm, rows = plan.algorithm(), plan.columns.encode(plan.read_public(public))
    sent = []
    for seed, name in enumerate(plan.names):
        X = rng.normal(size=(50, rows.shape[1])).astype(np.float32)
        party = Party(rows, plan.classes, seed, name=name, X=X, y=(X[:, 0] > 0).astype(np.int64))
        made = replace(algorithm.party_step(party, None), plan=plan.digest)
        sent.append(unpack(pack(made, check_rows=rows), source=name, expected=plan.expected))
    final = algorithm.server_step(Server(rows, plan.classes, 9), sent)
    assert np.mean(final.models[0].predict(rows) == (rows[:, 0] > 0)) > 0.7


@pytest.mark.parametrize("name", ["consistent", "fedkt"])
def test_a_voting_is_understood_by_its_own_name_and_by_that_of_its_algorithm(name):
    assert FedKTClassifier(voting=name, n_parties=2).fit(*_halves()).report_.algorithm == "fedkt"


def test_an_unknown_voting_is_refused_with_the_known_ones():
    with pytest.raises(ConfigurationError, match=r"no voting 'loud'.*consistent, expert, expert-no-counts"):
        FedKTClassifier(voting="loud", n_parties=2).fit(*_halves())


def test_the_command_line_lists_the_catalogue():
    assert set(ALGORITHMS) <= set(
        fedkt("simulate", "digits", "--algorithm", "none").stderr.replace(",", " ").replace(".", " ").split()
    )


def _halves():
    X = np.random.default_rng(1).normal(size=(60, 2))
    return X, X[:, 0] > 0
