"""Loading one file of a format into a pool, against DuckDB's read, sort and write of the same, in processor time.

The files hold the same records: integers, a time, an amount, a few texts, a boolean.  `LAKE_BENCH_FILES` is the
size of the NDJSON file in MB (200).  Processor time is that of all threads; on a busy machine it says more than the
clock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import data
from benchmarks.measure import Measure, run

FORMATS = ("ndjson", "csv", "parquet")
RECORD_BYTES = 154
"""The bytes of a record as NDJSON, roughly."""

_RECORDS = """
    SELECT (hash(i) % 1000000000)::BIGINT AS k, i AS seq,
           TIMESTAMP '2026-01-01' + to_seconds((i * 7) % 8000000) AS ts,
           (hash(i * 3) % 100000) / 100.0 AS amount, 'user-' || (hash(i * 5) % 50000) AS name,
           ['GET', 'POST', 'PUT'][1 + (i % 3)::INT] AS method, '/path/' || (hash(i * 11) % 1000) || '/item' AS path,
           (hash(i * 13) % 600)::INT AS status, i % 2 = 0 AS ok
    FROM range({count}) r(i)
"""
_WRITTEN = {"ndjson": "FORMAT json", "csv": "HEADER", "parquet": "COMPRESSION zstd"}
_READ = {"ndjson": "read_json('{file}', format='newline_delimited')", "csv": "read_csv('{file}')",
         "parquet": "read_parquet('{file}')"}  # fmt: skip
_LOOKS_AT_ALL = "read_csv('{file}', sample_size=-1)"
"""A DuckDB option: DuckDB then chooses the types of a CSV from all records, as the lake does, and not from the
first ones."""


def files() -> dict[str, str]:
    """Makes the files anew, and returns them by format."""
    import duckdb

    folder = Path(data.fresh("files"))
    folder.mkdir(parents=True, exist_ok=True)
    count = int(os.environ.get("LAKE_BENCH_FILES", "200")) * 1_000_000 // RECORD_BYTES
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t AS {_RECORDS.format(count=count)}")
    made = {}
    for format, options in _WRITTEN.items():
        made[format] = str(folder / f"t.{format}")
        connection.execute(f"COPY t TO '{made[format]}' ({options})")
    connection.close()
    return made


def lake_load(file: str) -> dict[str, Any]:
    """Loads the file into a new pool."""
    from log_lake.lake import Lake

    lake = Lake.create(data.fresh("files-lake"))
    pool = lake.create_pool("t", key="k")
    begun = time.process_time()
    result = pool.branch().load([file])
    return {"seconds": time.process_time() - begun, "records": result.records, "note": f"{result.size:,} B"}


def duckdb_load(file: str, looks_at_all: str = "") -> dict[str, Any]:
    """Reads, sorts and writes the file by DuckDB."""
    import duckdb

    target = data.fresh("files-duckdb.parquet")
    connection = duckdb.connect(config={"threads": 2})
    source = (_LOOKS_AT_ALL if looks_at_all else _READ[file.rpartition(".")[2]]).format(file=file)
    begun = time.process_time()
    connection.execute(f"COPY (SELECT * FROM {source} ORDER BY k) TO '{target}' (COMPRESSION zstd)")
    seconds = time.process_time() - begun
    records = connection.read_parquet(target).count("*").fetchall()[0][0]
    connection.close()
    return {"seconds": seconds, "records": records, "note": f"{Path(target).stat().st_size:,} B"}


def measures() -> Iterator[Measure]:
    """Yields lines of DuckDB and of the lake by turns. Each ratio is to the line before, so read the two lines of
    a format together."""
    made = files()
    for format in FORMATS:
        yield run(f"duckdb, {format}", "benchmarks.files:duckdb_load", made[format], times=3)
        if format == "csv":
            yield run(
                "duckdb, csv, all looked at", "benchmarks.files:duckdb_load", made[format], "yes", times=3
            )
        yield run(f"lake, {format}", "benchmarks.files:lake_load", made[format], times=3)
