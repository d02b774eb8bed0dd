"""Texts: the same words become the same numbers at every party, whatever keyboard they were typed on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from sklearn.feature_extraction.text import TfidfVectorizer

from fedkt.data.schema import Column, Schema, fit_schema
from fedkt.data.table import Table
from fedkt.data.words import LONGEST_TERM, MOST_CHARACTERS, encode_words, fit_words, words_of
from fedkt.errors import ConfigurationError, DataError

LETTERS = [
    *("the bill is late", "the bill, the BILL!", "the late again: who pays", "the thanks", "bill, late, pays"),
    *("the train", "Train again the", "the bill of train"),
]
"""the: 7 of 8 texts; bill: 4; late, train: 3; again, pays: 2; all others: 1."""


def table(texts: list, source: str = "letters.csv", **columns: list) -> Table:
    arrays = {name: np.array(values, dtype=object) for name, values in {"letter": texts, **columns}.items()}
    return Table(arrays, source, np.arange(2, 2 + len(texts)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Über-Größe, ÜBER GRÖSSE", ["über", "grösse", "über", "grösse"]),
        # u with a combining diaeresis, and full-width letters.
        ("u\u0308ber ＡＢＣ１", ["über", "abc1"]),
        ("great 😀👍🏽!! 5 €", ["great", "😀", "👍", "5", "€"]),
        ("snake_case don't", ["snake", "case", "don", "t"]),
        ("東京に行く", ["東", "京", "に", "行", "く"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("tiếng Việt", ["tiếng", "việt"]),
        ("", []),
        (" \t\n\u200b…!?", []),
        ("x" * (LONGEST_TERM + 1) + " y", ["y"]),
    ],
)
def test_words_have_one_spelling(text, words):
    assert words_of(text) == words


def test_of_a_very_long_text_the_beginning_is_read():
    assert words_of("a " * MOST_CHARACTERS + "end") == ["a"] * (MOST_CHARACTERS // 2)


@given(st.text(max_size=200))
@settings(max_examples=200, deadline=None)
def test_no_text_is_refused_and_case_does_not_matter(text):
    found = words_of(text)
    assert all(0 < len(word) <= LONGEST_TERM for word in found)
    assert words_of(text) == words_of(text)
    terms, weights = fit_words([text, text], 50)
    if terms:
        Column(name="letter", kind="text", terms=terms, weights=weights)


def test_weights_and_rows_are_those_of_scikit_learn():
    terms, weights = fit_words(LETTERS, 100)
    judge = TfidfVectorizer(min_df=2, max_df=0.5, sublinear_tf=True, token_pattern=r"\w+").fit(LETTERS)
    assert terms == tuple(judge.get_feature_names_out())
    np.testing.assert_allclose(weights, judge.idf_, atol=1e-6)
    others = ["the the bill", "nothing of it", "", "late late late pays"]
    rows = np.zeros((len(others), len(terms)), dtype=np.float32)
    encode_words(others, terms, weights, rows)
    np.testing.assert_allclose(rows, judge.transform(others).toarray(), atol=1e-6)


def test_weights_are_as_worked_out_by_hand():
    # ln(9 / 5) + 1 for bill, ln(9 / 4) + 1 for late and train, ln(9 / 3) + 1 for again and pays.
    assert fit_words(LETTERS, 9) == (
        ("again", "bill", "late", "pays", "train"),
        (2.098612, 1.587787, 1.81093, 2.098612, 1.81093),
    )
    row = np.zeros((1, 2), dtype=np.float32)
    encode_words(["b a a a other"], ["a", "b"], [1.0, 2.0], row)
    # (1 + ln 3, 2) = (2.098612, 2), whose length is the root of 4.404172 + 4, 2.899.
    assert row[0].tolist() == pytest.approx([2.098612 / 2.899, 2 / 2.899], abs=1e-4)


def test_the_words_of_most_texts_are_kept():
    assert fit_words(LETTERS, 2)[0] == ("bill", "late"), "the is in more than half, train after late in the alphabet"
    assert fit_words(["only one"], 5)[0] == ("one", "only")
    assert fit_words(["a b", "a c"], 5)[0] == ("b", "c")


def test_a_text_column_stands_beside_others_and_gaps_have_a_column():
    public = table([*LETTERS, ""], age=["1", "2", "3"] * 3, topic=["a"] * 9)
    schema = fit_schema(public, label="topic", text=["letter"], terms=3)
    letter, age = schema.columns
    assert (letter.kind, letter.terms, letter.missing, age.kind) == ("text", ("bill", "late", "train"), True, "number")
    assert schema.feature_names == ("letter: bill", "letter: late", "letter: train", "letter is missing", "age")
    X = schema.encode(table(["Bill", "?", "?? unknown"], age=["2", "2", "2"]))
    assert X[:, :4].tolist() == [[1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    assert "'letter' of letters.csv has none of the agreed words and says nothing" in "".join(
        schema.unseen_notes(table(["bill", "", "unheard of"], age=["1", "1", "1"]))
    )


def test_columns_without_text_are_written_as_before_there_was_any():
    schema = fit_schema(table(["x", "y"], topic=["a", "b"]), label="topic")
    assert set(schema.model_dump()["columns"][0]) == {
        *("name", "kind", "missing", "categories", "fill", "mean", "scale"),
    }
    own = fit_schema(table(LETTERS), label="topic", text=["letter"])
    assert Schema.model_validate_json(own.model_dump_json()) == own


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"terms": ("a",), "weights": ()}, "a weight for each"),
        ({"terms": (), "weights": ()}, "a text has terms"),
        ({"terms": ("a", "a"), "weights": (1, 1)}, "two terms are the same"),
        ({"terms": ("a",), "weights": (float("inf"),)}, "finite"),
        ({"terms": ("a",), "weights": (-1,)}, "greater than 0"),
        ({"terms": ("a",), "weights": (1e9,)}, "less than or equal to 100"),
        ({"terms": ("a\nb",), "weights": (1,)}, "line break"),
        ({"terms": ("a" * 41,), "weights": (1,)}, "at most 40"),
        ({"terms": tuple(map(str, range(2_001))), "weights": (1,) * 2_001}, "at most 2000"),
        ({"terms": ("a",), "weights": (1,), "kind": "number"}, "a number has none"),
        ({"terms": ("a",), "weights": (1,), "categories": ("a",)}, "a text has none"),
        ({"terms": ("a",), "weights": (1,), "pattern": "(a+)+$"}, "Extra inputs are not permitted"),
    ],
)
def test_a_text_column_that_nobody_could_have_fitted_is_refused(settings, words):
    with pytest.raises(ValidationError, match=words):
        Column(**{"name": "letter", "kind": "text", **settings})


def test_a_term_is_a_word_and_no_pattern():
    column = Column(name="letter", kind="text", terms=("(a+)+$", "b"), weights=(1, 1))
    X = Schema(columns=(column,), label="topic").encode(table(["a" * 30, "b"]))
    assert X.tolist() == [[0, 0], [0, 1]]


@pytest.mark.parametrize(
    ("texts", "options", "error", "words"),
    [
        (["!!!", "…"], {"text": ["letter"]}, DataError, "no word in the public rows.*--ignore letter"),
        (["", ""], {"text": ["letter"]}, DataError, "no value in the public rows"),
        (LETTERS, {"text": ["lettre"]}, DataError, "no column 'lettre'"),
        (LETTERS, {"text": ["letter"], "categorical": ["letter"]}, ConfigurationError, "Choose one"),
        (LETTERS, {"text": ["letter"], "ignore": ["letter"]}, ConfigurationError, "Choose one"),
        (LETTERS, {"text": ["letter"], "terms": 2_001}, ConfigurationError, "from 1 to 2,000"),
        ([f"row {each}" for each in range(1_001)], {}, DataError, "--text letter"),
    ],
)
def test_texts_that_cannot_be_agreed_on_are_refused(texts, options, error, words):
    with pytest.raises(error, match=words):
        fit_schema(table(texts), label="topic", **options)
