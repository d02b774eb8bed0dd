"""Made `released/results`, once, with version 0.1.0 of fedkt, for `make_released.py`."""

import json
from pathlib import Path

from asked_for import DIGITS
from golden_files import run, write_json

import fedkt as library


def make_results(folder):
    """A line of every form in which runs were ever kept, what 0.1.0 reads from it, and a file of `fedkt compare`."""
    from fedkt.experiments.results import stored

    source = Path(library.__file__).parent.parent.parent / "paper" / "results"
    folder.mkdir()
    forms, expected = set(), {}
    for path in sorted(source.glob("*.jsonl")):
        line = path.read_text(encoding="utf-8").split("\n")[0] + "\n"
        first = json.loads(line)
        if first.get("developing"):
            # The choice is made on one kind of line, and measured on the other.
            line += next(each for each in path.open(encoding="utf-8") if not json.loads(each)["developing"])
        parts = [sorted(first), *(sorted(first[key]) for key in ("setting", "report") if key in first)]
        form = json.dumps(parts) + str(bool(first.get("report", {}).get("history")))
        if form in forms:
            continue
        forms.add(form)
        with (folder / path.name).open("a", encoding="utf-8") as file:
            file.write(line)
        if "setting" in first:
            expected[path.name] = {key: report.as_dict() for key, report in stored(folder / path.name).items()}
    write_json(folder / "runs.json", expected)
    write_json(folder / "tables.json", tables_of(folder))
    told = json.loads(run(*DIGITS, "--results", folder / "compare" / "digits.jsonl", "--json"))
    write_json(folder / "compare" / "digits.json", told)


def tables_of(folder):
    """What is made of the lines that are no runs."""
    from fedkt.experiments.private_tables import load_rows, paper_table
    from fedkt.experiments.results import read_lines
    from fedkt.experiments.tables import hospitals_table
    from fedkt.experiments.tuning import best_settings
    from fedkt.paper.private_curve import curve_of
    from fedkt.paper.private_curve_tables import point_table

    return {
        "heart-hospitals.jsonl": hospitals_table(folder / "heart-hospitals.jsonl"),
        "private-levels.jsonl": paper_table(load_rows(folder / "private-levels.jsonl"), "L1"),
        "private-curve.jsonl": point_table(curve_of(folder)),
        "tuning.jsonl": best_settings(read_lines(folder / "tuning.jsonl"), "mnist"),
    }
