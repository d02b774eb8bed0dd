"""Plans that would cost a reader a minute or gigabytes: refused for what no plan has."""

import tomllib

import pytest

from fedkt.errors import PlanError
from fedkt.plan import parse_plan

LONG = ".".join("abcdefghi")
Q3, S3 = '"' * 3, "'" * 3


@pytest.mark.parametrize(
    "text",
    [
        f"{LONG} = 1",
        f"[{LONG}]",
        f"[[{LONG}]]",
        f"x = {{ {LONG} = 1 }}",
        f"x = [1.5, {{ {LONG} = 1 }}]",
        LONG.replace(".", " \t. ") + " = 1",
        ".".join(f'"{each}.z"' for each in "abcdefghi") + " = 1",
        ".".join(f"'{each}'" for each in "abcdefghi") + " = 1",
        '"a\\"".b.c.d.e.f.g.h.i = 1',
        ".".join(["a"] * 60_000) + " = 1",
        # Where a string of several lines ends is told as TOML tells it: it may hold quotes, also before its end.
        f'x = [{Q3}a{Q3}", {{ {LONG} = 1 }}, {Q3}b{Q3}"]',
        f'x = [{Q3}a{Q3}"", {{ {LONG} = 1 }}, {Q3}b{Q3}""]',
        f"x = [{S3}a{S3}', {{ {LONG} = 1 }}, {S3}b{S3}']",
        f"x = [{Q3}a\\{Q3}{Q3}, {{ {LONG} = 1 }}, {Q3}b{Q3}]",
        f"x = [{Q3}{Q3}, {{ {LONG} = 1 }}, {Q3}{Q3}]",
        f'x = ["#", {{ {LONG} = 1 }}, "#"]',
        f"x = ['\\', {{ {LONG} = 1 }}, '\\']",
        f"# {Q3}\n{LONG} = 1\n# {Q3}",
    ],
)
def test_a_key_of_many_parts_is_refused_wherever_it_stands(text):
    if len(text) < 1_000:
        tomllib.loads(text)
    with pytest.raises(PlanError, match=r"plan\.toml, line [12]: a key of more than 8 parts"):
        parse_plan(text.encode(), "plan.toml")


@pytest.mark.parametrize(
    "text",
    [
        f'x = "{LONG}"',
        f"x = '{LONG}'",
        f"x = {Q3}\n{LONG}\n{Q3}",
        f"x = {S3}\n{LONG}\n{S3}",
        f"# {LONG}",
        f"x = [{', '.join(['0.5'] * 100)}]",
        f"x = [1979-05-27T07:32:00.999999, {'1.5e-3,' * 20}]",
        "a.b.c.d.e.f.g.h = 1",
        f'"{LONG}" = 1',
        f'x = {Q3}a ""{LONG}"" \\{Q3} {LONG}{Q3}""',
    ],
)
def test_many_dots_that_are_no_key_are_let_through(text):
    tomllib.loads(text)
    with pytest.raises(PlanError, match="reads plans of format 1"):
        parse_plan(text.encode(), "plan.toml")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("".join(f"k{place} = 1\n" for place in range(300)), "the plan has 301 entries; at most 200"),
        ("[public]\n" + "".join(f"k{place} = 1\n" for place in range(300)), "public has 300 entries; at most 200"),
        (f"classes = [{'1,' * 100_001}]", "classes has 100,001 entries; at most 100,000"),
        (f"classes = [[{'1,' * 100_001}]]", "classes has 100,001 entries"),
        ("[[schema.columns]]\n" * 100_001, r"schema\.columns has 100,001 entries"),
        ("[models.parties]\n" + "".join(f"p{place} = 1\n" for place in range(10_001)), "at most 10,000"),
    ],
)
def test_a_table_or_a_list_that_is_longer_than_any_in_a_plan_is_refused(text, words):
    with pytest.raises(PlanError, match=words):
        parse_plan(f"format = 1\n{text}".encode(), "plan.toml")


def test_very_many_tables_are_refused_before_they_are_parsed():
    text = "".join(f"[[a{place}]]\n" for place in range(110_201))
    with pytest.raises(PlanError, match="more than 110,200 tables"):
        parse_plan(text.encode(), "plan.toml")
    # Brackets inside a string are no tables.
    with pytest.raises(PlanError, match="reads plans of format 1"):
        parse_plan(f"x = {Q3}{text}{Q3}".encode(), "plan.toml")


def test_of_very_many_faults_in_a_list_only_the_first_is_looked_for():
    with pytest.raises(PlanError) as refused:
        parse_plan(f"format = 1\nclasses = [{'1.5,' * 50_000}]".encode(), "plan.toml")
    assert "classes.0" in str(refused.value)
    assert "classes.1" not in str(refused.value)


def test_a_format_of_any_length_is_shown_in_part():
    with pytest.raises(PlanError) as refused:
        parse_plan(f'format = "{"x" * 100_000}"'.encode(), "plan.toml")
    assert len(str(refused.value)) < 500
