"""Peak memory and seconds of the server's own process over bundles made to harm it.

    python benchmarks/hostile.py [--mutants 10000]

Every case runs in a process of its own that only looks at the files, as the server does before anything is run. Memory
is what the process takes beyond what it had before it opened the first file.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import resource
import struct
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from fedkt.live.arrivals import judge
from fedkt.live.final_file import read_final
from fedkt.live.inbox import gather, limits_for, look
from fedkt.live.mailbox import file_at, mailbox_at
from fedkt.plan import Plan, read_plan
from live_federation import build, party

MB = 2**20


def members(data: bytes) -> dict[str, bytes]:
    """The members of a bundle by name."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(content: dict[str, bytes], kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip file of these members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", kind) as archive:
        for name, data in content.items():
            archive.writestr(zipfile.ZipInfo(name), data, compress_type=kind)
    return buffer.getvalue()


def described(good: bytes, models: list[bytes], kind: int = zipfile.ZIP_DEFLATED, **changes: object) -> bytes:
    """A bundle of these models whose manifest fits them, but for the changes."""
    said = json.loads(members(good)["manifest.json"])
    files = {f"models/{place}.onnx": data for place, data in enumerate(models)}
    said["files"] = [
        {"name": name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()
    ]
    return zipped({"manifest.json": json.dumps(said | changes).encode(), **files}, kind)


def sparse(rng: np.random.Generator, size: int) -> bytes:
    """Bytes that shrink nearly, but not quite, a hundredfold."""
    data = np.zeros(size, np.uint8)
    data[rng.integers(0, size, size // 200)] = rng.integers(1, 255, size // 200)
    return data.tobytes()


def heavy_graph(good: bytes, rng: np.random.Generator) -> bytes:
    """A student that keeps the rules and holds a table of 48 MB that nobody uses."""
    from onnx import ModelProto, numpy_helper

    proto = ModelProto.FromString(members(good)["models/0.onnx"])
    table = np.frombuffer(sparse(rng, 48 * MB), np.float32)
    proto.graph.initializer.append(numpy_helper.from_array(np.where(np.isfinite(table), table, 0), "t"))
    return bytes(proto.SerializeToString())


def long_directory(good: bytes, entries: int) -> bytes:
    """The bundle with a directory of many more entries than its end record counts."""
    start = good.find(b"PK\x01\x02")
    entry = struct.pack("<4s6H3L5H2L", b"PK\x01\x02", 20, 20, 0, 0, 0, 33, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    directory = good[start:-22] + entry * entries
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 3, 3, len(directory), start, 0)
    return good[:start] + directory + end


def corpus(good: bytes, folder: Path) -> dict[str, Path]:
    """The hostile files, by what they are."""
    rng = np.random.default_rng(0)
    graphs = [heavy_graph(good, rng) for _ in range(2)]
    made = {
        "an honest bundle": good,
        "16 models of 16 MB where 2 are agreed": described(good, [sparse(rng, 16 * MB)] * 16),
        "2 models of 64 MB that are no graphs": described(good, [sparse(rng, 64 * MB - 1)] * 2),
        "2 graphs with 48 MB that nobody uses": described(good, graphs),
        "2 models of 1 million empty messages": described(
            good, [b"\x3a\x80\x89\x7a" + b"\x0a\x00" * 1_000_000] * 2, zipfile.ZIP_STORED
        ),
        "a directory of 2 million entries": long_directory(good, 2_000_000),
        "a manifest of 250,000 faults": zipped(
            {**members(good), "manifest.json": b'{"format":1,"arrays":[' + b"{}," * 250_000 + b"{}]}"},
            zipfile.ZIP_STORED,
        ),
        "another plan, 128 MB": described(good, [sparse(rng, 64 * MB - 1)] * 2, plan="0" * 64),
    }
    paths = {}
    for place, (name, data) in enumerate(made.items()):
        paths[name] = folder / f"case-{place}.fedkt"
        paths[name].write_bytes(data)
    twins = folder / "twins"
    twins.mkdir()
    for place in range(20):
        (twins / f"{place}.fedkt").write_bytes(described(good, graphs, versions={"twin": str(place)}))
    return paths | {"a folder of 20 twins of 96 MB each": twins}


def hostile_final(good: bytes) -> bytes:
    """A final model whose card is 12 MB of faults."""
    from onnx import ModelProto

    proto = ModelProto.FromString(members(good)["models/0.onnx"])
    note = proto.metadata_props.add()
    note.key, note.value = "fedkt", '{"classes":[' + "[]," * 4_000_000 + "[]]}"
    return bytes(proto.SerializeToString())


def mutant(good: bytes, rng: np.random.Generator) -> bytes:
    """The bundle with a few bytes changed: of the zip file, or of a member whose digest is then made to fit."""
    if rng.random() < 0.5:
        content = members(good)
        models = [changed(data, rng) for name, data in content.items() if name.startswith("models/")]
        if rng.random() < 0.5:
            return described(good, models)
        return zipped({**content, "manifest.json": changed(content["manifest.json"], rng)})
    return changed(good, rng)


def changed(data: bytes, rng: np.random.Generator) -> bytes:
    """The bytes with some flipped, cut out, doubled or made large."""
    made = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        place, kind = int(rng.integers(len(made))), rng.integers(4)
        if kind == 0:
            made[place] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            del made[place : place + int(rng.integers(1, 40))]
        elif kind == 2:
            made[place:place] = made[place : place + int(rng.integers(1, 200))]
        else:
            made[place : place + 4] = b"\xff\xff\xff\x7f"
        made = made or bytearray(b"\0")
    return bytes(made)


def measured(work: Callable[[], str]) -> tuple[float, float, str]:
    """Megabytes and seconds that a piece of work takes in a process of its own, and what it says."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        before, started = peak(), time.perf_counter()
        try:
            said = work()
        except Exception as reason:
            said = f"{type(reason).__name__}: {reason}"
        line = json.dumps([(peak() - before) / 1024, time.perf_counter() - started, said])
        os.write(writing, line.encode()[:60_000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        text = answer.read()
    os.waitpid(child, 0)
    megabytes, seconds, said = json.loads(text) if text else (float("nan"), float("nan"), "killed")
    return megabytes, seconds, said


def peak() -> int:
    """The most memory this process has had, in KB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def look_at(plan: Plan, path: Path) -> str:
    """What the server says to a file or a folder of files."""
    if path.is_dir():
        arrivals = gather(plan, mailbox_at(path))
        return f"{sum(bool(each.reason) for each in arrivals)} of {len(arrivals)} refused"
    return look(plan, *file_at(path)).reason or "accepted"


def look_at_mutants(plan: Plan, good: bytes, count: int) -> str:
    """What the server says to so many mutants, one after the other."""
    rng, refused, slowest = np.random.default_rng(1), 0, 0.0
    for _ in range(count):
        data, started = mutant(good, rng), time.perf_counter()
        refused += bool(judge(plan, data, "mutant", limits_for(plan)).reason)
        slowest = max(slowest, time.perf_counter() - started)
    return f"{refused} of {count} refused, the others keep every rule; the slowest took {slowest:.3f} s"


def main() -> None:
    """Print a line for each case."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--mutants", type=int, default=10_000)
    mutants = words.parse_args().mutants
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build(folder)
        party(folder, "north")
        plan, path = read_plan(folder / "plan.toml"), folder / "inbox" / "north.fedkt"
        good = path.read_bytes()
        look(plan, *file_at(path))
        cases: dict[str, tuple[int, Callable[[], str]]] = {}
        for label, each in corpus(good, folder).items():
            size = sum(file.stat().st_size for file in each.iterdir()) if each.is_dir() else each.stat().st_size
            cases[label] = size, lambda each=each: look_at(plan, each)
        final = folder / "final.onnx"
        final.write_bytes(hostile_final(good))
        cases["a final model with 12 MB of faults"] = final.stat().st_size, lambda: str(read_final(final))
        cases[f"{mutants:,} mutants"] = mutants * len(good), lambda: look_at_mutants(plan, good, mutants)
        print("| case | MB sent | MB of memory | seconds | verdict |\n|---|---|---|---|---|")
        for label, (size, work) in cases.items():
            megabytes, seconds, said = measured(work)
            print(f"| {label} | {size / MB:.2f} | {megabytes:.0f} | {seconds:.2f} | {said[:110]} |", flush=True)


if __name__ == "__main__":
    main()
