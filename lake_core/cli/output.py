"""Printing results: JSON, aligned tables, and records in the formats of `lake scan`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from lake_core.errors import InvalidInput
from lake_core.objects.jsontext import json_lines, json_text
from lake_core.objects.types import is_json

RECORD_FORMATS = ("json", "csv", "parquet", "arrow", "table")
_WIDEST = 40
_TABLE_ROWS = 1000


def print_json(value: Any) -> None:
    """One JSON value on one line."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")


def print_table(rows: list[dict[str, Any]], *, empty: str) -> None:
    """Rows aligned under their names, numbers to the right; `empty` goes to standard error for none."""
    if not rows:
        say(empty)
        return
    names = list(rows[0])
    cells = [[_cell(row[name]) for name in names] for row in rows]
    widths = [max(len(name), *(len(line[i]) for line in cells)) for i, name in enumerate(names)]
    right = [all(isinstance(row[name], int | float) for row in rows) for name in names]
    for line in [names, *cells]:
        padded = [t.rjust(w) if r else t.ljust(w) for t, w, r in zip(line, widths, right, strict=True)]
        sys.stdout.write("  ".join(padded).rstrip() + "\n")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    text = str(value)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def say(message: str) -> None:
    """A message to whoever watches, not a result."""
    sys.stderr.write(message + "\n")


def human_size(size: int) -> str:
    """Bytes with a decimal unit: `4.7 MB`."""
    amount = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


@contextmanager
def _sink(path: str | None) -> Iterator[BinaryIO]:
    if path is None:
        yield sys.stdout.buffer
        return
    try:
        file = open(path, "wb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise InvalidInput(f"-o {path}: {error.strerror}") from error
    with file:
        yield file


def write_records(tables: Iterable[pa.Table], schema: pa.Schema, *, format: str, path: str | None) -> int:
    """Write the records; returns how many.  `schema` is that of the tables."""
    with _sink(path) as sink:
        if format == "json":
            return _write_json(tables, sink)
        if format == "csv":
            return _write_csv(tables, schema, sink)
        if format == "table":
            return _write_text(tables, schema, sink)
        return _write_arrow(tables, schema, sink, format)


def _write_json(tables: Iterable[pa.Table], sink: BinaryIO) -> int:
    count = 0
    for table in tables:
        for chunk in json_lines(table).chunks:
            if len(chunk):
                sink.write("\n".join(chunk.to_pylist()).encode() + b"\n")
        count += table.num_rows
    sink.flush()
    return count


def _write_csv(tables: Iterable[pa.Table], schema: pa.Schema, sink: BinaryIO) -> int:
    nested = [f.name for f in schema if is_json(f) or pa.types.is_nested(f.type)]
    flat = pa.schema([pa.field(f.name, pa.string() if f.name in nested else f.type) for f in schema])
    count = 0
    with pcsv.CSVWriter(sink, flat) as writer:
        for table in tables:
            columns = [
                json_text(c, f) if f.name in nested else c for f, c in zip(schema, table.columns, strict=True)
            ]
            writer.write_table(pa.table(columns, schema=flat))
            count += table.num_rows
    return count


def _write_arrow(tables: Iterable[pa.Table], schema: pa.Schema, sink: BinaryIO, format: str) -> int:
    count = 0
    writer = (
        pa.ipc.new_stream(sink, schema)
        if format == "arrow"
        else pq.ParquetWriter(sink, schema, compression="zstd")
    )
    with writer:
        for table in tables:
            writer.write_table(table)
            count += table.num_rows
    return count


def _write_text(tables: Iterable[pa.Table], schema: pa.Schema, sink: BinaryIO) -> int:
    """Aligned text of the first records; more are only counted."""
    cells: list[list[str]] = []
    count = 0
    for table in tables:
        count += table.num_rows
        if len(cells) < _TABLE_ROWS:
            head = table.slice(0, _TABLE_ROWS - len(cells))
            texts = [json_text(c, f).to_pylist() for f, c in zip(schema, head.columns, strict=True)]
            cells += [[_cell((v or "").strip('"')) for v in row] for row in zip(*texts, strict=True)]
    widths = [max([len(name), *(len(row[i]) for row in cells)]) for i, name in enumerate(schema.names)]
    numeric = [pa.types.is_integer(f.type) or pa.types.is_floating(f.type) for f in schema]
    for row in [schema.names, *cells]:
        line = [t.rjust(w) if n else t.ljust(w) for t, w, n in zip(row, widths, numeric, strict=True)]
        sink.write(("  ".join(line).rstrip() + "\n").encode())
    sink.flush()
    if count > len(cells):
        say(f"... and {count - len(cells):,} records more")
    return count
