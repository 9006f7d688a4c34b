"""Landed files: found by path, glob or folder, each once; those still on their way are passed by."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import os
import sys
import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from types import SimpleNamespace

import fsspec
import pytest
import yarl

from lake_core.errors import InvalidInput, NotFound, Unavailable
from log_lake.loading import own_machine
from log_lake.loading.block import Reading
from log_lake.loading.detect import format_by_name
from log_lake.loading.opening import open_bytes
from log_lake.loading.source_files import SourceFile
from log_lake.loading.sources import find_files
from log_lake.policies.apply import read_text
from tests.support.command import INVALID_INPUT, Command


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    for name in (
        "a.csv",
        "b.ndjson.gz",
        "day/c.csv",
        "day/.hidden.csv",
        "_temporary/d.csv",
        "e.csv.tmp",
        "f.crc",
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    return tmp_path


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["a.csv"], ["a.csv"]),
        (["*.csv"], ["a.csv"]),
        (["**/*.csv"], ["a.csv", "day/c.csv"]),
        (["*.csv", "a.csv", "./a.csv"], ["a.csv"]),
        (["b.ndjson.gz", "a.csv"], ["a.csv", "b.ndjson.gz"]),
        (["day"], ["day/c.csv"]),
        (["e.csv.tmp"], ["e.csv.tmp"]),
    ],
)
def test_patterns_name_files_once_and_in_order(
    landing: Path, monkeypatch: pytest.MonkeyPatch, patterns: list[str], names: list[str]
) -> None:
    monkeypatch.chdir(landing)
    assert [f.uri for f in find_files(patterns)] == [str(landing / name) for name in names]


def test_a_folder_is_searched_to_its_depths(landing: Path) -> None:
    found = [Path(f.uri).relative_to(landing).as_posix() for f in find_files([str(landing)])]
    assert found == ["a.csv", "b.ndjson.gz", "day/c.csv"]


def test_a_name_with_the_signs_of_a_glob_is_still_a_name(landing: Path) -> None:
    (landing / "x[1].csv").write_text("x")
    assert [f.uri for f in find_files([str(landing / "x[1].csv")])] == [str(landing / "x[1].csv")]


def test_a_path_that_names_nothing_is_not_found(landing: Path) -> None:
    with pytest.raises(NotFound, match=r"nowhere\.csv"):
        find_files([str(landing / "nowhere.csv")])


def test_a_changed_file_has_another_etag(landing: Path) -> None:
    before = find_files([str(landing / "a.csv")])[0]
    path = landing / "a.csv"
    path.write_text("y")
    os.utime(path, (0, 0))
    after = find_files([str(path)])[0]
    assert (before.uri, before.size) == (after.uri, after.size)
    assert before.etag != after.etag


def test_files_on_a_store_are_found_alike() -> None:
    fs = fsspec.filesystem("memory")
    for name in ("a.csv", "day/b.csv", "day/_c.csv", "_temporary/0/d.csv"):
        fs.pipe_file(f"/sources-test/{name}", b"k\n1\n")
    for pattern in ("memory://sources-test", "memory://sources-test/**"):
        assert [f.uri for f in find_files([pattern])] == [
            "memory://sources-test/a.csv",
            "memory://sources-test/day/b.csv",
        ]
    assert [f.size for f in find_files(["memory://sources-test/a.csv"])] == [4]
    with pytest.raises(NotFound):
        find_files(["memory://sources-test/nowhere.csv"])


@pytest.mark.parametrize("pattern", ["*.nothing", "nowhere/*.csv", "empty", "**/*.nothing"])
def test_a_glob_or_a_folder_without_a_file_is_not_found(landing: Path, pattern: str) -> None:
    (landing / "empty").mkdir()
    with pytest.raises(
        NotFound, match=rf"no file matches 'none\*\.csv' in {os.getcwd()}; name files, a glob"
    ):
        find_files(["none*.csv"])
    with pytest.raises(NotFound, match="no file matches"):
        find_files([str(landing / pattern)])
    assert find_files([str(landing / pattern)], may_be_empty=True) == []


@pytest.mark.parametrize("pattern", ["", "*/*.csv", "**/*.csv"])
def test_a_folder_that_cannot_be_listed_is_not_passed_by(
    landing: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    closed = str(landing / "day")
    listing, scanning = os.listdir, os.scandir

    def refuse(path: str) -> None:
        if str(path).rstrip("/") == closed:
            raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "listdir", lambda path: refuse(path) or listing(path))  # root may read everything
    monkeypatch.setattr(os, "scandir", lambda path: refuse(path) or scanning(path))
    with pytest.raises(Unavailable, match="listing failed: Permission denied"):
        find_files([str(landing / pattern)])


@pytest.mark.parametrize(
    ("include", "exclude", "names"),
    [
        (("*.csv",), (), ["a.csv", "day/c.csv"]),
        ((), ("day/*",), ["a.csv", "b.ndjson.gz"]),
        (("*.csv", "*.gz"), ("c.*",), ["a.csv", "b.ndjson.gz"]),
    ],
)
def test_files_of_a_folder_are_chosen_by_globs(
    landing: Path, include: tuple[str, ...], exclude: tuple[str, ...], names: list[str]
) -> None:
    found = find_files([str(landing)], include=include, exclude=exclude)
    assert [Path(f.uri).relative_to(landing).as_posix() for f in found] == names


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.ndjson", "json"),
        ("a.JSONL", "json"),
        ("a.json.gz", "json"),
        ("conn.log.gz", "json"),
        ("s3://b/a.csv", "csv"),
        ("a.csv.GZ", "csv"),
        ("a.tsv.zst", "csv"),
        ("a.parquet", "parquet"),
        ("a.pq", "parquet"),
        ("a.avro", "avro"),
        ("a.orc", "orc"),
        ("a.txt", ""),
        ("csv", ""),
    ],
)
def test_the_name_tells_the_format(name: str, format: str) -> None:
    assert format_by_name(name) == format
    assert format_by_name("anything", format or "csv") == format or "csv"


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(InvalidInput, match="ndjson"):
        format_by_name("a.csv", "xlsx")


def test_a_name_that_is_not_utf8_is_refused_or_excluded(landing: Path) -> None:
    Path(os.fsdecode(os.fsencode(landing / "day") + b"/x\xff.csv")).write_text("k\n1\n")
    with pytest.raises(InvalidInput, match=r"the name of the file .* is not UTF-8"):
        find_files([str(landing)])
    assert len(find_files([str(landing)], exclude=("x*",))) == 3


def test_gzip_is_told_by_the_bytes_not_by_the_name(lake: Command) -> None:
    lake.pool("p")
    packed = Path(lake.file("a.csv.gz", "k\n1\n"))
    (lake.folder / "b.csv").write_bytes(packed.read_bytes())
    (lake.folder / "c.csv.gz").write_text("k\n2\n")
    lake.load("p", str(lake.folder / "[bc].csv*"))
    assert lake.scan("p") == [{"k": 1}, {"k": 2}]


def test_globs_and_folders_load_as_one_transaction(lake: Command) -> None:
    lake.pool("p")
    lake.file("day/a.ndjson", [{"k": 2}])
    lake.file("day/deep/b.csv", "k\n1\n")
    done = lake.load("p", str(lake.folder / "day"))
    assert (done["version"], done["records"]) == (1, 2)
    assert lake.scan("p") == [{"k": 1}, {"k": 2}]


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    """The address of a server that answers with the status that the first folder of a path names."""

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status = int(self.path.split("/")[1])
            if status != HTTPStatus.OK:
                self.send_error(status)
                return
            self.send_response(status)
            self.send_header("Content-Length", str(len(RECORD)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(RECORD)

        do_HEAD = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """The test's output is its own."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


RECORD = b'{"k": 1}\n'
AWAY = "127.0.0.1:9"  # nothing listens at the port of `discard`


def read(name: str) -> bytes:
    with open_bytes(Reading(name)) as file:
        return file.read()


def find(name: str) -> list[SourceFile]:
    return find_files([name])


@pytest.mark.parametrize("look", [find, read, read_text])
@pytest.mark.parametrize(
    ("status", "error"), [(404, NotFound), (410, NotFound), (403, Unavailable), (503, Unavailable)]
)
def test_a_server_of_http_that_fails_is_no_missing_file(
    web: str, look: Callable[[str], object], status: int, error: type[Exception]
) -> None:
    with pytest.raises(error, match=rf"file '{web}/{status}/a\.json'"):
        look(f"{web}/{status}/a.json")


def test_a_file_of_http_is_found_and_read(web: str) -> None:
    (found,) = find(f"{web}/200/a.json")
    assert (found.uri, found.size) == (f"{web}/200/a.json", len(RECORD))
    assert read(found.uri) == RECORD


@pytest.mark.parametrize("look", [find, read, read_text])
@pytest.mark.parametrize("scheme", ["http", "s3"])
def test_a_server_that_does_not_answer_may_do_so_later(
    look: Callable[[str], object], scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{AWAY}",
        "AWS_ACCESS_KEY_ID": "k",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_MAX_ATTEMPTS": "1",
    }.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(Unavailable, match=r"file '\w+://\S+/a\.json': .*[Cc]onnect"):
        look(f"{scheme}://{AWAY}/a.json" if scheme == "http" else "s3://bucket/a.json")


@pytest.mark.parametrize("look", [find, read, read_text])
@pytest.mark.parametrize("name", ["loop", "x" * 300, "a\0b", "nothing://x"])
def test_a_name_that_can_be_none_of_a_file_is_refused_at_once(
    tmp_path: Path, look: Callable[[str], object], name: str
) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(InvalidInput, match=r"name another$"):
        look(name if "://" in name else str(tmp_path / name))


@pytest.mark.parametrize("look", [read, read_text])
def test_a_folder_is_no_file(tmp_path: Path, look: Callable[[str], object]) -> None:
    with pytest.raises(InvalidInput, match=r"Is a directory; name another$"):
        look(str(tmp_path))


def test_a_client_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "requests", None)
    with pytest.raises(InvalidInput, match=r"file 'github://a:b@c/d': .*requests.*[^r]$"):
        find("github://a:b@c/d")


def test_folders_whose_bytes_are_not_utf_8_are_refused_and_not_made_alike(lake: Command) -> None:
    lake.pool("p")
    for folder in ("y=%FE", "y=%FF"):
        path = lake.folder / "landing" / "d" / folder
        path.mkdir(parents=True)
        (path / "a.ndjson").write_text('{"k": 1}\n')
    source = str(lake.folder / "landing" / "d")
    message = lake.fails(INVALID_INPUT, "load", "p", source, "--partitions", "hive")
    assert "folder 'y=%FE': its bytes behind % are not UTF-8" in message


@pytest.mark.parametrize("pattern", ["in", "in/*.csv", "in/**/*.csv", "in/*/*.csv"])
def test_a_link_that_leads_out_of_the_folder_is_refused(tmp_path: Path, pattern: str) -> None:
    """Who may write in the folder would have files read with the rights of the process."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/s.csv").write_text("k\nsecret\n")
    (tmp_path / "in/day").mkdir(parents=True)
    (tmp_path / "in/day/a.csv").write_text("k\n1\n")
    (tmp_path / "in/b.csv").symlink_to("day/a.csv")
    inside = find_files([f"{tmp_path}/{pattern}"])
    assert len(inside) == 1 + (pattern in ("in", "in/**/*.csv"))
    for link in ("in/x.csv", "in/day/x.csv"):
        (tmp_path / link).symlink_to(tmp_path / "secret/s.csv")
    with pytest.raises(
        InvalidInput, match=r"x\.csv': leads out of '.*/in/?' by a link, to '.*/secret/s.csv'"
    ):
        find_files([f"{tmp_path}/{pattern}"])
    with contextlib.suppress(InvalidInput, NotFound):  # fsspec passes over some links
        assert not [file for file in find_files([f"file://{tmp_path}/{pattern}"]) if "x.csv" in file.uri]
    assert len(find_files([f"{tmp_path}/in/x.csv"])) == 1  # a person named it


@pytest.mark.parametrize("pattern", ["in", "in/*"])
def test_what_is_no_file_is_skipped_in_a_folder(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.csv").write_text("k\n1\n")
    os.mkfifo(tmp_path / "in/pipe.csv")
    (tmp_path / "in/zero.csv").symlink_to("/dev/zero")
    assert [Path(file.uri).name for file in find_files([f"{tmp_path}/{pattern}"])] == ["a.csv"]


@pytest.fixture
def redirecting(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[str]]]:
    """A web server that counts as another machine and redirects to this one, and the paths it was asked for."""
    asked: list[str] = []

    class Redirects(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            target = self.path.partition("/to/")[2].replace("PORT", str(server.server_port))
            self.send_response(HTTPStatus.FOUND if target else HTTPStatus.OK)
            self.send_header("Content-Length", "0" if target else str(len(RECORD)))
            if target:
                self.send_header("Location", target)
            self.end_headers()
            if self.command == "GET" and not target:
                self.wfile.write(RECORD)

        do_HEAD = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """The test's output is its own."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Redirects)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    real = own_machine.is_own_machine
    monkeypatch.setattr(
        own_machine, "is_own_machine", lambda host, resolve: host != "localhost" and real(host, resolve)
    )
    yield f"http://localhost:{server.server_port}", asked
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_redirect_is_checked_for_the_host_that_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's own codec takes stra\u00dfe.test for strasse.test; the client asks DNS for xn--strae-oqa.test."""
    monkeypatch.setattr(own_machine, "resolved", {"xn--strae-oqa.test": ["127.0.0.1"]}.get)
    response = SimpleNamespace(headers={"Location": "http://xn--strae-oqa.test/secret"})
    redirect = SimpleNamespace(response=response, url=yarl.URL("http://203.0.113.9/"))
    with pytest.raises(InvalidInput, match=r"redirects to .* which is this machine"):
        asyncio.run(own_machine._check_redirect(None, SimpleNamespace(), redirect))


@pytest.mark.parametrize(
    "target", ["http://127.0.0.1:PORT/secret", "http://2130706433:PORT/secret", "http://127.1:PORT/secret"]
)
def test_a_redirect_from_elsewhere_to_this_machine_is_not_followed(
    redirecting: tuple[str, list[str]], target: str
) -> None:
    server, asked = redirecting
    for ask in (find, read):
        with pytest.raises(InvalidInput, match=r"redirects to .* which is this machine"):
            ask(f"{server}/to/{target}")
    assert asked
    assert "/secret" not in asked
    assert read(f"{server}/to/{server}/a.ndjson") == RECORD, "any other redirect is followed"
