"""What a party with many rows costs: CPU seconds and peak memory of reading its file, and of its whole run.

    python benchmarks/large_party.py --rows 1000000 --rival ../main --json benchmarks/results/large-party.json
    python benchmarks/large_party.py --rows 10000000 --tasks party-parquet --json … --add

The file has 20 columns that the plan uses (15 numbers, 3 categories, a truth, a date), its label, and --spare numbers
that it does not use. The rival is an earlier fedkt: the folder of a checkout, run in turn on the same files. Every run
is a process of its own; its peak is that of all its processes together, looked at ten times a second. Files are made in
a temporary folder (--folder) and removed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from fedkt.report import versions

README = Path(__file__).with_name("README.md")
OWN = Path(__file__).parents[1]
MARKS = "<!-- large-party -->\n", "<!-- end large-party -->"
BLOCK = 250_000
NAMES = {
    "read-parquet": "Parquet: read, encoded, labels",
    "read-csv": "CSV: read, encoded, labels",
    "party-parquet": "`fedkt party` from Parquet, naive Bayes",
    "party-csv": "`fedkt party` from CSV, naive Bayes",
    "moments-parquet": "`fedkt party` from Parquet, moments",
}
READ = """
import sys
from pathlib import Path
from fedkt.data.mapping import NO_MAPPING, read_mapped
from fedkt.plan import read_plan
plan = read_plan(Path(sys.argv[1]))
try:
    table = read_mapped(plan.columns, Path(sys.argv[2]), NO_MAPPING, others=())
except TypeError:
    # An earlier fedkt reads all columns.
    table = read_mapped(plan.columns, Path(sys.argv[2]), NO_MAPPING)
X, y = plan.columns.encode(table), plan.columns.labels(table, plan.classes)
plan.columns.unseen_notes(table)
"""
RUN = "import sys; from fedkt.cli import app; app()"


def block(rows: int, spare: int, rng: np.random.Generator) -> Any:
    """Some rows of the table."""
    import pyarrow as pa

    y = rng.integers(0, 3, rows)
    columns: dict[str, Any] = {f"x{place}": rng.normal(size=rows) + (y == place % 3) for place in range(12)}
    for place in range(3):
        columns[f"k{place}"] = pa.array(rng.integers(0, 100, rows) + y, mask=rng.random(rows) < 0.01)
    columns["ward"] = np.array([f"ward-{place}" for place in range(40)])[rng.integers(0, 40, rows)]
    columns["city"] = np.array(["Zürich", "Genève", "Bern", "Łódź"])[rng.integers(0, 4, rows)]
    columns["kind"] = np.array(["new", "old"])[rng.integers(0, 2, rows)]
    columns["smoker"] = pa.array(rng.random(rows) < 0.3)
    days = np.datetime64("2010-01-01") + rng.integers(0, 5_000, rows)
    columns["day"] = pa.array(days.astype("datetime64[D]"))
    columns |= {f"spare{place}": rng.normal(size=rows) for place in range(spare)}
    columns["label"] = np.array(["a", "b", "c"])[y]
    return pa.table(columns)


def make_files(folder: Path, rows: int, spare: int, *, csv: bool) -> None:
    """The party's files, the public one and two plans."""
    from pyarrow.csv import CSVWriter, WriteOptions
    from pyarrow.parquet import ParquetWriter

    rng = np.random.default_rng(0)
    public = block(2_000, 0, rng)
    with CSVWriter(folder / "public.csv", public.schema) as writer:
        writer.write_table(public)
    first = block(min(rows, BLOCK), spare, rng)
    with ParquetWriter(folder / "north.parquet", first.schema) as parquet:
        text = CSVWriter(folder / "north.csv", first.schema, write_options=WriteOptions()) if csv else None
        for start in range(0, rows, BLOCK):
            table = first if start == 0 else block(min(BLOCK, rows - start), spare, rng)
            parquet.write_table(table)
            if text is not None:
                text.write_table(table)
        if text is not None:
            text.close()
    for name, more in {"party": ["--model", "naive-bayes"], "moments": ["--voting", "moments"]}.items():
        words = ["plan", "new", "--public", "public.csv", "--label", "label", "--classes", "a,b,c", *more]
        words += ["--party", "north", "--party", "south", "--output", f"{name}.toml"]
        subprocess.run(
            [sys.executable, "-c", RUN, *words], cwd=folder, env=environment(OWN), check=True, capture_output=True
        )


def environment(tree: Path) -> dict[str, str]:
    """The environment in which this checkout is imported, on one thread."""
    return {**os.environ, "PYTHONPATH": str(tree.resolve() / "src"), "OMP_NUM_THREADS": "1"}


def resident(pid: int) -> int:
    """Bytes of a process and of all that it started, as they are now."""
    try:
        own = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        started = [each.read_text().split() for each in Path(f"/proc/{pid}/task").glob("*/children")]
    except (OSError, IndexError):
        return 0
    return own + sum(resident(int(child)) for words in started for child in words)


def measure(task: str, tree: Path, folder: Path) -> dict[str, float | str]:
    """CPU seconds and peak memory of one task under a checkout; why there is none where it ends with an error."""
    what, _, kind = task.partition("-")
    data, plan = f"north.{kind}", "moments.toml" if what == "moments" else "party.toml"
    words = [READ, plan, data]
    if what != "read":
        words = [RUN, "party", plan, "--name", "north", "--data", data, "--public", "public.csv"]
        words += ["--work", f"work-{time.time_ns()}", "--output", "outbox"]
    before = os.times()
    with (folder / "errors.txt").open("w+") as errors:
        child = subprocess.Popen(
            [sys.executable, "-c", *words], cwd=folder, env=environment(tree), stdout=errors, stderr=errors
        )
        peak = 0
        while child.poll() is None:
            peak = max(peak, resident(child.pid))
            time.sleep(0.1)
        after = os.times()
        if child.returncode:
            errors.seek(0)
            return {"error": " ".join(errors.read().split())[-300:]}
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return {"cpu_seconds": round(spent, 2), "peak_mb": round(peak / 2**20)}


def section(results: list[dict[str, Any]]) -> str:
    """The results as a table of the README."""
    lines = ["| rows × columns | what | CPU s | before | peak MB | before |", "|---|---|---|---|---|---|"]
    for each in results:
        own, rival = each["own"], each.get("rival", {})
        before = [
            f"{rival[name]:,}" if name in rival else "refused" if rival else "" for name in ("cpu_seconds", "peak_mb")
        ]
        shape, what = f"{each['rows']:,} × {20 + each['spare']}", NAMES[each["task"]]
        figures = [f"{own['cpu_seconds']:,}", before[0], f"{own['peak_mb']:,}", before[1]]
        lines.append(f"| {' | '.join([shape, what, *figures])} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure every task with both checkouts in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--spare", type=int, default=0, help="columns of the file that the plan does not use")
    parser.add_argument("--tasks", nargs="+", choices=list(NAMES), default=["read-parquet", "party-parquet"])
    parser.add_argument("--rival", type=Path, default=None, help="a checkout of an earlier fedkt")
    parser.add_argument("--folder", type=Path, default=None, help="where the files are made for a while")
    parser.add_argument("--json", type=Path, default=None, help="where the results are written")
    parser.add_argument("--add", action="store_true", help="to those that the file has")
    parser.add_argument("--readme", action="store_true", help="write the results into README.md, and measure nothing")
    options = parser.parse_args()
    path = options.json or OWN / "benchmarks" / "results" / "large-party.json"
    if options.readme:
        head, _, rest = README.read_text(encoding="utf-8").partition(MARKS[0])
        table = section(json.loads(path.read_text(encoding="utf-8"))["results"])
        README.write_text(head + MARKS[0] + table + MARKS[1] + rest.partition(MARKS[1])[2], encoding="utf-8")
        return
    results = json.loads(path.read_text(encoding="utf-8"))["results"] if options.add and options.json else []
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        csv = any(task.endswith("csv") for task in options.tasks)
        make_files(folder, options.rows, options.spare, csv=csv)
        for task in options.tasks:
            found = {"task": task, "rows": options.rows, "spare": options.spare, "own": measure(task, OWN, folder)}
            if options.rival is not None:
                found["rival"] = measure(task, options.rival, folder)
            print(json.dumps(found), flush=True)
            results.append(found)
    if options.json is not None:
        facts = {"benchmark": "large-party", "machine": platform.processor() or platform.machine()}
        facts |= {"versions": versions(), "results": results}
        options.json.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
