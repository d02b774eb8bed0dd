"""Runs every target in a process of its own and prints what broke, with the file that breaks it.

    python -m fuzz --seconds 600             # all targets, ten minutes together
    python -m fuzz --only csv --seconds 60   # one
    python -m fuzz --only csv --file FILE    # what a file of findings does, without atheris

What was learnt is kept in .fuzz and is where the next run begins.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fuzz.targets import FOLDER, TARGETS

ENDLESS, MEMORY = 20, 3_000
"""Seconds and megabytes that one input may take."""


def sow() -> None:
    """Puts honest files into the folder of every kind of seed that has none."""
    from fuzz.seeds import federation, tables

    if (FOLDER / "seeds").exists():
        return
    with tempfile.TemporaryDirectory() as folder:
        seeds = federation(Path(folder)) | tables()
    for kind, files in seeds.items():
        place = FOLDER / "seeds" / kind
        place.mkdir(parents=True)
        for number, data in enumerate(files):
            (place / str(number)).write_bytes(data)


def search(name: str, options: list[str]) -> None:
    """Searches with one target until the time is up or something breaks; does not come back."""
    import atheris

    from fedkt.errors import FedKTError

    # Comparisons of texts guide the search as those of numbers do; patterns cannot, their hook breaks json.
    atheris.enabled_hooks.add("str")
    with atheris.instrument_imports(include=["fedkt", "tomllib"], enable_loader_override=False):
        read, kind = TARGETS[name]

        def once(data: bytes) -> None:
            try:
                read(data)
            except FedKTError as reason:
                # Words that a terminal cannot show are a finding too.
                str(reason).encode("utf-8")

        # What is imported on first use has to be watched as well.
        for seed in (FOLDER / "seeds" / kind).iterdir():
            once(seed.read_bytes())
    corpus = FOLDER / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    atheris.Setup([sys.argv[0], str(corpus), str(FOLDER / "seeds" / kind), *options], once)
    atheris.Fuzz()


def run(name: str, seconds: int) -> bool:
    """Whether a target was searched without a finding; prints what came of it."""
    findings = FOLDER / "findings"
    findings.mkdir(parents=True, exist_ok=True)
    options = [f"-max_total_time={seconds}", f"-timeout={ENDLESS}", f"-rss_limit_mb={MEMORY}", "-print_final_stats=1"]
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "fuzz", "--search", name, *options, f"-artifact_prefix={findings}/{name}-"],
        capture_output=True,
        text=True,
        errors="replace",
    )
    lines = done.stderr.splitlines()
    tried = next((line.split()[-1] for line in lines if "number_of_executed_units" in line), "?")
    print(f"{name:10} {time.monotonic() - began:5.0f} s {tried:>9} inputs  {'ok' if not done.returncode else 'FOUND'}")
    if done.returncode:
        report = [line for line in lines if line.strip() and not line.startswith(("#", "INFO:", "stat::"))]
        print("\n".join(f"    {line[:200]}" for line in report[-25:]))
        print(f"    again: python -m fuzz --only {name} --file {findings}/{name}-…", flush=True)
    return not done.returncode


def main() -> int:
    """Exit code 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=int, default=60, help="for all targets together")
    parser.add_argument("--only", action="append", help="a target; several may be named")
    parser.add_argument("--file", type=Path, help="read this file once")
    parser.add_argument("--search", help=argparse.SUPPRESS)
    options, rest = parser.parse_known_args()
    if options.search:
        search(options.search, rest)
    names = options.only or list(TARGETS)
    if options.file is not None:
        print(TARGETS[names[0]][0](options.file.read_bytes()))
        return 0
    sow()
    fine = [run(name, max(1, options.seconds // len(names))) for name in names]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
