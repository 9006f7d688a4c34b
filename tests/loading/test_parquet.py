"""Parquet: typed already; every type comes back as its JSON says, or in its own type as Parquet."""

from __future__ import annotations

import datetime as dt
import decimal
import tracemalloc
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from log_lake.loading.block import Reading
from log_lake.loading.formats.parquet import read_parquet, row_group_sizes
from tests.support.arrow_memory import measured_memory
from tests.support.command import Command
from tests.support.files import parquet

TABLE = pa.table(
    {
        "k": pa.array([2, 1, 3], pa.int32()),
        "f": pa.array([0.5, None, -0.25], pa.float32()),
        "d": [dt.date(2020, 2, 29), None, dt.date(1969, 12, 31)],
        "t": pa.array([dt.datetime(2020, 1, 1, 10), None, None], pa.timestamp("ms", "Europe/Berlin")),
        "n": [decimal.Decimal("1.25"), decimal.Decimal("-3.50"), None],
        "b": [b"\x00\xff", b"", None],
        "s": pa.array(["x", "y", "x"]).dictionary_encode(),
        "a.b": pa.array(["dotted", None, ""], pa.large_string()),
        "r": [{"x": 1, "y": [1, 2]}, None, {"x": None, "y": []}],
        "u": pa.array([2**64 - 1, 0, 1], pa.uint64()),
        "m": pa.array([[("p", 1)], None, []], pa.map_(pa.string(), pa.int64())),
    }
)
RECORDS = [
    {"k": 1, "n": -3.5, "b": "", "s": "y", "u": 0},
    {
        "k": 2,
        "f": 0.5,
        "d": "2020-02-29",
        "t": "2020-01-01T10:00:00Z",
        "n": 1.25,
        "b": "AP8=",
        "s": "x",
        "a.b": "dotted",
        "r": {"x": 1, "y": [1, 2]},
        "u": 2**64 - 1,
        "m": {"p": 1},
    },
    {"k": 3, "f": -0.25, "d": "1969-12-31", "s": "x", "a.b": "", "r": {"y": []}, "u": 1, "m": {}},
]


@pytest.fixture
def pool(lake: Command) -> str:
    lake.pool("p")
    lake.load_records("p", parquet(TABLE), "a.parquet")
    return "p"


def test_every_type_comes_back_in_key_order(lake: Command, pool: str) -> None:
    assert lake.scan(pool) == RECORDS


def test_what_is_written_as_parquet_has_the_types_that_came_in(lake: Command, pool: str) -> None:
    path = lake.folder / "out.parquet"
    lake("scan", pool, "-o", str(path))
    found = pq.read_table(path)
    plain = TABLE.set_column(6, "s", TABLE["s"].cast(pa.string())).set_column(
        7, "a.b", TABLE["a.b"].cast(pa.string())
    )
    plain = plain.set_column(3, "t", TABLE["t"].cast(pa.timestamp("ms", "UTC")))
    assert found.to_pylist() == plain.sort_by("k").to_pylist()
    assert found.schema.remove_metadata().equals(plain.schema)


def test_columns_of_parquet_take_the_types_that_the_pool_declares(lake: Command) -> None:
    lake.pool("p", types={"k": "bigint", "r": "json", "s": "string"})
    lake.load_records("p", parquet(TABLE.select(["k", "r", "s"])), "a.parquet")
    fields = lake("show", "p", "--json").records[0]["fields"]
    assert fields == {"k": "bigint", "r": "json", "s": "string"}
    assert lake.scan("p", "--columns", "r")[1] == {"r": {"x": 1, "y": [1, 2]}}


def test_records_without_the_key_go_to_nokey(lake: Command) -> None:
    lake.pool("p")
    done = lake.load_records("p", parquet(pa.table({"k": [None, 1], "a": [1, 2]})), "a.parquet")
    assert (done["records"], done["nokey"]) == (1, 1)
    lake("load", "p", lake.file("b.parquet", parquet(pa.table({"a": [3]}))), "--nokey", "accept")
    assert [r["a"] for r in lake.scan("p.$nokey")] == [1, 3]


def test_a_file_without_records_commits_nothing(lake: Command) -> None:
    lake.pool("p")
    assert lake.load_records("p", parquet(TABLE.slice(0, 0)), "a.parquet")["version"] is None


def test_a_gzipped_parquet_file_is_unpacked(lake: Command) -> None:
    lake.pool("p")
    lake.load_records("p", parquet(TABLE), "a.parquet.gz")
    assert lake.scan("p") == RECORDS


def test_some_row_groups_of_a_file_are_read_alone(lake: Command) -> None:
    path = lake.file("a.parquet", parquet(pa.table({"k": list(range(10))}), row_group_size=4))
    assert len(row_group_sizes(Reading(path))) == 3
    read = [r for b in read_parquet(Reading(path), [1, 2]) for r in b.table.to_pylist()]
    assert read == [{"k": k} for k in range(4, 10)]


def test_a_declared_decimal_takes_the_integers_that_it_holds_and_names_one_that_it_does_not(
    lake: Command,
) -> None:
    lake.pool("p", **{"type.x": "decimal(10,2)"})
    for kind in (pa.int8(), pa.int64(), pa.uint64()):
        lake.load_records("p", parquet(pa.table({"k": [1], "x": pa.array([7], kind)})), f"{kind}.parquet")
    assert lake.scan("p") == [{"k": 1, "x": 7}] * 3
    wrong = parquet(pa.table({"k": [1, 2], "x": [1, 123456789]}))
    assert "'123456789' is not a decimal(10,2)" in lake.refuses_records("p", wrong, "wrong.parquet")


@pytest.mark.parametrize(("place", "most"), [("local", 24 << 20), ("server", 64 << 20)])
def test_long_values_are_read_in_bounded_memory_however_long_the_file_is(
    tmp_path: Path, place: str, most: int
) -> None:
    path = f"{tmp_path}/long.parquet" if place == "local" else "memory://long/long.parquet"
    table = pa.table({"s": [b"%d" % number * 50_000 for number in range(100)]})  # 10 MB
    with (
        fsspec.open(path, "wb") as file,
        pq.ParquetWriter(file, table.schema, use_dictionary=False, compression="none") as writer,
    ):
        for _ in range(12):
            writer.write_table(table)
    tracemalloc.start()
    try:
        with measured_memory() as pool:
            rows = sum(block.table.num_rows for block in read_parquet(Reading(path, path=path)))
            arrow = pool.max_memory()
        _, fetched = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert rows == 1_200
    assert arrow < 40 << 20, arrow
    assert fetched < most, fetched
