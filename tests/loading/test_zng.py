"""ZNG, ZST and their text as files to load: told by content, united, bad records named, damage refused."""

from __future__ import annotations

import gzip
import io
import lzma
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake_core.errors import InvalidInput
from log_lake.agents.ingest.plan import FilePart, Unit
from log_lake.agents.load_files import LoadWork, build_unit
from log_lake.lake import Lake
from log_lake.lake.results import PendingLoad
from log_lake.loading.block import MAX_CELLS, Reading
from log_lake.loading.detect import format_of, read_blocks
from log_lake.loading.formats.zng import _parts
from log_lake.workers import Here
from log_lake.zng.rows import batch_of
from log_lake.zng.types import INT64, Array, Record
from log_lake.zng.wire import container, primitive, signed, uvarint
from tests.support.command import Command
from tests.support.zng_files import rows_of, rows_of_text, zng_of, zst_of
from tests.support.zng_values import stream

TEXT = """{k:1,ip:10.0.0.1,n:1(int32)}
{k:2,ip:null(ip),n:null(int32)}
"""
RECORDS = [{"k": 1, "ip": "10.0.0.1", "n": 1}, {"k": 2}]


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


def as_zng(text: str, *, block_bytes: int = 0) -> bytes:
    return zng_of(rows_of_text(text), block_bytes=block_bytes)


def as_zst(text: str) -> bytes:
    return zst_of(rows_of_text(text))


def as_text(text: str) -> bytes:
    return text.encode()


WIDE = Record(tuple(f"f{n}" for n in range(20)), (INT64,) * 20)
OF_WIDE = Record(("k", "x"), (INT64, Array(WIDE)))
"""Records with arrays of records of twenty fields, all of which may be absent."""

FORMS = {"zng": as_zng, "zst": as_zst, "zson": as_text}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["data", "data.csv", "data.zst", "data.ndjson"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress, zstd])
def test_the_content_tells_the_format_whatever_the_name(
    lake: Command, form: str, name: str, pack: object
) -> None:
    if form == "zson" and name in ("data.csv", "data.ndjson"):
        pytest.skip("for text the name decides")
    lake.pool()
    assert callable(pack)
    lake.load("p", lake.file(name, pack(FORMS[form](TEXT))))
    assert lake.scan("p") == RECORDS


@pytest.mark.parametrize("form", FORMS)
def test_a_declared_format_and_a_name_tell_it_too(lake: Command, form: str) -> None:
    lake.pool()
    lake("load", "p", lake.file("a", FORMS[form](TEXT)), "--format", form)
    lake.load("p", lake.file(f"b.{form}", FORMS[form]('{k:3}\n{"k":4}')))
    assert [r["k"] for r in lake.scan("p")] == [1, 2, 3, 4]


@pytest.mark.parametrize("form", FORMS)
def test_standard_input_is_read(lake: Command, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.pool()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FORMS[form](TEXT))))
    lake("load", "p", "-")
    assert lake.scan("p") == RECORDS


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("a.ndjson.zst", zstd(b'{"k":1}\n'), "json"),
        ("a.csv", "öl,k\n1,2\n".encode("latin-1"), "csv"),
        ("a.csv", "k\n1\n".encode("utf-16"), "csv"),
        ("a.csv", b"\xff\xfe\n\x00", "csv"),
        ("a.csv", b"\xff" * 100, "csv"),
        ("a", b'{"k":1}', "json"),
        ("a", b" {\n k : 1}", "zson"),
        ("a", b'{"k":1(int32)}', "json"),
        ("a.zng", b"", "zng"),
        ("a.zng", b"\xf6\x01", "zng"),
        ("empty", as_zst(""), "zst"),
        ("data", as_zst('{a:"{\\"a\\":12345678}"}'), "zst"),
        ("data", as_zst("{k:4294967296}"), "zst"),
        ("a.json", as_zng("1\n"), "json"),
        ("a.zng", as_zng("1\n"), "zng"),
    ],
)
def test_formats_that_begin_alike_are_told_apart(
    tmp_path: Path, name: str, content: bytes, format: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert format_of(Reading(str(path))) == format


def test_a_folder_may_hold_all_of_them(lake: Command) -> None:
    lake.pool()
    lake.file("in/a.zng.gz", as_zng("{k:1}"))
    lake.file("in/b.zst", as_zst('{k:"x"}'))
    lake.file("in/c.zson", "{k:3,v:1}")
    lake.file("in/d.ndjson", '{"k":4,"v":"w"}')
    message = lake.fails(9, "load", "p", str(lake.folder / "in"))
    assert "key field 'k'" in message
    chosen = ("--exclude", "*.zst", "--include", "*.z*,*.ndjson")
    lake("load", "p", str(lake.folder / "in"), *chosen)
    assert lake.scan("p") == [{"k": 1}, {"k": 3, "v": 1}, {"k": 4, "v": "w"}]


@pytest.mark.parametrize("form", FORMS)
def test_types_of_one_stream_are_united_and_their_order_counts(lake: Command, form: str) -> None:
    lake("create", "p", "--key", "k", "--kind", "upsert")
    text = '{k:1,v:1}\n{k:1,v:"a"}\n{k:2,v:"b"}\n{k:2,v:2.5}\n{k:3}\n{}\n{k:3,w:[1]}\n'
    lake.load("p", lake.file("a", FORMS[form](text)))
    assert lake.scan("p") == [{"k": 1, "v": "a"}, {"k": 2, "v": 2.5}, {"k": 3, "w": [1]}]
    assert len(lake.scan("p.$nokey")) == 1


@pytest.mark.parametrize("form", FORMS)
def test_unions_keep_the_class_of_each_value(lake: Command, form: str) -> None:
    lake.pool()
    kind = "(int64,string,time,{a:(int64,string)})"
    values = ["1", '"x"', "2026-01-31T12:00:00Z", '{a:"y"((int64,string))}', "null"]
    text = "".join(f"{{k:{k},u:{v}({kind})}}\n" for k, v in enumerate(values))
    lake.load("p", lake.file("a", FORMS[form](text)))
    assert [r.get("u") for r in lake.scan("p")] == [1, "x", "2026-01-31T12:00:00Z", {"a": "y"}, None]
    assert [r["k"] for r in lake.scan("p", "--where", "u = 'x'")] == [1]
    assert [r["k"] for r in lake.scan("p", "--where", "u < 5")] == [0]


@pytest.mark.parametrize("more", ["", "\n{k:3,a:1}"], ids=["one type", "several types"])
def test_a_map_with_a_doubled_key_is_a_bad_record_inside_of_a_union_too(lake: Command, more: str) -> None:
    lake.pool(bad_records="quarantine")
    maps = '{k:1,u:|{"a":1,"b":2}|((int64,|{string:int64}|))}\n{k:2,u:1((int64,|{string:int64}|))}'
    data = as_zng(maps + more)
    assert data.count(b"\x04b") == 1
    report = lake.load("p", lake.file("a", data.replace(b"\x04b", b"\x04a")))
    assert (report["records"], report["rejected"]) == (2 if more else 1, 1)
    (bad,) = lake.scan("p.$rejected")
    assert (bad["line"], bad["reason"]) == (1, "field 'u': a map has the same key twice")
    assert bad["raw"].startswith('{k:1,u:|{"a":1,"a":2}|')


@pytest.mark.parametrize("body", [b"", b"\x40", b"\x07\x07", b"\x1a" * 200 + b"\x07"])
def test_a_type_value_that_is_no_type_is_a_bad_record(lake: Command, body: bytes) -> None:
    lake.pool(bad_records="quarantine")
    good = as_zng("{k:1,t:(int64)}\n{k:2,t:(int64)}")
    at = good.rindex(b"\x04\x07")
    value = uvarint(2 * len(body) + 2) + body
    header = good[at - 4 : at - 3] + uvarint(2 + len(value))
    bad = good[: at - 4] + header + good[at - 2 : at] + value + good[at + 2 :]
    assert lake.load("p", lake.file("a.zng", bad))["rejected"] == 1
    (rejected,) = lake.scan("p.$rejected")
    assert rejected["line"] == 2
    assert rejected["reason"].endswith("bytes that are no type value")
    assert lake("scan", "p", "--format", "zson").out == "{k:1,t:(int64)}\n"


@pytest.mark.parametrize("text", ["not json", "", '{\\"a\\":1,\\"a\\":2}', "[1,\\n2]", "[NaN]", "[" * 9_000])
@pytest.mark.parametrize("more", ["", "\n{k:3,a:1}"], ids=["one type", "several types"])
def test_typed_json_that_is_no_json_on_one_line_is_a_bad_record(lake: Command, text: str, more: str) -> None:
    lake.pool(bad_records="quarantine")
    values = f'{{k:1,x:["{text}"(=lake.json)]}}\n{{k:2,x:["[1]"(=lake.json)]}}{more}'
    assert lake.load("p", lake.file("a.zng", as_zng(values)))["rejected"] == 1
    assert lake.scan("p")[0] == {"k": 2, "x": [[1]]}
    (bad,) = lake.scan("p.$rejected")
    assert (bad["line"], bad["reason"]) == (1, "field 'x': text that is not JSON on one line")


BAD = '{k:1,s:"good"}\n5\n{k:2,s:"bad"}\nnull({k:int64})\n{k:3,m:|{1((int64,string)):2}|}\n{k:4,s:"good"}\n'


def test_a_record_with_too_many_absent_values_is_a_bad_record(lake: Command) -> None:
    """A null record in an array is one byte, and for Arrow as many values as it has fields."""
    lake.pool(bad_records="quarantine")
    nulls = 1_000_000
    values = [
        (OF_WIDE, primitive(signed(k)) + container(b"\0" * count)) for k, count in ((1, nulls), (2, 1_000))
    ]
    lake.load("p", lake.file("data.zng", stream(values)))
    assert [record["k"] for record in lake.scan("p")] == [2]
    (rejected,) = lake.scan("p.$rejected")
    assert rejected["reason"].startswith(
        "21,000,003 values, absent ones counted; a record may have at most 16,777,216"
    )


def test_records_of_large_arrays_are_looked_at_a_few_at_a_time_in_rows_and_in_columns() -> None:
    """Five records, each within the limit of one: together they have more values than a table may have."""
    data = stream([(OF_WIDE, primitive(signed(k)) + container(b"\0" * 200_000)) for k in range(5)])
    (rows,) = rows_of(data)
    for values in (rows, batch_of(rows)):
        parts = sorted(_parts(values))
        assert [first for first, _ in parts[1:]] == [last for _, last in parts[:-1]]
        assert (parts[0][0], parts[-1][1]) == (0, 5)
        assert all(200_000 * WIDE.nodes * (last - first) <= MAX_CELLS for first, last in parts), parts


def test_the_first_bad_record_fails_a_load(lake: Command) -> None:
    lake.pool()
    message = lake.refuses("p", lake.file("a.zng", as_zng(BAD)))
    assert message.endswith(
        "a.zng, line 2: a value of type int64, which is no record; make it a field of one"
    )
    data = as_zng('{k:1,s:"good"}\n{k:2,s:"bad"}').replace(b"bad", b"b\xffd")
    at = data.index(b"b\xffd")
    message = lake.refuses("p", lake.file("b.zng", data))
    assert message.endswith(f"b.zng, line 2: byte {at}: a string that is not UTF-8")


@pytest.mark.parametrize("policy", ["--dry-run", "--json"])
def test_bad_records_are_quarantined_with_their_text(lake: Command, policy: str) -> None:
    lake.pool(bad_records="quarantine")
    path = lake.file("a.zng", as_zng(BAD).replace(b"bad", b"b\xffd"))
    done = lake("load", "p", path, policy)
    if policy == "--dry-run":
        assert "2 records, 4 that cannot be read" in done.err
        assert "a.zng, line 4: a top-level null" in done.err
        return
    assert [r["k"] for r in lake.scan("p")] == [1, 4]
    assert [(r["line"], r["raw"]) for r in lake.scan("p.$rejected")] == [
        (2, "5"),
        (3, '{k:2,s:"b\ufffdd"}'),
        (4, "null({k:int64})"),
        (5, "{k:3,m:|{1((int64,string)):2}|}"),
    ]


def test_no_more_bad_records_than_allowed(lake: Command) -> None:
    lake.pool(bad_records="quarantine")
    lake("set", "p", "bad_records.max=1")
    message = lake.refuses("p", lake.file("a.zng", as_zng(BAD)))
    assert "more than 1 record (bad_records.max) cannot be read" in message


def test_a_file_of_bad_values_alone_is_damaged(lake: Command) -> None:
    lake.pool(bad_records="quarantine")
    text = "".join(f'{{k:{k},s:"bad"}}\n' for k in range(3000))
    message = lake.refuses("p", lake.file("a.zng", as_zng(text).replace(b"bad", b"b\xffd")))
    assert "a.zng, line 1001: " in message
    assert "so are 1,000 before it; the file is damaged" in message


def read(path: Path, data: bytes, form: str) -> tuple[int, int, str]:
    """How many records and bad records the file has; and the error."""
    path.write_bytes(data)
    reading = Reading(str(path), key=("k",), bad_records="quarantine")
    try:
        blocks = list(read_blocks(reading, format=form))
    except InvalidInput as error:
        return 0, 0, str(error)
    return sum(b.table.num_rows for b in blocks), sum(len(b.rejected) for b in blocks), ""


@pytest.mark.parametrize("form", ["zng", "zst"])
def test_a_file_that_is_cut_anywhere_is_refused_or_has_whole_records_only(tmp_path: Path, form: str) -> None:
    data = FORMS[form]("".join(f'{{k:{k},s:"text {k}",u:{k}((int64,string))}}\n' for k in range(20)))
    path = tmp_path / f"cut.{form}"
    outcomes = [read(path, data[:size], form) for size in range(len(data))]
    refused = [why for _, _, why in outcomes if why]
    assert all(why.startswith(f"{path}: byte ") and "\n" not in why for why in refused)
    # the last byte may be missing; a stream of ZNG may end behind any message
    whole = [records for records, _, why in outcomes if not why]
    assert whole == ([0, 0, 0, *range(1, 21)] if form == "zng" else [20])


@pytest.mark.parametrize("form", ["zng", "zst"])
def test_a_flipped_byte_is_refused_or_reads_as_other_records(tmp_path: Path, form: str) -> None:
    data = FORMS[form]("".join(f'{{k:{k},s:"text {k}",u:{k}((int64,string)),a:[{k}]}}\n' for k in range(9)))
    path = tmp_path / f"flipped.{form}"
    for at in range(len(data)):
        flipped = data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]
        records, bad, why = read(path, flipped, form)
        assert records + bad < 100
        assert not why or (str(path) in why and "\n" not in why)


def test_a_line_of_text_that_is_no_value_is_a_bad_record(lake: Command) -> None:
    lake.pool(bad_records="quarantine")
    text = "{k:1}\n{k:x}\n{k:2,\n{k:3}\n{\n  k:4,\n  v:[\n    1\n  ]\n}\n{k:5} {k:6}\n"
    report = lake.load("p", lake.file("a.zson", text))
    assert (report["records"], report["rejected"]) == (5, 2)
    assert [r["k"] for r in lake.scan("p")] == [1, 3, 4, 5, 6]
    assert [(r["line"], r["raw"]) for r in lake.scan("p.$rejected")] == [(2, "{k:x}"), (3, "{k:2,")]
    lake("set", "p", "bad_records=fail")
    assert "a.zson, line 2: 'x' is no value" in lake.refuses("p", lake.file("a.zson", text))


def test_text_that_is_never_closed_is_refused(lake: Command) -> None:
    lake.pool(bad_records="quarantine")
    message = lake.refuses("p", lake.file("a.zson", "{k:1}\n{k:[\n1,\n2\n"))
    assert "a.zson, line 2: what begins here is not closed" in message


def test_too_deep_and_too_wide_types_are_refused_by_name(lake: Command) -> None:
    lake.pool(bad_records="quarantine")
    deep = "[" * 40 + "]" * 40
    report = lake.load("p", lake.file("a.zng", as_zng(f"{{k:1,d:{deep}}}\n{{k:2}}")))
    assert (report["records"], report["rejected"]) == (1, 1)
    assert "nested deeper than 32" in lake.scan("p.$rejected")[0]["reason"]
    wide = "{k:1," + ",".join(f"f{n}:{n}" for n in range(10_001)) + "}"
    report = lake.load("p", lake.file("b.zng", as_zng(wide + "\n{k:3}")))
    assert (report["records"], report["rejected"]) == (1, 1)


def test_a_declared_type_is_applied_to_each_type_of_a_stream(lake: Command) -> None:
    lake.pool(types={"v": "string"})
    lake.load("p", lake.file("a.zng", as_zng('{k:1,v:"a"}\n{k:2,v:"b"(bstring),w:1}')))
    assert [r["v"] for r in lake.scan("p")] == ["a", "b"]
    message = lake.refuses("p", lake.file("b.zng", as_zng('{k:1,v:"a"}\n{k:2,v:1}')))
    assert "field 'v': bigint is not a string" in message


def test_the_name_of_a_record_type_is_said_to_be_lost(lake: Command) -> None:
    lake.pool()
    done = lake("load", "p", lake.file("a.zng", as_zng("{k:1}(=foo)")))
    assert "a.zng: the name of the record type 'foo' is not kept" in done.err


def test_a_mark_of_another_program_that_its_values_do_not_fit_is_left_out(lake: Command) -> None:
    lake.pool()
    ip = pa.field("ip", pa.string(), metadata={b"lake.zng": b"\x12"})
    net = pa.field("n", pa.string(), metadata={b"lake.zng": b"nonsense"})
    kind = pa.field("t", pa.binary(), metadata={b"lake.zng": b"\x14"})
    schema = pa.schema([("k", pa.int64()), ip, net, kind])
    table = pa.table([[1], ["no address"], ["x"], [b"@"]], schema=schema)
    sink = io.BytesIO()
    pq.write_table(table, sink)
    lake.load("p", lake.file("a.parquet", sink.getvalue()))
    assert lake("scan", "p", "--format", "zson").out == '{k:1,ip:"no address",n:"x",t:0x40}\n'


def test_fields_of_different_types_with_one_form_are_the_plain_type_together(lake: Command) -> None:
    lake.pool()
    lake.load("p", lake.file("a.zng", as_zng("{k:1,a:10.0.0.1,b:10.0.0.1,c:|[1]|}")))
    lake.load("p", lake.file("b.ndjson", '{"k":2,"a":"text"}'))
    lake.load("p", lake.file("c.zng", as_zng("{k:3,b:10.0.0.3,c:[3]}")))
    assert lake("scan", "p", "--format", "zson").out.splitlines() == [
        '{k:1,a:"10.0.0.1",b:10.0.0.1,c:[1]}',
        '{k:2,a:"text",b:null(ip),c:null([int64])}',
        "{k:3,a:null(string),b:10.0.0.3,c:[3]}",
    ]


def test_a_task_of_the_agents_reads_them(lake: Command) -> None:
    lake.pool()
    pool = Lake.open(lake.uri).pool("p").branch("main")
    job = pool.begin_load()
    assert isinstance(job, PendingLoad)
    names = [lake.file(f"{form}.{form}", make(TEXT)) for form, make in FORMS.items()]
    work = LoadWork(pool.config, job, "auto", pool.readings(names))
    (written,) = build_unit(
        work, Here.of(pool.context).worker, Unit(0, tuple(FilePart(name, 1) for name in names))
    )
    assert written.action.records == 6


def test_batches_of_columns_are_the_same_rows() -> None:
    rows = rows_of_text(TEXT + '{k:1}\n"x"\nnull\n')
    assert zng_of(map(batch_of, rows)) == zng_of(rows)
