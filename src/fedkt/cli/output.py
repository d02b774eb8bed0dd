"""How the command line speaks: errors and progress on stderr, results on stdout."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from fedkt.system.files import printable_text


class Screen(Console):
    """A console on which no text speaks to the terminal: much of what is printed comes out of files of strangers."""

    def render_str(self, text: str, **options: Any) -> Text:
        """The text as it is shown: here pass all strings, those in tables too."""
        return super().render_str(printable_text(text), **options)

    def say(self, text: str) -> None:
        """Print a sentence as it is, wrapped by the terminal alone."""
        self.print(text, markup=False, highlight=False, soft_wrap=True)


stdout = Screen()
stderr = Screen(stderr=True)


def complain(message: str, *, code: int = 1) -> NoReturn:
    """Say what was wrong on stderr and leave with an exit code."""
    stderr.print("[bold red]error:[/bold red]", end=" ")
    stderr.say(message)
    sys.exit(code)


def warn(message: str) -> None:
    """Say something on stderr that a user should hear before it runs."""
    stderr.say(f"caution: {message}")


def print_json(value: Any) -> None:
    """Exactly one JSON object on stdout; infinity and NaN, which JSON does not have, become null."""
    text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False)
    # JSON itself escapes only the first 32 characters, not those that move or turn what stands around them.
    print(text if text.isprintable() else json.dumps(plain(value), allow_nan=False), flush=True)


def plain(value: Any) -> Any:
    """The value with every non-finite number replaced by None and every tuple by a list."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


class Bar:
    """A progress bar that is told how many pieces of work are done, and of how many."""

    def __init__(self, progress: Progress, title: str) -> None:
        self._progress = progress
        self._task = progress.add_task(title, total=None)

    def __call__(self, done: int, total: int) -> None:
        self._progress.update(self._task, completed=done, total=total or None)

    def rename(self, title: str) -> None:
        """Show another title, with the bar back at its beginning."""
        self._progress.reset(self._task, description=title, total=None)


@contextmanager
def progress_bar(title: str, *, quiet: bool = False) -> Iterator[Bar]:
    """A bar on stderr while the block runs; it vanishes at the end and is silent where stderr is not a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=stderr, transient=True, disable=quiet or not stderr.is_terminal) as progress:
        yield Bar(progress, title)
