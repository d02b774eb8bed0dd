"""What a folder of plans has, and the runs that nobody has made yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fedkt.errors import ConfigurationError
from fedkt.lab.series import run_all
from fedkt.lab.setting import Setting, fingerprint
from fedkt.paper import private_curve, private_levels
from fedkt.paper.outcome import Table, known_runs, read_expected, table_of
from fedkt.paper.plans import Plan, out_of_reach, read_plans

PRIVATE = {"private": private_levels, "private-curve": private_curve}
"""The private settings train once and draw much noise: they are no runs of a plan, but are made and kept like them."""


def results_folder(folder: Path, *, quick: bool) -> Path:
    """Where runs are kept; rehearsals are kept apart from results."""
    return folder / "results" / "quick" if quick else folder / "results"


def tables(folder: Path, *, quick: bool = False) -> list[Table]:
    """The table of every plan, from the runs made so far."""
    plans = read_plans(folder)
    expected, known = read_expected(folder), known_runs(results_folder(folder, quick=quick))
    return [table_of(plan, known, expected, quick=quick) for plan in plans.values()]


def overview(folder: Path, *, quick: bool = False) -> list[dict[str, Any]]:
    """Name, title, place in the paper, runs, runs made and hours of everything there is."""
    found = [
        {
            "name": each.plan.name,
            "title": each.plan.title,
            "where": each.plan.where,
            "runs": each.planned,
            "made": len(each.reports),
            "hours": each.hours,
        }
        for each in tables(folder, quick=quick)
    ]
    for name, private in PRIVATE.items():
        made = private.made(results_folder(folder, quick=quick))
        found.append(
            {
                "name": name,
                "title": private.TITLE,
                "where": private.WHERE,
                "runs": len(private.planned(folder, quick=quick)),
                "made": len(made),
                "hours": sum(each["cpu_seconds"] for each in made.values()) / 3600,
            }
        )
    return found


def chosen_names(folder: Path, asked: Sequence[str]) -> list[str]:
    """The names that were asked for, or a refusal that says which there are."""
    there = [*read_plans(folder), *PRIVATE]
    unknown = [name for name in asked if name not in (*there, "all")]
    if unknown:
        raise ConfigurationError(f"There is no {unknown[0]!r}. Choose from: all, {', '.join(there)}.")
    return there if "all" in asked else list(dict.fromkeys(asked))


def make_missing(
    folder: Path,
    name: str,
    *,
    seeds: int | None = None,
    quick: bool = False,
    data_dir: Path | None = None,
    on_start: Callable[[str], None] | None = None,
    **options: Any,
) -> dict[str, str]:
    """Run what is in no file of the folder; what cannot be had is left out and given back with the reason."""
    results = results_folder(folder, quick=quick)
    if name in PRIVATE:
        left_out: dict[str, str] = PRIVATE[name].make_missing_groups(
            folder, results, seeds=seeds, quick=quick, data_dir=data_dir, on_start=on_start
        )
        return left_out
    return make_runs(read_plans(folder)[name], results, seeds, quick, data_dir, on_start, **options)


def make_runs(
    plan: Plan,
    results: Path,
    seeds: int | None,
    quick: bool,
    data_dir: Path | None,
    on_start: Callable[[str], None] | None,
    **options: Any,
) -> dict[str, str]:
    """The missing runs of one plan."""
    known = known_runs(results)
    wanted = [each.setting for each in plan.runs(seeds=seeds, quick=quick)]
    missing = [setting for setting in wanted if fingerprint(setting) not in known]
    left_out = out_of_reach({setting.dataset for setting in missing}, data_dir)
    possible = [setting for setting in missing if setting.dataset not in left_out]

    def say(number: int, setting: Setting) -> None:
        if on_start is not None:
            on_start(f"{plan.name}, run {number + 1} of {len(possible)}: {in_words(setting)}")

    # One run that cannot be had does not keep the others waiting.
    def leave_out(setting: Setting, reason: ConfigurationError) -> None:
        left_out[in_words(setting)] = str(reason)

    def say_wait(runs: int) -> None:
        if on_start is not None:
            on_start(f"{plan.name}, waiting for runs of another process: {runs}")

    run_all(
        possible,
        results=results / f"{plan.name}.jsonl",
        on_start=say,
        on_wait=say_wait,
        on_refused=leave_out,
        data_dir=data_dir,
        measure_bytes=plan.bytes,
        **options,
    )
    return left_out


def in_words(setting: Setting) -> str:
    """Which run this is."""
    return f"{setting.algorithm} on {setting.dataset}, seed {setting.seed}"
