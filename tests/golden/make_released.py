"""Made the files in `released`, once, with version 0.1.0 of fedkt. It is kept to say how; it is not run again.

    PYTHONPATH=<checkout of version 0.1.0>/src:tests/support python tests/golden/make_released.py

It refuses any other version, and a folder that is there: what was released cannot change. The inner names of 0.1.0 that
it imports need not exist in later versions.
"""

import contextlib
import hashlib
import json
import shutil
import tempfile
import tomllib
import zipfile
from pathlib import Path
from unittest import mock

import tomlkit
from asked_for import NOISES, plan_words
from golden_files import run, write_json
from made_up_rows import write_pictures, write_table
from make_released_lines import make_results

import fedkt as library
from command_line import fedkt

HOME = Path(__file__).parent / "released"
FOLDER = Path("released")
"""In a folder of its own, where it is made: nothing in it names a place on a machine."""
FAMILIES = (
    *("forest", "extra-trees", "tree", "boosting", "hist-boosting", "lightgbm", "logistic", "svm", "naive-bayes"),
    "mlp",
)
SMALL = tuple(family for family in FAMILIES if family not in ("extra-trees", "mlp"))


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def new_plan(path, *words, public, parties, label="outcome", classes="ill,well"):
    members = [word for name in parties for word in ("--party", name)]
    return run(
        *("plan", "new", "--public", public, "--label", label, "--classes", classes, *members, "-o", path, *words)
    )


def make_plans(public, keys):
    folder = FOLDER / "plans"
    folder.mkdir()
    for name, words in plan_words():
        new_plan(folder / f"{name}.toml", *words, public=public, parties=("north", "south"))
    new_plan(folder / "numbers.toml", public=public, parties=("north",), classes="0,1,7")
    signed = [word for name in ("north", "south") for word in ("--key", f"{name}={keys[name]}")]
    new_plan(folder / "keys.toml", *signed, public=public, parties=("north", "south"))
    by_hand(folder)
    found = {}
    for path in sorted(folder.iterdir()):
        told = json.loads(run("plan", "check", path, "--json"))
        found[path.stem] = {"digest": told["digest"], "plan": told["plan"], "epsilon": epsilon_of(path)}
    write_json(FOLDER / "plans.json", found)


def by_hand(folder):
    """What somebody with an editor may do to a plan: most of it leaves the plan the same, some makes it another."""
    text = (folder / "L2-expert-gaussian.toml").read_text(encoding="utf-8")
    said = tomllib.loads(text)
    turned = {key: said[key] for key in sorted(said, key=lambda key: (isinstance(said[key], dict | list), key[::-1]))}
    (folder / "hand-turned.toml").write_text(tomlkit.dumps(turned), encoding="utf-8")
    (folder / "hand-crlf.toml").write_bytes(text.replace("\n", "\r\n").encode())
    short = {key: said[key] for key in said if key not in ("partitions", "subsets", "seed")}
    del short["privacy"]["budget"], short["privacy"]["adjacency"]
    (folder / "hand-short.toml").write_text(tomlkit.dumps(short), encoding="utf-8")
    other = said | {"task": "another", "min_parties": 2, "models": {"default": "tree", "parties": {"south": "svm"}}}
    (folder / "hand-other.toml").write_text(tomlkit.dumps(other), encoding="utf-8")
    plain = tomllib.loads((folder / "L0-consistent.toml").read_text(encoding="utf-8"))
    for key in ("level", "partitions", "subsets", "seed"):
        del plain[key]
    (folder / "hand-bare.toml").write_text(tomlkit.dumps(plain | {"voting": "consistent"}), encoding="utf-8")


def epsilon_of(path):
    from fedkt.plan import read_plan

    price = read_plan(path).price()
    return None if price is None else price.epsilon


def make_bundles(name, words, families, *, work, public, pictures=False, keys=None):
    """A federation in which every party is a family's: its plan, its bundles, and what 0.1.0 makes of them."""
    folder = FOLDER / name
    folder.mkdir()
    plan = folder / "plan.toml"
    own = [word for family in families for word in ("--party-model", f"{family}={family}")]
    signed = [word for family in families for word in ("--key", f"{family}={keys[family]}")] if keys else []
    about = {"label": "side", "classes": "0,1"} if pictures else {}
    new_plan(plan, "--model", "tree", "--epochs", "2", *own, *signed, *words, public=public, parties=families, **about)
    for place, family in enumerate(families):
        data = work / (f"{name}-{family}-images-idx3-ubyte" if pictures else f"{name}-{family}.csv")
        (write_pictures if pictures else write_table)(data, seed=[7, place], rows=40)
        key = ("--key", work / f"{family}.key") if keys else ()
        run(
            *("party", plan, "--name", family, "--data", data, "--public", public, "-o", folder),
            *("--work", work / "shelf", *key, "--json"),
        )
    return {f"{name}/{family}": facts_of(plan, folder / f"{family}.fedkt", public) for family in families}


def facts_of(plan_file, path, public):
    """A bundle's manifest, its digests, and what its students say about the public rows."""
    import numpy as np

    from fedkt.bundle import unpack
    from fedkt.models.prediction import predict_all, probabilities_of_all
    from fedkt.plan import read_plan

    plan, data = read_plan(plan_file), path.read_bytes()
    bundle = unpack(
        data,
        source=path.name,
        plan=plan.digest,
        classes=plan.classes,
        n_features=plan.columns.n_features,
        counts=plan.counts,
        soft=plan.soft,
        not_mine=plan.not_mine,
        keys=plan.keys,
    )
    rows = np.asarray(plan.columns.encode(plan.read_public(public)), dtype=np.float32)
    sure = [model for model in bundle.models if model.soft]
    with zipfile.ZipFile(path) as archive:
        text = archive.read("manifest.json")
        signature = archive.read("manifest.sig").hex() if "manifest.sig" in archive.namelist() else None
    shown = json.loads(run("inspect", path, "--plan", plan_file, "--json"))
    return {
        "sha256": sha256(data),
        "identity": sha256(text),
        "manifest": json.loads(text),
        "signature": signature,
        "inspect": {name: shown[name] for name in ("kind", "bytes", "signature", "accepted", "models")},
        "labels": [answer.tolist() for answer in predict_all(bundle.models, rows)],
        "probabilities": [
            [[round(float(each), 7) for each in row] for row in answer]
            for answer in (probabilities_of_all(sure, rows, plan.n_outputs) if sure else [])
        ],
    }


def make_final(work, public):
    """What the server of 0.1.0 writes, and what `fedkt predict` says with it about rows nobody has seen."""
    folder = FOLDER / "final"
    write_table(FOLDER / "new.csv", seed=99, rows=30)
    for name in ("signed", "expert", "expert-no-counts"):
        inbox, result = FOLDER / name, work / f"result-{name}"
        run(
            *("server", inbox / "plan.toml", "--public", public, "--bundles", inbox, "-o", result),
            *("--test", FOLDER / "new.csv"),
        )
        (folder / name).mkdir(parents=True)
        for file in ("final.onnx", "report.json", "privacy.txt"):
            shutil.copy(result / file, folder / name / file)
        final = folder / name / "final.onnx"
        told = json.loads(run("predict", final, FOLDER / "new.csv", "--json"))
        shown = json.loads(run("inspect", final, "--plan", inbox / "plan.toml", "--json"))
        write_json(folder / name / "expected.json", {"predict": told, "inspect": without(shown, "file")})


def make_private(work, public):
    """Level L2: one party's ledger over three plans, with class counts; level L1: a server's ledger and kept noise."""
    facts, folder = {}, FOLDER / "private"
    folder.mkdir()
    write_table(work / "north.csv", seed=[8, 0], rows=60)
    ledger = folder / "north.ledger"
    noises = {"gaussian": "consistent", "laplace": "expert", "confident-gaussian": "consistent"}
    for noise, voting in noises.items():
        plan = folder / f"L2-{voting}-{noise}.toml"
        words = ("--level", "L2", "--mechanism", noise, *NOISES[noise], "--queries", "10", "--voting", voting)
        new_plan(plan, "--model", "tree", "--budget", "5000", *words, public=public, parties=("north",))
        run(
            *("party", plan, "--name", "north", "--data", work / "north.csv", "--public", public),
            *("-o", work / "out", "--work", work / "shelf", "--ledger", ledger, "--json"),
        )
        bundle = folder / f"L2-{voting}-{noise}.fedkt"
        shutil.copy(work / "out" / "north.fedkt", bundle)
        facts[f"private/{bundle.stem}"] = facts_of(plan, bundle, public)
    told = json.loads(run("privacy", "ledger", ledger, "--json"))
    write_json(folder / "north.json", without(told, "ledger"))
    server_of_level_one(work, public)
    for level in ("L0", "L2"):
        interrupted(level, public)
    return facts


def interrupted(level, public):
    """A party's run that was stopped when its student was ready and its bundle was not."""
    import fedkt.party_side as inside

    folder = FOLDER / f"interrupted-{level}"
    folder.mkdir()
    noise = () if level == "L0" else ("--level", "L2", "--mechanism", "gaussian", "--sigma", "8", "--queries", "10")
    cut = ("--partitions", "1", "--subsets", "5")
    new_plan(folder / "plan.toml", "--model", "tree", *cut, *noise, public=public, parties=("north",))
    write_table(folder / "north.csv", seed=[10, 0], rows=40)
    with mock.patch.object(inside, "pack", side_effect=KeyboardInterrupt):
        stopped = fedkt(
            *("party", str(folder / "plan.toml"), "--name", "north", "--data", str(folder / "north.csv")),
            *("--public", str(public), "-o", str(folder / "out"), "--work", str(folder / "work"), "--json"),
        )
    assert stopped.returncode != 0
    assert (folder / "work" / "student-0.student").is_file()


def server_of_level_one(work, public):
    folder = FOLDER / "level-one"
    folder.mkdir()
    plan = folder / "plan.toml"
    words = ("--level", "L1", "--mechanism", "gaussian", "--sigma", "3", "--queries", "12")
    new_plan(plan, "--model", "tree", *words, public=public, parties=("north", "south"))
    for place, name in enumerate(("north", "south")):
        write_table(work / f"{name}.csv", seed=[9, place], rows=60)
        run(
            *("party", plan, "--name", name, "--data", work / f"{name}.csv", "--public", public),
            *("-o", folder, "--work", work / "shelf", "--json"),
        )
    run("server", plan, "--public", public, "--bundles", folder, "-o", work / "one", "--json")
    told = json.loads(run("privacy", "ledger", folder / "plan.toml.ledger", "--json"))
    write_json(folder / "ledger.json", without(told, "ledger"))


def without(said, *names):
    return {key: value for key, value in said.items() if key not in names}


def make(work):
    """All of it; `work` is for what is not kept."""
    FOLDER.mkdir()
    public, pictures = FOLDER / "public.csv", FOLDER / "public-images-idx3-ubyte"
    write_table(public, seed=1, rows=44, labels=False)
    write_pictures(pictures, seed=2, rows=16, labels=False)
    names = ("north", "south", *FAMILIES, "cnn")
    keys = {name: json.loads(run("keys", "new", name, "-o", work, "--json"))["public"] for name in names}
    make_plans(public, keys)
    one, two = ("--partitions", "1", "--subsets", "2"), ("--partitions", "2", "--subsets", "2")
    counts, without_counts = ("--voting", "expert"), ("--voting", "expert-no-counts")
    sure = tuple(family for family in FAMILIES if family != "svm")
    facts = make_bundles("consistent", one, FAMILIES, work=work, public=public)
    facts |= make_bundles("signed", two, SMALL, work=work, public=public, keys=keys)
    facts |= make_bundles("expert", counts, FAMILIES, work=work, public=public, keys=keys)
    facts |= make_bundles("expert-no-counts", without_counts, sure, work=work, public=public)
    of_pictures = {"work": work, "public": pictures, "pictures": True}
    facts |= make_bundles("pictures", one, ("cnn",), **of_pictures)
    facts |= make_bundles("pictures-expert", counts, ("cnn",), keys=keys, **of_pictures)
    facts |= make_bundles("pictures-expert-no-counts", without_counts, ("cnn",), **of_pictures)
    make_final(work, public)
    facts |= make_private(work, public)
    write_json(FOLDER / "bundles.json", facts)
    make_results(FOLDER / "results")
    for lock in FOLDER.rglob("*.lock"):
        lock.unlink()
    write_json(FOLDER / "versions.json", circumstances())


def main():
    assert library.__version__ == "0.1.0", library.__file__
    assert not HOME.exists(), f"{HOME} is there; what was released does not change"
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        Path("work").mkdir()
        make(Path("work"))
        shutil.copytree(FOLDER, HOME)


def circumstances():
    """What bytes may depend on besides fedkt: versions of libraries, and what the processor can do."""
    import torch
    from fedkt.versions import versions

    return {**versions(), "processor": torch.backends.cpu.get_cpu_capability()}


if __name__ == "__main__":
    main()
