"""A table is one value; a terminal, a page and a document show it each in its way."""

from __future__ import annotations

import io
from typing import Any

import pytest

from fedkt.cli.grids import print_grid
from fedkt.cli.output import Screen
from fedkt.lab.grid import Grid, GridCell
from fedkt.lab.tables import difference
from paper.markdown import in_bold, markdown

GRID = Grid(
    ["algorithm", "accuracy", "what"],
    [["FedKT", GridCell("● 80.3 [1 of 2]", "83.2; -1.5 sd", "within"), "a <b>"]],
    "A title",
    "A caption.",
    words=("what",),
)


def printed(grid: Grid, **options: Any) -> list[str]:
    """The lines that a terminal of 80 columns shows, without spaces at their ends."""
    buffer = io.StringIO()
    print_grid(grid, screen=Screen(file=buffer, width=80), **options)
    return [line.rstrip() for line in buffer.getvalue().splitlines()]


def test_a_document_has_a_cell_on_one_line_and_the_caption_below():
    assert markdown(GRID).splitlines() == [
        "| algorithm | accuracy | what |",
        "|---|---|---|",
        "| FedKT | ● 80.3 [1 of 2] (83.2; -1.5 sd) | a <b> |",
        "",
        "A caption.",
    ]
    assert markdown(GRID, spaced=True).splitlines()[1] == "| --- | --- | --- |"


def test_a_column_of_a_document_can_be_bold():
    assert markdown(in_bold(Grid(["a", "b"], [["1", "2"]]), "b")).splitlines() == [
        "| a | **b** |",
        "|---|---|",
        "| 1 | **2** |",
    ]


def test_a_terminal_shows_what_stands_below_and_takes_no_words_for_its_own_marks():
    assert printed(GRID, colours={"within": "green"}) == [
        " " * 13 + "A title",
        "algorithm         accuracy  what",
        "─────────────────────────────────",
        "FedKT      ● 80.3 [1 of 2]  a <b>",
        "           (83.2; -1.5 sd)",
        "A caption.",
    ]


def test_a_page_marks_the_cell_and_takes_no_words_for_tags():
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    from fedkt.lab.html import page_template

    head = ["algorithm", "balanced\naccuracy", "what"]
    page = page_template("grid.html").module.grid(Grid(head, GRID.lines))
    assert '<th scope="col">balanced<br>accuracy</th>' in page
    assert '<th scope="row">FedKT</th><td class="within">● 80.3 [1 of 2] <small>(83.2; -1.5 sd)</small></td>' in page
    assert "<td>a &lt;b&gt;</td>" in page


def test_a_difference_says_how_often_ours_is_ahead_where_there_are_several():
    # The mean of 1, 3 and -1 is 1, their sample standard deviation 2.
    assert str(difference([1.0, 3.0, -1.0])) == "+1.0 ± 2.0 (2 of 3 ahead)"
    assert str(difference([1.5])) == "+1.5"
    assert str(difference([])) == str(difference(None)) == ""
