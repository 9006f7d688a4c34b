"""`lake load` of the Zeek logs, against DuckDB reading the same NDJSON and writing sorted Parquet.

Floor: unpacking the files and counting lines.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import Any

from benchmarks import data
from benchmarks.measure import Measure, run, timed


def lake_load(*files: str) -> dict[str, Any]:
    """Loads all logs into one pool."""
    from log_lake.lake import Lake

    pool = Lake.create(data.fresh("zeek")).create_pool("zeek", key="ts")
    with timed() as answer:
        result = pool.branch().load(list(files))
    return answer | {"records": result.records, "note": f"{result.objects} objects"}


def duckdb_sorted(*files: str) -> dict[str, Any]:
    """Unites the fields by name, sorts by ts, and writes one Parquet file, by DuckDB."""
    import duckdb

    target = data.fresh("zeek.parquet")
    connection = duckdb.connect(config={"threads": 2})
    with timed() as answer:
        connection.execute(
            "COPY (SELECT * FROM read_json(?, format='newline_delimited', records=true, union_by_name=true, "
            "sample_size=-1, map_inference_threshold=-1, field_appearance_threshold=0) "
            f"ORDER BY ts) TO '{target}' (FORMAT parquet, COMPRESSION zstd)",
            [list(files)],
        )
    records = connection.read_parquet(target).count("*").fetchall()[0][0]
    connection.close()
    return answer | {"records": records, "note": "1 file"}


def unpack(*files: str) -> dict[str, Any]:
    """Measures the floor: unpacks the files and counts their lines."""
    records = 0
    with timed() as answer:
        for file in files:
            with gzip.open(file, "rb") as lines:
                while block := lines.read(1 << 20):
                    records += block.count(b"\n")
    return answer | {"records": records}


def measures() -> Iterator[Measure]:
    """Yields the lines; none if the logs are not on this machine."""
    files = data.zeek()
    if not files:
        return
    yield run("lake load", "benchmarks.zeek:lake_load", *files, times=3)
    yield run("duckdb, read and sort", "benchmarks.zeek:duckdb_sorted", *files, times=3)
    yield run("floor: gunzip", "benchmarks.zeek:unpack", *files, times=3)
