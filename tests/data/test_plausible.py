"""Values that hardly mean what was agreed on are doubted; others are not."""

import shlex

import numpy as np
import pytest

from fedkt.data.columns import Table, texts
from fedkt.data.plausible import doubts, row_names
from fedkt.data.schema import Schema, fit_schema

RNG = np.random.default_rng(3)
KILOGRAMS = RNG.normal(70, 15, size=200)
SEXES = RNG.choice(["male", "female"], size=200)
PUBLIC = Table({"weight": KILOGRAMS, "sex": texts(SEXES)}, "public.csv")
SCHEMA = fit_schema(PUBLIC, label="ill", missing="allow")
GRAMS = fit_schema(Table({"weight": 1000 * KILOGRAMS}, "public.csv"), label="ill")


def own(**columns):
    return Table({"weight": KILOGRAMS[:40], "sex": texts(SEXES[:40]), **columns}, "own.csv")


def doubted(table, schema=SCHEMA):
    return {doubt.column: str(doubt) for doubt in doubts(schema, table)}


def test_a_file_like_the_public_one_is_not_doubted():
    assert doubted(own()) == {}


@pytest.mark.parametrize("factor", [100, 1000])
def test_another_unit_is_doubted_in_both_directions(factor):
    assert "'weight' lie far from the public rows'" in doubted(own(weight=KILOGRAMS[:40] * factor))["weight"]
    small = own(weight=1000 * KILOGRAMS[:40] / factor)
    assert set(doubted(small, GRAMS)) == {"weight"}


def test_other_people_are_not_another_unit():
    children = RNG.normal(25, 6, size=40)
    assert doubted(own(weight=children)) == {}
    assert doubted(own(weight=np.full(40, 70.0))) == {}


def test_one_wild_value_more_or_less_decides_nothing():
    wild = np.concatenate([KILOGRAMS[:39], [1e9]])
    assert doubted(own(weight=wild)) == {}


def test_other_codes_for_the_categories_are_doubted_with_the_option_that_maps_them():
    codes = own(sex=texts("M" if each == "male" else "F" for each in SEXES[:40]))
    words = doubted(codes)["sex"]
    assert "none of 40 values of 'sex'" in words
    assert "--value-map sex:" in words
    assert "M=male" in words
    assert "F=female" in words
    assert "--accept sex" in words


def test_an_option_that_names_a_column_can_be_pasted_into_a_shell():
    schema = Schema.model_validate(
        {"label": "ill", "columns": [{"name": "Patient's sex", "kind": "category", "categories": ["male", "female"]}]}
    )
    codes = Table({"Patient's sex": texts("MF" * 20)}, "ward.csv", np.arange(40))
    (doubt,) = doubts(schema, codes)
    words = shlex.split(doubt.remedy.partition("these: ")[2].replace(" If they are meant as they are:", ""))
    assert words == ["--value-map", "Patient's sex:M=male,F=female", "--accept", "Patient's sex"]


def test_some_unseen_categories_are_no_doubt():
    some = own(sex=texts(["diverse"] * 30 + ["male"] * 10))
    assert doubted(some) == {}


def test_of_a_handful_of_rows_nothing_is_said():
    few = Table({"weight": KILOGRAMS[:5] * 1000, "sex": texts(["M"] * 5)}, "own.csv")
    assert doubted(few) == {}


def test_numbers_of_rows_in_the_public_file_are_found_and_measurements_are_not():
    columns = {
        "row": np.arange(1.0, 201),
        "patient": RNG.permutation(90_000)[:200].astype(float),
        "age": RNG.integers(18, 90, size=200).astype(float),
        "weight": KILOGRAMS,
    }
    public = Table(columns, "public.csv")
    assert list(row_names(fit_schema(public, label="ill"), public)) == ["row", "patient"]


def test_few_public_rows_with_different_whole_numbers_are_no_numbers_of_rows_unless_they_count():
    public = Table({"income": np.array([5.0, 90, 31, 47, 12, 66, 73, 8, 55, 20]), "row": np.arange(10.0)}, "public.csv")
    assert list(row_names(fit_schema(public, label="ill"), public)) == ["row"]


@pytest.mark.parametrize(("strange", "is_doubted"), [(94, False), (95, True)])
def test_a_category_is_doubted_from_ninety_five_of_a_hundred_strange_values_on(strange, is_doubted):
    mixed = Table({"sex": texts(["M"] * strange + ["male"] * (100 - strange))}, "own.csv")
    assert ("sex" in doubted(mixed)) is is_doubted


@pytest.mark.parametrize(("known", "is_doubted"), [(9, False), (10, True)])
def test_nothing_is_said_of_fewer_than_ten_known_values(known, is_doubted):
    sexes = texts(["M"] * known + ["?"] * 30)
    weights = np.array([70_000.0] * known + [np.nan] * 30)
    assert set(doubted(Table({"sex": sexes, "weight": weights}, "own.csv"))) == (
        {"sex", "weight"} if is_doubted else set()
    )


def test_values_around_the_same_middle_that_spread_far_wider_are_doubted():
    assert set(doubted(own(weight=70 + 100 * (KILOGRAMS[:40] - 70)))) == {"weight"}


def test_values_that_are_close_together_or_small_but_not_both_are_no_doubt():
    together = 70_000 + (KILOGRAMS[:40] - 70) / 100
    assert doubted(Table({"weight": together}, "own.csv"), GRAMS) == {}
    small = Table({"weight": 15_000 * RNG.normal(size=40)}, "own.csv")
    assert doubted(small, GRAMS) == {}


def test_a_long_table_is_judged_by_rows_from_all_of_it():
    sexes = texts(["M"] * 30_000 + ["male"] * 10_000)
    assert doubted(Table({"sex": sexes}, "own.csv")) == {}
    assert "10,000 values" in doubted(Table({"sex": texts(["M"] * 40_000)}, "own.csv"))["sex"]


def test_an_empty_column_is_told_of_and_refuses_nothing():
    (doubt,) = doubts(SCHEMA, own(weight=np.full(40, np.nan)))
    assert str(doubt).startswith("own.csv: none of 40 rows has a value in 'weight'")
    assert str(doubt).endswith("--accept weight")
    assert not doubt.refuses
    mostly = np.where(np.arange(40) == 3, KILOGRAMS[:40], np.nan)
    assert "1 of 40 rows has a value" in doubted(own(weight=mostly))["weight"]
    some = np.where(np.arange(40) < 30, np.nan, KILOGRAMS[:40])
    assert doubted(own(weight=some)) == {}
