"""What the workers of a cluster do in tests: they import it from here."""

import os
import signal
from pathlib import Path

import numpy as np


def total(task):
    """A sum that needs the table which all tasks share."""
    table, number = task
    return float(table[number].sum())


def die_once(task):
    """The task itself; whoever does number 3 for the first time is killed over it."""
    folder, program, number = task
    mark = Path(folder, "killed")
    if number == 3 and os.getpid() != program and not mark.exists():
        mark.write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def refuse(task):
    """An error of fedkt's own."""
    from fedkt.errors import DataError

    raise DataError(f"Row {task} is none.")


def where(task):
    """The process that does a task, and what it has of the table."""
    table, number = task
    return os.getpid(), str(getattr(table, "filename", "")), float(np.sum(table)) + number


def nested(task):
    """Which joblib backend is active inside a task, and how much may be done there at the same time."""
    from joblib import effective_n_jobs
    from joblib.parallel import get_active_backend

    return type(get_active_backend()[0]).__name__, effective_n_jobs(-1)
