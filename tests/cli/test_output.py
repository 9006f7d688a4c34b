"""Where results go, and what happens there: full disks, closed pipes, folders, devices, odd terminals."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from log_lake.cli.arguments import RECORD_FORMATS
from log_lake.cli.main import main
from tests.support.command import DONE, INVALID_INPUT, NOT_FOUND, USAGE, Command
from tests.support.terminal import on_terminal

COMMAND = [sys.executable, "-m", "log_lake.cli.main"]
FULL = "/dev/full"
OUTPUT_FAILED = 12
QUERY = ["query", 'select * from "p"']


@pytest.fixture
def pool(lake: Command) -> Command:
    lake.pool("p")
    lake.load_records("p", [{"k": k, "é": "x" * 100} for k in range(200)])
    return lake


def process(lake: Command, *words: str, **more: object) -> subprocess.CompletedProcess[bytes]:
    """The command in a process of its own, with real streams."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": 60} | more
    return subprocess.run([*COMMAND, words[0], "--lake", lake.uri, *words[1:]], check=False, **options)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize("format", RECORD_FORMATS)
@pytest.mark.parametrize("words", [["scan", "p"], QUERY], ids=["scan", "query"])
def test_a_full_device_under_the_records_is_one_line(pool: Command, words: list[str], format: str) -> None:
    assert pool.fails(OUTPUT_FAILED, *words, "--format", format, "-o", FULL) == (
        f"lake: -o {FULL}: No space left on device; what was written before stands"
    )
    assert not Path(FULL).is_file()


@pytest.mark.parametrize(
    "words",
    [
        ["scan", "p"],
        *(["scan", "p", "--format", format] for format in RECORD_FORMATS),
        QUERY,
        ["get", "p", "1"],
        ["ls"],
        ["ls", "--json"],
        ["show", "p"],
        ["show", "p", "--json"],
        ["log", "p"],
        ["log", "p", "--json"],
        ["explain", "p", "1"],
        ["delete", "p", "--key", "1", "--json"],
        ["completion", "bash"],
        ["scan", "--help"],
    ],
    ids=lambda words: "_".join(words[:1] + words[-1:]),
)
def test_a_full_standard_output_is_one_line(pool: Command, words: list[str]) -> None:
    err = io.StringIO()
    with open(FULL, "w") as full, contextlib.redirect_stdout(full), contextlib.redirect_stderr(err):
        status = main([words[0], "--lake", pool.uri, *words[1:]])
    said = (
        "standard output: No space left on device; the result is not whole; what the command changed stands"
    )
    printed = json.loads(err.getvalue())["error"] if "--json" in words else err.getvalue()
    assert printed == (said if "--json" in words else f"lake: {said}\n")
    assert status == OUTPUT_FAILED


def test_the_version_does_not_fit_on_a_full_device_either() -> None:
    with open(FULL, "wb") as full:
        done = subprocess.run(
            [*COMMAND, "--version"], stdout=full, stderr=subprocess.PIPE, timeout=600, check=False
        )
    assert (done.returncode, done.stderr.count(b"\n")) == (OUTPUT_FAILED, 1)


def test_a_closed_standard_output_is_one_line_and_no_file_takes_its_place(pool: Command) -> None:
    done = process(pool, "scan", "p", preexec_fn=lambda: os.close(1), stdout=None)
    assert (done.returncode, done.stderr.count(b"\n")) == (OUTPUT_FAILED, 1)
    assert b"standard output: " in done.stderr
    assert process(pool, "scan", "p", "--format", "csv", preexec_fn=lambda: os.close(0)).returncode == DONE


def test_messages_that_nobody_can_hear_change_nothing(pool: Command) -> None:
    path = pool.file("more.ndjson", [{"k": 1000}])
    with open(FULL, "wb") as full:
        assert process(pool, "load", "p", path, stderr=full).returncode == DONE
        assert process(pool, "scan", "nothing", stderr=full).returncode == NOT_FOUND
    assert process(pool, "scan", "nothing", preexec_fn=lambda: os.close(2), stderr=None).returncode == 3
    assert pool.scan("p", "--from", "1000") == [{"k": 1000}]


@pytest.mark.parametrize("format", RECORD_FORMATS)
def test_a_disk_that_gets_full_leaves_no_half_file_and_what_was_there(pool: Command, format: str) -> None:
    pool.load_records("p", [{"k": k, "é": os.urandom(200).hex()} for k in range(1000, 3000)], "b.ndjson")
    path = Path(pool.file("out", "precious"))
    before = set(path.parent.iterdir())
    limit = "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    limit += "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000)); "
    script = limit + "from log_lake.cli.main import main; sys.exit(main(sys.argv[1:]))"
    words = ["scan", "--lake", pool.uri, "p", "--format", format, "-o", str(path)]
    done = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, timeout=600, check=False
    )
    assert done.stderr.decode() == f"lake: -o {path}: File too large; nothing was written under that name\n"
    assert done.returncode == OUTPUT_FAILED
    assert path.read_text() == "precious"
    assert set(path.parent.iterdir()) == before


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "Is a directory"),
        ("new/", "Is a directory"),
        ("file/x", "Not a directory"),
        ("n/x", "No such file"),
    ],
)
def test_an_output_that_cannot_be_opened_is_named(pool: Command, name: str, says: str) -> None:
    pool.file("file", "")
    path = f"{pool.folder}/{name}"
    for words in (["scan", "p"], QUERY):
        assert f"-o {path}: {says}" in pool.fails(INVALID_INPUT, *words, "-o", path)
    assert not (pool.folder / "new").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_or_a_file_that_may_not_be_written_is_refused(pool: Command) -> None:
    folder = pool.folder / "locked"
    folder.mkdir()
    (folder / "old").write_text("precious")
    (folder / "old").chmod(0o400)
    assert "Permission denied" in pool.fails(INVALID_INPUT, "scan", "p", "-o", str(folder / "old"))
    folder.chmod(0o500)
    assert "Permission denied" in pool.fails(INVALID_INPUT, "scan", "p", "-o", str(folder / "new"))
    assert (folder / "old").read_text() == "precious"


def test_a_link_stays_a_link_and_rights_stay(pool: Command) -> None:
    real = Path(pool.file("real.csv", "old"))
    real.chmod(0o600)
    link = pool.folder / "link.csv"
    link.symlink_to(real)
    pool("scan", "p", "--to", "1", "--columns", "k", "-o", str(link))
    assert link.is_symlink()
    assert real.read_text() == '"k"\n0\n'
    assert real.stat().st_mode & 0o777 == 0o600


def test_a_name_as_long_as_names_may_be_is_written(pool: Command) -> None:
    path = pool.folder / ("n" * 251 + ".csv")
    pool("scan", "p", "--to", "1", "--columns", "k", "-o", str(path))
    assert path.read_text() == '"k"\n0\n'


def test_output_to_a_pipe_or_a_dash_goes_there(pool: Command) -> None:
    pipe = pool.folder / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    pool("scan", "p", "--columns", "k", "--to", "2", "-o", str(pipe))
    reader.join(600)
    assert read == [b'{"k":0}\n{"k":1}\n']
    assert pipe.is_fifo()
    assert pool("scan", "p", "--columns", "k", "--to", "1", "-o", "-").out == '{"k":0}\n'
    assert (
        process(pool, "scan", "p", "--columns", "k", "--to", "1", "-o", "/dev/stdout").stdout == b'{"k":0}\n'
    )


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-16"])
def test_results_are_utf8_in_every_locale(pool: Command, encoding: str) -> None:
    for words in (["scan", "p"], ["show", "p"], ["show", "p", "--json"], ["explain", "p", "1"]):
        out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        with contextlib.redirect_stdout(out):
            assert main([words[0], "--lake", pool.uri, *words[1:]]) == DONE
        assert "é" in out.buffer.getvalue().decode()  # type: ignore[attr-defined]


def test_names_and_texts_do_not_steer_the_terminal(lake: Command) -> None:
    lake.pool("p")
    nasty = "a\nb\x1b[31m\u202e\x9b"
    lake.load_records("p", [{"k": 1, nasty: nasty}])
    lake("load", "p", lake.file("b.ndjson", [{"k": 2}]), "--message", nasty, "--token", nasty)
    for words in (["scan", "p", "--format", "table"], ["show", "p"], ["log", "p"], ["explain", "p", "1"]):
        shown = lake(*words).out
        assert not {"\x1b", "\u202e", "\x9b"} & set(shown), words
    assert len(lake("scan", "p", "--format", "table").out.splitlines()) == 3
    assert len(lake("log", "p").out.splitlines()) == 3
    assert "\x1b" not in lake.fails(INVALID_INPUT, "scan", "p", "--where", f"k = {nasty}")
    assert lake.scan("p", "--to", "2") == [{"k": 1, nasty: nasty}]


@pytest.mark.parametrize("format", ["csv", "json", "zson", "table"])
def test_records_do_not_steer_the_terminal_in_any_format(lake: Command, format: str) -> None:
    lake.pool("p")
    lake.load_records("p", [{"k": 1, "a\x1b[31m": "b\u202e\x9b\x1b]0;x\x07"}, {"k": 2}])
    for words in (["scan", "p"], ["query", "SELECT * FROM p"]):
        shown = on_terminal(*words, "--format", format, "--lake", lake.uri)
        assert shown.status == DONE
        assert not {"\x1b", "\u202e", "\x9b", "\x07"} & set(shown.text), words
        assert len(shown.lines) >= 2
    assert "\x1b[31m" in lake("scan", "p", "--format", "csv").out, "what is no terminal gets the values"


def test_the_narrowest_terminal_still_shows_something(pool: Command) -> None:
    shown = on_terminal("scan", "p", "--limit", "1", "--lake", pool.uri, columns=1)
    assert (shown.status, shown.lines[:2]) == (DONE, ["k", "0"])
    assert "too narrow for 1 more column: é" in shown.text


@pytest.mark.parametrize("count", ["9" * 30, "9" * 5000, "0" * 5000 + "7", str(2**63 - 1)])
def test_a_limit_beyond_every_pool_is_none(pool: Command, count: str) -> None:
    pool.load_records("p", [{"k": 500}], "b.ndjson")
    wanted = 7 if count.endswith("7") and count.startswith("00") else 201
    assert len(pool.scan("p", "--limit", count)) == wanted
    assert len(pool("log", "p", "--limit", count, "--json").records) == 2


@pytest.mark.parametrize("count", ["-1", "1.5", "²", "٣", "", "1e3", " 1", "+1", "0x1"])
@pytest.mark.parametrize("command", ["scan", "log"])
def test_a_limit_is_written_in_digits(pool: Command, command: str, count: str) -> None:
    assert f"{count!r} is not a whole number" in pool.fails(USAGE, command, "p", f"--limit={count}")


def test_a_limit_of_none_says_nothing_of_transactions(pool: Command) -> None:
    assert "no transactions yet" not in pool("log", "p", "--limit", "0").err


def test_a_column_twice_is_refused_in_one_line(pool: Command) -> None:
    for words in (["--json"], ["--format", "csv"], ["--format", "parquet"]):
        assert "column 'k' is named twice" in pool.fails(
            INVALID_INPUT, "scan", "p", "--columns", "k,k", *words
        )


def test_an_answer_that_the_format_cannot_hold_says_what_to_do(lake: Command) -> None:
    lake.pool("p")
    path = lake.folder / "x.parquet"
    sql = "select map{} as m"
    assert lake.query(sql) == [{"m": {}}]
    outcome = lake.run("query", sql, "-o", str(path))
    assert outcome.status in (DONE, INVALID_INPUT)
    assert path.exists() == (outcome.status == DONE)
    if outcome.status == DONE:
        assert pq.read_table(path).num_rows == 1


def test_the_help_of_every_command_ends_quietly_if_nobody_reads_it() -> None:
    shell = f"{sys.executable} -m log_lake.cli.main load --help | head -c 1"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (DONE, b"")


def test_a_file_in_the_place_of_a_folder_is_not_found(pool: Command) -> None:
    path = pool.file("file", "")
    for place in (path, f"{path}/x", f"{path}/x/y"):
        assert "a file has the name that a folder must have" in pool.fails(NOT_FOUND, "init", "--lake", place)
        assert "there is no lake" in pool.fails(NOT_FOUND, "ls", "--lake", place)
    assert "does not exist" in pool.fails(NOT_FOUND, "load", "p", f"{path}/x")


@pytest.mark.parametrize("text", ["٣d", "9" * 30 + "d", "1e3d", "-1d", "infd", "nand", ""])
def test_a_span_is_written_in_digits_and_is_finite(pool: Command, text: str) -> None:
    assert "duration" in pool.fails(USAGE, "purge", "p", f"--keep={text}")
    assert "history.keep" in pool.fails(INVALID_INPUT, "set", "p", f"history.keep={text or 'x'}")


def test_the_longest_span_does_no_harm(pool: Command) -> None:
    longest = "366000d"
    pool("purge", "p", "--keep", longest)
    pool.pool("q", types={"ts": "timestamp"})
    pool("set", "q", f"age_off=ts:{longest}")
    pool.load_records("q", [{"k": 1, "ts": "1066-01-01T00:00:00Z"}])
    assert len(pool.scan("q")) == 1
    pool("set", "p", f"history.keep={longest}", "load.memory=999999999999999999GB")
    pool.load_records("p", [{"k": -1}], "c.ndjson")
    pool("checkpoint", "p")
    pool("purge", "p")
    pool("compact", "p")
    assert pool.scan("p", "--to", "0") == [{"k": -1}]
