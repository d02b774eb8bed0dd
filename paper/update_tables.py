"""Write the tables of README.md and docs, and the result in one sentence, anew from what paper/ holds.

    python paper/update_tables.py [--check]

With --check nothing is written; the exit code is 1 where a table is not what the results say.
"""

from __future__ import annotations

import sys
from pathlib import Path

# `python paper/update_tables.py` finds what lies beside it, but not the package itself.
sys.path.insert(0, str(Path(__file__).parents[1]))

from fedkt.lab.curves import accuracy_curves
from fedkt.lab.grid import Grid
from fedkt.lab.results import read_lines, stored
from fedkt.system.files import write_atomically
from paper.comparison import comparison_table, result_in_words, tables_beside, verdicts_in_words
from paper.markdown import in_bold, markdown, replace_between
from paper.moments_epsilon import epsilon_picture
from paper.moments_page import CURVE, moments_in_words, moments_parts
from paper.outcome import ResultTable
from paper.private_curve import curve_of
from paper.private_levels import LEVELS
from paper.private_pictures import accuracy_by_epsilon
from paper.private_tables import (
    EXACT,
    curve_table,
    epsilon_table,
    paper_bests,
    setting_rows,
    settings_in_words,
    settings_table,
)
from paper.public_rows_table import public_rows_tables
from paper.quality_results import behind_table, cells_of, copying_table, rules_table, summary_table, table_of_cells
from paper.tables import (
    bytes_table,
    effectiveness_table,
    epochs_table,
    expert_counts_table,
    expert_labels_table,
    hospitals_table,
    hours_table,
    median_party_table,
    networks_table,
    printed_effectiveness,
    provenance,
    rounds_table,
    seed_table,
    teacher_epochs_table,
)
from paper.text_example import RESULTS as TEXTS
from paper.text_example import text_table
from paper.tuning import pull_table, tuned_table
from paper.work import overview, result_tables
from paper.workplace import Workplace

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "paper" / "results"
EXPECTED = ROOT / "paper" / "expected.toml"
BALANCED = [RESULTS / "adult-balanced.jsonl", RESULTS / "cod-rna-balanced.jsonl"]
MNIST, SVHN = RESULTS / "mnist.jsonl", RESULTS / "svhn.jsonl"
ONE_ROUND = [RESULTS / "mnist-one-round.jsonl", RESULTS / "svhn-one-round.jsonl"]
TUNED = RESULTS / "mnist-tuned.jsonl"
ROUNDS = RESULTS / "rounds.jsonl"
PRIVATE = RESULTS / LEVELS.file
SWEEPS = ("public-size", "partitions", "subsets", "heterogeneity", "many-parties", "hospitals")
EXPERTS = ("experts", "experts-heterogeneity", "experts-parties", "experts-hospitals", "experts-failures")
SPACED = {
    *("endless pull", "tuned", "rounds to reach", "traffic", "private L1", "private L2", "private curve"),
    *("private reach", "hours", "expert labels", "expert counts"),
}
"""Tables whose rule was written with spaces, and stays so: a page changes where its numbers do, and nowhere else."""
DIRICHLET = [RESULTS / "adult-dirichlet.jsonl", RESULTS / "cod-rna-dirichlet.jsonl"]


FINALS = RESULTS / "final-quality.jsonl"
TABLES = ("adult", "cod-rna", "heart", "breast cancer", "made-up")
"""Those that final models are compared on."""
PRIVATE_FINALS = (4.0, 1.0)
"""Their ε at level L2."""


def final_models() -> dict[str, str | Grid]:
    """The generated parts of the page about final models."""
    plain = cells_of(FINALS, None)
    found: dict[str, str | Grid] = {"final summary": summary_table(plain), "final behind": behind_table(plain)}
    found |= {f"final {table}": table_of_cells(plain, table) for table in TABLES}
    for epsilon in PRIVATE_FINALS:
        cells = cells_of(FINALS, epsilon)
        found[f"final L2 {epsilon:g}"] = summary_table(cells)
        found |= {f"final L2 {epsilon:g} {table}": table_of_cells(cells, table) for table in TABLES}
    return found


def with_text(table: ResultTable) -> str:
    """An experiment's table, what stands beside it, and what its file says about it."""
    beside = [f"{grid.title}:\n\n{markdown(grid)}" for grid in tables_beside(table)]
    return "\n\n".join(part for part in (markdown(comparison_table(table)), *beside, table.experiment.text) if part)


def generated() -> dict[str, dict[str, str | Grid]]:
    """The generated parts, by file and marker."""
    place = Workplace(ROOT / "paper")
    found = {each.experiment.name: each for each in result_tables(place)}
    curve = curve_of(RESULTS)
    private = setting_rows(PRIVATE)
    return {
        "README.md": {
            "result": result_in_words(found["experts"], found["effectiveness"]),
            "plan experts": comparison_table(found["experts"]),
            "moments": moments_in_words(ROOT / "paper"),
        },
        "docs/reproduce.md": {
            "plan effectiveness": comparison_table(found["effectiveness"]),
            "counts": verdicts_in_words(found.values()),
            **{f"plan {name}": with_text(found[name]) for name in SWEEPS + EXPERTS},
            "endless pull": pull_table(ONE_ROUND[0], RESULTS / "mnist-pull.jsonl"),
            "effectiveness": effectiveness_table(BALANCED, EXPECTED),
            "networks": networks_table([MNIST, SVHN], EXPECTED, ("balanced", "auto")),
            "mnist epochs": epochs_table(MNIST, EXPECTED),
            "svhn epochs": epochs_table(SVHN, EXPECTED),
            "one round": networks_table(ONE_ROUND, EXPECTED, ("balanced", "10")),
            "tuned": tuned_table(
                read_lines(RESULTS / "tuning.jsonl"), "mnist", ONE_ROUND[0], TUNED, printed_effectiveness(EXPECTED)
            ),
            "rounds to reach": rounds_table(ROUNDS),
            "traffic": bytes_table(ROUNDS),
            "plain dirichlet": effectiveness_table(DIRICHLET, EXPECTED),
            "adult first seeds": effectiveness_table(BALANCED[:1], EXPECTED, seeds=range(10)),
            "adult seeds dirichlet": seed_table(DIRICHLET[0], "fedkt"),
            "hospitals": hospitals_table(RESULTS / "heart-hospitals.jsonl"),
            "private summary": settings_in_words(private),
            "private L1": in_bold(settings_table(private, "L1"), EXACT),
            "private L2": in_bold(settings_table(private, "L2"), EXACT),
            "private curve": curve_table(curve),
            "private reach": epsilon_table(curve, paper_bests(ROOT / "paper")),
            "sources": "\n".join(
                f"- `paper/results/{path.name}`: {provenance(path)}"
                for path in [*BALANCED, *DIRICHLET, MNIST, SVHN, *ONE_ROUND, TUNED, ROUNDS]
            ),
        },
        "docs/guide/data.md": {"texts": text_table(TEXTS)},
        "docs/final-models.md": final_models(),
        "docs/guide/public-rows.md": {"public rows": public_rows_tables(RESULTS / "public-rows.jsonl")},
        "docs/moments-results.md": {**moments_parts(ROOT / "paper")},
        "docs/decisions/0013-what-a-final-model-learns.md": {
            "hesitant students": rules_table(RESULTS / "hesitant-students.jsonl"),
            "copying": copying_table(RESULTS / "copying.jsonl"),
        },
        "paper/README.md": {"hours": hours_table(overview(place))},
        "docs/decisions/0008-networks-in-stacks.md": {
            "teacher epochs": teacher_epochs_table(RESULTS / "teacher-epochs.json")
        },
        "docs/decisions/0009-expert-voting.md": {
            "expert labels": expert_labels_table(RESULTS / "expert-labels.json"),
            "expert counts": expert_counts_table(RESULTS / "expert-counts.json"),
        },
        "docs/decisions/0005-adult-and-the-median-party.md": {
            "median party": median_party_table(RESULTS / "adult-median-party.json")
        },
    }


def main() -> int:
    """Write or check every generated part."""
    stale = []
    for name, parts in generated().items():
        path = ROOT / name
        text = old = path.read_text(encoding="utf-8")
        for marker, part in parts.items():
            text = replace_between(
                text, marker, markdown(part, spaced=marker in SPACED) if isinstance(part, Grid) else part
            )
        if text != old:
            stale.append(name)
            if "--check" not in sys.argv:
                write_atomically(path, text.encode())
    if "--check" not in sys.argv:
        accuracy_curves(list(stored(ROUNDS).values())).save(ROOT / "docs" / "svhn-rounds.svg")
        accuracy_by_epsilon(setting_rows(PRIVATE), curve_of(RESULTS)).save(ROOT / "docs" / "private-curve.svg")
        moments = epsilon_picture(RESULTS, ROOT / "paper")
        if moments is not None:
            moments.save(ROOT / "docs" / CURVE)
    print(f"changed: {', '.join(stale)}" if stale else "everything is up to date")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
