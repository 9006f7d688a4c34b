"""Writes records as values of ZNG, ZST and their text form; and lists the types that other formats do not keep.

It is separate from `output`, because every command imports that.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO

import pyarrow as pa

from lake_core.schemas.hidden import TYPE, user_fields
from lake_core.values.types import ZNG_MARK, is_json, show_type
from log_lake.objects.containers.rows import rows_of_table
from log_lake.zng.arrow_types import zng_schema, zng_type
from log_lake.zng.from_arrow import batch_of_tables
from log_lake.zng.text import type_text
from log_lake.zng.text_writer import TextWriter
from log_lake.zng.writer import ZngWriter
from log_lake.zng.zst.writer import ZstWriter

_WIDEST = 40
"""Letters of the name of a type in a note."""


def value_writer(file: BinaryIO, format: str) -> ZngWriter | ZstWriter | TextWriter:
    """Returns a writer of values with their types; `close` ends what it writes, but does not close the file."""
    match format:
        case "zng":
            return ZngWriter(file)
        case "zst":
            return ZstWriter(file)
    return TextWriter(file)


def write_values(tables: Iterable[pa.Table], schema: pa.Schema, file: BinaryIO, format: str) -> int:
    """Writes the records as values, with their own types if `hidden.ROW` has them; returns how many.

    Raises InvalidInput for a type that the format cannot express.
    """
    zng_schema(user_fields(schema))  # refuses a type before the first record, and if there is none
    whole = TYPE in schema.names
    count = 0
    writer = value_writer(file, format)
    for table in tables:
        if whole:
            writer.write(rows_of_table(table))
        else:
            for batch in table.to_batches():
                writer.write(batch_of_tables([batch]))
        count += table.num_rows
    writer.close()
    return count


def untyped(schema: pa.Schema, format: str) -> list[str]:
    """Returns the fields, with their types, that the format can only write as text or as another type.

    Returns none if the format keeps all types.
    """
    if format not in ("json", "csv"):
        return []
    return [f"{field.name} ({_type_name(field)})" for field in schema if not _is_plain(field)]


def _is_plain(field: pa.Field) -> bool:
    """Whether a reader of JSON infers this type from the written value, so that JSON keeps the type."""
    if is_json(field):
        return True
    if ZNG_MARK in (field.metadata or {}):
        return False
    kind = field.type
    if pa.types.is_nested(kind):
        is_map = pa.types.is_map(kind)
        return not is_map and all(_is_plain(kind.field(at)) for at in range(kind.num_fields))
    return bool(
        pa.types.is_null(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_int64(kind)
        or pa.types.is_float64(kind)
        or pa.types.is_string(kind)
    )


def _type_name(field: pa.Field) -> str:
    text = type_text(zng_type(field)) if ZNG_MARK in (field.metadata or {}) else show_type(field)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
