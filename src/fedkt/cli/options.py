"""Options that several verbs share."""

from __future__ import annotations

import csv
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from fedkt.cli.output import stderr
from fedkt.cli.panels import FEDERATION, PRIVACY
from fedkt.errors import ConfigurationError

Dataset = Annotated[
    str,
    typer.Argument(
        help="What to run on: {datasets} (`fedkt datasets` tells about them), or the path of a table or a folder of "
        "images of your own.",
        metavar="DATASET",
    ),
]
Seed = Annotated[
    int, typer.Option(min=0, metavar="N", help="Decides split, parties and training.", rich_help_panel=FEDERATION)
]
Diagnostic = Annotated[
    bool,
    typer.Option("--diagnostic", help="Also print the data-dependent ε. Confidential.", rich_help_panel=PRIVACY),
]
Model = Annotated[str | None, typer.Option(help="Model family: {models}. Default: the dataset's.")]
Voting = Annotated[
    str | None,
    typer.Option(
        help="How FedKT's server weighs the parties. {votings}. Default: what goes with --algorithm.",
        rich_help_panel=FEDERATION,
    ),
]
Level = Annotated[
    str,
    typer.Option(
        help="L0: no noise, no promise. L1: noise at the server protects a party. L2: noise at the parties protects "
        "a record."
    ),
]
Mechanism = Annotated[str | None, typer.Option(help="Noise: {noises}; laplace is the paper's.")]
Epsilon = Annotated[float | None, typer.Option(help="Instead of a scale: the smallest noise that keeps this ε.")]
Delta = Annotated[float, typer.Option(help="δ of the guarantee.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        metavar="N",
        help="Models trained at the same time, by so many processes at most; -1 uses every core. Default: one, on a "
        "cluster all of it.",
    ),
]
Backend = Annotated[
    str | None,
    typer.Option(
        help="Where models are trained: loky (this machine), or a cluster of your own organisation's, dask=ADDRESS or "
        "ray=ADDRESS; without an address it is started on this machine. Default: $FEDKT_BACKEND, "
        "else loky.",
        metavar="NAME[=ADDRESS]",
        envvar="FEDKT_BACKEND",
        show_envvar=False,
    ),
]


def set_device(name: str | None) -> str | None:
    """Has the networks of this process, and of those it starts, trained there; refused at once where there is none."""
    if name is not None:
        if name != "cpu":
            if find_spec("torch") is None:
                raise ConfigurationError("Devices are for networks, which need PyTorch: pip install 'fedkt[neural]'.")
            from fedkt.models.neural.device import device_of

            device_of(name)
        os.environ["FEDKT_DEVICE"] = name
    return name


Device = Annotated[
    str | None,
    typer.Option(
        callback=set_device,
        metavar="NAME",
        help="Where networks are trained: cpu, cuda, or auto (a graphics card where there is one). Default: "
        "$FEDKT_DEVICE, else cpu. Of this machine only; no plan and no result names it.",
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option(help="Folder with data files. Default: $FEDKT_DATA, then the cache, then a download."),
]
Json = Annotated[bool, typer.Option("--json", help="Print exactly one JSON object on stdout.")]
ServerKey = Annotated[
    str | None,
    typer.Option(help="The server's public key, or its .pub file: refuse a final model that it has not signed."),
]

PRIVATE = "PRIVATE KEY-----"
"""How a private key begins, after some word or none."""
KEY_FILES = (".pub", ".key", ".pem")
DEFAULT_REPORT = Path("fedkt-report.html")


@contextmanager
def workers(jobs: int | None, backend: str | None) -> Iterator[int]:
    """How many models are trained at the same time inside the block, whose work goes to this backend."""
    from fedkt.system.backends import on_backend

    with on_backend(backend, None if jobs is None else cores(jobs)) as count:
        yield count


def cores(jobs: int | None) -> int:
    """How many workers a --jobs value means on this machine."""
    if jobs is None:
        return 1
    if jobs == 0 or jobs < -1:
        raise ConfigurationError(f"--jobs must be a positive number or -1 for every core, got {jobs}.")
    from fedkt.system.parallel import effective_jobs

    return effective_jobs(jobs)


def above_zero(value: float | None, option: str) -> float | None:
    """The value of an option, refused in words unless it is a number above zero."""
    if value is not None and not 0 < value < float("inf"):
        raise ConfigurationError(f"{option} takes a number above zero, got {value:g}.")
    return value


def this_command() -> str:
    """The command as it was typed, for the report."""
    return shlex.join(["fedkt", *sys.argv[1:]])


def names(text: str | None) -> tuple[str, ...]:
    """The parts of a comma-separated list."""
    return tuple(part.strip() for part in split(text or "") if part.strip())


def split(text: str) -> list[str]:
    """What stands between commas; a part with a comma of its own stands in double quotes, as in a CSV file."""
    if '"' not in text:
        return text.split(",")
    lines = iter([text, ""])
    try:
        parts = next(csv.reader(lines, skipinitialspace=True))
    except csv.Error as reason:
        raise ConfigurationError(f"{text[:80]!r} cannot be split at its commas: {reason}.") from None
    if next(lines, None) is None:
        raise ConfigurationError(f"{text[:80]!r} has a part whose double quotes do not end. Close them.")
    return parts


def shares(text: str | None) -> tuple[tuple[str, float], ...] | None:
    """yes=0.24,no=0.76 as names with numbers; None where nothing was said."""
    if text is None:
        return None
    found = {}
    for part in names(text):
        name, _, number = part.rpartition("=")
        try:
            found[name.strip()] = float(number)
        except ValueError:
            raise ConfigurationError(f"--class-shares is like yes=0.24,no=0.76; got {part!r}.") from None
    return tuple(found.items())


def number_or_fraction(text: str | None) -> float | None:
    """81 as 81 rows, 0.02 or 1.0 as a fraction of them; None where nothing was said."""
    if text is None:
        return None
    for number in (int, float):
        with suppress(ValueError):
            return number(text)
    raise ConfigurationError(f"--queries is a number of public rows (81) or a fraction of them (0.02), got {text!r}.")


def report_path(path: Path | None, *, as_json: bool) -> Path | None:
    """Where the HTML report goes, or None: with --json only where a path was given."""
    if path is not None:
        if path.suffix.lower() not in (".html", ".htm"):
            raise ConfigurationError(f"The report is a page: give it a name that ends in .html, got {path.name!r}.")
        check_pictures()
        return path
    if as_json:
        return None
    if not has_pictures():
        stderr.print("[dim]No HTML report: run  pip install 'fedkt\\[report]'  to get one.[/dim]")
        return None
    return DEFAULT_REPORT


def check_output(output: Path, *inputs: Path | None, kind: str = "") -> None:
    """Refuse, before anything is read, to write over what is read, or a kind of file under another's name."""
    for path in inputs:
        if path is not None and output.exists() and path.exists() and output.samefile(path):
            raise ConfigurationError(f"{output} is what is read here, and would be written over. Give it another name.")
    if kind and output.suffix.lower() in TAKEN_ENDINGS - {kind}:
        raise ConfigurationError(f"{output.name} would be text with commas under another's name. Call it {kind}.")


TAKEN_ENDINGS = frozenset({".xlsx", ".gz", ".bz2", ".xz", ".zip", ".parquet", ".npz", ".onnx", ".toml", ".fedkt"})
"""Names of other kinds of files than tables in text."""


def has_pictures() -> bool:
    """Whether what draws pictures and fills pages is installed."""
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None and find_spec("jinja2") is not None


def check_pictures() -> None:
    """Refuse, before anything costs, a picture or a page that nothing here can draw."""
    if not has_pictures():
        raise ConfigurationError("Pictures and pages need matplotlib and jinja2. Run: pip install 'fedkt[report]'")


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
