"""Printing results: JSON, aligned tables, and records in the formats of `lake scan`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from lake_core.cli.alignment import aligned
from lake_core.errors import InvalidInput
from lake_core.phrases import counted
from lake_core.values.typed_json import json_lines, shown
from lake_core.values.types import is_json

_BY_ENDING = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".arrows": "arrow"}
_WIDEST = 40
_TABLE_ROWS = 1000


def json_of(value: Any) -> str:
    """One JSON value on one line."""
    return msgspec.json.encode(value).decode()


def print_json(value: Any, *, indented: bool = False) -> None:
    """The same, printed; `indented` for people, a field a line."""
    text = json_of(value)
    sys.stdout.write((msgspec.json.format(text, indent=2) if indented else text) + "\n")


def print_table(rows: list[dict[str, Any]], *, empty: str, right: tuple[str, ...] = ()) -> None:
    """Rows aligned under their names, numbers and `right` to the right; `empty` is said for no rows."""
    if not rows:
        say(empty)
        return
    names = list(rows[0])
    cells = [[_cell(row[name]) for name in names] for row in rows]
    numeric = [name in right or all(isinstance(row[name], int | float) for row in rows) for name in names]
    shown, left_out = aligned(names, cells, right=numeric, total=terminal_width(sys.stdout))
    sys.stdout.write("".join(line + "\n" for line in shown))
    _say_left_out(left_out, "--json")


def terminal_width(stream: Any) -> int | None:
    """The letters of a line of the terminal; None if the stream is none, and lines may have any length."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def _say_left_out(names: list[str], way: str) -> None:
    if names:
        say(
            f"the terminal is too narrow for {counted(len(names), 'more column')}: {', '.join(names)} "
            f"({way} shows all)"
        )


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


@contextmanager
def _sink(path: str | None) -> Iterator[BinaryIO]:
    """Where results go.  A file gets its name when it is whole; until then what had the name keeps it."""
    if path is None:
        yield sys.stdout.buffer
        return
    special = os.path.exists(path) and not os.path.isfile(path)  # a device, a pipe; a folder cannot be opened
    begun = path if special else f"{path}.{os.getpid()}.tmp"
    try:
        file = open(begun, "wb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise InvalidInput(f"-o {path}: {error.strerror}") from error
    try:
        with file:
            yield file
        if not special:
            os.replace(begun, path)
    except BaseException:
        if not special:
            os.unlink(begun)
        raise


def format_of_output(path: str) -> str:
    """The format that a file's name asks for; JSON where it asks for none."""
    return _BY_ENDING.get(os.path.splitext(path)[1].lower(), "json")


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
    flat = pa.schema([pa.field(f.name, pa.string() if _is_json_in_csv(f) else f.type) for f in schema])
    count = 0
    with pcsv.CSVWriter(sink, flat) as writer:
        for table in tables:
            columns = [_for_csv(c, f) for f, c in zip(schema, table.columns, strict=True)]
            writer.write_table(pa.table(columns, schema=flat))
            count += table.num_rows
    return count


def _is_json_in_csv(field: pa.Field) -> bool:
    """Nested values have no other text; times and bytes are written as in JSON, so that one form is read."""
    kind = field.type
    return (
        is_json(field)
        or pa.types.is_nested(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_time(kind)
        or pa.types.is_duration(kind)
        or pa.types.is_interval(kind)
    )


def _for_csv(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    if not _is_json_in_csv(field):
        return column
    text = shown(column, field)
    return text if is_json(field) or pa.types.is_nested(field.type) else pc.utf8_trim(text, '"')


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
    """Aligned text of the first records, for people; that there are more is said."""
    cells: list[list[str]] = []
    more = False
    for table in tables:
        head = table.slice(0, _TABLE_ROWS - len(cells))
        texts = [_for_people(c, f) for f, c in zip(schema, head.columns, strict=True)]
        cells += [[_cell(v) for v in row] for row in zip(*texts, strict=True)]
        more = head.num_rows < table.num_rows
        if more:
            break
    if not cells:
        say("no records")
        return 0
    numeric = [pa.types.is_integer(f.type) or pa.types.is_floating(f.type) for f in schema]
    total = terminal_width(sys.stdout) if sink is sys.stdout.buffer else None
    shown, left_out = aligned(schema.names, cells, right=numeric, total=total)
    sink.write("".join(line + "\n" for line in shown).encode())
    sink.flush()
    if more:
        say(f"these are the first {len(cells):,} records; other formats give all: --format json")
    _say_left_out(left_out, "--columns chooses, --format json")
    return len(cells)


def _for_people(column: pa.ChunkedArray, field: pa.Field) -> list[str | None]:
    """JSON, without the quotes of plain strings: what is not printable stays escaped."""
    texts: list[str | None] = shown(column, field).to_pylist()
    bare = not (is_json(field) or pa.types.is_nested(field.type))
    return [t[1:-1] if t and bare and t.startswith('"') else t for t in texts]
