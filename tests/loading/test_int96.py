"""INT96 is the exact time that its writer meant, wherever it is; what no type holds is a bad record."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from log_lake.lake import Lake
from tests.support.command import INVALID_INPUT, Command
from tests.support.files import parquet
from tests.support.int96 import int96

NS = pa.timestamp("ns")
END, FIRST, NOW = "9999-12-31T23:59:59.999999", "0001-01-01T00:00:00", "2020-01-01T00:00:00.5"
TIMES = [END, FIRST, NOW]


def flat(times: list[Any]) -> pa.Table:
    return pa.table({"k": list(range(len(times))), "t": pa.array(times, NS)})


def nested(times: list[Any]) -> pa.Table:
    """Each time in a record, in lists, as values of maps, in all of these at once; with nulls at each level."""
    deep = pa.list_(pa.struct([("m", pa.map_(pa.string(), NS))]))
    return pa.table(
        {
            "k": list(range(len(times) + 1)),
            "r": pa.array([*({"t": t, "n": None} for t in times), None], pa.struct([("t", NS), ("n", NS)])),
            "l": pa.array([*([t, None, t] for t in times), None], pa.list_(NS)),
            "m": pa.array([*([("a", t), ("b", None)] for t in times), []], pa.map_(pa.string(), NS)),
            "d": pa.array([*([{"m": [("x", t)]}, None] for t in times), []], deep),
        }
    )


@pytest.mark.parametrize("dictionary", [True, False])
def test_times_of_all_years_are_exact_on_every_path(lake: Command, dictionary: bool) -> None:
    lake.pool("p")
    lake.load_records("p", int96(TIMES, flat, use_dictionary=dictionary), "a.parquet")
    records = [{"k": k, "t": t} for k, t in enumerate(TIMES)]
    assert lake.scan("p") == records
    assert lake("get", "p", "0").records == records[:1]
    assert lake.query("select k from p where t = timestamp '9999-12-31 23:59:59.999999'") == [{"k": 0}]
    assert lake.scan("p", "--where", "t < '1600-01-01'") == records[1:2]
    lake("compact", "p", "--strategy", "full")
    assert lake.scan("p") == records
    lake("delete", "p", "--where", f"t = '{FIRST}'")
    assert lake.scan("p") == [records[0], records[2]]
    assert Lake.open(lake.uri).pool("p").at().to_table()["t"].type == pa.timestamp("us")


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"data_page_version": "2.0"}])
def test_nanoseconds_before_1970_may_be_negative(lake: Command, options: dict[str, Any]) -> None:
    times = ["1969-12-31T23:59:59.999999", "1960-02-29T12:00:00", FIRST, "1500-07-01T00:00:01", NOW, END]
    lake.pool("p")
    lake.load_records("p", int96(times, flat, from_1970=True, **options), "a.parquet")
    assert lake.scan("p") == [{"k": k, "t": t} for k, t in enumerate(times)]
    lake.pool("deep")
    lake.load_records("deep", int96(times, nested, from_1970=True, **options), "a.parquet")
    lake.pool("same")
    lake.load_records("same", int96(times, nested, **options), "a.parquet")
    assert lake.scan("deep") == lake.scan("same")


def test_a_column_of_twelve_bytes_beside_times_stays_bytes(lake: Command) -> None:
    def table(times: list[Any]) -> pa.Table:
        both = pa.array(
            [{"t": t, "b": b"x" * 12} for t in times], pa.struct([("t", NS), ("b", pa.binary(12))])
        )
        return pa.table(
            {"k": list(range(len(times))), "r": both, "b": pa.array([b"y" * 12] * len(times), pa.binary(12))}
        )

    lake.pool("p")
    lake.load_records("p", int96(TIMES, table), "a.parquet")
    records = Lake.open(lake.uri).pool("p").at().to_table().to_pylist()
    assert [r["b"] for r in records] == [b"y" * 12] * 3
    assert [r["r"]["b"] for r in records] == [b"x" * 12] * 3
    assert [str(r["r"]["t"])[:10] for r in records] == ["9999-12-31", "0001-01-01", "2020-01-01"]


def test_times_are_exact_at_every_depth(lake: Command) -> None:
    lake.pool("p")
    lake.load_records("p", int96(TIMES, nested), "a.parquet")
    assert lake.scan("p") == [
        *(
            {"k": k, "r": {"t": t}, "l": [t, None, t], "m": {"a": t, "b": None}, "d": [{"m": {"x": t}}, None]}
            for k, t in enumerate(TIMES)
        ),
        {"k": 3, "m": {}, "d": []},
    ]


def test_times_sort_as_a_key_over_several_loads_and_are_replaced_by_range(lake: Command) -> None:
    lake.pool("p", key="t")
    lake.load_records("p", int96([NOW, END], flat), "a.parquet")
    lake.load_records("p", int96([FIRST], flat), "b.parquet")
    lake.load_records("p", int96(["2020-01-02T00:00:00"], flat), "c.parquet")
    assert [r["t"] for r in lake.scan("p")] == [FIRST, NOW, "2020-01-02T00:00:00", END]
    path = lake.file("d.parquet", int96(["9999-01-01T00:00:00"], flat))
    lake("replace", "p", path, "--from", "2020-01-02", "--to", "9999-12-31T23:59:59.9999999")
    assert [r["t"] for r in lake.scan("p")] == [FIRST, NOW, "9999-01-01T00:00:00"]


def test_many_records_and_row_groups_keep_their_times(lake: Command) -> None:
    count = 300_000
    times = pa.array([None if k % 7 == 0 else 1_577_836_800_000_000_000 + k * 1000 for k in range(count)], NS)
    table = pa.table({"k": range(count), "s": ["x" * (k % 50) for k in range(count)], "t": times})
    lake.pool("p")
    content = parquet(table, use_deprecated_int96_timestamps=True, row_group_size=70_000)
    lake.load_records("p", content, "a.parquet")
    read = Lake.open(lake.uri).pool("p").at().to_table()
    assert read["t"].type == pa.timestamp("us")
    assert read["t"].cast(NS).equals(pa.chunked_array([times]))


def test_nanoseconds_stay_exact_also_beside_years_that_they_do_not_reach(lake: Command) -> None:
    fine = "2020-01-01T00:00:00.123456789"
    lake.pool("near")
    lake.load_records("near", int96([fine], flat), "a.parquet")
    assert Lake.open(lake.uri).pool("near").at().to_table()["t"].type == NS
    lake.load_records("near", int96([END, FIRST], flat), "b.parquet")
    assert {r["t"] for r in lake.scan("near")} == {fine, END, FIRST}
    lake.pool("both")
    far = "3020-01-01T00:00:00.000000001"
    lake.load_records("both", int96([fine, END, FIRST, far], flat), "c.parquet")
    lake("compact", "both", "--strategy", "full")
    assert {r["t"] for r in lake.scan("both")} == {fine, END, FIRST, far}
    assert [r["t"] for r in lake.scan("both", "--where", "t > '2500-01-01'")] == [END, far]


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_a_key_of_nanoseconds_and_years_beyond_them_says_what_to_do(lake: Command, zone: str | None) -> None:
    """A key has one type, in which its values are compared; nanoseconds of 64 bits end in 2262."""
    fine = parquet(pa.table({"t": pa.array([1], pa.timestamp("ns", zone))}))
    far = parquet(pa.table({"t": pa.array([253_402_214_400_000_000], pa.timestamp("us", zone))}))
    files = [lake.file("fine.parquet", fine), lake.file("far.parquet", far)]
    remedy = "write them in microseconds, or load years before 1678 and after 2261 into a pool of their own"
    lake.pool("p", key="t")
    said = lake.fails(INVALID_INPUT, "load", "p", *files)
    assert "key field 't': some values have nanoseconds, some are too far for them; " + remedy in said
    both = int96(["2020-01-01T00:00:00.123456789", END], flat)
    assert remedy in lake.fails(INVALID_INPUT, "load", "p", lake.file("both.parquet", both))
    lake("load", "p", files[0])
    said = lake.fails(INVALID_INPUT, "load", "p", files[1])
    assert "in the pool's other records, and no type holds both exactly; " + remedy in said
    lake.pool("far", key="t")
    lake("load", "far", files[1])
    assert len(lake.scan("far")) == 1


def test_a_key_of_several_kinds_is_not_called_one_of_times(lake: Command) -> None:
    lake.pool("p", key="t")
    times = lake.file("a.parquet", parquet(pa.table({"t": pa.array([1], pa.timestamp("ns"))})))
    said = lake.fails(
        INVALID_INPUT, "load", "p", times, lake.file("b.parquet", parquet(pa.table({"t": [1]})))
    )
    assert "key field 't': its values are of several classes" in said


def test_a_year_that_no_type_holds_is_a_bad_record_with_its_field(lake: Command) -> None:
    lake.pool("p")
    content = int96([NOW, "290000-06-01T12:00:00", "0000-12-31T23:59:59.999999999", END], flat)
    message = lake.refuses_records("p", content, "a.parquet")
    assert "line 2: field 't': a timestamp outside of the years 1 to 9999 (290000-06-01T12:00:00)" in message
    lake("load", "p", lake.file("a.parquet", content), "--bad-records", "quarantine")
    assert lake.scan("p") == [{"k": 0, "t": NOW}, {"k": 3, "t": END}]
    rejected = lake.scan("p.$rejected")
    assert [(r["line"], r["raw"]) for r in rejected] == [(2, '{"k":1}'), (3, '{"k":2}')]
    lake.pool("deep")
    table = lake.file("b.parquet", int96(["580000-01-01T00:00:00", NOW], nested))
    lake("load", "deep", table, "--bad-records", "quarantine")
    assert [r["k"] for r in lake.scan("deep")] == [1, 2]
    lake.pool("key", key="t")
    only = lake.file("c.parquet", int96(["11000-01-01T00:00:00"], flat))
    assert "(11000-01-01T00:00:00)" in lake.fails(INVALID_INPUT, "load", "key", only)
    lake("load", "key", only, "--bad-records", "quarantine")
    assert lake.scan("key") == []


def test_a_declared_type_takes_times_of_all_years(lake: Command) -> None:
    lake.pool("p", types={"t": "timestamp"})
    lake.load_records("p", int96(TIMES, flat), "a.parquet")
    assert [r["t"] for r in lake.scan("p")] == [f"{t}Z" for t in TIMES]
    lake.pool("d", types={"t": "date"})
    lake.load_records("d", int96(["9999-12-31T00:00:00"], flat), "b.parquet")
    assert [r["t"] for r in lake.scan("d")] == ["9999-12-31"]


def test_a_name_with_a_dot_is_no_path(lake: Command) -> None:
    def dotted(times: list[Any]) -> pa.Table:
        inner = pa.struct([("b", NS), ("c", pa.int64())])
        return pa.table(
            {"k": [1], "a.b": pa.array(times[:1], NS), "a": pa.array([{"b": times[1], "c": 3}], inner)}
        )

    lake.pool("p")
    lake.load_records("p", int96([END, FIRST], dotted), "a.parquet")
    assert lake.scan("p") == [{"k": 1, "a.b": END, "a": {"b": FIRST, "c": 3}}]


def test_other_timestamps_keep_their_units_and_zones(lake: Command) -> None:
    day = dt.datetime(9999, 12, 31)
    table = pa.table(
        {
            "k": [1],
            "ms": pa.array([day], pa.timestamp("ms")),
            "us": pa.array([day], pa.timestamp("us", "UTC")),
        }
    )
    lake.pool("p")
    lake.load_records("p", parquet(table), "a.parquet")
    assert lake.scan("p") == [{"k": 1, "ms": "9999-12-31T00:00:00", "us": "9999-12-31T00:00:00Z"}]


def test_a_key_of_nanoseconds_beside_distant_years_is_named(lake: Command) -> None:
    lake.pool("p", key="t")
    file = lake.file("a.parquet", int96([END, "2020-01-01T00:00:00.000000001"], flat))
    message = lake.fails(INVALID_INPUT, "load", "p", file)
    assert "some values have nanoseconds, some are too far for them; write them in microseconds" in message
