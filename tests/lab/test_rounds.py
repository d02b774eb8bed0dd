"""Runs of several rounds: what is written down after each, and that a killed one goes on as if nothing had been."""

import json
from dataclasses import replace
from functools import wraps

import numpy as np
import pytest

pytest.importorskip("torch")

from fedkt.algorithms import ALGORITHMS
from fedkt.bundle import Bundle, pack
from fedkt.errors import DataError
from fedkt.federation import Checkpoint
from fedkt.lab import rounds as kept_rounds
from fedkt.lab.results import stored
from fedkt.lab.rounds import Rounds, folder_for, forget
from fedkt.lab.runner import run
from fedkt.lab.series import run_all
from fedkt.lab.setting import Setting, fingerprint

# A step size with which SCAFFOLD's plain SGD moves: control variates that are lost must change the result.
QUICK = Setting("digits", model="mlp", parties=3, partitions=1, subsets=2, epochs=2, rounds=4, learning_rate=0.05)
CLOCKS = ("seconds", "cpu_seconds")


class Killed(BaseException):
    """Stands for the signal that ends a process."""


def figures(report):
    return {name: value for name, value in report.as_dict().items() if name not in CLOCKS}


@pytest.fixture
def killed_after(monkeypatch):
    """A run that is killed as soon as round `number` was kept."""

    def until(number, setting, results, **options):
        keep = Rounds.keep

        def keep_and_die(self, reached):
            keep(self, reached)
            if reached.rounds == number:
                raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(Rounds, "keep", keep_and_die)
            with pytest.raises(Killed):
                run_all([setting], results=results, **options)
        folder = folder_for(results, fingerprint(setting.with_defaults()))
        assert folder is not None
        assert folder.is_dir()
        return folder

    return until


@pytest.fixture
def sent_messages(monkeypatch):
    """Everything an algorithm's sides give each other, written down on the way."""
    heard = []

    def listen(name):
        card = ALGORITHMS[name]

        def make(*given, **settings):
            algorithm = card.make(*given, **settings)
            play = algorithm.party_steps

            def party_steps(parties, broadcast, **options):
                sent = play(parties, broadcast, **options)
                heard.append((broadcast, sent, parties[0].public))
                return sent

            algorithm.party_steps = party_steps
            return algorithm

        monkeypatch.setitem(ALGORITHMS, name, replace(card, make=wraps(card.make)(make)))
        return heard

    return listen


@pytest.mark.parametrize("algorithm", ["fedavg", "scaffold", "fedkt-prox"])
def test_every_round_has_its_accuracy_and_the_bytes_of_its_packed_messages(algorithm, sent_messages):
    heard = sent_messages(algorithm)
    report = run(replace(QUICK, algorithm=algorithm, rounds=3), measure_bytes=True)
    assert [each["round"] for each in report.history] == [1, 2, 3]
    assert report.history[-1]["accuracy"] == report.accuracy
    assert len(heard) == 3
    for each, (down, up, public) in zip(report.history, heard, strict=True):
        assert sum(party["sent"] for party in each["by_party"].values()) == each["sent"]
        assert sum(party["received"] for party in each["by_party"].values()) == each["received"]
        assert sorted(each["by_party"]) == sorted(bundle.sender for bundle in up)
        assert each["sent"] == sum(len(pack(bundle, check_rows=public)) for bundle in up)
        assert each["received"] == (0 if down is None else 3 * len(pack(down, check_rows=public)))
    assert report.bytes_sent == sum(each["sent"] for each in report.history)
    assert report.bytes_received == sum(each["received"] for each in report.history)


def test_only_the_parties_that_take_part_are_counted():
    report = run(replace(QUICK, algorithm="fedavg", rounds=2, participation=0.34))
    whole = run(replace(QUICK, algorithm="fedavg", rounds=2))
    assert report.participation == 0.34
    # One party of three: a third of the bytes, up to how well the weights compress.
    for each, all_of_them in zip(report.history, whole.history, strict=True):
        assert each["received"] == pytest.approx(all_of_them["received"] / 3, rel=0.02)
        assert each["sent"] == pytest.approx(all_of_them["sent"] / 3, rel=0.02)


def test_the_students_before_the_rounds_are_measured_without_being_asked():
    report = run(replace(QUICK, algorithm="fedkt-prox", rounds=2))
    assert all(each["sent"] > 0 for each in report.history)
    assert (report.partitions, report.subsets) == (1, 2)


def test_a_method_of_one_round_has_no_history():
    report = run(replace(QUICK, algorithm="fedavg", rounds=1))
    assert report.history == ()
    assert report.bytes_sent > 0


@pytest.mark.parametrize("algorithm", ["fedavg", "scaffold", "feddf", "fedkt-prox"])
def test_a_run_killed_between_rounds_ends_with_the_figures_of_one_that_was_not(algorithm, tmp_path, killed_after):
    setting, results = replace(QUICK, algorithm=algorithm), tmp_path / "results.jsonl"
    folder = killed_after(2, setting, results, measure_bytes=True)
    assert not results.exists()
    (resumed,) = run_all([setting], results=results, measure_bytes=True)
    assert figures(resumed) == figures(run(setting, measure_bytes=True))
    assert not folder.exists()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["results.jsonl"]
    assert [figures(each) for each in stored(results).values()] == [figures(resumed)]


def test_a_resumed_run_does_not_play_the_finished_rounds_again(tmp_path, killed_after, sent_messages):
    setting, results = replace(QUICK, algorithm="fedavg"), tmp_path / "results.jsonl"
    killed_after(3, setting, results)
    heard = sent_messages("fedavg")
    run_all([setting], results=results)
    assert len(heard) == 1


def test_a_run_killed_twice_keeps_what_was_told_in_both_parts(tmp_path, killed_after):
    setting, results = replace(QUICK, algorithm="fedkt-prox"), tmp_path / "results.jsonl"
    killed_after(1, setting, results)
    folder = killed_after(3, setting, results)
    told = json.loads((folder / "reached.json").read_text())["told"]
    # The vote was in the first part: the second process never saw a label.
    (resumed,) = run_all([setting], results=results)
    assert resumed.label_accuracy is not None
    assert resumed.votes["voters"] == 3
    assert resumed.seconds > told["seconds"] > 0
    assert figures(resumed) == figures(run(setting))


def test_a_kill_before_the_result_is_written_costs_no_round(tmp_path, monkeypatch, sent_messages):
    setting, results = replace(QUICK, algorithm="fedavg"), tmp_path / "results.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr("fedkt.lab.series.append_line", lambda *_: (_ for _ in ()).throw(Killed()))
        with pytest.raises(Killed):
            run_all([setting], results=results)
    heard = sent_messages("fedavg")
    (resumed,) = run_all([setting], results=results)
    assert heard == []
    assert len(resumed.history) == 4


def test_control_variates_that_are_lost_change_the_result(tmp_path, killed_after):
    # Otherwise the comparison above would say nothing about them.
    setting, results = replace(QUICK, algorithm="scaffold"), tmp_path / "results.jsonl"
    folder = killed_after(2, setting, results)
    place = folder / "round-2.npz"
    with np.load(place) as held:
        arrays = {name: held[name] for name in held.files}
    controls = [name for name in arrays if name.startswith("shelf/")]
    assert len({name.split("/")[1] for name in controls}) == 3
    np.savez(place, **{name: each * 0 if name in controls else each for name, each in arrays.items()})
    (resumed,) = run_all([setting], results=results)
    assert resumed.history != run(setting).history


def checkpoint(folder, rounds=1):
    arrays = {"w0": np.arange(6.0), "w1": np.ones((2, 2))}
    shelves = {"north/east": {"control": (np.zeros(2), np.ones(3))}, "broadcast/w0": {"control": (np.full(1, 7.0),)}}
    reached = Checkpoint(rounds, Bundle("server", (0, 1), (), arrays=arrays), shelves)
    writer = Rounds(None, np.zeros((1, 2), np.float32), False, folder)
    writer.figures = [kept_rounds.RoundFigures(number + 1, 0.5, 10, 20) for number in range(rounds)]
    writer.keep(reached)
    return reached


def test_what_is_kept_comes_back_whatever_a_party_is_called(tmp_path):
    reached = checkpoint(tmp_path / "kept", rounds=2)
    found = Rounds(None, np.zeros((1, 2), np.float32), False, tmp_path / "kept").resume((0, 1))
    assert found.rounds == 2
    assert {name: each.tolist() for name, each in found.broadcast.arrays.items()} == {
        "w0": [0, 1, 2, 3, 4, 5],
        "w1": [[1, 1], [1, 1]],
    }
    assert set(found.shelves) == set(reached.shelves)
    assert [each.tolist() for each in found.shelves["north/east"]["control"]] == [[0, 0], [1, 1, 1]]


def test_more_than_ten_arrays_on_a_shelf_come_back_in_order(tmp_path):
    shelf = {"control": tuple(np.full(1, float(place)) for place in range(12))}
    reached = Checkpoint(1, Bundle("server", (0,), (), arrays={"w0": np.ones(1)}), {"north": shelf})
    writer = Rounds(None, np.zeros((1, 2), np.float32), False, tmp_path / "kept")
    writer.figures = [kept_rounds.RoundFigures(1, 0.5, 10, 20)]
    writer.keep(reached)
    found = Rounds(None, np.zeros((1, 2), np.float32), False, tmp_path / "kept").resume((0,))
    assert [each.item() for each in found.shelves["north"]["control"]] == list(range(12))


def test_only_the_last_round_is_kept(tmp_path):
    checkpoint(tmp_path, rounds=1)
    checkpoint(tmp_path, rounds=2)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["reached.json", "round-2.npz"]


@pytest.mark.parametrize(
    "said",
    [
        "",
        "[]",
        "{",
        '"two"',
        "{}",
        '{"rounds": 7, "figures": []}',
        '{"rounds": 1, "figures": []}',
        '{"rounds": 1, "figures": [{"round": 1}]}',
        '{"rounds": 1, "figures": [{"round": 1, "accuracy": 1, "sent": 1, "received": 1}], "told": {"x": 1}}',
        '{"rounds": 1, "figures": [{"round": 1, "accuracy": 1, "sent": 1, "received": 1}], "told": []}',
        '{"rounds": "1", "figures": [{"round": 1, "accuracy": 1, "sent": 1, "received": 1}]}',
    ],
)
def test_a_damaged_word_about_the_rounds_is_refused(tmp_path, said):
    checkpoint(tmp_path)
    (tmp_path / "reached.json").write_text(said)
    with pytest.raises(DataError, match=r"does not hold the rounds of an interrupted run .*Remove it to start again"):
        Rounds(None, np.zeros((1, 2), np.float32), False, tmp_path).resume((0, 1))


@pytest.mark.parametrize("damage", ["cut", "empty", "gone", "noise", "flipped"])
def test_damaged_weights_are_refused(tmp_path, damage):
    checkpoint(tmp_path)
    place = tmp_path / "round-1.npz"
    whole = place.read_bytes()
    if damage == "gone":
        place.unlink()
    else:
        middle = whole.index(b"NUMPY") + 120
        flipped = whole[:middle] + bytes([whole[middle] ^ 0xFF]) + whole[middle + 1 :]
        place.write_bytes({"cut": whole[:-40], "empty": b"", "noise": b"\x93" * 99, "flipped": flipped}[damage])
    with pytest.raises(DataError, match=r"does not hold the rounds of an interrupted run .*Remove it to start again"):
        Rounds(None, np.zeros((1, 2), np.float32), False, tmp_path).resume((0, 1))


def test_a_folder_that_was_written_without_notes_can_be_gone_on_with(tmp_path):
    checkpoint(tmp_path)
    said = json.loads((tmp_path / "reached.json").read_text())
    del said["told"]
    (tmp_path / "reached.json").write_text(json.dumps(said))
    assert Rounds(None, np.zeros((1, 2), np.float32), False, tmp_path).resume((0, 1)).rounds == 1


def test_rounds_of_another_run_in_the_same_place_stay(tmp_path):
    checkpoint(tmp_path / "x.rounds" / "one")
    checkpoint(tmp_path / "x.rounds" / "two")
    forget(tmp_path / "x.rounds" / "one")
    assert [each.name for each in (tmp_path / "x.rounds").iterdir()] == ["two"]
    forget(tmp_path / "x.rounds" / "two")
    assert list(tmp_path.iterdir()) == []
