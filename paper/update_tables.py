"""Write the tables of README.md and docs anew from paper/results and paper/expected.toml.

    python paper/update_tables.py [--check]

With --check nothing is written; the exit code is 1 where a table is not what the results say.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fedkt.lab.curves import save_curves
from fedkt.lab.network_tables import epochs_table, networks_table, teacher_epochs_table
from fedkt.lab.private_tables import load_rows, paper_table, summary
from fedkt.lab.results import read_lines, stored
from fedkt.lab.tables import (
    effectiveness,
    effectiveness_table,
    expert_counts_table,
    expert_labels_table,
    hospitals_table,
    hours_table,
    median_party_table,
    provenance,
    reach_table,
    replace_between,
    seed_table,
    traffic_table,
)
from fedkt.lab.tuning import pull_table, tuned_table
from fedkt.paper.markdown import beside_in_markdown, table_in_markdown, verdicts_in_markdown
from fedkt.paper.outcome import Table
from fedkt.paper.private_curve import curve_of
from fedkt.paper.private_curve_tables import point_table, targets
from fedkt.paper.private_curve_tables import reach_table as private_reach_table
from fedkt.paper.private_pictures import save_accuracy_by_epsilon
from fedkt.paper.work import overview
from fedkt.paper.work import tables as all_tables
from fedkt.system.files import write_atomically

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "paper" / "results"
EXPECTED = ROOT / "paper" / "expected.toml"
BALANCED = [RESULTS / "adult-balanced.jsonl", RESULTS / "cod-rna-balanced.jsonl"]
MNIST, SVHN = RESULTS / "mnist.jsonl", RESULTS / "svhn.jsonl"
ONE_ROUND = [RESULTS / "mnist-one-round.jsonl", RESULTS / "svhn-one-round.jsonl"]
TUNED = RESULTS / "mnist-tuned.jsonl"
ROUNDS = RESULTS / "rounds.jsonl"
SWEEPS = ("public-size", "partitions", "subsets", "heterogeneity", "many-parties", "hospitals")
EXPERTS = ("experts", "experts-heterogeneity", "experts-parties", "experts-hospitals", "experts-failures")
DIRICHLET = [RESULTS / "adult-dirichlet.jsonl", RESULTS / "cod-rna-dirichlet.jsonl"]


def with_text(table: Table) -> str:
    """A plan's table, what stands beside it, and what its file says about it."""
    parts = (table_in_markdown(table), beside_in_markdown(table), table.plan.text)
    return "\n\n".join(part for part in parts if part)


def tables() -> dict[str, dict[str, str]]:
    """The generated parts, by file and marker."""
    sources = "\n".join(
        f"- `paper/results/{path.name}`: {provenance(path)}"
        for path in [*BALANCED, *DIRICHLET, MNIST, SVHN, *ONE_ROUND, TUNED, ROUNDS]
    )
    networks = networks_table([MNIST, SVHN], EXPECTED, ("balanced", "auto"))
    plans = {each.plan.name: each for each in all_tables(ROOT / "paper")}
    curve = curve_of(RESULTS)
    private = load_rows(RESULTS / "private-levels.jsonl")
    return {
        "README.md": {f"plan {name}": table_in_markdown(plans[name]) for name in ("effectiveness", "experts")},
        "docs/reproduce.md": {
            "plan effectiveness": table_in_markdown(plans["effectiveness"]),
            "counts": verdicts_in_markdown(plans.values()),
            **{f"plan {name}": with_text(plans[name]) for name in SWEEPS + EXPERTS},
            "endless pull": pull_table(ONE_ROUND[0], RESULTS / "mnist-pull.jsonl"),
            "effectiveness": effectiveness_table(BALANCED, EXPECTED),
            "networks": networks,
            "mnist epochs": epochs_table(MNIST, EXPECTED),
            "svhn epochs": epochs_table(SVHN, EXPECTED),
            "one round": networks_table(ONE_ROUND, EXPECTED, ("balanced", "10")),
            "tuned": tuned_table(
                read_lines(RESULTS / "tuning.jsonl"), "mnist", ONE_ROUND[0], TUNED, effectiveness(EXPECTED)
            ),
            "rounds to reach": reach_table(ROUNDS),
            "traffic": traffic_table(ROUNDS),
            "plain dirichlet": effectiveness_table(DIRICHLET, EXPECTED),
            "adult first seeds": effectiveness_table(BALANCED[:1], EXPECTED, seeds=range(10)),
            "adult seeds dirichlet": seed_table(DIRICHLET[0], "fedkt"),
            "hospitals": hospitals_table(RESULTS / "heart-hospitals.jsonl"),
            "private summary": summary(private),
            "private L1": paper_table(private, "L1"),
            "private L2": paper_table(private, "L2"),
            "private curve": point_table(curve),
            "private reach": private_reach_table(curve, targets(ROOT / "paper")),
            "sources": sources,
        },
        "paper/README.md": {"hours": hours_table(overview(ROOT / "paper"))},
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
    for name, parts in tables().items():
        path = ROOT / name
        text = old = path.read_text(encoding="utf-8")
        for marker, table in parts.items():
            text = replace_between(text, marker, table)
        if text != old:
            stale.append(name)
            if "--check" not in sys.argv:
                write_atomically(path, text.encode())
    if "--check" not in sys.argv:
        save_curves(ROOT / "docs" / "svhn-rounds.svg", list(stored(ROUNDS).values()))
        private = load_rows(RESULTS / "private-levels.jsonl")
        save_accuracy_by_epsilon(ROOT / "docs" / "private-curve.svg", private, curve_of(RESULTS))
    print(f"changed: {', '.join(stale)}" if stale else "everything is up to date")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
