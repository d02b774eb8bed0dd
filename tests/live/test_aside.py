"""Rows that a party lays aside, and the final model judged by them."""

import csv
import hashlib
import json
import shutil
import stat
from dataclasses import replace

import numpy as np
import pytest

from fedkt.errors import ConfigurationError, DataError, ModelError
from fedkt.federation import Diary
from fedkt.live import party as live_party
from fedkt.live import shelf
from fedkt.live.aside import aside_key, aside_mask
from fedkt.live.final_file import read_final
from fedkt.live.judgement import judge_final
from fedkt.live.mailbox import mailbox_at
from fedkt.live.records import read_records
from fedkt.plan import read_plan
from live_federation import NAMES, build, fedkt, new_plan, party, server
from one_record import planned, played, records


def record_of(folder, name="north"):
    (path,) = folder.glob(f"{name}-*.aside.json")
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("aside")
    build(folder)
    for name in NAMES:
        party(folder, name, "--hold-out", "0.3")
    server(folder)
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return tmp_path


def judged(folder, name="north", *more):
    return fedkt(
        *("party", folder / "plan.toml", "--name", name, "--data", folder / f"{name}.csv"),
        *("--public", folder / "public.csv", "--evaluate", folder / "result" / "final.onnx", *more),
    )


def test_a_row_is_aside_by_a_keyed_hash_of_its_own_identity():
    names, key = [f"patient {place}" for place in range(2_000)], b"k" * 32
    digests = [hashlib.blake2b(name.encode(), digest_size=8, key=key).hexdigest() for name in names]
    by_hand = [int(each, 16) / 2**64 < 0.25 for each in digests]
    assert aside_mask(names, 0.25, key).tolist() == by_hand
    # Four standard deviations of a binomial.
    assert abs(sum(by_hand) - 500) < 4 * np.sqrt(2_000 * 0.25 * 0.75)
    other = aside_mask(names[::-1], 0.25, key)[::-1]
    assert other.tolist() == by_hand
    assert aside_mask(names, 0.25, aside_key("f" * 64, "south")).tolist() != by_hand


def test_rows_of_one_identity_stay_on_one_side(folder):
    lines = list(csv.reader((folder / "north.csv").read_text().splitlines()))
    with (folder / "patients.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*lines[0], "patient"])
        writer.writerows([*line, place // 3] for place, line in enumerate(lines[1:]))
    plan = read_plan(folder / "plan.toml")
    own = read_records(plan, "north", folder / "patients.csv", "patient", Diary(), share=0.3)
    assert own.aside is not None
    assert not set(own.ids) & set(own.aside.ids)
    assert len(own.y) + len(own.aside.y) == 60
    assert len(own.aside.y) % 3 == 0
    assert len(own.aside.y) > 0


def test_what_is_aside_is_learned_by_nobody(folder):
    """A party that never had these rows sends the same students."""
    plan = read_plan(folder / "plan.toml")
    aside = read_records(plan, "north", folder / "north.csv", None, Diary(), share=0.3)
    lines = (folder / "north.csv").read_text().splitlines()
    places = aside_mask(list(map(str, range(60))), 0.3, aside_key(plan.digest, "north"))
    assert places.sum() == len(aside.aside.y) > 0
    kept = [line for line, is_aside in zip(lines[1:], places, strict=True) if not is_aside]
    (folder / "fewer.csv").write_text("\n".join([lines[0], *kept, ""]))
    party(folder, "north", data=folder / "fewer.csv", out=folder / "fewer")
    assert (folder / "fewer" / "north.fedkt").read_bytes() == (folder / "inbox" / "north.fedkt").read_bytes()


def test_the_judgement_is_that_of_the_rows_aside_and_nothing_else(folder):
    plan, final = read_plan(folder / "plan.toml"), read_final(folder / "result" / "final.onnx")
    told = judge_final(plan, "south", final, data=folder / "south.csv", public=folder / "public.csv")
    table = plan.columns.read(folder / "south.csv")
    places = aside_mask(list(map(str, range(60))), 0.3, aside_key(plan.digest, "south"))
    X, y = plan.columns.encode(table), plan.columns.labels(table, plan.classes)
    right = final.model.predict(X[places]) == y[places]
    assert told.rows == places.sum() == told.final.rows == told.own.rows
    assert told.learned == 60 - told.rows
    assert told.final.accuracy.value == right.mean()
    assert told.difference.value == pytest.approx(told.final.accuracy.value - told.own.accuracy.value)
    assert set(told.tried) == {"logistic", "tree"}
    assert told.family == max(told.tried, key=told.tried.get)


def test_a_final_model_that_makes_a_party_worse_is_said_to(folder):
    """The final model of parties whose labels are turned round is worse for whoever was not among them."""
    for name in ("south", "west"):
        text = (folder / f"{name}.csv").read_text()
        turned = text.replace("benign", "?").replace("malignant", "benign").replace("?", "malignant")
        (folder / f"{name}.csv").write_text(turned)
        party(folder, name)
    server(folder)
    said = judged(folder)
    assert "Attention: The final model is worse than your own (tree)" in " ".join(said.out.split())
    assert "use your own model" in " ".join(said.out.split())
    facts = json.loads(judged(folder, "north", "--json").out)
    assert facts["outcome"] == "worse"
    assert facts["difference"]["high"] < 0


def test_so_few_rows_are_not_taken_for_a_proof(finished):
    said = judged(finished)
    assert said.out.startswith("The final model and your own (tree) cannot be told apart")


def test_nothing_about_rows_aside_is_in_the_bundle_or_readable_by_others(finished):
    path = record_of(finished)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["share"] == 0.3
    assert [each.name for each in (finished / "inbox").iterdir() if not each.name.endswith(".fedkt")] == []


def test_a_party_that_laid_nothing_aside_is_not_judged(folder):
    party(folder, "north")
    with pytest.raises(DataError, match=r"No rows of 'north' were laid aside .* --hold-out 0\.2"):
        judged(folder)


def test_other_data_another_share_or_another_column_are_refused(folder):
    with pytest.raises(ConfigurationError, match=r"0\.3 of the rows were laid aside before the training"):
        judged(folder, "north", "--hold-out", "0.2")
    with pytest.raises(ConfigurationError, match="rows were laid aside without --id"):
        judged(folder, "north", "--id", "patient")
    lines = (folder / "north.csv").read_text().splitlines(keepends=True)
    (folder / "north.csv").write_text("".join(lines[:-1]))
    with pytest.raises(DataError, match="not the file that rows were laid aside from"):
        judged(folder)


def test_a_final_model_of_another_plan_and_a_training_that_was_not_finished_are_refused(folder):
    path = record_of(folder)
    told = json.loads(path.read_text())
    path.write_text(json.dumps({**told, "bundles": []}))
    with pytest.raises(DataError, match="was not finished"):
        judged(folder)
    path.write_text("{")
    with pytest.raises(DataError, match="is damaged"):
        judged(folder)
    new_plan(folder, "--force", "--seed", "7")
    with pytest.raises(ModelError, match="was made under plan"):
        judged(folder)


def test_a_final_model_made_from_an_earlier_bundle_that_knew_the_rows_is_refused(folder):
    """First without rows aside, then with: the server still has the first bundle's final model."""
    party(folder, "north")
    server(folder)
    sent = party(folder, "north", "--hold-out", "0.3")
    assert "an earlier one of yours may have learned from rows that are aside now" in " ".join(sent.out.split())
    with pytest.raises(DataError, match=r"was made from another bundle of 'north' .* may have learned from them"):
        judged(folder)
    server(folder)
    assert json.loads(judged(folder, "north", "--json").out)["bundle_known"] is True


def test_where_no_report_tells_which_bundle_was_used_the_party_is_told_so(folder):
    facts = json.loads(judged(folder, "north", "--json").out)
    assert (facts["bundle_known"], facts["notes"]) == (True, [])
    for damage in (None, "{", "[]", '{"final_sha256": "another", "bundles": 3}'):
        path = folder / "result" / "report.json"
        path.unlink() if damage is None else path.write_text(damage)
        facts = json.loads(judged(folder, "north", "--json").out)
        assert facts["bundle_known"] is False
        assert facts["bundle"] == hashlib.sha256((folder / "inbox" / "north.fedkt").read_bytes()).hexdigest()
        assert "If it used an earlier one, the final model has learned from these rows" in facts["notes"][0]


def test_an_earlier_bundle_with_the_same_rows_aside_will_do(folder):
    """With a private seed, or a new issue, the same training sends other bytes."""
    first = hashlib.sha256((folder / "inbox" / "north.fedkt").read_bytes()).hexdigest()
    plan = read_plan(folder / "plan.toml")
    places = {"data": folder / "north.csv", "public": folder / "public.csv", "work": folder / "work"}
    with pytest.MonkeyPatch.context() as other:
        other.setattr(shelf, "seed_for", lambda *_: 123)
        sent = live_party.run_party(plan, "north", **places, outbox=mailbox_at(folder / "x"), hold_out=0.3)
    assert sent.sha256 != first
    facts = json.loads(judged(folder, "north", "--json").out)
    assert (facts["bundle"], facts["bundle_known"]) == (first, True)
    assert json.loads(record_of(folder).read_text())["bundles"] == [first, sent.sha256]
    party(folder, "north", "--hold-out", "0.2")
    assert first not in json.loads(record_of(folder).read_text())["bundles"]


def test_a_final_model_that_was_made_without_the_party_may_be_judged(folder):
    (folder / "inbox" / "north.fedkt").unlink()
    server(folder, "--min-parties", "2")
    facts = json.loads(judged(folder, "north", "--json").out)
    assert facts["bundle_known"] is True
    assert facts["notes"] == ["By the server's report the final model was made without a bundle of yours."]


@pytest.mark.parametrize("share", ["0", "0.6", "20", "nan", "-0.1"])
def test_a_share_that_cannot_be_laid_aside_is_refused(folder, share):
    with pytest.raises(ConfigurationError, match="--hold-out takes the share of your rows"):
        party(folder, "north", "--hold-out", share)


def test_work_begun_without_rows_aside_is_not_gone_on_with(folder, monkeypatch):
    def power_cut(*_, **__):
        raise KeyboardInterrupt

    plan, places = read_plan(folder / "plan.toml"), {"data": folder / "north.csv", "public": folder / "public.csv"}
    with monkeypatch.context() as cut:
        cut.setattr(live_party, "send", power_cut)
        with pytest.raises(KeyboardInterrupt):
            live_party.run_party(plan, "north", **places, outbox=mailbox_at(folder / "x"), work=folder / "work")
    said = party(folder, "north", "--hold-out", "0.3")
    assert "begun with another data file or --id, or --hold-out" in said.err


@pytest.mark.parametrize("kind", ["csv with ids", "csv"])
def test_at_level_l2_a_record_moves_one_teacher_a_partition_and_one_that_is_aside_none(tmp_path, kind):
    plan, public, column = planned(tmp_path, kind, "tree")
    own = records()
    identities = list(map(str, range(len(own.names)))) if column is None else [str(int(each)) for each in own.names]
    is_aside = aside_mask(identities, 0.4, aside_key(plan.digest, "north"))
    before = played(tmp_path / "before", plan, public, column, kind, own, hold_out=0.4)
    for is_used, teachers in ((True, plan.partitions), (False, 0)):
        pixels = own.pixels.copy()
        place = int(np.flatnonzero(is_aside != is_used)[0])
        pixels[place] = 255 - pixels[place]
        changed = replace(own, pixels=pixels)
        after = played(tmp_path / f"after {is_used}", plan, public, column, kind, changed, hold_out=0.4)
        assert sum(after.teachers[name] != learned for name, learned in before.teachers.items()) == teachers
        assert after.manifest["files"][0].keys() == before.manifest["files"][0].keys()
