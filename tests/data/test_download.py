"""Files: found, verified, downloaded once, and never half."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import subprocess
import sys
import textwrap
import threading
import time
import tracemalloc
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from fedkt.data import download
from fedkt.data.download import FILES, RemoteFile, find_content, find_file
from fedkt.data.packing import join_adult, join_heart
from fedkt.errors import ConfigurationError, DataError
from real_data import DATA_DIR, needs_real_data

TEXT = b"-1 1:0.5\n+1 2:1\n" * 20_000
FIRST, SECOND = gzip.compress(TEXT[:100]), gzip.compress(TEXT[100:])
LARGE = TEXT * 40
BOMB = gzip.compress(bytes(50_000_000))


class Source(BaseHTTPRequestHandler):
    """A public source that misbehaves on demand."""

    requests: list[str] = []  # noqa: RUF012

    def do_GET(self) -> None:
        self.requests.append(self.path)
        if self.path == "/missing":
            self.send_error(404)
            return
        body = {
            "/wrong": TEXT[:-1] + b"!",
            "/large": LARGE,
            "/first.gz": FIRST,
            "/second.gz": SECOND,
            "/cut.gz": SECOND[:-20],
            "/bomb.gz": BOMB,
        }.get(self.path, TEXT)
        self.send_response(200)
        if self.path != "/large":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.path in ("/truncated", "/stalls"):
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            if self.path == "/stalls":
                time.sleep(20)
            self.close_connection = True
            return
        with contextlib.suppress(ConnectionError):
            self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Source)
    server.daemon_threads = True
    server.block_on_close = False
    Source.requests.clear()
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("FEDKT_DATA", raising=False)
    return tmp_path / "cache" / "fedkt"


def register(monkeypatch: pytest.MonkeyPatch, *urls: str, size: int = len(TEXT)) -> None:
    file = RemoteFile(("toy.gz", "toy"), urls, hashlib.sha256(TEXT).hexdigest(), size)
    monkeypatch.setitem(FILES, "toy", file)


def cache_files(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir()) if cache.exists() else []


def test_a_file_is_downloaded_once_and_then_found_in_the_cache(source, cache, monkeypatch):
    register(monkeypatch, f"{source}/toy")
    seen: list[tuple[int, int]] = []
    path = find_file("toy", progress=lambda done, total: seen.append((done, total)))
    assert path == cache / "toy"
    assert path.read_bytes() == TEXT
    assert seen[-1] == (len(TEXT), len(TEXT))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert find_file("toy") == path
    assert Source.requests == ["/toy"]
    assert cache_files(cache) == ["toy"]


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("wrong", "sha256"),
        ("truncated", "could not be downloaded"),
        ("missing", "answered 404"),
        ("large", "more than the"),
    ],
)
def test_a_download_that_is_not_the_file_is_refused_and_nothing_is_kept(source, cache, monkeypatch, page, words):
    register(monkeypatch, f"{source}/{page}")
    with pytest.raises(DataError, match=words) as caught:
        find_file("toy")
    assert f"{source}/{page}" in str(caught.value)
    assert "--data-dir" in str(caught.value)
    assert cache_files(cache) == []


def test_packed_files_of_the_public_source_are_unpacked_and_joined(source, cache, monkeypatch):
    sent = len(FIRST) + len(SECOND)
    file = RemoteFile(
        ("toy",), (f"{source}/first.gz", f"{source}/second.gz"), hashlib.sha256(TEXT).hexdigest(), len(TEXT), sent=sent
    )
    monkeypatch.setitem(FILES, "toy", file)
    seen: list[tuple[int, int]] = []
    assert find_file("toy", progress=lambda done, total: seen.append((done, total))).read_bytes() == TEXT
    assert seen[-1] == (sent, sent)
    assert cache_files(cache) == ["toy"]


@pytest.mark.parametrize(("page", "words"), [("cut", "cannot be unpacked"), ("first", "sha256")])
def test_packed_files_that_are_not_the_data_are_refused_and_nothing_is_kept(source, cache, monkeypatch, page, words):
    register(monkeypatch, f"{source}/first.gz", f"{source}/{page}.gz")
    with pytest.raises(DataError, match=words):
        find_file("toy")
    assert cache_files(cache) == []


def test_a_bomb_sent_by_the_public_source_is_not_unpacked(source, cache, monkeypatch):
    register(monkeypatch, f"{source}/bomb.gz")
    # Once before: the first time also loads the library that downloads.
    with pytest.raises(DataError, match="sha256"):
        find_file("toy")
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="sha256"):
            find_file("toy")
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    assert cache_files(cache) == []


def test_of_several_forms_the_one_that_is_there_is_taken_else_the_last_is_downloaded(
    source, cache, tmp_path, monkeypatch
):
    register(monkeypatch, f"{source}/toy")
    own = b"the same in another form"
    monkeypatch.setitem(FILES, "own", RemoteFile(("toy.own",), (), hashlib.sha256(own).hexdigest(), len(own)))
    (tmp_path / "toy.own").write_bytes(own)
    file = find_content("own", "toy", data_dir=tmp_path)
    assert (file.name, file.path, file.content) == ("own", tmp_path / "toy.own", own)
    (tmp_path / "toy.own").unlink()
    file = find_content("own", "toy", data_dir=tmp_path)
    assert (file.name, file.path, file.content) == ("toy", cache / "toy", TEXT)


def test_a_server_that_is_down_is_named_with_what_to_do(source, cache, monkeypatch):
    register(monkeypatch, "http://127.0.0.1:9/toy")
    with pytest.raises(DataError, match=r"127\.0\.0\.1:9/toy could not be downloaded .*FEDKT_DATA"):
        find_file("toy")
    assert cache_files(cache) == []


def test_a_silent_server_is_given_up(source, cache, monkeypatch):
    register(monkeypatch, f"{source}/stalls")
    monkeypatch.setattr(download, "TIMEOUT_SECONDS", 0.3)
    with pytest.raises(DataError, match="ReadTimeout"):
        find_file("toy")
    assert cache_files(cache) == []


def test_a_server_that_takes_for_ever_is_given_up(source, cache, monkeypatch):
    register(monkeypatch, f"{source}/toy")
    monkeypatch.setattr(download, "DEADLINE_SECONDS", -100.0)
    with pytest.raises(DataError, match="took longer"):
        find_file("toy")


def test_a_process_killed_half_way_leaves_no_file_under_the_final_name(source, cache):
    program = f"""
        import hashlib
        from fedkt.data import download
        download.FILES["toy"] = download.RemoteFile(("toy",), ("{source}/stalls",), "0" * 64, {len(TEXT)})
        download.find_file("toy", progress=lambda done, total: print(done, flush=True))
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as child:
        assert child.stdout is not None
        assert int(child.stdout.readline()) > 0
        child.kill()
    assert "toy" not in cache_files(cache)


def test_a_rename_that_fails_leaves_nothing_behind(source, cache, monkeypatch):
    def fails(*args: object) -> None:
        raise OSError("disk full")

    register(monkeypatch, f"{source}/toy")
    monkeypatch.setattr(download.os, "replace", fails)
    with pytest.raises(DataError, match=r"disk full.*XDG_CACHE_HOME"):
        find_file("toy")
    assert cache_files(cache) == []


def test_the_data_folder_comes_before_the_environment_and_the_cache(tmp_path, cache, monkeypatch):
    register(monkeypatch, "http://127.0.0.1:9/toy")
    for name in ("own", "environment"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("FEDKT_DATA", str(tmp_path / "environment"))
    cache.mkdir(parents=True)
    (cache / "toy").write_bytes(TEXT)
    assert find_file("toy", data_dir=tmp_path / "own") == cache / "toy"
    (tmp_path / "environment" / "toy.gz").write_bytes(gzip.compress(TEXT))
    assert find_file("toy", data_dir=tmp_path / "own") == tmp_path / "environment" / "toy.gz"
    (tmp_path / "own" / "toy").write_bytes(TEXT)
    assert find_file("toy", data_dir=tmp_path / "own") == tmp_path / "own" / "toy"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("toy", TEXT[:-1]),
        ("toy.gz", gzip.compress(TEXT + b"\n")),
        ("toy.gz", gzip.compress(TEXT)[:-50]),
        ("toy.gz", b"not gzip"),
        ("toy", b""),
    ],
)
def test_a_damaged_file_in_the_folder_is_refused_by_name(tmp_path, monkeypatch, name, content):
    register(monkeypatch, "http://127.0.0.1:9/toy")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=r"[Rr]emove") as caught:
        find_file("toy", data_dir=tmp_path)
    assert str(tmp_path / name) in str(caught.value)


def test_a_decompression_bomb_is_not_unpacked(tmp_path, monkeypatch):
    register(monkeypatch, "http://127.0.0.1:9/toy", size=10)
    (tmp_path / "toy.gz").write_bytes(gzip.compress(bytes(200_000_000), compresslevel=1))
    started = time.process_time()
    with pytest.raises(DataError, match="not the file expected"):
        find_file("toy", data_dir=tmp_path)
    assert time.process_time() - started < 0.1


def test_a_folder_that_does_not_exist_is_refused(tmp_path, monkeypatch):
    with pytest.raises(DataError, match="is not a folder"):
        find_file("a9a", data_dir=tmp_path / "nowhere")
    monkeypatch.setenv("FEDKT_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="FEDKT_DATA"):
        find_file("a9a")


def test_an_unknown_file_names_the_known_ones():
    with pytest.raises(ConfigurationError, match="a9a, cod-rna"):
        find_file("imagenet")


def public_adult(canonical: str) -> tuple[bytes, bytes]:
    """UCI's two files, rebuilt from our table; their md5 say whether that went right."""
    rows = [line.split(",") for line in canonical.splitlines()[1:]]
    train = "".join(", ".join(row[:-1]) + "\n" for row in rows if row[-1] == "train")
    test = "".join(", ".join(row[:-1]) + ".\n" for row in rows if row[-1] == "test")
    return (train + "\n").encode(), ("|1x3 Cross validator\n" + test + "\n").encode()


@needs_real_data
def test_the_public_adult_files_become_our_table(tmp_path, cache):
    canonical = gzip.decompress((DATA_DIR / "adult.csv.gz").read_bytes())
    data, test = public_adult(canonical.decode())
    # The digests of the files as UCI publishes them.
    assert hashlib.md5(data).hexdigest() == "5d7c39d7b8804f071cdd1f2a7c460872"
    assert hashlib.md5(test).hexdigest() == "35238206dfdf7f1fe215bbb874adecdc"
    assert join_adult([data, test]) == canonical
    (tmp_path / "adult.data").write_bytes(data)
    (tmp_path / "adult.test").write_bytes(test)
    assert find_file("adult.csv", data_dir=tmp_path) == cache / "adult.csv"


@needs_real_data
def test_the_public_heart_files_become_our_table():
    canonical = gzip.decompress((DATA_DIR / "heart_disease_4sites.csv.gz").read_bytes())
    parts: dict[str, list[str]] = {}
    for line in canonical.decode().splitlines()[1:]:
        site, *values = line.split(",")
        if site == "cleveland":
            values = [f"{float(v):.1f}" if v else "" for v in values[:-1]] + values[-1:]
        else:
            values = [f"{float(v):g}".replace("0.", ".") if v not in ("", "0") else v for v in values]
        parts.setdefault(site, []).append(",".join(v or "?" for v in values) + "\n")
    # Lines as UCI writes them.
    assert parts["cleveland"][0] == "63.0,1.0,1.0,145.0,233.0,1.0,2.0,150.0,0.0,2.3,3.0,0.0,6.0,0\n"
    assert parts["switzerland"][0] == "32,1,1,95,0,?,0,127,0,.7,1,?,?,1\n"
    assert join_heart(["".join(lines).encode() for lines in parts.values()]) == canonical


@pytest.mark.parametrize("join", [join_adult, join_heart])
def test_a_page_that_is_not_the_data_is_not_joined_silently(join, tmp_path, monkeypatch):
    name = "adult.csv" if join is join_adult else "heart_disease_4sites.csv"
    for url in FILES[name].urls:
        (tmp_path / url.rpartition("/")[2]).write_bytes("<html>nicht gefunden für</html>".encode())
    with pytest.raises(DataError, match="is not the data of"):
        find_file(name, data_dir=tmp_path)
