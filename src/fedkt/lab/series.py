"""Many runs, none of them made twice, by as many processes as share a results file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from fedkt.errors import ConfigurationError, UnsuitedModel
from fedkt.lab.kept import run_cache
from fedkt.lab.results import append_line, lock_of, stored
from fedkt.lab.rounds import folder_for, forget
from fedkt.lab.runner import run
from fedkt.lab.setting import Setting, fingerprint, setting_values
from fedkt.report import Report
from fedkt.system.cache import Cache
from fedkt.system.locks import if_free

PAUSE = 0.5
"""Seconds between two looks at runs that other processes are making."""


def run_all(
    settings: Sequence[Setting],
    *,
    results: Path | None = None,
    cache: Cache | None = None,
    resume: bool = False,
    on_start: Callable[[int, Setting], None] | None = None,
    on_wait: Callable[[int], None] | None = None,
    on_unsuited: Callable[[Setting, UnsuitedModel], None] | None = None,
    on_refused: Callable[[Setting, ConfigurationError], None] | None = None,
    **options: Any,
) -> list[Report]:
    """A report per setting. With a results file each one is kept as soon as it is there, and never run again.

    Students are trained once for all runs that share a `cache`. With `resume` a run without one keeps its students
    beside the results file until it is through, and goes on with them if it is killed.

    Processes that share the file share the work: what another one is making is left to it, and looked for when all else
    is done; `on_wait` then hears how many runs that are.

    A method that cannot take the model is passed to `on_unsuited` and left out, and any setting that cannot be run to
    `on_refused`; without them, it is refused.
    """
    reports = stored(results)
    full_settings = [setting.with_defaults() for setting in settings]

    def refuse(full: Setting, reason: ConfigurationError) -> None:
        if on_unsuited is not None and isinstance(reason, UnsuitedModel):
            on_unsuited(full, reason)
        elif on_refused is not None:
            on_refused(full, reason)
        else:
            raise reason

    pending = list(enumerate(full_settings))
    while pending:
        elsewhere = []
        for number, full in pending:
            key = fingerprint(full)
            folder = folder_for(results, key)
            missing = partial(needs_run, key, full, reports, options.get("measure_bytes", False))
            # A kill between a result and the end of its rounds leaves these behind.
            if not missing() and (folder is None or not folder.exists()):
                continue
            with run_lock(results, folder) as ours:
                if not ours:
                    elsewhere.append((number, full))
                    continue
                # Another process may have made it since the file was read.
                reports.update(stored(results))
                if missing():
                    if on_start is not None:
                        on_start(number, full)
                    try:
                        students = run_cache(folder) if cache is None and resume else cache
                        reports[key] = run_and_keep(full, results, folder, cache=students, **options)
                    except ConfigurationError as reason:
                        forget(folder)
                        refuse(full, reason)
                if key in reports:
                    forget(folder)
        if len(elsewhere) == len(pending):
            if on_wait is not None:
                on_wait(len(pending))
            time.sleep(PAUSE)
        pending = elsewhere
    return [reports[key] for key in map(fingerprint, full_settings) if key in reports]


def run_and_keep(full: Setting, results: Path | None, folder: Path | None, **options: Any) -> Report:
    """The report of a run, which is in the results file by then."""
    report = run(full, round_folder=folder, **options)
    if results is not None:
        append_line(results, {"setting": setting_values(full), "report": report.as_dict()})
    return report


def needs_run(key: str, full: Setting, reports: dict[str, Report], measure_bytes: bool) -> bool:
    """Whether this run is yet to be made, or to be made again because nobody measured what it sends."""
    report = reports.get(key)
    return report is None or (measure_bytes and report.bytes_sent is None and full.algorithm.startswith("fedkt"))


@contextmanager
def run_lock(results: Path | None, folder: Path | None) -> Iterator[bool]:
    """Whether no other process makes the run that keeps its rounds in this folder, nor will inside the block."""
    if results is None or folder is None:
        yield True
        return
    with if_free(lock_of(results, folder.name)) as ours:
        yield ours
