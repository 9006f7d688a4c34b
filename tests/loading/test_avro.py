"""Avro's types, as its specification has them: read exactly, or named as bad records."""

from __future__ import annotations

import bz2
import datetime as dt
import decimal
import io
import json
import lzma
import struct
import uuid
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from lake_core.errors import InvalidInput
from log_lake.loading.block import Reading
from log_lake.loading.expansion import Expansion
from log_lake.loading.formats import avro_container
from log_lake.loading.formats.avro import read_avro
from tests.support.command import Command


def record(kind: Any, *more: Any, name: str = "r") -> dict[str, Any]:
    """The schema of records with the key `k` and a field `v` of the type."""
    fields = [{"name": "k", "type": "long"}, {"name": "v", "type": kind}, *more]
    return {"type": "record", "name": name, "fields": fields}


def avro(schema: Any, values: list[Any], *, says: Any = None, codec: str = "null") -> bytes:
    """A file of values that fastavro writes by `schema`; its header says that they are of the schema `says`."""
    sink = io.BytesIO()
    fastavro.writer(sink, fastavro.parse_schema(schema), values, codec=codec, sync_interval=1 << 20)
    data = sink.getvalue()
    if says is None:
        return data
    read = fastavro.reader(io.BytesIO(data))
    header = io.BytesIO()
    kind = fastavro.parse_schema(fastavro.read.HEADER_SCHEMA)
    meta = {"avro.schema": json.dumps(says).encode(), "avro.codec": codec.encode()}
    plain = io.BytesIO()
    written = read._header
    fastavro.schemaless_writer(plain, kind, written)
    fastavro.schemaless_writer(header, kind, {**written, "meta": meta})
    return header.getvalue() + data[len(plain.getvalue()) :]


def _deflated(data: bytes) -> bytes:
    return zlib.compress(data)[2:-4]


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "null": bytes,
    "deflate": _deflated,
    "snappy": lambda data: pa.compress(data, "snappy", asbytes=True) + zlib.crc32(data).to_bytes(4, "big"),
    "zstandard": lambda data: pa.compress(data, "zstd", asbytes=True),
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "lz4": lambda data: len(data).to_bytes(4, "little") + pa.compress(data, "lz4_raw", asbytes=True),
}


def recoded(data: bytes, codec: str) -> bytes:
    """An uncompressed file with its blocks compressed."""
    container = avro_container.open_container(io.BytesIO(data))
    header = io.BytesIO()
    meta = {**container.metadata, "avro.codec": codec.encode()}
    header.write(avro_container._MAGIC)
    written = {"meta": meta, "sync": container.sync}
    fastavro.schemaless_writer(header, avro_container._HEADER, written)
    parts = [header.getvalue()]
    while (count := avro_container._read_long(container.file)) is not None:
        size = avro_container._read_long(container.file) or 0
        block = PACKED[codec](container.file.read(size))
        container.file.read(len(container.sync))
        parts.append(avro_container._long(count) + avro_container._long(len(block)) + block + container.sync)
    return b"".join(parts)


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


FIXED16 = {"type": "fixed", "name": "f16", "size": 16}
UUID = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")

TYPES = [
    (logical("int", "date"), "int", 18263, "2020-01-02"),
    (logical("int", "date"), "int", 2_932_896, "9999-12-31"),
    (logical("int", "date"), "int", -719_162, "0001-01-01"),
    (logical("int", "time-millis"), "int", 1, "00:00:00.001"),
    (logical("long", "time-micros"), "long", 86_399_999_999, "23:59:59.999999"),
    (logical("long", "timestamp-millis"), "long", 253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    (logical("long", "timestamp-micros"), "long", -1, "1969-12-31T23:59:59.999999Z"),
    (logical("long", "timestamp-nanos"), "long", 1_577_836_800_000_000_001, "2020-01-01T00:00:00.000000001Z"),
    (logical("long", "local-timestamp-millis"), "long", 1, "1970-01-01T00:00:00.001"),
    (logical("long", "local-timestamp-micros"), "long", 1, "1970-01-01T00:00:00.000001"),
    (logical("long", "local-timestamp-nanos"), "long", 1, "1970-01-01T00:00:00.000000001"),
    (logical("string", "uuid"), "string", str(UUID).upper(), str(UUID)),
    (logical("string", "uuid"), "string", "none", "none"),
    ({**FIXED16, "logicalType": "uuid"}, FIXED16, UUID.bytes, str(UUID)),
    (logical("bytes", "decimal", precision=4, scale=2), "bytes", b"\xff\x85", -1.23),
    (
        {"type": "fixed", "name": "f2", "size": 2, "logicalType": "decimal", "precision": 4, "scale": 2},
        {"type": "fixed", "name": "f2", "size": 2},
        b"\x00\x7b",
        1.23,
    ),
    (
        {"type": "fixed", "name": "f12", "size": 12, "logicalType": "duration"},
        {"type": "fixed", "name": "f12", "size": 12},
        struct.pack("<III", 1, 2, 4_000_000_000),
        {"months": 1, "days": 2, "milliseconds": 4_000_000_000},
    ),
    (logical("bytes", "big-decimal"), "bytes", b"\x04\x00\xff\x04", 2.55),  # 2 bytes, 255, scale 2
    # what the specification asks to ignore: unknown, of another type, without a precision
    (logical("long", "date"), "long", 7, 7),
    (logical("int", "moon-phase"), "int", 7, 7),
    (logical("bytes", "decimal"), "bytes", b"\x07", "Bw=="),
    (logical("bytes", "decimal", precision=2, scale=3), "bytes", b"\x07", "Bw=="),
    ({**FIXED16, "logicalType": "duration"}, FIXED16, b"\0" * 16, "AAAAAAAAAAAAAAAAAAAAAA=="),
]


@pytest.mark.parametrize(("says", "kind", "value", "shown"), TYPES, ids=[str(one[0]) for one in TYPES])
def test_each_logical_type_is_read_alone_in_lists_maps_and_unions(
    lake: Command, says: Any, kind: Any, value: Any, shown: Any
) -> None:
    lake.pool("p")
    name = kind["name"] if isinstance(kind, dict) else ""  # a named type is defined once
    again, told = (name, name) if name else (kind, says)
    other = {"type": "array", "items": "null"}

    def schema(one: Any, another: Any) -> dict[str, Any]:
        return record(
            one,
            {"name": "l", "type": {"type": "array", "items": another}},
            {"name": "m", "type": {"type": "map", "values": ["null", another]}},
            {"name": "u", "type": [other, "null", another]},
            {"name": "um", "type": {"type": "map", "values": [other, another]}},
        )

    values = {"k": 1, "v": value, "l": [value], "m": {"a": value, "b": None}, "u": value, "um": {"a": value}}
    lake.load_records("p", avro(schema(kind, again), [values], says=schema(says, told)), "a.avro")
    assert lake.scan("p") == [
        {"k": 1, "v": shown, "l": [shown], "m": {"a": shown, "b": None}, "u": shown, "um": {"a": shown}}
    ]


BAD = [
    (logical("int", "date"), "int", 2_932_897, "a date outside of the years 1 to 9999"),
    (logical("int", "date"), "int", -719_163, "a date outside of the years 1 to 9999"),
    (logical("long", "timestamp-micros"), "long", 2**62, "a timestamp outside of the years 1 to 9999"),
    (
        logical("long", "local-timestamp-millis"),
        "long",
        -(2**63),
        "a timestamp outside of the years 1 to 9999",
    ),
    (logical("long", "time-micros"), "long", -1, "a time outside of a day"),
    (logical("int", "time-millis"), "int", 86_400_000, "a time outside of a day"),
    (logical("bytes", "decimal", precision=2), "bytes", b"\x64", "more digits than decimal(2,0) has"),
]


@pytest.mark.parametrize(("says", "kind", "value", "why"), BAD, ids=[f"{one[0]} {one[2]}" for one in BAD])
@pytest.mark.parametrize("form", ["alone", "list", "map", "union"])
def test_a_value_out_of_range_makes_a_bad_record_that_is_named(
    lake: Command, form: str, says: Any, kind: Any, value: Any, why: str
) -> None:
    shapes: dict[str, tuple[Callable[[Any], Any], Any]] = {
        "alone": (lambda one: one, value),
        "list": (lambda one: {"type": "array", "items": one}, [value]),
        "map": (lambda one: {"type": "map", "values": one}, {"a": value}),
        "union": (lambda one: ["null", "boolean", one], value),
    }
    shape, bad = shapes[form]
    good = {"list": [], "map": {}, "union": None}.get(form, b"\x01" if kind == "bytes" else 1)
    rows = [{"k": 1, "v": good}, {"k": 2, "v": bad}, {"k": 3, "v": good}]
    data = avro(record(shape(kind)), rows, says=record(shape(says)))
    lake.pool("p")
    assert "line 2: field 'v': " in lake.refuses_records("p", data, "a.avro")
    lake.pool("q", bad_records="quarantine")
    lake.load_records("q", data, "a.avro")
    assert [one["k"] for one in lake.scan("q")] == [1, 3]
    (rejected,) = lake.scan("q.$rejected")
    assert (rejected["line"], rejected["reason"][:11]) == (2, "field 'v': ")
    assert why in rejected["reason"]
    assert json.loads(rejected["raw"])["k"] == 2


def test_the_values_of_a_map_that_are_json_stay_what_they_are_everywhere(lake: Command) -> None:
    """Arrow's builders lose the mark of JSON inside of maps."""
    union = {"type": "map", "values": ["null", "string", "long"]}
    schema = record(
        union, {"name": "n", "type": {"type": "array", "items": {"type": "map", "values": union}}}
    )
    value = {"a": 1, "b": "x", "c": None}
    row = {"k": 1, "v": value, "n": [{"o": value}]}
    lake.pool("p")
    lake.load_records("p", avro(schema, [row, {**row, "k": 3}]), "a.avro")
    lake.load_records("p", avro(schema, [{**row, "k": 2}]), "b.avro")
    expected = [row, {**row, "k": 2}, {**row, "k": 3}]
    assert lake.scan("p") == expected
    assert lake.query("select * from p order by k") == expected
    assert '"{""a"":1,""b"":""x"",""c"":null}"' in lake("scan", "p", "--format", "csv").out
    lake("compact", "p", "--strategy", "full")
    assert lake.scan("p") == expected
    for name in ("parquet", "zng", "zst"):
        file = str(lake.folder / f"out.{name}")
        lake("scan", "p", "--format", name, "-o", file)
        lake.pool(name)
        lake("load", name, file)
        assert lake.scan(name) == expected, name
    assert "map<string, json>" in lake("show", "p").out


def test_each_record_of_a_union_at_the_top_is_read_in_the_order_of_the_file(lake: Command) -> None:
    one = record(["null", "long"], name="one")
    two = {
        "type": "record",
        "name": "two",
        "fields": [{"name": "k", "type": "long"}, {"name": "w", "type": "string"}],
    }
    values = [("two", {"k": 1, "w": "x"}), ("one", {"k": 2, "v": 5}), ("two", {"k": 3, "w": "y"})]
    lake.pool("p")
    lake.load_records("p", avro([one, two], values), "a.avro")
    assert lake.scan("p") == [{"k": 1, "w": "x"}, {"k": 2, "v": 5}, {"k": 3, "w": "y"}]
    lake.pool("q", bad_records="quarantine")
    lake.load_records("q", avro(["null", one, "long"], [None, {"k": 2, "v": 5}, 7]), "a.avro")
    assert lake.scan("q") == [{"k": 2, "v": 5}]
    assert [(one["line"], one["reason"]) for one in lake.scan("q.$rejected")] == [
        (1, "a value that is null, and no record"),
        (3, "its values are no records, but of type int64"),
    ]


@pytest.mark.parametrize(
    ("schema", "values", "says"),
    [
        ("long", [1], "its values are no records, but of type int64"),
        ({"type": "map", "values": "long"}, [], "its values are no records, but of type map<string, int64>"),
        ({"type": "record", "name": "r", "fields": []}, [{}], "its records have no fields"),
    ],
)
def test_values_that_are_no_records_with_fields_are_refused(
    lake: Command, schema: Any, values: list[Any], says: str
) -> None:
    lake.pool("p", bad_records="quarantine")
    assert f"a.avro: {says}; a pool holds records with fields" in lake.refuses_records(
        "p", avro(schema, values), "a.avro"
    )


def test_enums_aliases_defaults_namespaces_and_names_that_avro_does_not_allow(lake: Command) -> None:
    color = {
        "type": "enum",
        "name": "color",
        "symbols": ["red", "green"],
        "default": "red",
        "aliases": ["hue"],
    }
    written = record(color, {"name": "w", "type": "color"}, {"name": "n", "type": ["null", "long"]})
    says = {
        "type": "record",
        "namespace": "org.example",
        "name": "r-1",
        "doc": "with a default of a wrong type",
        "fields": [
            {"name": "k", "type": "long", "aliases": ["key"]},
            {"name": "v", "type": {**color, "symbols": ["r e d", "green"]}},
            {"name": "w w", "type": "org.example.color", "order": "ignore"},
            {"name": "n", "type": ["null", "long"], "default": "null"},
        ],
    }
    lake.pool("p")
    lake.load_records(
        "p", avro(written, [{"k": 1, "v": "red", "w": "green", "n": None}], says=says), "a.avro"
    )
    assert lake.scan("p") == [{"k": 1, "v": "r e d", "w w": "green"}]


def test_text_that_is_not_utf_8_and_a_number_beyond_an_enum_make_bad_records(lake: Command) -> None:
    lake.pool("p")
    rows = [{"k": 1, "v": b"x"}, {"k": 2, "v": b"\xff"}]
    data = avro(record("bytes"), rows, says=record("string"))
    assert "line 2: field 'v': not UTF-8" in lake.refuses_records("p", data, "a.avro")
    enum = {"type": "enum", "name": "e", "symbols": ["a", "b"]}
    data = avro(record("int"), [{"k": 1, "v": 1}, {"k": 2, "v": 2}], says=record(enum))
    assert "line 2: field 'v': number 2 of an enum of 2 symbols" in lake.refuses_records("p", data, "b.avro")


def test_a_key_that_a_map_has_twice_makes_a_bad_record(lake: Command) -> None:
    entry = {
        "type": "record", "name": "e", "fields": [{"name": "key", "type": "string"}, {"name": "v", "type": "int"}]
    }  # fmt: skip
    twice = [{"key": "a", "v": 1}, {"key": "a", "v": 2}]
    for values in ("int", ["int", "boolean"]):
        form = {**entry, "fields": [entry["fields"][0], {"name": "v", "type": values}]}
        data = avro(
            record({"type": "array", "items": form}),
            [{"k": 1, "v": twice}],
            says=record({"type": "map", "values": values}),
        )
        lake.pool(f"p{len(values)}")
        message = lake.refuses_records(f"p{len(values)}", data, "a.avro")
        assert "line 1: field 'v': a map has the same key twice" in message


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz", "zstandard", "snappy", "lz4"])
def test_every_codec_is_read_without_a_package_more(lake: Command, codec: str) -> None:
    schema, rows = record("string"), [{"k": k, "v": "x" * k} for k in range(300)]
    plain = avro(schema, rows, codec=codec if codec in ("null", "deflate", "bzip2", "xz") else "null")
    if codec in ("zstandard", "snappy", "lz4"):
        blocks = list(fastavro.block_reader(io.BytesIO(plain)))
        (block,) = blocks
        data = block.bytes_.getvalue() if hasattr(block.bytes_, "getvalue") else bytes(block.bytes_)
        arrow = {"zstandard": "zstd", "snappy": "snappy", "lz4": "lz4_raw"}[codec]
        packed = pa.Codec(arrow).compress(data, asbytes=True)
        if codec == "snappy":
            packed += zlib.crc32(data).to_bytes(4, "big")
        if codec == "lz4":
            packed = len(data).to_bytes(4, "little") + packed
        sync = fastavro.reader(io.BytesIO(plain))._header["sync"]
        head = plain.index(sync) + 16
        long = io.BytesIO()
        fastavro.schemaless_writer(long, "long", 300)
        fastavro.schemaless_writer(long, "long", len(packed))
        header = plain[:head].replace(
            b"\x14avro.codec\x08null", b"\x14avro.codec" + bytes([2 * len(codec)]) + codec.encode()
        )
        plain = header + long.getvalue() + packed + sync
    lake.pool("p")
    lake.load_records("p", plain, "a.avro")
    assert lake.query("select count(*) as n, sum(length(v)) as s from p") == [{"n": 300, "s": 299 * 150}]
    for end in (len(plain) - 1, len(plain) - 20):
        assert "not a readable Avro file" in lake.refuses_records("p", plain[:end], "b.avro")
    middle = len(plain) - 40
    damaged = plain[:middle] + bytes([plain[middle] ^ 0xFF]) + plain[middle + 1 :]
    if codec not in ("null", "lz4"):  # these have no checksum
        assert lake.refuses_records("p", damaged, "c.avro")


def test_an_unknown_codec_is_named(lake: Command) -> None:
    lake.pool("p")
    data = avro(record("long"), [{"k": 1, "v": 1}], codec="null").replace(b"\x08null", b"\x08zipp")
    message = lake.refuses_records("p", data, "a.avro")
    assert (
        "codec 'zipp' is unknown; write it with one of null, deflate, snappy, zstandard, bzip2, xz, lz4"
        in message
    )


def test_wide_and_negative_decimals_are_exact_beside_others_of_a_union(lake: Command) -> None:
    kind = logical("bytes", "decimal", precision=50, scale=2)
    with decimal.localcontext(prec=100):
        number = -decimal.Decimal("9" * 48 + ".25")
        data = avro(record(["boolean", kind]), [{"k": 1, "v": number}, {"k": 2, "v": True}])
    lake.pool("p")
    lake.load_records("p", data, "a.avro")
    assert f'"v":{number}' in lake("scan", "p").out


def test_a_timestamp_of_a_union_keeps_its_class(lake: Command) -> None:
    kind = ["string", logical("long", "timestamp-micros"), logical("int", "date")]
    rows = [
        {"k": 1, "v": "x"},
        {"k": 2, "v": dt.datetime(2020, 1, 1, tzinfo=dt.UTC)},
        {"k": 3, "v": dt.date(2020, 1, 2)},
    ]
    lake.pool("p")
    lake.load_records("p", avro(record(kind), rows), "a.avro")
    assert [one["v"] for one in lake.scan("p")] == ["x", "2020-01-01T00:00:00Z", "2020-01-02"]


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard", "bzip2", "xz", "lz4"])
def test_a_batch_has_a_bounded_size_and_a_bounded_number_of_records(tmp_path: Path, codec: str) -> None:
    long, few = 100_000, 40
    values = [{"k": k, "v": "x" * long} for k in range(few)] + [{"k": k, "v": ""} for k in range(40_000)]
    content = recoded(avro(record("string"), values), codec)
    file = tmp_path / "a.avro"
    file.write_bytes(content)
    blocks = list(read_avro(Reading(str(file), block_bytes=10 * long)))
    assert [k for block in blocks for k in block.table["k"].to_pylist()] == [value["k"] for value in values]
    assert [block.table.num_rows for block in blocks] == [10] * 4 + [16_384, 16_384, 7_232]


@pytest.mark.parametrize("codec", ["deflate", "snappy", "zstandard", "bzip2", "xz", "lz4"])
def test_a_block_is_unpacked_no_further_than_the_file_may_expand(
    tmp_path: Path, codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = recoded(avro(record("string"), [{"k": 1, "v": "x" * 8_000_000}]), codec)
    file = tmp_path / "a.avro"
    file.write_bytes(large)
    unpacked: list[int] = []
    unpack = avro_container._CODECS[codec]

    def watched(data: bytes, most: int) -> bytes:
        plain = unpack(data, most)
        unpacked.append(len(plain))
        return plain

    monkeypatch.setitem(avro_container._CODECS, codec, watched)
    with pytest.raises(InvalidInput, match=r"hold more than 2.0 MB of content; .*expansion.max") as refused:
        list(read_avro(Reading(str(file), expansion=Expansion(most=1, free=2_000_000))))
    assert str(refused.value).startswith(f"{file}: ")
    assert sum(unpacked) <= 4_000_000
    assert len(list(read_avro(Reading(str(file), expansion=Expansion(most=1, free=9_000_000))))) == 1


@pytest.mark.parametrize("codec", ["deflate", "bzip2", "xz"])
def test_a_block_whose_compressed_data_is_cut_is_refused(codec: str) -> None:
    packed = PACKED[codec](b"some text" * 1000)
    assert avro_container._CODECS[codec](packed, 1 << 20) == b"some text" * 1000
    assert avro_container._CODECS[codec](packed, 9000) == b"some text" * 1000
    with pytest.raises(ValueError, match="is cut"):
        avro_container._CODECS[codec](packed[:-9], 1 << 20)


@pytest.mark.parametrize(
    ("kind", "declared", "values", "shown"),
    [
        (["int", "string"], "string", ["x", 'say "x"', ""], ["x", 'say "x"', ""]),
        (["int", "string"], "bigint", [5, "6"], [5, 6]),
        (["int", "double"], "double", [5, 0.5], [5.0, 0.5]),
        (["boolean", "string"], "boolean", [True, False], [True, False]),
        (["string", logical("int", "date")], "date", [dt.date(2020, 1, 2), "2020-01-03"],
         ["2020-01-02", "2020-01-03"]),
        (["boolean", logical("long", "timestamp-micros")], "timestamp", [dt.datetime(2020, 1, 1, tzinfo=dt.UTC)],
         ["2020-01-01T00:00:00Z"]),
        (["int", "bytes"], "binary", [b"\xff"], ["/w=="]),
    ],
)  # fmt: skip
def test_values_of_a_union_are_read_as_the_declared_type(
    lake: Command, kind: Any, declared: str, values: list[Any], shown: list[Any]
) -> None:
    lake.pool("p", types={"v": declared})
    lake.load_records("p", avro(record(kind), [{"k": k, "v": v} for k, v in enumerate(values)]), "a.avro")
    assert [one["v"] for one in lake.scan("p")] == shown
    file = str(lake.folder / "again.parquet")
    lake("scan", "p", "-o", file)
    lake.pool("q", types={"v": declared})
    lake("load", "q", file)
    assert lake.scan("q") == lake.scan("p")


def test_a_value_of_a_union_that_is_not_of_the_declared_type_is_named(lake: Command) -> None:
    lake.pool("p", types={"v": "string"})
    data = avro(record(["int", "string"]), [{"k": 1, "v": "x"}, {"k": 2, "v": 5}])
    assert "field 'v': 5 is not a string: it is a number" in lake.refuses_records("p", data, "a.avro")
    lake.pool("q", types={"v": "bigint"})
    kind = ["string", logical("int", "date")]
    data = avro(record(kind), [{"k": 1, "v": dt.date(2020, 1, 2)}])
    assert "field 'v': '2020-01-02' is not a bigint: it is a date" in lake.refuses_records(
        "q", data, "a.avro"
    )


HEADER = b"Obj\x01\x04\x16avro.schema"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"hello world", "it does not begin as Avro files do"),
        (b"Obj\x01", "it ends within its header"),
        (b"Obj\x01" + b"\0" * 17, "its header or its schema has no 'avro.schema'"),
        (b"Obj\x01\x02\x03" + b"\x07" * 30, "a length of"),
        (b"Obj\x01\x02" + b"\xff" * 8 + b"\x7f" + b"\x07" * 30, "not a readable Avro file: "),
        (HEADER + b"\x04[]\x14avro.codec\x08null\0" + b"S" * 16, "its schema is a union of no types"),
        (HEADER + b"\x1c{\"type\":\"map\"}\x14avro.codec\x08null\0" + b"S" * 16, "has no 'values'"),
    ],
)  # fmt: skip
def test_a_damaged_header_is_bad_input_in_words_and_no_trouble_of_the_store(
    lake: Command, data: bytes, says: str
) -> None:
    lake.pool("p")
    message = lake.refuses_records("p", data, "a.avro")
    assert says in message
    assert not message.rstrip().endswith(":")


def test_a_block_that_ends_within_a_value_says_so(lake: Command) -> None:
    lake.pool("p")
    data = avro(record("long"), [{"k": 1, "v": 1}])
    more = data[:-20] + b"\x04" + data[-19:]  # it says 2 records
    assert "a.avro: not a readable Avro file: block 1: it ends within a value" in lake.refuses_records(
        "p", more, "a.avro"
    )


def blocks(kind: Any, *contents: bytes) -> bytes:
    """A file with a block of one record for each content; the record is of `record(kind)`."""
    sync = b"S" * 16
    header = io.BytesIO()
    meta = {"avro.schema": json.dumps(record(kind)).encode(), "avro.codec": b"null"}
    fastavro.schemaless_writer(header, avro_container._HEADER, {"meta": meta, "sync": sync})
    long = avro_container._long
    parts = [long(1) + long(len(content)) + content + sync for content in contents]
    return b"".join([avro_container._MAGIC, header.getvalue(), *parts])


def zigzag(number: int) -> bytes:
    return avro_container._long(number) if number >= 0 else avro_container._varint_of(-2 * number - 1)


TEXT = {"type": "record", "name": "t", "fields": [{"name": "x", "type": ["null", "string"]}]}


@pytest.mark.parametrize("number", [-1, -2, -3, 2, 5, -(2**62), 2**62])
@pytest.mark.parametrize(
    "kind",
    [
        ["null", "string"],
        ["int", "string"],
        {"type": "array", "items": ["null", "string"]},
        {"type": "map", "values": ["null", "string"]},
        TEXT,
        ["null", TEXT],
    ],
    ids=["nullable", "of two types", "in an array", "in a map", "in a record", "in a nullable record"],
)
def test_a_number_of_no_alternative_of_a_union_is_damage_of_a_named_block(
    tmp_path: Path, kind: Any, number: int
) -> None:
    before = {
        "array": zigzag(1),
        "map": zigzag(1) + b"\x02m",
    }.get(kind["type"] if isinstance(kind, dict) else "", zigzag(1) if kind == ["null", TEXT] else b"")
    after = b"\0" if isinstance(kind, dict) and kind["type"] in ("array", "map") else b""
    good, bad = (zigzag(1) + before + zigzag(at) + b"\x02a" + after for at in (1, number))
    file = tmp_path / "a.avro"
    file.write_bytes(blocks(kind, good))
    assert [block.table.num_rows for block in read_avro(Reading(str(file)))] == [1]
    file.write_bytes(blocks(kind, good, bad))
    with pytest.raises(InvalidInput) as refused:
        list(read_avro(Reading(str(file))))
    says = f"{file}: not a readable Avro file: block 2: a union has no alternative {number}"
    assert str(refused.value) == says


NUMBERS: dict[str, Callable[[bytes], bytes]] = {
    "long": lambda number: number,
    "int": lambda number: number,
    "string": lambda number: number,
    "an enum": lambda number: number,
    "an array": lambda number: number + b"\x04\0",
    "a map": lambda number: number + b"\x02m\x04\0",
    "within an array": lambda number: b"\x02" + number + b"\0",
    "within a union": lambda number: b"\x02" + number,
}
KINDS: dict[str, Any] = {
    "an enum": {"type": "enum", "name": "e", "symbols": ["a", "b"]},
    "an array": {"type": "array", "items": "long"},
    "a map": {"type": "map", "values": "long"},
    "within an array": {"type": "array", "items": "long"},
    "within a union": ["null", "long"],
}


@pytest.mark.parametrize("where", NUMBERS)
@pytest.mark.parametrize(
    "number", [b"\x80" * 9 + b"\x02", b"\x80" * 10 + b"\0", b"\x80" * 30 + b"\0"], ids=len
)
def test_a_number_of_more_than_64_bits_is_damage_of_a_named_block(
    tmp_path: Path, where: str, number: bytes
) -> None:
    file = tmp_path / "a.avro"
    file.write_bytes(blocks(KINDS.get(where, where), zigzag(1) + NUMBERS[where](number)))
    with pytest.raises(
        InvalidInput, match="not a readable Avro file: block 1: a number has more than 64 bits"
    ):
        list(read_avro(Reading(str(file))))


def test_values_whose_bytes_could_be_long_numbers_are_read(lake: Command) -> None:
    inner = {
        "type": "record",
        "name": "i",
        "fields": [{"name": "f", "type": {"type": "fixed", "name": "f", "size": 12}}],
    }
    member = [
        {"name": "b", "type": "bytes"},
        {"name": "s", "type": "string"},
        {"name": "l", "type": {"type": "array", "items": ["null", "long"]}},
        {"name": "m", "type": {"type": "map", "values": inner}},
        {"name": "again", "type": ["null", "i"]},
        {"name": "d", "type": "double"},
        {"name": "t", "type": "boolean"},
        {"name": "e", "type": {"type": "enum", "name": "e", "symbols": ["a", "b"]}},
        {"name": "last", "type": "long"},
    ]
    high, low = 2**63 - 1, -(2**63)
    value = {
        **{"k": 1, "v": low, "b": b"\xff" * 20, "s": "я" * 20, "l": [None, low, high], "d": -1.5, "t": True},
        **{"m": {"я" * 9: {"f": b"\xee" * 12}}, "again": {"f": b"\xdd" * 12}, "e": "b", "last": high},
    }
    lake.pool("p")
    lake("load", "p", lake.file("a.avro", avro(record("long", *member), [value])))
    (shown,) = lake("scan", "p", "--json").records
    assert (shown["v"], shown["s"], shown["l"], shown["e"], shown["last"]) == (
        low,
        "я" * 20,
        [None, low, high],
        "b",
        high,
    )


def test_a_number_of_no_record_of_the_files_union_is_damage(lake: Command) -> None:
    kinds = [record("string", name="a"), record("long", name="b")]
    data = avro(kinds, [("a", {"k": 1, "v": "x"})])
    lake.pool("p")
    damaged = data[:-20] + data[-20:].replace(b"\x00\x02\x02x", b"\x01\x02\x02x")
    assert damaged != data
    assert "block 1: a union has no alternative -1" in lake.refuses_records("p", damaged, "a.avro")


@pytest.mark.parametrize("length", [-1, -3, 4, 2**40, 2**62, -(2**63)])
@pytest.mark.parametrize("kind", ["string", "bytes"])
def test_a_length_that_no_text_has_is_damage(tmp_path: Path, kind: str, length: int) -> None:
    file = tmp_path / "a.avro"
    file.write_bytes(blocks(kind, zigzag(1) + zigzag(3) + b"abc", zigzag(2) + zigzag(length) + b"abc"))
    with pytest.raises(InvalidInput, match=r"a\.avro: not a readable Avro file: block 2: "):
        list(read_avro(Reading(str(file))))


@pytest.mark.parametrize("at", [0, 1], ids=["count", "size"])
@pytest.mark.parametrize("number", [-1, 2**40, 2**62, -(2**63), 2**63])
def test_a_number_that_no_block_has_is_damage(tmp_path: Path, at: int, number: int) -> None:
    file = tmp_path / "a.avro"
    numbers = [zigzag(1), zigzag(5)]
    numbers[at] = zigzag(number)
    good = blocks("string", zigzag(1) + zigzag(3) + b"abc")
    file.write_bytes(good + b"".join(numbers) + b"\x04\x06abc" + b"S" * 16)
    with pytest.raises(
        InvalidInput, match=r"a\.avro: (not a readable Avro file: block 2: |.* of content; if you)"
    ):
        list(read_avro(Reading(str(file))))


def test_a_boolean_is_a_byte_of_zero_or_one(lake: Command) -> None:
    lake.pool("p")
    contents = [zigzag(k) + bytes([byte]) for k, byte in enumerate((0, 1, 2))]
    lake("load", "p", lake.file("a.avro", blocks("boolean", *contents)), "--bad-records", "quarantine")
    assert lake.scan("p") == [{"k": 0, "v": False}, {"k": 1, "v": True}]
    (bad,) = lake.scan("p.$rejected")
    assert (bad["line"], bad["reason"]) == (3, "field 'v': a boolean that is neither true nor false")


def test_an_array_in_blocks_with_their_sizes_is_read(lake: Command) -> None:
    """A negative count of an array's block says that the block's size follows."""
    lake.pool("p")
    content = zigzag(1) + zigzag(-2) + zigzag(2) + b"\x0a\x0c" + zigzag(1) + b"\x0e" + b"\0"
    lake.load_records("p", blocks({"type": "array", "items": "int"}, content), "a.avro")
    assert lake.scan("p") == [{"k": 1, "v": [5, 6, 7]}]


NOTHING: dict[str, Any] = {
    "null": "null",
    "a record without fields": {"type": "record", "name": "n", "fields": []},
    "a record of nulls": {"type": "record", "name": "n", "fields": [{"name": "x", "type": "null"}]},
    "bytes of no length": {"type": "fixed", "name": "n", "size": 0},
}
"""Types whose values take no bytes."""


@pytest.mark.parametrize("kind", NOTHING)
def test_some_bytes_are_no_array_of_any_length(lake: Command, kind: str) -> None:
    schema = record("int", {"name": "a", "type": ["null", {"type": "array", "items": NOTHING[kind]}]})
    lake.pool("p")
    lake.load_records("p", avro(schema, [{"k": 1, "v": 2, "a": []}, {"k": 2, "v": 2, "a": None}]), "a.avro")
    assert [one.get("a") for one in lake.scan("p")] == [[], None]
    data, record_, block = avro(schema, []), b"\x02\x04\x02", io.BytesIO()
    fastavro.schemaless_writer(block, "long", 2**40)
    content = record_ + block.getvalue() + b"\0"
    data += b"\x02" + bytes([len(content) * 2]) + content + data[-16:]
    lake.refuses_records("p", data, "b.avro")  # at once, in little memory


@pytest.mark.parametrize("kind", NOTHING)
def test_records_without_bytes_count(lake: Command, kind: str) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "k", "type": NOTHING[kind]}]}
    data, block = avro(schema, []), io.BytesIO()
    for number in (2**40, 0):
        fastavro.schemaless_writer(block, "long", number)
    lake.pool("p")
    assert "of content" in lake.refuses_records("p", data + block.getvalue() + data[-16:], "a.avro")
