"""The options that decide what is trained, by panel: declared once, and taken whole by the verbs that need them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from fedkt.cli import options
from fedkt.cli.panels import DATA, FEDERATION, MODEL, OUTPUT, PRIVACY, ROUNDS


@dataclass(frozen=True)
class DataOptions:
    """The rows of a simulation."""

    panel: ClassVar[str] = DATA
    extra: Annotated[
        bool, typer.Option("--extra", help="svhn: also train on the extra part, 531,131 rows more (a file of 1.3 GB).")
    ] = False
    public_share: Annotated[float, typer.Option(help="Share of the public rows that is used, e.g. 0.2.")] = 1.0
    public_beta: Annotated[
        float | None,
        typer.Option(help="Draw the class shares of the public rows from Dirichlet(β): rows unlike the parties'."),
    ] = None
    data_dir: options.DataDir = None


@dataclass(frozen=True)
class PartyOptions:
    """The parties of a simulation."""

    panel: ClassVar[str] = FEDERATION
    parties: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Number of parties. Default: the dataset's.")
    ] = None
    partition: Annotated[
        str | None,
        typer.Option(
            help="How rows are dealt to parties: {partitions}. The paper's text has dirichlet, its tables balanced; "
            "column goes by a column of the data. Default: the dataset's."
        ),
    ] = None
    beta: Annotated[float, typer.Option(help="Dirichlet concentration β: smaller is more skewed.")] = 0.5


@dataclass(frozen=True)
class ShapeOptions:
    """How a party cuts its rows."""

    panel: ClassVar[str] = FEDERATION
    partitions: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Cuts of a party's rows, one student each (s). Default: 2, and 1 where noise is on and for expert "
            "voting.",
        ),
    ] = None
    subsets: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Subsets of a cut, one teacher each (t). Default: 5; for expert voting without noise 1.",
        ),
    ] = None


@dataclass(frozen=True)
class FamilyOptions:
    """Which families the parties of a simulation train."""

    panel: ClassVar[str] = MODEL
    model: options.Model = None
    party_models: Annotated[
        str | None, typer.Option(help="Families given to the parties in turn, e.g. forest,boosting,logistic.")
    ] = None
    soft_final: Annotated[
        bool | None,
        typer.Option(
            "--soft-final/--label-final",
            help="FedKT's final model learns how probable the parties find the classes, or only labels, as in the "
            "paper. Default: soft.",
        ),
    ] = None


@dataclass(frozen=True)
class RoleOptions:
    """Who teaches, who studies, what the server trains at the end, and how long networks do."""

    panel: ClassVar[str] = MODEL
    teacher: Annotated[
        str | None,
        typer.Option(
            help="Family of the teachers. Default: single trees for tree ensembles; with expert voting and no noise "
            "like the students."
        ),
    ] = None
    student: Annotated[str | None, typer.Option(help="Family of the students. Default: --model.")] = None
    final: Annotated[str | None, typer.Option(help="Family of the final model. Default: --model.")] = None
    epochs: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="How often neural networks see their rows. Default: 10, and more where that is under 1,000 steps.",
        ),
    ] = None
    copies: Annotated[
        bool,
        typer.Option(
            "--copies",
            help="A final network also learns four copies of each public image, shifted by one pixel. Images only.",
        ),
    ] = False


@dataclass(frozen=True)
class ScaleOptions:
    """The parameters of a noise, a flag each."""

    gamma: Annotated[float | None, typer.Option(help="Scale of laplace noise: Lap(1/γ) on every count.")] = None
    sigma: Annotated[float | None, typer.Option(help="Scale of gaussian noise: N(0, σ²) on every count.")] = None
    theta: Annotated[
        float | None, typer.Option(help="Scale of gumbel noise: class j wins with weight exp(θ votes).")
    ] = None
    threshold: Annotated[float | None, typer.Option(help="confident-gaussian: votes needed for an answer.")] = None
    sigma_test: Annotated[float | None, typer.Option(help="confident-gaussian: noise of the threshold test.")] = None
    answers: Annotated[int | None, typer.Option(help="confident-gaussian: most answers given.")] = None

    def values(self) -> dict[str, float]:
        """Those that were given."""
        names = (each.name for each in fields(ScaleOptions))
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


@dataclass(frozen=True)
class FormerNoiseOptions(ScaleOptions):
    """How a noise was written before --noise."""

    hidden: ClassVar[bool] = True
    mechanism: options.Mechanism = None


@dataclass(frozen=True)
class NoiseOptions:
    """One noise, for the verbs about its price."""

    noise: Annotated[str | None, typer.Option(help="{noise}, for instance gaussian:40.", metavar="NAME[:SCALE]")] = None
    former: FormerNoiseOptions = FormerNoiseOptions()


@dataclass(frozen=True)
class PrivacyOptions:
    """The promise, and the noise that keeps it."""

    panel: ClassVar[str] = PRIVACY
    level: options.Level = "L0"
    noise: Annotated[
        str | None,
        typer.Option(
            help="{noise}, for instance gaussian:40. With --epsilon its name alone. The paper's is laplace.",
            metavar="NAME[:SCALE]",
        ),
    ] = None
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="Instead of a scale: the smallest noise that keeps this ε, gaussian unless --noise names one."
        ),
    ] = None
    delta: Annotated[float | None, typer.Option(help="δ of the guarantee. Default: 1e-5.")] = None
    queries: Annotated[
        str | None,
        typer.Option(help="Public rows asked where noise is on: a number (81) or a fraction (0.02). Default: all."),
    ] = None
    former: FormerNoiseOptions = FormerNoiseOptions()


@dataclass(frozen=True)
class ShareOptions:
    """What everybody knows of the classes."""

    panel: ClassVar[str] = PRIVACY
    class_shares: Annotated[
        str | None,
        typer.Option(
            metavar="CLASS=SHARE,…",
            help="Class shares that are public, from a census, say: yes=0.24 (one class may be left out). "
            "fedkt-moments at level L1 is the better for them.",
        ),
    ] = None


@dataclass(frozen=True)
class CardOptions:
    """What the model card says in the words of whoever makes the plan."""

    panel: ClassVar[str] = OUTPUT
    purpose: Annotated[str | None, typer.Option(metavar="TEXT", help="For the model card: what it is for.")] = None
    not_for: Annotated[
        str | None, typer.Option(metavar="TEXT", help="For the model card: what it must not be used for.")
    ] = None
    contact: Annotated[str | None, typer.Option(metavar="TEXT", help="For the model card: whom to ask.")] = None

    def texts(self) -> dict[str, str | None]:
        """As a plan calls them."""
        return {"purpose": self.purpose, "limits": self.not_for, "contact": self.contact}


@dataclass(frozen=True)
class RoundOptions:
    """What methods of several rounds take."""

    panel: ClassVar[str] = ROUNDS
    rounds: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Rounds of {takers rounds}. Default: one (fedkt-prox: two).")
    ] = None
    participation: Annotated[
        float, typer.Option(help="Share of the parties that take part in each round ({takers participation}).")
    ] = 1.0
    local_epochs: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="How often a party sees its rows in each round of {takers local_epochs}. Default: --epochs, or 10.",
        ),
    ] = None
    learning_rate: Annotated[
        float | None,
        typer.Option(
            help="Step size of neural networks (and of {takers learning_rate}). Default: the method's.",
            rich_help_panel=MODEL,
        ),
    ] = None
    mu: Annotated[float | None, typer.Option(help="Strength μ of the proximal term of {takers mu}. Default: 0.1.")] = (
        None
    )
    distil_epochs: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="How often the server of {takers distil_epochs} sees the public rows when it distils. Default: 10.",
        ),
    ] = None


@dataclass(frozen=True)
class OutputOptions:
    """How a simulation is run, and what is written."""

    panel: ClassVar[str] = OUTPUT
    device: options.Device = None
    jobs: options.Jobs = None
    backend: options.Backend = None
    bytes_: Annotated[
        bool, typer.Option("--bytes", help="Pack every bundle to measure the bytes sent (takes longer).")
    ] = False
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder in which is kept what trained students say of the public rows: a run that differs only at "
            "the server, or was killed, trains none of them again. It holds what was learned from the parties' rows.",
        ),
    ] = None
    report: Annotated[
        Path | None,
        typer.Option(help="Where to write the HTML report. Default: fedkt-report.html (none with --json)."),
    ] = None
    as_json: options.Json = False


@dataclass(frozen=True)
class RunOptions:
    """What decides a simulated run besides its rows, its algorithm and its seed."""

    parties: PartyOptions
    shape: ShapeOptions
    families: FamilyOptions
    roles: RoleOptions
    privacy: PrivacyOptions
    shares: ShareOptions
    rounds: RoundOptions
