"""ZNG and ZST of the Zeek logs, all 23 types in one file, to and from Arrow; beside Parquet and NDJSON.

Records are held as Arrow, in batches as they were read.  Each measure reads or writes all of them, in memory.

The same logs in pools that keep types (one ZST object), beside a pool of Parquet, and a count over all types beside
DuckDB on the 23 NDJSON files.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import data
from benchmarks.measure import Measure, run, timed
from lake_core.schemas.hidden import ROW
from log_lake.lake import Lake
from log_lake.rewriting.compaction import compact
from log_lake.system_tables import query
from log_lake.zng.from_arrow import batch_of_tables
from log_lake.zng.reader import read
from log_lake.zng.rows import batch_of
from log_lake.zng.to_arrow import record_batches
from log_lake.zng.writer import ZngWriter
from log_lake.zng.zst.reader import ZstFile
from log_lake.zng.zst.writer import ZstWriter

FIELDS = ("ts", "uid")
Held = list[tuple[list[pa.RecordBatch], Any]]


def _stream(*files: str) -> bytes:
    """Returns all logs as ZNG streams, one after another."""
    return b"".join(map(_unpacked, files))


def _unpacked(file: str) -> bytes:
    with gzip.open(file) as unpacked:
        return unpacked.read()


def _held(*files: str) -> Held:
    """Holds all records as Arrow: batches of each type, and the super column, which says which type each record
    has."""
    found = []
    for file in ZstFile.open(pa.BufferReader(_zst(*files)), name="bench").batches():
        found.append((record_batches(file), file.kinds))
    return found


def _zst(*files: str) -> bytes:
    output = io.BytesIO()
    writer = ZstWriter(output)
    for rows in read(io.BytesIO(_stream(*files)), name="bench"):
        writer.write(rows)
    writer.close()
    return output.getvalue()


def _count(held: Held) -> int:
    return sum(len(kinds) for _, kinds in held)


def _written(format: type[ZngWriter | ZstWriter], *files: str) -> dict[str, Any]:
    held, output = _held(*files), io.BytesIO()
    with timed() as answer:
        writer = format(output)
        for tables, kinds in held:
            writer.write(batch_of_tables(tables, kinds))
        writer.close()
    return answer | {"records": _count(held), "note": f"{len(output.getvalue()):,} bytes"}


def zst_from_arrow(*files: str) -> dict[str, Any]:
    """Converts Arrow to ZST."""
    return _written(ZstWriter, *files)


def zst_from_zng(*files: str) -> dict[str, Any]:
    """Converts ZNG to ZST, the work that was measured for the original program."""
    stream, output = _stream(*files), io.BytesIO()
    with timed() as answer:
        writer = ZstWriter(output)
        for rows in read(io.BytesIO(stream), name="bench"):
            writer.write(rows)
        writer.close()
    return answer | {"records": writer.records, "note": ""}


def _from_zst(fields: tuple[str, ...] | None, *files: str) -> dict[str, Any]:
    zst = _zst(*files)
    records = 0
    with timed() as answer:
        for batch in ZstFile.open(pa.BufferReader(zst), name="bench").batches(fields=fields):
            record_batches(batch)
            records += len(batch)
    return answer | {"records": records}


def zst_to_arrow(*files: str) -> dict[str, Any]:
    """Reads all columns of ZST to Arrow."""
    return _from_zst(None, *files)


def zst_to_arrow_of_two(*files: str) -> dict[str, Any]:
    """Reads two columns of ZST that most types have."""
    return _from_zst(FIELDS, *files)


def zng_to_arrow(*files: str) -> dict[str, Any]:
    """Converts ZNG to Arrow."""
    stream, records = _stream(*files), 0
    with timed() as answer:
        for rows in read(io.BytesIO(stream), name="bench"):
            record_batches(batch_of(rows))
            records += len(rows)
    return answer | {"records": records}


def zng_from_arrow(*files: str) -> dict[str, Any]:
    """Converts Arrow to compressed ZNG."""
    return _written(ZngWriter, *files)


def _tables(held: Held) -> dict[int, pa.Table]:
    """Returns one table for each type."""
    found: dict[int, list[pa.RecordBatch]] = {}
    keys: dict[bytes, int] = {}
    for tables, _ in held:
        for table in tables:
            key = keys.setdefault(table.schema.serialize().to_pybytes(), len(keys))
            found.setdefault(key, []).append(table)
    return {key: pa.Table.from_batches(parts) for key, parts in found.items()}


def parquet_write(*files: str) -> dict[str, Any]:
    """Writes one Parquet file for each type, with zstd."""
    held = _held(*files)
    tables, size = _tables(held), 0
    with timed() as answer:
        for table in tables.values():
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink, compression="zstd")
            size += len(sink.getvalue())
    return answer | {"records": _count(held), "note": f"{size:,} bytes"}


def parquet_read(*files: str) -> dict[str, Any]:
    """Reads all columns of the Parquet files, one for each type."""
    held = _held(*files)
    written = []
    for table in _tables(held).values():
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd")
        written.append(sink.getvalue())
    with timed() as answer:
        for buffer in written:
            pq.read_table(pa.BufferReader(buffer))
    return answer | {"records": _count(held)}


def ndjson_read(*files: str) -> dict[str, Any]:
    """Reads the same records as NDJSON by Arrow's reader, one file for each type."""
    import pyarrow.json

    texts = [_unpacked(file.replace("/zng/", "/ndjson/").replace(".zng.", ".ndjson.")) for file in files]
    records = 0
    with timed() as answer:
        for text in texts:
            records += pyarrow.json.read_json(io.BytesIO(text)).num_rows
    return answer | {"records": records, "note": f"{sum(map(len, texts)):,} bytes"}


COUNT = "SELECT proto, count(*) AS n FROM {} GROUP BY ALL ORDER BY ALL"
"""The statement that counts by `proto`, a field that five of the types have."""


def _pool(format: str, *files: str) -> Lake:
    """Makes a pool of the logs, compacted to one object, in a new lake."""
    lake = Lake.create(data.fresh(f"zng-{format}"))
    pool = lake.create_pool("logs", key="ts", settings={"format": format})
    pool.branch().load(list(files))
    compact(pool.branch(), pool.at().references)
    return lake


def _scanned(format: str, keep: tuple[str, ...], *files: str) -> dict[str, Any]:
    lake = _pool(format, *files)
    with timed() as answer:
        view = lake.pool("logs").at()
        records = sum(table.num_rows for table in view.run(view.plan(keep=keep)))
    return answer | {"records": records, "note": f"{sum(r.size for r in view.references):,} bytes"}


def scan_zst(*files: str) -> dict[str, Any]:
    """Scans the fields of all types, united, in a pool of ZST."""
    return _scanned("zst", (), *files)


def scan_zst_as_it_came(*files: str) -> dict[str, Any]:
    """Scans the same fields, and also each record's type and bytes."""
    return _scanned("zst", tuple(ROW.names), *files)


def scan_parquet(*files: str) -> dict[str, Any]:
    """Scans the same fields in a pool of Parquet."""
    return _scanned("parquet", (), *files)


def _counted(format: str, *files: str) -> dict[str, Any]:
    lake = _pool(format, *files)
    with timed() as answer:
        rows = query(lake, COUNT.format('"logs"')).read_all().to_pylist()
    return answer | {"records": sum(row["n"] for row in rows), "note": _digest(rows)}


def count_zst(*files: str) -> dict[str, Any]:
    """Runs the count in a pool of ZST."""
    return _counted("zst", *files)


def count_parquet(*files: str) -> dict[str, Any]:
    """Runs the count in a pool of Parquet."""
    return _counted("parquet", *files)


def count_duckdb(*files: str) -> dict[str, Any]:
    """Runs the count by DuckDB, over the NDJSON files of all types, united by name."""
    folder = Path(data.fresh("zng-ndjson"))
    folder.mkdir()
    for file in files:
        name = Path(file).name.replace(".zng.gz", ".ndjson")
        text = _unpacked(file.replace("/zng/", "/ndjson/").replace(".zng.", ".ndjson."))
        (folder / name).write_bytes(text)
    # otherwise DuckDB takes records of so many fields for maps, and finds no field
    options = "format='newline_delimited', union_by_name=true, map_inference_threshold=-1"
    table = f"read_json('{folder}/*.ndjson', {options})"
    with duckdb.connect() as connection, timed() as answer:
        rows = connection.sql(COUNT.format(table)).to_arrow_table().to_pylist()
    return answer | {"records": sum(row["n"] for row in rows), "note": _digest(rows)}


def _digest(rows: list[dict[str, Any]]) -> str:
    return ", ".join(f"{row['proto'] or 'none'} {row['n']:,}" for row in rows)


def measures() -> Iterator[Measure]:
    """Yields the lines; none if the logs are not on this machine."""
    files = [file.replace("/ndjson/", "/zng/").replace(".ndjson.", ".zng.") for file in data.zeek()]
    if not files:
        return
    works: list[tuple[str, Callable[..., dict[str, Any]]]] = [
        ("Arrow to ZST", zst_from_arrow),
        ("ZNG to ZST", zst_from_zng),
        ("ZST to Arrow", zst_to_arrow),
        ("ZST to Arrow, 2 columns", zst_to_arrow_of_two),
        ("ZNG to Arrow", zng_to_arrow),
        ("Arrow to ZNG", zng_from_arrow),
        ("Arrow to Parquet, a file a type", parquet_write),
        ("Parquet to Arrow", parquet_read),
        ("NDJSON to Arrow", ndjson_read),
        ("scan of a ZST pool", scan_zst),
        ("scan of a ZST pool, with types and bytes", scan_zst_as_it_came),
        ("scan of a Parquet pool", scan_parquet),
        ("count by proto, ZST pool", count_zst),
        ("count by proto, Parquet pool", count_parquet),
        ("count by proto, DuckDB on NDJSON", count_duckdb),
    ]
    for name, work in works:
        yield run(name, f"benchmarks.zng:{work.__name__}", *files, times=3)
