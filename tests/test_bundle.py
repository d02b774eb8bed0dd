"""A bundle goes out and comes back the same."""

import io
import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from fedkt.bundle import Bundle, pack, peek, unpack
from fedkt.errors import BundleError, ModelError
from fedkt.models.base import fit_model
from fedkt.models.exchange import OnnxModel
from fedkt.models.sandbox import run_models
from fedkt.signing import new_key

ROWS = np.random.default_rng(5).normal(size=(200, 4)).astype(np.float32)
LABELS = (ROWS[:, 0] > 0).astype(int) * 2
AGREED = {"plan": "3fa9c1", "classes": ("no", "maybe", "yes"), "n_features": 4}


@pytest.fixture(scope="module")
def bundle():
    models = tuple(
        fit_model(each, ROWS, LABELS, rng=np.random.default_rng(0))
        for each in (RandomForestClassifier(5), LogisticRegression())
    )
    return Bundle("north", AGREED["classes"], models, AGREED["plan"])


def test_what_is_unpacked_predicts_what_was_packed(bundle):
    received = unpack(pack(bundle, check_rows=ROWS), source="north.zip", **AGREED)
    assert (received.sender, received.classes, received.plan) == ("north", ("no", "maybe", "yes"), "3fa9c1")
    answers = run_models([model.data for model in received.models], ROWS, n_classes=3)
    for model, answer in zip(bundle.models, answers, strict=True):
        np.testing.assert_array_equal(answer, model.predict(ROWS))


def test_the_bytes_depend_on_the_bundle_only(bundle):
    key = new_key()
    assert pack(bundle, check_rows=ROWS, key=key) == pack(bundle, check_rows=ROWS, key=key)


def test_a_bundle_that_has_travelled_packs_to_the_same_bytes(bundle):
    data = pack(bundle, check_rows=ROWS)
    received = unpack(data, source="north.zip", **AGREED)
    assert all(isinstance(model, OnnxModel) for model in received.models)
    assert pack(received, check_rows=ROWS) == data


def test_a_signed_bundle_is_accepted_under_its_key(bundle):
    keys = {"south": new_key(), "north": new_key()}
    data = pack(bundle, check_rows=ROWS, key=keys["north"])
    public = {name: key.public for name, key in keys.items()}
    assert unpack(data, source="north.zip", keys=public, parties=["north", "south"], **AGREED).sender == "north"


def test_a_peek_shows_the_manifest_and_builds_nothing(bundle):
    manifest = peek(pack(bundle, check_rows=ROWS), source="north.zip")
    assert (manifest.party, manifest.plan, manifest.n_features) == ("north", "3fa9c1", 4)
    assert [entry.name for entry in manifest.files] == ["models/0.onnx", "models/1.onnx"]
    assert {"fedkt", "python", "numpy", "scikit-learn", "onnx", "onnxruntime", "skl2onnx"} <= set(manifest.versions)


def test_the_manifest_holds_nothing_computed_from_rows(bundle):
    with zipfile.ZipFile(io.BytesIO(pack(bundle, check_rows=ROWS))) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    expected = {"format", "kind", "party", "plan", "classes", "n_features", "versions", "files"}
    assert set(manifest) == expected
    assert {key for entry in manifest["files"] for key in entry} == {"name", "size", "sha256"}


def test_arrays_do_not_travel_yet():
    with pytest.raises(BundleError, match="arrays"):
        pack(Bundle("north", ("a", "b"), (), arrays={"weights": np.zeros(3)}), check_rows=ROWS)


def test_a_model_that_cannot_be_sent_is_named():
    from sklearn.ensemble import AdaBoostClassifier

    model = fit_model(AdaBoostClassifier(n_estimators=2), ROWS, LABELS, rng=np.random.default_rng(0))
    with pytest.raises(ModelError, match="Model 0 of 'north' cannot be sent: AdaBoost"):
        pack(Bundle("north", ("a", "b", "c"), (model,)), check_rows=ROWS)


def test_a_highly_regular_model_is_not_taken_for_a_zip_bomb():
    from fedkt.models.base import FittedModel

    wide = np.zeros((3, 50_000), np.float32)
    data = pack(Bundle("north", ("a", "b"), (FittedModel(None, np.array([1]), 50_000),)), check_rows=wide)
    assert unpack(data, source="x", plan="", classes=("a", "b"), n_features=50_000).models


def test_importing_bundles_is_cheap():
    heavy = ("sklearn", "onnx", "onnxruntime", "pydantic")
    code = f"import sys, fedkt.bundle; print([each for each in {heavy} if each in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
