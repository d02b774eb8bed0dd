"""Plug-ins: entries of the catalogues that installed packages bring, found by their entry points.

A package is trusted by whoever installs it, as by Python itself. A catalogue loads all of its plug-ins when it is first
looked into, whatever is looked for: no name in a received file decides what is imported, and nothing is ever fetched.
"""

from __future__ import annotations

import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Entry = TypeVar("Entry")
KINDS = {
    "fedkt.algorithms": "algorithm",
    "fedkt.datasets": "dataset",
    "fedkt.models": "model",
    "fedkt.noises": "noise",
}
"""What the entries of each group of entry points are."""
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class PlugInWarning(UserWarning):
    """A plug-in that is left out."""


@dataclass(frozen=True)
class PlugIn:
    """An entry that a package says it brings."""

    group: str
    name: str
    package: str
    version: str
    place: str
    """Where it stands: module:name."""
    fault: str = ""
    """Why it is left out; empty where it works, or where nobody has tried yet."""

    @property
    def kind(self) -> str:
        """What it is, in a word."""
        return KINDS[self.group]


_loaded: dict[str, tuple[PlugIn, ...]] = {}
"""The plug-ins of each group that has been looked into, with what came of them."""


def installed(group: str) -> list[EntryPoint]:
    """What packages say they bring, by name; nothing is imported.

    What lies in the folder one works in is not installed, though Python may look there: it may have come with a plan.
    """
    from importlib.metadata import entry_points

    found = (each for each in entry_points(group=group) if not _lies_here(each))
    return sorted(found, key=lambda each: (each.name, _package(each)))


def names(group: str, built_in: Iterable[str]) -> list[str]:
    """The names of a catalogue with those of its plug-ins, for help texts: nothing is imported."""
    return list(dict.fromkeys([*built_in, *(each.name for each in installed(group))]))


def add_plug_ins(catalogue: dict[str, Entry], group: str, read: Callable[[Any, str], Entry]) -> dict[str, Entry]:
    """The catalogue, with the plug-ins of its group in it from the first time on.

    `read` makes an entry of what a plug-in holds under a name, or raises in words. What cannot be used is left out with
    a warning: it must not keep anybody from all else.
    """
    if group not in _loaded:
        # Whoever looks while plug-ins are imported finds what is there by then.
        _loaded[group] = ()
        found = installed(group)
        twice = {name for name, count in Counter(each.name for each in found).items() if count > 1}
        _loaded[group] = tuple(_add(each, catalogue, group, read, each.name in twice) for each in found)
    return catalogue


def _add(
    point: EntryPoint, catalogue: dict[str, Entry], group: str, read: Callable[[Any, str], Entry], twice: bool
) -> PlugIn:
    """One plug-in put into the catalogue, or left out."""
    fault = ""
    if not NAME.fullmatch(point.name):
        fault = "a name has small letters, digits, dots, - and _, and at most 64 of them"
    elif point.name in catalogue:
        fault = f"fedkt has {_article(KINDS[group])} of this name, which nobody may take the place of"
    elif twice:
        fault = "several packages bring one of this name; uninstall all but one"
    else:
        try:
            catalogue[point.name] = read(point.load(), point.name)
        # A stranger's module may fail in any way, and some leave by sys.exit.
        except (Exception, SystemExit) as reason:
            fault = f"{type(reason).__name__}: {reason}" if str(reason) else type(reason).__name__
    plug_in = PlugIn(group, point.name, _package(point), _version(point), point.value, " ".join(fault.split()))
    if fault and not _in_worker():
        warnings.warn(in_words(plug_in), PlugInWarning, stacklevel=4)
    return plug_in


def _in_worker() -> bool:
    """Whether another process started this one to work for it: it has read the catalogues and said what there is."""
    from multiprocessing import parent_process

    return parent_process() is not None


def in_words(plug_in: PlugIn) -> str:
    """A plug-in that is left out, and why."""
    return (
        f"The {plug_in.kind} {plug_in.name!r} of the package {plug_in.package} {plug_in.version} is left out: "
        f"{plug_in.fault.rstrip('.')}."
    )


def loaded(group: str) -> tuple[PlugIn, ...]:
    """The plug-ins of a group that was looked into, with what came of them."""
    return _loaded.get(group, ())


def why_left_out(group: str, name: str) -> str:
    """A sentence more for whoever asks for a plug-in that is left out; empty for any other name."""
    return "".join(f" {in_words(each)}" for each in loaded(group) if each.name == name and each.fault)


def packages_of(group: str, *used: object) -> dict[str, str]:
    """The versions of the packages that bring the entries of these names, by name; what is built in comes from none."""
    return {each.package: each.version for each in loaded(group) if each.name in used and not each.fault}


def _lies_here(point: EntryPoint) -> bool:
    return point.dist is not None and os.path.realpath(str(point.dist.locate_file(""))) == os.path.realpath(".")


def _package(point: EntryPoint) -> str:
    return "" if point.dist is None else point.dist.name


def _version(point: EntryPoint) -> str:
    return "" if point.dist is None else point.dist.version


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
