"""The generated parts of `docs/moments-results.md`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fedkt.lab.grid import Grid
from paper.markdown import markdown
from paper.moments_epsilon import epsilon_picture, epsilon_table
from paper.moments_results import (
    DATA,
    dataset_table,
    figure,
    main_table,
    runs_of,
    spread_table,
)
from paper.moments_rival_tables import attack_table, rivals_table
from paper.moments_study import EXPERT, LEVELS, MOMENTS, SPREAD_OF

CURVE = "moments-curve.svg"
"""The picture, beside the page."""


def moments_parts(folder: Path) -> dict[str, str]:
    """Every part of the page by its marker; a part without runs says so."""
    results = folder / "results"
    main = results / "moments-main.jsonl"
    return {
        "moments main": said(main_table(main), "moments_study.py main"),
        "moments details": headed(((data, dataset_table(main, data)) for data in DATA), "moments_study.py main"),
        "moments curve": f"![Accuracy against ε]({CURVE})" if epsilon_picture(results, folder) else "",
        "moments epsilon": headed(
            (
                (f"{data}, level {level}", epsilon_table(results, data, level, folder))
                for level, datasets in LEVELS.items()
                for data in datasets
            ),
            "moments_study.py epsilon",
        ),
        "moments spread": headed(
            ((data, spread_table(results, data)) for data in SPREAD_OF), "moments_study.py spread"
        ),
        "moments rivals": said(rivals_table(results), "moments_rivals.py bagging"),
        **{
            f"moments {attack}": said(attack_table(results, attack), f"moments_attack.py {attack}")
            for attack in ("model", "message", "audit")
        },
    }


def said(table: Grid | None, command: str) -> str:
    """The table, or that there are no runs."""
    return markdown(table) if table else f"Nobody has run `python paper/{command}` yet: there are no numbers."


def headed(tables: Iterable[tuple[str, Grid | None]], command: str) -> str:
    """Those tables that have runs, each under its heading."""
    parts = [f"### {name}\n\n{markdown(table)}" for name, table in tables if table]
    return "\n\n".join(parts) or said(None, command)


def moments_in_words(folder: Path) -> str:
    """The result in two sentences: without noise beside expert voting, and with a record protected at ε = 1."""
    main, private = (runs_of(folder / "results" / f"moments-{part}.jsonl") for part in ("main", "epsilon"))
    plain = [(data, main.method(data, MOMENTS), main.method(data, EXPERT)) for data in DATA]
    known = [(data, figure(ours), figure(theirs)) for data, ours, theirs in plain if len(ours) > 1 and theirs]
    if not known:
        return said(None, "moments_study.py main")
    common = {"level": "L2", "epsilon": 1.0, "partition": "balanced"}
    noisy = [(data, private.method(data, MOMENTS, parties=parties, **common)) for data, parties in LEVELS["L2"].items()]
    told = [f"{middle(figure(runs))} % of {data}" for data, runs in noisy if len(runs) > 1]
    right = one_after_the_other(f"{middle(ours)} % of {data}" for data, ours, _ in known)
    beside = one_after_the_other(middle(theirs) for _, _, theirs in known)
    page = "[moments measured](docs/moments-results.md), with seeds and spread"
    return (
        f"The final model is right on {right}, where expert voting gives {beside} %. With every record protected at "
        f"ε = 1 it is right on {one_after_the_other(told)} ({page})."
    )


def middle(words: str) -> str:
    """A mean without its spread."""
    return words.partition(" ")[0]


def one_after_the_other(parts: Iterable[str]) -> str:
    """a, b and c."""
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last
