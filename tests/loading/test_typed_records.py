"""A file with types and a value that is not of its declared type: only that record is a bad one."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc
import pytest

from log_lake.loading import declared, typed_records
from log_lake.loading.block import QUARANTINE, Reading
from log_lake.loading.typed_records import TypedRecords, with_declared
from tests.support.command import Command
from tests.support.files import parquet

ROWS = 3000
BAD = {7: "x", 1500: "y", 2999: "x"}


def orc(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pa.orc.write_table(table, sink)
    return sink.getvalue()


def avro(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    fields = [{"name": "k", "type": "long"}, {"name": "n", "type": ["null", "string"]}]
    fastavro.writer(sink, {"type": "record", "name": "r", "fields": fields}, table.to_pylist())
    return sink.getvalue()


def encoded(table: pa.Table) -> bytes:
    column = table.column("n").dictionary_encode()
    return parquet(table.set_column(1, "n", column))


WRITERS = {"a.parquet": parquet, "b.parquet": encoded, "a.orc": orc, "a.avro": avro}


def a_table(bad: dict[int, str]) -> pa.Table:
    values = [bad.get(k, None if k % 10 == 9 else str(k)) for k in range(ROWS)]
    return pa.table({"k": pa.array(range(ROWS)), "n": values})


@pytest.mark.parametrize("name", WRITERS)
def test_records_with_a_wrong_value_are_bad_records_and_the_others_are_loaded(
    lake: Command, name: str
) -> None:
    lake.pool("p", types={"n": "int"}, bad_records="quarantine")
    done = lake.load_records("p", WRITERS[name](a_table(BAD)), name)
    assert (done["records"], done["rejected"]) == (ROWS - 3, 3)
    expected = [{"k": k} if k % 10 == 9 else {"k": k, "n": k} for k in range(ROWS) if k not in BAD]
    assert [{f: v for f, v in r.items() if v is not None} for r in lake.scan("p")] == expected
    rejected = sorted(lake.scan("p.$rejected"), key=lambda one: one["line"])
    assert [(r["line"], json.loads(r["raw"])) for r in rejected] == [
        (k + 1, {"k": k, "n": value}) for k, value in BAD.items()
    ]
    assert all("is not a int" in r["reason"] for r in rejected)


@pytest.mark.parametrize("name", WRITERS)
def test_the_first_of_them_fails_the_load_by_its_place(lake: Command, name: str) -> None:
    lake.pool("p", types={"n": "int"})
    assert f"{name}, line 8: field 'n': 'x' is not a int" in lake.refuses_records(
        "p", WRITERS[name](a_table(BAD)), name
    )


def test_a_record_with_two_wrong_values_is_one_bad_record_and_out_of_range_is_named(lake: Command) -> None:
    lake.pool("p", types={"a": "int", "b": "date"}, bad_records="quarantine")
    table = pa.table({"k": [1, 2, 3], "a": [2**40, 1, 2**41], "b": ["x", "2020-01-01", "2020-01-02"]})
    done = lake.load_records("p", parquet(table), "a.parquet")
    assert (done["records"], done["rejected"]) == (1, 2)
    assert lake.scan("p") == [{"k": 2, "a": 1, "b": "2020-01-01"}]
    reasons = [r["reason"] for r in sorted(lake.scan("p.$rejected"), key=lambda one: one["line"])]
    assert "field 'a'" in reasons[1]
    assert "2199023255552" in reasons[1]


def test_a_field_of_another_class_refuses_the_file_under_any_policy(lake: Command) -> None:
    lake.pool("p", types={"n": "int"}, bad_records="quarantine")
    message = lake.refuses_records("p", parquet(pa.table({"k": [1], "n": [True]})), "a.parquet")
    assert "field 'n': boolean is not a int" in message


def test_of_records_of_several_types_each_bad_one_keeps_its_place(lake: Command) -> None:
    kinds: list[dict[str, Any]] = [
        {
            "type": "record",
            "name": "a",
            "fields": [{"name": "k", "type": "long"}, {"name": "n", "type": "string"}],
        },
        {
            "type": "record",
            "name": "b",
            "fields": [{"name": "k", "type": "long"}, {"name": "n", "type": "long"}],
        },
    ]
    records = [
        ("a", {"k": 1, "n": "1"}),
        ("b", {"k": 2, "n": 2**40}),
        ("b", {"k": 3, "n": 3}),
        ("a", {"k": 4, "n": "z"}),
        ("b", {"k": 5, "n": 5}),
    ]
    sink = io.BytesIO()
    fastavro.writer(sink, fastavro.parse_schema(kinds), records)
    lake.pool("p", types={"n": "int"}, bad_records="quarantine")
    lake.load_records("p", sink.getvalue(), "a.avro")
    assert lake.scan("p") == [{"k": k, "n": k} for k in (1, 3, 5)]
    rejected = {r["line"]: json.loads(r["raw"]) for r in lake.scan("p.$rejected")}
    assert rejected == {2: {"k": 2, "n": 2**40}, 4: {"k": 4, "n": "z"}}


@pytest.mark.parametrize("format", ["parquet", "zng"])
def test_records_of_zng_too_with_their_text(lake: Command, format: str) -> None:
    lake.pool("p", types={"n": "int"}, bad_records="quarantine", format=format)
    lake.load_records("p", '{k:1,n:"1"}\n{k:2,n:"x"}\n{k:3,n:3000000000}\n{k:4,n:4}\n', "a.zson")
    assert lake.scan("p") == [{"k": 1, "n": 1}, {"k": 4, "n": 4}]
    rejected = {r["line"]: r["raw"] for r in lake.scan("p.$rejected")}
    assert rejected == {2: '{k:2,n:"x"}', 3: "{k:3,n:3000000000}"}


@pytest.mark.parametrize("name", ["a.ndjson", "a.parquet"])
def test_the_advice_for_integer_keys_that_no_type_of_64_bits_holds_leads_to_a_pool_that_has_them(
    lake: Command, name: str
) -> None:
    def file(key: int) -> str | bytes:
        kind = pa.uint64() if key > 0 else pa.int64()
        is_json = name.endswith("json")
        return json.dumps({"k": key}) if is_json else parquet(pa.table({"k": pa.array([key], kind)}))

    lake.pool("p")
    lake.load_records("p", file(-1), f"1{name}")
    message = lake.refuses("p", lake.file(f"2{name}", file(2**63)))
    assert "a new pool does, if type.k=decimal(20,0) is set before its first load" in message
    lake.pool("q", types={"k": "decimal(20,0)"})
    lake.load("q", str(lake.folder / f"1{name}"))
    lake.load("q", str(lake.folder / f"2{name}"))
    lake("compact", "q", "--strategy", "full")
    assert lake.scan("q") == [{"k": -1}, {"k": 2**63}]
    assert lake.query("SELECT k FROM q WHERE k > 5") == [{"k": 2**63}]


def text_of(values: list[bytes | None]) -> pa.Array:
    """Texts as a file may have them, UTF-8 or not."""
    return pa.array(values, pa.binary()).view(pa.string())


@pytest.mark.parametrize("kind", ["bigint", "timestamp", "json"])
@pytest.mark.parametrize("is_encoded", [False, True])
def test_a_text_that_is_not_utf8_is_a_bad_record_under_any_declared_type(
    lake: Command, kind: str, is_encoded: bool
) -> None:
    value = {"bigint": b"5", "timestamp": b"2026-01-01T00:00:00", "json": b'{"b":[1]}'}[kind]
    texts = text_of([b"\xff", value, None, b'"\xfe'])
    column = texts.dictionary_encode() if is_encoded else texts
    file = parquet(pa.table({"k": [1, 2, 3, 4], "a": column}))
    lake.pool("p", types={"a": kind}, bad_records="quarantine")
    assert lake.load_records("p", file, "a.parquet")["rejected"] == 2
    assert [one["k"] for one in lake.scan("p")] == [2, 3]
    rejected = sorted(lake.scan("p.$rejected"), key=lambda one: one["line"])
    assert [(one["line"], json.loads(one["raw"])) for one in rejected] == [(1, {"k": 1}), (4, {"k": 4})]
    assert all(one["reason"] == "field 'a': not UTF-8" for one in rejected)
    lake.pool("q", types={"a": kind})
    assert "a.parquet, line 1: field 'a': not UTF-8" in lake.refuses_records("q", file, "a.parquet")


@pytest.mark.parametrize("nesting", ["record", "list", "map"])
def test_a_text_that_is_not_utf8_inside_of_a_value_is_a_bad_record(lake: Command, nesting: str) -> None:
    texts = text_of([b"\xff", b'"', b"z"])
    offsets = pa.array([0, 1, 2, 3], pa.int32())
    column = {
        "record": pa.StructArray.from_arrays([texts, pa.array([None, 1, 2])], ["x", "y"]),
        "list": pa.ListArray.from_arrays(offsets, texts),
        "map": pa.MapArray.from_arrays(offsets, pa.array(["x"] * 3), texts),
    }[nesting]
    good = {
        "record": [{"x": '"', "y": 1}, {"x": "z", "y": 2}],
        "list": [['"'], ["z"]],
        "map": [{"x": '"'}, {"x": "z"}],
    }[nesting]
    file = parquet(pa.table({"k": [1, 2, 3], "a": column}))
    lake.pool("p", types={"a": "json"}, bad_records="quarantine")
    assert lake.load_records("p", file, "a.parquet")["rejected"] == 1
    assert [one["a"] for one in lake.scan("p")] == good
    (rejected,) = lake.scan("p.$rejected")
    assert (rejected["line"], rejected["reason"]) == (1, "field 'a': not UTF-8")
    assert json.loads(rejected["raw"]) == {"k": 1}


def test_where_every_value_is_wrong_the_reading_stops_at_the_first_or_shows_all_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    count = 4000
    table = pa.table({"k": pa.array(range(count)), "n": [f"x{k}" for k in range(count)], "s": ["y"] * count})
    seen: list[str] = []
    read, write = declared.read_declared, typed_records.json_lines
    monkeypatch.setattr(
        declared, "read_declared", lambda text, field: (seen.append(text), read(text, field))[1]
    )
    monkeypatch.setattr(typed_records, "json_lines", lambda one: (seen.append(""), write(one))[1])
    target = {"n": pa.field("n", pa.int32())}
    failing = with_declared(table, Reading("f", declared=target))
    assert failing.faults.keys() == {0}
    assert failing.table.column("n").null_count == count
    assert len(seen) < 50, "not each of the wrong values is looked at"
    seen.clear()
    bad = with_declared(table, Reading("f", declared=target, bad_records=QUARANTINE))
    assert len(bad.faults) == len(bad.raws) == count
    assert bad.raws[17] == '{"k":17,"n":"x17","s":"y"}'
    assert seen.count("") == table.num_columns, "each column is written at once"


def test_a_bad_record_without_any_text_has_none() -> None:
    reading = Reading("f", bad_records=QUARANTINE)
    records = TypedRecords(pa.table({"a": text_of([b"\xff"])}))
    assert records.text(0) is None
    assert reading.reject(1, "not UTF-8", records.text(0)).raw is None
