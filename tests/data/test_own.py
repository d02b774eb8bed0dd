"""A user's own table as a dataset: rows by role, columns by the public rows, strange tables refused in words."""

import numpy as np
import pytest

from fedkt.data.own import OwnFile, OwnTable
from fedkt.data.own_rows import load_own
from fedkt.errors import ConfigurationError, DataError


def table(folder, lines, name="own.csv"):
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


def people(n=60, label="ill", start=0):
    """Rows of three wards, a number, a category and a label that follows the number."""
    rows = range(start, start + n)
    return [
        f"ward,age,kind,{label}",
        *(f"w{i % 3},{20 + i % 40},{'ab'[i % 2]},{'yes' if i % 40 > 20 else 'no'}" for i in rows),
    ]


def own(path, label="ill", **options):
    return OwnTable(OwnFile.at(path), label, **options)


def test_rows_have_a_role_each_and_columns_become_numbers_by_the_public_rows_alone(tmp_path):
    data = load_own(own(table(tmp_path, people()), party_column="ward"), seed=0)
    assert (len(data.y), len(data.X_public), len(data.y_test)) == (36, 12, 12)
    assert data.classes == ("no", "yes")
    assert sorted(set(data.groups)) == ["w0", "w1", "w2"]
    assert data.feature_names == ("age", "age is missing", "kind=a", "kind=b", "kind is missing")
    ages = data.X_public[:, 0]
    assert (ages.mean(), ages.std()) == (pytest.approx(0, abs=1e-6), pytest.approx(1, abs=1e-6))
    assert data.X[:, 0].mean() != pytest.approx(0, abs=1e-6)
    assert (data.name, data.image, data.notes) == ("own.csv", None, ())


def test_the_seed_decides_who_is_set_aside(tmp_path):
    mine = own(table(tmp_path, people()))
    first, again, other = (load_own(mine, seed=seed) for seed in (0, 0, 1))
    assert np.array_equal(first.X_public, again.X_public)
    assert not np.array_equal(first.X_public, other.X_public)
    assert first.groups is None


def test_public_and_test_rows_may_be_files_of_their_own(tmp_path):
    mine = table(tmp_path, people())
    public = table(tmp_path, [line.rpartition(",")[0] for line in people(30, start=7)], "public.csv")
    test = table(tmp_path, people(20, start=11), "test.csv")
    data = load_own(own(mine, party_column="ward", public=OwnFile.at(public), test=OwnFile.at(test)), seed=0)
    assert (len(data.y), len(data.X_public), len(data.y_test)) == (60, 30, 20)
    assert data.y_public is None
    assert "public rows from public.csv" in data.source
    known = table(tmp_path, people(30, start=7), "known.csv")
    labelled = load_own(own(mine, public=OwnFile.at(known), test=OwnFile.at(test)), seed=0)
    assert labelled.y_public.tolist() == [int(i % 40 > 20) for i in range(7, 37)]


def test_a_column_that_only_the_public_rows_have_can_be_left_out(tmp_path):
    lines = [f"{line},{place or 'number'}" for place, line in enumerate(people(30, start=7))]
    public = OwnFile.at(table(tmp_path, lines, "public.csv"))
    mine = table(tmp_path, people())
    with pytest.raises(DataError, match=r"lacks the column 'number' of the public rows.*--ignore"):
        load_own(own(mine, public=public), seed=0)
    assert "number" not in load_own(own(mine, public=public, ignore=("number",)), seed=0).feature_names


def test_columns_that_name_rows_are_told_of_with_what_to_do(tmp_path):
    lines = [
        f"{line},{f'person {place}' if place else 'name'},{place or 'number'}" for place, line in enumerate(people(300))
    ]
    said = " ".join(load_own(own(table(tmp_path, lines)), seed=0).notes)
    assert "leave it out with --ignore name" in said
    assert "leave it out with --ignore number" in said
    assert "--ignore age" not in said


def test_a_category_that_no_public_row_has_is_noted(tmp_path):
    public = table(tmp_path, people(30, start=7), "public.csv")
    lines = [line.replace(",a,", ",c,") for line in people()]
    data = load_own(own(table(tmp_path, lines), public=OwnFile.at(public)), seed=0)
    assert any("of 48 values of 'kind'" in note for note in data.notes)


@pytest.mark.parametrize("kind", ["npz", "libsvm", "parquet", "images"])
def test_every_kind_of_file_that_is_read_can_be_simulated_with(tmp_path, kind):
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    if kind == "npz":
        np.savez(path := tmp_path / "own.npz", X=X, y=y)
    elif kind == "libsvm":
        path = table(tmp_path, [f"{c} 1:{a} 2:{b}" for (a, b, _), c in zip(X, y, strict=True)], "own.libsvm")
    elif kind == "parquet":
        parquet, arrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
        parquet.write_table(arrow.table({"a": X[:, 0], "label": y}), path := tmp_path / "own.parquet")
    else:
        images = pytest.importorskip("PIL.Image")
        for i, label in enumerate(y):
            (path := tmp_path / "scans").joinpath(f"c{label}").mkdir(parents=True, exist_ok=True)
            images.fromarray(np.full((4, 5), i, dtype=np.uint8)).save(path / f"c{label}" / f"{i:02}.png")
    data = load_own(OwnTable(OwnFile.at(path)), seed=0)
    assert data.classes == (("c0", "c1") if kind == "images" else (0, 1))
    assert data.image == ((4, 5, 1) if kind == "images" else None)
    assert (len(data.y), len(data.y_public), len(data.y_test)) == (24, 8, 8)


def test_whole_numbers_are_classes_in_their_order_and_spellings_of_one_are_one(tmp_path):
    lines = ["a,y", *(f"{i},{('10', '2', '2.0', '02')[i % 4]}" for i in range(40))]
    assert load_own(own(table(tmp_path, lines), "y"), seed=0).classes == (2, 10)


def test_a_class_of_two_rows_is_learned_and_what_is_not_tested_is_said(tmp_path):
    lines = ["a,y", *(f"{i},{'rare' if i < 2 else 'bc'[i % 2]}" for i in range(60))]
    data = load_own(own(table(tmp_path, lines), "y", public=0.05, test=0.05), seed=0)
    assert data.classes == ("b", "c", "rare")
    assert 2 in data.y
    assert any("'rare'" in note for note in data.notes) == (2 not in data.y_test)


@pytest.mark.parametrize(
    ("lines", "options", "words"),
    [
        (["a,y", "1,yes", "2,", "3,no", "4,"], {}, r"line 3: the label '' in column 'y' is missing \(and 1 more row\)"),
        (["a,y", "1,yes", "2,yes", "3,yes"], {}, r"all rows have the label 'yes'"),
        (["a,y", *(f"{i},{i / 7}" for i in range(60))], {}, r"60 different labels in 60 rows .* predicts classes"),
        (["a,p,y", "1,n,yes", "2,,no", "3,s,no"], {"party_column": "p"}, "line 3: column 'p' names no party"),
        (["a,y", "1,yes", "2,no"], {"party_column": "p"}, "no party column 'p'. It has: 'a', 'y'"),
        (["a,y", "1,yes", "2,no"], {"ignore": ("b",)}, "no ignored column 'b'"),
        (["b,z", "1,yes", "2,no"], {}, "no label column 'y'"),
        (["a,y", "1,yes", "2,no", "3,no"], {}, r"3 rows: too few .*--public-file"),
        (["p,y", *(f"{i % 2},{'ab'[i % 3 > 0]}" for i in range(30))], {"party_column": "p"}, "no columns"),
    ],
    ids=["unlabelled", "one class", "numbers", "nobody's", "no party", "no column", "no label", "few", "nothing"],
)
def test_a_strange_table_is_refused_in_words(tmp_path, lines, options, words):
    with pytest.raises(DataError, match=words):
        load_own(own(table(tmp_path, lines), "y", **options), seed=0)


def test_choices_that_cannot_work_are_refused(tmp_path):
    path = table(tmp_path, people())
    for options, words in (
        ({"public": 0.95}, r"above 0 and at most at 0\.9, got 0\.95"),
        ({"public": 0.5, "test": 0.5}, "at most 0.9"),
        ({"party_column": "ill"}, "cannot be both"),
        ({"test": OwnFile.at(path)}, "--test-file .* is the same file"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            own(path, **options)


def test_a_file_that_changed_since_is_not_read_under_the_name_of_the_former(tmp_path):
    mine = own(table(tmp_path, people()))
    table(tmp_path, people(61))
    with pytest.raises(DataError, match="has changed since"):
        load_own(mine, seed=0)


def test_what_is_kept_of_a_table_tells_no_folder(tmp_path):
    facts = own(table(tmp_path, people()), public=OwnFile.at(table(tmp_path, people(9), "p.csv"))).facts()
    assert str(tmp_path) not in str(facts)
    assert (facts["file"], facts["public"]["file"], facts["test"]) == ("own.csv", "p.csv", 0.2)
    assert len(facts["sha256"]) == 64
