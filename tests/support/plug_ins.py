"""Packages with plug-ins, installed for one test: no pip, no network, and gone afterwards."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from fedkt.algorithms import ALGORITHMS
from fedkt.data import DATASETS
from fedkt.models.catalogue import MODELS
from fedkt.privacy.mechanisms import NOISES
from fedkt.system import plug_ins

EXAMPLE = Path(__file__).parents[2] / "examples" / "plug-in"


def write_package(
    folder: Path, package: str, entries: dict[str, dict[str, str]], *, version: str = "1.0", **modules: str
) -> None:
    """What an installed package leaves in a folder: its modules, its name and version, and its entry points."""
    about = folder / f"{package.replace('-', '_')}-{version}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    sections = (
        "\n".join([f"[{group}]", *(f"{name} = {place}" for name, place in names.items())])
        for group, names in entries.items()
    )
    (about / "entry_points.txt").write_text("\n\n".join(sections) + "\n")
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)


def write_example(folder: Path) -> None:
    """The example package as `pip install` would leave it, but for the modules, which stay where they are."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    write_package(folder, project["name"], project["entry-points"], version=project["version"])


@pytest.fixture
def site(tmp_path_factory, monkeypatch):
    """A folder that Python finds packages in; catalogues and modules are as before when the test is over."""
    folder = tmp_path_factory.mktemp("site")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(plug_ins, "_loaded", {})
    catalogues = [(each, dict(each)) for each in (ALGORITHMS, DATASETS, MODELS, NOISES)]
    modules = set(sys.modules)
    yield folder
    for catalogue, before in catalogues:
        catalogue.clear()
        catalogue.update(before)
    for name in set(sys.modules) - modules:
        if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
