"""`fedkt doctor`: what this machine enforces around a received model."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedkt.cli import options

if TYPE_CHECKING:
    from fedkt.models.wall_trial import Trial

Acts = Annotated[
    bool, typer.Option("--acts", help="Try every act without walls, with each wall alone, and with all of them.")
]


def doctor(acts: Acts = False, as_json: options.Json = False) -> None:
    """Say what this machine enforces around a model that somebody else made, by trying to break out.

    A child process like the one that runs received models tries acts that it should not be able to do: to files made
    for that, to the network, to this process. Nothing is harmed where they succeed. It ends with an error only if no
    model can be run.

    [bold]Examples[/bold]

      fedkt doctor

      fedkt doctor --acts --json
    """
    from fedkt.cli.output import complain, print_json, stdout
    from fedkt.models.wall_trial import a_model_runs

    trials = run_trials(acts)
    fault = a_model_runs()
    if as_json:
        print_json({"model_runs": not fault, "fault": fault or None, **as_values(trials)})
    else:
        for line in in_words(trials):
            stdout.say(line)
    if fault:
        complain(f"A received model cannot be run on this machine: {fault}")


def run_trials(every: bool) -> dict[str, Trial]:
    """The trials by the walls that were wanted; none on a system that has no walls."""
    import sys

    from fedkt.models.wall_trial import each_wall, try_acts

    if sys.platform != "linux":
        return {}
    return each_wall() if every else {"all": try_acts()}


def as_values(trials: dict[str, Trial]) -> dict[str, Any]:
    """The trials as plain JSON values."""
    from fedkt.models.wall_trial import ALL

    if not trials:
        return {"walls": {}, "possible": None, "acts": {}}
    together = trials["all"]
    return {
        "walls": {name: name in together.walls for name in ALL},
        "possible": list(together.possible),
        "acts": {name: trial.acts for name, trial in trials.items()},
    }


def in_words(trials: dict[str, Trial]) -> list[str]:
    """The trials as lines for a terminal."""
    from fedkt.models.wall_trial import ALL, HIDDEN

    if not trials:
        return [
            "This system has no walls that fedkt knows: received models run in a process of their own, with the limits",
            "that there are (SECURITY.md). Run a server for strangers on Linux.",
        ]
    together = trials["all"]
    lines = ["Around a received model stand on this machine:"]
    lines += [f"  {name:<15} {'yes' if name in together.walls else 'NO: this system does not have it'}" for name in ALL]
    possible = together.possible
    lines.append(
        f"All {len(together.acts)} acts that were tried from inside were refused."
        if not possible
        else f"POSSIBLE from inside: {', '.join(possible)}."
    )
    if len(trials) > 1:
        lines += ["", "Possible (x) or refused (.), by the walls that stood:", ""]
        lines += table(trials)
        if os.geteuid() == 0:
            lines += ["", f"As root the wall '{HIDDEN}' counts only together with 'capabilities'."]
    return lines


def table(trials: dict[str, Trial]) -> list[str]:
    """A line for each act, a column for each choice of walls."""
    names = list(trials)
    widths = [len(name) for name in names]
    lines = [f"{'':<33}{'  '.join(names)}"]
    for act in trials["all"].acts:
        marks = ["x" if trials[name].acts[act] == "possible" else "." for name in names]
        cells = "  ".join(mark.center(width) for mark, width in zip(marks, widths, strict=True))
        lines.append(f"{act:<33}{cells}".rstrip())
    return lines
