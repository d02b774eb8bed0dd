"""The model card: what a final model is, what it was made of, how good it was found, and what it is not for.

Markdown for people, beside the final model and inside it. All of it comes from the plan and the report, so that it
keeps to itself what the report does; nothing in it changes when the same run is made again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from fedkt.data.values import plural
from fedkt.final_card import MAX_CARD_TEXT
from fedkt.plan import Plan
from fedkt.quality import Quality, verdicts
from fedkt.quality.words import threshold_advice
from fedkt.report import Report, protects_parties
from fedkt.system.files import printable_text

MOST_NAMES = 20
MOST_NOTES = 20
LONGEST_NAME = 60
SPECIAL = re.compile(r"[\\`*\[\]<>|~]|(?<!\w)_|_(?!\w)")
"""What Markdown takes for more than itself; an underscore only at the edge of a word."""
UNKNOWN = "Not measured: no labelled rows were given to the server (`fedkt server --test`)."


def write_card(
    plan: Plan,
    report: Report,
    *,
    probabilities: bool,
    absent: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> str:
    """The card of a final model; `absent` are the parties of the plan that had no vote.

    `notes` are those of the report that are about the model: what hangs on ledgers and folders would give the final
    model of the same run other bytes.
    """
    texts = plan.card
    lines = [f"# Model card: {escape(plan.task)}", ""]
    lines += [line for alarm in report.alarms for line in (f"> **Attention.** {escape(alarm)}", "")]
    if texts is not None and texts.purpose is not None:
        lines += [f"**Purpose.** {escape(texts.purpose)}", ""]
    lines += ["## What it says", "", *what_it_says(plan, probabilities), ""]
    lines += ["## How it was made", "", *how_it_was_made(plan, report, absent), ""]
    lines += ["## Privacy", "", escape(f"{report.privacy[:1].upper()}{report.privacy[1:]}"), ""]
    lines += ["## Measured quality", "", *measured_lines(report), ""]
    if notes:
        more = len(notes) - MOST_NOTES
        first = [*notes[:MOST_NOTES], *([f"{more} more in report.json."] if more > 0 else [])]
        lines += ["## Notes of the run", "", *bullets(map(escape, first)), ""]
    lines += ["## What it must not be used for", "", *bullets(limits_of(plan, report, probabilities)), ""]
    if texts is not None and texts.contact is not None:
        lines += ["## Whom to ask", "", escape(texts.contact), ""]
    return shortened(printable_text("\n".join(lines)))


def what_it_says(plan: Plan, probabilities: bool) -> list[str]:
    """What goes in and what comes out."""
    columns = plan.columns
    sure = (
        "It also gives the probability of each class; its label need not be the likeliest one."
        if probabilities
        else "It only names a class: it does not say how sure it is."
    )
    return [
        f"Which class a row has in the column {code(columns.label)}: one of {code_names(plan.classes)}. It reads "
        f"{plural(len(columns.columns), 'column')}: {code_names(column.name for column in columns.columns)}. {sure}"
    ]


def how_it_was_made(plan: Plan, report: Report, absent: Sequence[str]) -> list[str]:
    """The parties, their models, the vote and the public rows."""
    voters = [name for name in plan.names if name not in absent]
    silent = f"; without a vote: {code_names(absent)}" if absent else ""
    releases = "the server" if protects_parties(plan.level) else "each party"
    noisy = "Noisy sums" if plan.expected.arrays else f"Noisy labels: {report.privacy_statement['queries']}"
    private = [f"{noisy}, released by {releases}"]
    return bullets(
        [
            f"Method: FedKT, one round, level {plan.level}, {code(plan.voting)}"
            f"{plan.method.called.removeprefix(plan.voting)}: {plan.method.server_rule}",
            f"Assumed: {plan.method.assumption}",
            f"Parties: {report.parties} of {len(plan.names)}: {code_names(voters)}{silent}",
            f"Model families: {escape(plan.method.models_words(plan))}",
            f"Final model: {plan.method.final_name(plan)}",
            f"Public rows: {plan.public.rows:,}, without labels, SHA-256 {plan.public.sha256}",
            *(private if report.epsilon is not None else []),
            f"Plan: {plan.digest}",
            f"Software: fedkt {report.versions.get('fedkt', 'of an unknown version')}",
        ]
    )


def measured_lines(report: Report) -> list[str]:
    """How good it was found, with the baseline that it has to beat; or that nobody knows."""
    if report.quality is None:
        return [UNKNOWN]
    quality = Quality.from_dict(report.quality)
    right, balanced = quality.accuracy, quality.balanced_accuracy
    lines = bullets(
        [
            f"On {plural(quality.rows, 'labelled row')}, with 95 % intervals",
            f"Accuracy {right.value:.1%} ({right.low:.1%} to {right.high:.1%}); always naming "
            f"{code(quality.majority_class)} has {quality.majority:.1%}",
            f"Balanced accuracy {balanced.value:.1%} ({balanced.low:.1%} to {balanced.high:.1%})",
            *([] if quality.auc is None else [f"AUC, one class against the rest: {quality.auc.value:.3f}"]),
            *([] if quality.log_loss is None else [f"Log loss {quality.log_loss:.3f}"]),
            *([] if quality.calibration_error is None else [f"Calibration error {quality.calibration_error:.3f}"]),
        ]
    )
    lines += ["", "| class | rows | found (recall) | right where named (precision) |", "|---|--:|--:|--:|"]
    columns = zip(quality.classes, quality.support, quality.recall, quality.precision, strict=True)
    for label, rows, found, named in list(columns)[:MOST_NAMES]:
        lines.append(f"| {escape(clipped(label))} | {rows:,} | {part_in_percent(found)} | {part_in_percent(named)} |")
    advice = threshold_advice(quality)
    said = [*verdicts(quality), *([] if advice is None else [advice])]
    return [*lines, *(["", *bullets(map(escape, said))] if said else [])]


def limits_of(plan: Plan, report: Report, probabilities: bool) -> Iterable[str]:
    """What whoever agreed on it ruled out, and what no such model is for."""
    if plan.card is not None and plan.card.limits is not None:
        yield escape(plan.card.limits)
    yield (
        "Rows unlike the public ones, or of another class than these: it names one of its classes for every row, "
        "whatever that is."
    )
    yield "A decision about a person by this model alone, without somebody who checks it."
    if report.quality is None:
        yield "Anything at all before it has been measured on labelled rows of your own."
    if not probabilities:
        yield "Ranking rows or telling a risk: it has no probabilities."
    if report.epsilon is None:
        yield "Publication, where the parties' rows are confidential: without noise it may reveal some of them."


def code(value: object) -> str:
    """A name as Markdown shows it letter by letter."""
    return f"`{clipped(value).replace('`', chr(39))}`"


def code_names(values: Iterable[object]) -> str:
    """The first names, and how many there are."""
    known = list(values)
    return ", ".join(map(code, known[:MOST_NAMES])) + (f", … ({len(known)} in all)" if len(known) > MOST_NAMES else "")


def clipped(value: object) -> str:
    """A name that takes no more than its place."""
    text = str(value)
    return text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 1]}…"


def escape(text: str) -> str:
    """Text of others that Markdown takes for nothing but text."""
    return SPECIAL.sub(lambda found: f"\\{found[0]}", text.replace("\n", " "))


def bullets(items: Iterable[str]) -> list[str]:
    """A list of points."""
    return [f"- {each}" for each in items]


def part_in_percent(value: float | None) -> str:
    """A share as a percentage; a dash where there is none."""
    return "–" if value is None else f"{value:.1%}"


def shortened(text: str) -> str:
    """The text, no longer than a final file takes."""
    end = "\n\n… (cut: the report has the rest)\n"
    return text if len(text) <= MAX_CARD_TEXT else text[: MAX_CARD_TEXT - len(end)] + end
