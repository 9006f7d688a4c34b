"""Commands about records and history: load, scan, get, log, inspect; formats, files, pipes."""

from __future__ import annotations

import io
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from tests.support.command import DONE, INVALID_INPUT, NOT_FOUND, Command

RECORDS: list[dict[str, Any]] = [
    {"k": 1, "m": "a", "r": {"x": [1, 2]}, "t": "2020-01-01T10:00:00.5Z"},
    {"k": 1, "m": "b", "n": 0.5},
    {"k": 2, "m": "a", "s": 'say "hi",\nthen go'},
    {"k": 10, "m": "c", "n": 2.0},
]


@pytest.fixture
def pool(lake: Command) -> str:
    """Four records in two transactions, keyed by k and m."""
    lake.pool("p", key="k,m", types={"t": "timestamp"})
    lake.load_records("p", [RECORDS[3], RECORDS[0]], "a.ndjson")
    lake.load_records("p", [RECORDS[2], RECORDS[1]], "b.ndjson")
    return "p"


def ks(records: list[dict[str, Any]]) -> list[tuple[int, str]]:
    return [(r["k"], r["m"]) for r in records]


def test_load_tells_what_it_did(lake: Command) -> None:
    lake.pool("p", bad_records="quarantine")
    said = lake("load", "p", lake.file("a.ndjson", '{"k":1}\n{"k":2}\n{"x":1}\nbad\n'))
    assert said.out == ""
    start, _, rest = said.err.partition(" (")
    assert start == "p: loaded 2 records in 3 objects"
    assert ", 1 without the key in p.$nokey, 1 rejected in p.$rejected; version 1, transaction " in rest
    said = lake("load", "p", lake.file("b.ndjson", [{"k": 3}]))
    assert said.err.startswith("p: loaded 1 record in 1 object (")


def test_a_load_reports_its_transaction_and_its_counts_as_json(lake: Command) -> None:
    lake.pool("p")
    done = lake.load_records("p", [{"k": 1}, {"k": 2}, {}])
    (entry,) = lake.history("p")
    assert done.pop("size") > 0
    assert done == {
        "version": 1,
        "transaction_id": entry["transaction_id"],
        "records": 2,
        "objects": 2,
        "nokey": 1,
        "rejected": 0,
        "repeated": False,
        "notes": [],
        "overtaken": [],
        "changes": [],
        "retyped": 0,
    }


def test_a_load_of_nothing_commits_nothing(lake: Command) -> None:
    lake.pool("p")
    file = lake.file("empty.csv", "")
    assert lake.load("p", file)["version"] is None
    assert lake("load", "p", file).err == "p: nothing to load; nothing was committed\n"


def test_a_second_load_under_a_token_returns_the_first_result_and_writes_nothing(lake: Command) -> None:
    lake.pool("p")
    path = lake.file("a.ndjson", [{"k": 1}])
    (first,) = lake("load", "p", path, "--token", "t1", "--message", "day one", "--json").records
    (again,) = lake("load", "p", path, "--token", "t1", "--json").records
    assert again == first | {"repeated": True}
    assert lake("load", "p", path, "--token", "t1").err == (
        f"p: nothing was written: the token was used in version 1, transaction {first['transaction_id']}, "
        "which loaded 1 record\n"
    )
    assert [(e["token"], e["message"]) for e in lake.history("p")] == [("t1", "day one")]


def test_the_format_may_be_said(lake: Command) -> None:
    lake.pool("p")
    lake("load", "p", lake.file("a.txt", "k\n1\n"), "--format", "csv")
    assert lake.scan("p") == [{"k": 1}]


@pytest.mark.parametrize(("sort", "objects"), [("run", 1), ("parts", 3)])
def test_a_load_larger_than_its_memory_leaves_a_run_or_parts(lake: Command, sort: str, objects: int) -> None:
    lake.pool("p", load_memory="100kB", load_sort=sort)
    data = "k,a\n" + "".join(f"{-i},{'x' * 50}\n" for i in range(20_000))
    # one block of a CSV file is the least that is gathered
    done = lake.load("p", *[lake.file(f"{n}.csv", data) for n in range(3)])
    assert (done["version"], done["records"], done["objects"]) == (1, 60_000, objects)
    assert [r["k"] for r in lake.scan("p", "--columns", "k")] == sorted(
        -i for i in range(20_000) for _ in range(3)
    )


@pytest.mark.parametrize(
    ("words", "name", "says"),
    [
        (["--branch", "side"], "a.csv", "branch 'side' does not exist; there are: main"),
        ([], "nowhere.csv", "nowhere.csv' does not exist"),
    ],
)
def test_a_load_to_nowhere_or_from_nowhere_is_not_found(
    lake: Command, words: list[str], name: str, says: str
) -> None:
    lake.pool("p")
    lake.file("a.csv", "k\n1\n")
    assert says in lake.fails(NOT_FOUND, "load", "p", str(lake.folder / name), *words)


def test_sub_pools_are_not_loaded_into(lake: Command) -> None:
    lake.pool("p")
    assert "read-only" in lake.fails(INVALID_INPUT, "load", "p.$nokey", lake.file("a.csv", "k\n1\n"))


def test_scan_gives_records_in_key_order(lake: Command, pool: str) -> None:
    assert lake.scan(pool) == [
        RECORDS[0],
        RECORDS[1],
        RECORDS[2],
        RECORDS[3],
    ]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["--from", "2"], [(2, "a"), (10, "c")]),
        (["--to", "2"], [(1, "a"), (1, "b")]),
        (["--from", "1", "--to", "10"], [(1, "a"), (1, "b"), (2, "a")]),
        (["--from", '[1,"b"]', "--to", '[2,"a"]'], [(1, "b")]),
        (["--from", '[1,"aa"]', "--to", "3"], [(1, "b"), (2, "a")]),
        (["--from", "1.5"], [(2, "a"), (10, "c")]),
        (["--from", "11"], []),
        (["--limit", "3"], [(1, "a"), (1, "b"), (2, "a")]),
        (["--limit", "0"], []),
        (["--limit", "99"], [(1, "a"), (1, "b"), (2, "a"), (10, "c")]),
        (["--at", "1"], [(1, "a"), (10, "c")]),
        (["--at", "main", "--from", "10"], [(10, "c")]),
    ],
)
def test_a_scan_gives_the_records_of_its_range_version_and_limit(
    lake: Command, pool: str, words: list[str], found: list[tuple[int, str]]
) -> None:
    assert ks(lake.scan(pool, *words)) == found


def test_bare_words_are_keys_of_text_and_of_time(lake: Command) -> None:
    lake.pool("s")
    lake.load_records("s", [{"k": "10"}, {"k": "a b"}, {"k": "7"}])
    assert lake.scan("s", "--from", "a") == [{"k": "a b"}]
    assert lake("get", "s", "10", "--format", "json").records == [{"k": "10"}]
    lake.pool("t", types={"k": "timestamp"})
    lake.load_records("t", [{"k": f"2020-01-0{d}T00:00:00Z"} for d in (1, 2, 3)])
    assert lake.scan("t", "--from", "2020-01-01T12:00:00Z", "--to", "2020-01-03") == [
        {"k": "2020-01-02T00:00:00Z"}
    ]
    assert lake("get", "t", "2020-01-03", "--format", "json").records == [{"k": "2020-01-03T00:00:00Z"}]


def test_descending_keys_are_cut_in_their_own_order(lake: Command) -> None:
    lake.pool("p", key="k:desc")
    lake.load_records("p", [{"k": k} for k in range(5)])
    assert [r["k"] for r in lake.scan("p", "--from", "3", "--to", "1")] == [3, 2]


def test_a_scan_of_a_file_of_ranges_gives_each_record_once(lake: Command, pool: str, tmp_path: Path) -> None:
    ranges = tmp_path / "ranges.ndjson"
    ranges.write_text('{"key": 10}\n\n{"from": 1, "to": [1, "b"]}\n{"key": [10, "c"]}\n')
    assert ks(lake.scan(pool, "--ranges", str(ranges))) == [(1, "a"), (10, "c")]
    assert ks(lake.scan(pool, "--ranges", str(ranges), "-j", "3", "--limit", "1")) == [(1, "a")]
    assert "leave out --from" in lake.fails(INVALID_INPUT, "scan", pool, "--ranges", str(ranges), "--to", "3")
    ranges.write_text('{"key": 10}\nnonsense\n')
    assert "ranges.ndjson, line 2: " in lake.fails(INVALID_INPUT, "scan", pool, "--ranges", str(ranges))
    assert "no.ndjson: " in lake.fails(INVALID_INPUT, "scan", pool, "--ranges", str(tmp_path / "no.ndjson"))
    ranges.write_text("")
    assert "no range" in lake.fails(INVALID_INPUT, "scan", pool, "--ranges", str(ranges))


def test_a_scan_explains_its_parts(lake: Command) -> None:
    lake.pool("p")
    for first in (0, 10, 15):
        lake.load_records("p", [{"k": k} for k in range(first, first + 10)])
    lake("split", "p", "--at", "5", "--at", "18", "--at", "40")
    lake("delete", "p", "--from", "22", "--to", "23")
    parts = lake("scan", "p", "-j", "3", "--from", "2", "--explain", "--json").records
    sizes = [part.pop("size") for part in parts]
    assert parts == [
        {"low": 2, "high": 5, "objects": 1, "records": 10, "depth": 1, "deletes": 0},
        {"low": 5, "high": 18, "objects": 3, "records": 30, "depth": 2, "deletes": 0},
        {"low": 18, "high": 40, "objects": 2, "records": 20, "depth": 2, "deletes": 1},
    ]
    assert min(sizes) > 0
    (whole,) = lake("scan", "p", "--explain", "--json").records
    assert (whole["low"], whole["high"], whole["objects"]) == (None, None, 3)
    assert "leave out --limit" in lake.fails(INVALID_INPUT, "scan", "p", "--explain", "--limit", "3")


def test_ranges_of_standard_input_are_read_as_those_of_a_file(
    lake: Command, pool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def given(data: bytes) -> None:
        stdin = io.TextIOWrapper(io.BytesIO(data), errors="surrogateescape")
        monkeypatch.setattr("sys.stdin", stdin)

    given(b'\xef\xbb\xbf{"key": 10}\r\n')
    assert ks(lake.scan(pool, "--ranges", "-")) == [(10, "c")]
    given(b'{"key": "\xff"}\n')
    assert "--ranges -: not UTF-8" in lake.fails(INVALID_INPUT, "scan", pool, "--ranges", "-")


def test_scan_chooses_columns_by_their_whole_names(lake: Command) -> None:
    lake.pool("p", key="ts")
    lake.load_records("p", [{"ts": 1, "id.orig_h": "x", "id": 5, "id.orig_p": 80}])
    assert lake("scan", "p", "--columns", "id.orig_h,ts").out == '{"id.orig_h":"x","ts":1}\n'
    assert lake.scan("p", "--columns", "id") == [{"id": 5}]


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["--columns", "nope"], INVALID_INPUT, "column 'nope' does not exist; there are: k, m"),
        (["--from", "2", "--to", "1"], INVALID_INPUT, "(exclusive) is empty"),
        (["--from", '[1,"a",2]'], INVALID_INPUT, "has 2 fields"),
        (["--at", "7"], NOT_FOUND, "version 7 does not exist; the newest is 2"),
        (["--at", "side"], NOT_FOUND, "revision 'side' does not exist"),
        (["--at", "main@2000-01-01T00:00:00Z"], NOT_FOUND, "branch 'main' has no transaction at or before"),
        (["--at", "main@noon"], INVALID_INPUT, "noon"),
    ],
)
def test_a_scan_that_cannot_be_says_why(
    lake: Command, pool: str, words: list[str], status: int, says: str
) -> None:
    assert says in lake.fails(status, "scan", pool, *words)


def test_the_past_is_named_in_four_ways(lake: Command, pool: str) -> None:
    newest, first = lake.history(pool)
    for name in ("1", first["transaction_id"], f"main@{first['time']}"):
        assert ks(lake.scan(pool, "--at", name)) == [(1, "a"), (10, "c")]
        assert lake("show", pool, "--at", name, "--json").records[0]["records"] == 2
    for name in (
        "2",
        newest["transaction_id"],
        "main",
        f"main@{newest['time']}",
        "main@2999-01-01T00:00:00Z",
    ):
        assert len(lake.scan(pool, "--at", name)) == 4
    assert lake("get", pool, "2", "--at", "2", "--format", "json").records == [RECORDS[2]]
    assert "no record with key 2" in lake.fails(NOT_FOUND, "get", pool, "2", "--at", "1")


@pytest.mark.parametrize(
    ("key", "found"),
    [("1", [0, 1]), ('[1,"b"]', [1]), ("[2]", [2]), ("10", [3])],
)
def test_get_gives_all_records_of_a_key_or_of_its_beginning(
    lake: Command, pool: str, key: str, found: list[int]
) -> None:
    assert lake("get", pool, key, "--json").records == [RECORDS[i] for i in found]


def test_what_get_does_not_find_it_says(lake: Command, pool: str) -> None:
    assert lake.fails(NOT_FOUND, "get", pool, "3") == (
        "lake: pool 'p': no record with key 3; lake head p shows the first ones"
    )


def read(data: bytes, format: str) -> pa.Table:
    if format == "parquet":
        return pq.read_table(io.BytesIO(data))
    if format == "arrow":
        return pa.ipc.open_stream(data).read_all()
    return pcsv.read_csv(io.BytesIO(data), parse_options=pcsv.ParseOptions(newlines_in_values=True))


@pytest.mark.parametrize("format", ["csv", "parquet", "arrow"])
@pytest.mark.parametrize("words", [["scan", "p"], ["query", 'select * from "p"']], ids=["scan", "query"])
def test_every_format_holds_every_record(lake: Command, pool: str, words: list[str], format: str) -> None:
    path = lake.folder / f"out.{format}"
    piped = lake(*words, "--format", format).output
    said = lake(*words, "-o", str(path))
    assert (said.out, said.err) == ("", "")
    assert path.read_bytes() == piped
    assert [p.name for p in lake.folder.iterdir() if "out" in p.name] == [path.name]
    table = read(piped, format)
    assert set(table.schema.names) == set("kmnrts")
    assert table["k"].to_pylist() == [1, 1, 2, 10]
    assert table["s"].to_pylist()[2] == RECORDS[2]["s"]
    if format != "csv":
        assert table["r"].to_pylist()[0] == {"x": [1, 2]}
        assert table.schema.field("t").type == pa.timestamp("us", "UTC")
    else:
        assert table["r"].to_pylist()[0] == '{"x":[1,2]}'
        assert b"2020-01-01T10:00:00.5Z" in piped


@pytest.mark.parametrize("format", ["csv", "parquet", "arrow", "json", "table"])
def test_a_result_without_records_is_still_of_its_format(lake: Command, pool: str, format: str) -> None:
    outcome = lake("scan", pool, "--from", "99", "--format", format)
    if format == "json":
        assert outcome.out == ""
    elif format == "table":
        assert (outcome.out, outcome.err) == ("", "no records\n")
    else:
        assert read(outcome.output, format).num_rows == 0
        assert read(outcome.output, format).num_columns == 6


def test_a_table_is_for_people(lake: Command, pool: str) -> None:
    lines = lake("scan", pool, "--format", "table", "--columns", "k,m,s,r,n").out.splitlines()
    assert lines == [
        " k  m  s                     r              n",
        ' 1  a                        {"x":[1,2]}',
        " 1  b                                     0.5",
        r" 2  a  say \"hi\",\nthen go",
        "10  c                                     2.0",
    ]


def test_a_table_shows_the_first_thousand_records_and_says_so(lake: Command) -> None:
    lake.pool("p")
    lake.load_records("p", [{"k": k} for k in range(1001)])
    said = lake("scan", "p", "--format", "table")
    assert len(said.out.splitlines()) == 1001
    assert said.err == "these are the first 1,000 records; other formats give all: --format json\n"
    assert lake("scan", "p", "--format", "table", "--limit", "1000").err == ""


def test_a_file_that_cannot_be_written_is_named_and_what_was_there_stays(lake: Command, pool: str) -> None:
    assert "nowhere/x.csv: No such file" in lake.fails(
        INVALID_INPUT, "scan", pool, "-o", str(lake.folder / "nowhere/x.csv")
    )
    assert "Is a directory" in lake.fails(INVALID_INPUT, "scan", pool, "-o", str(lake.folder))
    path = Path(lake.file("out.csv", "precious"))
    for name in Path(lake.uri).glob("*/data/*.parquet"):
        name.unlink()
    assert "missing" in lake.fails(8, "scan", pool, "-o", str(path))
    assert path.read_text() == "precious"
    assert [p.name for p in lake.folder.iterdir() if p.name.startswith("out")] == ["out.csv"]


def test_output_to_a_device_goes_to_the_device(lake: Command, pool: str) -> None:
    lake("scan", pool, "-o", os.devnull)
    assert Path(os.devnull).is_char_device()


def test_the_log_tells_newest_first(lake: Command, pool: str) -> None:
    newest, first = lake.history(pool)
    assert list(newest) == [
        "version",
        "transaction_id",
        "branch",
        "parent",
        "time",
        "author",
        "message",
        "metadata",
        "token",
        "added",
        "removed",
        "actions",
    ]
    assert (newest["version"], newest["parent"], first["version"], first["parent"]) == (2, 1, 1, 0)
    assert first["actions"] == {"set_schema": 1, "add_object": 1}
    assert first["time"] < newest["time"]
    assert first["time"].endswith("Z")
    assert lake("log", pool, "--limit", "1", "--json").records == [newest]
    assert lake("log", pool, "--branch", "main", "--json").records == [newest, first]
    lines = lake("log", pool).out.splitlines()
    assert lines[0].split() == [
        "version",
        "transaction_id",
        "time",
        "branch",
        "added",
        "author",
        "actions",
        "parent",
    ]
    assert lines[1].split()[:2] == ["2", newest["transaction_id"]]
    assert "set_schema:1 add_object:1" in lines[1]


def test_a_log_without_entries_says_so(lake: Command) -> None:
    lake.pool("p")
    said = lake("log", "p")
    assert (said.out, said.err) == ("", "p: no transactions yet\n")
    assert "branch 'side' does not exist; there are: main" in lake.fails(
        NOT_FOUND, "log", "p", "--branch", "side"
    )


def test_every_object_of_the_lake_can_be_inspected(lake: Command, pool: str) -> None:
    root = Path(lake.uri)
    names = [str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()]
    shown = {name: lake("inspect", name, "--json").records[0] for name in names}
    entries = [v for n, v in shown.items() if n.endswith(".txn")]
    assert {e["version"] for e in entries} == {1, 2}
    (created,) = [
        a for n, v in shown.items() if n.startswith("pools/") and n.endswith(".txn") for a in v["actions"]
    ]
    assert created["pool"]["name"] == "p"
    objects = [v for n, v in shown.items() if n.endswith(".parquet")]
    assert [v["lake"]["records"] for v in objects] == [2, 2]
    assert all(v["fields"]["k"] == "bigint" for v in objects)
    assert "names are like" in lake.fails(NOT_FOUND, "inspect", "nope")


COMMAND = [sys.executable, "-m", "log_lake.cli.main"]


@pytest.fixture
def long(lake: Command) -> Command:
    """A lake with a pool `p` whose records fill any pipe."""
    lake.pool("p")
    lake.load_records("p", "k,a\n" + "".join(f"{k},{'x' * 40}\n" for k in range(100_000)), "a.csv")
    return lake


@pytest.mark.parametrize(
    "words", [["scan", "p"], ["query", 'select * from "p"'], ["scan", "p", "--format", "csv"]]
)
def test_a_reader_that_leaves_early_is_no_error(long: Command, words: list[str]) -> None:
    process = subprocess.Popen(
        [*COMMAND, words[0], "--lake", long.uri, *words[1:]], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert (process.wait(timeout=600), process.stderr.read()) == (DONE, b"")
    process.stderr.close()


def test_on_a_terminal_records_are_a_table_and_bytes_are_refused(lake: Command) -> None:
    lake.pool("p")
    lake.load_records("p", [{"k": 1}])
    for words, status, shown in (
        (["scan", "p"], DONE, b"k\r\n1\r\n"),
        (["scan", "p", "--json"], DONE, b'{"k":1}\r\n'),
        (["scan", "p", "--format", "parquet"], INVALID_INPUT, b""),
    ):
        ours, theirs = pty.openpty()
        done = subprocess.run(
            [*COMMAND, words[0], "--lake", lake.uri, *words[1:]],
            stdout=theirs,
            stderr=subprocess.PIPE,
            timeout=600,
            check=False,
        )
        os.write(theirs, b"!")  # so that there is something to read
        os.close(theirs)
        assert (done.returncode, os.read(ours, 1000).rstrip(b"!")) == (status, shown), done.stderr
        os.close(ours)


def test_an_interrupt_ends_in_one_line(long: Command) -> None:
    process = subprocess.Popen(
        [*COMMAND, "scan", "--lake", long.uri, "p"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()  # it is under way, and stands before a full pipe
    process.send_signal(signal.SIGINT)
    process.stdout.read()
    assert (process.wait(timeout=600), process.stderr.read()) == (130, b"lake: interrupted\n")
    process.stdout.close()
    process.stderr.close()
