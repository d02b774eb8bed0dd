"""`fedkt plan check`: what a plan means."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from fedkt.cli import options


def check_plan(
    plan: Annotated[Path, typer.Argument(help="The plan.toml you were sent.", metavar="PLAN")],
    public: Annotated[Path | None, typer.Option(help="The public file, to be held against the plan.")] = None,
    as_json: options.Json = False,
) -> None:
    """Read a plan and say in words what it means, and which columns a file must have.

    [bold]Examples[/bold]

      fedkt plan check plan.toml

      fedkt plan check plan.toml --public public.csv
    """
    from fedkt.algorithms.chances import label_chances
    from fedkt.cli.output import print_json, stdout
    from fedkt.plan import read_plan
    from fedkt.plan.columns import column_lines, column_values
    from fedkt.plan.text import plan_advice, plan_cautions

    agreed = read_plan(plan)
    if public is not None:
        agreed.columns.encode(agreed.read_public(public))
    if as_json:
        price = agreed.price()
        print_json(
            {
                "digest": agreed.digest,
                "columns": column_values(agreed),
                "public_checked": public is not None,
                "cautions": plan_cautions(agreed),
                "advice": plan_advice(agreed) or None,
                "chances": [] if price is None else [asdict(each) for each in label_chances(price)],
                # A graph is nothing to read.
                "plan": agreed.model_dump(mode="json", by_alias=True, exclude={"features": {"graph"}}),
            }
        )
        return
    stdout.say("\n".join([agreed.explain(), "", *column_lines(agreed)]))
    if public is not None:
        stdout.say(f"\n{public} is the public file of this plan.")
