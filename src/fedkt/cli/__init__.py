"""The `fedkt` command: one verb a file, no logic. Heavy libraries are imported when a verb runs, not before."""

from __future__ import annotations

import re
import signal
import sys
import warnings
from collections.abc import Callable
from typing import NoReturn, TextIO

import typer

from fedkt.cli import (
    bench,
    compare,
    datasets,
    demo,
    doctor,
    evaluate,
    inspect,
    keys,
    party,
    plan,
    plug_ins,
    predict,
    privacy,
    public,
    server,
    simulate,
)
from fedkt.cli.output import complain, print_json, warn
from fedkt.cli.panels import name_catalogues
from fedkt.errors import ConfigurationError, FedKTError
from fedkt.system.plug_ins import PlugInWarning

app = typer.Typer(
    name="fedkt",
    help="One-shot federated learning across organisations: any classifier, one message per party.",
    epilog="Start with:  fedkt demo",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

TEMPORARY = re.compile(r"(.*/)?\.([^/]+)\.[^/.]+\.part")
TRY = "Try it on this machine"
LIVE = "Run it between organisations, with files only"
PROMISE = "Know what is promised"

app.command(rich_help_panel=TRY)(demo.demo)
app.command(rich_help_panel=TRY)(simulate.simulate)
app.command(rich_help_panel=TRY)(compare.compare)
app.command(rich_help_panel=TRY)(bench.bench)
app.command(rich_help_panel=TRY)(datasets.datasets)
app.command(rich_help_panel=TRY)(plug_ins.plug_ins)
app.add_typer(public.app, name="public", rich_help_panel=LIVE)
app.add_typer(plan.app, name="plan", rich_help_panel=LIVE)
app.add_typer(keys.app, name="keys", rich_help_panel=LIVE)
app.command(rich_help_panel=LIVE)(party.party)
app.command(rich_help_panel=LIVE)(server.server)
app.command(rich_help_panel=LIVE)(inspect.inspect)
app.command(rich_help_panel=LIVE)(predict.predict)
app.command(rich_help_panel=LIVE)(evaluate.evaluate)
app.add_typer(privacy.app, name="privacy", rich_help_panel=PROMISE)
app.command(rich_help_panel=PROMISE)(doctor.doctor)
name_catalogues(app)


@app.command(hidden=True, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def paper() -> None:
    """Where this verb went."""
    raise ConfigurationError("The paper's tables are made in a clone of the repository: python -m paper list")


@app.callback(invoke_without_command=True)
def root(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
    """One-shot federated learning across organisations: any classifier, one message per party."""
    if version:
        from fedkt import __version__

        print(f"fedkt {__version__}")
        raise typer.Exit


class Stopped(BaseException):
    """Ctrl-C was pressed, or the process was asked to end.

    Our own, because the argument parser swallows KeyboardInterrupt in silence. No Exception, or what wraps the
    errors of an arbitrary classifier would take it for one of them.
    """


def stop(number: int, frame: object) -> None:
    """What Ctrl-C and SIGTERM do: everything open is closed and cleared on the way out."""
    raise Stopped(number)


def main(command: Callable[[], object] = app) -> None:
    """Run the command line; anything fedkt refuses becomes one sentence on stderr and exit code 1.

    With --json the sentence is one object on stdout as well, in the place of the result.
    """
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    others, warnings.showwarning = warnings.showwarning, show_warning
    try:
        command()
    except FedKTError as error:
        give_up(str(error), kind=type(error).__name__)
    except Stopped as stopped:
        give_up("stopped; nothing half-written was left behind", kind="Stopped", code=128 + stopped.args[0])
    except BrokenPipeError:
        sys.exit(0)
    except OSError as error:
        words = f"{error.strerror or error}: {final_path(str(error.filename))}" if error.filename else str(error)
        give_up(words, kind="OSError")
    finally:
        warnings.showwarning = others


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A plug-in that is left out as a sentence; any other warning as Python has it."""
    if issubclass(category, PlugInWarning):
        warn(str(message))
    else:
        print(warnings.formatwarning(message, category, filename, lineno, line), end="", file=file or sys.stderr)


def give_up(message: str, *, kind: str, code: int = 1) -> NoReturn:
    """Leave with the code and the reason, for a script as an object."""
    if "--json" in sys.argv:
        print_json({"error": message, "kind": kind, "exit_code": code})
    complain(message, code=code)


def final_path(path: str) -> str:
    """The file that was to be written, where the one that failed is its temporary name."""
    match = TEMPORARY.fullmatch(path)
    return path if match is None else f"{match[1] or ''}{match[2]}"
