"""A party's own file: what is read, and the words for what is not."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from fedkt.data.table import READERS, read_table
from fedkt.errors import DataError


def write(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_csv_is_read_whatever_its_delimiter_mark_and_line_ends(tmp_path, delimiter, mark, end):
    lines = ["age|name|label", "31|Zoë|yes", '40|"a|b"|no']
    text = end.join(lines).replace("|", delimiter).encode()
    table = read_table(write(tmp_path, "a.csv", mark + text))
    assert list(table.columns) == ["age", "name", "label"]
    assert table.columns["age"].tolist() == ["31", "40"]
    assert table.columns["name"].tolist() == ["Zoë", f"a{delimiter}b"]
    assert table.n_rows == 2


def test_a_packed_csv_is_the_same_table(tmp_path):
    table = read_table(write(tmp_path, "a.csv.gz", gzip.compress(b"a,b\n1,2\n")))
    assert {name: values.tolist() for name, values in table.columns.items()} == {"a": ["1"], "b": ["2"]}


def test_rows_remember_the_line_they_start_on(tmp_path):
    table = read_table(write(tmp_path, "a.csv", 'a,b\n1,"two\nlines"\n\n3,4\n'))
    assert table.lines.tolist() == [2, 5]
    assert table.at(1) == f"{tmp_path / 'a.csv'}, line 5"
    assert table.take(np.array([1])).lines.tolist() == [5]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,b\n", "no rows"),
        ("a,b\n1,2\n3\n", "line 3: 1 values, but the header names 2"),
        ("a,b\n1,2,3\n", "line 2: 3 values"),
        ("a,b,a\n1,2,3\n", "'a' more than once"),
        ("1.5,2,3\n4,5,6\n", "looks like data"),
        ('a,b\n1,2\n1,"open\n', "line 3"),
        (b"a,b\n1,\x81\n", "not UTF-8"),
        ("a,b\n1," + "x" * 200_000 + "\n", "line 2: field larger"),
    ],
)
def test_a_csv_that_cannot_be_a_table_is_refused_with_the_place(tmp_path, text, words):
    with pytest.raises(DataError, match=words) as caught:
        read_table(write(tmp_path, "bad.csv", text))
    assert "bad.csv" in str(caught.value)


def test_a_csv_without_the_label_asked_for_names_its_columns(tmp_path):
    with pytest.raises(DataError, match=r"no label column 'income'\. Its columns are: a, b"):
        read_table(write(tmp_path, "a.csv", "a,b\n1,2\n"), label="income")


def test_an_unknown_ending_lists_what_works(tmp_path):
    for name in ("a.docx", "a", "a.pkl.gz", "a.pkl"):
        with pytest.raises(DataError, match=r"\.csv, \.tsv, .*\.parquet, \.npz, \.libsvm"):
            read_table(write(tmp_path, name, "x"))
    assert ".pkl" not in READERS


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(DataError, match="is not a file"):
        read_table(tmp_path / "a.csv")
    with pytest.raises(DataError, match="cannot be read"):
        read_table(write(tmp_path, "a.csv.gz", gzip.compress(b"a,b\n1,2\n")[:-9]))


def test_a_parquet_file_has_numbers_and_text(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    columns = {
        "age": pa.array([31, None, 7]),
        "dose": pa.array([0.5, 1.5, None]),
        "smoker": pa.array([True, None, False]),
        "ward": pa.array(["a", None, "b"]).dictionary_encode(),
        "day": pa.array([0, 1, None], type=pa.date32()),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet")
    np.testing.assert_array_equal(table.columns["age"], [31, np.nan, 7])
    np.testing.assert_array_equal(table.columns["dose"], [0.5, 1.5, np.nan])
    assert table.columns["smoker"].tolist() == ["True", "", "False"]
    assert table.columns["ward"].tolist() == ["a", "", "b"]
    assert table.columns["day"].tolist() == ["1970-01-01", "1970-01-02", ""]
    assert table.at(1) == f"{tmp_path / 'a.parquet'}, row 2"


def test_a_file_that_is_not_parquet_is_refused(tmp_path):
    pytest.importorskip("pyarrow")
    with pytest.raises(DataError, match="not a Parquet file"):
        read_table(write(tmp_path, "a.parquet", b"PAR1 nothing PAR1"))


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"pip install 'fedkt\[parquet\]'"):
        read_table(write(tmp_path, "a.parquet", b""))


def test_an_npz_has_its_own_names_or_x0_x1(tmp_path):
    X = np.array([[1, 2], [3, 4]], dtype=np.float32)
    np.savez(tmp_path / "a.npz", X=X, y=np.array(["no", "yes"]), names=np.array(["age", "dose"]))
    table = read_table(tmp_path / "a.npz", label="ill")
    assert table.columns["dose"].tolist() == [2.0, 4.0]
    assert table.columns["ill"].tolist() == ["no", "yes"]
    np.savez(tmp_path / "b.npz", X=X, y=np.array([0, 1]))
    assert list(read_table(tmp_path / "b.npz").columns) == ["x0", "x1", "label"]
    np.savez(tmp_path / "c.npz", X=X)
    assert list(read_table(tmp_path / "c.npz").columns) == ["x0", "x1"]


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"Y": np.zeros(2)}, "no array 'X'"),
        ({"X": np.zeros(3)}, "shape"),
        ({"X": np.zeros((0, 3))}, "shape"),
        ({"X": np.array([["a"]])}, "<U1"),
        ({"X": np.array([[object()]])}, "plain arrays"),
        ({"X": np.zeros((2, 2)), "y": np.zeros(3)}, "one label per row"),
        ({"X": np.zeros((2, 2)), "names": np.array(["a"])}, "1 names for the 2 columns"),
        ({"X": np.zeros((2, 2)), "names": np.array(["a", "a"])}, "more than once"),
        ({"X": np.zeros((2, 1)), "y": np.zeros(2), "names": np.array(["label"])}, "also the name of a column"),
    ],
)
def test_an_npz_that_is_no_table_is_refused(tmp_path, arrays, words):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(DataError, match=words):
        read_table(tmp_path / "a.npz")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04broken", b"\x80\x04K\x01.", b"\x93NUMPY"])
def test_a_file_that_is_no_npz_is_refused(tmp_path, content):
    with pytest.raises(DataError):
        read_table(write(tmp_path, "a.npz", content))


def test_a_bare_array_under_an_npz_name_is_refused(tmp_path):
    with (tmp_path / "a.npz").open("wb") as stream:
        np.save(stream, np.zeros((2, 2)))
    with pytest.raises(DataError, match="NPZ"):
        read_table(tmp_path / "a.npz")


def test_a_libsvm_file_reads_as_scikit_learn_wrote_it(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 7)) * (rng.random((50, 7)) < 0.5)
    y = rng.integers(0, 3, 50)
    dump_svmlight_file(X, y, str(tmp_path / "a.libsvm"), zero_based=False)
    table = read_table(tmp_path / "a.libsvm", n_features=9)
    assert list(table.columns) == [f"f{j}" for j in range(1, 10)] + ["label"]
    np.testing.assert_allclose(np.column_stack([table.columns[f"f{j}"] for j in range(1, 8)]), X, rtol=1e-12)
    assert not table.columns["f9"].any()
    assert [float(label) for label in table.columns["label"]] == y.tolist()


def test_comments_and_blank_lines_of_a_libsvm_file_keep_the_line_numbers(tmp_path):
    table = read_table(write(tmp_path, "a.txt", "# made today\n+1 1:2 3:4 # first\n\n-1 2:1e-3\n"), label="ill")
    assert table.columns["ill"].tolist() == ["+1", "-1"]
    assert table.columns["f3"].tolist() == [4.0, 0.0]
    assert table.lines.tolist() == [2, 4]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1 0:1", "numbered from 1"),
        ("1 -3:1", "numbered from 1"),
        ("1 99999999999999:1", "outside 1 … 100000"),
        ("1 1:1 1:2", "twice"),
        ("1 1:x", "not index:value"),
        ("1 1:", "not index:value"),
        ("1 1_0:1", "not index:value"),
        ("1 qid:3 1:1", "not index:value"),
        ("1 1", "not index:value"),
        ("1:1 2:1", "starts with its label"),
    ],
)
def test_a_bad_libsvm_line_is_refused_with_its_number(tmp_path, line, words):
    with pytest.raises(DataError, match=words) as caught:
        read_table(write(tmp_path, "a.svm", f"1 1:1\n{line}\n"))
    assert "line 2" in str(caught.value)


def test_a_libsvm_feature_beyond_the_agreed_ones_is_refused(tmp_path):
    with pytest.raises(DataError, match="feature 4 is outside 1 … 3"):
        read_table(write(tmp_path, "a.svm", "1 4:1\n"), n_features=3)


def test_a_sparse_file_that_would_not_fit_in_memory_is_refused(tmp_path):
    with pytest.raises(DataError, match="at most"):
        read_table(write(tmp_path, "a.svm", "1 100000:1\n" * 6000))
    with pytest.raises(DataError, match="no rows"):
        read_table(write(tmp_path, "b.svm", "\n"))
    with pytest.raises(DataError, match="no features"):
        read_table(write(tmp_path, "c.svm", "1\n"))
