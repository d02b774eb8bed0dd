"""A report in a notebook: what a reader looks for first, as a small table."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from fedkt.report.record import attention_of, plain_notes

if TYPE_CHECKING:
    from fedkt.report import Report

MOST_NOTES = 20
STYLE = "border-collapse:collapse;margin:.5em 0;text-align:left"
CELL = "padding:.15em .6em;text-align:left;vertical-align:top"


def to_html(report: Report) -> str:
    """The report as HTML without scripts; whatever was written by users is shown letter by letter."""
    head = f"<caption style='text-align:left'><b>{escape(title_of(report))}</b></caption>"
    cells = "".join(
        f"<tr><th scope='row' style='{CELL}'>{escape(name)}</th><td style='{CELL}'>{escape(value)}</td></tr>"
        for name, value in rows_of(report)
    )
    loud = "".join(f"<p><b>Attention:</b> {escape(each)}</p>" for each in attention_of(report))
    notes = plain_notes(report)
    items = "".join(f"<li>{escape(each)}</li>" for each in notes[:MOST_NOTES])
    more = f"<li>… and {len(notes) - MOST_NOTES} more</li>" if len(notes) > MOST_NOTES else ""
    folded = f"<details><summary>Notes ({len(notes)})</summary><ul>{items}{more}</ul></details>" if notes else ""
    return f"<div class='fedkt-report'>{loud}<table style='{STYLE}'>{head}<tbody>{cells}</tbody></table>{folded}</div>"


def title_of(report: Report) -> str:
    """What ran, in a line."""
    return f"{report.algorithm}: {report.parties} parties, level {report.level}"


def rows_of(report: Report) -> Iterator[tuple[str, str]]:
    """The facts by name; what does not apply is left out."""
    yield "data", report.dataset
    yield "model", report.model
    if report.rows:
        yield "rows", ", ".join(f"{name} {count:,}" for name, count in report.rows.items())
    if report.party_rows:
        sizes = [f"{name} {count:,}" for name, count in sorted(report.party_rows.items())]
        yield "party rows", ", ".join(sizes[:MOST_NOTES]) + (", …" if len(sizes) > MOST_NOTES else "")
    if report.accuracy is not None:
        yield "accuracy", f"{report.accuracy:.2%}"
    if report.balanced_accuracy is not None:
        yield "balanced accuracy", f"{report.balanced_accuracy:.2%}"
    if "unlabelled" in report.votes:
        yield "public rows nobody could label", str(report.votes["unlabelled"])
    yield "privacy", report.privacy
    yield "seconds", f"{report.seconds:.1f}"
