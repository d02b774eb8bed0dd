"""Moments between parties that exchange files: the feature map in the plan, sums instead of students."""

import base64
import hashlib
import json
import shutil
import zlib
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

from fedkt.algorithms.class_sums import GRAM, MOMENTS
from fedkt.bundle import pack, unpack
from fedkt.errors import BundleError, ConfigurationError, DataError, PlanError, PrivacyError
from fedkt.federation import Party, Server, simulate
from fedkt.live.final_file import read_final
from fedkt.live.inbox import look
from fedkt.live.mailbox import FolderMailbox
from fedkt.live.predictions import predict_file
from fedkt.plan import read_plan
from fedkt.privacy import Ledger
from live_federation import NAMES, build, fedkt, party, server

L1 = ("--level", "L1", "--epsilon", "4")
L2 = ("--level", "L2", "--epsilon", "4")


def moments_plan(folder, *more):
    members = [word for name in NAMES for word in ("--party", name)]
    return fedkt(
        *("plan", "new", "--public", folder / "public.csv", "--label", "diagnosis", "--classes", "malignant,benign"),
        *("--voting", "moments", "--force", "-o", folder / "plan.toml", *members, *more),
    )


@pytest.fixture(scope="module")
def exact(tmp_path_factory):
    """Three hospitals that agreed on moments without noise, and their bundles."""
    folder = tmp_path_factory.mktemp("exact")
    build(folder)
    moments_plan(folder, "--rows", "north=60")
    for name in NAMES:
        party(folder, name)
    return folder


@pytest.fixture(scope="module")
def noisy(tmp_path_factory):
    """The same at level L2."""
    folder = tmp_path_factory.mktemp("noisy")
    build(folder)
    moments_plan(folder, *L2)
    for name in NAMES:
        party(folder, name)
    return folder


@pytest.fixture
def copy_of(tmp_path):
    def copy(folder):
        return shutil.copytree(folder, tmp_path / "copy")

    return copy


def rows_of(folder, plan, name):
    table = plan.columns.read(folder / f"{name}.csv")
    return plan.columns.encode(table), plan.columns.labels(table, plan.classes)


def bundle_of(folder, name):
    plan = read_plan(folder / "plan.toml")
    return unpack((folder / "inbox" / f"{name}.fedkt").read_bytes(), source=name, expected=plan.expected)


def send(folder, bundle, **more):
    """Put a bundle into the inbox as its sender would; the verdict of the server."""
    plan = read_plan(folder / "plan.toml")
    rows = np.zeros((1, plan.columns.n_features), np.float32)
    data = pack(replace(bundle, plan=plan.digest), check_rows=rows, **more)
    (folder / "inbox" / f"{bundle.sender}.fedkt").write_bytes(data)
    return look(plan, FolderMailbox(folder / "inbox"), f"{bundle.sender}.fedkt")


def test_a_party_sends_the_sums_of_its_rows_under_the_map_in_the_plan_and_no_model(exact):
    plan, sent = read_plan(exact / "plan.toml"), bundle_of(exact, "north")
    X, y = rows_of(exact, plan, "north")
    phi = plan.feature_map(X)
    assert sent.models == ()
    assert sorted(sent.arrays) == [GRAM, MOMENTS]
    for label in range(2):
        np.testing.assert_allclose(sent.arrays[MOMENTS][:, label], phi[y == label].sum(axis=0), atol=1e-9)
    np.testing.assert_allclose(sent.arrays[GRAM], (phi.T @ phi)[np.triu_indices(phi.shape[1])], rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("final", [None, "logistic"])
def test_the_final_model_is_that_of_a_simulation_with_the_same_map(exact, copy_of, final):
    folder = copy_of(exact)
    if final is not None:
        moments_plan(folder, "--final", final)
        for name in NAMES:
            party(folder, name)
    made = json.loads(server(folder, "--test", folder / "test.csv", "--json").out)
    assert made["accuracy"] > 0.9
    assert made["model"] == (final or "head")
    plan = read_plan(folder / "plan.toml")
    public = plan.columns.encode(plan.read_public(folder / "public.csv"))
    parties = []
    for name in NAMES:
        X, y = rows_of(folder, plan, name)
        parties.append(Party(public, plan.classes, 1, name=name, X=X, y=y))
    outcome = simulate(plan.algorithm(), parties, Server(public, plan.classes, made["seed"] or 0))
    test, _ = rows_of(folder, plan, "test")
    live = predict_file(read_final(folder / "result" / "final.onnx"), folder / "test.csv", probabilities=True)
    found = np.column_stack([live.probabilities[label] for label in plan.classes])
    if final is None:
        np.testing.assert_allclose(found, outcome.final.models[0].predict_proba(test, 2), atol=1e-5)
    assert live.quality.accuracy.value == made["accuracy"]


def test_the_plan_and_the_file_say_in_words_what_travels_and_what_it_tells(exact, noisy):
    said = " ".join(fedkt("plan", "check", exact / "plan.toml", "--public", exact / "public.csv").out.split())
    assert "Each party makes" in said
    assert "of one row the sum is the row" in said
    assert "limited: north to 60 rows; nobody checks how many rows south, west may claim" in said
    assert "student" not in said
    assert "partitions" not in (exact / "plan.toml").read_text()
    inside = json.loads(fedkt("plan", "check", exact / "plan.toml", "--json").out)["plan"]["features"]
    assert sorted(inside) == ["prefixes", "sha256", "width"]
    plan = read_plan(exact / "plan.toml")
    _, y = rows_of(exact, plan, "north")
    shown = json.loads(fedkt("inspect", exact / "inbox" / "north.fedkt", "--plan", exact / "plan.toml", "--json").out)
    assert shown["kind"] == "bundle of sums"
    assert f"malignant {np.sum(y == 0)}, benign {np.sum(y == 1)} (60 in all)" in shown["sums"]
    assert shown["accepted"]
    hidden = " ".join(fedkt("plan", "check", noisy / "plan.toml").out.split())
    assert "gaussian-sums noise" in hidden
    assert "the promise holds for a map of strangers as well" in hidden
    noise = json.loads(fedkt("inspect", noisy / "inbox" / "north.fedkt", "--json").out)["sums"]
    assert noise.startswith("noisy sums of ")
    assert "epsilon 4.000 at delta 1e-05 for one record" in noise


def test_at_level_l2_the_price_is_claimed_and_written_down_and_the_final_model_says_it(noisy):
    plan = read_plan(noisy / "plan.toml")
    report = json.loads(server(noisy, "--json").out)
    assert report["epsilon"] == pytest.approx(4.0, abs=1e-3)
    assert report["privacy_statement"]["unit"] == "record"
    assert report["privacy_statement"]["adjacency"] == "replace-one"
    assert report["privacy_statement"]["mechanism"] == "gaussian-sums"
    for each in report["bundles"]:
        assert (each["claim"]["epsilon"], each["claim"]["queries"]) == (pytest.approx(plan.price().epsilon), 1)
    ledger = json.loads(fedkt("privacy", "ledger", noisy / "north.csv.ledger", "--json").out)
    assert len(ledger["entries"]) == 1
    card = (noisy / "result" / "model-card.md").read_text()
    assert "Noisy sums, released by each party" in card
    assert "solves one classifier from their total" in card


def test_a_party_that_was_killed_after_paying_sends_the_same_numbers_and_pays_once(noisy, copy_of, monkeypatch):
    folder = copy_of(noisy)
    for ending in ("ledger", "ledger.head"):
        (folder / f"north.csv.{ending}").unlink()
    (folder / "inbox" / "north.fedkt").unlink()

    def dies(*_, **__):
        raise RuntimeError("power cut")

    with monkeypatch.context() as broken:
        broken.setattr("fedkt.live.party.send", dies)
        with pytest.raises(AssertionError, match="power cut"):
            party(folder, "north")
    shutil.copytree(folder / "work", folder / "again")
    paid = (folder / "north.csv.ledger").read_bytes()
    party(folder, "north")
    first = (folder / "inbox" / "north.fedkt").read_bytes()
    fedkt(
        *("party", folder / "plan.toml", "--name", "north", "--data", folder / "north.csv"),
        *("--public", folder / "public.csv", "-o", folder / "other", "--work", folder / "again"),
    )
    assert (folder / "other" / "north.fedkt").read_bytes() == first
    assert (folder / "north.csv.ledger").read_bytes() == paid
    assert first != (noisy / "inbox" / "north.fedkt").read_bytes(), "other noise gives other numbers"


def test_a_dear_plan_is_refused_before_a_row_is_read(noisy, monkeypatch):
    monkeypatch.setattr("fedkt.live.party.read_records", None)
    with pytest.raises(PrivacyError, match=r"asks more of 'north' than its own limits allow"):
        party(noisy, "north", "--most-epsilon", "1")


def test_rows_that_a_party_may_tell_of_are_a_limit_at_both_sides(exact, noisy, copy_of):
    folder = copy_of(exact)
    moments_plan(folder, "--rows", "north=50")
    with pytest.raises(DataError, match="lets 'north' tell of at most 50"):
        party(folder, "north")
    sent = bundle_of(exact, "north")
    assert "it says that its party has 60 rows, more than the 50" in send(folder, sent).reason
    shutil.copytree(noisy, folder, dirs_exist_ok=True)
    moments_plan(folder, *L2, "--rows", "north=5", "--budget", "100")
    said = party(folder, "north", "--ledger", folder / "new.ledger").err
    assert "its sums are scaled down to them" in said
    plan, scaled = read_plan(folder / "plan.toml"), bundle_of(folder, "north")
    assert scaled.arrays[MOMENTS][0].sum() * plan.privacy.noise.step <= 5
    assert not look(plan, FolderMailbox(folder / "inbox"), "north.fedkt").reason


def test_evaluate_and_hold_out_know_sums(exact, copy_of):
    folder = copy_of(exact)
    party(folder, "north", "--hold-out", "0.3")
    server(folder)
    shown = json.loads(
        fedkt(
            *("party", folder / "plan.toml", "--name", "north", "--data", folder / "north.csv"),
            *("--public", folder / "public.csv", "--evaluate", folder / "result" / "final.onnx", "--json"),
        ).out
    )
    assert shown["rows"] + shown["learned"] == 60
    beside = fedkt(
        *("evaluate", folder / "result" / "final.onnx", folder / "test.csv"),
        *("--bundles", folder / "inbox", "--plan", folder / "plan.toml", "--json"),
    )
    assert json.loads(beside.out)["students"] == []


def test_who_is_absent_is_named_and_the_others_go_on(exact, copy_of):
    folder = copy_of(exact)
    (folder / "inbox" / "west.fedkt").unlink()
    with pytest.raises(BundleError, match="Missing: west"):
        server(folder)
    report = json.loads(server(folder, "--min-parties", "2", "--json").out)
    assert report["missing"] == ["west"]
    assert sorted(report["votes"]["influence"]) == ["north", "south"]


def test_a_final_model_that_names_one_class_for_everything_comes_with_an_alarm(exact, copy_of):
    folder = copy_of(exact)
    for name in NAMES:
        lines = (folder / f"{name}.csv").read_text().splitlines()
        kept = [line for line in lines if not line.endswith("malignant")]
        (folder / f"{name}.csv").write_text("\n".join(kept) + "\n")
        party(folder, name)
    lost, alarm = json.loads(server(folder, "--json").out)["alarms"]
    assert lost.startswith("The final model can never name 'malignant'")
    assert alarm.startswith("It names 'benign' for every public row")
    assert "It names 'benign' for every public row" in (folder / "result" / "model-card.md").read_text()
    assert "It names 'benign'" in fedkt("predict", folder / "result" / "final.onnx", folder / "public.csv").err


def with_arrays(bundle, **changes):
    return replace(bundle, arrays={**bundle.arrays, **changes})


LIES = {
    "half a row": (lambda b: with_arrays(b, moments=b.arrays[MOMENTS] + 0.5), "class counts are not whole"),
    "another shape": (lambda b: with_arrays(b, moments=b.arrays[MOMENTS][:-1]), "was agreed on"),
    "no products": (lambda b: replace(b, arrays={MOMENTS: b.arrays[MOMENTS]}), "arrays are missing: gram"),
    "one array more": (lambda b: with_arrays(b, more=np.ones(3)), "'more' that is not expected"),
    "long sums": (lambda b: with_arrays(b, moments=long_sums(b.arrays[MOMENTS])), "longer sum than"),
    "large products": (lambda b: with_arrays(b, gram=b.arrays[GRAM] * 9), "first row of its Gram matrix"),
}


def long_sums(moments):
    longer = moments.copy()
    longer[1:] *= 1e3
    return longer


@pytest.mark.parametrize("lie", LIES)
def test_sums_that_no_rows_have_are_refused_by_name_before_anything_is_solved(exact, copy_of, lie):
    folder = copy_of(exact)
    change, words = LIES[lie]
    assert words in send(folder, change(bundle_of(exact, "north"))).reason
    report = json.loads(server(folder, "--min-parties", "2", "--json").out)
    assert report["missing"] == ["north"]


def test_sums_with_numbers_that_are_none_are_refused(exact, copy_of):
    folder = copy_of(exact)
    path = folder / "inbox" / "north.fedkt"
    sent = bundle_of(exact, "north")
    honest = sent.arrays[MOMENTS].tobytes()
    packed = pack(sent, n_features=read_plan(folder / "plan.toml").columns.n_features)
    odd = np.array(sent.arrays[MOMENTS])
    odd[3, 0] = np.nan
    with pytest.raises(BundleError, match="not finite"):
        pack(with_arrays(sent, moments=odd), n_features=8)
    path.write_bytes(forged(packed, honest, odd.tobytes()))
    reason = look(read_plan(folder / "plan.toml"), FolderMailbox(folder / "inbox"), "north.fedkt").reason
    assert "not finite" in reason


def forged(packed, old, new):
    """A bundle with other bytes in one member, its digests and checksums made to fit."""
    import io
    import zipfile

    members = {}
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members = {name: new if content == old else content for name, content in members.items()}
    text = members["manifest.json"].decode()
    members["manifest.json"] = text.replace(hashlib.sha256(old).hexdigest(), hashlib.sha256(new).hexdigest()).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)
    return out.getvalue()


def test_at_level_l2_sums_are_whole_multiples_and_no_longer_than_rows_and_noise_make_them(noisy, copy_of):
    folder = copy_of(noisy)
    sent = bundle_of(noisy, "north")
    kind = with_arrays(sent, moments=sent.arrays[MOMENTS].astype(np.float64))
    assert "did not send whole numbers" in send(folder, kind).reason
    longer = sent.arrays[MOMENTS].copy()
    longer[1:] += 10**7
    assert "longer than its rows and the noise" in send(folder, with_arrays(sent, moments=longer)).reason
    cheap = sent.claim.model_copy(update={"epsilon": 0.1, "total_epsilon": 0.1})
    assert "understates epsilon" in send(folder, sent, claim=cheap).reason
    assert "makes no privacy claim" in send(folder, replace(sent, claim=None)).reason


def test_students_where_sums_are_expected_and_sums_where_students_are_are_refused(exact, copy_of):
    folder = copy_of(exact)
    members = [word for name in NAMES for word in ("--party", name)]
    fedkt(
        *("plan", "new", "--public", folder / "public.csv", "--label", "diagnosis", "--classes", "malignant,benign"),
        *("--model", "tree", "-o", folder / "students.toml", *members),
    )
    fedkt(
        *("party", folder / "students.toml", "--name", "north", "--data", folder / "north.csv"),
        *("--public", folder / "public.csv", "-o", folder / "students", "--work", folder / "work"),
    )
    plan, students = read_plan(folder / "plan.toml"), read_plan(folder / "students.toml")
    taught = unpack((folder / "students" / "north.fedkt").read_bytes(), source="n", expected=students.expected)
    assert "too many models" in send(folder, taught).reason
    data = pack(replace(bundle_of(exact, "north"), plan=students.digest), n_features=plan.columns.n_features)
    (folder / "students" / "north.fedkt").write_bytes(data)
    assert "none are expected" in look(students, FolderMailbox(folder / "students"), "north.fedkt").reason


# A hostile plan.


def plan_with(folder, data, **changes):
    """The plan's file with another graph in it; what is said of the graph is right, unless it is changed."""
    import tomllib

    values = tomllib.loads((folder / "plan.toml").read_text())
    said = {"sha256": hashlib.sha256(data).hexdigest(), "width": values["features"]["width"], "prefixes": []}
    said |= {"graph": base64.b64encode(zlib.compress(data)).decode(), **changes}
    text = (folder / "plan.toml").read_text()
    head = text[: text.index("[features]")]
    lines = [f"{key} = {json.dumps(value)}" for key, value in said.items()]
    (folder / "plan.toml").write_text("\n".join([head, "[features]", *lines, ""]))


def made_graph(nodes, tables=(), *, width, columns, inputs=("rows",)):
    made = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, columns]) for name in inputs],
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, [None, width])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in tables],
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def hostile_graph(plan, *nodes):
    """1 beside what `nodes` make of the first column as `last`, in as many columns as were agreed on."""
    width, columns = plan.features.width, plan.columns.n_features
    tables = [
        ("first", np.array([0])),
        ("zero", np.float32(0)),
        ("one", np.float32(1)),
        ("huge", np.float32(1e30)),
        ("half", np.float32(0.5)),
        ("shares", np.ones((1, width - 1), np.float32) / np.float32(width)),
    ]
    parts = [
        helper.make_node("Gather", ["rows", "first"], ["own"], axis=1),
        helper.make_node("Mul", ["own", "zero"], ["nothing"]),
        helper.make_node("Add", ["nothing", "one"], ["ones"]),
        *nodes,
        helper.make_node("MatMul", ["last", "shares"], ["many"]),
        helper.make_node("Concat", ["ones", "many"], ["features"], axis=1),
    ]
    return made_graph(parts, tables, width=width, columns=columns)


def test_a_graph_that_is_not_what_the_plan_says_is_refused_when_the_plan_is_read(exact, copy_of):
    folder = copy_of(exact)
    plan = read_plan(folder / "plan.toml")
    graph, width, columns = plan.features.graph_bytes, plan.features.width, plan.columns.n_features
    bomb = base64.b64encode(zlib.compress(bytes(25 * 2**20))).decode()
    node = helper.make_node("Abs", ["rows"], ["features"])
    more = made_graph([helper.make_node("Add", ["rows", "more"], ["features"])], width=width, columns=columns)
    two = made_graph([node], width=width, columns=columns, inputs=("rows", "more"))
    for bad, changes, words in (
        (graph, {"sha256": "0" * 64}, "features.sha256: it is the digest of another graph"),
        (graph, {"width": width + 1}, r"has the shape \[0, \d+\], not"),
        (graph, {"graph": "%%%"}, "features.graph: it is damaged"),
        (graph, {"graph": bomb}, "features.graph: unpacked it has more than the 25,165,824 bytes"),
        (graph, {"prefixes": [9, 4]}, "prefixes: they grow"),
        (graph, {"note": "x"}, "features.note is not a key that a plan has"),
        (two, {}, "features.graph: the graph has 2 inputs"),
        (graph[:-40], {}, "features.graph: the model"),
    ):
        shutil.copy(exact / "plan.toml", folder / "plan.toml")
        plan_with(folder, bad, **changes)
        with pytest.raises(PlanError, match=words):
            read_plan(folder / "plan.toml")
    shutil.copy(exact / "plan.toml", folder / "plan.toml")
    plan_with(folder, more)
    with pytest.raises(PlanError, match="The plan is refused, and no row of yours was read: the feature map"):
        party(folder, "north")


def test_the_graph_is_part_of_the_agreement_and_its_packing_is_not(exact, copy_of):
    folder = copy_of(exact)
    plan = read_plan(folder / "plan.toml")
    plan_with(folder, plan.features.graph_bytes, prefixes=list(plan.features.prefixes))
    assert read_plan(folder / "plan.toml").digest == plan.digest
    proto = onnx.load_from_string(plan.features.graph_bytes)
    proto.graph.name = "another"
    plan_with(folder, proto.SerializeToString(), prefixes=list(plan.features.prefixes))
    assert read_plan(folder / "plan.toml").digest != plan.digest


def test_a_map_that_is_none_is_refused_by_public_rows_before_a_private_one_is_read(noisy, copy_of, monkeypatch):
    folder = copy_of(noisy)
    plan = read_plan(folder / "plan.toml")
    monkeypatch.setattr("fedkt.live.party.read_records", None)
    for node in (
        helper.make_node("Mul", ["own", "huge"], ["last"]),
        helper.make_node("Log", ["zero"], ["last"]),
        helper.make_node("Sqrt", ["own"], ["last"]),
    ):
        shutil.copy(noisy / "plan.toml", folder / "plan.toml")
        plan_with(folder, hostile_graph(plan, node))
        with pytest.raises(PlanError, match="The plan is refused, and no row of yours was read: the feature map"):
            party(folder, "north")


def test_a_map_that_is_honest_on_public_rows_only_cannot_make_a_row_heavier_or_stop_its_party(noisy, copy_of):
    """Within 100 deviations a small number; beyond, where only private rows lie, as large as numbers get, or none."""
    folder = copy_of(noisy)
    plan = read_plan(folder / "plan.toml")
    far = [
        helper.make_node("Mul", ["own", "own"], ["square"]),
        helper.make_node("Sub", ["square", "limit"], ["above"]),
        helper.make_node("Relu", ["above"], ["beyond"]),
        helper.make_node("Mul", ["beyond", "huge"], ["large"]),
        helper.make_node("Mul", ["large", "huge"], ["last"]),
    ]
    graph = onnx.load_from_string(hostile_graph(plan, *far))
    graph.graph.initializer.append(numpy_helper.from_array(np.float32(1e4), "limit"))
    plan_with(folder, graph.SerializeToString())
    hostile = read_plan(folder / "plan.toml")
    X, y = rows_of(folder, hostile, "north")
    public = hostile.columns.encode(hostile.read_public(folder / "public.csv"))
    hostile.method.try_on(hostile, public)
    X = np.array(X)
    X[0, 0] = 1e6
    said = hostile.feature_map(X)
    assert np.isfinite(said).all()
    assert (np.sqrt((said[:, 1:] ** 2).sum(axis=1)) <= 1).all()
    algorithm = hostile.algorithm()
    own = Party(public, hostile.classes, 1, name="north", X=X, y=y, noise_seed=3, ledger=Ledger())
    sent = algorithm.party_step(own, None)
    assert sent.arrays[MOMENTS].dtype == np.int64
    assert sent.arrays[MOMENTS].shape == (hostile.features.width, 2)


# Plans that cannot be.


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        (("--subsets", "5"), PlanError, "moments cuts no rows"),
        (("--student", "tree"), PlanError, "moments trains nothing at a party"),
        (("--party-model", "north=tree"), PlanError, "moments trains nothing at a party"),
        ((*L2, "--queries", "30"), ConfigurationError, "Sums are one release"),
        ((*L2, "--adjacency", "add-or-remove"), PlanError, "being replaced"),
        (("--level", "L2", "--noise", "gaussian:9"), ConfigurationError, "Sums leave with noise of their own"),
        ((*L1, "--rows", "north=60"), PlanError, "every party counts the same"),
        ((*L1, "--class-shares", "malignant=0.4,benign=0.7"), ConfigurationError, "sum to 1"),
        ((*L1, "--class-shares", "ill=0.4"), ConfigurationError, "'ill' is none"),
        ((*L2, "--class-shares", "malignant=0.4"), PlanError, "Leave class_shares out"),
        (("--class-shares", "malignant=0.4"), ConfigurationError, "Level L0 adds no noise, but class_shares"),
        (
            ("--voting", "consistent", "--level", "L1", "--epsilon", "1", "--class-shares", "malignant=0.4"),
            PlanError,
            "only moments at level L1 has",
        ),
        (("--epsilon", "1"), ConfigurationError, "Level L0 adds no noise"),
        (("--final", "cnn"), PlanError, "cnn reads images"),
    ],
)
def test_what_moments_does_not_have_is_refused_when_the_plan_is_made(exact, copy_of, options, kind, words):
    with pytest.raises(kind, match=words):
        moments_plan(copy_of(exact), *options)


def test_a_noise_may_be_named_instead_of_an_epsilon(exact, copy_of):
    folder = copy_of(exact)
    moments_plan(folder, "--level", "L2", "--noise", "gaussian-sums:7.5")
    assert read_plan(folder / "plan.toml").privacy.noise.spread == 7.5


def test_a_plan_of_votes_has_no_feature_map_and_no_noise_for_sums(exact, copy_of):
    folder = copy_of(exact)
    features = (folder / "plan.toml").read_text()
    features = features[features.index("[features]") :]
    members = [word for name in NAMES for word in ("--party", name)]
    with pytest.raises(PlanError, match="not for votes"):
        fedkt(
            *("plan", "new", "--public", folder / "public.csv", "--label", "diagnosis", "--classes", "a,b"),
            *("--level", "L2", "--noise", "gaussian-sums:7.5", "-o", folder / "votes.toml", *members),
        )
    fedkt(
        *("plan", "new", "--public", folder / "public.csv", "--label", "diagnosis", "--classes", "malignant,benign"),
        *("-o", folder / "votes.toml", *members),
    )
    (folder / "votes.toml").write_text((folder / "votes.toml").read_text() + features)
    with pytest.raises(PlanError, match="features is given, a feature map, which only moments has"):
        read_plan(folder / "votes.toml")


def write_images(folder, name, images, labels=None):
    """IDX files, as their publishers describe them: magic number, lengths, bytes."""
    for part, array in (("images-idx3", images), ("labels-idx1", labels)):
        if array is not None:
            head = bytes([0, 0, 8, array.ndim]) + b"".join(each.to_bytes(4, "big") for each in array.shape)
            (folder / f"{name}-{part}-ubyte").write_bytes(head + array.astype(np.uint8).tobytes())
    return folder / f"{name}-images-idx3-ubyte"


def test_images_travel_as_sums_too(tmp_path):
    data = load_digits()
    public = write_images(tmp_path, "public", data.images[:150])
    test = write_images(tmp_path, "test", data.images[1400:], data.target[1400:])
    fedkt(
        *("plan", "new", "--public", public, "--label", "digit", "--classes", "0,1,2,3,4,5,6,7,8,9"),
        *("--voting", "moments", "-o", tmp_path / "plan.toml", "--party", "north", "--party", "south"),
    )
    for place, name in enumerate(("north", "south")):
        own = slice(400 + 500 * place, 900 + 500 * place)
        fedkt(
            *("party", tmp_path / "plan.toml", "--name", name, "--public", public, "-o", tmp_path / "inbox"),
            *("--data", write_images(tmp_path, name, data.images[own], data.target[own]), "--work", tmp_path / "work"),
        )
    result = json.loads(
        fedkt(
            *("server", tmp_path / "plan.toml", "--public", public, "--bundles", tmp_path / "inbox"),
            *("-o", tmp_path / "result", "--test", test, "--json"),
        ).out
    )
    assert read_plan(tmp_path / "plan.toml").image == (8, 8, 1)
    assert result["accuracy"] > 0.9
