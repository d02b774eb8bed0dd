"""Accuracy against ε, of moments and of what stands beside them: as tables, and as a picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedkt.lab.grid import Grid
from fedkt.lab.results import over_seeds, read_lines
from fedkt.lab.svg import GRID, PALETTE, QUIET, Picture
from fedkt.lab.words import distinct, points_with_spread
from paper.moments_central import EPSILONS as ALL_EPSILONS
from paper.moments_results import Entry, runs_of
from paper.moments_study import CLASS_SHARES, EXPERT, LEVELS, MOMENTS, SHARES, VOTES, knows_shares
from paper.panels import in_panels
from paper.private_study import MISPRINT, paper_settings
from paper.private_tables import paper_bests

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Pairs = list[tuple[float, float]]
"""Accuracy and balanced accuracy, of each seed and draw."""
Curves = dict[str, dict[float, Pairs]]
"""By the name of a method, and by ε."""
EPSILONS = sorted(ALL_EPSILONS)
PARTITIONS = {"het": "balanced", "hom": "even"}
COLOURS = {
    "moments": PALETTE["sky"],
    "moments, class shares public": PALETTE["blue"],
    "votes": PALETTE["red"],
    "expert votes": PALETTE["green"],
    "central DP-SGD, columns": QUIET,
}
"""Of the curves in the picture."""


def curves_of(results: Path, dataset: str, level: str, kind: str) -> Curves:
    """What was measured of every method on one partition; those without a run are left out."""
    runs = runs_of(results / "moments-epsilon.jsonl")
    common = {"partition": PARTITIONS[kind], "level": level, "parties": LEVELS[level][dataset]}

    def reports(method: str, **more: Any) -> Callable[[float], Pairs]:
        def at(epsilon: float) -> Pairs:
            found = runs.method(dataset, method, epsilon=epsilon, **common, **more).values()
            return [(each.accuracy or 0.0, each.balanced_accuracy or 0.0) for each in found]

        return at

    curves = {"moments": reports(MOMENTS)}
    if level == "L1" and knows_shares():
        curves["moments, class shares public"] = reports(MOMENTS, **{SHARES: CLASS_SHARES[dataset]})
    curves["votes"] = votes_of(read_lines(results / "moments-votes.jsonl"), f"{dataset}-{level}-{kind}")
    if level == "L2":
        curves["expert votes"] = reports(EXPERT, **VOTES)
        central = read_lines(results / "moments-central.jsonl")
        curves["central DP-SGD, columns"] = central_of(central, dataset, "columns")
        curves["central DP-SGD, φ"] = central_of(central, dataset, "features")
    measured = {name: {epsilon: pairs for epsilon in EPSILONS if (pairs := at(epsilon))} for name, at in curves.items()}
    return {name: points for name, points in measured.items() if points}


def votes_of(entries: Sequence[Entry], group: str) -> Callable[[float], Pairs]:
    """Noisy consistent votes of a group, all draws of all seeds."""

    def at(epsilon: float) -> Pairs:
        rows = [row for each in entries if each["group"] == group for row in each["rows"] if row["epsilon"] == epsilon]
        return [pair for row in rows for pair in zip(row["accuracy"], row["balanced_accuracy"], strict=True)]

    return at


def central_of(entries: Sequence[Entry], dataset: str, inputs: str) -> Callable[[float], Pairs]:
    """Central training on these inputs."""

    def at(epsilon: float) -> Pairs:
        wanted = {"dataset": dataset, "inputs": inputs, "epsilon": epsilon}
        return [(each["accuracy"], each["balanced_accuracy"]) for each in entries if wanted.items() <= each.items()]

    return at


def epsilon_table(results: Path, dataset: str, level: str, folder: Path) -> Grid | None:
    """Accuracy / balanced accuracy at every ε; None where nothing was run."""
    curves = {kind: curves_of(results, dataset, level, kind) for kind in PARTITIONS}
    columns = {
        # Rows in one place have no partition.
        name if name.startswith("central") else f"{name}, {kind}": curves[kind][name]
        for name in (*COLOURS, "central DP-SGD, φ")
        for kind in PARTITIONS
        if name in curves[kind]
    }
    if not columns:
        return None
    lines = [
        [f"{epsilon:g}", *(in_words(points.get(epsilon, [])) for points in columns.values())] for epsilon in EPSILONS
    ]
    return Grid(["ε", *columns], lines, caption=paper_in_words(dataset, level, folder))


def in_words(pairs: Pairs) -> str:
    """Accuracy / balanced accuracy, a dash for nothing."""
    sides = [points_with_spread(over_seeds([pair[side] for pair in pairs]), len(pairs) > 1) for side in (0, 1)]
    return " / ".join(sides) if pairs else "–"


def paper_in_words(dataset: str, level: str, folder: Path) -> str:
    """The best that FedKT's paper prints, with its ε."""
    bests = paper_bests(folder)
    found = [
        f"{kind} {best.accuracy:g} at ε = {best.epsilon:g} ({best.table}{', a misprint' if best.misprint else ''})"
        for kind in PARTITIONS
        for best in bests.get(f"{dataset}-{level}-{kind}", [])
    ]
    return f"FedKT's paper prints at best: {distinct(found)}." if found else ""


def epsilon_picture(results: Path, folder: Path) -> Picture | None:
    """A panel for each dataset, level and partition, with the paper's points; None where nothing was run."""
    groups = {
        f"{dataset}-{level}-{kind}": curves_of(results, dataset, level, kind)
        for level, datasets in LEVELS.items()
        for dataset in datasets
        for kind in PARTITIONS
    }
    measured = {name: curves for name, curves in groups.items() if "moments" in curves}
    if not measured:
        return None
    return Picture("Accuracy against epsilon: moments", described(measured), lambda: drawn(measured, folder))


def drawn(groups: Mapping[str, Curves], folder: Path) -> Figure:
    """All panels."""
    printed = paper_settings(folder)

    def panel(axes: Axes, group: str) -> None:
        own = [each for each in printed.get(group, ()) if each.paper_kind != MISPRINT]
        axes.set_title(group.replace("-L", ", L").replace("-h", ", h"), fontsize=8.5)
        for name, colour in COLOURS.items():
            points = groups[group].get(name, {})
            means = [100 * np.mean([pair[0] for pair in pairs]) for pairs in points.values()]
            axes.plot(list(points), means, marker="s", markersize=3, linewidth=1.4, color=colour, label=name)
        x, y = [each.paper_epsilon for each in own], [each.paper_accuracy for each in own]
        axes.plot(x, y, linestyle="", marker="o", markersize=3, color=PALETTE["ink"], label="the paper, as printed")
        axes.set_xscale("log")
        axes.set_xticks([0.1, 0.25, 0.5, 1, 2, 4, 8], [".1", "¼", "½", "1", "2", "4", "8"])
        axes.minorticks_off()
        axes.set_xlabel("ε")
        axes.grid(color=GRID, linewidth=0.6)

    return in_panels(list(groups), panel, height=2.5, legend=0.5, columns=3)


def described(groups: Mapping[str, Curves]) -> str:
    """The picture for those who cannot see it: the curves of moments."""
    return "; ".join(
        f"{group}, ε {epsilon:g}: {100 * np.mean([pair[0] for pair in pairs]):.1f} %"
        for group, curves in groups.items()
        for epsilon, pairs in curves["moments"].items()
    )
