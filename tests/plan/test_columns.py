"""A plan lists the columns that a file must have."""

import json

import pytest

from fedkt.plan.columns import MOST_COLUMNS
from live_federation import fedkt


@pytest.fixture
def checked(tmp_path):
    """What `fedkt plan check` says of a plan made from these public rows."""

    def check(text, *more):
        (tmp_path / "public.csv").write_text(text)
        new = ("--label", "ill", "--classes", "yes,no", "--party", "north", "-o", tmp_path / "plan.toml", "--force")
        fedkt("plan", "new", "--public", tmp_path / "public.csv", *new, *more)
        plan = ("plan", "check", tmp_path / "plan.toml")
        return fedkt(*plan).out, json.loads(fedkt(*plan, "--json").out)["columns"]

    return check


def test_columns_are_listed_with_their_kind_and_what_is_in_them(checked):
    said, columns = checked("age,sex\n20,m\n40,f\n60,m\n", "--missing", "refuse")
    assert "  age  number    about 40 ± 16.33, median 40\n" in said
    assert "  sex  category  f, m\n" in said
    assert "  ill  label     yes, no\n" in said
    assert "Missing is '', '?'" in said
    spread = pytest.approx(16.3299, rel=1e-4)
    assert columns == [
        {"name": "age", "kind": "number", "missing": False, "mean": 40.0, "spread": spread, "median": 40.0},
        {"name": "sex", "kind": "category", "missing": False, "categories": ["f", "m"]},
    ]


def test_gaps_and_long_lists_are_told_and_shortened(checked):
    words = [f"ward {number:02}" for number in range(12)]
    said, columns = checked("ward\n" + "\n".join(words) + "\n")
    assert "ward 07, … (12 in all); may be missing" in said
    assert columns[0]["categories"] == words
    assert columns[0]["missing"] is True


def test_of_very_many_columns_the_first_are_listed(checked):
    names = [f"c{number}" for number in range(MOST_COLUMNS + 5)]
    said, columns = checked(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n" + ",".join("2" for _ in names))
    assert f"… ({MOST_COLUMNS + 5} in all; --json lists them)" in said
    assert f"  c{MOST_COLUMNS} " not in said
    assert [each["name"] for each in columns] == names
