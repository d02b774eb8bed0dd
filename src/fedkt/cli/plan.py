"""`fedkt plan`: what everyone agrees on before the one round."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedkt.cli import options
from fedkt.models.catalogue import MODELS

if TYPE_CHECKING:
    from fedkt.plan import Plan

app = typer.Typer(no_args_is_help=True)
IDENTIFIER = 0.5
"""A category with more different values than this part of the public rows likely names rows."""


@app.callback()
def group() -> None:
    """Make or read the plan that everyone agrees on.

    [bold]Examples[/bold]

      fedkt plan new --public public.csv --label outcome --classes yes,no --party north --party south

      fedkt plan check plan.toml --public public.csv
    """


@app.command()
def new(
    public: Annotated[Path, typer.Option(help="The public rows: a file everybody gets; labels in it are not used.")],
    label: Annotated[str | None, typer.Option(help="The column to predict, as the parties' files call it.")] = None,
    classes: Annotated[str | None, typer.Option(help="The labels that may occur, e.g. yes,no")] = None,
    party: Annotated[list[str] | None, typer.Option(help="A party's name; once for each party.")] = None,
    model: Annotated[
        str,
        typer.Option(help=f"Model family: {' or '.join(', '.join(MODELS).rsplit(', ', 1))}."),
    ] = "forest",
    party_model: Annotated[
        list[str] | None, typer.Option(help="A party's own family, e.g. south=boosting; any number of times.")
    ] = None,
    teacher: options.Teacher = None,
    student: options.Student = None,
    final: options.Final = None,
    epochs: options.Epochs = None,
    partitions: options.Partitions = None,
    subsets: options.Subsets = None,
    voting: options.Voting = "consistent",
    rows: Annotated[
        list[str] | None,
        typer.Option(
            help="The most rows a party may say it has (expert voting), e.g. north=1200; any number of times."
        ),
    ] = None,
    level: options.Level = "L0",
    mechanism: options.Mechanism = None,
    gamma: options.Gamma = None,
    sigma: options.Sigma = None,
    theta: options.Theta = None,
    threshold: options.Threshold = None,
    sigma_test: options.SigmaTest = None,
    answers: options.Answers = None,
    epsilon: options.Epsilon = None,
    delta: Annotated[float | None, typer.Option(help="δ of the guarantee. Default: 1e-5 where noise is on.")] = None,
    queries: Annotated[
        str | None,
        typer.Option(help="Public rows asked where noise is on: a number (81) or a fraction (0.02). Default: all."),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(help="ε that all releases of one owner may cost together. Default: the price of one run."),
    ] = None,
    adjacency: Annotated[
        str | None,
        typer.Option(help="Level L2: a record is replaced (replace-one), or also added or removed (add-or-remove)."),
    ] = None,
    seed: Annotated[
        str, typer.Option(help="A number: training can be repeated. 'private': everybody draws and keeps their own.")
    ] = "0",
    min_parties: Annotated[
        int | None, typer.Option(min=1, help="Fewest parties the server may go on with. Default: the server decides.")
    ] = None,
    key: Annotated[
        list[str] | None, typer.Option(help="A party's public key, north=BASE64 or north=north.pub; see fedkt keys.")
    ] = None,
    categorical: Annotated[
        list[str] | None, typer.Option(help="A column of numbers that are categories; any number of times.")
    ] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="A column to leave out; any number of times.")] = None,
    missing: Annotated[
        str, typer.Option(help="Columns that may have gaps at a party: allow (all), as-seen (in public) or refuse.")
    ] = "allow",
    unseen: Annotated[
        str,
        typer.Option(help="A category that is not in the public rows: ignore (none of them, with a note) or refuse."),
    ] = "ignore",
    task: Annotated[str | None, typer.Option(help="A name for it. Default: the label's.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the plan.")] = Path("plan.toml"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite a plan that is there.")] = False,
) -> None:
    """Make a plan from the public rows; nothing in it comes from a party.

    [bold]Examples[/bold]

      fedkt plan new --public public.csv --label outcome --classes yes,no --party north --party south

      fedkt plan new --public public.csv --label outcome --classes yes,no --party north --party south
      --model forest --party-model south=boosting --key north=north.pub --seed private

      fedkt plan new --public public.csv --label outcome --classes yes,no --party north --party south
      --level L2 --epsilon 2 --queries 40 --subsets 25 --budget 4

      fedkt plan new --public public.csv --label outcome --classes a,b,c --party north --party south
      --voting expert --rows north=1200 --rows south=800

      fedkt plan new --public scans/ --label finding --classes healthy,ill --party north --party south
      --model cnn --party-model south=forest --epochs 20
    """
    from fedkt.cli.output import stdout, warn
    from fedkt.cli.privacy.words import mechanism_of
    from fedkt.errors import ConfigurationError
    from fedkt.plan import make_plan
    from fedkt.system.files import write_atomically

    if output.exists() and not force:
        raise ConfigurationError(f"{output} is there already. Bundles belong to one plan: use --force to replace it.")
    if missing not in ("allow", "as-seen", "refuse"):
        raise ConfigurationError(f"--missing is allow, as-seen or refuse, got {missing!r}.")
    if unseen not in ("ignore", "refuse"):
        raise ConfigurationError(f"--unseen is ignore or refuse, got {unseen!r}.")
    label = label or asked("Column to predict", "--label outcome")
    labels = options.names(classes or asked("Labels that may occur, with commas", "--classes yes,no"))
    members = party or options.names(asked("Names of the parties, with commas", "--party north --party south"))
    noise = dict(
        options.scale(
            gamma=gamma, sigma=sigma, theta=theta, threshold=threshold, sigma_test=sigma_test, answers=answers
        )
    )
    chosen = {
        "teacher": teacher,
        "student": student,
        "final": final,
        "epochs": epochs,
        "min_parties": min_parties,
    }
    made = make_plan(
        public,
        label=label,
        classes=[int(each) for each in labels] if all(map(whole_number, labels)) else labels,
        parties=members,
        model=model,
        party_models=pairs(party_model, "--party-model", "south=boosting"),
        keys={name: options.public_key(text) for name, text in pairs(key, "--key", "north=BASE64").items()},
        categorical=categorical or (),
        ignore=ignore or (),
        missing=missing,  # type: ignore[arg-type]
        unseen=unseen,  # type: ignore[arg-type]
        task=task,
        level=level,
        partitions=partitions,
        subsets=subsets,
        voting=voting,
        rows={name: count_of(text, "--rows") for name, text in pairs(rows, "--rows", "north=1200").items()},
        privacy={
            "mechanism": mechanism_of(mechanism, noise) if noise else mechanism,
            "scale": noise,
            "epsilon": epsilon,
            "queries": None if queries is None else options.number_or_fraction(queries),
            "delta": delta,
            "budget": budget,
            "adjacency": adjacency,
        },
        seed=int(seed) if whole_number(seed) else seed,
        **{name: value for name, value in chosen.items() if value is not None},
    )
    write_atomically(output, made.to_toml().encode())
    stdout.print(made.explain(), markup=False, highlight=False, soft_wrap=True)
    for name in identifiers(made):
        warn(
            f"Most public rows have a value of their own in {name!r}, all of them in the plan. If it names rows "
            f"or persons, nothing can be learned from it: leave it out with --ignore {name}."
        )
    stdout.print(f"\nWritten to {output}. Send it with {public} to every party and to the server.", markup=False)


@app.command()
def check(
    plan: Annotated[Path, typer.Argument(help="The plan.toml you were sent.", metavar="PLAN")],
    public: Annotated[Path | None, typer.Option(help="The public file, to be held against the plan.")] = None,
    as_json: options.Json = False,
) -> None:
    """Read a plan and say in words what it means.

    [bold]Examples[/bold]

      fedkt plan check plan.toml

      fedkt plan check plan.toml --public public.csv
    """
    from fedkt.cli.output import print_json, stdout
    from fedkt.plan import read_plan
    from fedkt.plan.text import plan_cautions

    agreed = read_plan(plan)
    if public is not None:
        agreed.columns.encode(agreed.read_public(public))
    if as_json:
        said = agreed.model_dump(mode="json", by_alias=True)
        print_json(
            {
                "digest": agreed.digest,
                "public_checked": public is not None,
                "cautions": plan_cautions(agreed),
                "plan": said,
            }
        )
        return
    stdout.print(agreed.explain(), markup=False, highlight=False, soft_wrap=True)
    if public is not None:
        stdout.print(f"\n{public} is the public file of this plan.", markup=False, highlight=False, soft_wrap=True)


def identifiers(made: Plan) -> list[str]:
    """The categories that seem to name rows."""
    return [
        column.name
        for column in made.columns.columns
        if len(column.categories) > max(10, IDENTIFIER * made.public.rows)
    ]


def asked(question: str, option: str) -> str:
    """The answer of a person at a terminal; elsewhere an error that names the option."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        from fedkt.errors import ConfigurationError

        raise ConfigurationError(f"Something is missing: {question.lower()}. Pass it, for instance: {option}")
    return str(typer.prompt(question))


def pairs(given: list[str] | None, option: str, example: str) -> dict[str, str]:
    """The NAME=VALUE options as a dictionary."""
    from fedkt.errors import ConfigurationError

    found: dict[str, str] = {}
    for text in given or []:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise ConfigurationError(f"{option} takes NAME=VALUE, for instance {example}; got {text!r}.")
        if name in found:
            raise ConfigurationError(f"{option} is given twice for {name!r}.")
        found[name] = value
    return found


def count_of(text: str, option: str) -> int:
    """A number of rows, or a refusal in words."""
    from fedkt.errors import ConfigurationError

    if not whole_number(text) or int(text) < 1:
        raise ConfigurationError(f"{option} takes a whole number of at least 1 after the =, got {text!r}.")
    return int(text)


def whole_number(text: str) -> bool:
    """Whether a text is a whole number as it would be written back."""
    return re.fullmatch("-?[0-9]{1,18}", text) is not None and str(int(text)) == text
