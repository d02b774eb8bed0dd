"""`fedkt party --evaluate`: the final model beside the party's own, on the terminal of the party."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedkt.cli import options

if TYPE_CHECKING:
    from fedkt.lab.grid import Grid
    from fedkt.live.final_file import FinalModel
    from fedkt.live.judgement import Judgement
    from fedkt.plan import Plan


def evaluate_final(
    plan: Plan, name: str, path: Path, own: dict[str, Any], *, server_key: str | None, as_json: bool
) -> None:
    """Judge the final model in a file by rows that the party laid aside, and say what came of it."""
    from fedkt.cli.output import print_json, stderr
    from fedkt.live.final_file import read_final
    from fedkt.live.judgement import judge_final

    signer = None if server_key is None else options.public_key(server_key)
    final = read_final(path, server_key=signer)
    judgement = judge_final(plan, name, final, **own)
    for note in judgement.notes:
        stderr.say(f"note: {note}")
    if as_json:
        print_json({**judgement.as_dict(), "alarms": final.card.alarms})
    else:
        print_judgement(judgement, final=final, level=plan.level)


def print_judgement(judgement: Judgement, *, final: FinalModel, level: str) -> None:
    """The verdict first, then both models side by side."""
    from fedkt.cli.grids import print_below
    from fedkt.cli.output import stdout
    from fedkt.cli.quality import print_advice, print_verdict
    from fedkt.data.values import plural
    from fedkt.quality import verdicts

    if judgement.difference.worse:
        print_verdict(judgement.verdict)
    else:
        stdout.say(judgement.verdict)
    both = set(verdicts(judgement.final)) & set(verdicts(judgement.own))
    for sentence in verdicts(judgement.final):
        print_verdict(sentence if sentence in both else f"Final model: {sentence}")
    for sentence in final.card.alarms:
        print_verdict(f"Final model: {sentence}")
    print_advice(judgement.final, final.model.name)
    for sentence in verdicts(judgement.own):
        if sentence not in both:
            stdout.say(f"Your own model: {sentence}")
    print_below(side_by_side(judgement))
    tried = ", ".join(f"{family} {share:.1%}" for family, share in judgement.tried.items())
    chosen = f", chosen by the rows it learned from ({tried} on rows left out in turn)" if tried else ""
    stdout.say(f"Your own model: {judgement.family}, trained on your other {plural(judgement.learned, 'row')}{chosen}.")
    promise = " No noise covers these figures: think before you pass them on." if level != "L0" else ""
    holds = "" if judgement.bundle_known else "This holds if the server used that bundle. "
    stdout.say(f"{holds}Nothing of this was sent.{promise}")


def side_by_side(judgement: Judgement) -> Grid:
    """Both models, figure by figure."""
    from fedkt.lab.grid import Grid, GridCell
    from fedkt.lab.quality_tables import main_figures

    own = {figure: cells for figure, *cells in main_figures(judgement.own)}
    lines: list[list[str | GridCell]] = []
    for figure, words, value, between in main_figures(judgement.final):
        _, their_value, their_between = own.get(figure, ("", "–", ""))
        lines.append([words, GridCell(value, between), GridCell(their_value, their_between)])
    return Grid(
        ["Figure", "final model", "your own"],
        lines,
        f"{judgement.rows:,} rows laid aside",
        "In brackets: within what a figure lies with 95 %; of the log loss, that of the shares of the classes alone.",
    )
