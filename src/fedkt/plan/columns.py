"""The agreed columns for people: what a file must have to fit."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from fedkt.data.agreed_column import Column

if TYPE_CHECKING:
    from fedkt.plan import Plan

MOST_COLUMNS, MOST_CATEGORIES = 60, 8
"""More are counted, not listed."""
WIDTH = 40
"""Longer names and categories are cut here."""


def column_lines(plan: Plan) -> list[str]:
    """A line for each agreed column and one for the label."""
    schema = plan.columns
    lines = ["The columns of your file"]
    if plan.image is not None:
        height, width, channels = plan.image
        return [*lines, f"  images of {height} x {width} with {channels} channel{'s' * (channels != 1)}"]
    shown = schema.columns[:MOST_COLUMNS]
    names = [_short(name) for name in (*(column.name for column in shown), schema.label)]
    room = max(map(len, names))
    for name, column in zip(names, shown, strict=False):
        gaps = "; may be missing" if column.missing else ""
        lines.append(f"  {name:<{room}}  {column.kind:<8}  {column_words(column)}{gaps}")
    if len(schema.columns) > len(shown):
        lines.append(f"  … ({len(schema.columns)} in all; --json lists them)")
    lines.append(f"  {names[-1]:<{room}}  {'label':<8}  {_some(list(map(str, plan.classes)))}")
    unknown = ", ".join(repr(each) for each in schema.missing_values[:MOST_CATEGORIES])
    return [*lines, f"  Missing is {unknown}. Other names or codes? fedkt party --rename, --label-map, --value-map"]


def column_words(column: Column) -> str:
    """What lies in a column, as the public rows have it."""
    if column.categories:
        return "yes or no, in any words" if column.boolean else _some(column.categories)
    if column.date:
        return f"dates, about {day_of(column.fill)} ± {column.scale:,.0f} days"
    if column.terms:
        return f"texts, of which {len(column.terms)} words count: {_some(column.terms)}"
    return f"about {column.mean:.4g} ± {column.scale:.4g}, median {column.fill:.4g}" if column.kind == "number" else ""


def column_values(plan: Plan) -> list[dict[str, Any]]:
    """The same as plain values, all of it."""
    return [
        {
            "name": column.name,
            "kind": column.kind,
            "missing": column.missing,
            **(
                {"categories": list(column.categories)}
                if column.categories
                else {"terms": list(column.terms)}
                if column.terms
                else {"mean": column.mean, "spread": column.scale, "median": column.fill}
            ),
        }
        for column in plan.columns.columns
    ]


def day_of(number: float) -> str:
    """The day that is so many days after 1970-01-01; of a number that is none, the number."""
    try:
        return str(date(1970, 1, 1) + timedelta(days=round(number)))
    except OverflowError:
        return f"day {number:.4g}"


def _some(values: Any) -> str:
    words = ", ".join(_short(each) for each in values[:MOST_CATEGORIES])
    return words + (f", … ({len(values)} in all)" if len(values) > MOST_CATEGORIES else "")


def _short(text: str) -> str:
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"
