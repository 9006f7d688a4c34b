"""A query that is ended from another thread, wherever it was."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from lake_core.errors import InvalidInput
from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore
from log_lake.system_tables import query
from log_lake.system_tables.engine import SqlLimits
from log_lake.system_tables.stopping import QueryStop


@pytest.fixture
def there() -> Lake:
    lake = Lake.create_on(MemoryStore("memory://stopping"))
    lake.create_pool("logs", key="k").branch().append(pa.table({"k": range(10_000)}))
    return lake


@pytest.mark.parametrize("sql", ["SELECT * FROM logs", "SELECT 1"])
def test_before_it_begins(there: Lake, sql: str) -> None:
    stop = QueryStop()
    stop.stop("enough")
    stop.stop("too late")
    with pytest.raises(InvalidInput, match="query: enough"):
        query(there, sql, stop=stop).read_all()


def test_between_two_parts_of_its_answer(there: Lake) -> None:
    stop = QueryStop()
    reader = query(there, "SELECT * FROM logs", stop=stop, limits=SqlLimits(batch_rows=2_048))
    assert next(reader).num_rows == 2_048
    stop.stop("enough")
    with pytest.raises(InvalidInput, match="query: enough"):
        reader.read_all()


def test_while_the_engine_works(there: Lake) -> None:
    stop, ended = QueryStop(), threading.Event()

    def interrupt() -> None:
        while not ended.wait(0.02):  # an interrupt between two statements is lost
            stop.stop("enough")

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(InvalidInput, match="query: enough"):
            query(there, "SELECT sum(a.k * b.k) FROM logs a, logs b, logs c", stop=stop).read_all()
    finally:
        ended.set()
        thread.join()
