"""Write the tables of docs/benchmarks.md, and the picture beside them, from what `fedkt bench --results` has kept.

    python benchmarks/page.py [--check]

With --check nothing is written; the exit code is 1 where the page is not what the results say.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

# `python benchmarks/page.py` finds what lies beside it, but not the package of the clone.
sys.path.insert(0, str(Path(__file__).parents[1]))

from fedkt.bench.pictures import growth_picture
from fedkt.bench.tables import cost_grid, growth_grid, machine_in_words, runs_in_words, stages_grid
from paper.markdown import markdown, replace_between

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "benchmarks" / "results", ROOT / "docs" / "benchmarks.md"
PICTURE = PAGE.with_name("benchmarks-growth.svg")
GROWTH = RESULTS / "growth.json"


def parts() -> dict[str, str]:
    """The generated parts of the page, by marker."""
    kept = [each for each in map(read, sorted(RESULTS.glob("*.json"))) if each.get("benchmarks")]
    cases = [case for each in kept for case in each["benchmarks"]]
    twice = [name for name, times in Counter(case["name"] for case in cases).items() if times > 1]
    if twice:
        raise SystemExit(f"{', '.join(twice)}: measured in two files of {RESULTS}. Remove the older one.")
    played = [f"- {runs_in_words(case)}." for case in cases]
    grown = read(GROWTH)
    return {
        "bench cost": markdown(cost_grid(cases)),
        "bench stages": markdown(stages_grid(cases)),
        "bench runs": "\n".join([*played, "", *map(measured_in_words, kept)]),
        "bench growth": f"{markdown(growth_grid(grown['growth']))}\n\n{measured_in_words(grown)}",
    }


def measured_in_words(result: dict[str, Any]) -> str:
    """Which command measured it, and on what."""
    return f"`{result['command']}`: {machine_in_words(result['machine'])}\n"


def read(path: Path) -> dict[str, Any]:
    """A kept result."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def main() -> int:
    """Write the page, or say whether it is what it should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, and fail where something would change")
    check = parser.parse_args().check
    before = text = PAGE.read_text(encoding="utf-8")
    for marker, new in parts().items():
        text = replace_between(text, marker, new.rstrip("\n"))
    if check:
        return int(text != before)
    PAGE.write_text(text, encoding="utf-8")
    growth_picture(read(GROWTH)["growth"]).save(PICTURE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
