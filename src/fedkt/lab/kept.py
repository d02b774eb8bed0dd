"""Students that are kept from run to run: of which algorithms, where, and what a report says about them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fedkt.algorithms import Auto, known_algorithm
from fedkt.errors import ConfigurationError
from fedkt.federation import Outcome, Party
from fedkt.lab.setting import Setting
from fedkt.system.cache import Cache
from fedkt.system.plug_ins import packages_of

FOLDER = "students"
"""In the folder of an unfinished run: what its finished students say."""


def keeps_students(setting: Setting) -> bool:
    """Whether a run trains students of whom nobody asks more than what they say of public rows.

    What a stranger's algorithm does with students nobody knows.
    """
    card = known_algorithm(setting.algorithm)
    own = setting.algorithm_file is None and not packages_of("fedkt.algorithms", setting.algorithm)
    return own and (card.voting is not None or card.name == Auto.name)


def check_cache(cache: Cache) -> None:
    """Refuse a folder that others can write into."""
    if fault := cache.fault():
        raise ConfigurationError(f"{fault} Pass a folder of your own as --cache, that nobody else can write into.")


def with_cache(parties: list[Party], cache: Cache, setting: Setting) -> list[Party]:
    """The parties of a run with the cache, if students are kept of it."""
    if not keeps_students(setting):
        return parties
    check_cache(cache)
    return [replace(party, cache=cache) for party in parties]


def run_cache(folder: Path | None) -> Cache | None:
    """The cache of one unfinished run, in its folder."""
    return None if folder is None else Cache(folder / FOLDER)


def with_spared(outcome: Outcome) -> tuple[Outcome, tuple[str, ...]]:
    """The outcome with the seconds that kept students took when they were trained, and a note about them."""
    spared = [diary.spared for diary in outcome.parties.values()]
    count = sum(each.students for each in spared)
    if not count:
        return outcome, ()
    note = (
        f"{count} {'student' if count == 1 else 'students'} had been trained by an earlier run, and what they say was "
        "kept. The seconds of this run count what their training took then."
    )
    longer = replace(
        outcome,
        seconds=outcome.seconds + sum(each.seconds for each in spared),
        cpu_seconds=outcome.cpu_seconds + sum(each.cpu_seconds for each in spared),
    )
    return longer, (note,)
