"""Parties and servers killed at every step that touches a file, and started again: do they end well?

    python benchmarks/kills.py [--every 1] [--kinds party-L0 party-L2 server-L0 server-L1]

A run is stopped at its first, second, third … act on a file (open for writing, rename, remove, lock, make or remove a
folder), by SIGKILL and by SIGTERM, in a process of its own. Then the same command is run to its end. It ends well if
that run succeeds, the files are whole and those of an undisturbed run where nothing is drawn at random, the ledger
holds the entries of one run only, and nothing unfinished is left. A party at L2 that had told of its bundle before it
was stopped may be refused: started again it is another run, which the budget does not cover.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from fedkt.cli import main as command
from fedkt.live.final_file import read_final
from fedkt.live.inbox import look
from fedkt.live.mailbox import file_at
from fedkt.plan import read_plan
from live_federation import NAMES, build, new_plan, party

NOISE = {
    "L0": (),
    "L1": ("--level", "L1", "--mechanism", "laplace", "--gamma", "0.5", "--queries", "40"),
    "L2": ("--level", "L2", "--mechanism", "gaussian", "--sigma", "8", "--queries", "30"),
}
TOLD = "had told of its bundle"
ACTS = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.truncate", "fcntl.flock"}


def in_a_child(work: Callable[[], None], output: str = os.devnull) -> int:
    """How a piece of work ends in a process of its own: its exit code, or the signal's number, negative."""
    child = os.fork()
    if not child:
        printed = os.open(output, os.O_RDWR | os.O_CREAT)
        os.dup2(printed, 1)
        os.dup2(os.open(os.devnull, os.O_RDWR), 2)
        code = 0
        try:
            work()
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 1
        except BaseException:
            code = 99
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def stop_at(step: int, number: int, folder: Path) -> None:
    """Have this process sent a signal at an act on a file of this folder."""
    done, started = 0, os.getpid()

    def seen(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal done
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        ours = event == "fcntl.flock" or str(arguments[0] if arguments else "").startswith(str(folder))
        if (event in ACTS or writes) and ours and os.getpid() == started:
            done += 1
            if done == step:
                os.kill(started, number)

    sys.addaudithook(seen)


def words_for(kind: str, folder: Path) -> list[str]:
    """The command of a party or a server."""
    who, level = kind.split("-")
    common = [who, str(folder / "plan.toml"), "--public", str(folder / "public.csv")]
    if who == "server":
        more = ["--bundles", str(folder / "inbox"), "-o", str(folder / "result")]
        return [*common, *more, *(("--ledger", str(folder / "server.ledger")) if level == "L1" else ())]
    more = ["--name", "north", "--data", str(folder / "north.csv"), "-o", str(folder / "outbox")]
    return [*common, *more, "--work", str(folder / "work")]


def run(words: list[str]) -> None:
    """The command line in this process."""
    sys.argv = ["fedkt", *words]
    command()


def outcome(kind: str, folder: Path) -> dict[str, object]:
    """What is there after a run: what must be the same however often it was stopped."""
    ledgers = sorted(folder.glob("*.ledger"))
    entries = [sum(1 for _ in path.open()) for path in ledgers]
    left = [str(path.relative_to(folder)) for path in folder.rglob("*") if path.name.endswith(".part")]
    left += ["work"] if (folder / "work").exists() else []
    left += [path.name for path in folder.glob("result/.*")]
    if kind.startswith("party"):
        arrival = look(read_plan(folder / "plan.toml"), *file_at(folder / "outbox" / "north.fedkt"))
        made = arrival.reason or (arrival.identity if kind.endswith("L0") else "whole")
    else:
        final = folder / "result" / "final.onnx"
        read_final(final)
        report = json.loads((folder / "result" / "report.json").read_text())
        same = report["final_sha256"] == hashlib.sha256(final.read_bytes()).hexdigest()
        made = report["final_sha256"] if same and kind.endswith("L0") else same
    return {"entries": entries, "left": left, "made": made}


def trial(kind: str, prepared: Path, step: int, number: int, expected: dict[str, object]) -> tuple[bool, str]:
    """Whether the first run reached the step, and how the second ended."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "f"
        shutil.copytree(prepared, folder)
        words = words_for(kind, folder)
        printed = Path(name) / "printed"
        first = in_a_child(lambda: (stop_at(step, number, folder), run(words))[1], str(printed))
        reached = first == (-number if number == signal.SIGKILL else 128 + number)
        second = in_a_child(lambda: run(words))
        told = kind == "party-L2" and "Send this one file" in printed.read_text()
        if second and not told:
            return reached, f"started again it left with {second}"
        found = outcome(kind, folder)
        if second:
            return reached, TOLD if found | {"left": []} == expected else f"{found} instead of {expected}"
        return reached, "well" if found == expected else f"{found} instead of {expected}"


def main() -> None:
    """Print a line for each kind of run and signal."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--every", type=int, default=1, help="Only every so many steps.")
    words.add_argument("--kinds", nargs="+", default=["party-L0", "party-L2", "server-L0", "server-L1"])
    options = words.parse_args()
    print("| run | signal | steps | ended well | had told of its bundle | other ends |\n|---|---|---|---|---|---|")
    for kind in options.kinds:
        with tempfile.TemporaryDirectory() as name:
            prepared, undisturbed = Path(name) / "p", Path(name) / "u"
            prepared.mkdir()

            def prepare(prepared: Path = prepared, kind: str = kind) -> None:
                build(prepared)
                new_plan(prepared, "--force", *NOISE[kind.split("-")[1]])
                for each in NAMES if kind.startswith("server") else ():
                    party(prepared, each)

            assert in_a_child(prepare) == 0
            shutil.copytree(prepared, undisturbed)
            assert in_a_child(lambda kind=kind, folder=undisturbed: run(words_for(kind, folder))) == 0
            expected = outcome(kind, undisturbed)
            for number in (signal.SIGKILL, signal.SIGTERM):
                ends: Counter[str] = Counter()
                step, reached = 1, True
                while reached:
                    reached, end = trial(kind, prepared, step, number, expected)
                    ends.update([end] if reached else [])
                    step += options.every
                others = "; ".join(f"{count} × {end}" for end, count in ends.items() if end not in ("well", TOLD))
                well = f"{ends['well']} | {ends[TOLD]} | {others or 'none'}"
                print(f"| {kind} | {number.name} | {sum(ends.values())} | {well} |", flush=True)


if __name__ == "__main__":
    main()
