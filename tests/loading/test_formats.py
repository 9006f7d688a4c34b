"""Files as others bring them: compressed, Avro, ORC, from a pipe; and what is not read says so."""

from __future__ import annotations

import bz2
import datetime as dt
import decimal
import gzip
import io
import lzma
import os
import sys
import threading
import zipfile
from collections.abc import Callable
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from tests.support.command import INVALID_INPUT, Command

LINES = b"".join(b'{"k":%d,"a":"some text"}\n' % i for i in range(5000))


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstd,
    "bz2": bz2.compress,
    "xz": lzma.compress,
}


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("name", ["a.ndjson", "a.ndjson.gz2"])
def test_compression_is_told_by_the_bytes_and_members_follow_one_another(
    lake: Command, packer: str, name: str
) -> None:
    lake.pool("p")
    pack = PACKERS[packer]
    half = LINES.index(b"\n", len(LINES) // 2) + 7  # in the middle of a record
    done = lake.load_records("p", pack(LINES[:half]) + pack(LINES[half:]), name)
    assert done["records"] == 5000
    assert [r["k"] for r in lake.scan("p")] == list(range(5000))


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("policy", ["fail", "quarantine"])
@pytest.mark.parametrize("left", [-1, -9, -500, 20])
def test_a_truncated_file_is_refused_by_name(lake: Command, packer: str, policy: str, left: int) -> None:
    lake.pool("p", bad_records=policy)
    message = lake.refuses_records("p", PACKERS[packer](LINES)[:left], "cut.ndjson")
    assert f"cut.ndjson: the {packer} file is damaged or truncated" in message


@pytest.mark.parametrize("packer", PACKERS)
def test_a_damaged_member_behind_a_good_one_is_no_end(lake: Command, packer: str) -> None:
    lake.pool("p")
    damaged = bytearray(PACKERS[packer](LINES))
    damaged[0] ^= 0xFF
    message = lake.refuses_records("p", PACKERS[packer](LINES) + damaged, "two.ndjson")
    assert "damaged or truncated" in message


def test_a_compressed_csv_and_a_compressed_parquet_file_are_read_too(lake: Command) -> None:
    lake.pool("p")
    sink = io.BytesIO()
    pq.write_table(pa.table({"k": [3]}), sink)
    lake.load(
        "p",
        lake.file("a.csv.zst", zstd(b"k;a\n1;x\n")),
        lake.file("b.parquet.xz", lzma.compress(sink.getvalue())),
    )
    assert [r["k"] for r in lake.scan("p")] == [1, 3]


def packed(name: str) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr(name, "x")
    return sink.getvalue()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (packed("a.csv"), "a ZIP archive; unpack it first"),
        (packed("xl/workbook.xml"), "an Excel workbook; save the sheet as CSV"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "an old Office document"),
        (
            b"<!DOCTYPE html><html><body>404",
            "an HTML page; perhaps a download failed",
        ),
        (b"\n<html>", "an HTML page"),
        (b"<?xml version='1.0'?><a/>", "XML"),
        (b"%PDF-1.7\n", "a PDF"),
        (b"SQLite format 3\x00" + bytes(80), "an SQLite database"),
        (b"\x89HDF\r\n\x1a\n" + bytes(80), "an HDF5 file"),
        (b"\x93NUMPY\x01\x00", "a NumPy array"),
        (b"ARROW1\x00\x00", "an Arrow or Feather file"),
        (b"RDX3\nX\n", "R data"),
        (b"\x80\x04\x95\x00\x00", "a Python pickle"),
        (bytes(257) + b"ustar\x0000", "a tar archive"),
        (b"7z\xbc\xaf\x27\x1c" + bytes(40), "an archive"),
        (
            b"\x04\x22\x4d\x18" + bytes(40),
            "compressed with lz4, compress or snappy; use gzip",
        ),
        (b"PARE" + bytes(40), "an encrypted Parquet file"),
        (b"\x89PNG\r\n\x1a\n" + bytes(40), "an image"),
        (gzip.compress(gzip.compress(b"k\n1\n")), "compressed twice"),
    ],
)
@pytest.mark.parametrize("name", ["a.csv", "a.json", "a.bin"])
def test_what_is_not_read_says_so(lake: Command, content: bytes, says: str, name: str) -> None:
    lake.pool("p", bad_records="quarantine")
    message = lake.refuses_records("p", content, name)
    assert f"{name}: this is {says}" in message


AVRO = {
    "type": "record",
    "name": "row",
    "fields": [
        {"name": "k", "type": "long"},
        {"name": "s", "type": ["null", "string"]},
        {"name": "u", "type": ["null", "string", "long"]},
        {"name": "b", "type": "bytes"},
        {"name": "t", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "d", "type": {"type": "int", "logicalType": "date"}},
        {"name": "m", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "e", "type": {"type": "enum", "name": "color", "symbols": ["red", "green"]}},
        {"name": "l", "type": {"type": "array", "items": "int"}},
        {
            "name": "r",
            "type": {"type": "record", "name": "inner", "fields": [{"name": "x", "type": "double"}]},
        },
        {"name": "r2", "type": ["null", "inner"]},
    ],
}


def avro(records: list[dict[str, Any]], schema: Any = AVRO, codec: str = "deflate") -> bytes:
    sink = io.BytesIO()
    fastavro.writer(sink, fastavro.parse_schema(schema), records, codec=codec)
    return sink.getvalue()


def avro_record(k: int) -> dict[str, Any]:
    moment = dt.datetime(2026, 1, 2, 3, 4, 5, 678901, dt.UTC)
    return {
        "k": k,
        "s": None if k % 2 else "x",
        "u": k if k % 2 else "text",
        "b": b"\x00\xff",
        "t": moment,
        "d": moment.date(),
        "m": decimal.Decimal("12.34"),
        "e": "green",
        "l": [1, 2],
        "r": {"x": 0.5},
        "r2": {"x": 1.5},
    }


@pytest.mark.parametrize("name", ["a.avro", "a.data"])
def test_avro_is_read_with_its_types(lake: Command, name: str) -> None:
    lake.pool("p")
    lake.load_records("p", avro([avro_record(1), avro_record(2)]), name)
    one, two = lake.scan("p")
    assert one == {
        "k": 1, "u": 1, "b": "AP8=", "t": "2026-01-02T03:04:05.678901Z", "d": "2026-01-02", "m": 12.34,
        "e": "green", "l": [1, 2], "r": {"x": 0.5}, "r2": {"x": 1.5},
    }  # fmt: skip
    assert (two["s"], two["u"]) == ("x", "text")


def test_a_damaged_avro_file_and_a_recursive_schema_are_refused(lake: Command) -> None:
    lake.pool("p", bad_records="quarantine")
    whole = avro([avro_record(k) for k in range(100)])
    assert "not a readable Avro file" in lake.refuses_records("p", whole[:-30], "a.avro")
    tree = {"type": "record", "name": "tree", "fields": [{"name": "next", "type": ["null", "tree"]}]}
    assert "its schema is recursive" in lake.refuses_records("p", avro([{"next": None}], tree), "b.avro")


def test_orc_is_read_with_its_types(lake: Command) -> None:
    lake.pool("p")
    sink = io.BytesIO()
    orc.write_table(pa.table({"k": [1, 2], "a": [["x"], None], "t": [dt.datetime(2026, 1, 2), None]}), sink)
    lake.load_records("p", sink.getvalue(), "a.orc")
    assert lake.scan("p") == [{"k": 1, "a": ["x"], "t": "2026-01-02T00:00:00"}, {"k": 2}]
    assert "not a readable ORC file" in lake.refuses_records("p", sink.getvalue()[:-20], "b.orc")


def test_standard_input_is_read_and_named(lake: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.pool("p")

    def given(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    given(gzip.compress(b'{"k":1}\n'))
    lake("load", "p", "-")
    given(b"k;a\n2;x\n")
    lake("load", "p", "-", "--format", "csv")
    assert lake.scan("p") == [{"k": 1}, {"k": 2, "a": "x"}]
    given(b"k;a\n2;x\n")
    assert "-: neither the name nor the first bytes tell the format" in lake.fails(
        INVALID_INPUT, "load", "p", "-"
    )
    given(b'{"k":1}\n{"k":\n')
    lake("load", "p", "-", "--bad-records", "quarantine")
    assert lake.scan("p.$rejected")[0]["file"] == "-"


def test_a_fifo_is_read_once(lake: Command) -> None:
    lake.pool("p")
    fifo = lake.folder / "pipe.csv"
    lake.folder.mkdir(exist_ok=True)
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_bytes(b"k\n1\n2\n"))
    writer.start()
    lake("load", "p", str(fifo))
    writer.join()
    assert lake.scan("p") == [{"k": 1}, {"k": 2}]


@pytest.mark.parametrize(
    ("precision", "scale", "says"), [(38, 2, ""), (50, 2, ""), (76, 38, ""), (77, 2, "decimal(77,2)")]
)
def test_a_decimal_of_avro_comes_back_or_is_refused_by_its_limit(
    lake: Command, precision: int, scale: int, says: str
) -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    record = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "k", "type": "int"}, {"name": "a", "type": kind}],
    }
    sink = io.BytesIO()
    digits = "1" * (precision - scale) + "." + "2" * scale
    with decimal.localcontext(prec=100):
        fastavro.writer(sink, record, [{"k": 1, "a": decimal.Decimal(digits)}])
    lake.pool("p")
    if says:
        message = lake.refuses_records("p", sink.getvalue(), "a.avro")
        assert (
            f"field 'a': {says}: a decimal may have at most 76 digits, 38 of them behind the point" in message
        )
        return
    lake.load_records("p", sink.getvalue(), "a.avro")
    assert lake.query(f"select count(*) as n from \"p\" where cast(a as varchar) like '%{digits}%'") == [
        {"n": 1}
    ]
