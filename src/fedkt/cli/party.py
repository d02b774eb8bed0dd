"""`fedkt party`: train at one organisation and write the one file that it sends."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedkt.cli import options
from fedkt.cli.file_options import FileOptions
from fedkt.cli.fitting import OwnFileOptions
from fedkt.cli.panels import with_groups
from fedkt.errors import ConfigurationError

if TYPE_CHECKING:
    from fedkt.live.party import SentBundle
    from fedkt.plan import Plan as Agreed

Plan = Annotated[Path, typer.Argument(help="The plan.toml that everyone agreed on.", metavar="PLAN")]
Public = Annotated[Path, typer.Option(help="The public file that came with the plan.")]
Name = Annotated[str, typer.Option(help="Who you are in the plan.")]
Data = Annotated[
    Path,
    typer.Option(
        help="Your own labelled rows: CSV, Excel, Parquet, NPZ, LIBSVM, IDX or a folder of images. They stay."
    ),
]
Output = Annotated[str, typer.Option("--output", "-o", help="The folder to write NAME.fedkt to.", metavar="<path>")]
Key = Annotated[Path | None, typer.Option(help="Your private key, if the plan lists its public one.")]
Issue = Annotated[
    int | None,
    typer.Option(
        help="Of two signed bundles the larger number counts. Default: one more than that of the one in --output."
    ),
]
Work = Annotated[
    Path | None, typer.Option(help="Folder for unfinished work. Default: .fedkt-work/NAME-PLAN, removed at the end.")
]
Ledger = Annotated[
    Path | None,
    typer.Option(help="At level L2: the file in which your releases are written down. Default: beside your data."),
]
Identity = Annotated[
    str | None,
    typer.Option(
        "--id",
        help="At level L2 and with --hold-out: the column that tells your records apart (it is not sent). Default: the "
        "names of image files, else the places of rows in the file.",
        metavar="COLUMN",
    ),
]
HoldOut = Annotated[
    float | None,
    typer.Option(
        help="Share of your rows to lay aside before training, such as 0.2, so that --evaluate can judge the final "
        "model by them later. Default: none.",
        metavar="SHARE",
    ),
]
Evaluate = Annotated[
    Path | None,
    typer.Option(
        help="Train and send nothing: is this final.onnx better than your own model, on the rows laid aside?",
        metavar="FINAL",
    ),
]
Check = Annotated[
    bool,
    typer.Option(
        "--check",
        help="Train, spend and write nothing: would it run, what would it send, what would it cost, how long would it "
        "take?",
    ),
]
MostEpsilon = Annotated[
    float | None,
    typer.Option(help="Refuse, before anything is read, a plan or a total in the ledger that costs more than this."),
]
MostDelta = Annotated[float | None, typer.Option(help="Refuse a plan with a larger delta.")]


@with_groups
def party(
    plan: Plan,
    name: Name,
    data: Data,
    public: Public,
    output: Output = "outbox",
    key: Key = None,
    issue: Issue = None,
    device: options.Device = None,
    jobs: options.Jobs = None,
    backend: options.Backend = None,
    work: Work = None,
    ledger: Ledger = None,
    identity: Identity = None,
    hold_out: HoldOut = None,
    evaluate: Evaluate = None,
    check: Check = False,
    server_key: options.ServerKey = None,
    most_epsilon: MostEpsilon = None,
    most_delta: MostDelta = None,
    as_json: options.Json = False,
    *,
    file: FileOptions,
    own_file: OwnFileOptions,
) -> None:
    """Train your students on your own rows and write the file to send. Stopped half-way, it goes on where it was.

    [bold]Examples[/bold]

      fedkt party plan.toml --name north --data north.csv --public public.csv --check

      fedkt party plan.toml --name north --data north.csv --public public.csv

      fedkt party plan.toml --name north --data north.csv --public public.csv -o outbox --key north.key --jobs 4

      fedkt party plan.toml --name north --data north.csv --public public.csv --ledger north.ledger --id patient

      fedkt party plan.toml --name north --data north.csv --public public.csv --most-epsilon 4 --most-delta 1e-5

      fedkt party plan.toml --name north --data north.csv --public public.csv --hold-out 0.2

      fedkt party plan.toml --name north --data north.xlsx --public public.csv --decimal , --dates admitted=dd/mm/yyyy

      fedkt party plan.toml --name north --data north.csv --public public.csv --evaluate result/final.onnx

      fedkt party plan.toml --name north --data north.csv --public public.csv --rename Age=age --label-map 1=yes,0=no
    """
    from fedkt.cli.check import print_check
    from fedkt.cli.judgement import evaluate_final
    from fedkt.cli.output import progress_bar, warn
    from fedkt.live.check import check_party
    from fedkt.live.keys import read_key
    from fedkt.live.mailbox import mailbox_at
    from fedkt.live.party import run_party
    from fedkt.plan import read_plan

    agreed = read_plan(plan)
    choices = own_file.mapping()
    if evaluate is not None:
        if check:
            raise ConfigurationError("--check is about training and --evaluate about its result. Leave one out.")
        own = {"data": data, "public": public, "identity": identity, "hold_out": hold_out}
        with options.workers(jobs, backend) as count:
            own_half = {**own, "form": file.format(), "choices": choices, "jobs": count}
            evaluate_final(agreed, name, evaluate, own_half, server_key=server_key, as_json=as_json)
        return
    if server_key is not None:
        raise ConfigurationError("--server-key is about a final model: it goes with --evaluate FINAL. Leave it out.")
    settings: dict[str, Any] = {
        "data": data,
        "public": public,
        "outbox": mailbox_at(output, own=True),
        "work": work,
        "ledger": ledger,
        "identity": identity,
        "hold_out": hold_out,
        "issue": issue,
        "most_epsilon": most_epsilon,
        "most_delta": most_delta,
        "form": file.format(),
        "choices": choices,
    }
    if check:
        with options.workers(jobs, backend) as count:
            print_check(check_party(agreed, name, key=key, jobs=count, **settings), as_json=as_json)
        return
    signing = None if key is None else read_key(key)
    with options.workers(jobs, backend) as count, ExitStack() as display:
        bar = display.enter_context(progress_bar(f"{name}: teachers", quiet=as_json))

        def tell(sent: SentBundle) -> None:
            display.close()
            print_sent(sent, agreed, as_json=as_json)

        run_party(agreed, name, key=signing, jobs=count, warn=warn, progress=bar, tell=tell, **settings)


def print_sent(sent: SentBundle, agreed: Agreed, *, as_json: bool) -> None:
    """What was written and what it promises; notes on stderr."""
    from dataclasses import asdict

    from fedkt.cli.output import print_json, stderr, stdout
    from fedkt.data.values import plural
    from fedkt.privacy.statement import rounded_up

    for note in sent.notes:
        stderr.say(f"note: {note}")
    if as_json:
        print_json(asdict(sent))
        return
    issue = "" if sent.issue is None else f", issue {sent.issue}"
    aside = "" if sent.aside is None else f" ({sent.aside:,} more laid aside)"
    what = plural(sent.students, "student") if sent.students else "sums of features"
    lines = [
        f"{sent.path}: {what} from {plural(sent.rows, 'row')}{aside}, "
        f"{sent.bytes:,} bytes, {'signed' if sent.signed else 'not signed'}{issue}, plan {sent.plan[:12]}."
    ]
    if sent.epsilon is not None and sent.total_epsilon is not None and sent.releases is not None:
        lines.append(
            f"Privacy: epsilon {rounded_up(sent.epsilon)} at delta {sent.delta:g} for one record, by the noise in it; "
            f"a budget of epsilon {rounded_up(sent.total_epsilon)}, fixed beforehand, covers "
            f"{plural(sent.releases, 'release')} in the ledger so far."
        )
    counts = ""
    if agreed.method.tells_counts:
        noisy = " with noise" if agreed.level == "L2" else ", as they are"
        counts = f" It also tells how many of your rows have each label{noisy}."
    stays = "Your rows, your teachers and their votes stay here." if sent.students else "Your rows stay here."
    lines.append(f"Send this one file to the server. {stays}{counts}")
    if sent.aside is not None:
        lines.append(
            f"--evaluate holds for a final model that is made from this bundle (SHA-256 {sent.sha256[:12]}…): an "
            "earlier one of yours may have learned from rows that are aside now."
        )
    else:
        lines.append(
            "No rows were laid aside (--hold-out 0.2): whether the final model is better than your own can then be "
            "measured on new rows only."
        )
    for line in lines:
        stdout.say(line)
