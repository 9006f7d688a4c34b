"""What a load acknowledges can be read; what is beyond a limit is refused by file, line and field."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake_core.errors import InvalidInput
from lake_core.schemas.limits import MAX_COLUMNS, MAX_NAME_BYTES, MAX_NESTING, Fields, leaves
from log_lake.lake import Lake
from log_lake.loading import builder
from log_lake.loading.block import Reading, ReadLimits
from log_lake.loading.builder import groups
from log_lake.loading.checks import MAX_KEY_BYTES, MAX_VALUE_BYTES
from log_lake.loading.detect import read_blocks
from log_lake.loading.formats import csv_text, json_structure
from log_lake.loading.formats import json as ndjson
from tests.support.command import INVALID_INPUT, Command, without_nulls


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
def test_a_field_with_an_odd_name_is_loaded_compacted_and_queried(lake: Command, name: str) -> None:
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
    assert "more than 10,000 fields" in lake.refuses_records("p", [record])


def inside(width: int, shape: str) -> tuple[pa.Field, Any]:
    """A field that holds so many fields, and a value of it."""
    value: Any = {f"n{i}": i for i in range(width)}
    kind = pa.struct([(name, pa.int64()) for name in value])
    if shape == "list":
        return pa.field("a", pa.list_(kind)), [value]
    if shape == "map":
        return pa.field("a", pa.map_(pa.string(), pa.struct(list(kind)[1:]))), [("x", {"n1": 1})]
    return pa.field("a", pa.struct([("r", kind)])), {"r": value}


def typed_file(lake: Command, name: str, field: pa.Field, value: Any) -> str:
    """A Parquet file, or an Avro file of records in records."""
    path = lake.folder / name
    if name.endswith("parquet"):
        schema = pa.schema([("k", pa.int64()), field])
        pq.write_table(pa.Table.from_pylist([{"k": 1, "a": value}], schema), path)
        return str(path)
    members = [{"name": name, "type": "long"} for name in value["r"]]
    inner = {"type": "record", "name": "inner", "fields": members}
    outer = {"type": "record", "name": "outer", "fields": [{"name": "r", "type": inner}]}
    fields = [{"name": "k", "type": "long"}, {"name": "a", "type": outer}]
    with path.open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "all", "fields": fields}, [{"k": 1, "a": value}])
    return str(path)


@pytest.mark.parametrize(
    ("name", "shape"),
    [("a.parquet", "record"), ("a.parquet", "list"), ("a.parquet", "map"), ("a.avro", "record")],
)
def test_fields_inside_of_records_count_in_typed_files(lake: Command, name: str, shape: str) -> None:
    lake.pool("p")
    message = lake.refuses("p", typed_file(lake, name, *inside(MAX_COLUMNS, shape)))
    assert name in message
    assert "10,001 fields; a record may have at most 10,000, those inside of records counted" in message


@pytest.mark.parametrize("name", ["a.parquet", "a.avro"])
def test_as_many_fields_inside_as_there_may_be_are_read_from_typed_files(lake: Command, name: str) -> None:
    path = typed_file(lake, name, *inside(MAX_COLUMNS - 1, "record"))
    with contextlib.closing(read_blocks(Reading(path), format="auto")) as blocks:
        (block,) = blocks
    assert sum(1 for _ in leaves(block.table.schema)) == MAX_COLUMNS


def test_an_appended_table_with_too_many_fields_inside_is_refused(lake: Command) -> None:
    lake.pool("p")
    field, value = inside(MAX_COLUMNS, "list")
    table = pa.Table.from_pylist([{"k": 1, "a": value}], pa.schema([("k", pa.int64()), field]))
    with pytest.raises(InvalidInput, match="10,001 fields; a record may have at most 10,000"):
        Lake.open(lake.uri).pool("p").branch().append(table)


def names_of_all_kinds(records: int, where: str) -> str:
    """Records of which each has a field of its own."""
    lines = []
    for n in range(records):
        value: Any = {f"name-{n}": n}
        if where == "deep":
            value = {"r": {"s": value}}
        elif where == "list":
            value = [value]
        elif where == "few names":
            value = {f"a{n // 400}": {f"b{n // 20 % 20}": {f"c{n % 20}": n}}}
        lines.append(json.dumps({"k": n, **value} if where == "top" else {"k": n, "a": value}))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("where", "framing"),
    [("top", "lines"), ("record", "array"), ("deep", "lines"), ("list", "lines"), ("few names", "lines")],
)
def test_a_file_with_names_of_all_kinds_is_refused_before_it_fills_the_memory(
    lake: Command, where: str, framing: str
) -> None:
    lake.pool("p")
    text = names_of_all_kinds(12_000, where)
    if framing == "array":
        text = "[" + text.strip().replace("\n", ",\n") + "]"
    before = pa.default_memory_pool().max_memory()
    message = lake.refuses_records("p", text, "a.json")
    assert "a.json, line 10000: " in message
    assert "more than 10,000 fields, those inside of records counted" in message
    assert where == "top" or "lake set POOL type.a=json" in message
    assert pa.default_memory_pool().max_memory() - before < 512 << 20


def test_names_of_all_kinds_are_kept_as_json_where_the_pool_says_so(lake: Command) -> None:
    lake.pool("p", types={"a": "json"})
    assert lake.load_records("p", names_of_all_kinds(12_000, "record"))["records"] == 12_000


def test_only_records_that_bring_one_field_too_many_are_bad_records(lake: Command) -> None:
    names = [f"n{i}" for i in range(MAX_COLUMNS - 1)]
    lines = [
        {"k": 1, "a": dict.fromkeys(names, 1)},
        {"k": 2, "a": {"new": 1}},
        {"k": 3, "a": {"n7": 1}},
        {"k": 4, "x": 1},
    ]
    path = lake.file("a.ndjson", lines)
    reading = Reading(path, key=("k",), bad_records="quarantine")
    blocks = list(read_blocks(reading, format="auto"))
    assert [r["k"] for b in blocks for r in b.table.select(["k"]).to_pylist()] == [1, 3]
    assert [r.line for b in blocks for r in b.rejected] == [2, 4]


def test_one_record_whose_lists_hold_too_many_absent_values_is_a_bad_record(lake: Command) -> None:
    lake.pool("p")
    items = [{f"n{i % 4000}": 1} for i in range(5000)]
    message = lake.refuses_records("p", [{"k": 1, "a": items}])
    assert "line 1: 20,000,001 values, absent ones counted; a record may have at most 16,777,216" in message


@pytest.mark.parametrize("more", [0, 1])
def test_a_record_may_have_so_many_values_absent_ones_counted(lake: Command, more: int) -> None:
    items = [{f"n{i % 27}": i} for i in range(37)]  # 999 values, and the key
    record = {"k": 1, "a": items, "l": list(range(5_000))} | dict.fromkeys("x"[:more], 1)
    reading = Reading(
        lake.file("a.ndjson", [record]),
        key=("k",),
        limits=ReadLimits(record_values=1_000),
        block_bytes=1 << 20,
    )
    if more:
        with pytest.raises(InvalidInput, match="line 1: 1,001 values, absent ones counted; a record"):
            list(ndjson.read_ndjson(reading))
    else:
        (block,) = ndjson.read_ndjson(reading)
        assert [without_nulls(r) for r in block.table.to_pylist()] == [record]


def test_fields_of_several_files_and_of_several_loads_count_together(lake: Command) -> None:
    lake.pool("p")
    files = [
        lake.file(f"{n}.ndjson", [{"k": 1, f"f{n}": {f"{i}": i for i in range(MAX_COLUMNS // 2)}}])
        for n in range(2)
    ]
    assert "1.ndjson, line 1: field '4999' in 'f1': with it there are more" in lake.refuses("p", *files)
    lake.load("p", files[0])
    message = lake.refuses("p", files[1])
    assert "this load and the pool together: field" in message
    assert "in 'f1': with it there are more than 10,000 fields, those inside of records counted" in message
    lake.load_records("p", [{"k": 2, "f0": {"7": 8}}])


def test_names_that_come_late_and_types_that_change_are_read(lake: Command) -> None:
    lake.pool("p")
    records: list[dict[str, Any]] = [{"k": n, "a": n, "r": {"x": n}} for n in range(20_000)]
    records[9_000] |= {"late": "2026-01-01", "r": {"x": 1, "y": [{"z": None}]}}
    records[12_000] |= {"a": 0.5, "r": {"x": 1, "y": [{"z": "text"}]}}
    records[15_000] |= {"late": None, "a": -7}
    records[18_000] |= {"a": "text"}
    lake.load_records("p", records)
    found = lake.scan("p")
    assert [without_nulls(r) for r in found] == [without_nulls(r) for r in records]


def test_tables_that_lack_most_fields_of_one_another_become_several_objects() -> None:
    tables = [pa.table({"k": [1] * 1000, **{f"a{n}.{i}": [1] * 1000 for i in range(999)}}) for n in range(20)]
    found = list(groups(list(tables)))
    assert [t for group in found for t in group] == tables
    assert [len(group) for group in found] == [2] * 10
    assert list(groups([tables[0]] * 20)) == [[tables[0]] * 20]


def test_narrow_tables_stay_together_though_many_values_are_absent() -> None:
    tables = [pa.table({"k": [1] * 1000, **{f"a{n}.{i}": [1] * 1000 for i in range(9)}}) for n in range(40)]
    assert list(groups(list(tables))) == [tables]


def test_what_has_no_room_is_rejected_as_its_text_and_arrow_makes_no_columns_of_it(
    lake: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    infers: list[bool] = []
    parse = ndjson._parse
    monkeypatch.setattr(ndjson, "_parse", lambda *given, new: infers.append(new) or parse(*given, new=new))
    lines = names_of_all_kinds(20_000, "record").splitlines()
    path = lake.file("a.ndjson", "\n".join(lines))
    reading = Reading(path, key=("k",), bad_records="quarantine", fields=Fields(300))
    blocks = list(read_blocks(reading, format="auto"))
    rejected = [r for block in blocks for r in block.rejected]
    assert (sum(block.table.num_rows for block in blocks), len(rejected)) == (299, 20_000 - 299)
    assert [r.raw for r in rejected] == lines[299:]
    assert [r.line for r in rejected] == list(range(300, 20_001))
    assert sum(infers) < 10  # those of the beginning


@pytest.mark.parametrize("name", ["a.ndjson", "a.json", "a.csv"])
def test_where_bad_records_are_is_looked_for_once_a_block(
    lake: Command, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Each alone would take as long as the block is."""
    looked: list[int] = []
    positions, records_of = json_structure.positions, csv_text.records_of
    monkeypatch.setattr(json_structure, "positions", lambda *given: looked.append(1) or positions(*given))
    monkeypatch.setattr(csv_text, "records_of", lambda *given: looked.append(1) or records_of(*given))
    records = [{"k": "x" * (MAX_KEY_BYTES + 1), "n": str(n)} for n in range(100)]
    lines = [json.dumps(record) for record in records]
    if name == "a.json":
        lines = ["[" + ",\n".join(lines) + "]"]
    elif name == "a.csv":
        lines = ["k,n", *(f"{r['k']},{r['n']}" for r in records)]
    path = lake.file(name, "\n".join(lines))
    blocks = list(read_blocks(Reading(path, key=("k",), bad_records="quarantine"), format="auto"))
    rejected = [r for b in blocks for r in b.rejected]
    assert [r.line for r in rejected] == list(range(2, 102) if name == "a.csv" else range(1, 101))
    assert [str(r["n"]) in (bad.raw or "")[-8:] for r, bad in zip(records, rejected, strict=True)] == [
        True
    ] * 100
    assert len(looked) < 10


def test_the_sub_pool_that_is_full_is_named_as_it_is_written(lake: Command) -> None:
    lake.pool("p", nokey="accept")
    width = MAX_COLUMNS // 2 + 1
    lake.load_records("p", [{"a": {f"{i}": i for i in range(width)}}])
    message = lake.refuses("p", lake.file("b.ndjson", [{"b": {f"{i}": i for i in range(width)}}]))
    assert "this load and the sub-pool $nokey together: field" in message


def test_small_blocks_of_one_schema_are_taken_together(
    lake: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each column costs as much in a small block as in a large one."""
    taken: list[int] = []
    normalized = builder.normalized
    monkeypatch.setattr(builder, "normalized", lambda t: taken.append(t.num_rows) or normalized(t))
    lake.pool("p")
    wide = {f"n{i}": i for i in range(500)}
    files = [
        lake.file(f"{n}.ndjson", [{"k": n * 10 + i, **(wide if n < 8 else {"other": 1})} for i in range(10)])
        for n in range(10)
    ]
    lake.load("p", *files)
    assert taken == [80, 20]
    assert [r["k"] for r in lake.scan("p")] == list(range(100))


def test_values_of_one_class_that_no_type_of_a_key_holds_are_named(lake: Command) -> None:
    lake.pool("p")
    file = lake.file("a.ndjson", b'{"k": 9007199254740993}\n{"k": 0.5}\n')
    message = lake.fails(INVALID_INPUT, "load", "p", file)
    assert "no type holds both 9007199254740993 and 0.5" in message
    file = lake.file("b.ndjson", b'{"k": -1}\n{"k": 9223372036854775808}\n{"k": 0.5}\n')
    message = lake.fails(INVALID_INPUT, "load", "p", file)
    assert "no type holds both 9223372036854775808 and 0.5" in message
    assert "no fields" in lake.refuses_records("p", b"{}\n{}\n")
