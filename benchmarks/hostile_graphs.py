"""What reading hostile graphs costs the process that reads them: peak memory and time, one process for each graph.

    python benchmarks/hostile_graphs.py [--mutants 10000]

The graphs are 60 MB of whatever grows most in a pattern or a parser, and deflate to less than 130 kB, as a bundle would
carry them. Mutants of an honest graph, with up to four bytes changed, are read in one process. Prints a table; the last
line is the result as JSON.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np

SIZE = 60 * 2**20
ENTRIES = {
    "a list of small numbers": b"\x40\x01",
    "a list of large numbers": b"\x40" + b"\xff" * 9 + b"\x01",
    "a list of floats": b"\x3d\0\0\0\0",
    "numbers and floats in turn": b"\x40\x01\x3d\0\0\0\0",
    "modes of tree nodes": b"\x4a\x04LEAF",
    "empty strings": b"\x4a\x00",
}


def varint(number: int) -> bytes:
    """A whole number as protobuf writes it."""
    return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80]) + varint(number >> 7)


def inside(content: bytes, *numbers: int) -> bytes:
    """A message inside others, by their field numbers from the innermost outwards."""
    for number in numbers:
        content = varint(number << 3 | 2) + varint(len(content)) + content
    return content


def graphs() -> dict[str, bytes]:
    """Hostile graphs by what they hold."""
    found = {name: inside(entry * (SIZE // len(entry)), 5, 1, 7) for name, entry in ENTRIES.items()}
    found["packed numbers"] = inside(b"\x01" * SIZE, 7, 5, 7)
    found["a long text"] = inside(("\U0001f600" + "a" * (SIZE - 4)).encode(), 6)
    found["empty nodes"] = inside(inside(b"", 1) * (SIZE // 2), 7)
    found["a stored table"] = inside(bytes(SIZE), 9, 5, 7)
    return found


def peak_from_now() -> int:
    """The memory of this process in kB, from which its peak is counted again.

    Not `ru_maxrss`: that is handed on to a started process, which would begin with the peak of whoever started it.
    """
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> int:
    """The most memory that this process has had at once, in kB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def read(data: bytes) -> dict[str, object]:
    """How a graph fares, and what that costs this process beside what it had."""
    from onnx import ModelProto

    from fedkt.errors import ModelError
    from fedkt.models.onnx_rules import check_graph

    ModelProto()
    held, before, started = peak_from_now(), resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    try:
        check_graph(data, n_features=3, n_classes=2)
        end = "accepted"
    except ModelError as reason:
        end = str(reason)
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    megabytes = (peak() - held) / 1_024
    return {"end": end, "seconds": time.perf_counter() - started, "cpu": cpu, "megabytes": megabytes}


def read_mutants(count: int) -> dict[str, object]:
    """The same over many mutants of one honest graph: the slowest, and the memory of all."""
    from sklearn.tree import DecisionTreeClassifier

    from fedkt.errors import ModelError
    from fedkt.models.base import fit_model
    from fedkt.models.exchange import to_onnx
    from fedkt.models.onnx_rules import check_graph

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 3)).astype(np.float32)
    model = fit_model(DecisionTreeClassifier(), rows, (rows[:, 0] * rows[:, 1] > 0).astype(int), rng=rng)
    honest = to_onnx(model, n_features=3, n_classes=2, check_rows=rows).data
    held, slowest, refused = peak_from_now(), 0.0, 0
    started = time.perf_counter()
    for _ in range(count):
        data = bytearray(honest)
        for place in rng.integers(len(data), size=rng.integers(1, 5)):
            data[place] = rng.integers(256)
        begun = time.perf_counter()
        try:
            check_graph(bytes(data), n_features=3, n_classes=2)
        except ModelError:
            refused += 1
        slowest = max(slowest, time.perf_counter() - begun)
    megabytes = (peak() - held) / 1_024
    seconds = time.perf_counter() - started
    return {"mutants": count, "refused": refused, "seconds": seconds, "slowest": slowest, "megabytes": megabytes}


def apart(what: str, data: bytes, *more: str) -> Any:
    """What a process of its own finds out."""
    command = [sys.executable, __file__, "--only", what, *more]
    return json.loads(subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout)


def main() -> None:
    """Reads each graph in a process of its own, and all mutants in another."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mutants", type=int, default=10_000)
    parser.add_argument("--only", choices=("one", "mutants"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        print(json.dumps(read(sys.stdin.buffer.read()) if options.only == "one" else read_mutants(options.mutants)))
        return
    result: dict[str, object] = {}
    print("| graph | deflated, kB | peak memory, MB | CPU s | end |\n|---|---|---|---|---|")
    for name, data in graphs().items():
        answer = apart("one", data)
        result[name] = answer | {"deflated": len(zlib.compress(data, 9))}
        kilobytes = len(zlib.compress(data, 9)) / 1_000
        print(
            f"| {name} | {kilobytes:.0f} | {answer['megabytes']:.0f} | {answer['cpu']:.2f} | {answer['end']} |",
            flush=True,
        )
    result["mutants"] = apart("mutants", b"", "--mutants", str(options.mutants))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
