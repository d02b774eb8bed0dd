"""Writes plans and bundles of moments into `written/moments`, the form in which 0.2 sends sums.

    .venv/bin/python tests/golden/make_moments.py

Every file in it must be read for ever, as it is: it is made again only before 0.2.0 is released.
"""

import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).parents[2]))

from golden_files import write_json
from golden_reading import plan_in, sums_told, told
from made_up_rows import write_table

FOLDER = Path(__file__).parent / "written" / "moments"
LEVELS = {
    "exact": ("--rows", "north=200"),
    "noisy": ("--rows", "north=200", "--level", "L2", "--epsilon", "4"),
    "shares": ("--level", "L1", "--epsilon", "8", "--class-shares", "ill=0.4"),
}


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    write_table(FOLDER / "public.csv", seed=31, rows=60, labels=False)
    facts = {}
    with tempfile.TemporaryDirectory() as place:
        write_table(Path(place) / "north.csv", seed=32, rows=90)
        for name, words in LEVELS.items():
            plan = FOLDER / f"{name}.toml"
            made = ("plan", "new", "--public", FOLDER / "public.csv", "--label", "outcome", "--classes", "ill,well")
            command(*made, "--voting", "moments", "--party", "north", "-o", plan, *words)
            sent = ("party", plan, "--name", "north", "--data", Path(place) / "north.csv")
            command(*sent, "--public", FOLDER / "public.csv", "-o", place, "--work", Path(place) / "work")
            shutil.copy(Path(place) / "north.fedkt", FOLDER / f"{name}.fedkt")
            inspected = told("inspect", FOLDER / f"{name}.fedkt", "--plan", plan)
            facts[name] = {
                "digest": plan_in(plan).digest,
                "sums": inspected["sums"],
                "told": sums_told(plan, FOLDER / f"{name}.fedkt"),
            }
    write_json(FOLDER / "moments.json", facts)


def command(*words):
    """Run a command, which must succeed."""
    from command_line import fedkt

    done = fedkt(*map(str, words), *(("--force",) if words[:2] == ("plan", "new") else ()))
    assert done.returncode == 0, (words, done.stderr)


if __name__ == "__main__":
    main()
