"""What installed packages bring to the catalogues, what is left out, and that no received file loads anything."""

import json
import os
import subprocess
import sys
import time
import warnings
from importlib.metadata import entry_points

import numpy as np
import pytest

from command_line import fedkt
from fedkt import FedKTClassifier
from fedkt.algorithms import known_algorithm, known_algorithms
from fedkt.data import known_datasets, load
from fedkt.errors import ConfigurationError, PlanError
from fedkt.models.catalogue import as_estimator, family_of, known_models
from fedkt.plan import make_plan, read_plan
from fedkt.privacy.mechanisms import make_noise, noise_of_scale
from fedkt.system.backends import loky
from fedkt.system.parallel import in_parallel
from fedkt.system.plug_ins import PlugInWarning, loaded, names
from plug_ins import site, write_package

__all__ = ["site"]

STEADY = """
from dataclasses import dataclass
from fedkt.privacy import Gaussian

@dataclass(frozen=True)
class Steady(Gaussian):
    name = "steady"
    about = "the gaussian under another name"
"""
FAMILY = """
from fedkt.models.families.family import Family, later

OAK = Family(
    "oak", "Trees.", later("sklearn.ensemble:BaggingClassifier", n_estimators=4), classes=("BaggingClassifier",),
    row_weight=1.0,
)
THIEF = Family("thief", "Not its own.", later("sklearn.svm:SVC"), classes=("SVC",))
EMPTY = Family("empty")
"""
LOUD = "raise RuntimeError('a library\\nis missing')"
ALGORITHM = '''
from fedkt.algorithms.solo import Solo
from fedkt import Algorithm

class Lone(Solo):
    """Alone, under another name."""
    name = "lone"

class Half(Algorithm):
    name = "half"
'''


def left_out(look):
    """The plug-ins that a look into a catalogue leaves out, in words."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        look()
    assert {each.category for each in caught} <= {PlugInWarning}
    return [str(each.message) for each in caught]


def test_a_catalogue_has_what_packages_bring_from_the_first_look_on(site):
    write_package(site, "oaks", {"fedkt.models": {"oak": "oaks:OAK"}}, oaks=FAMILY)
    assert "oaks" not in sys.modules
    assert names("fedkt.models", ["tree"]) == ["tree", "oak"]
    assert "oaks" not in sys.modules
    assert type(as_estimator("oak")).__name__ == "BaggingClassifier"
    assert left_out(known_models) == []
    (plug_in,) = loaded("fedkt.models")
    assert (plug_in.kind, plug_in.name, plug_in.package, plug_in.version) == ("model", "oak", "oaks", "1.0")


def test_what_cannot_be_used_is_named_and_left_out_and_all_else_goes_on(site):
    places = {"oak": "oaks:OAK", "gone": "oaks:GONE", "away": "nowhere:X", "loud": "loud:X", "tall": "oaks:OAK"}
    places |= {"thief": "oaks:THIEF", "empty": "oaks:EMPTY", "no": "oaks:Family", "Big": "oaks:OAK"}
    write_package(site, "oaks", {"fedkt.models": places}, version="2.1", oaks=FAMILY, loud=LOUD)
    said = left_out(known_models)
    assert "oak" in known_models()
    assert not set(places) - {"oak"} & set(known_models())
    reasons = {each.split("'")[1]: each for each in said}
    assert reasons.keys() == places.keys() - {"oak"}
    assert reasons["loud"] == (
        "The model 'loud' of the package oaks 2.1 is left out: RuntimeError: a library is missing."
    )
    for name, why in {
        "gone": "no attribute 'GONE'",
        "away": "No module named 'nowhere'",
        "tall": "its record calls it 'oak', its entry 'tall'",
        "thief": "another family has estimators of the class SVC",
        "empty": "makes no estimator",
        "no": "a model is a fedkt.models.families.family.Family",
        "Big": "small letters",
    }.items():
        assert why in reasons[name]
    with pytest.raises(ConfigurationError, match=r"There is no model 'loud'.* is left out: RuntimeError: a library"):
        as_estimator("loud")
    assert left_out(known_models) == []


def test_nobody_takes_the_place_of_what_fedkt_has_nor_of_another_package(site):
    before = known_models()["forest"]
    places = {"fedkt.models": {"forest": "oaks:OAK"}, "fedkt.noises": {"gaussian-counts": "calm:Steady"}}
    write_package(site, "oaks", places, oaks=FAMILY, calm=STEADY)
    assert known_models()["forest"] is before


def test_a_name_that_fedkt_or_two_packages_have_is_refused_in_words(site):
    write_package(site, "oaks", {"fedkt.models": {"forest": "oaks:OAK", "oak": "oaks:OAK"}}, oaks=FAMILY)
    write_package(site, "other-oaks", {"fedkt.models": {"oak": "oaks:OAK"}})
    said = left_out(known_models)
    assert any("'forest'" in each and "fedkt has a model of this name" in each for each in said)
    assert len([each for each in said if "'oak'" in each and "several packages" in each]) == 2
    assert "oak" not in known_models()
    assert type(as_estimator("forest")).__name__ == "RandomForestClassifier"


def test_an_algorithm_may_be_a_class_and_what_lacks_a_half_is_left_out(site):
    entries = {"fedkt.algorithms": {"lone": "lone:Lone", "half": "lone:Half", "solo": "lone:Lone"}}
    write_package(site, "lone", entries, lone=ALGORITHM)
    said = left_out(known_algorithms)
    assert known_algorithm("lone").summary == "Alone, under another name."
    assert any("Half lacks party_step, server_step" in each for each in said)
    assert any("fedkt has an algorithm of this name" in each for each in said)


def test_a_noise_has_a_price_and_means_no_other_flag_than_before(site, tmp_path):
    write_package(site, "calm", {"fedkt.noises": {"steady": "calm:Steady"}}, calm=STEADY)
    assert make_noise("steady", {"sigma": 4.0}).spread == make_noise("gaussian", {"sigma": 4.0}).spread
    assert noise_of_scale()["sigma"] == "gaussian"
    words = ("privacy", "price", "--queries", "10", "--voters", "5", "--classes", "2", "--json", "--noise")
    ours, twin = (json.loads(fedkt(*words, f"{name}:9", cwd=tmp_path).stdout) for name in ("steady", "gaussian"))
    assert ours["epsilon"] == twin["epsilon"]
    words = ("simulate", "digits", "--level", "L1", "--noise", "steady:9", "--queries", "9", "--model", "tree")
    report = json.loads(fedkt(*words, "--algorithm", "fedkt", "--json", cwd=tmp_path).stdout)
    assert any("'steady' is from the package calm 1.0" in note for note in report["notes"])
    assert report["versions"]["calm"] == "1.0"


def test_a_dataset_that_is_none_is_left_out_and_asked_for_in_vain(site):
    write_package(site, "oaks", {"fedkt.datasets": {"wood": "oaks:OAK"}}, oaks=FAMILY)
    assert any("a dataset is a fedkt.data.KnownDataset" in each for each in left_out(known_datasets))
    with pytest.raises(ConfigurationError, match=r"There is no dataset 'wood'.*The dataset 'wood' of the package oaks"):
        load("wood", seed=0)


def test_the_command_line_says_what_is_left_out_on_stderr_and_lists_it(site, tmp_path):
    write_package(site, "oaks", {"fedkt.models": {"oak": "oaks:OAK", "loud": "loud:X"}}, oaks=FAMILY, loud=LOUD)
    words = ("simulate", "digits", "--algorithm", "fedkt", "--model", "oak", "--subsets", "2", "--parties", "2")
    done = fedkt(*words, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["versions"]["oaks"] == "1.0"
    assert "caution: The model 'loud' of the package oaks 1.0 is left out: RuntimeError" in done.stderr
    found = json.loads(fedkt("plug-ins", "--json").stdout)["plug_ins"]
    assert [(each["name"], each["fault"] == "") for each in found] == [("loud", False), ("oak", True)]


def family_and_place(estimator):
    time.sleep(0.2)
    return family_of(estimator).name, os.getpid()


def test_workers_know_the_families_of_plug_ins_too(site, monkeypatch):
    monkeypatch.setattr(loky, "START_UP", 0.0)
    from joblib.externals.loky import get_reusable_executor

    write_package(site, "oaks", {"fedkt.models": {"oak": "oaks:OAK"}}, oaks=FAMILY)
    estimator = as_estimator("oak")
    get_reusable_executor().shutdown(wait=True)  # Workers of another test would not find the package.
    found = list(in_parallel(family_and_place, [estimator] * 20, jobs=2))
    assert {name for name, _ in found} == {"oak"}
    assert len({place for _, place in found}) == 2
    get_reusable_executor().shutdown(wait=True)


@pytest.fixture
def planned(tmp_path):
    """The text of a plan for single trees."""
    public = tmp_path / "public.csv"
    public.write_text("a,b\n" + "".join(f"{i},{i % 3}\n" for i in range(12)))
    plan = make_plan(public, label="y", classes=["no", "yes"], parties=["north", "south"], model="tree")
    return plan.to_toml()


def test_a_plan_with_a_plug_in_that_is_not_installed_says_so_by_its_name(planned, site, tmp_path):
    (tmp_path / "plan.toml").write_text(planned.replace('"tree"', '"oak"'))
    with pytest.raises(PlanError, match=r"no model 'oak'\..*install it yourself if you trust it"):
        read_plan(tmp_path / "plan.toml")
    write_package(site, "oaks", {"fedkt.models": {"oak": "oaks:OAK"}}, oaks=FAMILY)
    with pytest.raises(PlanError):
        read_plan(tmp_path / "plan.toml")  # What is installed is looked for once in a process.


def test_a_plan_is_read_where_its_plug_in_is_installed_and_names_the_package(planned, site, tmp_path):
    write_package(site, "oaks", {"fedkt.models": {"oak": "oaks:OAK"}}, oaks=FAMILY)
    (tmp_path / "plan.toml").write_text(planned.replace('"tree"', '"oak"'))
    assert read_plan(tmp_path / "plan.toml").packages() == {"oaks": "1.0"}


@pytest.mark.parametrize("named", ["oak", "trap", "trap:X", "trap.py:X", "os", "../trap.py"])
def test_what_is_imported_does_not_hang_on_what_a_plan_says(planned, site, tmp_path, named):
    write_package(site, "oaks", {"fedkt.models": {"oak": "oaks:OAK"}}, oaks=FAMILY, trap="X = 1")
    (tmp_path / "trap.py").write_text("raise SystemExit('run')")
    (tmp_path / "plan.toml").write_text(planned.replace('"tree"', f'"{named}"'))
    before = set(sys.modules)
    if named == "oak":
        read_plan(tmp_path / "plan.toml")
    else:
        with pytest.raises(PlanError, match="there is no model"):
            read_plan(tmp_path / "plan.toml")
    ours = {name for name in set(sys.modules) - before if not name.startswith(("sklearn", "scipy", "joblib"))}
    assert ours == {"oaks"}


def test_a_package_that_came_along_in_the_folder_one_works_in_is_not_installed(tmp_path, monkeypatch):
    write_package(tmp_path, "along", {"fedkt.models": {"along": "trap:X"}}, trap="raise SystemExit('run')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    assert "along" in {each.name for each in entry_points(group="fedkt.models")}
    assert "along" not in names("fedkt.models", [])


def test_asking_for_help_and_importing_fedkt_import_no_plug_in(tmp_path):
    write_package(tmp_path, "oaks", {"fedkt.models": {"oak": "oaks:OAK"}}, oaks=FAMILY)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import fedkt, fedkt.cli\n"
        "for words in (['--help'], ['simulate', '--help']):\n"
        "    sys.argv = ['fedkt', *words]\n"
        "    try:\n        fedkt.cli.main()\n    except SystemExit:\n        pass\n"
        "print('oaks' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "oak" in shown.replace("oaks", "")
    assert shown.endswith("\nFalse\n")


def test_a_classifier_by_the_name_of_a_plug_in_is_reported_with_its_package(site):
    write_package(site, "oaks", {"fedkt.models": {"oak": "oaks:OAK"}}, oaks=FAMILY)
    X = np.random.default_rng(0).normal(size=(90, 3))
    model = FedKTClassifier("oak", n_parties=3, random_state=0).fit(X, X[:, 0] > 0)
    assert model.report_.versions["oaks"] == "1.0"
    assert "oaks" not in FedKTClassifier("tree", n_parties=3, random_state=0).fit(X, X[:, 0] > 0).report_.versions
