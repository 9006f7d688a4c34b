"""Avro: typed by the schema in the file, read by fastavro, which gives Python values.

Unions of one type and null are that type; other unions become JSON.  Maps stay maps, enums are strings, fixed
values bytes.  A recursive schema has no Arrow type and is refused.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import pyarrow as pa

from lake_core.loading.block import Block, Reading
from lake_core.loading.declared import declared_columns
from lake_core.loading.formats.promises import block_fault
from lake_core.loading.opening import open_unpacked
from lake_core.objects.limits import MAX_NESTING, batch_rows, schema_fault, too_deep
from lake_core.values.text import DECIMAL_DIGITS, FRACTION_DIGITS
from lake_core.values.typed_json import text_of
from lake_core.values.types import is_json, json_field

BATCH_ROWS = 16_384

_PLAIN = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}
_LOGICAL = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "uuid": pa.string(),
}


def read_avro(reading: Reading) -> Iterator[Block]:
    """The file's records, in blocks; raises InvalidInput."""
    import fastavro  # few files are Avro, and loading it takes time

    with open_unpacked(reading) as file:
        with _naming(reading):
            avro = fastavro.block_reader(file)
            records = _records(avro)
            schema = fastavro.parse_schema(avro.writer_schema)
            fields = list(_field("", schema, {}, 0).type)
        if fault := schema_fault(pa.schema(fields)):
            reading.unreadable(0, fault)
        most = batch_rows(pa.schema(fields), BATCH_ROWS)
        while True:  # bounded by the file
            with _naming(reading):
                rows: list[Any] = list(islice(records, most))
                columns = [
                    pa.array([_storable(row[field.name], field) for row in rows], field.type)
                    for field in fields
                ]
            if not rows:
                return
            table = pa.table(columns, schema=pa.schema(fields))
            yield Block(declared_columns(table, reading.declared, source=reading.file))


@contextmanager
def _naming(reading: Reading) -> Iterator[None]:
    """Within the block every exception becomes InvalidInput, because fastavro raises many classes for a damaged
    file."""
    from lake_core.errors import LakeError

    try:
        yield
    except LakeError:
        raise
    except Exception as error:
        reading.unreadable(0, f"not a readable Avro file: {error or type(error).__name__}")


def _records(blocks: Iterable[Any]) -> Iterator[Any]:
    """The records of fastavro's blocks; raises ValueError if a block has more than the records that it counts."""
    for block in blocks:
        yield from block
        if fault := block_fault(block.num_records, len(block.bytes_.read())):
            raise ValueError(fault)


def _field(name: str, schema: Any, named: dict[str, Any], depth: int) -> pa.Field:
    """The Arrow field of an Avro schema; raises ValueError if there is none."""
    if depth > MAX_NESTING + 1:
        raise ValueError(too_deep(name))
    if isinstance(schema, list):
        others = [s for s in schema if s != "null"]
        return _field(name, others[0], named, depth) if len(others) == 1 else json_field(name)
    if isinstance(schema, str):
        if schema in _PLAIN:
            return pa.field(name, _PLAIN[schema])
        if named.get(schema) is None:
            raise ValueError(f"its schema is recursive, or does not define {schema!r}")
        return named[schema].with_name(name)
    kind, logical = schema["type"], schema.get("logicalType", "")
    if isinstance(kind, dict | list):
        return _field(name, kind, named, depth)
    if logical == "decimal" and kind in ("fixed", "bytes"):
        field = _decimal_field(name, schema["precision"], schema.get("scale", 0))
    elif logical in _LOGICAL:
        field = pa.field(name, _LOGICAL[logical])
    elif kind == "record":
        named[schema["name"]] = None  # until its members are known: a recursive schema meets this None
        members = [_field(f["name"], f["type"], named, depth + 1) for f in schema["fields"]]
        field = pa.field(name, pa.struct(members)) if members else json_field(name)
    elif kind == "array":
        field = pa.field(name, pa.list_(_field("item", schema["items"], named, depth + 1)))
    elif kind == "map":
        field = pa.field(name, pa.map_(pa.string(), _field("value", schema["values"], named, depth + 1)))
    else:
        field = _field(name, kind, named, depth)
    if "name" in schema:
        named[schema["name"]] = field
    return field


def _decimal_field(name: str, precision: int, scale: int) -> pa.Field:
    """The field of a decimal; wide ones become JSON when they are stored.  Raises ValueError for wider ones
    still."""
    if precision > DECIMAL_DIGITS or scale > FRACTION_DIGITS:
        raise ValueError(
            f"field {name!r}: decimal({precision},{scale}): a decimal may have at most {DECIMAL_DIGITS} digits, "
            f"{FRACTION_DIGITS} of them behind the point"
        )
    return pa.field(
        name, pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    )


def _storable(value: Any, field: pa.Field) -> Any:
    """A value of fastavro's as Arrow takes it."""
    if value is None:
        return None
    if is_json(field):
        return text_of(_plain(value))
    kind = field.type
    if pa.types.is_struct(kind):
        return {f.name: _storable(value.get(f.name), f) for f in kind}
    if pa.types.is_list(kind):
        return [_storable(v, kind.value_field) for v in value]
    if pa.types.is_map(kind):
        return [(k, _storable(v, kind.item_field)) for k, v in value.items()]
    return str(value) if isinstance(value, uuid.UUID) else value


_AS_TEXT: dict[type, Callable[[Any], Any]] = {
    uuid.UUID: str,
    dt.datetime: dt.datetime.isoformat,
    dt.time: dt.time.isoformat,
}


def _plain(value: Any) -> Any:
    """A value of a union as JSON holds it."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return _AS_TEXT.get(type(value), lambda same: same)(value)
