"""Pools in engines of the caller's: Arrow's stream protocol, data sets with push-down, DuckDB views."""

from __future__ import annotations

import dataclasses
import gc
import logging
import weakref
from collections.abc import Iterator
from typing import Any

import datafusion
import duckdb
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lake_core import naming
from lake_core.errors import Corrupt, InvalidInput, NotFound, ObjectMissing
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.lake.view import View
from log_lake.reading.plan import ScanPlan
from log_lake.stores.memory import MemoryStore
from log_lake.system_tables import as_dataset, register

ROWS = [
    {"ts": 1, "level": "info", "user": {"id": 1}},
    {"ts": 2, "level": "warn", "user": None},
    {"ts": 11, "level": "info", "user": {"id": 3}},
    {"ts": 12, "level": None, "user": {"id": None}},
    {"ts": 21, "level": "warn", "user": None},
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Watched(View):
    """A view that knows which of its scans are alive."""

    scans: list[weakref.ref[Any]] = dataclasses.field(default_factory=list)

    def run(self, plan: ScanPlan, *, limit: int | None = None) -> Iterator[pa.Table]:
        scan = super().run(plan, limit=limit)
        self.scans.append(weakref.ref(scan))
        return scan


@pytest.fixture
def lake() -> Lake:
    return Lake.create_on(MemoryStore())


@pytest.fixture
def pool(lake: Lake) -> Pool:
    """Three objects whose keys do not overlap."""
    pool = lake.create_pool("logs", key="ts")
    for tens in range(3):
        rows = [row for row in ROWS if row["ts"] // 10 == tens]  # type: ignore[operator]
        schema = pa.schema(
            [("ts", pa.int64()), ("level", pa.string()), ("user", pa.struct([("id", pa.int64())]))]
        )
        pool.branch().append(pa.Table.from_pylist(rows, schema))
    return pool


def reads(caplog: pytest.LogCaptureFixture) -> str:
    """The last scan in the log, without the version."""
    return caplog.records[-1].getMessage().partition(": ")[2].partition(",")[0]


def test_a_view_is_a_table_of_pyarrow_polars_duckdb_and_datafusion(pool: Pool) -> None:
    view = pool.at()
    assert pa.table(view).to_pylist() == ROWS
    assert polars.DataFrame(view).to_dicts() == ROWS
    assert duckdb.sql('select ts, level, "user" from view order by ts').fetchall() == [
        (row["ts"], row["level"], row["user"]) for row in ROWS
    ]
    assert datafusion.SessionContext().from_arrow(view).count() == len(ROWS)
    before = pool.at("1")
    assert pa.table(before).to_pylist() == ROWS[:2]  # and a view is one version, not the newest


def test_the_stream_of_an_empty_pool_has_no_rows(lake: Lake) -> None:
    assert pa.table(lake.create_pool("empty", key="ts").at()).num_rows == 0


def test_a_reader_has_the_records_of_a_scan(pool: Pool) -> None:
    view = pool.at()
    chosen = view.to_reader(key_range=view.key_range(low=2), columns=["ts"], where="level = 'warn'", limit=1)
    assert chosen.schema.names == ["ts"]
    assert chosen.read_all().to_pylist() == [{"ts": 2}]


def test_a_stream_that_is_dropped_early_ends_its_scan(pool: Pool) -> None:
    view = pool.at()
    watched = Watched(**{field.name: getattr(view, field.name) for field in dataclasses.fields(view)})
    stream = pa.RecordBatchReader.from_stream(watched)
    assert stream.read_next_batch().num_rows == 2
    (scan,) = watched.scans
    assert scan() is not None
    del stream
    gc.collect()
    assert scan() is None


def test_the_limit_of_a_reader_is_a_number_from_0_on(pool: Pool) -> None:
    assert pool.at().to_reader(limit=0).read_all().num_rows == 0
    with pytest.raises(InvalidInput, match="limit=-1"):
        pool.at().to_reader(limit=-1).read_all()


def test_an_engine_that_scans_a_data_set_reads_the_columns_and_objects_that_it_needs(
    pool: Pool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "log_lake.lake.view")
    logs = as_dataset(pool.at())
    assert logs.to_table(columns=["ts"], filter=pc.field("ts") > 20).to_pylist() == [{"ts": 21}]
    assert reads(caplog) == "reads 1 of 3 objects"
    lazy = polars.scan_pyarrow_dataset(logs).filter(polars.col("ts") < 10).select("level")
    assert lazy.collect().to_dicts() == [{"level": "info"}, {"level": "warn"}]
    assert reads(caplog) == "reads 1 of 3 objects"
    assert duckdb.sql("select sum(ts) from logs where ts between 10 and 19").fetchall() == [(23,)]
    assert reads(caplog) == "reads 1 of 3 objects"
    assert logs.head(3).to_pylist() == ROWS[:3]
    assert logs.head(0).num_rows == 0
    assert logs.count_rows() == 5
    assert logs.count_rows(filter=pc.field("ts") > 2) == 3
    assert polars.scan_pyarrow_dataset(logs).head(2).collect().height == 2


def test_all_pools_are_views_of_a_connection_of_the_callers(
    lake: Lake, pool: Pool, caplog: pytest.LogCaptureFixture
) -> None:
    lake.create_pool("names", key="level").branch().append(pa.table({"level": ["info"], "says": ["fine"]}))
    connection = duckdb.connect()
    assert register(lake, connection) == ["logs", "names"]
    joined = "select says, count(*) from logs join names using (level) group by all"
    assert connection.sql(joined).fetchall() == [("fine", 2)]
    pool.branch().append(pa.table({"ts": [100]}))
    assert connection.sql("select count(*) from logs").fetchall() == [(5,)]  # frozen, until it is made again
    register(lake, connection, ["logs", "logs@1", "logs:log"])
    counted = 'select (select count(*) from logs), (select count(*) from "logs@1"), count(*) from "logs:log"'
    assert connection.sql(counted).fetchall() == [(6, 2, 4)]


def test_names_that_sql_takes_for_one_are_refused(lake: Lake) -> None:
    for name in ("Logs", "logs"):
        lake.create_pool(name, key="ts")
    with pytest.raises(InvalidInput, match="'Logs' and 'logs': SQL takes these names for one"):
        register(lake, duckdb.connect())
    assert register(lake, duckdb.connect(), ["logs"]) == ["logs"]
    with pytest.raises(NotFound, match="did you mean 'logs'"):
        register(lake, duckdb.connect(), ["lgos"])


def test_a_missing_object_is_an_error_with_its_name_and_never_a_shorter_answer(
    lake: Lake, pool: Pool
) -> None:
    view = pool.at()
    logs, connection = as_dataset(view), duckdb.connect()
    register(lake, connection)
    name = view.object_name(view.references[1])
    lake.store.delete(name)
    with pytest.raises(ObjectMissing, match=name):
        logs.to_table()
    with pytest.raises(duckdb.Error, match=name):
        connection.sql("select sum(ts) from logs").fetchall()
    with pytest.raises(polars.exceptions.ComputeError, match=name):
        polars.DataFrame(view)


def test_of_all_pools_one_that_cannot_be_read_is_left_out_with_a_warning(
    lake: Lake, pool: Pool, caplog: pytest.LogCaptureFixture
) -> None:
    broken = lake.create_pool("broken", key="ts")
    broken.branch().append(pa.table({"ts": [1]}))
    lake.store.put(naming.entry(naming.pool_journal(broken.config.id), 1), b"garbage")
    again = Lake.open_on(lake.store)
    assert register(again, duckdb.connect()) == ["logs"]
    assert "pool broken is left out: " in caplog.text
    with pytest.raises(Corrupt):
        register(again, duckdb.connect(), ["broken"])


def test_what_arrow_would_do_without_the_records_is_refused(lake: Lake, pool: Pool) -> None:
    logs = as_dataset(pool.at())
    with pytest.raises(NotImplementedError):
        logs.sort_by("ts")
    with pytest.raises(NotImplementedError):
        logs.join(logs, "ts")
    with pytest.raises(NotImplementedError):
        list(logs.get_fragments())
    with pytest.raises(NotImplementedError):
        logs.to_table(columns={"ts": pc.field("ts") * 10})
    with pytest.raises(InvalidInput, match=r"pools=\['logs'\]"):
        register(lake, duckdb.connect(), "logs")
