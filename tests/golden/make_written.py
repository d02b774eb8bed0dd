"""Writes what today's fedkt makes into `written`, for tests that hold a redesign to it.

    .venv/bin/python tests/golden/make_written.py

Made with 0.2.0.dev0, before the tree was redesigned. Run again only in a commit that means to change what fedkt gives,
and that says so in CHANGELOG.md; the folder `released` is never made again.
"""

import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).parents[2]))

from asked_for import ON_DIGITS, SIMULATIONS
from golden_files import write_json
from golden_reading import circumstances, told
from golden_runs import classifier_answers, plain_report

HERE = Path(__file__).parent
FOLDER = HERE / "written"


def main():
    FOLDER.mkdir(exist_ok=True)
    write_json(FOLDER / "circumstances.json", circumstances())
    reports = {
        name: plain_report(told("simulate", "digits", *ON_DIGITS, *words)) for name, words in SIMULATIONS.items()
    }
    write_json(FOLDER / "reports.json", reports)
    write_json(FOLDER / "classifier.json", classifier_answers())
    with tempfile.TemporaryDirectory() as place:
        ledger = Path(shutil.copy(HERE / "released" / "private" / "north.ledger", place))
        shutil.copy(f"{HERE / 'released' / 'private' / 'north.ledger'}.head", place)
        write_json(FOLDER / "ledger.json", told("privacy", "ledger", ledger)["totals"][0])


if __name__ == "__main__":
    main()
