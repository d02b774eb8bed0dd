"""`fedkt server`: from the parties' files to the final model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedkt.cli import options
from fedkt.cli.file_options import FileOptions
from fedkt.cli.fitting import FittingOptions
from fedkt.cli.panels import with_groups
from fedkt.cli.party import Plan, Public
from fedkt.errors import ConfigurationError

if TYPE_CHECKING:
    from fedkt.data.format import Format
    from fedkt.lab.grid import Grid
    from fedkt.live.result import ServerResult


COLOURS = {"counted": "green", "copy, counted once": "dim", "missing": "yellow", "refused": "red"}
"""By status; any other one is a refusal."""

Bundles = Annotated[str, typer.Option(help="The folder with the parties' .fedkt files.", metavar="<path>")]
Output = Annotated[
    Path, typer.Option("--output", "-o", help="The folder to write final.onnx, model-card.md and report.json to.")
]
MinParties = Annotated[
    int | None, typer.Option(help="Go on with this many parties. Default: the plan's number, else all of them.")
]
Wait = Annotated[float, typer.Option(min=0, help="Seconds to wait for parties that have not sent yet.")]
Test = Annotated[Path | None, typer.Option(help="Labelled rows of your own, to measure the result on.")]
Ledger = Annotated[
    Path | None,
    typer.Option(
        help="At level L1: the file in which noisy votes are written down. Default: one for these parties, beside the "
        "plan."
    ),
]
Key = Annotated[
    Path | None, typer.Option(help="The server's private key, to sign final.onnx with (see `fedkt keys new`).")
]
Memory = Annotated[
    float | None, typer.Option(help="Gigabytes that all parties' students may take, shared evenly. Default: 4.")
]
CpuHours = Annotated[
    float | None,
    typer.Option(help="CPU hours that running all parties' students may take, shared evenly. Default: 4."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace the final model of an earlier run in the same folder.")]


@with_groups
def server(
    plan: Plan,
    public: Public,
    bundles: Bundles,
    output: Output = Path("result"),
    min_parties: MinParties = None,
    wait: Wait = 0.0,
    test: Test = None,
    ledger: Ledger = None,
    key: Key = None,
    memory: Memory = None,
    cpu_hours: CpuHours = None,
    device: options.Device = None,
    jobs: options.Jobs = None,
    force: Force = False,
    as_json: options.Json = False,
    *,
    file: FileOptions,
    fitting: FittingOptions,
) -> None:
    """Let the parties' students vote on the public rows and train the final model.

    A file that is refused is named with the reason and the others go on. How the file is written is about that of
    --test.

    [bold]Examples[/bold]

      fedkt server plan.toml --public public.csv --bundles inbox

      fedkt server plan.toml --public public.csv --bundles inbox --wait 3600 --min-parties 3 --test test.csv

      fedkt server plan.toml --public public.csv --bundles inbox --key server.key

      fedkt server plan.toml --public public.csv --bundles inbox --test test.csv --rename Age=age --label-map 1=yes,0=no
    """
    from fedkt.cli.output import progress_bar
    from fedkt.live.keys import read_key
    from fedkt.live.mailbox import mailbox_at
    from fedkt.live.noise_file import default_ledger
    from fedkt.live.server import run_server
    from fedkt.models.onnx_rules import Limits
    from fedkt.plan import read_plan

    limits = Limits().allowing(
        gigabytes=options.above_zero(memory, "--memory"), cpu_hours=options.above_zero(cpu_hours, "--cpu-hours")
    )
    agreed = read_plan(plan)
    if ledger is None and agreed.level == "L1":
        ledger = default_ledger(agreed, plan)
    signing = None if key is None else read_key(key)
    with progress_bar("bundles", quiet=as_json) as bar:
        result = run_server(
            agreed,
            public=public,
            inbox=mailbox_at(bundles),
            result=output,
            min_parties=min_parties,
            wait=wait,
            test=test,
            test_form=test_format(test, file),
            choices=fitting.mapping(),
            ledger=ledger,
            key=signing,
            limits=limits,
            replace_result=force,
            jobs=options.cores(jobs),
            command=options.this_command(),
            tell=bar,
        )
    print_result(result, as_json=as_json)


def test_format(test: Path | None, file: FileOptions) -> Format:
    """How the test rows are written; refused where there are none."""
    form = file.format()
    if test is None and form.given():
        raise ConfigurationError("How a file is written is about --test, and there is none. Leave it out.")
    return form


def print_result(result: ServerResult, *, as_json: bool) -> None:
    """What must not be overlooked, the parties in a table, then what came out; what is stored nowhere on stderr."""
    from fedkt.cli.grids import print_grid
    from fedkt.cli.output import print_json, stderr, stdout
    from fedkt.cli.quality import print_advice, print_verdict
    from fedkt.quality import Quality
    from fedkt.report import attention_of

    for detail in result.details:
        stderr.say(f"not stored: {detail}")
    loud = attention_of(result.report)
    if as_json:
        for sentence in loud:
            stderr.say(f"attention: {sentence}")
        print_json(result.as_dict())
        return
    for sentence in loud:
        print_verdict(sentence)
    if result.report.quality is not None:
        print_advice(Quality.from_dict(result.report.quality), str(result.final))
    print_grid(party_grid(result), colours=COLOURS)
    for line in result_lines(result):
        stdout.say(line)


def party_grid(result: ServerResult) -> Grid:
    """What came, and from whom."""
    from fedkt.lab.grid import Grid, GridCell

    report = result.report
    lines: list[list[str | GridCell]] = []
    for each in result.arrivals:
        alone = report.party_accuracy.get(each.party or "") if not each.reason else None
        lines.append(
            [
                each.party or "?",
                each.file,
                GridCell(each.status, mark=each.status if each.status in COLOURS else "refused"),
                "–" if each.bundle is None else str(len(each.bundle.models)),
                # At L1 the size of a party's students is nobody else's business: this table may be passed on.
                "–" if report.level == "L1" else f"{each.bytes:,}",
                "–" if alone is None else f"{100 * alone:.2f} %",
            ]
        )
    for name in result.missing:
        if name not in {each.party for each in result.arrivals}:
            lines.append([name, "–", GridCell("missing", mark="missing"), "–", "–", "–"])
    head = ["party", "file", "status", "students", "bytes", "students alone"]
    return Grid(head, lines, f"Plan {result.plan[:12]}: {report.dataset}", words=("file", "status"))


def result_lines(result: ServerResult) -> list[str]:
    """What was refused and why, what to know, how good and how private the final model is, and where it lies."""
    from fedkt.data.values import plural
    from fedkt.report import plain_notes, weights_in_words

    report = result.report
    lines = [f"{each.status}: {each.file}: {each.reason}" for each in result.arrivals if each.reason]
    lines += [f"note: {note}" for note in plain_notes(report)]
    if report.accuracy is not None and report.balanced_accuracy is not None:
        alone_mean = sum(report.party_accuracy.values()) / max(len(report.party_accuracy), 1)
        lines.append(
            f"Final model: accuracy {report.accuracy:.2%}, balanced {report.balanced_accuracy:.2%} on "
            f"{plural(report.rows['test'], 'test row')}"
            + (f"; a party's students alone: {alone_mean:.2%} on average." if report.party_accuracy else ".")
        )
    if "weights" in report.votes:
        lines.append(weights_in_words(report))
    return [
        *lines,
        f"Privacy: {report.privacy.rstrip('.')}.",
        f"{result.final}: {'not signed' if result.signed_by is None else f'signed by {result.signed_by}'}, "
        f"SHA-256 {result.final_sha256}; use it with  fedkt predict {result.final} new.csv",
        f"What to know before using it: {result.model_card}",
    ]
