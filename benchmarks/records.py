"""Level L2's promise around one record over every family and kind of file: how many teachers of a partition change.

    python benchmarks/records.py            the whole grid, a few minutes
    python benchmarks/records.py tree mlp   these families

A cell is the largest number of teachers of one partition that learned or said anything else after the record was
replaced, relabelled, moved or removed (the last two where records have identities), and of votes that moved on a query.
The promise is 1 and 1. The pieces are those of tests/contracts/test_records.py.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from fedkt.models.catalogue import MODELS
from one_record import KINDS, OWN_IDENTITIES, Run, planned, played, records_for

CHANGES = ("replaced", "relabelled", "moved", "removed")


def moved(before: Run, after: Run) -> tuple[int, int]:
    """Teachers of one partition that differ, and votes on one query that moved: the largest of each."""
    teachers = before.teachers | after.teachers
    changes = [who for who in teachers if before.teachers.get(who) != after.teachers.get(who)]
    most_teachers = max(sum(f"partition {number}," in who for who in changes) for number in (1, 2))
    votes = max(
        int(np.abs(one - other).sum(axis=1).max()) for one, other in zip(before.votes, after.votes, strict=True)
    )
    if before.files != after.files or before.manifest["claim"] != after.manifest["claim"]:
        raise SystemExit("other files were written, or another claim was made")
    return most_teachers, -(-votes // 2)


def cell(kind: str, family: str) -> str:
    """The figures of one kind of file and one family."""
    changes = CHANGES if kind in OWN_IDENTITIES else CHANGES[:2]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        adjacency = "add-or-remove" if kind in OWN_IDENTITIES else "replace-one"
        agreed = planned(folder, kind, family, adjacency=adjacency)
        before = played(folder / "before", *agreed, kind, records_for(family))
        figures = []
        for change in changes:
            after = played(folder / change, *agreed, kind, getattr(records_for(family), change)())
            figures.append(moved(before, after))
    return f"{max(each[0] for each in figures)} / {max(each[1] for each in figures)}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=f"of {', '.join(MODELS)}; all by default")
    families = parser.parse_args().families or list(MODELS)
    if unknown := set(families) - set(MODELS):
        parser.error(f"there is no family {', '.join(sorted(unknown))}; choose of {', '.join(MODELS)}")
    warnings.simplefilter("ignore")
    print("| family | " + " | ".join(KINDS) + " |")
    print("|---|" + "---|" * len(KINDS))
    for family in families:
        cells = [
            "–" if MODELS[family].only_images and kind not in ("image folder", "idx") else cell(kind, family)
            for kind in KINDS
        ]
        print(f"| {family} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
