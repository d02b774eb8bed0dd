"""Bad bundles: each is refused in words that name the file and the reason, and none runs anything."""

import hashlib
import io
import json
import pickle
import struct
import tracemalloc
import warnings
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from sklearn.tree import DecisionTreeClassifier

from fedkt.bundle import Bundle, Expected, pack, peek, unpack
from fedkt.bundle.manifest import FORMAT
from fedkt.bundle.signing import new_key
from fedkt.errors import BundleError
from fedkt.models.base import fit_model
from fedkt.models.onnx_rules import Limits
from fedkt.models.sandbox import run_models

ROWS = np.random.default_rng(7).normal(size=(60, 3)).astype(np.float32)
CLASSES = ("no", "yes")
KEYS = {"north": new_key(), "south": new_key()}
PUBLIC = {name: key.public for name, key in KEYS.items()}
TREE = fit_model(
    DecisionTreeClassifier(), ROWS, (ROWS[:, 0] * ROWS[:, 1] > 0).astype(int), rng=np.random.default_rng(0)
)
GOOD = pack(Bundle("north", CLASSES, (TREE,), "81c07e"), check_rows=ROWS)
SIGNED = pack(Bundle("north", CLASSES, (TREE,), "81c07e"), check_rows=ROWS, key=KEYS["north"])


def opened(data, **changes):
    agreed = {"plan": "81c07e", "classes": CLASSES, "n_features": 3, "max_models": 2, "parties": ["north", "south"]}
    limits = changes.pop("limits", None)
    return unpack(data, source="inbox/7.zip", expected=Expected(**(agreed | changes)), limits=limits)


def members(data=GOOD):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(content, compression=zipfile.ZIP_DEFLATED):
    """An archive of (name, bytes) pairs, however odd."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in content.items() if isinstance(content, dict) else content:
            archive.writestr(zipfile.ZipInfo(name), data, compress_type=compression)
    return buffer.getvalue()


def described(models, **changes):
    """A bundle of these models whose manifest fits them, but for the given changes."""
    manifest = json.loads(members()["manifest.json"])
    files = {f"models/{place}.onnx": data for place, data in enumerate(models)}
    manifest["files"] = [
        {"name": name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()
    ]
    manifest |= changes
    return zipped({"manifest.json": json.dumps(manifest).encode(), **files})


def stored(content):
    return zipped(content, zipfile.ZIP_STORED)


def manifest_text(text):
    return zipped({**members(), "manifest.json": text})


def with_field(**changes):
    return described([members()["models/0.onnx"]], **changes)


def patched(offset_of, offset, value, data=GOOD):
    """The good bundle with bytes changed in every local header (PK 03 04) or directory entry (PK 01 02)."""
    data = bytearray(data)
    place = data.find(offset_of)
    while place >= 0:
        data[place + offset : place + offset + len(value)] = value
        place = data.find(offset_of, place + 4)
    return bytes(data)


def flagged(bit):
    """The good bundle with one flag set for all members, in their headers and in the directory alike."""
    flags = struct.pack("<H", 1 << bit)
    return patched(b"PK\x03\x04", 6, flags, patched(b"PK\x01\x02", 8, flags))


def bomb_that_lies():
    """A member that declares 1,000 bytes and unpacks to 50 million."""
    packed = zlib.compressobj(9, zlib.DEFLATED, -15)
    stream = packed.compress(bytes(50_000_000)) + packed.flush()
    content = bytes(1_000)
    data = stored(members(described([content])))
    start = data.rfind(b"PK\x03\x04")
    head = struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, 0, 8, 0, 33, zlib.crc32(content), len(stream), 1_000, 13, 0)
    archive = data[:start] + head + b"models/0.onnx" + stream
    directory = bytearray(data[data.find(b"PK\x01\x02") : -22])
    last = directory.rfind(b"PK\x01\x02")
    directory[last + 10 : last + 12] = struct.pack("<H", 8)
    directory[last + 20 : last + 28] = struct.pack("<LL", len(stream), 1_000)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 2, 2, len(directory), len(archive), 0)
    return archive + bytes(directory) + end


def graph(nodes=None, tables=(), width=3, output=TensorProto.INT64, opsets=(("", 17), ("ai.onnx.ml", 3)), **options):
    """A graph from 'rows' to 'label'; without nodes a harmless one."""
    nodes = nodes or [helper.make_node("ArgMax", ["rows"], ["label"], axis=1, keepdims=0)]
    made = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("rows", TensorProto.FLOAT, [None, width])],
        [helper.make_tensor_value_info("label", output, [None])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in tables],
    )
    imports = [helper.make_opsetid(*each) for each in opsets]
    return helper.make_model(made, opset_imports=imports, ir_version=8, **options)


def sent(model):
    return described([model if isinstance(model, bytes) else model.SerializeToString()])


def with_subgraph(operator):
    branch = helper.make_graph(
        [helper.make_node("Identity", ["rows"], ["b"])], "b", [], [helper.make_tensor_value_info("b", 1, None)]
    )
    names = {"If": ("then_branch", "else_branch"), "Loop": ("body",), "Scan": ("body",)}[operator]
    return graph([helper.make_node(operator, ["rows"], ["label"], **dict.fromkeys(names, branch))])


def with_function():
    inner = [helper.make_node("Identity", ["x"], ["y"])]
    function = helper.make_function("", "Relu", ["x"], ["y"], inner, [helper.make_opsetid("", 17)])
    return graph(functions=[function])


def with_external_data():
    model = graph()
    table = model.graph.initializer.add(name="t", data_type=1, dims=[2], data_location=1)
    table.external_data.add(key="location", value="../../secret")
    return model


def with_claim(dims, payload=b"1234"):
    model = graph()
    model.graph.initializer.add(name="t", data_type=1, dims=dims, raw_data=payload)
    return model


def with_list(dims, numbers):
    model = graph()
    model.graph.initializer.add(name="t", data_type=1, dims=dims, float_data=numbers)
    return model


def with_sparse():
    model = graph()
    model.graph.sparse_initializer.add(dims=[2**40])
    return model


def forged_tree(attribute, place, value):
    """The good tree with one integer changed."""
    model = ModelProto.FromString(members()["models/0.onnx"])
    next(each for each in model.graph.node[-1].attribute if each.name == attribute).ints[place] = value
    return model


def shortened_tree():
    model = ModelProto.FromString(members()["models/0.onnx"])
    del next(each for each in model.graph.node[-1].attribute if each.name == "nodes_featureids").ints[-1]
    return model


def with_many_nodes():
    nodes = [helper.make_node("Identity", [f"v{i}" if i else "rows"], [f"v{i + 1}"]) for i in range(2_500)]
    return graph([*nodes, helper.make_node("ArgMax", ["v2500"], ["label"], axis=1, keepdims=0)])


def operator(name, **options):
    return graph([helper.make_node(name, ["rows"], ["label"], **options)])


def window(name="Conv", *, weights=(2, 3, 2, 2), image=(-1, 3, 2, 2), **options):
    """A graph that reads twelve columns as images of 3 × 2 × 2, and puts one convolution or pooling over them."""
    tables = [("image", np.array(image)), ("weights", np.ones(weights, np.float32))]
    nodes = [
        helper.make_node("Reshape", ["rows", "image"], ["x"]),
        helper.make_node(name, ["x", "weights"] if name == "Conv" else ["x"], ["y"], **options),
        helper.make_node("Flatten", ["y"], ["z"]),
        helper.make_node("ArgMax", ["z"], ["label"], axis=1, keepdims=0),
    ]
    return graph(nodes, tables, width=12)


def with_attribute(**fields):
    """A harmless graph whose node says one thing more."""
    model = graph()
    model.graph.node[0].attribute.add(**fields)
    return model


def of_version(number):
    model = graph()
    model.ir_version = number
    return model


def looked_up(labels):
    """A graph that looks its label up in a table."""
    nodes = [
        helper.make_node("ArgMax", ["rows"], ["place"], axis=1, keepdims=0),
        helper.make_node("Gather", ["labels", "place"], ["label"]),
    ]
    return graph(nodes, [("labels", np.array(labels))])


def with_two_inputs():
    model = graph()
    model.graph.input.append(helper.make_tensor_value_info("more", 1, [None, 3]))
    return model


class Dropper:
    """Unpickling this writes a file."""

    def __reduce__(self):
        return (Path.touch, (Path("unpickled-by-fedkt"),))


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    STUFFED = zipped([("manifest.json", b"{}")] * 2 + [("models/0.onnx", b"x")])
MANY = {f"models/{i}.onnx": b"x" for i in range(1_200)}
ONNX = members()["models/0.onnx"]
UTF8_FLAG = 11
"""The bit that says that names are UTF-8, which those of a bundle are either way."""

ARCHIVES = {
    "empty": (b"", "not a zip"),
    "not a zip": (b"hello, this is text" * 10, "not a zip"),
    "a pickle": (pickle.dumps(Dropper()), "not a zip"),
    "truncated": (GOOD[:-40], "cut short"),
    "only half": (GOOD[: len(GOOD) // 2], "cut short"),
    "junk after the end": (GOOD + b"#!/bin/sh", "bytes after its end"),
    "junk before the start": (b"#!/bin/sh\n" + GOOD, "not a zip"),
    "an archive before the start": (GOOD + GOOD, "does not follow|bytes between"),
    "zip bomb": (zipped({**members(), "models/0.onnx": bytes(30_000_000)}), "ratio"),
    "zip bomb with forged size": (bomb_that_lies(), "another size"),
    "declared size above the cap": (patched(b"PK\x01\x02", 24, b"\xff\xff\xff\x7f"), "too large"),
    "huge manifest": (manifest_text(np.random.default_rng(0).bytes(2**21)), "too large"),
    "path traversal": (zipped({**members(), "../../etc/cron.d/x": b"x"}), "no place"),
    "absolute name": (zipped({**members(), "/etc/passwd": b"x"}), "no place"),
    "backslashes": (zipped({**members(), "models\\1.onnx": b"x"}), "no place"),
    "a pickle among the models": (zipped({**members(), "models/1.pkl": pickle.dumps(Dropper())}), "no place"),
    "a nested archive": (zipped({**members(), "more.zip": GOOD}), "no place"),
    "a folder": (zipped({**members(), "models/": b""}), "no place"),
    "a name cut by a zero": (
        zipped({**members(), "models/1.onnx": b"x"}).replace(b"models/1.onnx", b"models/1\0onnx"),
        "no place",
    ),
    "duplicate manifest": (STUFFED, "duplicate"),
    "no manifest": (zipped({"models/0.onnx": ONNX}), "missing"),
    "gap in the numbers": (zipped({**members(), "models/2.onnx": b"x"}), "order"),
    "other order": (zipped(dict(reversed(members().items()))), "order"),
    "too many members": (zipped({"manifest.json": b"{}", **MANY}), "too many"),
    "a directory of more entries than it counts": (
        GOOD[:-22]
        + GOOD[GOOD.find(b"PK\x01\x02") : -22] * 50
        + GOOD[-22:-10]
        + struct.pack("<L", 51 * (len(GOOD) - 22 - GOOD.find(b"PK\x01\x02")))
        + GOOD[-6:],
        "count of members is wrong",
    ),
    "a directory for large files": (GOOD[:-22] + b"PK\x06\x07" + bytes(16) + GOOD[-22:], "between|damaged"),
    "sixteen models": (described([ONNX] * 16), "too many models: 16, where 2"),
    "encrypted flag": (flagged(0), "encrypted"),
    # Sizes that follow the content, patches, strong encryption, hidden headers, and bits that mean nothing yet.
    **{f"zip flag {bit}": (flagged(bit), r"zip features \(flags\)") for bit in range(1, 16) if bit != UTF8_FLAG},
    "bzip2": (zipped(members(), zipfile.ZIP_BZIP2), "compression"),
    "lzma": (zipped(members(), zipfile.ZIP_LZMA), "compression|flags"),
    "header and directory disagree": (patched(b"PK\x03\x04", 22, b"\x01\x02\x00\x00"), "differently"),
    "damaged checksum": (patched(b"PK\x01\x02", 16, b"\0\0\0\0"), "differently"),
}

MANIFESTS = {
    "not JSON": (manifest_text(b"party = north"), "not JSON"),
    "not UTF-8": (manifest_text(b'{"party": "\xff\xfe"}'), "not JSON"),
    "deep nesting": (manifest_text(b'{"format": 1, "x": ' + b"[" * 9_000 + b"1" + b"]" * 9_000 + b"}"), "nest|ratio"),
    "deep nesting that compresses badly": (
        stored({**members(), "manifest.json": b"[" * 60_000}),
        "nest",
    ),
    "more than an honest manifest has to say": (stored({**members(), "manifest.json": b"[" * 900_000}), "too large"),
    "NaN": (manifest_text(b'{"format": NaN}'), "not JSON"),
    "a huge integer": (stored({**members(), "manifest.json": b'{"format": ' + b"1234567890" * 600 + b"}"}), "not JSON"),
    "a list": (manifest_text(b"[1, 2]"), "not a JSON object"),
    "a field twice": (manifest_text(b'{"format": 1, "format": 1}'), "twice"),
    "no fields": (manifest_text(b"{}"), "format"),
    "unknown format": (with_field(format=FORMAT + 1), "format '2'|format"),
    "format as text": (with_field(format="1"), "format"),
    "format true": (with_field(format=True), "format"),
    "extra field": (with_field(votes=[[1, 2]]), "votes"),
    "unknown kind": (with_field(kind="weights"), "kind"),
    "party as number": (with_field(party=7), "party"),
    "party of control characters": (with_field(party="north\x1b[2J"), "printable"),
    "a very long party": (with_field(party="n" * 5_000), "party|ratio"),
    "classes as text": (with_field(classes="no yes"), "classes"),
    "class as float": (with_field(classes=["no", 1.5]), "classes"),
    "negative width": (with_field(n_features=-3), "n_features"),
    "other width": (with_field(n_features=4), "4 columns"),
    "other plan": (with_field(plan="3fa9c1"), "made under plan 3fa9c1; this server runs 81c07e"),
    "no plan": (with_field(plan=""), "made under plan"),
    "other classes": (with_field(classes=["no", "perhaps"]), "classes"),
    "classes in another order": (with_field(classes=["yes", "no"]), "classes"),
    "unknown party": (with_field(party="east"), "nobody expects"),
    "too many models": (described([ONNX] * 3), "too many models"),
    "wrong digest": (zipped({**members(), "models/0.onnx": ONNX[:-1] + b"\0"}), "digest"),
    "wrong size": (zipped({**members(), "models/0.onnx": ONNX + b"\0"}), "size"),
    "a model that is not listed": (zipped({**members(), "models/1.onnx": ONNX}), "lists 1"),
    "a listed model that is missing": (zipped({"manifest.json": members()["manifest.json"]}), "lists 1"),
    "a listed path outside": (with_field(files=[{"name": "../x", "size": 1, "sha256": "0" * 64}]), "files"),
    "a short signature": (
        zipped(
            [
                (n, d)
                for n, d in members().items()
                for n, d in ([(n, d), ("manifest.sig", b"short")] if n == "manifest.json" else [(n, d)])
            ]
        ),
        "signature has 5 bytes",
    ),
}

GRAPHS = {
    "garbage": (sent(np.random.default_rng(1).bytes(500)), "damaged|unknown field|wrong type"),
    "text": (sent(b"<html><body>Sign in</body></html>"), "damaged|unknown|wrong type"),
    "a pickle": (sent(pickle.dumps(Dropper())), "damaged|unknown|wrong type"),
    "cut": (sent(ONNX[: len(ONNX) // 2]), "damaged"),
    "no graph": (sent(ModelProto(ir_version=8)), "no graph"),
    "Loop": (sent(with_subgraph("Loop")), "subgraph"),
    "If": (sent(with_subgraph("If")), "subgraph"),
    "Scan": (sent(with_subgraph("Scan")), "subgraph"),
    "ConstantOfShape": (sent(operator("ConstantOfShape")), "ConstantOfShape"),
    "Expand": (sent(operator("Expand")), "Expand"),
    "Tile": (sent(operator("Tile")), "Tile"),
    "Range": (sent(operator("Range")), "Range"),
    "Pad": (sent(operator("Pad")), "Pad"),
    "Resize": (sent(operator("Resize")), "Resize"),
    "RandomNormal": (sent(operator("RandomNormal")), "RandomNormal"),
    "Shape": (sent(operator("Shape")), "Shape"),
    "LayerNormalization": (sent(operator("LayerNormalization")), "LayerNormalization"),
    "a stretched convolution": (sent(operator("Conv", kernel_shape=[1], pads=[0, 2**40])), "'pads' outside 0 … 1024"),
    "a convolution of no size": (sent(operator("Conv")), "0 axes"),
    "a convolution of many axes": (sent(operator("Conv", kernel_shape=[1] * 9)), "9 axes"),
    "padding of too few sides": (sent(operator("Conv", kernel_shape=[2, 2], pads=[1, 1])), "2 'pads', not 4"),
    "too many strides": (sent(operator("MaxPool", kernel_shape=[2], strides=[1, 1])), "2 'strides', not 1"),
    "a step of 0": (sent(operator("Conv", kernel_shape=[2], strides=[0])), "'strides' outside 1 … 1024"),
    "a negative step": (sent(operator("AveragePool", kernel_shape=[2], strides=[-1])), "'strides' outside 1"),
    "holes of 0": (sent(operator("Conv", kernel_shape=[2], dilations=[0])), "'dilations' outside 1"),
    "a window of 0": (sent(operator("MaxPool", kernel_shape=[0, 0])), "'kernel_shape' outside 1"),
    "groups of none": (sent(operator("Conv", kernel_shape=[2], group=0)), "'group' outside 1"),
    "a step in another type": (sent(operator("Conv", kernel_shape=[2], strides=1.5)), "'strides' that is not allowed"),
    "an unknown option of a window": (sent(operator("Conv", kernel_shape=[2], evil=1)), "'evil' that is not allowed"),
    "custom domain": (sent(graph(opsets=(("", 17), ("com.microsoft", 1)))), "com.microsoft"),
    "operator of a custom domain": (sent(operator("Relu", domain="evil")), r"evil\.Relu"),
    "unknown operator version": (sent(graph(opsets=(("", 99),))), "version 99"),
    "operator set twice": (sent(graph(opsets=(("", 17), ("", 9)))), "twice"),
    "local function": (sent(with_function()), "function"),
    "external data": (sent(with_external_data()), "external data"),
    "sparse initialiser": (sent(with_sparse()), "sparse"),
    "oversized claim": (sent(with_claim([2**40, 2**20])), "impossible shape"),
    "negative claim": (sent(with_claim([-5])), "impossible shape"),
    "a claim that overflows": (sent(with_claim([2**23] * 3)), "claims"),
    "a claim without payload": (sent(with_claim([1_000_000])), "claims 1000000 numbers but holds 1"),
    "a payload longer than declared": (sent(with_claim([1], bytes(8))), "claims 1 numbers but holds 2"),
    "a payload of half a number more": (sent(with_claim([1], bytes(6))), "claims 1 numbers but holds 1.5"),
    "a list longer than declared": (sent(with_list([1], [0.5, 0.5])), "claims 1 numbers but holds 2"),
    "a table in the place of the rows": (sent(graph(tables=[("rows", ROWS)])), "overwrites its input 'rows'"),
    "an attribute twice": (sent(with_attribute(name="axis", type=2, i=0)), "ArgMax node gives an attribute twice"),
    "an attribute of another one": (sent(with_attribute(name="x", type=2, ref_attr_name="y")), "unknown field 21"),
    "ONNX version 2": (sent(of_version(2)), "ONNX version 2; versions 3 to 13"),
    "ONNX version 14": (sent(of_version(14)), "ONNX version 14; versions 3 to 13"),
    "ONNX version 99": (sent(of_version(99)), "ONNX version 99; versions 3 to 13"),
    "wrong input width": (sent(graph(width=4)), "shape"),
    "wrong output type": (sent(graph(output=TensorProto.FLOAT)), "not int64"),
    "two inputs": (sent(with_two_inputs()), "2 inputs"),
    "label out of range": (sent(forged_tree("classlabels_int64s", 1, 7)), "label 7"),
    "the label after the last": (sent(forged_tree("classlabels_int64s", 1, 2)), "label 2; only 0 … 1 are classes"),
    "the label before the first": (sent(forged_tree("classlabels_int64s", 0, -1)), "label -1; only 0 … 1 are classes"),
    "the label after the last in a table": (sent(looked_up([0, 1, 2])), "label 2; only 0 … 1 are classes"),
    "child index out of range": (sent(forged_tree("nodes_truenodeids", 0, 10_000)), "child index"),
    "negative child index": (sent(forged_tree("nodes_falsenodeids", 0, -1)), "child index"),
    "a cycle": (sent(forged_tree("nodes_falsenodeids", 0, 1)), "two parents"),
    "feature id out of range": (sent(forged_tree("nodes_featureids", 0, 3)), "feature 3"),
    "negative feature id": (sent(forged_tree("nodes_featureids", 0, -4)), "feature index"),
    "leaf of no tree": (sent(forged_tree("class_treeids", 0, 9)), "leaf that does not exist"),
    "score on a branch": (sent(forged_tree("class_nodeids", 0, 0)), "not a leaf"),
    "score for no class": (sent(forged_tree("class_ids", 0, 50)), "class that it does not have"),
    "tree ids out of order": (sent(forged_tree("nodes_treeids", 0, 5)), "one after the other"),
    "lists of unequal length": (sent(shortened_tree()), "nodes_featureids"),
    "too many nodes": (sent(with_many_nodes()), "nodes"),
    "too many empty parts": (stored(members(sent(b"\x3a\x80\xb5\x18" + b"\x0a\x00" * 200_000))), "too many parts"),
}

ALL = {
    f"{kind}: {name}": case
    for kind, cases in (("archive", ARCHIVES), ("manifest", MANIFESTS), ("graph", GRAPHS))
    for name, case in cases.items()
}


@pytest.mark.parametrize("name", ALL)
def test_a_bad_bundle_is_refused_by_name_and_reason(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data, reason = ALL[name]
    with pytest.raises(BundleError, match=reason) as caught:
        opened(data)
    assert "inbox/7.zip" in str(caught.value)
    assert len(str(caught.value)) < 1_000
    assert list(tmp_path.iterdir()) == [], "something was written"


@pytest.fixture
def unpacked(monkeypatch):
    """The names of members in the order in which they are unpacked."""
    from fedkt.bundle.archive import Archive

    names, read = [], Archive.read
    monkeypatch.setattr(Archive, "read", lambda self, name: (names.append(name), read(self, name))[1])
    return names


@pytest.mark.parametrize(
    ("data", "changes"),
    [
        (with_field(plan="3fa9c1"), {}),
        (with_field(classes=["yes", "no"]), {}),
        (with_field(party="east"), {}),
        (with_field(n_features=4), {}),
        (with_field(counts=[3, 4]), {}),
        (zipped({**members(), "models/0.onnx": ONNX + b"\0"}), {}),
        (GOOD, {"keys": PUBLIC}),
        (SIGNED, {"keys": {"north": PUBLIC["south"]}}),
    ],
    ids=["plan", "classes", "party", "columns", "counts", "size", "no signature", "another key"],
)
def test_what_the_manifest_alone_refutes_is_refused_before_a_model_is_unpacked(data, changes, unpacked):
    with pytest.raises(BundleError):
        opened(data, **changes)
    assert set(unpacked) <= {"manifest.json", "manifest.sig"}


def test_more_models_than_agreed_are_refused_before_any_of_them_is_unpacked(unpacked):
    with pytest.raises(BundleError, match="too many models: 16"):
        opened(described([ONNX] * 16))
    # It may say that it belongs to another plan, which would be the reason.
    assert unpacked == ["manifest.json"]


FAULTS = {
    "classes": {"classes": [[]] * 100_000},
    "files": {"files": [{}] * 100_000},
    "arrays": {"arrays": [{}] * 100_000},
    "counts": {"counts": [-1] * 100_000},
    "unknown fields": {f"f{place}": 0 for place in range(50_000)},
    "versions": {"versions": {str(place): 0 for place in range(50_000)}},
    "no other fields": {"arrays": [{}] * 100_000, "kind": None},
    "a field of nothings": {"votes": [{}] * 100_000},
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_manifest_of_a_hundred_thousand_faults_takes_little_memory(name):
    said = {**json.loads(members()["manifest.json"]), **FAULTS[name]}
    text = json.dumps({key: each for key, each in said.items() if each is not None}, separators=(",", ":")).encode()
    tracemalloc.start()
    try:
        with pytest.raises(BundleError, match="manifest"):
            peek(stored({**members(), "manifest.json": text}), source="inbox/7.zip")
        assert tracemalloc.get_traced_memory()[1] < 40e6
    finally:
        tracemalloc.stop()


def test_every_member_is_unpacked_once(unpacked):
    opened(SIGNED, keys=PUBLIC)
    assert unpacked == ["manifest.json", "manifest.sig", "models/0.onnx"]


def test_an_attribute_of_another_one_is_refused_by_the_rules_too(monkeypatch):
    """Where such a graph got past the walk over its bytes: only a function's body can have one."""
    monkeypatch.setattr("fedkt.models.onnx_rules.walk", lambda *_, **__: None)
    assert len(opened(sent(graph())).models) == 1
    with pytest.raises(BundleError, match="'x' of a kind that is not allowed"):
        opened(sent(with_attribute(name="x", type=2, ref_attr_name="y")))


@pytest.mark.parametrize("harmless", [graph(), of_version(3), of_version(13), looked_up([0, 1, 1])])
def test_a_graph_at_the_edge_of_what_is_allowed_is_accepted(harmless):
    assert len(opened(sent(harmless)).models) == 1


def test_names_that_are_marked_as_utf_8_are_accepted():
    assert len(opened(flagged(UTF8_FLAG)).models) == 1


def test_the_good_bundle_is_accepted():
    assert opened(GOOD).sender == "north"
    assert opened(SIGNED, keys=PUBLIC).sender == "north"
    assert opened(sent(graph())).models


def test_a_file_above_the_cap_is_not_even_looked_at():
    with pytest.raises(BundleError, match=r"inbox/7.zip.*too large"):
        opened(GOOD, limits=Limits(bundle_bytes=100))


def test_a_model_above_the_cap_is_refused():
    with pytest.raises(BundleError, match="too large"):
        opened(GOOD, limits=Limits(member_bytes=100))


def test_members_that_are_too_large_together_are_refused():
    with pytest.raises(BundleError, match=r"too large.*together"):
        opened(GOOD, limits=Limits(unpacked_bytes=1_000))


@pytest.mark.parametrize(
    ("limits", "word"),
    [
        (Limits(fields=20), "too many parts"),
        (Limits(tree_nodes=3), "nodes"),
        (Limits(tree_depth=2), "deeper"),
    ],
)
def test_a_graph_above_a_limit_is_refused(limits, word):
    with pytest.raises(BundleError, match=word):
        opened(GOOD, limits=limits)


def test_stored_numbers_above_the_limit_are_refused():
    model = sent(graph(tables=[("t", np.zeros((20, 30), np.float32))]))
    with pytest.raises(BundleError, match="600 numbers"):
        opened(model, limits=Limits(elements=500))


def test_what_is_exactly_as_large_as_allowed_is_read_and_what_is_one_larger_is_not():
    with zipfile.ZipFile(io.BytesIO(GOOD)) as archive:
        infos = {info.filename: info for info in archive.infolist()}
    sizes = {name: info.file_size for name, info in infos.items()}
    parsed = ModelProto.FromString(members()["models/0.onnx"])
    exact = {
        "bundle_bytes": len(GOOD),
        "member_bytes": sizes["models/0.onnx"],
        "manifest_bytes": sizes["manifest.json"],
        "unpacked_bytes": sum(sizes.values()),
        "nodes": len(parsed.graph.node),
        "ratio": max(-(-info.file_size // info.compress_size) for info in infos.values()),
    }
    assert exact["ratio"] > 1
    for name, value in exact.items():
        assert opened(GOOD, limits=Limits(**{name: value})).models
        with pytest.raises(BundleError):
            opened(GOOD, limits=Limits(**{name: value - 1}))


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("n_features", [1, 2**24], [0, 2**24 + 1]),
        ("issue", [1, 2**53], [0, 2**53 + 1]),
        ("counts", [[0, 2**53]], [[-1, 0], [0, 2**53 + 1]]),
        ("classes", [[-(2**53), 2**53], ["x" * 200]], [[-(2**53) - 1, 0], [0, 2**53 + 1], ["x" * 201]]),
        ("party", ["x", "x" * 200], ["", "x" * 201]),
        ("plan", ["", "a" * 128], ["a" * 129, "a b"]),
        ("versions", [dict.fromkeys(map(str, range(20)), "1")], [dict.fromkeys(map(str, range(21)), "1")]),
    ],
)
def test_a_manifests_figures_are_read_up_to_their_bounds_and_no_further(field, good, bad):
    for value in good:
        said = getattr(peek(with_field(**{field: value}), source="inbox/7.zip"), field)
        assert said == (tuple(value) if isinstance(value, list) else value)
    for value in bad:
        with pytest.raises(BundleError, match=field):
            peek(with_field(**{field: value}), source="inbox/7.zip")


def between(rows=("rows", TensorProto.FLOAT, [None, 3]), label=("label", TensorProto.INT64, [None])):
    """A harmless graph with these ends."""
    model = graph()
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info(*rows))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info(*label))
    return model


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        *(({"rows": ("rows", TensorProto.FLOAT, shape)}, r"not \(N, 3\)") for shape in ([None, 4], [5, 3], [3], [])),
        ({"rows": ("rows", TensorProto.FLOAT, [None, None])}, r"not \(N, 3\)"),
        ({"rows": ("rows", TensorProto.FLOAT, [None, 3, 1])}, r"not \(N, 3\)"),
        ({"rows": ("rows", TensorProto.DOUBLE, [None, 3])}, "'rows' is not float32"),
        ({"rows": ("row", TensorProto.FLOAT, [None, 3])}, "from 'row' to 'label'"),
        ({"label": ("labels", TensorProto.INT64, [None])}, "from 'rows' to 'labels'"),
        ({"label": ("label", TensorProto.INT32, [None])}, "'label' is not int64"),
        *(
            ({"label": ("label", TensorProto.INT64, shape)}, "'label' is not one label per row")
            for shape in ([60], [], [None, 1], [60, 1])
        ),
    ],
)
def test_a_graph_goes_from_the_agreed_rows_to_one_label_for_each(ends, words):
    assert opened(sent(between())).models
    with pytest.raises(BundleError, match=words):
        opened(sent(between(**ends)))


def test_a_graph_has_one_input_and_an_output():
    more, none = between(), between()
    more.graph.input.append(more.graph.input[0])
    del none.graph.output[:]
    with pytest.raises(BundleError, match="2 inputs and 1 outputs, not one of each"):
        opened(sent(more))
    with pytest.raises(BundleError, match="1 inputs and 0 outputs, not one of each"):
        opened(sent(none))


def signed_by(name, data=GOOD):
    content = members(data)
    text = content.pop("manifest.json")
    return zipped({"manifest.json": text, "manifest.sig": KEYS[name].sign(text), **content})


def test_an_unsigned_bundle_of_a_party_with_a_key_is_refused():
    with pytest.raises(BundleError, match="not signed"):
        opened(GOOD, keys=PUBLIC)


def test_a_bundle_signed_with_another_partys_key_is_refused():
    with pytest.raises(BundleError, match="the signature is not 'north'"):
        opened(signed_by("south"), keys=PUBLIC)


def test_a_manifest_that_was_changed_after_it_was_signed_is_refused():
    content = members(SIGNED)
    content["manifest.json"] = content["manifest.json"].replace(b'"kind": "models"', b'"kind":  "models"')
    with pytest.raises(BundleError, match="the signature is not 'north''s"):
        opened(zipped(content), keys=PUBLIC)


def test_a_signature_of_a_party_whose_key_the_plan_does_not_list_is_refused():
    with pytest.raises(BundleError, match="is signed, but the plan lists no key for 'north'"):
        opened(SIGNED, keys={"south": PUBLIC["south"]})


def test_a_party_whose_key_the_plan_does_not_list_need_not_sign():
    received = opened(GOOD, keys={"south": PUBLIC["south"]})
    assert (received.sender, received.signed) == ("north", False)
    assert opened(SIGNED, keys=PUBLIC).signed
    assert not opened(SIGNED).signed, "there was no key to hold it against"


@pytest.mark.parametrize(("domain", "first", "last"), [("", 9, 23), ("ai.onnx", 9, 23), ("ai.onnx.ml", 1, 3)])
def test_operator_sets_are_read_from_their_first_known_version_to_their_last(domain, first, last):
    other = [("", 17)] if domain == "ai.onnx.ml" else []
    for version in (first, last):
        assert opened(sent(graph(opsets=[*other, (domain, version)]))).models
    for version in (first - 1, last + 1):
        with pytest.raises(BundleError, match=f"version {version} of operator set"):
            opened(sent(graph(opsets=[*other, (domain, version)])))


@pytest.mark.parametrize("domain", ["ai", "Custom", "ai.onnx.m", "ai.onnx.mm", "ai.onnx.training", "zz"])
def test_no_name_is_near_enough_to_that_of_an_operator_set(domain):
    with pytest.raises(BundleError, match=f"the operator set '{domain}'"):
        opened(sent(graph(opsets=(("ai.onnx.ml", 3), (domain, 9)))))
    with pytest.raises(BundleError, match=f"the operator '{domain}.ArgMax'"):
        opened(sent(operator("ArgMax", domain=domain)))


@pytest.mark.parametrize(("version", "known"), [(2, False), (3, True), (13, True), (14, False)])
def test_onnx_versions_3_to_13_are_known(version, known):
    model = graph()
    model.ir_version = version
    if known:
        assert opened(sent(model)).models
        return
    with pytest.raises(BundleError, match=f"ONNX version {version}; versions 3 to 13 are known"):
        opened(sent(model))


def test_one_key_is_tried_whatever_the_number_of_parties(monkeypatch):
    from fedkt.bundle import signing

    tried, verify = [], signing.verify
    monkeypatch.setattr(signing, "verify", lambda public, *rest: tried.append(public) or verify(public, *rest))
    opened(SIGNED, keys=PUBLIC)
    assert tried == [PUBLIC["north"]]


def test_a_signature_by_a_stranger_is_refused():
    content = members(SIGNED)
    content["manifest.sig"] = new_key().sign(content["manifest.json"])
    with pytest.raises(BundleError, match="the signature is not 'north''s"):
        opened(zipped(content), keys=PUBLIC)


def test_a_changed_model_under_a_valid_signature_is_refused():
    content = members(SIGNED)
    content["models/0.onnx"] = graph().SerializeToString()
    with pytest.raises(BundleError, match=r"size|digest"):
        opened(zipped(content), keys=PUBLIC)


def test_a_peek_refuses_what_is_damaged_but_looks_into_no_graph():
    with pytest.raises(BundleError, match="digest"):
        peek(ALL["manifest: wrong digest"][0], source="inbox/7.zip")
    assert peek(ALL["graph: garbage"][0], source="inbox/7.zip").party == "north"


def test_a_thousand_random_byte_flips_are_refused_or_change_nothing():
    rng = np.random.default_rng(11)
    wanted = run_models([model.data for model in opened(SIGNED, keys=PUBLIC).models], ROWS, n_classes=2)[0]
    original = opened(SIGNED, keys=PUBLIC).models[0].data
    np.testing.assert_array_equal(wanted, TREE.predict(ROWS))
    refused = []
    for _ in range(1_000):
        data = bytearray(SIGNED)
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)
        try:
            got = opened(bytes(data), keys=PUBLIC).models[0].data
        except BundleError as reason:
            refused.append(str(reason))
        else:
            assert got == original
    assert len(refused) > 900
    assert all("inbox/7.zip" in reason for reason in refused)


def test_a_thousand_random_byte_flips_of_a_model_crash_nothing():
    """Without digests in the way: the rules for graphs refuse, or the sandbox answers."""
    from fedkt.errors import ModelError
    from fedkt.models.onnx_rules import check_graph

    rng = np.random.default_rng(12)
    passed = []
    for _ in range(1_000):
        data = bytearray(ONNX)
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)
        try:
            check_graph(bytes(data), n_features=3, n_classes=2)
            passed.append(bytes(data))
        except ModelError:
            continue
    answers = run_models(passed, ROWS, n_classes=2)
    assert len(answers) == len(passed)
    assert not any(isinstance(answer, str) and "stopped" in answer for answer in answers)


WIDE = np.random.default_rng(8).normal(size=(60, 12)).astype(np.float32)
WINDOWS = {
    "padding that makes a thousand times as many numbers": window(kernel_shape=[2, 2], pads=[1_024] * 4),
    "more channels than memory": window(weights=(1_000_000, 3, 1, 1), kernel_shape=[1, 1], pads=[9] * 4),
    "a window larger than the image": window(weights=(2, 3, 9, 9), kernel_shape=[9, 9]),
    "a window unlike its weights": window(kernel_shape=[1_000, 1_000]),
    "channels the image does not have": window(weights=(2, 7, 2, 2), kernel_shape=[2, 2]),
    "groups that do not divide": window(kernel_shape=[2, 2], group=2),
    "no channels": window(weights=(2, 0, 2, 2), kernel_shape=[2, 2]),
    "an image of another size": window(image=(-1, 3, 2, 2**40), kernel_shape=[2, 2]),
    "no image at all": window(image=(-1, 12), kernel_shape=[2, 2]),
    "padding around nothing": window("MaxPool", kernel_shape=[2, 2], pads=[5] * 4),
    "a pool larger than the image": window("AveragePool", kernel_shape=[9, 9], ceil_mode=1),
    "holes beyond the image": window("MaxPool", kernel_shape=[2, 2], dilations=[100, 100]),
}


def test_windows_that_pass_the_rules_but_do_not_fit_fail_in_the_child_one_by_one():
    from fedkt.models.onnx_rules import check_graph

    models = [each.SerializeToString() for each in [*WINDOWS.values(), window(kernel_shape=[2, 2])]]
    for model in models:
        check_graph(model, n_features=12, n_classes=2)
    *answers, fine = run_models(models, WIDE, n_classes=2, limits=Limits(memory_bytes=600 * 2**20))
    for name, answer in zip(WINDOWS, answers, strict=True):
        assert isinstance(answer, str), name
        assert "stopped" not in answer, name
        assert "not run" not in answer, name
    # All weights are 1: both channels are the same sum, and the first of equals wins.
    np.testing.assert_array_equal(fine, np.zeros(60))


@pytest.mark.parametrize("name", ["mlp", "cnn"])
def test_random_byte_flips_of_a_network_crash_nothing(name):
    pytest.importorskip("torch")
    from fedkt.errors import ModelError
    from fedkt.models.exchange import to_onnx
    from fedkt.models.neural.classifier import NeuralClassifier
    from fedkt.models.onnx_rules import check_graph

    rng = np.random.default_rng(13)
    rows = rng.normal(size=(30, 256)).astype(np.float32)
    estimator = NeuralClassifier(name, image=(16, 16), epochs=1)
    model = fit_model(estimator, rows, np.arange(30) % 2, rng=rng)
    original = to_onnx(model, n_features=256, n_classes=2, check_rows=rows).data
    # Most of the bytes are weights, of which any are as good as others: what is between them is what matters.
    proto = ModelProto.FromString(original)
    weights = [each.raw_data for each in proto.graph.initializer if len(each.raw_data) > 200]
    outside = np.ones(len(original), bool)
    for each in weights:
        start = original.find(each)
        outside[start : start + len(each)] = False
    places = np.flatnonzero(outside)
    assert len(weights) >= 3
    assert len(places) < 3_000
    passed, refused = [], 0
    for _ in range(400):
        data = bytearray(original)
        data[rng.choice(places)] ^= 1 << rng.integers(8)
        try:
            check_graph(bytes(data), n_features=256, n_classes=2)
            passed.append(bytes(data))
        except ModelError:
            refused += 1
    assert refused > 100
    answers = run_models(passed, rows, n_classes=2)
    assert len(answers) == len(passed) > 50
    assert not any(isinstance(answer, str) and ("stopped" in answer or "not run" in answer) for answer in answers)
