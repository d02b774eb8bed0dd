"""What a folder of experiments has, and the runs that nobody has made yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fedkt.errors import ConfigurationError
from fedkt.lab.series import run_all
from fedkt.lab.setting import Setting, fingerprint
from paper.experiment import Experiment, out_of_reach, read_experiments
from paper.outcome import ResultTable, finished_runs, read_expected, table_of
from paper.private_curve import CURVE
from paper.private_levels import LEVELS
from paper.private_study import finished_groups, group_runs, make_missing_groups
from paper.workplace import Workplace

STUDIES = {study.name: study for study in (LEVELS, CURVE)}


def result_tables(place: Workplace) -> list[ResultTable]:
    """The table of every experiment, from the runs made so far."""
    experiments = read_experiments(place.folder)
    expected, reports = read_expected(place.folder), finished_runs(place.results)
    return [table_of(experiment, reports, expected, quick=place.quick) for experiment in experiments.values()]


def overview(place: Workplace) -> list[dict[str, Any]]:
    """Name, title, place in the paper, runs, runs made and hours of everything there is."""
    entries = [
        {
            "name": each.experiment.name,
            "title": each.experiment.title,
            "where": each.experiment.where,
            "runs": each.planned,
            "made": len(each.reports),
            "hours": each.hours,
        }
        for each in result_tables(place)
    ]
    for study in STUDIES.values():
        finished = finished_groups(study, place.results)
        entries.append(
            {
                "name": study.name,
                "title": study.title,
                "where": study.where,
                "runs": len(group_runs(study, place)),
                "made": len(finished),
                "hours": sum(each["cpu_seconds"] for each in finished.values()) / 3600,
            }
        )
    return entries


def requested_names(folder: Path, requests: Sequence[str]) -> list[str]:
    """The names that were asked for, or a refusal that says which there are."""
    names = [*read_experiments(folder), *STUDIES]
    unknown = [name for name in requests if name not in (*names, "all")]
    if unknown:
        raise ConfigurationError(f"There is no {unknown[0]!r}. Choose from: all, {', '.join(names)}.")
    return names if "all" in requests else list(dict.fromkeys(requests))


def make_missing(
    place: Workplace,
    name: str,
    *,
    seeds: int | None = None,
    on_start: Callable[[str], None] | None = None,
    **options: Any,
) -> dict[str, str]:
    """Run what is in no file of the folder; what cannot be had is left out and given back with the reason."""
    if name in STUDIES:
        return make_missing_groups(STUDIES[name], place, seeds=seeds, on_start=on_start)
    return make_missing_runs(read_experiments(place.folder)[name], place, seeds, on_start, **options)


def make_missing_runs(
    experiment: Experiment,
    place: Workplace,
    seeds: int | None,
    on_start: Callable[[str], None] | None,
    **options: Any,
) -> dict[str, str]:
    """The missing runs of one experiment."""
    finished = finished_runs(place.results)
    settings = [each.setting for each in experiment.runs(seeds=seeds, quick=place.quick)]
    missing = [setting for setting in settings if fingerprint(setting) not in finished]
    left_out = out_of_reach({setting.dataset for setting in missing}, place.data_dir)
    possible = [setting for setting in missing if setting.dataset not in left_out]

    def say(number: int, setting: Setting) -> None:
        if on_start is not None:
            on_start(f"{experiment.name}, run {number + 1} of {len(possible)}: {run_in_words(setting)}")

    # One run that cannot be had does not keep the others waiting.
    def leave_out(setting: Setting, reason: ConfigurationError) -> None:
        left_out[run_in_words(setting)] = str(reason)

    def say_wait(runs: int) -> None:
        if on_start is not None:
            on_start(f"{experiment.name}, waiting for runs of another process: {runs}")

    run_all(
        possible,
        results=place.results / f"{experiment.name}.jsonl",
        on_start=say,
        on_wait=say_wait,
        on_refused=leave_out,
        data_dir=place.data_dir,
        measure_bytes=experiment.bytes,
        **options,
    )
    return left_out


def run_in_words(setting: Setting) -> str:
    """Which run this is."""
    return f"{setting.algorithm} on {setting.dataset}, seed {setting.seed}"
