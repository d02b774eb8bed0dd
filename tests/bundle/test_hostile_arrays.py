"""Bad arrays in bundles: each is refused in words that name the file and the reason, before a number is read."""

import hashlib
import io
import json
import struct
import warnings
import zipfile

import numpy as np
import pytest

from fedkt.bundle import Bundle, Expected, pack, peek, unpack
from fedkt.bundle.signing import new_key
from fedkt.errors import BundleError
from fedkt.models.onnx_rules import Limits

CLASSES = ("no", "yes")
SENT = {
    "bias": np.array([0.5, -1.5]),
    "steps": np.array(40, np.int64),
    "weight": np.arange(6, dtype=np.float32).reshape(2, 3),
}
SHAPES = {"bias": (2,), "steps": (), "weight": (2, 3)}
KEY = new_key()
BUNDLE = Bundle("north", CLASSES, (), "81c07e", SENT)
GOOD = pack(BUNDLE, n_features=3)
SIGNED = pack(BUNDLE, n_features=3, key=KEY)
MANIFEST, BIAS, _, WEIGHT = range(4)
BIAS_BYTES = struct.pack("<2d", 0.5, -1.5)
# Their product is 2⁶⁴ + 2: counted in 64 bits, an array of two numbers.
WRAPS = (77_158_673_929, 239_075_442)


def opened(data, **changes):
    agreed = {"plan": "81c07e", "classes": CLASSES, "n_features": 3, "arrays": SHAPES, "max_models": 0}
    limits = changes.pop("limits", None)
    return unpack(data, source="inbox/7.zip", expected=Expected(**(agreed | changes)), limits=limits)


def members(data=GOOD):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def zipped(content, compression=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", compression) as archive:
        warnings.simplefilter("ignore")
        for name, data in content:
            archive.writestr(zipfile.ZipInfo(name), data, compress_type=compression)
    return buffer.getvalue()


def entry(name, content, kind="float64", shape=(2,), **changes):
    digest = hashlib.sha256(content).hexdigest()
    return {"name": name, "kind": kind, "shape": list(shape), "size": len(content), "sha256": digest} | changes


def described(entries, contents, **changes):
    """A bundle whose manifest lists these entries and whose members are these bytes."""
    manifest = json.loads(members()[MANIFEST][1]) | {"arrays": entries} | changes
    parts = [(f"arrays/{place}.bin", content) for place, content in enumerate(contents)]
    return zipped([("manifest.json", json.dumps(manifest).encode()), *parts])


def one(content=BIAS_BYTES, kind="float64", shape=(2,), **changes):
    """A bundle of one array, with a digest that fits."""
    return described([entry("bias", content, kind, shape, **changes)], [content])


def entries():
    return json.loads(members()[MANIFEST][1])["arrays"]


def contents():
    return [content for _, content in members()[1:]]


def without(place):
    return described(
        [each for i, each in enumerate(entries()) if i != place], [c for i, c in enumerate(contents()) if i != place]
    )


def swapped_members():
    parts = members()
    parts[BIAS], parts[WEIGHT] = (parts[BIAS][0], parts[WEIGHT][1]), (parts[WEIGHT][0], parts[BIAS][1])
    return zipped(parts)


def renamed(place, name):
    parts = members()
    parts[place] = (name, parts[place][1])
    return zipped(parts)


def relisted(place, **changes):
    listed = entries()
    listed[place] |= changes
    return described(listed, contents())


TWO = b"\0" * 16
MEMBERS = {
    "a byte more than listed": (
        zipped([*members()[:-1], ("arrays/2.bin", contents()[2] + b"\0")]),
        "25 bytes.*size 24",
    ),
    "a byte less than listed": (zipped([*members()[:-1], ("arrays/2.bin", contents()[2][:-1])]), "23 bytes.*size 24"),
    "other numbers": (zipped([*members()[:-1], ("arrays/2.bin", bytes(24))]), "arrays/2.bin does not match its digest"),
    "members exchanged": (swapped_members(), "size"),
    "a member renamed": (renamed(WEIGHT, "arrays/3.bin"), "in this order"),
    "a member with a zero before its number": (renamed(WEIGHT, "arrays/02.bin"), "no place"),
    "a member in npy's name": (renamed(WEIGHT, "arrays/2.npy"), "no place"),
    "a member by the array's name": (renamed(WEIGHT, "arrays/weight.bin"), "no place"),
    "a member outside": (renamed(WEIGHT, "arrays/../2.bin"), "no place"),
    "a member twice": (zipped([*members(), members()[WEIGHT]]), "duplicate"),
    "members in another order": (zipped([members()[MANIFEST], *members()[:MANIFEST:-1]]), "in this order"),
    "arrays before the manifest": (zipped([*members()[BIAS:], members()[MANIFEST]]), "in this order"),
    "arrays before the models": (zipped([*members(), ("models/0.onnx", b"x")]), "in this order"),
    "a member that is not listed": (zipped([*members(), ("arrays/3.bin", b"x" * 8)]), "lists 0 models and 3 arrays"),
    "a listed member that is missing": (zipped(members()[:-1]), "lists 0 models and 3 arrays"),
    "an array listed as a model": (described([], contents()[:1], files=[]), "lists 0 models and 0 arrays"),
    "too many members": (zipped([members()[0], *((f"arrays/{i}.bin", b"x") for i in range(1_001))]), "too many"),
    "a zip bomb": (zipped([*members()[:-1], ("arrays/2.bin", bytes(10**7))], zipfile.ZIP_DEFLATED), "ratio"),
}

ENTRIES = {
    "a size that is not the shape's": (one(shape=(3,)), "size 16 is not the shape"),
    "a size for another kind": (one(kind="float32"), "size 16 is not the shape"),
    "an axis of no length": (one(shape=(2, 0)), r"arrays\.0\.shape"),
    "an axis of no length and a size of none": (one(b"", shape=(0,)), r"arrays\.0\.shape"),
    "a negative axis": (one(shape=(-2,)), r"arrays\.0\.shape"),
    "two negative axes": (one(shape=(-2, -1)), r"arrays\.0\.shape"),
    "a huge axis": (one(shape=(2**62,)), r"arrays\.0\.shape"),
    "an axis beyond 64 bits": (one(shape=(2**64 + 2,)), r"arrays\.0\.shape"),
    "a product that wraps to zero": (one(shape=(2**32, 2**32)), "is not the shape"),
    "a product that wraps to the right size": (one(shape=WRAPS), "is not the shape"),
    "a huge array of few bytes": (one(shape=(2**36,), size=2**39), r"16 bytes, its manifest says size"),
    "nine axes": (one(shape=(2,) + (1,) * 8), r"arrays\.0\.shape"),
    "an axis as text": (one(shape=("2",)), r"arrays\.0\.shape"),
    "an axis as float": (one(shape=(2.0,)), r"arrays\.0\.shape"),
    "an axis of truth": (one(shape=(2, True)), r"arrays\.0\.shape"),
    "no shape": (one(shape=(), kind="float64"), "is not the shape"),
    "shape as a number": (relisted(0, shape=2), r"arrays\.0\.shape"),
    "size zero": (relisted(0, size=0), r"arrays\.0\.size"),
    "size as text": (relisted(0, size="16"), r"arrays\.0\.size"),
    "objects": (one(kind="object"), r"arrays\.0\.kind"),
    "half floats": (one(kind="float16", shape=(8,)), r"arrays\.0\.kind"),
    "a numpy format": (one(kind="<f8"), r"arrays\.0\.kind"),
    "a name with a path": (relisted(0, name="../bias"), r"arrays\.0\.name"),
    "a name with a line break": (relisted(0, name="bias\n"), r"arrays\.0\.name"),
    "a name in capitals": (relisted(0, name="Bias"), r"arrays\.0\.name"),
    "a very long name": (relisted(0, name="b" * 101), r"arrays\.0\.name"),
    "an unknown field": (relisted(0, order="F"), r"arrays\.0\.order"),
    "a bad digest": (relisted(0, sha256="0" * 63), r"arrays\.0\.sha256"),
    "another digest": (relisted(0, sha256="0" * 64), "does not match its digest"),
    "a name twice": (described([entry("bias", TWO)] * 2, [TWO] * 2), "not sorted, or one appears twice"),
    "names in another order": (described([entry("z", TWO), entry("a", TWO)], [TWO] * 2), "not sorted"),
    "arrays as an object": (described({"bias": 1}, contents()), "'arrays' is wrong"),
    "neither models nor arrays": (described([], []), "'north'.*neither models nor arrays"),
}

UNEXPECTED = {
    "a missing array": (without(1), "'north'.*missing: steps"),
    "an extra array": (
        described([*entries(), entry("x", TWO)], [*contents(), TWO]),
        "'north'.*'x' that is not expected",
    ),
    "an array in another name": (relisted(2, name="weights"), "'north'.*'weights' that is not expected"),
    "another shape of the same size": (relisted(2, shape=[3, 2]), r"'weight' has the shape \(3, 2\), but \(2, 3\)"),
    "a flat shape": (relisted(2, shape=[6]), r"'weight' has the shape \(6,\)"),
    "an axis more": (relisted(1, shape=[1]), r"'steps' has the shape \(1,\), but \(\) was"),
}


def with_number(value, kind="float64", code="d"):
    content = struct.pack(f"<2{code}", 1.0, value)
    listed, rest = entries(), contents()
    return described([entry("bias", content, kind), *listed[1:]], [content, *rest[1:]])


NUMBERS = {
    "NaN": (with_number(float("nan")), "'north'.*'bias' holds numbers that are not finite"),
    "infinity": (with_number(float("inf")), "not finite"),
    "minus infinity in float32": (with_number(float("-inf"), "float32", "f"), "not finite"),
}

ALL = {
    f"{kind}: {name}": case
    for kind, cases in (("member", MEMBERS), ("entry", ENTRIES), ("agreed", UNEXPECTED), ("number", NUMBERS))
    for name, case in cases.items()
}


@pytest.mark.parametrize("name", ALL)
def test_a_bad_array_is_refused_by_name_and_reason(name):
    data, reason = ALL[name]
    with pytest.raises(BundleError, match=reason) as caught:
        opened(data)
    assert "inbox/7.zip" in str(caught.value)
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize("name", [name for name in ALL if name.startswith(("member", "entry"))])
def test_a_peek_refuses_what_is_damaged_too(name):
    with pytest.raises(BundleError):
        peek(ALL[name][0], source="inbox/7.zip")


def test_what_the_bad_ones_are_made_from_is_accepted():
    for data in (GOOD, zipped(members()), described(entries(), contents()), with_number(2.0)):
        assert set(opened(data).arrays) == set(SENT)
    assert opened(one(), arrays={"bias": (2,)}).arrays["bias"].tolist() == [0.5, -1.5]
    assert opened(SIGNED, keys={"north": KEY.public}).sender == "north"


@pytest.mark.parametrize("arrays", [None, {}])
def test_arrays_where_none_are_expected_are_refused(arrays):
    with pytest.raises(BundleError, match=r"'north'.*holds arrays \(bias, steps, weight\), but none are expected"):
        opened(GOOD, arrays=arrays)


def test_a_live_server_of_fedkt_refuses_arrays(tmp_path):
    from types import SimpleNamespace

    from fedkt.live.inbox import look
    from fedkt.live.mailbox import file_at

    path = tmp_path / "north.fedkt"
    path.write_bytes(GOOD)
    plan = SimpleNamespace(
        digest="81c07e",
        classes=CLASSES,
        expected=Expected(plan="81c07e", classes=CLASSES, n_features=3, max_models=2, parties=["north"]),
        partitions=2,
        names=["north"],
        keys={},
    )
    arrival = look(plan, *file_at(path))
    assert arrival.bundle is None
    assert "none are expected" in arrival.reason


def test_a_hundred_unexpected_names_do_not_fill_the_message():
    names = [f"a{place:03}" for place in range(100)]
    with pytest.raises(BundleError, match=r"a004, … \(100 in all\)"):
        opened(described([entry(name, TWO) for name in names], [TWO] * 100), arrays=None)


@pytest.mark.parametrize(
    ("limits", "word"),
    [
        (Limits(member_bytes=20), r"arrays/2\.bin declares 24 bytes, which is too large"),
        (Limits(arrays=2), "too many arrays: 3"),
        (Limits(arrays=2, models=0), "too many"),
        (Limits(unpacked_bytes=sum(len(content) for _, content in members()) - 1), "too large.*together"),
        (Limits(bundle_bytes=len(GOOD) - 1), "too large"),
    ],
)
def test_arrays_above_a_limit_are_refused(limits, word):
    with pytest.raises(BundleError, match=word):
        opened(GOOD, limits=limits)


def test_what_is_just_within_the_limits_is_read():
    unpacked = sum(len(content) for _, content in members())
    bounds = Limits(bundle_bytes=len(GOOD), member_bytes=24, unpacked_bytes=unpacked, models=0, arrays=3)
    assert set(opened(GOOD, limits=bounds).arrays) == set(SENT)


def test_an_array_changed_under_a_valid_signature_is_refused():
    parts = members(SIGNED)
    parts[-1] = (parts[-1][0], bytes(24))
    with pytest.raises(BundleError, match="digest"):
        opened(zipped(parts), keys={"north": KEY.public})


def test_a_manifest_changed_under_a_signature_is_refused():
    parts = members(SIGNED)
    parts[0] = (parts[0][0], parts[0][1].replace(b'"steps"', b'"stepz"'))
    with pytest.raises(BundleError, match="the signature is not 'north''s"):
        opened(zipped(parts), keys={"north": KEY.public})


def test_every_bit_of_the_numbers_and_a_thousand_others_flipped_are_refused_or_change_nothing():
    rng = np.random.default_rng(14)
    inside = {SIGNED.find(each) + place for _, each in members(SIGNED)[2:] for place in range(len(each))}
    flips = [(place, bit) for place in sorted(inside) for bit in range(8)]
    flips += [(int(rng.integers(len(SIGNED))), int(rng.integers(8))) for _ in range(1_000)]
    assert len(inside) == 16 + 8 + 24
    refused = 0
    for place, bit in flips:
        data = bytearray(SIGNED)
        data[place] ^= 1 << bit
        try:
            got = opened(bytes(data), keys={"north": KEY.public}).arrays
        except BundleError:
            refused += 1
            continue
        assert place not in inside
        for name, sent in SENT.items():
            np.testing.assert_array_equal(got[name], sent, strict=True)
    assert refused > 8 * len(inside) + 500
