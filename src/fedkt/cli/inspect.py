"""`fedkt inspect`: what is in a file, without building or running any of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fedkt.cli import options

FEW_ENTRIES = 4
"""A table of no more entries stands in one line."""


def inspect(
    file: Annotated[Path, typer.Argument(help="A party's .fedkt file, or a final.onnx.", metavar="FILE")],
    plan: Annotated[Path | None, typer.Option(help="The plan, to check the file and its signature against.")] = None,
    server_key: options.ServerKey = None,
    as_json: options.Json = False,
) -> None:
    """Show what a bundle or a final model holds. Nothing in it is built or run.

    With a plan the exit code is 1 for a file that the plan's server would refuse.

    [bold]Examples[/bold]

      fedkt inspect outbox/north.fedkt

      fedkt inspect inbox/north.fedkt --plan plan.toml

      fedkt inspect result/final.onnx --server-key server.pub --json
    """
    from fedkt.cli.output import print_json
    from fedkt.live.inspection import describe_file
    from fedkt.live.mailbox import file_at
    from fedkt.plan import read_plan

    signer = None if server_key is None else options.public_key(server_key)
    agreed = None if plan is None else read_plan(plan)
    facts = describe_file(*file_at(file, own=True), agreed, server_key=signer)
    if as_json:
        print_json(facts)
    else:
        print_facts(facts)
    if not facts.get("accepted", True):
        raise typer.Exit(1)


def print_facts(facts: dict[str, Any]) -> None:
    """What a file holds, a line for each thing."""
    from fedkt.cli.output import stdout

    for key, value in facts.items():
        if key not in ("models", "arrays", "accepted", "model_card") and value != []:
            for line in fact_lines(key, value, 12):
                stdout.say(line)
    for part in [*facts["models"], *facts.get("arrays", [])]:
        stdout.print(f"{part['name']}", markup=False, highlight=False)
        for key, value in part.items():
            if key != "name":
                for line in fact_lines(key, value, 10):
                    stdout.say(f"  {line}")
    if "model_card" in facts:
        stdout.say("model card, as the file has it")
        # A mark before each line: a card of strangers could else look like one of ours.
        for line in facts["model_card"].splitlines():
            stdout.say(f"  | {line}".rstrip())


def fact_lines(key: str, value: Any, width: int) -> list[str]:
    """A key and its value; a table of many entries has a line for each that says something."""
    if not isinstance(value, dict) or len(value) <= FEW_ENTRIES:
        return [f"{key:<{width}} {value_words(value)}"]
    return [key, *(f"  {name:<18} {value_words(each)}" for name, each in value.items() if each not in (None, False))]


def value_words(value: Any) -> str:
    """A value for a person."""
    if isinstance(value, dict):
        text = ", ".join(f"{key} {value_words(each)}" for key, each in value.items())
    elif isinstance(value, (list, tuple)):
        text = (", ".join(map(str, value[:20])) or "()") + (f", … ({len(value)} in all)" if len(value) > 20 else "")
    else:
        text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return text
