"""`fedkt evaluate`: is a final model good enough?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedkt.cli import options
from fedkt.cli.file_options import FileOptions
from fedkt.cli.fitting import FittingOptions
from fedkt.cli.panels import with_groups

if TYPE_CHECKING:
    from fedkt.live.evaluation import Evaluation

Final = Annotated[Path, typer.Argument(help="The final.onnx that the server has written.", metavar="FINAL")]
Rows = Annotated[
    Path, typer.Argument(help="Labelled rows that no party has learned from, with the agreed columns.", metavar="ROWS")
]
Bundles = Annotated[
    str | None,
    typer.Option(
        help="The folder with the parties' .fedkt files: each student alone, on the same rows. Not at level L1.",
        metavar="<path>",
    ),
]
Plan = Annotated[Path | None, typer.Option(help="The plan, with which bundles are checked as the server does.")]
Baseline = Annotated[
    Path | None, typer.Option(help="Another final model, such as the last one: the difference, with an interval.")
]
Html = Annotated[Path | None, typer.Option(help="Also write a page with tables and pictures.", metavar="PAGE")]


@with_groups
def evaluate(
    model: Final,
    rows: Rows,
    bundles: Bundles = None,
    plan: Plan = None,
    baseline: Baseline = None,
    html: Html = None,
    server_key: options.ServerKey = None,
    as_json: options.Json = False,
    *,
    file: FileOptions,
    fitting: FittingOptions,
) -> None:
    """Say how good a final model is on labelled rows: what is wrong first, then figures, class by class.

    Accuracy stands beside that of always naming the most frequent class. A bad model is no error: the exit code is 0.

    [bold]Examples[/bold]

      fedkt evaluate result/final.onnx labelled.csv

      fedkt evaluate result/final.onnx labelled.csv --bundles inbox --plan plan.toml

      fedkt evaluate result/final.onnx labelled.csv --baseline last-year.onnx --html quality.html

      fedkt evaluate result/final.onnx labelled.csv --rename Age=age --label-map 1=yes,0=no
    """
    from fedkt.cli.grids import print_below
    from fedkt.cli.output import print_json, stderr
    from fedkt.cli.quality import print_quality
    from fedkt.lab.quality_tables import comparison_grid
    from fedkt.live.evaluation import evaluate_file
    from fedkt.live.final_file import read_final
    from fedkt.live.mailbox import mailbox_at
    from fedkt.plan import read_plan

    signer = None if server_key is None else options.public_key(server_key)
    evaluation = evaluate_file(
        read_final(model, server_key=signer),
        rows,
        baseline=None if baseline is None else read_final(baseline),
        bundles=None if bundles is None else mailbox_at(bundles),
        plan=None if plan is None else read_plan(plan),
        form=file.format(),
        choices=fitting.mapping(),
    )
    if html is not None:
        write_quality_page(html, evaluation, signer)
    for note in evaluation.notes:
        stderr.say(f"note: {note}")
    if as_json:
        print_json({**evaluation.as_dict(), "signed_by": signer, "page": None if html is None else str(html)})
        return
    # A sentence for each of many students would hide the verdict, which names those that are better.
    students = evaluation.comparisons[0 if evaluation.baseline is None else 1 :]
    others = evaluation.comparisons[: len(evaluation.comparisons) - len(students)]
    alarms = evaluation.final.card.alarms
    print_quality(evaluation.quality, verdicts=(*evaluation.verdicts, *alarms), comparisons=others, final=str(model))
    print_below(comparison_grid(students))
    if html is not None:
        stderr.say(f"Written: {html}")


def write_quality_page(path: Path, evaluation: Evaluation, signer: str | None) -> None:
    """Write the page about a final model."""
    from fedkt.lab.quality_page import render_quality_page
    from fedkt.system.files import write_atomically

    card = evaluation.final.card
    facts = [
        ("Model", evaluation.final.model.name),
        ("Signed by", signer or "not checked"),
        ("Labelled rows", f"{evaluation.source} ({evaluation.quality.rows:,})"),
        ("Plan", card.plan[:12]),
        ("Privacy level", card.level),
    ]
    page = render_quality_page(
        f"{card.task}: how good is the model?",
        evaluation.quality,
        comparisons=evaluation.comparisons,
        verdicts=(*evaluation.verdicts, *card.alarms),
        facts=facts,
    )
    write_atomically(path, page.encode())
