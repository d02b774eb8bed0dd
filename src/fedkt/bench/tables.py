"""Results of benchmarks as tables, for a terminal and for the documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedkt.bench.cases import SUMS
from fedkt.lab.grid import Grid
from fedkt.lab.words import points, with_noun

WAYS = {"fedkt": "fedkt", "plain": "plain loop", "bagging": "XGBoost bagging"}
STAGES = (
    *("teachers", "votes", "students", "sums", "boosting", "margins"),
    *("asking", "vote", "final model", "test", "rest"),
)
Case = Mapping[str, Any]


def cost_grid(cases: Sequence[Case]) -> Grid:
    """What every way of every case costs."""
    head = ["benchmark", "way", "CPU s", "fedkt / way", "wall s", "start-up CPU s", "peak MB", "accuracy %"]
    lines = []
    for case in cases:
        for way, own in case["medians"].items():
            ratio = case["ratios"].get(way)
            figures = [f"{own[name]:.1f}" for name in ("wall_seconds", "start_seconds")]
            lines.append(
                [
                    *(case["name"], WAYS[way], f"{own['cpu_seconds']:.2f}"),
                    "" if ratio is None else range_in_words(ratio["cpu_seconds"]),
                    *(*figures, f"{own['peak_megabytes']:.0f}", points(own["accuracy"])),
                ]
            )
    return Grid(head, lines, "What fedkt costs beside a bare loop", words=("way",))


def range_in_words(ratio: Sequence[float]) -> str:
    """A median with the least and the largest, where these differ."""
    middle, low, high = (f"{each:.2f}" for each in ratio)
    return middle if low == high else f"{middle} ({low} … {high})"


def stages_grid(cases: Sequence[Case]) -> Grid:
    """CPU seconds by stage."""
    spent = [(case["name"], way, own["stages"]) for case in cases for way, own in case["medians"].items()]
    names = [name for name in STAGES if any(name in stages for *_, stages in spent)]
    lines = [
        [case, WAYS[way], *(f"{stages[name]:.2f}" if name in stages else "–" for name in names)]
        for case, way, stages in spent
    ]
    return Grid(["benchmark", "way", *names], lines, "CPU seconds by stage", words=("way",))


def growth_grid(axes: Sequence[Mapping[str, Any]]) -> Grid:
    """The exponents of every axis."""
    lines = []
    for each in axes:
        values = sorted({point["value"] for point in each["points"]})
        found = [each["exponents"].get(way) for way in WAYS]
        lines.append(
            [
                each["axis"].replace("_", " "),
                f"{values[0]:,} … {values[-1]:,}",
                *("–" if one is None else range_in_words([one["value"], one["low"], one["high"]]) for one in found),
                f"{each['ratios']['plain']:.2f}",
            ]
        )
    head = ["of", "from … to", *WAYS.values(), "fedkt / plain loop at the end"]
    return Grid(head, lines, "CPU seconds grow with the power", words=("from … to",))


def machine_in_words(machine: Mapping[str, Any]) -> str:
    """Where, when and with what it was measured."""
    libraries = ("fedkt", "scikit-learn", "xgboost", "xgboost-cpu", "torch", "numba", "numpy")
    found = [f"{name} {machine['versions'][name]}" for name in libraries if name in machine.get("versions", {})]
    loads = f"{machine['load_before'][0]:.1f} before and {machine['load_after'][0]:.1f} after"
    return (
        f"{machine['date']}, {machine['processor']}, {with_noun(machine['cores'], 'core', 'cores')}, load average "
        f"{loads}; Python {machine['python']}, {', '.join(found)}."
    )


def runs_in_words(case: Case) -> str:
    """What was played, and how often."""
    setting, times = case["setting"], len(case["runs"]["fedkt"])
    shape = f"{setting['model']}, s = {setting['partitions']}, t = {setting['subsets']}, "
    return (
        f"{case['name']}: {with_noun(setting['parties'], 'party', 'parties')}, {setting['private_rows']:,} private and "
        f"{setting['public_rows']:,} public rows, {'' if setting['voting'] == SUMS else shape}"
        f"seed {setting['seed']}, {with_noun(times, 'run', 'runs')} of each way"
    )
