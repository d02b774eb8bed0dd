"""Texts that are on every machine that runs fedkt: entries of SciPy's manual, and which part of SciPy each is from.

Nothing is downloaded and nothing is kept in the repository: the entries are the docstrings of the installed SciPy (BSD
licence). Of each the part before its list of parameters is used, without the names of the parts, which would tell.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

AREAS = {
    "fitting": ("interpolate", "optimize"),
    "geometry": ("cluster.hierarchy", "cluster.vq", "spatial", "spatial.distance", "spatial.transform"),
    "matrices": ("linalg", "sparse", "sparse.csgraph", "sparse.linalg"),
    "signals": ("fft", "ndimage", "signal", "signal.windows"),
    "special functions": ("special",),
    "statistics": ("stats", "stats.contingency", "stats.mstats", "stats.qmc", "stats.sampling"),
}
"""The classes, and SciPy's modules of each."""
SECTION = re.compile(r"\n *-{3,} *(\n|$)")
"""The line below the title of a part, such as Parameters."""
NAMES = re.compile(
    r"scipy|interpolat\w*|optimi[sz]\w*|cluster\w*|spatial|linalg|sparse|ndimage|signals?|special|statistic\w*|stats",
    re.IGNORECASE,
)
FEWEST_WORDS = 8


def entries() -> tuple[NDArray[Any], NDArray[np.str_]]:
    """The texts and their classes, in alphabetical order of the texts; what stands in two areas is in none."""
    found: dict[str, set[str]] = {}
    for area, modules in AREAS.items():
        for module in modules:
            for text in texts_in(import_module(f"scipy.{module}")):
                found.setdefault(text, set()).add(area)
    own = {text: areas for text, areas in sorted(found.items()) if len(areas) == 1}
    return np.array(list(own), dtype=object), np.array([min(areas) for areas in own.values()])


def texts_in(module: Any) -> Iterator[str]:
    """What the manual says of a module's functions, classes and their methods."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        members = [getattr(module, name) for name in sorted(dir(module)) if not name.startswith("_")]
    for member in members:
        own = [vars(member)[name] for name in sorted(vars(member)) if name[0] != "_"] if inspect.isclass(member) else []
        for each in [member, *own]:
            text = description(getattr(each, "__doc__", None))
            if callable(each) and len(text.split()) >= FEWEST_WORDS:
                yield text


def description(doc: Any) -> str:
    """A docstring up to its first list, without the line that repeats the arguments, and without what would tell."""
    text = inspect.cleandoc(doc) if isinstance(doc, str) else ""
    first = SECTION.search(text)
    if first is not None:
        text = text[: first.start()].rpartition("\n")[0]
    lines = [line for line in text.splitlines() if not re.match(r"\w+\(.*\)", line)]
    return " ".join(NAMES.sub("", " ".join(lines)).split())
