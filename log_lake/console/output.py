"""Printing results: JSON, aligned tables, and records in the formats of `lake scan`."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lake_core.errors import InvalidInput
from lake_core.phrases import counted, printable
from lake_core.values.types import show_type
from log_lake.columns.json_text import for_people, json_lines
from log_lake.console.alignment import GAP, aligned, cut
from log_lake.console.csvtext import csv_header, csv_lines
from log_lake.console.sink import flush, print_message, print_text, sink

_JSON = (".ndjson", ".jsonl", ".json")
_BY_ENDING = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".zng": "zng",
    ".zst": "zst",
    ".zson": "zson",
}
_COMPRESSED = (".zst", ".zstd", ".gz", ".bz2", ".xz")
ENDINGS = (*_JSON, *_BY_ENDING)
"""The endings of file names that say a format."""

VALUES = ("zng", "zst", "zson")
"""Formats in which each record has a type of its own."""

BINARY = ("parquet", "arrow", "zng", "zst")
"""Formats that are not for a terminal."""

_WIDEST = 40
"""Letters of a value in a table of records, at most."""
_UNDER = " " * 4
"""How far the text under a line of a table is indented."""
_TABLE_ROWS = 1000


def json_of(value: Any) -> str:
    """Returns one JSON value on one line."""
    return msgspec.json.encode(value).decode()


def print_json(value: Any, *, indented: bool = False) -> None:
    """Prints one JSON value on one line; `indented` for people, with one field per line."""
    text = json_of(value)
    whole = (msgspec.json.format(text, indent=2) if indented else text) + "\n"
    print_text(_shown(whole) if sys.stdout.isatty() else whole)


def print_rows(rows: list[dict[str, Any]], *, as_json: bool, empty: str) -> None:
    """Prints rows as a table for people, or as a JSON line each; a table without rows prints `empty`."""
    if as_json:
        for row in rows:
            print_json(row)
    else:
        print_table(rows, empty=empty)


def print_table(
    rows: list[dict[str, Any]],
    *,
    empty: str,
    right: tuple[str, ...] = (),
    whole: tuple[str, ...] = (),
    below: str = "",
) -> None:
    """Prints rows aligned under their names, numbers and the columns `right` to the right; without rows the text
    `empty`.

    The columns `whole` identify something: they are never cut.  If a terminal is too narrow for all columns, the
    text of the column `below` stands under each line.
    """
    if not rows:
        say(empty)
        return
    names, total = list(rows[0]), terminal_width(sys.stdout)
    under: list[str] = []
    if total is not None and below in names and _is_wider(rows, total):
        names.remove(below)
        under = [str(row[below] or "") for row in rows]
    cells = [[str(row[name]) if name in whole else _cell(row[name]) for name in names] for row in rows]
    numeric = [name in right or all(isinstance(row[name], int | float) for row in rows) for name in names]
    shown, left_out = aligned(names, cells, right=numeric, total=total, whole=[*map(names.index, whole)])
    lines = shown[:1]
    for number, line in enumerate(shown[1:]):
        lines += [line, *(_indented(under[number], total or sys.maxsize) if under else ())]
    print_text("".join(line + "\n" for line in lines))
    _say_left_out(left_out, "--json")


def _is_wider(rows: list[dict[str, Any]], total: int) -> bool:
    """Whether the lines are longer than `total` letters if no column is cut."""
    widths = [max(len(name), *(len(_cell(row[name])) for row in rows)) for name in rows[0]]
    return sum(widths) + len(GAP) * (len(widths) - 1) > total


def _indented(text: str, total: int) -> list[str]:
    """Returns the lines of a text under a line of a table; a word longer than a line, such as a path, stays
    whole."""
    return textwrap.wrap(
        printable(text),
        max(total, 2 * len(_UNDER)),
        initial_indent=_UNDER,
        subsequent_indent=_UNDER,
        break_long_words=False,
        break_on_hyphens=False,
    )


def terminal_width(stream: Any) -> int | None:
    """Returns the width of a line of the terminal; None if the stream is not a terminal, and lines may have any
    length."""
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
    return str(value)


def say(message: str) -> None:
    """Prints a message for people, after earlier output.  If standard error accepts no more, it is dropped."""
    flush()
    print_message(printable(message) + "\n")


def format_of_output(path: str) -> str | None:
    """Returns the format that a file's name asks for; None if it asks for none.

    Raises InvalidInput for a name that asks for a compressed file.
    """
    name, ending = os.path.splitext(path.lower())
    if ending in _COMPRESSED and os.path.splitext(name)[1] in ENDINGS:
        raise InvalidInput(
            f"-o {path}: the lake writes no compressed files; leave {ending} out and compress the file"
        )
    return "json" if ending in _JSON else _BY_ENDING.get(ending)


def write_records(tables: Iterable[pa.Table], schema: pa.Schema, *, format: str, path: str | None) -> int:
    """Write the records; returns how many.  `schema` is that of the tables.

    Raises InvalidInput if the format cannot hold a column, and what `sink` raises.
    """
    with sink(path) as file:
        if format == "table":
            return _write_text(
                tables, schema, file, total=terminal_width(sys.stdout) if path is None else None
            )
        is_shown = format not in BINARY and path is None and sys.stdout.isatty()
        return write_to(cast(BinaryIO, _Shown(file)) if is_shown else file, tables, schema, format)


class _Shown:
    """A terminal that gets whole lines of text.  Characters that could control the terminal are escaped, as in
    tables."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, data: Any) -> None:
        text = bytes(data).decode(errors="backslashreplace")  # ZSON has single bytes behind an escaped one
        self._file.write(_shown(text).encode())


def _shown(lines: str) -> str:
    """Returns the lines with control characters escaped, in a form that readers of JSON and ZSON, and people,
    understand."""
    return "\n".join(printable(line.rstrip("\r")) for line in lines.split("\n"))


def write_to(file: BinaryIO, tables: Iterable[pa.Table], schema: pa.Schema, format: str) -> int:
    """Writes the records to an open file, like `write_records`."""
    if format == "json":
        return _write_lines(tables, json_lines, file)
    if format == "csv":
        file.write(csv_header(schema.names) if schema.names else b"")
        return _write_lines(tables, csv_lines, file)
    if format in VALUES:
        from log_lake.console.value_output import write_values  # few commands need it

        return write_values(tables, schema, file, format)
    return _write_arrow(tables, schema, file, format)


def _write_lines(
    tables: Iterable[pa.Table], lines_of: Callable[[pa.Table], pa.ChunkedArray], file: BinaryIO
) -> int:
    count = 0
    for table in tables:
        for chunk in lines_of(table).chunks:
            if len(chunk):
                whole = pa.ListArray.from_arrays(pa.array([0, len(chunk)], pa.int32()), chunk)
                file.write(pc.binary_join(whole, "\n")[0].as_buffer())
                file.write(b"\n")
        count += table.num_rows
    return count


def _write_arrow(tables: Iterable[pa.Table], schema: pa.Schema, file: BinaryIO, format: str) -> int:
    count = 0
    with _holding(schema.empty_table(), format):
        writer = _arrow_writer(file, schema, format)
    with writer:
        for table in tables:
            with _holding(table, format):
                _check_decimals(table)
                writer.write_table(table)
            count += table.num_rows
    return count


def _arrow_writer(file: Any, schema: pa.Schema, format: str) -> Any:
    if format == "arrow":
        return pa.ipc.new_stream(file, schema)
    return pq.ParquetWriter(file, schema, compression="zstd")


def _check_decimals(table: pa.Table) -> None:
    """Raises ArrowInvalid for decimals of 39 digits, which SQL's HUGEINT may have and no other reader expects."""
    for column in table.columns:
        if pa.types.is_decimal(column.type) and column.type.precision == 38:
            column.validate(full=True)


@contextmanager
def _holding(table: pa.Table, format: str) -> Iterator[None]:
    """Within the block, which writes the table, a refusal of Arrow becomes InvalidInput that names the column."""
    try:
        yield
    except pa.ArrowException as error:
        for number, field in enumerate(table.schema):
            alone = table.select([number])
            try:
                _check_decimals(alone)
                with _arrow_writer(pa.BufferOutputStream(), alone.schema, format) as writer:
                    writer.write_table(alone)
            except pa.ArrowException as reason:
                raise InvalidInput(
                    f"{format} cannot hold column {field.name!r} of type {show_type(field)}: {reason}; "
                    "choose another format, such as json"
                ) from error
        raise InvalidInput(
            f"{format} cannot hold the records: {error}; choose another format, such as json"
        ) from error


def _write_text(tables: Iterable[pa.Table], schema: pa.Schema, file: BinaryIO, *, total: int | None) -> int:
    """Write aligned text of the first records, and a line if there are more.  `total`: see `aligned`."""
    cells: list[list[str]] = []
    more = False
    for table in tables:
        head = table.slice(0, _TABLE_ROWS - len(cells))
        texts = [for_people(c, f) for f, c in zip(schema, head.columns, strict=True)]
        cells += [[cut(_cell(v), _WIDEST) for v in row] for row in zip(*texts, strict=True)]
        more = head.num_rows < table.num_rows
        if more:
            break
    if not cells:
        say("no records")
        return 0
    numeric = [pa.types.is_integer(f.type) or pa.types.is_floating(f.type) for f in schema]
    lines, left_out = aligned(schema.names, cells, right=numeric, total=total)
    file.write("".join(line + "\n" for line in lines).encode(errors="surrogateescape"))
    if more:
        say(f"these are the first {len(cells):,} records; other formats give all: --format json")
    _say_left_out(left_out, "--columns chooses, --format json")
    return len(cells)
