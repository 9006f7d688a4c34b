"""ORC: times of all years, the calendar of the writer, and Spark's times without a zone."""

from __future__ import annotations

import base64
import datetime as dt
import io
from collections.abc import Callable

import pyarrow as pa
import pyorc
import pytest
from pyarrow import orc

from log_lake.lake import Lake
from log_lake.loading.formats import orc_footer
from log_lake.zng.wire import uvarint
from tests.support.command import Command

US, NS = pa.timestamp("us"), pa.timestamp("ns")
END, FIRST, NOW = "9999-12-31T23:59:59.999999", "0001-01-01T00:00:00", "2020-01-01T00:00:00.5"


def times(*texts: str | None, kind: pa.DataType = US) -> pa.Array:
    return pa.array(texts, pa.string()).cast(kind)


def as_orc(table: pa.Table, **options: object) -> bytes:
    sink = io.BytesIO()
    orc.write_table(table, sink, **options)
    return sink.getvalue()


def nested(array: pa.Array) -> pa.Table:
    """Each time alone, in a record, in a list and in a map; beside values of other kinds."""
    rows, count = range(len(array)), len(array)
    offsets = pa.array(range(count + 1), pa.int32())
    other = pa.array(["é" if k else None for k in rows], pa.string())
    day = pa.array([dt.date(2020, 1, 1)] * count)
    return pa.table(
        {
            "k": rows,
            "t": array,
            "r": pa.StructArray.from_arrays([array, other, day], ["t", "s", "d"]),
            "l": pa.ListArray.from_arrays(offsets, array),
            "m": pa.MapArray.from_arrays(offsets, pa.array([f"n{k}" for k in rows]), array),
            "x": pa.array([k / 2 for k in rows]),
        }
    )


def records(texts: list[str]) -> list[dict[str, object]]:
    return [
        {
            "k": k,
            "t": t,
            "r": {"t": t, **({"s": "é"} if k else {}), "d": "2020-01-01"},
            "l": [t],
            "m": {f"n{k}": t},
            "x": k / 2,
        }
        for k, t in enumerate(texts)
    ]


@pytest.mark.parametrize("compression", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_times_of_all_years_are_exact_at_every_depth(lake: Command, compression: str) -> None:
    texts = [END, FIRST, NOW]
    lake.pool("p")
    lake.load_records("p", as_orc(nested(times(*texts)), compression=compression), "a.orc")
    assert lake.scan("p") == records(texts)
    lake.pool("keyed", key="t")
    lake.load_records("keyed", as_orc(nested(times(NOW))), "b.orc")
    lake.load_records("keyed", as_orc(nested(times(END, FIRST))), "c.orc")
    assert [r["t"] for r in lake.scan("keyed")] == [FIRST, NOW, END]
    assert Lake.open(lake.uri).pool("keyed").at().to_table()["t"].type == US


def test_nulls_and_zones_and_nanoseconds_are_kept(lake: Command) -> None:
    fine = "2020-01-01T00:00:00.123456789"
    table = pa.table(
        {
            "k": [1, 2],
            "far": times(END, None),
            "fine": times(fine, None, kind=NS),
            "zoned": times(END, None).cast(pa.timestamp("us", "UTC")),
            "l": pa.array([None, []], pa.list_(US)),
        }
    )
    lake.pool("p")
    lake.load_records("p", as_orc(table), "a.orc")
    assert lake.scan("p") == [{"k": 1, "far": END, "fine": fine, "zoned": f"{END}Z"}, {"k": 2, "l": []}]


def test_a_year_that_no_type_holds_is_a_bad_record(lake: Command) -> None:
    ticks = pa.array([0, 253402300800 * 10**6, None]).cast(US)
    content = as_orc(pa.table({"k": [1, 2, 3], "t": ticks}))
    lake.pool("p")
    message = lake.refuses_records("p", content, "a.orc")
    assert "line 2: field 't': a timestamp outside of the years 1 to 9999 (10000-01-01T00:00:00)" in message
    lake("load", "p", lake.file("a.orc", content), "--bad-records", "quarantine")
    assert lake.scan("p") == [{"k": 1, "t": "1970-01-01T00:00:00"}, {"k": 3}]


def test_dates_of_the_java_writer_are_of_the_hybrid_calendar(lake: Command) -> None:
    """As Spark writes them: its footer says the calendar, older ones say only the writer."""
    days = pa.array([-354280, -141428, -141427, 18262, -719164], pa.int32()).cast(pa.date32())
    table = pa.table({"k": range(5), "d": days, "t": days.cast(pa.timestamp("s")).cast(US)})
    content = as_orc(table)
    by_cpp, by_java = b"\x48\x01\x62", b"\x48\x00\x62"  # the fields writer and softwareVersion of the footer
    assert content.count(by_cpp) == 1
    dates = ["1000-01-01", "1582-10-04", "1582-10-15", "2020-01-01", "0001-01-01"]
    lake.pool("p")
    lake.load_records("p", content.replace(by_cpp, by_java), "a.orc")
    assert lake.scan("p") == [{"k": k, "d": d, "t": f"{d}T00:00:00"} for k, d in enumerate(dates)]
    lake.pool("cpp")
    lake.load_records("cpp", as_orc(table.slice(0, 1)), "b.orc")
    assert lake.scan("cpp") == [{"k": 0, "d": "1000-01-06", "t": "1000-01-06T00:00:00"}]


def test_sparks_times_without_a_zone_are_times(lake: Command) -> None:
    def ntz(name: str) -> pa.Field:
        return pa.field(name, pa.int64(), metadata={"spark.sql.catalyst.type": "timestamp_ntz"})

    micros = [-62135596800000000, 253402300799999999]
    schema = pa.schema(
        [("k", pa.int64()), ntz("n"), ("r", pa.struct([ntz("n")])), ("l", pa.list_(ntz("item")))]
    )
    rows = [{"k": k, "n": n, "r": {"n": n}, "l": [n, None]} for k, n in enumerate(micros)]
    lake.pool("p")
    lake.load_records("p", as_orc(pa.Table.from_pylist(rows, schema)), "a.orc")
    assert lake.scan("p") == [
        {"k": k, "n": t, "r": {"n": t}, "l": [t, None]} for k, t in enumerate([FIRST, END])
    ]


# Files that Spark 4.2 wrote in LZO, which no Python package writes: three records with a date of 2020 and of 1500,
# in base64.
LZO_OF_2020 = (
    "T1JDEQAACgYSBAgDUAArAAAKEwoDAAAAEgwIAxIGCAAQBBgGUAAvAAAKFQoDAAAAEg4IAzoICKydAhCsnQJQAEUAAAogCgYAAAAA"
    "AAASFggDShAYgKC35utbIICgt+brWzABUABcAAAsClIKBQAAAAAAEkkIAyJDCh5zb21lIHRleHQgMSYAMBI8fAADMhi0AVAAEQAA"
    "CQAARgICQAcAAAiOrAsAABgSzqYABQAAAABEAAAbc29tZSB0ZXh0IDElADAxTAAonQAxN3QAAnRleHQyEQAABQAAAB7AAAAZCgYI"
    "BhAAGAufAAEYGJwACAIYGgoGCAYQAxglnAAIBBgxCgYIARABGAefAAIYBpwACAMYCAoGCAUQAxgFnQEEnAUKAhAEGAUSAggAEgII"
    "AioMAAYaB0V0Yy9VVEMRAADUAABKCo8BCgQIA1AACg4IAxIGCAAQBBgGUABYBwoQCAM6CAisnQIQrJ0CUABYBgoYCANKEBiAoLfm"
    "61sguAAABjABUABYDQpLCAMiQwoec29tZSB0ZXh0IDEmADASPHwABTIYtAFQAFgqEQAACgIAcQgDEL0CGgsIAxCTARhEIGMoAyIU"
    "CAwSBAECAwQaAWsaAWQaAXQaAXMiAggEIgIIDyIoCAk6JAoXc3Bhcmsuc3FsLmNhdGFseXN0LnR5cGUSCXRpbWVzdGFtcCIlCAc6"
    "ITikAAAEBnN0cmluZyohChhvcmcuYXBhY2hlLrwKADR2ZXJzaW9uEgU0LjIuMDADOgQIA1AAOg4IAxIGCAAQBBgGUABYBzoQCAM6"
    "CAisnQIQrJ0CUABYBjoYCANKEBiAoLfm61sguAAABjABUABYDTpLCAMiQwoec29tZSB0ZXh0IDEmADASPHwAAAQyGLQBUABYKkCQ"
    "TkgAWAFiBTIuMy4wEQAACIgCEAMYgIAQIgIADChtMAmC9AMDT1JDGA=="
)
LZO_OF_1500 = (
    "T1JDEQAACgYSBAgDUAArAAAKEwoDAAAAEgwIAxIGCAAQBBgGUAAvAAAKFQoDAAAAEg4IAzoICI36FBCN+hRQAEUAAAogCgYAAAAA"
    "AAASFggDShAYgKC35utbIICgt+brWzABUABcAAAsClIKBQAAAAAAEkkIAyJDCh5zb21lIHRleHQgMSYAMBI8fAADMhi0AVAAEQAA"
    "CQAARgICQAkAABAFPQ0LAAAYEs6mAAUAAAAARAAAG3NvbWUgdGV4dCAxJQAwMUwAKJ0AMTd0AAJ0ZXh0MhEAAAUAAAAevAAAGQoG"
    "CAYQABgLnwABGBicAAgCGBoKBggGEAMYJZwACAQYMQoGCAEQARgHnQAC3AAIAxgICgYIBRADGAWdAgScBQoCEAQYBRICCAASAggC"
    "KgwABhoHRXRjL1VUQxEAANAAADgKjwEKBAgDUAAKDggDEgYIABAEGAZQAFgHChAIAzoICI36FBCN+hSEAgoYCANKEBiAoLfm61sg"
    "uAAABjABUABYDQpLCAMiQwoec29tZSB0ZXh0IDEmADASPHwABTIYtAFQAFgqEQAABgIAcQgDELwCGgsIAxCTARhFIGEoAyIUCAwS"
    "BAECAwQaAWsaAWQaAXQaAXMiAggEIgIIDyIoCAk6JAoXc3Bhcmsuc3FsLmNhdGFseXN0LnR5cGUSCXRpbWVzdGFtcCIlCAc6ITik"
    "AAAEBnN0cmluZyohChhvcmcuYXBhY2hlLrwKACJ2ZXJzaW9uEgU0LjIuMDADOgQIA1AAOg4IAxIGCAAQBBgGUABYBzoQCAM6CAiN"
    "+hQQjfoUhAIKGAgDShAYgKC35utbILgAAAYwAVAAWA06SwgDIkMKHnNvbWUgdGV4dCAxJgAwEjx8AAAEMhi0AVAAWCpAkE5IAFgB"
    "YgUyLjMuMBEAAAiGAhADGICAECICAAwoazAJgvQDA09SQxg="
)


def test_a_file_in_lzo_is_read_unless_its_dates_depend_on_the_calendar(lake: Command) -> None:
    """Arrow reads it, but nothing else unpacks its footer, which says the calendar."""
    lake.pool("p")
    recent, past = base64.b64decode(LZO_OF_2020), base64.b64decode(LZO_OF_1500)
    lake.load_records("p", recent, "recent.orc")
    assert [(r["k"], r["d"], r["s"]) for r in lake.scan("p")] == [
        (k, "2020-01-01", f"some text some text some text{k}") for k in range(3)
    ]
    message = lake.refuses_records("p", past, "past.orc")
    assert "field 'd' has dates or times before 15 October 1582" in message
    assert "compression, LZO, hides their calendar from a load; write it with ZSTD" in message
    assert "\n" not in message.strip()


@pytest.mark.parametrize("far", [True, False])
def test_no_entry_of_a_map_is_lost_beside_far_timestamps(lake: Command, far: bool) -> None:
    first, last = dt.datetime(2020, 1, 1), dt.datetime(9999 if far else 2021, 1, 1)
    kind = pa.map_(pa.string(), pa.timestamp("us"))
    inside = pa.struct([("l", pa.list_(kind))])
    once, twice = [("a", first), ("b", first)], [("a", first), ("a", last)]

    def of(*maps: object) -> bytes:
        records = pa.array([{"l": [one, [("c", last)]]} for one in maps], inside)
        return as_orc(pa.table({"k": range(len(maps)), "r": records}))

    lake.pool("p")
    lake.load_records("p", of(once, once), "once.orc")
    assert [len(r["r"]["l"][0]) for r in lake.scan("p")] == [2, 2]
    assert "same key" in lake.refuses_records("p", of(once, twice), "twice.orc")


def orc_file(schema: str, records: list[dict[str, object]], *, julian: bool = False) -> bytes:
    """A file that pyorc writes, without compression; its footer may name the hybrid calendar."""
    sink = io.BytesIO()
    dicts, plain = pyorc.StructRepr.DICT, pyorc.CompressionKind.NONE
    with pyorc.Writer(sink, schema, struct_repr=dicts, compression=plain) as writer:
        writer.writerows(records)
    data = sink.getvalue()
    if not julian:
        return data
    postscript = data[-1 - data[-1] : -1]
    size, after = orc_footer._varint(postscript, 1)
    begin = len(data) - 1 - len(postscript) - size
    footer = data[begin : begin + size] + bytes([orc_footer._CALENDAR << 3, orc_footer._JULIAN])
    postscript = postscript[:1] + uvarint(len(footer)) + postscript[after:]
    return data[:begin] + footer + postscript + bytes([len(postscript)])


OLD, OLD_AS_JULIAN = dt.date(1500, 1, 1), "1499-12-23"


@pytest.mark.parametrize("julian", [False, True])
def test_dates_in_a_union_have_the_calendar_of_the_file(lake: Command, julian: bool) -> None:
    union = "uniontype<int,struct<d:date>,date>"  # pyorc tries them in this order
    schema = f"struct<k:int,u:{union},l:array<{union}>,m:map<string,{union}>>"
    values = [OLD, 5, {"d": OLD}]
    rows = [{"k": k, "u": value, "l": [value, 7], "m": {"x": value}} for k, value in enumerate(values)]
    lake.pool("p")
    lake.load_records("p", orc_file(schema, rows, julian=julian), "a.orc")
    day = OLD_AS_JULIAN if julian else OLD.isoformat()
    right = [day, 5, {"d": day}]
    assert lake.scan("p") == [{"k": k, "u": v, "l": [v, 7], "m": {"x": v}} for k, v in enumerate(right)]


def test_times_in_a_union_are_those_of_the_file_or_the_field_is_named(lake: Command) -> None:
    lake.pool("p")
    near, far = dt.datetime(2020, 1, 1), dt.datetime(9999, 1, 1)
    schema = "struct<k:int,u:uniontype<int,timestamp>>"
    lake.load_records("p", orc_file(schema, [{"k": 1, "u": near}, {"k": 2, "u": 7}]), "a.orc")
    assert [one["u"] for one in lake.scan("p")] == ["2020-01-01T00:00:00", 7]
    message = lake.refuses_records("p", orc_file(schema, [{"k": 1, "u": far}, {"k": 2, "u": 7}]), "b.orc")
    assert "field 'u': a union beside timestamps of the years before 1677 or after 2262" in message


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("struct<s:string,t:timestamp>", lambda text, time: {"s": text, "t": time}),
        ("array<struct<s:varchar(9),t:timestamp>>", lambda text, time: [{"s": text, "t": time}]),
        ("map<string,timestamp>", lambda text, time: {text: time}),
    ],
)
def test_text_that_is_not_utf8_beside_far_timestamps_is_refused_by_the_field(
    lake: Command, kind: str, value: Callable[[str, dt.datetime], object]
) -> None:
    far = dt.datetime(9999, 12, 31)
    data = orc_file(f"struct<k:int,r:{kind}>", [{"k": k, "r": value(t, far)} for k, t in enumerate("XYZ")])
    lake.pool("p")
    lake.load_records("p", data, "a.orc")
    bad = data.replace(b"XYZ", b"X\xffZ")
    assert bad != data
    message = lake.refuses_records("p", bad, "b.orc")
    assert "text that is not UTF-8, in a field of 'r', beside timestamps of the years before 1677" in message


def test_text_that_is_not_utf8_in_another_field_than_far_timestamps_is_a_bad_record(lake: Command) -> None:
    far = dt.datetime(9999, 12, 31)
    data = orc_file(
        "struct<k:int,s:string,t:timestamp>", [{"k": k, "s": "XYZ"[k], "t": far} for k in range(3)]
    )
    lake.pool("p")
    lake("load", "p", lake.file("a.orc", data.replace(b"XYZ", b"X\xffZ")), "--bad-records", "quarantine")
    assert [one["s"] for one in lake.scan("p")] == ["X", "Z"]
    assert [one["reason"] for one in lake.scan("p.$rejected")] == ["field 's': not UTF-8"]
