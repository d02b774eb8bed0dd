"""Moments at level L1 between organisations: the server adds noise to one total, and tells nothing of a party."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from fedkt.algorithms.class_sums import MOMENTS
from fedkt.bundle import pack, unpack
from fedkt.errors import BundleError, PrivacyError
from fedkt.plan import read_plan
from fedkt.privacy import Ledger
from live_federation import NAMES, build, fedkt, party, server

SHARES = ("--class-shares", "malignant=0.4")


def plan_at(folder, *more):
    members = [word for name in NAMES for word in ("--party", name)]
    return fedkt(
        *("plan", "new", "--public", folder / "public.csv", "--label", "diagnosis", "--classes", "malignant,benign"),
        *("--voting", "moments", "--level", "L1", "--force", "-o", folder / "plan.toml", *members, *more),
    )


def sent_under(folder, *more):
    build(folder)
    plan_at(folder, *more)
    for name in NAMES:
        party(folder, name)
    return folder


@pytest.fixture(scope="module")
def agreed(tmp_path_factory):
    """Three hospitals that have sent; with so few of them a large epsilon is needed for anything to be left."""
    return sent_under(tmp_path_factory.mktemp("L1"), "--epsilon", "60", *SHARES)


@pytest.fixture
def copied(agreed, tmp_path):
    return shutil.copytree(agreed, tmp_path / "copy")


def entries(folder):
    (ledger,) = folder.glob("parties-*.ledger")
    return json.loads(fedkt("privacy", "ledger", ledger, "--json").out)["entries"]


def files_in(folder):
    return {path.name: path.read_bytes() for path in (folder / "result").iterdir()}


def test_the_plan_says_what_travels_what_is_promised_and_who_is_trusted(agreed):
    said = " ".join(fedkt("plan", "check", agreed / "plan.toml").out.split())
    for words in (
        "for one party (replace-one)",
        "on every number of the total of 3 parties, one release",
        "trusted with every party's sums as they are",
        "Shares counted in the parties' rows do not belong here",
        "few parties drown in it",
    ):
        assert words in said
    assert "may claim to have" not in said, "a party's rows do not decide how much it counts"
    assert "products" not in said
    assert read_plan(agreed / "plan.toml").privacy.class_shares == (0.4, 0.6)
    exact = fedkt("inspect", agreed / "inbox" / "north.fedkt", "--plan", agreed / "plan.toml").out
    assert "exact sums of" in " ".join(exact.split())


def test_class_shares_are_part_of_the_agreement_and_none_are_too(agreed, tmp_path):
    folder = shutil.copytree(agreed, tmp_path / "other")
    plan_at(folder, "--epsilon", "60", "--class-shares", "malignant=0.3")
    other = read_plan(folder / "plan.toml").digest
    plan_at(folder, "--epsilon", "60")
    none = read_plan(folder / "plan.toml")
    assert none.privacy.class_shares is None
    assert "class_shares =" not in (folder / "plan.toml").read_text()
    assert len({other, none.digest, read_plan(agreed / "plan.toml").digest}) == 3
    assert "--class-shares makes the final model better" in " ".join(
        fedkt("plan", "check", folder / "plan.toml").out.split()
    )


@pytest.mark.parametrize("more", [(), SHARES])
def test_one_noisy_total_is_paid_for_once_and_makes_a_final_model_that_is_right(tmp_path, more):
    folder = sent_under(tmp_path, "--epsilon", "60", *more)
    said = json.loads(server(folder, "--test", folder / "test.csv", "--json").out)
    assert said["accuracy"] > 0.8
    assert said["epsilon"] <= 60
    assert said["epsilon"] == pytest.approx(60, rel=1e-4)
    assert said["privacy_statement"]["unit"] == "party"
    assert "every party's sums without noise" in said["privacy"]
    (entry,) = entries(folder)
    assert (entry["who"], entry["mechanism"], entry["voters"]) == ("server", "gaussian-sums", 3)
    server(folder)
    first = (folder / "result" / "final.onnx").read_bytes()
    server(folder)
    assert (folder / "result" / "final.onnx").read_bytes() == first
    assert len(entries(folder)) == 1


def test_nothing_in_the_result_tells_of_a_party(copied):
    server(copied, "--test", copied / "test.csv")
    report = json.loads((copied / "result" / "report.json").read_text())
    assert (report["votes"], report["party_accuracy"], report["bytes_sent"]) == ({}, {}, None)
    assert (report["rows"], report["party_rows"]) == ({"public": 100, "test": 100}, {})
    text = (copied / "result" / "report.json").read_text() + (copied / "result" / "model-card.md").read_text()
    for word in ("influence", "would have another label", "says it has", "do not resemble"):
        assert word not in text


def test_what_is_written_is_a_function_of_the_noisy_total_and_of_rows_that_are_nobodys(copied, monkeypatch):
    """A party's sums are others, the noisy total happens to be the same: so are all files but the ledger."""
    drawn, totals = Ledger.release_sums, []

    def same_total(ledger, add_up, release, *, shape, **noise):
        def added():
            totals.append(add_up())
            return totals[-1]

        found = drawn(ledger, added, release, shape=shape, **noise)
        return (np.arange(found.size).reshape(shape) % 7 - 3) * 100 + np.array([1, -1]) * 200

    monkeypatch.setattr(Ledger, "release_sums", same_total)
    plan_at(copied, "--epsilon", "60", *SHARES, "--seed", "7")
    for name in NAMES:
        party(copied, name)
    options = ("--test", copied / "test.csv", "--ledger", copied / "one.ledger")
    server(copied, *options)
    before = files_in(copied)
    lines = (copied / "west.csv").read_text().splitlines(keepends=True)
    turned = "".join(lines[:21]).replace("benign", "?").replace("malignant", "benign").replace("?", "malignant")
    (copied / "west.csv").write_text(turned)
    party(copied, "west")
    shutil.rmtree(copied / "result")
    for path in copied.glob("one.ledger*"):
        path.unlink()
    server(copied, *options)
    after = files_in(copied)
    assert (totals[0] != totals[1]).any()
    assert before.keys() == after.keys()
    for name in before.keys() - {"report.json"}:
        assert before[name] == after[name], name
    clocks = {"seconds", "cpu_seconds"}
    first, second = (
        {key: value for key, value in json.loads(each["report.json"]).items() if key not in clocks}
        for each in (before, after)
    )
    assert first == second


def test_the_noise_does_not_fall_with_the_parties_that_are_missing(copied):
    """The total is over all that agreed: who is missing is a table of zeros, and the price stays that of three."""
    (copied / "inbox" / "south.fedkt").unlink()
    server(copied, "--min-parties", "2")
    (entry,) = entries(copied)
    assert entry["voters"] == 3
    assert entry["scale"] == pytest.approx(dict(read_plan(copied / "plan.toml").privacy.noise.scale))


def test_other_bundles_need_other_noise_which_the_budget_does_not_cover(copied):
    server(copied)
    first = files_in(copied)
    (copied / "inbox" / "south.fedkt").unlink()
    with pytest.raises(PrivacyError, match="budget of 'server' does not cover"):
        server(copied, "--min-parties", "2")
    assert files_in(copied) == first
    assert len(entries(copied)) == 1


def test_a_server_killed_before_it_wrote_anything_goes_on_without_paying_again(copied, monkeypatch):
    def dies(*_, **__):
        raise RuntimeError("power cut")

    with monkeypatch.context() as broken:
        broken.setattr("fedkt.live.result.write_final", dies)
        with pytest.raises(AssertionError, match="power cut"):
            server(copied)
    assert len(entries(copied)) == 1
    server(copied)
    assert len(entries(copied)) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda sums: sums * 1.5, "class counts are not whole numbers"),
        (lambda sums: np.vstack([sums[:1], sums[1:] * 90]), "a longer sum than"),
        (lambda sums: -sums, "class counts are not whole numbers of at least 0"),
    ],
)
def test_sums_that_no_rows_have_do_not_count_and_only_the_operator_hears_why(copied, change, words):
    plan = read_plan(copied / "plan.toml")
    file = copied / "inbox" / "west.fedkt"
    bundle = unpack(file.read_bytes(), source="west", expected=plan.expected)
    broken = replace(bundle, arrays={MOMENTS: change(np.array(bundle.arrays[MOMENTS]))})
    rows = np.zeros((1, plan.columns.n_features), np.float32)
    file.write_bytes(pack(broken, check_rows=rows))
    with pytest.raises(BundleError, match=words):
        server(copied)
    assert not list(copied.glob("parties-*.ledger"))
    said = server(copied, "--min-parties", "2")
    assert words in " ".join((said.out + said.err).split())
    assert words not in (copied / "result" / "report.json").read_text()
