"""What a load acknowledges can be read; what is beyond a limit is refused by file, line and field."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake_core.errors import InvalidInput
from lake_core.lake import Lake
from lake_core.objects.limits import (
    MAX_COLUMNS,
    MAX_KEY_BYTES,
    MAX_NAME_BYTES,
    MAX_NESTING,
    MAX_VALUE_BYTES,
)
from tests.support.command import Command


def nested(depth: int, shape: str) -> Any:
    value: Any = 1
    for level in range(depth):
        value = {"a": value} if shape == "records" or (shape == "both" and level % 2) else [value]
    return value


@pytest.mark.parametrize("shape", ["records", "lists", "both"])
def test_what_is_nested_to_the_limit_is_read_by_every_command(lake: Command, shape: str) -> None:
    lake.pool("p")
    given = {"k": 1, "a": nested(MAX_NESTING, shape)}
    for _ in range(2):
        lake.load_records("p", [given])
    assert lake.scan("p") == [given, given]
    assert lake("get", "p", "1").records == [given, given]
    assert lake.query('select * from "p"') == [given, given]
    assert lake.query('select a from "p" where k = 1') == [{"a": given["a"]}] * 2
    lake("show", "p")
    lake("scan", "p", "--format", "parquet", "-o", str(lake.folder / "out.parquet"))
    lake("compact", "p", "--strategy", "full")
    assert lake.scan("p") == [given, given]
    lake("explain", "p", "1")
    lake("load", "p", str(lake.folder / "out.parquet"))
    lake("delete", "p", "--where", "k = 1")
    lake("tombstones", "p", "--at-once")
    assert lake.scan("p") == []


@pytest.mark.parametrize("shape", ["records", "lists", "both"])
@pytest.mark.parametrize("pretty", [False, True])
def test_what_is_nested_one_deeper_is_refused_by_line(lake: Command, shape: str, pretty: bool) -> None:
    lake.pool("p")
    deep = {"k": 2, "a": nested(MAX_NESTING + 1, shape)}
    text = "".join(json.dumps(r, indent=1 if pretty else None) + "\n" for r in ({"k": 1}, deep, {"k": 3}))
    line = 4 if pretty else 2
    message = lake.refuses_records("p", text, "a.json")
    assert f"a.json, line {line}: nested deeper than {MAX_NESTING} records and lists" in message
    lake("load", "p", str(lake.folder / "a.json"), "--bad-records", "quarantine")
    assert [r["k"] for r in lake.scan("p")] == [1, 3]


@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("closed", [True, False])
def test_a_hundred_thousand_levels_do_no_harm(lake: Command, opening: str, closed: bool) -> None:
    lake.pool("p", bad_records="quarantine")
    closing = ("]" if opening == "[" else "}") * 100_000 if closed else ""
    text = '{"k":1}\n{"k":2,"a":' + opening * 100_000 + "1" + closing + '}\n{"k":3}\n'
    assert lake.load_records("p", text)["rejected"] == 1
    assert [r["k"] for r in lake.scan("p")] == [1, 3]


def test_typed_files_are_held_to_the_same_nesting(lake: Command) -> None:
    lake.pool("p")
    for depth in (MAX_NESTING, MAX_NESTING + 1):
        kind = pa.int64()
        for _ in range(depth):
            kind = pa.list_(kind)
        table = pa.table({"k": [1], "a": pa.array([nested(depth, "lists")], kind)})
        sink = io.BytesIO()
        pq.write_table(table, sink)
        file = lake.file("a.parquet", sink.getvalue())
        if depth == MAX_NESTING:
            lake.load("p", file)
            continue
        assert "field 'a': nested deeper than" in lake.refuses("p", file)
        with pytest.raises(InvalidInput, match="nested deeper than"):
            Lake.open(lake.uri).pool("p").branch().append(table)


@pytest.mark.parametrize("format", ["ndjson", "csv", "parquet"])
@pytest.mark.parametrize(
    ("field", "limit"), [("k", MAX_KEY_BYTES), ("a", MAX_VALUE_BYTES)], ids=["a key", "a value"]
)
def test_keys_and_values_of_the_limit_are_read_and_longer_ones_refused(
    lake: Command, format: str, field: str, limit: int
) -> None:
    lake.pool("p")
    for size in (limit, limit + 1):
        record = {"k": "x", "a": "y"} | {field: "é" * (size // 2) + "z" * (size % 2)}
        data: str | bytes = json.dumps(record, ensure_ascii=False) + "\n"
        if format == "csv":
            data = f"k,a\n{record['k']},{record['a']}\n"
        elif format == "parquet":
            sink = io.BytesIO()
            pq.write_table(pa.Table.from_pylist([record]), sink)
            data = sink.getvalue()
        if size == limit:
            lake.load_records("p", data, f"a.{format}")
            assert lake.scan("p") == [record]
            continue
        message = lake.refuses_records("p", data, f"b.{format}")
        assert f"field {field!r}: a" in message
        assert f"value may have at most {limit:,} bytes" in message
        with pytest.raises(InvalidInput, match="may have at most"):
            Lake.open(lake.uri).pool("p").branch().append(pa.Table.from_pylist([record]))


@pytest.mark.parametrize("format", ["ndjson", "csv"])
def test_names_of_the_limit_are_read_and_longer_ones_refused(lake: Command, format: str) -> None:
    lake.pool("p")
    for size in (MAX_NAME_BYTES, MAX_NAME_BYTES + 1):
        name = "é" * (size // 2) + "z" * (size % 2)
        data = json.dumps({"k": 1, name: 2}) + "\n" if format == "ndjson" else f"k,{name}\n1,2\n"
        if size == MAX_NAME_BYTES:
            lake.load_records("p", data, f"a.{format}")
            assert lake.query('select * from "p"') == [{"k": 1, name: 2}]
            continue
        assert "a name may have at most 1,024 bytes" in lake.refuses_records("p", data, f"b.{format}")


@pytest.mark.parametrize("name", ["a\nb", "\t", "", " ", "a.b", 'a"b', "ü", "_"])
def test_odd_names_are_names(lake: Command, name: str) -> None:
    lake.pool("p")
    lake.load_records("p", [{"k": 1, name: 2, "r": {name: 3}}])
    lake.load_records("p", [{"k": 2, name: 2}])
    lake("compact", "p", "--strategy", "full")
    assert lake.scan("p") == [{"k": 1, name: 2, "r": {name: 3}}, {"k": 2, name: 2}]
    assert len(lake.query('select * from "p"')) == 2
    lake("show", "p")


def test_a_name_with_nul_is_refused(lake: Command) -> None:
    lake.pool("p")
    assert "line 2: " in lake.refuses_records("p", '{"k":1}\n{"k":2,"a\\u0000":3}\n')
    assert "NUL" in lake.refuses_records("p", '{"k":1}\n{"k":2,"r":{"a\\u0000":3}}\n')


def test_columns_beyond_the_limit_are_refused(lake: Command) -> None:
    lake.pool("p")
    wide = ",".join(f"c{i}" for i in range(MAX_COLUMNS))
    values = ",".join(["1"] * MAX_COLUMNS)
    assert "a record may have at most 10,000" in lake.refuses_records("p", f"k,{wide}\n1,{values}\n", "a.csv")
    record = {"k": 1} | {f"c{i}": 1 for i in range(MAX_COLUMNS)}
    assert "at most 10,000" in lake.refuses_records("p", [record])
