"""Old dates of files that Spark wrote in its legacy mode are those that Spark reads.

The numbers of the files and the texts are what Spark 4.2 wrote and read in the time zone America/Los_Angeles.
"""

from __future__ import annotations

import io

import fastavro
import pyarrow as pa
import pytest

from tests.support.command import INVALID_INPUT, Command
from tests.support.files import parquet
from tests.support.int96 import int96

DAYS = [-354280, -141428, -141427, -43829, 18262, -719164, 2932896]
DATES = ["1000-01-01", "1582-10-04", "1582-10-15", "1850-01-01", "2020-01-01", "0001-01-01", "9999-12-31"]
MICROS = [-30609763200000000, -12219307199876544, -12219220800000000, -3786796800000000, 1577865600000000]
MICROS += [-62135740800000000, 253402289999999999]
TIMES = [
    "1000-01-01T07:52:58Z",
    "1582-10-04T19:52:58.123456Z",
    "1582-10-15T19:52:58Z",
    "1850-01-01T07:52:58Z",
]
TIMES += ["2020-01-01T08:00:00Z", "0001-01-01T07:52:58Z", "9999-12-31T20:59:59.999999Z"]
LOCAL = [-30610224000000000, -12220200000000000, -12219249600000000, -3786825600000000, 1577836800000000]
LOCAL += [-62135596800000000, 253402300799999999]
US = pa.timestamp("us", "UTC")
LEGACY = {
    "org.apache.spark.version": "4.2.0",
    "org.apache.spark.legacyDateTime": "",
    "org.apache.spark.legacyINT96": "",
    "org.apache.spark.timeZone": "America/Los_Angeles",
}


def of_spark(metadata: dict[str, str]) -> bytes:
    rows = range(len(DAYS))
    days, times = pa.array(DAYS, pa.int32()).cast(pa.date32()), pa.array(MICROS).cast(US)
    offsets = pa.array([*rows, len(DAYS)], pa.int32())
    table = pa.table(
        {
            "k": rows,
            "d": days,
            "t": times,
            "n": pa.array(LOCAL).cast(pa.timestamp("us")),
            "r": pa.StructArray.from_arrays([days, times], ["d", "t"]),
            "l": pa.ListArray.from_arrays(offsets, days),
            "m": pa.MapArray.from_arrays(offsets, days, times),
        }
    )
    return parquet(table.replace_schema_metadata(metadata))


def test_dates_and_times_of_the_legacy_mode_are_those_that_spark_reads(lake: Command) -> None:
    lake.pool("p")
    lake.load_records("p", of_spark(LEGACY), "a.parquet")
    records = lake.scan("p")
    assert [r["d"] for r in records] == DATES
    assert [r["t"] for r in records] == TIMES
    assert [r["n"][:10] for r in records] == DATES, "a time without a zone is never of the old calendar"
    assert [r["r"] for r in records] == [{"d": d, "t": t} for d, t in zip(DATES, TIMES, strict=True)]
    assert [r["l"] for r in records] == [[date] for date in DATES]
    assert [r["m"] for r in records] == [{d: t} for d, t in zip(DATES, TIMES, strict=True)]


@pytest.mark.parametrize(
    ("metadata", "first"),
    [
        ({}, "1000-01-06"),
        ({"org.apache.spark.version": "4.2.0"}, "1000-01-06"),
        ({"org.apache.spark.version": "3.0.0", "org.apache.spark.legacyINT96": ""}, "1000-01-06"),
        ({"org.apache.spark.version": "2.4.8"}, "1000-01-01"),
    ],
    ids=["not of Spark", "no mode", "of INT96 only", "Spark 2.4"],
)
def test_only_a_file_that_says_so_is_of_the_old_calendar(
    lake: Command, metadata: dict[str, str], first: str
) -> None:
    lake.pool("p")
    table = pa.table({"k": [1], "d": pa.array(DAYS[:1], pa.int32()).cast(pa.date32())})
    lake.load_records("p", parquet(table.replace_schema_metadata(metadata)), "a.parquet")
    assert lake.scan("p") == [{"k": 1, "d": first}]


def test_int96_of_the_legacy_mode_is_the_time_that_spark_reads(lake: Command) -> None:
    def table(times: list[pa.Scalar]) -> pa.Table:
        made = pa.table({"k": range(len(times)), "t": pa.array(times, pa.timestamp("ns"))})
        return made.replace_schema_metadata(LEGACY)

    texts = [str(time) for time in pa.array(MICROS).cast(pa.timestamp("us")).cast(pa.string()).to_pylist()]
    texts[5] = "0000-12-30T08:00:00"  # the Julian first day, which Arrow has no text for
    lake.pool("p")
    lake.load_records("p", int96([text.replace(" ", "T") for text in texts], table), "a.parquet")
    assert [f"{r['t']}Z" for r in lake.scan("p")] == TIMES


def test_an_offset_is_a_zone_and_an_unknown_zone_is_refused(lake: Command) -> None:
    lake.pool("p")
    table = pa.table({"k": [1], "t": pa.array([-30609763200000000 + 8 * 3600 * 10**6]).cast(US)})
    for number, zone in enumerate(("+01:00", "GMT-08:00", "UTC")):
        metadata = LEGACY | {"org.apache.spark.timeZone": zone}
        lake.load_records("p", parquet(table.replace_schema_metadata(metadata)), f"{number}.parquet")
    assert {r["t"] for r in lake.scan("p")} == {"1000-01-01T16:00:00Z"}
    metadata = LEGACY | {"org.apache.spark.timeZone": "Mars/Olympus"}
    path = lake.file("mars.parquet", parquet(table.replace_schema_metadata(metadata)))
    assert "in the time zone 'Mars/Olympus', which is unknown" in lake.fails(INVALID_INPUT, "load", "p", path)


def test_avro_of_the_legacy_mode_has_the_dates_that_spark_reads(lake: Command) -> None:
    date = {"type": "int", "logicalType": "date"}
    time = {"type": "long", "logicalType": "timestamp-micros"}
    schema = fastavro.parse_schema(
        {
            "type": "record",
            "name": "r",
            "fields": [
                {"name": "k", "type": "long"},
                {"name": "d", "type": date},
                {"name": "t", "type": time},
                {"name": "either", "type": ["string", date]},
                {"name": "each", "type": {"type": "map", "values": ["string", time]}},
            ],
        }
    )
    records = [
        {"k": k, "d": DAYS[k], "t": MICROS[k], "either": DAYS[k], "each": {"a": MICROS[k]}} for k in range(5)
    ]
    sink = io.BytesIO()
    fastavro.writer(sink, schema, records, metadata=LEGACY)
    lake.pool("p")
    lake.load_records("p", sink.getvalue(), "a.avro")
    shown = [(r["d"], r["t"], r["either"], r["each"]["a"]) for r in lake.scan("p")]
    assert shown == list(zip(DATES[:5], TIMES[:5], DATES[:5], TIMES[:5], strict=True))
