"""What is known of columns: bins by hand, values that lie in them, and refusals that name the place."""

from dataclasses import replace

import numpy as np
import pytest

from fedkt.data.columns import Table, texts
from fedkt.data.describing import describe
from fedkt.data.description import KnownColumn, description_from
from fedkt.data.schema import fit_schema
from fedkt.errors import DataError


def table(**columns):
    return Table({name: texts(values) for name, values in columns.items()}, "ward.csv")


def of(*columns, label="ill"):
    return description_from({"label": label, "columns": list(columns)}, "schema.toml")


def test_every_value_is_in_the_bin_that_a_person_would_put_it_into():
    column = KnownColumn(name="gain", edges=(0, 0, 10, 20, 20))
    values = ["0", "0.5", "10", "19.9", "20", "", "-5", "99"]
    # [0], (0, 10), [10, 20), [20]; what is missing is last, and what lies outside is in the outermost bins.
    assert column.codes(table(gain=values)).tolist() == [0, 1, 2, 2, 3, 4, 0, 3]
    assert column.scores.tolist() == pytest.approx([-1, -1 / 3, 1 / 3, 1, 0])


def test_categories_are_told_apart_whatever_their_spelling_and_strangers_count_as_missing():
    column = KnownColumn(name="ward", categories=("1", "b"))
    assert column.codes(table(ward=["1.0", "b", "c", "NA", "01"])).tolist() == [0, 1, 2, 2, 0]


def test_values_that_are_made_lie_in_their_bins_and_are_spelt_as_a_file_spells_them():
    rng = np.random.default_rng(0)
    column = KnownColumn(name="age", edges=(0, 0, 10, 30), whole=True, missing=0.1)
    made = column.values(np.repeat([0, 1, 2, 3], 200), rng)
    assert set(made[:200]) == {"0"}
    assert all(0 <= int(each) <= 10 for each in made[200:400])
    assert all(10 <= int(each) <= 30 for each in made[400:600])
    assert set(made[600:]) == {""}
    ward = KnownColumn(name="ward", categories=("a", "b"))
    assert ward.values(np.array([1, 0, 2]), rng) == ["b", "a", ""]


def test_low_and_high_are_cut_into_ten_bins_or_into_as_many_as_there_are_shares():
    assert of({"name": "age", "low": 0, "high": 100}).columns[0].edges == tuple(range(0, 101, 10))
    assert of({"name": "age", "low": 0, "high": 4, "bins": 2}).columns[0].edges == (0, 2, 4)
    column = of({"name": "age", "low": 0, "high": 4, "shares": [0.25, 0.75], "missing": 0.2}).columns[0]
    assert column.known_shares.tolist() == pytest.approx([0.2, 0.6, 0.2])


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ({"name": "a"}, "needs either categories, or low and high"),
        ({"name": "a", "low": 3, "high": 1}, "low is the smaller one"),
        ({"name": "a", "low": 3, "high": float("inf")}, "low is the smaller one"),
        ({"name": "a", "low": 0, "high": 1, "bins": 0}, "bins is a whole number of 1 to 1000"),
        ({"name": "a", "edges": [3, 1]}, "edges are at least two numbers, ascending"),
        ({"name": "a", "edges": [-1e300, 1e300]}, "greater than or equal to -1"),
        ({"name": "a", "edges": [1]}, "edges are at least two numbers, ascending"),
        ({"name": "a", "edges": [0, float("nan")]}, "finite number"),
        ({"name": "a", "categories": ["1", "1.0"]}, "two categories are the same"),
        ({"name": "a", "categories": ["x", "y"], "shares": [1.0]}, "2 categories or bins, but 1 shares"),
        ({"name": "a", "categories": ["x", "y"], "shares": [0.1, 0.1]}, "the shares sum to 0.2"),
        ({"name": "a", "categories": ["x"], "missing": 1}, "less than 1"),
        ({"name": "ill", "low": 0, "high": 1}, "public rows have no labels"),
        ({"name": "a", "kind": "number"}, "Extra inputs"),
    ],
)
def test_a_description_that_makes_no_sense_is_refused_with_its_place(column, words):
    with pytest.raises(DataError, match=words) as caught:
        of(column)
    assert str(caught.value).startswith("schema.toml: ")


def test_two_descriptions_are_the_same_where_their_bins_are_whatever_their_shares():
    plain = of({"name": "a", "categories": ["x", "y"]})
    assert plain.digest == of({"name": "a", "categories": ["x", "y"], "shares": [0.1, 0.9]}).digest
    assert plain.digest != of({"name": "a", "categories": ["y", "x"]}).digest
    assert plain.digest != of({"name": "a", "categories": ["x", "y"], "missing": 0.1}).digest


def test_rows_that_may_be_described_give_their_ranges_spikes_and_categories():
    rows = table(
        gain=["0"] * 50 + [str(each) for each in range(1, 51)],
        ward=["a", "b"] * 50,
        ill=["yes"] * 100,
        size=["1.5", "", "2.5", "3.5"] * 25,
    )
    found = describe(rows, label="ill", bins=2)
    gain, ward, size = found.columns
    assert gain.edges == (0, 0, 1, 26, 50)
    assert gain.whole
    assert sorted(ward.categories) == ["a", "b"]
    assert (size.missing, size.whole) == (0.25, False)
    counts = np.bincount(gain.codes(rows), minlength=5)
    assert counts.tolist() == [50, 0, 25, 25, 0]
    assert found.with_shares(rows).columns[0].shares == (0.5, 0, 0.25, 0.25)
    assert found.bins.digest == found.digest


def test_categories_that_go_together_stand_together():
    """Of four wards two are of the old and two of the young, in an order that letters do not tell."""
    rng = np.random.default_rng(1)
    old = rng.random(400) < 0.5
    ward = np.where(old, rng.choice(["a", "c"], 400), rng.choice(["b", "d"], 400))
    age = np.where(old, 70, 30) + rng.integers(-9, 9, 400)
    found = describe(table(ward=ward.tolist(), age=age.astype(str).tolist(), ill=["x"] * 400), label="ill")
    order = found.columns[0].categories
    assert {frozenset(order[:2]), frozenset(order[2:])} == {frozenset("ac"), frozenset("bd")}


def test_a_label_that_is_no_column_is_refused_so_that_the_real_one_does_not_pass_as_a_column():
    rows = table(age=["20", "40"], outcome=["yes", "no"])
    with pytest.raises(DataError) as caught:
        describe(rows, label="Outcom")
    assert str(caught.value) == (
        "ward.csv has no column 'Outcom', so no label would be left out. It has: 'age', 'outcome'. "
        "Did you mean --label outcome? If these rows have no label: --ignore Outcom"
    )
    with pytest.raises(DataError, match=r"It has: 'age', 'outcome'\. If these rows have no label"):
        describe(rows, label="ill")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["68,7", "84,3"] * 10, "line 2: '68,7' in column 'x' is not a number, .* decimal sign: --decimal ,"),
        (["3"] * 19 + ["68 kg"], "'68 kg' in column 'x' is not a number, .*--unit x=kg"),
        (["3"] * 19 + ["-"], "'-' in column 'x' is not a number, .*--missing-value -"),
        (["2018-10-13", ""] * 10, "column 'x' has dates, and every one would be told. Leave it out: --ignore x"),
        (["13.10.2018"] * 19 + ["soon"], "'soon' in column 'x' is no date, and nearly all others are"),
        (["13.10.18"] * 20, "'13.10.18' in column 'x' does not say its century"),
        ([f"Ms {letter}" for letter in "abcdefghij"], "has 10 different values in 10 rows, as names do"),
    ],
)
def test_texts_that_are_no_categories_are_refused_before_all_of_them_are_told(values, words):
    rows = replace(table(x=values, ill=["yes"] * len(values)), lines=np.arange(2, len(values) + 2))
    with pytest.raises(DataError, match=words) as caught:
        describe(rows, label="ill")
    assert "--categorical x" in str(caught.value)
    found = describe(rows, label="ill", categorical=["x"])
    assert sorted(found.columns[0].categories) == sorted(set(values) - {""})


def test_rows_without_a_label_are_described_where_somebody_says_that_they_have_none():
    found = describe(table(age=["20", "40"]), label="ill", ignore=["ill"])
    assert [each.name for each in found.columns] == ["age"]


def test_an_older_plan_describes_its_columns_too():
    public = table(age=["20", "40", "60"], ward=["a", "b", "a"])
    schema = fit_schema(public, label="ill", missing="allow")
    found = description_from({"schema": schema.model_dump(mode="json")}, "plan.toml")
    age, ward = found.columns
    assert (found.label, ward.categories) == ("ill", ("a", "b"))
    assert age.edges[0] == pytest.approx(40 - 3 * np.std([20, 40, 60]))
    # 68.3 % of a normal distribution lie within one scale of its mean, 99.7 within three: ten of the thirty bins.
    assert sum(age.shares[10:20]) == pytest.approx(0.6827 / 0.9973, abs=1e-4)


def plan_with(**of_date):
    column = {"name": "admitted", "kind": "number", "fill": 0, "mean": 1, "scale": 1, "date": True, **of_date}
    return {"schema": {"label": "ill", "columns": [column]}}


def test_dates_of_a_plan_are_made_as_dates_and_read_as_dates():
    """Three days on either side of 1970-01-02, in bins of a fifth of a day."""
    (column,) = description_from(plan_with(), "plan.toml").columns
    assert column.values(np.array([0, 29, 30]), np.random.default_rng(0)) == ["1969-12-30", "1970-01-05", ""]
    rows = table(admitted=["1969-12-30", "1.1.1970", "1970-01-02 12:00", "2024-03-31", ""])
    assert column.codes(rows).tolist() == [0, 10, 17, 29, 30]
    numbers = description_from(plan_with(date=False), "plan.toml")
    assert numbers.digest != description_from(plan_with(), "plan.toml").digest


def test_dates_that_no_calendar_has_are_refused():
    with pytest.raises(DataError, match=r"plan\.toml: column 'admitted': dates have a range of days, within"):
        description_from(plan_with(scale=1e6), "plan.toml")


def test_texts_of_a_plan_are_refused_with_what_to_do():
    note = {"name": "note", "kind": "text", "terms": ["cough"], "weights": [1.5]}
    with pytest.raises(
        DataError, match=r"plan\.toml: rows are not made of words, .* of 'note'\. .* take such columns out"
    ):
        description_from({"schema": {"label": "ill", "columns": [note]}}, "plan.toml")
