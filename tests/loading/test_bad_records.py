"""Bad input: named by file, line and field, and the lake is as before; or quarantined, and the rest is taken in."""

from __future__ import annotations

import gzip

import pyarrow as pa
import pytest

from tests.support.command import INVALID_INPUT, NOT_FOUND, Command
from tests.support.files import parquet

BAD_LINES = [
    ("a.ndjson", '{"k":1}\n{"k":2,"b":\n{"k":3}\n', 2, "field 'b'", '{"k":2,"b":'),
    ("a.ndjson", '{"k":1}\n\n{"k":2} x\n', 3, "malformed JSON", '{"k":2} x'),
    ("a.ndjson", '{"k":1}\n[1]\n', 2, "must be a JSON object, not a list", "[1]"),
    ("a.ndjson", '{"k":1}\n"x"\n', 2, "must be a JSON object, not a string", '"x"'),
    ("a.ndjson", '{"k":1}\n{"k":2}{"k":\n', 2, "malformed JSON", '{"k":2}{"k":'),
    ("a.json", '[{"k":1},\n{"k":2}{"k":3}]', 2, "2 records where one should be; a comma", '{"k":2}{"k":3}'),
    ("a.ndjson", '{"k":1}\n{"k":2,"a":NaN}\n', 2, "NaN is not JSON", '{"k":2,"a":NaN}'),
    ("a.ndjson", '{"k":1}\n{"k":2,"a":1e400}\n', 2, "more digits than a decimal has", '{"k":2,"a":1e400}'),
    (
        "a.ndjson",
        '{"k":1}\n{"k":2,"a":1,"a":2}\n',
        2,
        "field 'a' occurs more than once",
        '{"k":2,"a":1,"a":2}',
    ),
    ("a.ndjson", '{"k":1}\n{"k":2,"a":"\\ud800"}\n', 2, "surrogate", '{"k":2,"a":"\\ud800"}'),
    ("a.ndjson", b'{"k":1}\n{"k":2,"a":"\xff"}\n', 2, "not UTF-8: byte 13 is 0xff", '{"k":2,"a":"\ufffd"}'),
    ("a.ndjson", '{"k":1}\n{"k":"x"}\n', 2, "key field 'k': a string", '{"k":"x"}'),
    ("a.ndjson", '{"k":1}\n{"k":[1]}\n', 2, "key field 'k': a list has no order", '{"k":[1]}'),
    ("a.ndjson", '{"k":1}\n{"k":2,"n":"x"}\n', 2, "field 'n': 'x' is not a int", '{"k":2,"n":"x"}'),
    (
        "a.ndjson",
        '{"k":1}\n{"k":2,"n":3000000000}\n',
        2,
        "field 'n': 3000000000 is not a int: it is out of range",
        '{"k":2,"n":3000000000}',
    ),
    ("a.ndjson", '{"k":1}\n{"k":2,"n":1.5}\n', 2, "field 'n': 1.5 is not a int", '{"k":2,"n":1.5}'),
    ("a.ndjson", '{"k":1}\n{"k":2,"n":true}\n', 2, "field 'n': True is not a int", '{"k":2,"n":true}'),
    ("a.csv", "k,n\n1,1\n2,x\n", 3, "field 'n': 'x' is not a int", "2,x"),
    ("a.csv", "k,n\n1,1\n2\n", 3, "1 value where the header names 2 fields", "2"),
    ("a.csv", "k,n\n1,1\n2,3,4\n", 3, "3 values where the header names 2 fields", "2,3,4"),
    ("a.csv", 'k,n\n1,1\n2,"3"4\n', 3, "goes on behind its closing quote", '2,"3"4'),
    ("a.csv", b"k,a\n1,x\n2,\xff\n", 3, "field 'a': not UTF-8", "2,\ufffd"),
]
IDS = [f"{case[0][2:]}: {case[3]}" for case in BAD_LINES]


@pytest.mark.parametrize(("name", "content", "line", "says", "raw"), BAD_LINES, ids=IDS)
def test_a_bad_record_is_named_and_nothing_is_committed(
    lake: Command, name: str, content: str | bytes, line: int, says: str, raw: str
) -> None:
    lake.pool("p", types={"n": "int"})
    lake.load_records("p", [{"k": 0}], "good.ndjson")
    message = lake.refuses_records("p", content, name)
    assert f"{name}, line {line}: " in message
    assert says in message


@pytest.mark.parametrize(
    ("name", "content"), [("a.ndjson.gz", '\n{"k":1}\n{"k":'), ("a.csv.gz", "k,a\n1,2\n3\n")]
)
def test_a_bad_record_is_named_in_a_gzipped_file_too(lake: Command, name: str, content: str) -> None:
    lake.pool("p")
    assert f"{name}, line 3: " in lake.refuses_records("p", content, name)


@pytest.mark.parametrize(("name", "content", "line", "says", "raw"), BAD_LINES, ids=IDS)
def test_a_bad_record_is_quarantined_where_the_policy_says_so(
    lake: Command, name: str, content: str | bytes, line: int, says: str, raw: str
) -> None:
    lake.pool("p", types={"n": "int"}, bad_records="quarantine")
    done = lake.load_records("p", content, name)
    good = {1, 3} if content == BAD_LINES[0][1] else {1}
    assert (done["records"], done["rejected"]) == (len(good), 1)
    assert {r["k"] for r in lake.scan("p")} == good
    (rejected,) = lake.scan("p.$rejected")
    assert rejected["file"].endswith(name)
    assert (rejected["line"], rejected["raw"]) == (line, raw)
    assert says in rejected["reason"]


def test_one_bad_file_among_many_fails_the_whole_load(lake: Command) -> None:
    lake.pool("p")
    good, bad = lake.file("a.ndjson", [{"k": 1}]), lake.file("b.ndjson", "{")
    assert "b.ndjson, line 1" in lake.refuses("p", good, bad)
    assert lake.load("p", good)["version"] == 1


def test_a_load_of_bad_records_alone_is_committed_where_they_are_quarantined(lake: Command) -> None:
    lake.pool("p", bad_records="quarantine")
    done = lake.load_records("p", "{\n[]\n")
    assert (done["version"], done["records"], done["rejected"]) == (1, 0, 2)
    assert lake.scan("p") == []
    assert [r["line"] for r in lake.scan("p.$rejected")] == [1, 2]


def test_many_bad_records_keep_their_order_and_their_files(lake: Command) -> None:
    lake.pool("p", bad_records="quarantine")
    files = [
        lake.file(f"{n}.ndjson", "".join(f'{{"k":{i}}}\nbad {n} {i}\n' for i in range(50))) for n in "ab"
    ]
    lake.load("p", *files)
    assert [r["raw"] for r in lake.scan("p.$rejected")] == [f"bad {n} {i}" for n in "ab" for i in range(50)]
    assert len(lake.scan("p")) == 100


def test_a_value_of_a_parquet_column_that_is_none_of_the_declared_type_is_named(lake: Command) -> None:
    lake.pool("p", types={"n": "int"})
    message = lake.refuses_records("p", parquet(pa.table({"k": [1], "n": ["x"]})), "a.parquet")
    assert "field 'n': 'x' is not a int" in message


GOOD_NDJSON = b"".join(b'{"k":%d,"a":"some text"}\n' % i for i in range(5000))
GOOD_CSV = b"k,a\n" + b"".join(b"%d,some text\n" % i for i in range(5000))


@pytest.mark.parametrize("policy", ["fail", "quarantine"])
@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("cut.ndjson.gz", gzip.compress(GOOD_NDJSON, mtime=0)[:-2000]),
        ("cut-in-the-trailer.ndjson.gz", gzip.compress(GOOD_NDJSON, mtime=0)[:-3]),
        ("cut-in-the-header.ndjson.gz", gzip.compress(GOOD_NDJSON, mtime=0)[:5]),
        ("wrong-checksum.ndjson.gz", gzip.compress(GOOD_NDJSON, mtime=0)[:-8] + bytes(8)),
        ("behind-the-end.ndjson.gz", gzip.compress(GOOD_NDJSON, mtime=0) + b"garbage"),
        ("cut.csv.gz", gzip.compress(GOOD_CSV, mtime=0)[:-2000]),
        ("cut.parquet.gz", gzip.compress(parquet(pa.table({"k": list(range(1000))})), mtime=0)[:-30]),
        ("cut.parquet", parquet(pa.table({"k": list(range(1000))}))[:-100]),
        ("text.parquet", b"this is no Parquet at all"),
        ("nothing.parquet", b""),
    ],
)
def test_a_damaged_file_is_refused_under_any_policy(
    lake: Command, name: str, data: bytes, policy: str
) -> None:
    lake.pool("p", bad_records=policy)
    path = lake.folder / name
    path.write_bytes(data)
    message = lake.refuses("p", str(path))
    assert name in message
    assert "damaged or truncated" in message or "not a readable Parquet file" in message


@pytest.mark.parametrize("name", ["a.ndjson", "a.ndjson.gz", "a.csv", "a.csv.gz", "a.jsonl"])
@pytest.mark.parametrize("content", ["", "\n\n", "  \n"])
def test_a_load_of_empty_files_commits_nothing(lake: Command, name: str, content: str) -> None:
    lake.pool("p")
    outcome = lake("load", "p", lake.file(name, content))
    assert outcome.err == "p: nothing to load; nothing was committed\n"
    assert lake.history("p") == []


def test_a_key_that_no_order_holds_together_is_refused(lake: Command) -> None:
    lake.pool("p")
    lake.load_records("p", [{"k": 1}], "a.ndjson")
    assert "key field 'k'" in lake.refuses("p", lake.file("b.ndjson", [{"k": "x"}]))
    message = lake.refuses("p", lake.file("c.ndjson", [{"k": 2}]), lake.file("d.ndjson", [{"k": "x"}]))
    assert "key field 'k'" in message


def test_files_that_do_not_exist_or_have_no_format_are_named(lake: Command) -> None:
    lake.pool("p")
    assert "nowhere.csv" in lake.fails(NOT_FOUND, "load", "p", str(lake.folder / "nowhere.csv"))
    message = lake.fails(INVALID_INPUT, "load", "p", lake.file("a.xyz", "x"))
    assert "a.xyz: neither the name nor the first bytes tell the format; add --format json" in message


def test_a_decimal_with_more_digits_than_its_type_is_a_bad_record(lake: Command) -> None:
    kind = pa.decimal128(36, 17)
    raw = b"".join(value.to_bytes(16, "little", signed=True) for value in (5 * 10**17, -(10**36), 10**36 - 1))
    decimals = pa.Array.from_buffers(kind, 3, [None, pa.py_buffer(raw)])
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), decimals)
    for number, column in enumerate((decimals, lists)):
        content = parquet(pa.table({"k": [1, 2, 3], "v": column}))
        lake.pool(f"p{number}")
        says = "line 2: field 'v': a value has more digits than decimal(36,17)"
        assert says in lake.refuses_records(f"p{number}", content, f"{number}.parquet")
        lake("load", f"p{number}", lake.file(f"{number}.parquet", content), "--bad-records", "quarantine")
        assert [r["k"] for r in lake.scan(f"p{number}")] == [1, 3]
        (rejected,) = lake.scan(f"p{number}.$rejected")
        assert "-10000000000000000000" in rejected["raw"], "the raw text has the digits"
