"""Writes a schema and what a party tells of its columns into `written/marginals`, the form in which 0.2 tells it.

    .venv/bin/python tests/golden/make_marginals.py

Every file in it must be read for ever, as it is: it is made again only before 0.2.0 is released.
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).parents[2]))

from made_up_rows import write_table

from command_line import fedkt

FOLDER = Path(__file__).parent / "written" / "marginals"


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        rows, schema = Path(place) / "north.csv", FOLDER / "schema.toml"
        write_table(rows, seed=33, rows=200)
        command("schema", rows, "--label", "outcome", "--shares", "--bins", "4", "-o", schema, "--force")
        for name, words in (("exact", ()), ("noisy", ("--epsilon", "4"))):
            told = ("marginals", rows, "--schema", schema, "--name", "north")
            command(*told, "-o", FOLDER / f"{name}.toml", "--force", *words)


def command(*words):
    done = fedkt("public", *map(str, words))
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    main()
