"""Parquet's VARIANT loads as the values that it holds, shredded or not; a damaged one is a bad record."""

from __future__ import annotations

import json
import struct
import uuid
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from log_lake.lake import Lake
from tests.support.command import Command
from tests.support.files import parquet

EMPTY = b"\x01\x00\x00"
VARIANT = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])
SPARK = {
    "org.apache.spark.sql.parquet.row.metadata": json.dumps(
        {
            "type": "struct",
            "fields": [
                {"name": "v", "type": "variant"},
                {"name": "l", "type": {"type": "array", "elementType": "variant"}},
                {"name": "m", "type": {"type": "map", "keyType": "string", "valueType": "variant"}},
                {"name": "r", "type": {"type": "struct", "fields": [{"name": "v", "type": "variant"}]}},
            ],
        }
    )
}
OBJECT = (  # {"a":1,"b":"x","c":[1.5,null,{"d":true}],"e":1e300}, as Spark 4.2 writes it
    bytes.fromhex("01050001020304056162636465"),
    bytes.fromhex("02040001020400020417200C01057803030006070D20010F000000000201030001041C9C7500883CE4377E"),
)
SHOWN = {"a": 1, "b": "x", "c": [1.5, None, {"d": True}], "e": 1e300}


def primitive(kind: int, payload: bytes = b"") -> bytes:
    return bytes((kind << 2,)) + payload


def long(value: int, size: int = 8) -> bytes:
    return value.to_bytes(size, "little", signed=True)


UUID = uuid.UUID("f766f892-b56b-4692-8c3f-5c5ca022622b")
VALUES = [
    (primitive(0), "null", None),
    (primitive(1), "true", "true"),
    (primitive(2), "false", "false"),
    (primitive(3, b"\xff"), "-1", "-1"),
    (primitive(4, long(-300, 2)), "-300", "-300"),
    (primitive(5, long(70_000, 4)), "70000", "70000"),
    (primitive(6, long(2**63 - 1)), str(2**63 - 1), str(2**63 - 1)),
    (primitive(7, struct.pack("<d", 0.1)), "0.1", "0.1"),
    (primitive(7, struct.pack("<d", float("nan"))), '"NaN"', '{"lake:number":"NaN"}'),
    (primitive(8, b"\x02" + long(-110, 4)), "-1.10", "-1.10"),
    (primitive(9, b"\x01" + long(9_007_199_254_740_993)), "900719925474099.3", "900719925474099.3"),
    (primitive(10, b"\x26" + long(1, 16)), f"0.{'0' * 37}1", None),
    (primitive(11, long(2_932_896, 4)), '"9999-12-31"', '{"lake:date":"9999-12-31"}'),
    (primitive(12, long(-1)), '"1969-12-31T23:59:59.999999Z"', None),
    (primitive(13, long(-62_135_596_800_000_000)), '"0001-01-01T00:00:00"', None),
    (primitive(14, struct.pack("<f", 0.5)), "0.5", "0.5"),
    (primitive(15, b"\2\0\0\0\0\xff"), '"AP8="', '{"lake:bytes":"AP8="}'),
    (primitive(16, b"\2\0\0\0\xc3\xa9"), '"é"', '"é"'),
    (primitive(17, long(36_000_000_001)), '"10:00:00.000001"', '{"lake:time":"10:00:00.000001"}'),
    (primitive(18, long(1)), '"1970-01-01T00:00:00.000000001Z"', None),
    (primitive(19, long(-1)), '"1969-12-31T23:59:59.999999999"', None),
    (primitive(20, UUID.bytes), f'"{UUID}"', f'"{UUID}"'),
    (b"\x09\xc3\xa9", '"é"', '"é"'),
]


def of_spark(**columns: pa.Array) -> bytes:
    table = pa.table({"k": range(len(next(iter(columns.values())))), **columns})
    return parquet(table.replace_schema_metadata(SPARK))


def variants(*values: bytes | tuple[bytes, bytes] | None) -> pa.Array:
    pairs = [(EMPTY, value) if isinstance(value, bytes) else value for value in values]
    return pa.array(
        [None if pair is None else {"metadata": pair[0], "value": pair[1]} for pair in pairs], VARIANT
    )


def test_each_kind_of_value_is_read_as_what_it_is(lake: Command) -> None:
    lake.pool("p")
    lake.load_records("p", of_spark(v=variants(*(value for value, _, _ in VALUES), None)), "a.parquet")
    lines = lake("scan", "p", "--format", "json").out.splitlines()
    for k, (_, shown, _) in enumerate(VALUES):
        assert lines[k] == (f'{{"k":{k}}}' if shown == "null" else f'{{"k":{k},"v":{shown}}}')
    stored = Lake.open(lake.uri).pool("p").at().to_table()["v"].to_pylist()
    assert all(text == typed for text, (_, _, typed) in zip(stored, VALUES, strict=False) if typed)
    lake("compact", "p", "--strategy", "full")
    assert lake("scan", "p", "--format", "json").out.splitlines() == lines
    assert lake.scan("p", "--where", "v = '9999-12-31'", "--columns", "k") == [{"k": 12}]


def test_objects_and_arrays_are_read_at_every_depth(lake: Command) -> None:
    array = variants(OBJECT, None)
    offsets = pa.array([0, 1, 2], pa.int32())
    lake.pool("p")
    lists = pa.ListArray.from_arrays(offsets, array, type=pa.list_(pa.field("element", VARIANT)))
    maps = pa.MapArray.from_arrays(offsets, pa.array(["x", "y"]), array)
    records = pa.StructArray.from_arrays([array], ["v"])
    lake.load_records("p", of_spark(v=array, l=lists, m=maps, r=records), "a.parquet")
    assert lake.scan("p") == [
        {"k": 0, "v": SHOWN, "l": [SHOWN], "m": {"x": SHOWN}, "r": {"v": SHOWN}},
        {"k": 1, "l": [None], "m": {"y": None}, "r": {}},
    ]
    assert lake.query("select v->>'b' as b from p where k = 0") == [{"b": "x"}]


def test_what_another_engine_shreds_is_put_together(lake: Command, tmp_path: Path) -> None:
    path = tmp_path / "shredded.parquet"
    duckdb.connect().execute(
        f"""copy (select * from (values
            (1, {{'a': 1, 'b': 'x', 'c': [1, 2], 'd': date '9999-12-31'}}::variant),
            (2, {{'a': 2, 'b': 'y', 'c': [3], 'd': date '2020-01-01'}}::variant),
            (3, {{'a': 'other', 'z': {{'y': 1.50::decimal(4, 2)}}}}::variant),
            (4, 5::variant), (5, null), (6, [1, 2]::variant), (7, timestamp '2020-01-01 10:00:00'::variant),
            (8, 'f766f892-b56b-4692-8c3f-5c5ca022622b'::uuid::variant)
        ) t(k, v)) to '{path}'"""
    )
    assert "typed_value" in str(pa.parquet.ParquetFile(path).schema)
    lake.pool("p")
    lake("load", "p", str(path))
    assert [r.get("v") for r in lake.scan("p")] == [
        {"a": 1, "b": "x", "c": [1, 2], "d": "9999-12-31"},
        {"a": 2, "b": "y", "c": [3], "d": "2020-01-01"},
        {"a": "other", "z": {"y": 1.5}},
        5,
        None,
        [1, 2],
        "2020-01-01T10:00:00",
        str(UUID),
    ]


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        ((EMPTY, b""), "a damaged VARIANT"),
        ((b"", primitive(1)), "a damaged VARIANT"),
        ((b"\x02\0\0", primitive(1)), "a VARIANT of version 2, which is unknown"),
        ((EMPTY, primitive(21)), "a VARIANT with a value of type 21, which is unknown"),
        ((EMPTY, primitive(16, b"\xff\0\0\0x")), "a damaged VARIANT"),
        ((EMPTY, primitive(16, b"\1\0\0\0\xff")), "a damaged VARIANT"),
        ((EMPTY, OBJECT[1]), "a damaged VARIANT"),
        ((OBJECT[0], OBJECT[1][:20]), "a damaged VARIANT"),
        ((EMPTY, primitive(11, long(2_932_897, 4))), "a date outside of the years 1 to 9999"),
        ((EMPTY, primitive(12, long(2**63 - 1))), "a timestamp outside of the years 1 to 9999"),
        ((EMPTY, primitive(17, long(-1))), "a time outside of a day"),
    ],
)
def test_a_variant_that_is_none_is_a_bad_record(lake: Command, pair: tuple[bytes, bytes], says: str) -> None:
    lake.pool("p")
    content = of_spark(v=variants(primitive(1), pair))
    assert f"line 2: field 'v': {says}" in lake.refuses_records("p", content, "a.parquet")
    lake("load", "p", lake.file("a.parquet", content), "--bad-records", "quarantine")
    assert lake.scan("p") == [{"k": 0, "v": True}]


def test_a_variant_nested_too_deep_is_a_bad_record(lake: Command) -> None:
    value = primitive(1)
    for _ in range(33):  # an array of one element with offsets of two bytes
        value = b"\x07\x01\0\0" + len(value).to_bytes(2, "little") + value
    lake.pool("p")
    assert "nested deeper than 32" in lake.refuses_records("p", of_spark(v=variants(value)), "a.parquet")
    inner = value[6:]
    lake.load_records("p", of_spark(v=variants(inner)), "b.parquet")
    assert len(lake.scan("p")) == 1


def test_a_record_that_only_looks_like_a_variant_stays_a_record(lake: Command) -> None:
    lake.pool("p")
    lake.load_records("p", parquet(pa.table({"k": [1], "v": variants(primitive(1))})), "a.parquet")
    assert lake.scan("p") == [{"k": 1, "v": {"metadata": "AQAA", "value": "BA=="}}]


def test_an_object_that_is_shredded_in_part_has_all_its_fields(lake: Command) -> None:
    """As Spark 4.2 shreds {"a":"t","z":2} and {"a":7} into `a bigint`; the third says one field twice."""
    field = pa.struct([("value", pa.binary()), ("typed_value", pa.int64())])
    kind = pa.struct(
        [("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.struct([("a", field)]))]
    )
    names, rest = bytes.fromhex("0102000102617A"), bytes.fromhex("02010100020C02")
    array = pa.array(
        [
            {"metadata": names, "value": rest, "typed_value": {"a": {"value": b"\x05t"}}},
            {"metadata": names, "typed_value": {"a": {"typed_value": 7}}},
            {
                "metadata": names,
                "value": bytes.fromhex("02010000020C02"),
                "typed_value": {"a": {"typed_value": 7}},
            },
            {"metadata": names, "typed_value": {"a": {}}},
        ],
        kind,
    )
    lake.pool("p")
    lake("load", "p", lake.file("a.parquet", of_spark(v=array)), "--bad-records", "quarantine")
    assert [r["v"] for r in lake.scan("p")] == [{"a": "t", "z": 2}, {"a": 7}, {}]
    (rejected,) = lake.scan("p.$rejected")
    assert rejected["reason"] == "field 'v': a damaged VARIANT: two values in one place"


def written_by_duckdb(path: Path, select: str) -> str:
    duckdb.connect().execute(f"copy ({select}) to '{path}' (format parquet)")
    return str(path)


PLAIN = "{'v': {'metadata': '\\x01\\x00\\x00'::blob, 'value': '\\x0c\\x07'::blob}}"


@pytest.mark.parametrize("order", ["v, r", "r, v"])
def test_a_record_with_the_name_and_the_form_of_a_variant_elsewhere_stays_a_record(
    lake: Command, tmp_path: Path, order: str
) -> None:
    select = f"select {order}, k from (select 1 as k, {{'a.b': 5}}::variant as v, {PLAIN} as r)"
    lake.pool("p")
    lake("load", "p", written_by_duckdb(tmp_path / "a.parquet", select))
    assert lake.scan("p") == [{"k": 1, "v": {"a.b": 5}, "r": {"v": {"metadata": "AQAA", "value": "DAc="}}}]
    assert lake("query", "select r.v.value::varchar as b from p").status == 0
    spark = {"type": "struct", "fields": [{"name": "v", "type": "variant"}]}
    table = pa.table(
        {
            "r": pa.StructArray.from_arrays([variants(primitive(1))], ["v"]),
            "v": variants(OBJECT),
            "k": [2],
        }
    ).select([*order.split(", "), "k"])
    content = parquet(
        table.replace_schema_metadata({"org.apache.spark.sql.parquet.row.metadata": json.dumps(spark)})
    )
    lake.pool("q")
    lake.load_records("q", content, "b.parquet")
    assert lake.scan("q") == [{"k": 2, "v": SHOWN, "r": {"v": {"metadata": "AQAA", "value": "BA=="}}}]


NAMES = [
    "a.b",
    "a b",
    " ",
    ".",
    "$.x",
    "a",
    "value",
    "typed_value",
    "metadata",
    "element",
    "lake:date",
    "[0]",
]


def test_fields_that_are_named_like_paths_come_back_with_their_names(lake: Command, tmp_path: Path) -> None:
    """Shredded by DuckDB, and not shredded: the empty name, which DuckDB does not write."""
    fields = ", ".join(f"'{name}': {number}" for number, name in enumerate(NAMES))
    select = f'select 1 as k, {{{fields}}}::variant as "v.a", {{{fields}}}::variant as " "'
    lake.pool("p")
    lake("load", "p", written_by_duckdb(tmp_path / "a.parquet", select))
    right = {name: number for number, name in enumerate(NAMES)}
    assert lake.scan("p") == [{"k": 1, "v.a": right, " ": right}]
    names, value = b"\x01\x02\x00\x00\x03a.b", b"\x02\x02\x00\x01\x00\x02\x04\x0c\x01\x0c\x02"
    lake.pool("q")
    lake.load_records("q", of_spark(v=variants((names, value))), "b.parquet")
    assert lake.scan("q") == [{"k": 0, "v": {"": 1, "a.b": 2}}]


@pytest.mark.parametrize("name", ["a\nb", "v\n  optional group field_id=-1 w"])
def test_a_variant_whose_name_has_a_line_break_is_refused(lake: Command, tmp_path: Path, name: str) -> None:
    lake.pool("p")
    file = written_by_duckdb(tmp_path / "a.parquet", f"select 1 as k, {{'a.b': 5}}::variant as \"{name}\"")
    assert "a file with a VARIANT has a name with a line break" in lake.refuses("p", file)


def test_a_schema_of_spark_that_is_none_marks_no_variant(lake: Command) -> None:
    spark = {"type": "struct", "fields": [{"type": "variant"}, 5]}
    table = pa.table({"k": [1], "v": variants(primitive(1))})
    key = "org.apache.spark.sql.parquet.row.metadata"
    lake.pool("p")
    lake.load_records("p", parquet(table.replace_schema_metadata({key: json.dumps(spark)})), "a.parquet")
    assert lake.scan("p") == [{"k": 1, "v": {"metadata": "AQAA", "value": "BA=="}}]
