"""Texts that lie packed are read like an array of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedkt.data.columns import Table
from fedkt.data.notation import as_number
from fedkt.data.texts import TextColumn, Texts, Unread, by_value
from fedkt.data.truth import truth_number
from fedkt.data.values import different_texts, numbers_of, plain_numbers
from fedkt.errors import DataError

TEXT = st.one_of(st.sampled_from(["a", "b", "", "1.50", "Zürich", "x\0y", "\0"]), st.text(max_size=3))
ROWS = st.lists(st.lists(TEXT, min_size=1, max_size=12), min_size=1, max_size=5)


def column(blocks):
    made = TextColumn()
    for block in blocks:
        made.add(block)
    return made.done()


def one_column(*texts):
    return Table({"x": column([list(texts)])}, "a.csv", np.arange(2, len(texts) + 2))


@settings(max_examples=60, deadline=None)
@given(ROWS, st.data())
def test_packed_texts_are_the_texts_that_were_put_in(blocks, data):
    texts = [text for block in blocks for text in block]
    packed = column(blocks)
    assert (len(packed), packed.tolist(), list(packed)) == (len(texts), texts, texts)
    row = data.draw(st.integers(-len(texts), len(texts) - 1))
    rows = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=8))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts))))
    assert packed[row] == texts[row]
    assert packed[np.array(rows, dtype=np.int64)].tolist() == [texts[each] for each in rows]
    assert packed[mask].tolist() == [text for text, here in zip(texts, mask, strict=True) if here]
    assert packed[-3:].tolist() == texts[-3:]
    assert (packed == "a").tolist() == [text == "a" for text in texts]
    assert set(packed.different()) == set(texts)
    assert by_value(packed, lambda some: np.array([len(each) for each in some])).tolist() == list(map(len, texts))
    assert packed.replaced(lambda some: [each * 2 for each in some]).tolist() == [each * 2 for each in texts]


def test_a_function_is_asked_once_about_a_text_that_many_rows_have():
    asked = []

    def length(some):
        asked.extend(some)
        return np.array([len(each) for each in some])

    packed = column([["aa", "b"] * 50] * 20)
    assert by_value(packed, length).tolist() == [2, 1] * 1_000
    assert asked == ["aa", "b"]


def test_numbers_of_an_array_are_asked_about_in_chunks_and_keep_their_order():
    values = np.array([3.0, np.nan, 1.0, 3.0] * 40_000)
    found = by_value(values, lambda some: np.array([each if each == each else -1.0 for each in some]))
    np.testing.assert_array_equal(found, [3.0, -1.0, 1.0, 3.0] * 40_000)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.floats().map(repr),
            st.sampled_from(["1_000", " 7 ", "-99", "-99.0", "?", "", "nan", "NA", "yes", "ja", "n", "1e400", "0x1"]),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_numbers_that_are_read_at_once_are_those_that_are_read_one_by_one(texts):
    unknown = {"", "?", "-99", "NA"}
    expected = [np.nan if text.strip() in unknown else as_number(text.strip()) for text in texts]
    expected = [truth_number(text.strip()) if n is None else n for text, n in zip(texts, expected, strict=True)]
    if None in expected:
        with pytest.raises(TypeError):
            plain_numbers(texts, unknown)
    else:
        np.testing.assert_array_equal(plain_numbers(texts, unknown), expected)


def test_a_text_that_is_no_number_is_refused_with_its_line_and_how_many_more_there_are():
    with pytest.raises(DataError, match=r"a\.csv, line 3: 'x' in column 'x' is not a number \(and 1 more row\)"):
        numbers_of(one_column("1", "x", "2", "y"), "x", ("",))


def test_different_texts_are_without_those_that_mean_nothing():
    assert different_texts(one_column(" a", "b", "?", "a"), "x", ("?",)) == {"a", "b"}


def test_a_column_that_was_not_read_has_rows_and_no_values():
    unread = Unread(5)
    assert (len(unread), len(unread[np.array([1, 2])]), len(unread[1:])) == (5, 2, 4)
    with pytest.raises(LookupError, match="nobody asked for it"):
        unread.tolist()


def test_no_texts_are_an_empty_column():
    assert (len(Texts([])), Texts([]).tolist()) == (0, [])
