"""Whoever takes over the child that unpacks a Parquet file can do nothing from there."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from fedkt.data import parquet
from fedkt.data.table import read_table
from fedkt.errors import DataError
from fedkt.models.wall_trial import ALL, try_acts

if sys.platform != "linux":
    pytest.skip("only Linux has these walls", allow_module_level=True)
pa = pytest.importorskip("pyarrow")

# A library that a hostile file has taken over: it says which of the acts it could do.
LIBRARY = """
import os, socket
acts = {acts!r}
def done(act):
    try:
        eval(act)
    except OSError:
        return False
    return True
def ParquetFile(source, **options):
    raise ValueError("did " + "; ".join(act for act in acts if done(act)))
"""
PROGRAM = """
import runpy, sys, pyarrow, pyarrow.parquet
exec({library!r}, vars(pyarrow.parquet))
runpy.run_path({child!r}, run_name="__main__")
"""


@pytest.fixture
def all_walls():
    if set(try_acts().walls) != set(ALL):
        pytest.skip("this kernel does not have them all")


def taken_over(folder, monkeypatch, acts):
    """What a library that is taken over says it could do in the child."""
    (folder / "a.parquet").write_bytes(b"hostile")
    (folder / "child.py").write_text(PROGRAM.format(library=LIBRARY.format(acts=acts), child=str(parquet.CHILD)))
    monkeypatch.setattr(parquet, "CHILD", folder / "child.py")
    with pytest.raises(DataError) as caught:
        read_table(folder / "a.parquet")
    return str(caught.value).partition("can be read: ")[2]


def test_a_library_that_is_taken_over_reaches_no_file_no_network_and_no_process(tmp_path, monkeypatch, all_walls):
    (tmp_path / "own").write_bytes(b"content")
    own = str(tmp_path / "own")
    acts = [f"open({own!r})", f"os.unlink({own!r})", "socket.socket()", "os.fork()", f"os.kill({os.getpid()}, 0)"]
    assert taken_over(tmp_path, monkeypatch, ["os.getpid()", *acts]) == "did os.getpid()"
    assert (tmp_path / "own").read_bytes() == b"content"


def test_the_child_has_one_thread_and_every_wall_when_the_first_answer_comes(tmp_path, all_walls):
    from pyarrow.parquet import write_table

    # More than a pipe holds, so that the child waits for its parent with the answers.
    write_table(pa.table({"x": np.arange(100_000.0)}), tmp_path / "a.parquet")
    places = sorted({str(Path(each.__file__).parent.parent) for each in (pa, np)})
    with parquet._answers(tmp_path / "a.parquet", places) as stream:
        stream.head()
        lines = Path(f"/proc/{stream._child.pid}/status").read_text().splitlines()
    status = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
    # 2 is a filter of system calls. Landlock and namespaces cannot be seen from outside by everybody; like the dropping
    # of capabilities they need a process of one thread.
    expected = {"Threads": ["1"], "Seccomp": ["2"], "NoNewPrivs": ["1"], "CapEff": ["0" * 16]}
    assert {name: status[name] for name in expected} == expected


def test_a_parquet_file_is_read_where_no_wall_can_be_had(tmp_path, monkeypatch):
    from pyarrow.parquet import write_table

    write_table(pa.table({"x": [1.0, 2.0]}), tmp_path / "a.parquet")
    (tmp_path / "fedkt" / "data").mkdir(parents=True)
    child = tmp_path / "fedkt" / "data" / "parquet_child.py"
    child.write_bytes(parquet.CHILD.read_bytes())
    source = (parquet.CHILD.parents[1] / "system" / "walls.py").read_text(encoding="utf-8")
    (tmp_path / "fedkt" / "system").mkdir()
    (tmp_path / "fedkt" / "system" / "walls.py").write_text(
        f"import sys\nsys.platform = 'win32'\n{source.partition('annotations')[2]}", encoding="utf-8"
    )
    monkeypatch.setattr(parquet, "CHILD", child)
    assert read_table(tmp_path / "a.parquet").columns["x"].tolist() == [1.0, 2.0]
