"""`fedkt plan new`: a plan from the public rows."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from fedkt.cli import options
from fedkt.cli.file_options import FileOptions
from fedkt.cli.groups import CardOptions, PrivacyOptions, RoleOptions, ShapeOptions, ShareOptions
from fedkt.cli.panels import DATA, FEDERATION, MODEL, OUTPUT, PRIVACY, values_of, with_groups
from fedkt.errors import ConfigurationError

if TYPE_CHECKING:
    from fedkt.plan import Plan

GOOD_AT_TEXTS = ("logistic", "linear")


Seed = Annotated[
    str,
    typer.Option(
        help="A number: training can be repeated. 'private': everybody draws and keeps their own.",
        rich_help_panel=FEDERATION,
    ),
]


@dataclass(frozen=True)
class ColumnOptions:
    """The task, and what is in its files."""

    panel: ClassVar[str] = DATA
    public: Annotated[Path, typer.Option(help="The public rows: a file everybody gets; labels in it are not used.")]
    label: Annotated[str | None, typer.Option(help="The column to predict, as the parties' files call it.")] = None
    classes: Annotated[
        str | None, typer.Option(help="The labels that may occur, e.g. yes,no or '\"yes, certainly\",no'")
    ] = None
    categorical: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column of numbers that are categories; any number of times."),
    ] = None
    text: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column of texts: its words become numbers; any number of times."),
    ] = None
    terms: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="How many words of a text column count, at most 2000. Default: 1000."),
    ] = None
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A column to leave out; any number of times.")
    ] = None
    missing: Annotated[
        str, typer.Option(help="Columns that may have gaps at a party: allow (all), as-seen (in public) or refuse.")
    ] = "allow"
    unseen: Annotated[
        str,
        typer.Option(help="A category that is not in the public rows: ignore (none of them, with a note) or refuse."),
    ] = "ignore"


@dataclass(frozen=True)
class MemberOptions:
    """Who takes part, and what is known of them."""

    panel: ClassVar[str] = FEDERATION
    party: Annotated[list[str] | None, typer.Option(metavar="NAME", help="A party's name; once for each party.")] = None
    key: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=KEY", help="A party's public key, north=BASE64 or north=north.pub; see fedkt keys."),
    ] = None
    min_parties: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Fewest parties the server may go on with. Default: the server decides."),
    ] = None
    voting: Annotated[str, typer.Option(help="How the server weighs the parties. {votings}.")] = "consistent"
    rows: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=ROWS",
            help="The most rows a party may say it has (expert voting, moments), e.g. north=1200; any number of times.",
        ),
    ] = None


@dataclass(frozen=True)
class PlannedModels:
    """Which families the parties train."""

    panel: ClassVar[str] = MODEL
    model: Annotated[str, typer.Option(help="Model family: {models}.")] = "forest"
    party_model: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=FAMILY", help="A party's own family, e.g. south=boosting; any number of times."),
    ] = None


@dataclass(frozen=True)
class BudgetOptions:
    """What an owner of data may spend, and of what."""

    panel: ClassVar[str] = PRIVACY
    budget: Annotated[
        float | None,
        typer.Option(help="ε that all releases of one owner may cost together. Default: the price of one run."),
    ] = None
    adjacency: Annotated[
        str | None,
        typer.Option(help="Level L2: a record is replaced (replace-one), or also added or removed (add-or-remove)."),
    ] = None


@dataclass(frozen=True)
class PlanOutput:
    """What the plan is called and where it goes."""

    panel: ClassVar[str] = OUTPUT
    task: Annotated[str | None, typer.Option(help="A name for it. Default: the label's.")] = None
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the plan.")] = Path("plan.toml")
    force: Annotated[bool, typer.Option("--force", help="Overwrite a plan that is there.")] = False


@with_groups
def new_plan(
    columns: ColumnOptions,
    members: MemberOptions,
    shape: ShapeOptions,
    seed: Seed = "0",
    *,
    families: PlannedModels,
    roles: RoleOptions,
    privacy: PrivacyOptions,
    spending: BudgetOptions,
    shares: ShareOptions,
    card: CardOptions,
    target: PlanOutput,
    file: FileOptions,
) -> None:
    """Make a plan from the public rows; nothing in it comes from a party.

    Where you say how the public file is written, a plain copy of it is made, which is the one to send.

    [bold]Examples[/bold]

      fedkt plan new --public public.csv --label outcome --classes yes,no --party north --party south

      fedkt plan new --public public.csv --label outcome --classes yes,no --party north --party south
      --model forest --party-model south=boosting --key north=north.pub --seed private

      fedkt plan new --public public.csv --label outcome --classes yes,no --party north --party south
      --level L2 --epsilon 2 --queries 40 --subsets 25 --budget 4

      fedkt plan new --public public.csv --label outcome --classes a,b,c --party north --party south
      --voting expert --rows north=1200 --rows south=800

      fedkt plan new --public public.csv --label outcome --classes yes,no --party north --party south
      --voting moments --level L2 --epsilon 1

      fedkt plan new --public public.csv --label outcome --classes yes,no --party p1 --party p2 …
      --voting moments --level L1 --epsilon 1 --class-shares yes=0.24

      fedkt plan new --public public.xlsx --sheet Patients --decimal , --label outcome --classes yes,no --party north
      --party south

      fedkt plan new --public scans/ --label finding --classes healthy,ill --party north --party south
      --model cnn --party-model south=forest --epochs 20

      fedkt plan new --public letters.csv --label topic --classes bill,other --party north --party south
      --text letter --model logistic --voting expert
    """
    from fedkt.algorithms.voting import Consistent
    from fedkt.cli.output import stderr, stdout, warn
    from fedkt.data.notation import option
    from fedkt.plan import make_plan, read_public_file
    from fedkt.system.files import write_atomically

    check_choices(columns, target)
    task = task_settings(columns)
    public = read_public_file(columns.public, task["label"], file.format())
    copy = target.output.with_name(public.name)
    if public.copy is not None and copy.exists() and not target.force and copy.read_bytes() != public.copy:
        raise ConfigurationError(f"{copy} is there already, with other content. Use --force to replace it.")
    for note in public.table.notes:
        stderr.say(f"note: {note}")
    agreed = make_plan(
        public,
        **task,
        **member_settings(members),
        **values_of(shape),
        model=families.model,
        party_models=values_by_name(families.party_model, "--party-model", "south=boosting"),
        task=target.task,
        level=privacy.level,
        privacy=privacy_settings(privacy, spending, shares),
        card=card.texts(),
        seed=int(seed) if is_integer(seed) else seed,
        **{name: value for name, value in values_of(roles).items() if value not in (None, False)},
    )
    if public.copy is not None:
        write_atomically(copy, public.copy)
    write_atomically(target.output, agreed.to_toml().encode())
    stdout.say(agreed.explain())
    sent = columns.public if public.copy is None else copy
    for name in number_columns(agreed, sent):
        warn(
            f"{name!r} has another whole number in every public row. If these are numbers of rows or persons, nothing "
            f"can be learned from them: leave it out with {option('--ignore', name)}"
        )
    for name in identifiers(agreed):
        warn(
            f"Most public rows have a value of their own in {name!r}, all of them in the plan. If it names rows, "
            f"persons or days, nothing can be learned from it: leave it out with {option('--ignore', name)} If it "
            f"holds texts of many words, say so: {option('--text', name)}"
        )
    if columns.text and (agreed.models.default not in GOOD_AT_TEXTS or agreed.voting == Consistent.name):
        warn(
            "Texts were learned best by linear families in expert voting, and badly by trees: --model logistic "
            "--voting expert. docs/guide/data.md has what was measured."
        )
    stdout.print(f"\nWritten to {target.output}. Send it with {sent} to every party and to the server.", markup=False)


def check_choices(columns: ColumnOptions, target: PlanOutput) -> None:
    """Refuse a plan over another one, and words that options do not have."""
    if target.output.exists() and not target.force:
        raise ConfigurationError(
            f"{target.output} is there already. Bundles belong to one plan: use --force to replace it."
        )
    if columns.missing not in ("allow", "as-seen", "refuse"):
        raise ConfigurationError(f"--missing is allow, as-seen or refuse, got {columns.missing!r}.")
    if columns.unseen not in ("ignore", "refuse"):
        raise ConfigurationError(f"--unseen is ignore or refuse, got {columns.unseen!r}.")
    if columns.terms is not None and not columns.text:
        raise ConfigurationError("--terms says how many words of a text column count: it goes with --text COLUMN.")


def task_settings(columns: ColumnOptions) -> dict[str, Any]:
    """The label, its classes and the columns; a person at a terminal is asked for what is missing."""
    label = columns.label or ask("Column to predict", "--label outcome")
    labels = options.names(columns.classes or ask("Labels that may occur, with commas", "--classes yes,no"))
    return {
        "label": label,
        "classes": [int(each) for each in labels] if all(map(is_integer, labels)) else labels,
        "categorical": columns.categorical or (),
        "text": columns.text or (),
        **({} if columns.terms is None else {"terms": columns.terms}),
        "ignore": columns.ignore or (),
        "missing": columns.missing,
        "unseen": columns.unseen,
    }


def member_settings(members: MemberOptions) -> dict[str, Any]:
    """The parties, their keys and rows, and how the server weighs them."""
    names = members.party or options.names(ask("Names of the parties, with commas", "--party north --party south"))
    return {
        "parties": names,
        "keys": {
            name: options.public_key(text)
            for name, text in values_by_name(members.key, "--key", "north=BASE64").items()
        },
        "rows": {
            name: count_of(text, "--rows")
            for name, text in values_by_name(members.rows, "--rows", "north=1200").items()
        },
        "voting": members.voting,
        **({} if members.min_parties is None else {"min_parties": members.min_parties}),
    }


def privacy_settings(privacy: PrivacyOptions, spending: BudgetOptions, shares: ShareOptions) -> dict[str, Any]:
    """What the plan's [privacy] is made from; None is what nobody gave."""
    from fedkt.cli.runs import noise_choice

    mechanism, scale = noise_choice(privacy, calibrated=privacy.epsilon is not None, counts=True)
    return {
        "mechanism": mechanism,
        "scale": dict(scale),
        "epsilon": privacy.epsilon,
        "queries": options.number_or_fraction(privacy.queries),
        "delta": privacy.delta,
        "class_shares": dict(options.shares(shares.class_shares) or {}),
        **values_of(spending),
    }


def identifiers(plan: Plan) -> list[str]:
    """The categories that seem to name rows."""
    from fedkt.data.plausible import row_texts

    return list(row_texts(plan.columns, plan.public.rows))


def number_columns(plan: Plan, public: Path) -> list[str]:
    """The numbers that seem to number rows."""
    from fedkt.data.plausible import row_names

    return [] if plan.image is not None else list(row_names(plan.columns, plan.read_public(public)))


def ask(question: str, option: str) -> str:
    """The answer of a person at a terminal; elsewhere an error that names the option."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigurationError(f"Something is missing: {question.lower()}. Pass it, for instance: {option}")
    return str(typer.prompt(question))


def values_by_name(texts: list[str] | None, option: str, example: str) -> dict[str, str]:
    """The NAME=VALUE options as a dictionary."""
    values: dict[str, str] = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise ConfigurationError(f"{option} takes NAME=VALUE, for instance {example}; got {text!r}.")
        if name in values:
            raise ConfigurationError(f"{option} is given twice for {name!r}.")
        values[name] = value
    return values


def count_of(text: str, option: str) -> int:
    """A number of rows, or a refusal in words."""
    if not is_integer(text) or int(text) < 1:
        raise ConfigurationError(f"{option} takes a whole number of at least 1 after the =, got {text!r}.")
    return int(text)


def is_integer(text: str) -> bool:
    """Whether a text is a whole number as it would be written back."""
    return re.fullmatch("-?[0-9]{1,18}", text) is not None and str(int(text)) == text
