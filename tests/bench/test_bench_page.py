"""The page of benchmarks says what was measured, and nothing was typed by hand."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")

from benchmarks import page
from paper.markdown import replace_between


def test_the_page_has_the_figures_that_were_kept():
    text = written = page.PAGE.read_text(encoding="utf-8")
    for marker, new in page.parts().items():
        text = replace_between(text, marker, new.rstrip("\n"))
    assert text == written


def test_the_picture_is_of_the_figures_that_were_kept(tmp_path):
    from fedkt.bench.pictures import growth_picture

    drawn = growth_picture(page.read(page.GROWTH)["growth"])
    assert f"{drawn.words.split(';')[0]}" in page.PICTURE.read_text(encoding="utf-8")
