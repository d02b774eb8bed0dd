"""Schemas: the same value becomes the same number at every party, and nothing is encoded silently wrong."""

from __future__ import annotations

import json
import tomllib

import numpy as np
import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fedkt.data.schema import Column, Schema, fit_schema
from fedkt.data.table import Table
from fedkt.data.values import as_key, identities_of
from fedkt.errors import ConfigurationError, DataError


def table(source: str = "ward.csv", **columns: list) -> Table:
    arrays = {
        name: np.array(values, dtype=np.float64 if all(isinstance(v, float) for v in values) else object)
        for name, values in columns.items()
    }
    return Table(arrays, source, np.arange(2, 2 + len(next(iter(arrays.values())))))


PUBLIC = table("public.csv", age=["1", "3", "?"], ward=["b", "a", "b"], ill=["yes", "no", "yes"])


def test_kinds_fills_and_categories_come_from_the_public_rows():
    schema = fit_schema(PUBLIC, label="ill")
    age, ward = schema.columns
    assert (age.kind, age.missing, age.fill, age.mean, age.scale) == ("number", True, 2.0, 2.0, 1.0)
    assert (ward.kind, ward.missing, ward.categories) == ("category", False, ("a", "b"))
    assert schema.feature_names == ("age", "age is missing", "ward=a", "ward=b")
    assert schema.n_features == 4


def test_rows_are_encoded_as_worked_out_by_hand():
    schema = fit_schema(PUBLIC, label="ill")
    X = schema.encode(table(ward=["b", "c", "a"], age=["4", "", "2"]))
    assert X.dtype == np.float32
    # (4 − 2) / 1, the fill 2 → 0 with its flag, an unseen ward as none of them.
    assert X.tolist() == [[2, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]]


def test_encoding_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    numbers = rng.normal(5, 3, 200)
    words = rng.choice(["x", "y", "z"], 200)
    data = table(a=[repr(float(v)) for v in numbers], b=words.tolist())
    X = fit_schema(data, label="ill").encode(data)
    np.testing.assert_allclose(X[:, 0], StandardScaler().fit_transform(numbers[:, None])[:, 0], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(X[:, 1:], OneHotEncoder(sparse_output=False).fit_transform(words[:, None]))


def test_unscaled_numbers_stay_as_they_are():
    schema = fit_schema(PUBLIC, label="ill", scale=False)
    assert schema.encode(table(ward=["a"], age=["40.5"]))[0, 0] == 40.5


def test_the_order_of_columns_does_not_matter_and_extra_ones_are_named():
    schema = fit_schema(PUBLIC, label="ill")
    one = table(age=["1"], ward=["a"], ill=["no"], nurse=["Q"])
    other = table(ill=["no"], ward=["a"], nurse=["Q"], age=["1"])
    np.testing.assert_array_equal(schema.encode(one), schema.encode(other))
    assert schema.unused(one) == ("nurse",)


def test_a_number_is_the_same_number_in_every_format():
    schema = fit_schema(table(cp=["1", "2", "3"], age=["1", "2", "4"]), label="num", categorical=["cp"])
    text = schema.encode(table(cp=["1.0", " 3 ", "02"], age=["1.0", " 2", "4e0"]))
    floats = schema.encode(table(cp=[1.0, 3.0, 2.0], age=[1.0, 2.0, 4.0]))
    np.testing.assert_array_equal(text, floats)
    assert text[:, :3].tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (1, "1"),
        (1.0, "1"),
        ("+1", "1"),
        ("-1", "-1"),
        (" 1.50 ", "1.5"),
        ("1e2", "100"),
        ("-0", "0"),
        (-0.0, "0"),
        ("a b ", "a b"),
        ("1_000", "1_000"),
        ("12345678901234567891", "12345678901234567891"),
        ("nan", "nan"),
        (True, "True"),
        ("--1", "--1"),
        ("", ""),
    ],
)
def test_values_that_mean_the_same_have_one_spelling(value, key):
    assert as_key(value) == key


def test_labels_are_matched_by_value():
    schema = fit_schema(PUBLIC, label="ill")
    assert schema.labels(table(ill=["1", "-1", "+1", "1.0"]), (-1, 1)).tolist() == [1, 0, 1, 1]
    assert schema.labels(table(ill=[1.0, -1.0]), ("-1", "1")).tolist() == [1, 0]
    assert schema.labels(table(ill=[" yes", "no"]), ("no", "yes")).tolist() == [1, 0]


def test_text_with_accents_is_the_same_however_they_are_stored():
    composed, decomposed = "m\u00e4nnlich", "ma\u0308nnlich"
    for agreed, own in ((composed, decomposed), (decomposed, composed)):
        column = {"name": "sex", "kind": "category", "categories": [agreed, "weiblich"]}
        schema = Schema.model_validate({"label": "ill", "columns": [column]})
        rows = table(sex=[own, "weiblich"], ill=[own, agreed])
        assert schema.encode(rows).tolist() == [[1, 0], [0, 1]]
        assert schema.unseen_notes(rows) == ()
        assert schema.labels(rows, (agreed, "weiblich")).tolist() == [0, 0]
        assert schema.model_dump()["columns"][0]["categories"] == (agreed, "weiblich")
    public = table("public.csv", sex=[composed, decomposed, "weiblich"])
    assert fit_schema(public, label="ill").columns[0].categories == (composed, "weiblich")


def test_a_plan_that_tells_the_two_ways_of_storing_accents_apart_reads_files_as_before():
    both = ["m\u00e4nnlich", "ma\u0308nnlich"]
    schema = Schema.model_validate(
        {"label": "ill", "columns": [{"name": "sex", "kind": "category", "categories": both}]}
    )
    assert schema.encode(table(sex=both)).tolist() == [[1, 0], [0, 1]]


def test_identities_are_spelt_as_they_were():
    decomposed = "Ju\u0308rgen"
    assert identities_of(table(name=[decomposed]), "name") == [decomposed]


@pytest.mark.parametrize("values", [["yes", "maybe"], ["yes", ""], ["yes", None]])
def test_a_label_outside_the_agreed_classes_is_refused_with_its_line(values):
    schema = fit_schema(PUBLIC, label="ill")
    with pytest.raises(DataError, match=r"ward\.csv, line 3: the label .* agreed classes 'no', 'yes'"):
        schema.labels(table(ill=values), ("no", "yes"))


def test_a_nan_label_a_missing_label_column_and_a_class_given_twice_are_refused():
    schema = fit_schema(PUBLIC, label="ill")
    with pytest.raises(DataError, match="line 3"):
        schema.labels(table(ill=[1.0, float("nan")]), (0, 1))
    with pytest.raises(DataError, match=r"no label column 'ill'\. It has: 'age'"):
        schema.labels(table(age=["1"]), (0, 1))
    with pytest.raises(ConfigurationError, match="same class twice"):
        schema.labels(table(ill=["1"]), (1, "1.0"))


def test_missing_labels_are_called_missing_and_no_option_is_offered_for_them():
    schema = fit_schema(PUBLIC, label="ill")
    with pytest.raises(DataError) as refused:
        schema.labels(table(ill=["?", "krank", "gesund", ""]), ("yes", "no"))
    said = str(refused.value)
    assert "line 3" in said.partition(":")[0]
    assert "the label 'krank' in column 'ill' is not one of the agreed classes 'yes', 'no' (and 1 more row)" in said
    assert (
        "say which is which: --label-map krank=CLASS,gesund=CLASS Besides, 2 labels are missing: fill them in" in said
    )
    with pytest.raises(DataError, match=r"1 label is missing: fill it in or leave the row out\.$"):
        schema.labels(table(ill=["yes", "NA", "no"]), ("yes", "no"))


def test_absent_columns_are_all_named_with_the_file():
    with pytest.raises(DataError, match=r"ward\.csv lacks the agreed columns 'age', 'ward'\. It has: 'ill'"):
        fit_schema(PUBLIC, label="ill").encode(table(ill=["no"]))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"age": ["1", "old", "very"]}, r"line 3: 'old' in column 'age' is not a number \(and 1 more row\)"),
        ({"age": ["1", "1,5", "2"]}, "--decimal ,"),
        ({"age": ["1", "old", "2"]}, "decimals with a point"),
        ({"age": ["1", "1_000", "2"]}, "not a number"),
        ({"age": ["1", "inf", "2"]}, "line 3: 'inf' in column 'age' is infinite"),
        ({"age": ["1", "1e300", "2"]}, "line 3: '1e300' in column 'age' is too large"),
        ({"dose": ["1", "?", "2"]}, "line 3: column 'dose' is missing .* agreed to have no missing values"),
        ({"dose": ["1", "NAN", "2"]}, "line 3: column 'dose' is missing"),
        ({"dose": [1.0, float("nan"), 2.0]}, "line 3: column 'dose' is missing"),
        ({"dose": [1.0, float("inf"), 2.0]}, "line 3: inf in column 'dose' is infinite"),
        ({"ward": ["a", "?", "a"]}, "line 3: column 'ward' is missing"),
        ({"ward": ["a", None, "a"]}, "line 3: column 'ward' is missing"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_column_line_and_file(columns, words):
    public = table(age=["1", "3", "?"], dose=["1", "2", "3"], ward=["b", "a", "b"])
    good = {"age": ["1", "2", "3"], "dose": ["1", "2", "3"], "ward": ["a", "b", "a"]}
    with pytest.raises(DataError, match=words) as caught:
        fit_schema(public, label="ill").encode(table(**(good | columns)))
    assert "ward.csv" in str(caught.value)


def test_a_word_for_yes_or_no_among_numbers_is_1_or_0_whatever_the_other_rows_say():
    schema = fit_schema(table(dose=[0.0, 1.0, 5.0]), label="ill", scale=False, missing="allow")
    for others in (["yes"], ["0", "1"], ["12.5"], ["?"]):
        found = schema.encode(table(dose=np.array([*others, "nein", "True"], dtype=object)))
        assert found[-2:, 0].tolist() == [0, 1]
    for text in ("n", "none", "maybe"):
        with pytest.raises(DataError, match=f"{text!r} in column 'dose' is not a number"):
            schema.encode(table(dose=np.array(["yes", text, "no"], dtype=object)))


def test_an_unseen_category_is_refused_where_that_was_agreed():
    schema = fit_schema(PUBLIC, label="ill", unseen="refuse")
    with pytest.raises(DataError, match=r"ward\.csv, line 2: 'c' in column 'ward' is not one of .* 'a', 'b'"):
        schema.encode(table(age=["1"], ward=["c"]))


def test_missing_values_may_be_allowed_or_refused_everywhere():
    allowed = fit_schema(PUBLIC, label="ill", missing="allow")
    assert allowed.feature_names[-1] == "ward is missing"
    assert allowed.encode(table(age=["2"], ward=["null"])).tolist() == [[0, 0, 0, 0, 1]]
    with pytest.raises(DataError, match=r"public\.csv, line 4: column 'age' is missing"):
        fit_schema(PUBLIC, label="ill", missing="refuse")
    with pytest.raises(ConfigurationError, match="as-seen"):
        fit_schema(PUBLIC, label="ill", missing="perhaps")  # type: ignore[arg-type]


def test_the_label_among_the_public_rows_is_not_looked_at():
    without = Table({name: values for name, values in PUBLIC.columns.items() if name != "ill"}, "public.csv")
    assert fit_schema(PUBLIC, label="ill") == fit_schema(without, label="ill")


def test_a_constant_column_is_encoded_as_zero():
    schema = fit_schema(table(a=["5", "5"]), label="ill")
    assert schema.encode(table(a=["5", "6"])).tolist() == [[0.0], [1.0]]


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ({"a": ["?", ""]}, {}, "no value in the public rows"),
        ({"a": ["1"]}, {"ignore": ["b"]}, "no column 'b'"),
        ({"a": ["1"]}, {"categorical": ["b"]}, "no column 'b'"),
        ({"a": ["1"]}, {"ignore": ["a"]}, "no columns"),
        ({"a": ["1", "inf"]}, {}, "infinite"),
        ({"a": ["1e308", "-1e308"]}, {}, "too large"),
        (
            {"a": ["1"], "my b": ["", "?"]},
            {},
            r"column 'my b' has no value.*\(--ignore 'my b'\) or use other public rows",
        ),
        ({"a": [f"id{i}" for i in range(1001)]}, {}, "'id0' is not a number.* 1,001 different values.*--ignore a"),
        ({"a": [str(i) for i in range(1001)]}, {"categorical": ["a"]}, "1,001 different values"),
    ],
)
def test_public_rows_that_nothing_can_be_agreed_on_are_refused(columns, options, words):
    with pytest.raises(DataError, match=words):
        fit_schema(table(**columns), label="ill", **options)


def test_a_schema_survives_json_and_toml_exactly():
    schema = fit_schema(table(a=["0.1", "0.7", "?"], b=["é", 'q"', "x"]), label="ill", unseen="refuse")
    assert Schema.model_validate_json(schema.model_dump_json()) == schema
    toml = tomlkit.dumps(json.loads(schema.model_dump_json()))
    assert Schema.model_validate(tomllib.loads(toml)) == schema


@pytest.mark.parametrize(
    "change",
    [
        {"columns": []},
        {"columns": [{"name": "a", "kind": "number"}] * 2},
        {"label": "a"},
        {"label": ""},
        {"unseen": "guess"},
        {"code": "import os"},
        {"columns": [{"name": "a", "kind": "date"}]},
        {"columns": [{"name": "a", "kind": "category"}]},
        {"columns": [{"name": "a", "kind": "number", "categories": ["x"]}]},
        {"columns": [{"name": "a", "kind": "category", "categories": ["1", "1.0"]}]},
        {"columns": [{"name": "a", "kind": "number", "scale": 0}]},
        {"columns": [{"name": "a", "kind": "number", "mean": float("nan")}]},
        {"columns": [{"name": "a", "kind": "number", "fill": float("inf")}]},
        {
            "columns": [
                {"name": f"c{i}", "kind": "category", "categories": [f"v{j}" for j in range(1000)]} for i in range(101)
            ]
        },
    ],
)
def test_a_forged_schema_is_refused(change):
    good = {"columns": [{"name": "a", "kind": "number"}], "label": "ill"}
    Schema.model_validate(good)
    with pytest.raises(ValidationError):
        Schema.model_validate(good | change)


def test_a_partys_libsvm_file_gets_all_agreed_features(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:2\n")
    schema = Schema(columns=tuple(Column(name=f"f{j}", kind="number") for j in (1, 2, 3)), label="ill", scale=False)
    read = schema.read(tmp_path / "a.svm")
    assert schema.encode(read).tolist() == [[2, 0, 0]]
    assert schema.labels(read, (0, 1)).tolist() == [1]


def test_a_file_without_its_label_is_refused_unless_it_needs_none(tmp_path):
    (tmp_path / "a.csv").write_text("age,ward\n1,a\n")
    schema = fit_schema(PUBLIC, label="ill")
    assert schema.read(tmp_path / "a.csv", labelled=False).n_rows == 1
    with pytest.raises(DataError, match="no label column 'ill'"):
        schema.read(tmp_path / "a.csv")


def test_more_values_than_fit_in_memory_are_refused(monkeypatch):
    monkeypatch.setattr("fedkt.data.columns.total_memory", lambda: 4 * 2_000 - 1)
    schema = Schema(columns=tuple(Column(name=f"c{i}", kind="number") for i in range(20)), label="ill")
    with pytest.raises(DataError, match=r"a\.npz.*memory"):
        schema.encode(Table({f"c{i}": np.zeros(100) for i in range(20)}, "a.npz"))


@settings(max_examples=50, deadline=None)
@given(
    values=st.lists(
        st.one_of(st.text(max_size=5), st.floats().map(repr), st.integers().map(str)), min_size=1, max_size=20
    ),
    categorical=st.booleans(),
)
def test_public_rows_are_either_refused_in_words_or_encoded_finite(values, categorical):
    data = table(a=values)
    try:
        schema = fit_schema(data, label="ill", categorical=["a"] if categorical else None, missing="allow")
        X = schema.encode(data)
    except DataError:
        return
    assert X.shape == (len(values), schema.n_features)
    assert np.isfinite(X).all()
    if schema.columns[0].kind == "category":
        assert (X.sum(axis=1) == 1).all()
