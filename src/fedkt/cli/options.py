"""Options that several verbs share."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedkt.cli.output import stderr
from fedkt.errors import ConfigurationError
from fedkt.models.catalogue import MODELS

if TYPE_CHECKING:
    from fedkt.lab.setting import Setting

Dataset = Annotated[str, typer.Argument(help="What to run on; `fedkt datasets` lists them.", metavar="DATASET")]
Extra = Annotated[
    bool, typer.Option("--extra", help="svhn: also train on the extra part, 531,131 rows more (a file of 1.3 GB).")
]
Model = Annotated[
    str | None,
    typer.Option(help=f"Model family: {', '.join(MODELS)}. Default: the dataset's."),
]
Teacher = Annotated[
    str | None,
    typer.Option(
        help="Family of the teachers. Default: single trees for tree ensembles; with expert voting and no noise like "
        "the students."
    ),
]
Student = Annotated[str | None, typer.Option(help="Family of the students. Default: --model.")]
Final = Annotated[str | None, typer.Option(help="Family of the final model. Default: --model.")]
PartyModels = Annotated[
    str | None, typer.Option(help="Families given to the parties in turn, e.g. forest,boosting,logistic.")
]
Epochs = Annotated[
    int | None,
    typer.Option(
        min=1, help="How often neural networks see their rows. Default: 10, and more where that is under 1,000 steps."
    ),
]
LocalEpochs = Annotated[
    int | None,
    typer.Option(
        min=1, help="How often a party sees its rows in each round of fedavg and its kin. Default: --epochs, or 10."
    ),
]
LearningRate = Annotated[
    float | None, typer.Option(help="Step size of neural networks (and of scaffold). Default: the method's.")
]
Rounds = Annotated[
    int | None, typer.Option(min=1, help="Rounds of fedavg, fedprox, scaffold, feddf, fedkt-prox. Default: one.")
]
Participation = Annotated[float, typer.Option(help="Share of the parties that take part in each round.")]
Mu = Annotated[float | None, typer.Option(help="fedprox, fedkt-prox: strength μ of the proximal term. Default: 0.1.")]
DistilEpochs = Annotated[
    int | None,
    typer.Option(min=0, help="feddf: how often the server sees the public rows when it distils. Default: 10."),
]
PublicBeta = Annotated[
    float | None,
    typer.Option(help="Draw the class shares of the public rows from Dirichlet(β): rows unlike the parties'."),
]
PublicShare = Annotated[float, typer.Option(help="Share of the public rows that is used, e.g. 0.2.")]
Parties = Annotated[int | None, typer.Option(min=1, help="Number of parties. Default: the dataset's.")]
Beta = Annotated[float, typer.Option(help="Dirichlet concentration β: smaller is more skewed.")]
Partition = Annotated[
    str | None,
    typer.Option(
        help="How rows are dealt to parties: dirichlet (the paper's text), balanced (what its tables used), even, "
        "or column (by a column of the data)."
    ),
]
Partitions = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Cuts of a party's rows, one student each (s). Default: 2, and 1 where noise is on and for expert voting.",
    ),
]
Subsets = Annotated[
    int | None,
    typer.Option(min=1, help="Subsets of a cut, one teacher each (t). Default: 5; for expert voting without noise 1."),
]
Voting = Annotated[
    str,
    typer.Option(
        help="consistent: a party has one vote where its students agree. expert: it is weighed by its rows of each "
        "class, which it tells. expert-no-counts: by whether its students find that a row looks like its own."
    ),
]
Level = Annotated[
    str,
    typer.Option(
        help="L0: no noise, no promise. L1: noise at the server protects a party. L2: noise at the parties protects "
        "a record."
    ),
]
Mechanism = Annotated[
    str | None, typer.Option(help="Noise: laplace (the paper), gaussian, gumbel or confident-gaussian.")
]
Gamma = Annotated[float | None, typer.Option(help="Scale of laplace noise: Lap(1/γ) on every count.")]
Sigma = Annotated[float | None, typer.Option(help="Scale of gaussian noise: N(0, σ²) on every count.")]
Theta = Annotated[float | None, typer.Option(help="Scale of gumbel noise: class j wins with weight exp(θ votes).")]
Threshold = Annotated[float | None, typer.Option(help="confident-gaussian: votes needed for an answer.")]
SigmaTest = Annotated[float | None, typer.Option(help="confident-gaussian: noise of the threshold test.")]
Answers = Annotated[int | None, typer.Option(help="confident-gaussian: most answers given.")]
Epsilon = Annotated[float | None, typer.Option(help="Instead of a scale: the smallest noise that keeps this ε.")]
Delta = Annotated[float, typer.Option(help="δ of the guarantee.")]
Queries = Annotated[
    str, typer.Option(help="Public rows asked where noise is on: a number (81) or a fraction (0.02, 1.0 for all).")
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Models trained at the same time; -1 uses every core.")]
DataDir = Annotated[
    Path | None,
    typer.Option(help="Folder with data files. Default: $FEDKT_DATA, then the cache, then a download."),
]
Json = Annotated[bool, typer.Option("--json", help="Print exactly one JSON object on stdout.")]
Report = Annotated[
    Path | None, typer.Option(help="Where to write the HTML report. Default: fedkt-report.html (none with --json).")
]
Bytes = Annotated[bool, typer.Option("--bytes", help="Pack every bundle to measure the bytes sent (takes longer).")]

PRIVATE = "PRIVATE KEY-----"
"""How a private key begins, after some word or none."""
KEY_FILES = (".pub", ".key", ".pem")
DEFAULT_REPORT = Path("fedkt-report.html")


def cores(jobs: int) -> int:
    """How many workers a --jobs value means."""
    if jobs == 0 or jobs < -1:
        raise ConfigurationError(f"--jobs must be a positive number or -1 for every core, got {jobs}.")
    if jobs > 0:
        return jobs
    from joblib import cpu_count

    return int(cpu_count())


def above_zero(given: float | None, option: str) -> float | None:
    """The value of an option, refused in words unless it is a number above zero."""
    if given is not None and not 0 < given < float("inf"):
        raise ConfigurationError(f"{option} takes a number above zero, got {given:g}.")
    return given


def this_command() -> str:
    """The command as it was typed, for the report."""
    return shlex.join(["fedkt", *sys.argv[1:]])


def names(listed: str | None) -> tuple[str, ...]:
    """The parts of a comma-separated list."""
    return tuple(part.strip() for part in (listed or "").split(",") if part.strip())


def scale(**given: float | None) -> tuple[tuple[str, float], ...]:
    """The parameters of a noise that were given on the command line."""
    return tuple((name, value) for name, value in given.items() if value is not None)


def number_or_fraction(text: str) -> float:
    """81 as 81 rows, 0.02 or 1.0 as a fraction of them."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise ConfigurationError(
            f"--queries is a number of public rows (81) or a fraction of them (0.02), got {text!r}."
        ) from None


NOISE_SCALES = ("gamma", "sigma", "theta", "threshold", "sigma_test", "answers")
PLAIN = (
    "dataset",
    "model",
    "parties",
    "partition",
    "beta",
    "partitions",
    "subsets",
    "level",
    "teacher",
    "student",
    "final",
    "mechanism",
    "epsilon",
    "delta",
    "epochs",
    "local_epochs",
    "learning_rate",
    "rounds",
    "participation",
    "mu",
    "distil_epochs",
    "public_share",
    "public_beta",
)


def setting(given: Mapping[str, Any], *, algorithm: str, seed: int) -> Setting:
    """The setting that the options of a verb describe, with the dataset's defaults filled in."""
    from fedkt.lab.setting import Setting

    chosen = {name: given[name] for name in PLAIN}
    noise = scale(**{name: given[name] for name in NOISE_SCALES})
    if noise:
        from fedkt.cli.privacy.words import mechanism_of

        chosen["mechanism"] = mechanism_of(chosen["mechanism"], dict(noise))
    if given["extra"]:
        from fedkt.data import DATASETS

        chosen["dataset"] = f"{chosen['dataset']}-extra"
        if chosen["dataset"] not in DATASETS:
            raise ConfigurationError(f"Dataset {given['dataset']!r} has no extra part; svhn has. Leave --extra out.")
    return Setting(
        **chosen,
        algorithm=algorithm,
        seed=seed,
        party_models=names(given["party_models"]),
        scale=noise,
        queries=number_or_fraction(given["queries"]),
    ).filled()


def check_used(given: Mapping[str, Any], chosen: Setting) -> None:
    """Refuse options that do nothing here: whoever gives one believes that it does something."""
    from fedkt.lab.setting import Setting

    usual = Setting("")
    unused = [
        name
        for name in ("local_epochs", "distil_epochs", "mu", "participation", "partitions", "subsets")
        if given[name] not in (getattr(usual, name), getattr(chosen, name))
    ]
    families = {chosen.model, chosen.teacher, chosen.student, chosen.final, *chosen.party_models}
    if not any(family.network for name, family in MODELS.items() if name in families):
        unused += [name for name in ("epochs", "learning_rate") if given[name] is not None]
    if chosen.partition not in ("dirichlet", "balanced") and given["beta"] != usual.beta:
        unused.append("beta")
    if unused:
        flags = ", ".join("--" + name.replace("_", "-") for name in unused)
        raise ConfigurationError(
            f"{flags} would do nothing: algorithm {chosen.algorithm}, model {chosen.model}, partition "
            f"{chosen.partition}. Leave it out."
        )


def report_path(asked: Path | None, *, as_json: bool) -> Path | None:
    """Where the HTML report goes, or None: with --json only where it was asked for."""
    if asked is not None:
        return asked
    if as_json:
        return None
    from importlib.util import find_spec

    if find_spec("matplotlib") is None or find_spec("jinja2") is None:
        stderr.print("[dim]No HTML report: run  pip install 'fedkt\\[report]'  to get one.[/dim]")
        return None
    return DEFAULT_REPORT


def public_key(text: str) -> str:
    """A public key as text, read from its file where a file is named."""
    if PRIVATE in text:
        # Not shown: whoever sees the message would have the key.
        raise ConfigurationError(
            "A private key was given as a public one. Pass the .pub file; keep the private one to yourself."
        )
    if Path(text).suffix not in KEY_FILES:
        return text
    from fedkt.system.files import read_at_most

    data = read_at_most(Path(text), 10_000)
    if data is None or not data.isascii():
        raise ConfigurationError(f"{text} is no public key. Pass the .pub file that `fedkt keys new` wrote.")
    if PRIVATE in data.decode():
        raise ConfigurationError(
            f"{text} holds a private key. Pass the public one (the .pub file), and keep this one to yourself."
        )
    return data.decode().strip()


ServerKey = Annotated[
    str | None,
    typer.Option(help="The server's public key, or its .pub file: refuse a final model that it has not signed."),
]
