"""A Parquet file means what its values mean one by one, however it is cut into batches."""

import datetime
import decimal
import io
import json
import struct
import tracemalloc
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedkt.data import parquet, parquet_child
from fedkt.data.schema import fit_schema
from fedkt.data.table import read_table
from fedkt.errors import DataError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

DAY = st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1))
KINDS = [
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.float32(), st.floats(width=32, allow_nan=False)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.uint8(), st.integers(0, 255)),
    (pa.decimal128(9, 3), st.decimals(-999_999, 999_999, places=3)),
    (pa.decimal128(30, 12), st.decimals(-(10**9), 10**9, places=12)),
    (pa.bool_(), st.booleans()),
    (pa.string(), st.text(max_size=4)),
    (pa.dictionary(pa.int32(), pa.string()), st.sampled_from(["Zürich", "Zu\u0308rich", "", "a\0b"])),
    (pa.date32(), DAY),
    (pa.timestamp("us"), st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1))),
]


def read_here(monkeypatch, data: bytes, wanted=()):
    """What the parent makes of what the child's functions answer, both in this process."""

    @contextmanager
    def answers(path, places, asked=()):
        stream = b"".join(map(bytes, parquet_child.messages(pa, pq, io.BytesIO(data), columns=100, wanted=asked)))
        yield parquet._Answers(io.BytesIO(stream), None, path)

    monkeypatch.setattr(parquet, "_answers", answers)
    return parquet.read_parquet


@st.composite
def tables(draw):
    n_rows = draw(st.integers(1, 12))
    columns = {}
    for place in range(draw(st.integers(1, 4))):
        kind, values = draw(st.sampled_from(KINDS))
        rows = draw(st.lists(st.none() | values, min_size=n_rows, max_size=n_rows))
        columns[f"c{place}"] = pa.array(rows, type=kind)
    return pa.table(columns)


def as_fedkt_has_it(column):
    """The slow oracle: every value by itself."""
    values = column.to_pylist()
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return [np.nan if each is None else float(each) for each in values]
    return ["" if each is None else str(each) for each in values]


@settings(max_examples=40, deadline=None)
@given(tables(), st.integers(1, 5), st.integers(0, 6), st.integers(1, 12))
def test_a_table_is_read_as_its_values_are_one_by_one(tmp_path_factory, table, batch, kept, group):
    folder = tmp_path_factory.mktemp("parquet")
    pq.write_table(table, folder / "a.parquet", row_group_size=group)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_child, "BATCH_ROWS", (batch, batch))
        # So few different texts are kept that some batches have to bring their own.
        patch.setattr(parquet_child, "KEPT", kept)
        found = read_here(patch, (folder / "a.parquet").read_bytes())(folder / "a.parquet")
    for name in table.column_names:
        expected = as_fedkt_has_it(table.column(name))
        if isinstance(expected[0], str):
            assert found.columns[name].tolist() == expected
        else:
            np.testing.assert_array_equal(found.columns[name], expected)


def test_a_parquet_file_and_the_csv_of_the_same_rows_become_the_same_features(tmp_path):
    rng = np.random.default_rng(0)
    n = 300
    table = pa.table(
        {
            "x": rng.normal(size=n),
            "n": pa.array(rng.integers(0, 50, n), mask=rng.random(n) < 0.1),
            "ward": rng.choice(["Köln", "Ko\u0308ln", "Bonn", "7", "7.0"], n),
            "smoker": pa.array(rng.random(n) < 0.5),
            "day": pa.array((np.datetime64("2020-01-01") + rng.integers(0, 900, n)).astype("datetime64[D]")),
            "price": pa.array([decimal.Decimal(int(each)).scaleb(-2) for each in rng.integers(0, 10_000, n)]),
            "ill": rng.choice(["no", "yes"], n),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    from pyarrow.csv import write_csv

    write_csv(table, tmp_path / "a.csv")
    both = [read_table(tmp_path / name) for name in ("a.parquet", "a.csv")]
    schema = fit_schema(both[1], label="ill", missing="allow")
    np.testing.assert_array_equal(*(schema.encode(each) for each in both))
    np.testing.assert_array_equal(*(schema.labels(each, ["no", "yes"]) for each in both))
    assert schema.unseen_notes(both[0]) == schema.unseen_notes(both[1]) == ()


def test_only_the_columns_that_are_wanted_are_read_and_the_others_are_named(tmp_path):
    table = pa.table({"a": [1.0, 2.0], "a.b": ["x", "y"], "c": ["long", "text"], "d": [3, 4]})
    pq.write_table(table, tmp_path / "a.parquet")
    found = read_table(tmp_path / "a.parquet", wanted=["d", "a", "missing"])
    assert list(found.columns) == ["a", "a.b", "c", "d"]
    assert (found.columns["a"].tolist(), found.columns["d"].tolist()) == ([1.0, 2.0], [3.0, 4.0])
    assert (found.n_rows, len(found.take(np.array([1])).columns["c"])) == (2, 1)
    with pytest.raises(LookupError):
        found.columns["c"].tolist()
    assert read_table(tmp_path / "a.parquet", wanted=["missing"]).n_rows == 2


def test_lists_and_structures_are_refused_only_where_they_are_wanted(tmp_path):
    long = ["x" * 100_000] * 300
    nested = {"l": [[1, 2]] * 300, "s": [{"b": "x", "c": [1.5]}] * 300}
    table = {"s.b": ["y"] * 300, **nested, "a": [1.0] * 300, "t": long}
    pq.write_table(pa.table(table), tmp_path / "a.parquet", use_dictionary=False)
    found = read_table(tmp_path / "a.parquet", wanted=["a", "t", "s.b"])
    assert found.columns["a"].tolist() == [1.0] * 300
    assert (found.columns["t"].tolist(), found.columns["s.b"].tolist()) == (long, ["y"] * 300)
    with pytest.raises(DataError, match="lists or structures in column 'l'"):
        read_table(tmp_path / "a.parquet", wanted=["a", "l"])
    with pytest.raises(DataError, match="lists or structures in column 's'"):
        read_table(tmp_path / "a.parquet", wanted=["s"])


def test_names_too_long_for_a_command_line_are_asked_about_by_reading_all(tmp_path):
    names = [f"{place:0>400}" for place in range(100)]
    pq.write_table(pa.table({name: [1.0] for name in [*names, "more"]}), tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet", wanted=names).columns["more"].tolist() == [1.0]


def frame(content) -> bytes:
    text = json.dumps(content).encode()
    return struct.pack("<I", len(text)) + text


TWO_ROWS = struct.pack("<I", 2)
CODES = struct.pack("<2H", 0, 1)
END = struct.pack("<I", 0)
REFUSED = struct.pack("<I", parquet_child.REFUSED)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(frame({"names": ["t"], "kinds": "-", "rows": 2}), id="a column that was asked for is not sent"),
        pytest.param(REFUSED * 5_000, id="a reason why there is no reason, and so on"),
        pytest.param(REFUSED + frame({"reason": ["a"]}), id="a reason that is no text"),
        *(
            pytest.param(frame({"names": ["t"], "kinds": "t", "rows": 2}) + TWO_ROWS + rest, id=name)
            for name, rest in {
                "no new texts for codes": frame({"new": []}) + CODES,
                "a code past the texts": frame({"own": ["a"]}) + CODES,
                "texts that are none": frame({"new": ["a", 1]}) + CODES,
                "both kinds of texts": frame({"new": ["a"], "own": ["b"]}) + CODES,
                "another kind of texts": frame({"old": ["a", "b"]}) + CODES,
                "no texts at all": frame({}) + CODES,
                "codes that stop": frame({"new": ["a", "b"]}) + CODES[:3],
                "more texts than are kept": frame({"new": ["a"] * (parquet.KEPT + 1)}) + CODES,
                "more texts than rows": frame({"own": ["a", "b", "c"]}) + CODES + END,
                "half a character": frame({"new": ["a", "\ud800"]}) + CODES + END,
            }.items()
        ),
    ],
)
def test_a_child_that_does_not_keep_to_its_protocol_is_refused(tmp_path, monkeypatch, answer):
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    (tmp_path / "child.py").write_text(f"import sys; sys.stdout.buffer.write({answer!r})")
    monkeypatch.setattr(parquet, "CHILD", tmp_path / "child.py")
    with pytest.raises(DataError, match=r"a\.parquet (cannot be|is not) read"):
        parquet.read_parquet(tmp_path / "a.parquet")


@pytest.mark.parametrize("content", [b"[],", b'"ab",', b'"ab", '], ids=["lists", "texts", "texts as they are written"])
def test_many_small_objects_in_a_large_answer_are_never_made(tmp_path, content):
    """Four million bytes of them would be more than 50 million in memory, and an answer may have 16 times as many."""
    answer = b'{"own": [' + content * (4_000_000 // len(content)) + content.rstrip(b", ") + b"]}"
    stream = parquet._Answers(io.BytesIO(struct.pack("<I", len(answer)) + answer), None, tmp_path / "a.parquet")
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="did not keep to its protocol"):
            stream.texts(2)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_texts_that_look_like_the_protocol_are_read_as_they_are(tmp_path):
    texts = ['", "', '", ', ', "', "\\", '\\", ', "\n", "🚑", "a\0b", ""]
    columns = {f"t{place}": [text + "1", text * 2, text * 3, text] for place, text in enumerate(texts)}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet")
    assert {name: table.columns[name].tolist() for name in columns} == columns


def test_a_long_text_that_all_rows_name_is_there_once_also_where_it_is_not_kept(tmp_path):
    long = "x" * 100_000
    texts = pa.DictionaryArray.from_arrays(np.zeros(20_000, dtype=np.int32), pa.array([long]))
    pq.write_table(pa.table({"t": texts}), tmp_path / "a.parquet", store_schema=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_child, "KEPT", 0)
        found = read_here(patch, (tmp_path / "a.parquet").read_bytes())(tmp_path / "a.parquet")
    assert len(found.columns["t"]) == 20_000
    assert sum(len(block.texts) for block in found.columns["t"].blocks) < 10 * len(long)
