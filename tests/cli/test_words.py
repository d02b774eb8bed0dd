"""What somebody reads who takes one file, key or option for another."""

import pytest

from fedkt.errors import ConfigurationError, PlanError
from fedkt.signing import load_key, new_key
from live_federation import build, fedkt, new_plan


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of three hospitals and their plan; what a test changes it copies."""
    folder = tmp_path_factory.mktemp("words")
    build(folder)
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
