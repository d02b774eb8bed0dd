"""A bundle goes out and comes back the same."""

import hashlib
import io
import json
import struct
import subprocess
import sys
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from fedkt.bundle import Bundle, Expected, pack, peek, unpack
from fedkt.bundle.signing import new_key
from fedkt.errors import BundleError, ModelError
from fedkt.models.base import fit_model
from fedkt.models.exchange import OnnxModel
from fedkt.models.sandbox import run_models

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
    received = unpack(pack(bundle, check_rows=ROWS), source="north.zip", expected=Expected(**AGREED))
    assert (received.sender, received.classes, received.plan) == ("north", ("no", "maybe", "yes"), "3fa9c1")
    answers = run_models([model.data for model in received.models], ROWS, n_classes=3)
    for model, answer in zip(bundle.models, answers, strict=True):
        np.testing.assert_array_equal(answer, model.predict(ROWS))


def test_the_bytes_depend_on_the_bundle_only(bundle):
    key = new_key()
    assert pack(bundle, check_rows=ROWS, key=key) == pack(bundle, check_rows=ROWS, key=key)


def test_a_bundle_that_has_travelled_packs_to_the_same_bytes(bundle):
    data = pack(bundle, check_rows=ROWS)
    received = unpack(data, source="north.zip", expected=Expected(**AGREED))
    assert all(isinstance(model, OnnxModel) for model in received.models)
    assert pack(received, check_rows=ROWS) == data


def test_a_signed_bundle_is_accepted_under_its_key(bundle):
    keys = {"south": new_key(), "north": new_key()}
    data = pack(bundle, check_rows=ROWS, key=keys["north"])
    public = {name: key.public for name, key in keys.items()}
    assert (
        unpack(data, source="north.zip", expected=Expected(keys=public, parties=["north", "south"], **AGREED)).sender
        == "north"
    )


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


def test_a_model_that_cannot_be_sent_is_named():
    from sklearn.ensemble import AdaBoostClassifier

    model = fit_model(AdaBoostClassifier(n_estimators=2), ROWS, LABELS, rng=np.random.default_rng(0))
    with pytest.raises(ModelError, match="Model 0 of 'north' cannot be sent: AdaBoost"):
        pack(Bundle("north", ("a", "b", "c"), (model,)), check_rows=ROWS)


def test_class_counts_travel_where_they_are_wanted_and_only_there(bundle):
    silent = pack(bundle, check_rows=ROWS)
    telling = pack(replace(bundle, counts=(7, 0, 3)), check_rows=ROWS)
    assert unpack(telling, source="north.zip", expected=Expected(counts=True, **AGREED)).counts == (7, 0, 3)
    assert unpack(silent, source="north.zip", expected=Expected(**AGREED)).counts is None
    with pytest.raises(BundleError, match="does not tell how many rows of each class its party has, as was agreed on"):
        unpack(silent, source="north.zip", expected=Expected(counts=True, **AGREED))
    with pytest.raises(BundleError, match="tells how many rows of each class its party has, which nobody asked for"):
        unpack(telling, source="north.zip", expected=Expected(**AGREED))
    for wrong in ((7, 3), (7, 0, 3, 0)):
        data = pack(replace(bundle, counts=wrong), check_rows=ROWS)
        with pytest.raises(BundleError, match=f"counts rows of {len(wrong)} classes; there are 3"):
            unpack(data, source="north.zip", expected=Expected(counts=True, **AGREED))


def test_a_highly_regular_model_is_not_taken_for_a_zip_bomb():
    from fedkt.models.base import FittedModel

    wide = np.zeros((3, 50_000), np.float32)
    data = pack(Bundle("north", ("a", "b"), (FittedModel(None, np.array([1]), 50_000),)), check_rows=wide)
    assert unpack(data, source="x", expected=Expected(plan="", classes=("a", "b"), n_features=50_000)).models


WEIGHTS = {
    "layer.0.weight": np.array([[0.5, -2.0, 1e-40], [0.1, 3e38, -0.0]], np.float32),
    "bias": np.array([1.0, 1 / 3]),
    "seen_rows": np.array(-(2**62), np.int64),
}
SHAPES = {"layer.0.weight": (2, 3), "bias": (2,), "seen_rows": ()}


def sending(arrays, models=()):
    return Bundle("north", AGREED["classes"], models, AGREED["plan"], arrays)


def held(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_arrays_come_back_bit_for_bit_and_read_only():
    received = unpack(pack(sending(WEIGHTS), n_features=4), source="x", expected=Expected(arrays=SHAPES, **AGREED))
    assert received.models == ()
    assert set(received.arrays) == set(WEIGHTS)
    for name, sent in WEIGHTS.items():
        got = received.arrays[name]
        assert (got.dtype, got.shape, got.dtype.isnative) == (sent.dtype, sent.shape, True)
        assert got.tobytes() == sent.tobytes()
        with pytest.raises(ValueError, match="read-only"):
            got[...] = 0


def test_an_array_travels_as_its_numbers_and_nothing_else():
    content = held(pack(sending(WEIGHTS), n_features=4, key=new_key()))
    assert list(content) == ["manifest.json", "manifest.sig", "arrays/0.bin", "arrays/1.bin", "arrays/2.bin"]
    assert content["arrays/0.bin"] == struct.pack("<2d", 1.0, 1 / 3)
    assert content["arrays/1.bin"] == struct.pack("<6f", 0.5, -2.0, 1e-40, 0.1, 3e38, -0.0)
    assert content["arrays/2.bin"] == struct.pack("<q", -(2**62))
    manifest = json.loads(content["manifest.json"])
    assert (manifest["format"], manifest["files"]) == (1, [])
    assert manifest["arrays"][1] == {
        "name": "layer.0.weight",
        "kind": "float32",
        "shape": [2, 3],
        "size": 24,
        "sha256": hashlib.sha256(content["arrays/1.bin"]).hexdigest(),
    }


def test_models_and_arrays_travel_together(bundle):
    both = replace(bundle, arrays=WEIGHTS)
    data = pack(both, check_rows=ROWS, n_features=4)
    assert list(held(data))[1:] == ["models/0.onnx", "models/1.onnx", "arrays/0.bin", "arrays/1.bin", "arrays/2.bin"]
    received = unpack(data, source="x", expected=Expected(arrays=SHAPES, **AGREED))
    assert (len(received.models), len(received.arrays)) == (2, 3)
    assert pack(received, check_rows=ROWS) == data


def test_neither_the_order_of_names_nor_the_layout_in_memory_changes_the_bytes():
    table = np.arange(12, dtype=np.float64).reshape(3, 4)
    once = pack(sending({"a": table, "b": np.zeros(2)}), n_features=4)
    again = pack(sending({"b": np.zeros(2), "a": np.asfortranarray(table).astype(">f8")}), n_features=4)
    strided = np.repeat(table, 2, axis=1)[:, ::2]
    assert once == again == pack(sending({"a": strided, "b": np.zeros(2)}), n_features=4)


def test_only_arrays_that_shrink_by_a_tenth_are_compressed():
    rng = np.random.default_rng(3)
    weights = {
        "alike": np.zeros(100_000),
        "noise": rng.normal(size=10_000).astype(np.float32),
        "widened": rng.normal(size=10_000).astype(np.float32).astype(np.float64),
    }
    data = pack(sending(weights), n_features=4)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        kinds = [each.compress_type for each in archive.infolist()[1:]]
    # Zeros would look like a zip bomb; noise in float32 saves 7 %; half the bytes of widened float32 are zero or so.
    assert kinds == [zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]
    shapes = {name: each.shape for name, each in weights.items()}
    received = unpack(data, source="x", expected=Expected(arrays=shapes, **AGREED))
    assert all((received.arrays[name] == each).all() for name, each in weights.items())


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"w": np.array([1.0, np.nan])}, "'w' of 'north' cannot be sent: .*not finite"),
        ({"w": np.array([np.inf], np.float32)}, "not finite"),
        ({"w": np.array([None, "x"])}, "its numbers are object"),
        ({"w": np.array([True])}, "its numbers are bool"),
        ({"w": np.zeros(3, np.float16)}, "its numbers are float16"),
        ({"w": np.zeros(3, np.int32)}, "its numbers are int32; float32, float64, int64 travel"),
        ({"w": np.zeros(3, np.complex128)}, "its numbers are complex128"),
        ({"w": np.array(["a"])}, "its numbers are str"),
        ({"w": np.zeros((1,) * 9)}, "9 dimensions; at most 8"),
        ({"w": np.zeros((3, 0))}, r"empty, its shape is \(3, 0\)"),
        ({"": np.zeros(1)}, "an array named ''"),
        ({"Weight": np.zeros(1)}, "an array named 'Weight'"),
        ({"0.weight": np.zeros(1)}, "begin with a small letter"),
        ({"w\n": np.zeros(1)}, "an array named"),
        ({"../w": np.zeros(1)}, "an array named"),
        ({"w" * 101: np.zeros(1)}, "up to 100 characters"),
        ({7: np.zeros(1)}, "an array named '7'"),
        ({}, "neither models nor arrays"),
    ],
)
def test_an_array_that_cannot_travel_is_refused_in_words(arrays, reason):
    with pytest.raises(BundleError, match=reason):
        pack(sending(arrays), n_features=4)


def test_packing_says_what_it_needs(bundle):
    with pytest.raises(BundleError, match="needs n_features"):
        pack(sending(WEIGHTS))
    with pytest.raises(BundleError, match="needs check rows"):
        pack(bundle, n_features=4)
    with pytest.raises(BundleError, match="4 columns, but n_features is 5"):
        pack(bundle, check_rows=ROWS, n_features=5)
    with pytest.raises(BundleError, match="n_features"):
        pack(sending(WEIGHTS), n_features=0)


def test_an_inspection_shows_names_kinds_and_shapes(tmp_path, capsys):
    from fedkt.cli.inspect import inspect

    path = tmp_path / "north.fedkt"
    path.write_bytes(pack(sending(WEIGHTS), n_features=4))
    assert [(each.name, each.shape) for each in peek(path.read_bytes(), source="x").arrays] == [
        ("bias", (2,)),
        ("layer.0.weight", (2, 3)),
        ("seen_rows", ()),
    ]
    inspect(path, as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert (said["kind"], said["models"]) == ("bundle of arrays", [])
    shown = [(each["name"], each["kind"], each["shape"], each["bytes"]) for each in said["arrays"]]
    assert shown == [
        ("bias", "float64", [2], 16),
        ("layer.0.weight", "float32", [2, 3], 24),
        ("seen_rows", "int64", [], 8),
    ]
    inspect(path)
    lines = capsys.readouterr().out.splitlines()
    place = lines.index("layer.0.weight")
    assert [line.split(maxsplit=1) for line in lines[place + 1 : place + 4]] == [
        ["kind", "float32"],
        ["shape", "2, 3"],
        ["bytes", "24"],
    ]


def test_importing_bundles_is_cheap():
    heavy = ("sklearn", "onnx", "onnxruntime", "pydantic")
    code = f"import sys, fedkt.bundle; print([each for each in {heavy} if each in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
