"""Does the work that `spark` measures for pools, on the project's Spark: makes pools, reads, writes, appends to
them, and reads single records."""

from __future__ import annotations

import json
import time
from datetime import date
from typing import Any

from benchmarks import spark_work as work
from benchmarks.measure import timed

POOL = "lineitem"


def make(path: str, files: str) -> dict[str, Any]:
    """Makes a pool of lineitem in the state in which the loads and compactions of a day leave it."""
    from log_lake.agents.compact.run import compact_pool, plan_pool
    from log_lake.lake import Lake

    lake = Lake.create(path)
    branch = lake.create_pool(POOL, key=",".join(work.KEY)).branch()
    with timed() as answer:
        for file in json.loads(files):
            branch.load([file])
        compact_pool(lake, POOL, plan_pool(lake, POOL, now=time.time()))
    return answer | {"records": lake.pool(POOL).at().records, "note": _shape(path)}


def newer(files: str, folder: str, loads: str) -> dict[str, Any]:
    """Writes a hundredth of the records once more, as this many files that cover about the same keys."""
    from pathlib import Path

    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = [pq.read_table(file) for file in json.loads(files)]
    plain = [f.with_type(pa.string()) if f.type == pa.string_view() else f for f in tables[0].schema]
    tables = [table.cast(pa.schema(plain)) for table in tables]  # views cannot be taken from
    records = pa.concat_tables(t.take(pa.array(range(0, t.num_rows, 100))) for t in tables)
    Path(folder).mkdir(parents=True)
    for number in range(int(loads)):
        part = records.take(pa.array(range(number, records.num_rows, int(loads))))
        pq.write_table(part, f"{folder}/{number}.parquet")
    return {"seconds": 1.0, "records": records.num_rows}


def keys(files: str, count: str) -> dict[str, Any]:
    """Draws this many keys evenly; they are in the note, as JSON."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows: list[list[Any]] = []
    for file in json.loads(files):
        table = pq.read_table(file, columns=list(work.KEY))
        step = table.num_rows // (int(count) // len(json.loads(files)) + 1)
        taken = table.take(pa.array(range(step // 2, table.num_rows, step)))
        rows += [list(row.values()) for row in taken.to_pylist()]
    chosen = [[str(day), order, line] for day, order, line in rows[: int(count)]]
    return {"seconds": 1.0, "records": len(chosen), "note": json.dumps(chosen)}


def add_newer(path: str, files: str) -> dict[str, Any]:
    """Commits each file of newer records as a transaction, then a delete by range and one by condition."""
    from log_lake.lake import Lake

    pool = Lake.open(path).pool(POOL)
    with timed() as answer:
        for file in json.loads(files):
            pool.branch().load([file])
        pool.branch().delete(key_range=pool.at().key_range(low="1995-03-01", high="1995-03-05"))
        pool.branch().delete(where=work.DELETE_WHERE)
    return answer | {"records": len(json.loads(files)) + 2}


def plain(query: str, files: str) -> dict[str, Any]:
    """Runs one query over plain Parquet."""
    from spark_apps.session import spark_session

    with spark_session("benchmark") as spark:
        return work.measured(work.input_of(spark, files), query)


def read(way: str, query: str, path: str) -> dict[str, Any]:
    """Runs one query over the pool: by a `native` read or by the data source."""
    import pyspark_lake
    from spark_apps.session import spark_session

    with spark_session("benchmark") as spark:
        if way == "native":
            return work.measured(pyspark_lake.read(spark, POOL, lake=path), query)
        return work.measured(spark.read.format("lake").option("lake", path).load(POOL), query)


def write(way: str, path: str, files: str) -> dict[str, Any]:
    """Writes all records into a new pool, after a small write that warms up. With `by range`, they are partitioned
    by the key."""
    from spark_apps.session import spark_session

    with spark_session("benchmark") as spark:
        frame = work.input_of(spark, files)
        for name, records in (("warm", frame.limit(work.APPENDED)), (POOL, frame)):
            _create(path, name)
            with timed() as answer:
                if way == "by range":
                    records = records.repartitionByRange(*work.KEY)
                _write(records, path, name, by_source=way == "df.write")
    from log_lake.lake import Lake

    return answer | {"records": Lake.open(path).pool(POOL).at().records, "note": _shape(path)}


def append(way: str, path: str, files: str, appends: str) -> dict[str, Any]:
    """Makes small appends to a new pool."""
    from spark_apps.session import spark_session

    with spark_session("benchmark") as spark:
        _create(path, POOL)
        return work.appended(
            lambda frame: _write(frame, path, POOL, by_source=way == "df.write"), spark, files, appends
        )


def get(way: str, path: str, wanted: str) -> dict[str, Any]:
    """Reads single records by key: without a job (`get`), or by a native read with a filter."""
    import pyspark_lake
    from spark_apps.session import spark_session

    with spark_session("benchmark") as spark:

        def by_get(key: list[Any]) -> int:
            return len(pyspark_lake.get(spark, POOL, [date.fromisoformat(key[0]), *key[1:]], lake=path))

        frame = pyspark_lake.read(spark, POOL, lake=path)
        look = by_get if way == "get" else lambda key: len(frame.where(work.condition(key)).collect())
        return work.looked_up(look, wanted)


def _create(path: str, name: str) -> None:
    from pathlib import Path

    from log_lake.lake import Lake

    lake = Lake.open(path) if Path(path).exists() else Lake.create(path)
    lake.create_pool(name, key=",".join(work.KEY))


def _write(frame: Any, path: str, name: str, *, by_source: bool) -> None:
    if by_source:
        frame.write.format("lake").option("lake", path).mode("append").save(name)
    else:
        import pyspark_lake

        pyspark_lake.write(frame, name, lake=path)


def _shape(path: str) -> str:
    from log_lake.lake import Lake

    view = Lake.open(path).pool(POOL).at()
    return f"{len(view.references)} objects, depth {view.depth}"
