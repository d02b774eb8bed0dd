"""What somebody reads who takes one file, key or option for another."""

import json
import shutil

import pytest

from fedkt.bundle.signing import load_key, new_key
from fedkt.errors import BundleError, ConfigurationError, ModelError, PlanError, PrivacyError
from fedkt.plan import read_plan
from live_federation import NAMES, build, fedkt, new_plan, party, server


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of three hospitals and their plan; what a test changes it copies."""
    folder = tmp_path_factory.mktemp("words")
    build(folder)
    return folder


@pytest.fixture(scope="module")
def sent(folder):
    """The same, where every party has sent its bundle."""
    for name in NAMES:
        party(folder, name)
    return folder


def test_a_servers_key_is_not_said_to_go_into_the_plan(tmp_path):
    told = fedkt("keys", "new", "server", "-o", tmp_path).out
    assert "A server's key does not go into the plan" in told
    assert "--server-key" in told
    assert "plan new" not in told
    assert "fedkt plan new … --key north=" in fedkt("keys", "new", "north", "-o", tmp_path).out


def test_a_public_key_passed_as_the_private_one_is_named_as_such(tmp_path):
    fedkt("keys", "new", "server", "-o", tmp_path)
    path = tmp_path / "server.pub"
    with pytest.raises(ConfigurationError) as caught:
        load_key(path.read_bytes(), source=str(path))
    assert str(caught.value) == f"{path} holds a public key; only a private one can sign. Pass {tmp_path}/server.key."
    with pytest.raises(ConfigurationError, match="could not be read"):
        load_key(b"\xff\xfe no key", source="north.key")


@pytest.mark.parametrize("misnamed", [False, True])
def test_a_private_key_passed_as_the_public_one_is_refused_and_not_shown(folder, tmp_path, misnamed):
    path = tmp_path / ("north.pub" if misnamed else "north.key")
    pem = new_key().to_pem()
    path.write_bytes(pem)
    for run in (
        lambda: new_plan(folder, "-o", tmp_path / "plan.toml", "--key", f"north={path}"),
        lambda: fedkt("predict", "final.onnx", "new.csv", "--server-key", path),
    ):
        with pytest.raises(ConfigurationError, match=r"holds a private key\. Pass the public one") as caught:
            run()
        assert pem.decode().splitlines()[1][:20] not in str(caught.value)
    with pytest.raises(ConfigurationError, match="A private key was given as a public one"):
        fedkt("predict", "final.onnx", "new.csv", "--server-key", pem.decode())


def test_a_party_with_a_wrong_key_is_not_said_to_be_missing_as_well(folder, tmp_path):
    with pytest.raises(PlanError, match="not base64 text") as caught:
        new_plan(folder, "--key", "north=***", "-o", tmp_path / "plan.toml", parties=("north",))
    assert "are needed" not in str(caught.value)


def test_a_bundle_of_another_plan_is_refused_for_its_plan_and_not_for_what_follows_from_it(sent, tmp_path):
    fedkt("keys", "new", "north", "-o", tmp_path)
    shutil.copytree(sent / "inbox", tmp_path / "inbox")
    shutil.copy(sent / "public.csv", tmp_path)
    for more in (("--partitions", "1"), ("--key", f"north={tmp_path / 'north.pub'}")):
        new_plan(tmp_path, *more, "--force")
        digest = read_plan(tmp_path / "plan.toml").digest
        words = f"was made under plan {read_plan(sent / 'plan.toml').digest[:6]}; this server runs {digest[:6]}"
        told = fedkt("inspect", sent / "inbox" / "north.fedkt", "--plan", tmp_path / "plan.toml", "--json", code=1)
        assert words in json.loads(told.out)["verdict"]
        with pytest.raises(BundleError, match=words):
            server(tmp_path)


def test_more_models_than_agreed_on_are_refused_before_any_is_unpacked(sent, tmp_path, monkeypatch):
    from fedkt.bundle.archive import Archive
    from fedkt.live.arrivals import judge
    from fedkt.live.inbox import limits_for

    new_plan(sent, "--partitions", "1", "-o", tmp_path / "plan.toml")
    plan, data = read_plan(tmp_path / "plan.toml"), (sent / "inbox" / "north.fedkt").read_bytes()
    read, names = Archive.read, []
    monkeypatch.setattr(Archive, "read", lambda self, name: names.append(name) or read(self, name))
    found = judge(plan, data, "north.fedkt", limits_for(plan))
    assert "made under plan" in found.reason
    assert found.party == "north"
    assert set(names) == {"manifest.json"}


def test_the_servers_list_names_a_refused_file_once(sent, tmp_path):
    for name in ("plan.toml", "public.csv"):
        shutil.copy(sent / name, tmp_path)
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "broken.fedkt").write_bytes(b"hello")
    with pytest.raises(BundleError, match=r"refused: broken\.fedkt: it is not a zip archive\.") as caught:
        server(tmp_path)
    assert str(caught.value).count("broken.fedkt") == 1


def test_too_little_memory_is_refused_with_the_option_that_gives_more(sent, tmp_path):
    shutil.copytree(sent, tmp_path, dirs_exist_ok=True)
    (tmp_path / "inbox" / "large.fedkt").write_bytes(bytes(2_000_000))
    with pytest.raises(BundleError) as caught:
        server(tmp_path, "--memory", "0.000003")
    told = [line for line in str(caught.value).splitlines() if "refused:" in line]
    # 1,000 bytes for each of three parties, and room for a manifest.
    assert len(told) == 4
    assert all("(a party's share of --memory; pass a larger one)" in line for line in told)


@pytest.mark.parametrize("option", ["--memory", "--cpu-hours"])
@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf"])
def test_nothing_to_run_with_is_refused_in_words(sent, option, value):
    with pytest.raises(ConfigurationError, match=f"{option} takes a number above zero, got {value}"):
        server(sent, option, value)


@pytest.mark.parametrize("content", ["age,outcome\n61,yes\n", "one line, as in a public key\n", "{\n}\n"])
def test_a_file_that_is_no_ledger_is_said_to_be_none_and_stays_as_it_is(tmp_path, content):
    path = tmp_path / "north.csv"
    path.write_text(content)
    with pytest.raises(PrivacyError, match=r"north\.csv is not a ledger") as caught:
        fedkt("privacy", "ledger", path)
    assert "Did you mean" not in str(caught.value)
    (tmp_path / "north.csv.ledger").touch()
    with pytest.raises(PrivacyError, match=r"Did you mean .*/north\.csv\.ledger\?"):
        fedkt("privacy", "ledger", path)
    assert path.read_text() == content


def test_a_bundle_and_a_public_file_in_the_wrong_place_are_named(sent):
    with pytest.raises(ModelError, match=r"is a party's bundle, not a final model\. Use the final\.onnx"):
        fedkt("predict", sent / "inbox" / "north.fedkt", sent / "test.csv")
    with pytest.raises(PlanError, match=r"public\.csv is not TOML: .* Is it the plan\?"):
        fedkt(
            *("party", sent / "public.csv", "--name", "north", "--data", sent / "north.csv"),
            *("--public", sent / "plan.toml"),
        )


@pytest.mark.parametrize(("user", "told"), [(0, True), (1000, False)])
def test_the_doctor_tells_root_with_which_wall_the_hidden_parent_counts(monkeypatch, user, told):
    from fedkt.cli.doctor import in_words
    from fedkt.models.wall_trial import Trial

    monkeypatch.setattr("os.geteuid", lambda: user)
    trial = Trial(("limits",), {"remove a file": "possible"})
    lines = in_words({"none": trial, "all": trial})
    assert ("As root the wall 'hidden parent' counts only together with 'capabilities'." in lines) is told
