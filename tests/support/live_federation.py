"""A small federation of three hospitals that exchange files, for tests of the live commands."""

import csv
from types import SimpleNamespace

import numpy as np
from sklearn.datasets import load_breast_cancer
from typer.testing import CliRunner

from fedkt.cli import app
from fedkt.errors import FedKTError

NAMES = ("north", "south", "west")
FAMILIES = {"south": "logistic", "west": "naive-bayes"}


def fedkt(*arguments, code=0):
    """Run one command in this process; what it refuses is raised."""
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    if isinstance(result.exception, FedKTError):
        raise result.exception
    assert result.exit_code == code, (result.output, result.exception)
    return SimpleNamespace(out=result.stdout, err=result.stderr)


def write(path, rows, labels=None):
    data = load_breast_cancer()
    names = [name.replace(" ", "_") for name in data.feature_names[:8]]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names if labels is None else [*names, "diagnosis"])
        for place, row in enumerate(rows):
            writer.writerow([*data.data[row, :8], *([] if labels is None else [labels[place]])])


def new_plan(folder, *more, parties=NAMES):
    members = [word for name in parties for word in ("--party", name)]
    own = {name: family for name, family in FAMILIES.items() if name in parties}
    families = [word for name, family in own.items() for word in ("--party-model", f"{name}={family}")]
    return fedkt(
        *("plan", "new", "--public", folder / "public.csv", "--label", "diagnosis", "--classes", "malignant,benign"),
        *("--model", "tree", "-o", folder / "plan.toml", *members, *families, *more),
    )


def party(folder, name, *more, data=None, out=None):
    return fedkt(
        *("party", folder / "plan.toml", "--name", name, "--data", data or folder / f"{name}.csv"),
        *("--public", folder / "public.csv", "-o", out or folder / "inbox", "--work", folder / "work", *more),
    )


def server(folder, *more):
    return fedkt(
        *("server", folder / "plan.toml", "--public", folder / "public.csv", "--bundles", folder / "inbox"),
        *("-o", folder / "result", "--force", *more),
    )


def build(folder):
    """Files of a federation of three hospitals, and its plan."""
    data = load_breast_cancer()
    order = np.random.default_rng(0).permutation(len(data.target))
    labels = np.array(["malignant", "benign"])[data.target]
    write(folder / "public.csv", order[:100])
    write(folder / "test.csv", order[100:200], labels[order[100:200]])
    for place, name in enumerate(NAMES):
        own = order[200 + 60 * place : 260 + 60 * place]
        write(folder / f"{name}.csv", own, labels[own])
    new_plan(folder)
