"""Converts columns of Parquet's VARIANT, shredded or not, to typed JSON.

Arrow gives a variant as a record of `metadata`, `value`, and, if it is shredded, `typed_value`: the part of the
value that has a type of its own.  Each field of an object and each element of a list has `value` and
`typed_value` again.  Source: Parquet's VariantShredding.md.
"""

from __future__ import annotations

import contextlib
import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lake_core.keys.encoding import from_array
from lake_core.values.types import json_field
from log_lake.columns.nested import Items, RowNumbers, fields_of, is_list, is_nested, rebuilt
from log_lake.columns.variant import Unreadable, VariantReader, checked, date_of, number
from log_lake.loading.contract import Faults
from log_lake.texts.typed_json import text_of

METADATA, VALUE, TYPED = "metadata", "value", "typed_value"
_ANNOTATED = re.compile(r" *(?:required|optional|repeated) group field_id=-?\d+ .* \(Variant\(\d+\)\) \{$")
_METADATA = re.compile(r" *required binary field_id=-?\d+ metadata;$")
_BROKEN = "a file with a VARIANT has a name with a line break; rename that field"
_ROW_METADATA = b"org.apache.spark.sql.parquet.row.metadata"
"""The key of Spark's schema of the records in a file's metadata. Spark 4.0 says only there that a field is a
variant."""

_MISSING: Any = object()
"""Stands for a field that the object does not have."""

_reader = lru_cache(maxsize=1_024)(VariantReader)


@dataclass(frozen=True)
class Variants:
    """Which fields of a Parquet file are variants, by the number of their column `metadata` in the file.

    Names alone do not show it: an ordinary record may have fields with the names and types of a variant's.
    """

    columns: frozenset[int]

    @staticmethod
    def of(parquet: pq.ParquetFile) -> Variants:
        """Returns the variant fields according to the annotations in the file's schema, and to Spark's own schema
        in its metadata.  Raises ValueError if line breaks in names hide the annotations."""
        columns = set(_annotated(parquet.schema))
        with_spark: Mapping[bytes, bytes] = parquet.metadata.metadata or {}
        with contextlib.suppress(
            ValueError, LookupError, TypeError, RecursionError
        ):  # another program's text
            spark = json.loads(with_spark.get(_ROW_METADATA, b"null"))
            columns |= set(_of_spark(spark, pa.struct(list(parquet.schema_arrow)), 0))
        return Variants(frozenset(columns))

    def as_json(self, table: pa.Table, faults: Faults) -> pa.Table:
        """Returns the records with typed JSON in place of variants, at any depth.

        Adds variants that cannot be read to `faults`, by row of the table; their values are null here.
        """
        if not self.columns:
            return table
        rows, column = np.arange(table.num_rows), 0
        for at, field in enumerate(table.schema):

            def change(array: pa.Array, inner: pa.Field, of: RowNumbers, path: str = field.name) -> Any:
                nonlocal column
                if not is_nested(inner.type):
                    column += 1
                if not (_is_variant(inner.type) and _metadata_of(inner.type, column) in self.columns):
                    return None
                column += _columns_of(inner.type)
                return _texts(array, of, path, faults), json_field(inner.name)

            array, changed = rebuilt(table.column(at).combine_chunks(), field, rows, change)
            table = table.set_column(at, changed, array)
        return table


def _annotated(schema: Any) -> Iterator[int]:
    """Yields the number of the column `metadata` of each group that is annotated as a variant."""
    text = str(schema)
    if "(Variant(" not in text:
        return
    _, *lines = text.split("\n")  # the first names Python's object
    groups: dict[int, bool] = {}
    column = depths = 0
    for line in lines:
        depth = len(line) - len(line.lstrip(" "))
        if line.endswith("{"):
            groups[depth] = _ANNOTATED.match(line) is not None
            depths += 1
        elif line.endswith("}"):
            depths -= 1
        elif line and not line.endswith(";"):
            raise ValueError(_BROKEN)
        elif line:
            if groups.get(depth - 2) and _METADATA.match(line):
                yield column
            column += 1
    if column != len(schema) or depths:
        raise ValueError(_BROKEN)


def _of_spark(spark: Any, kind: pa.DataType, column: int) -> Iterator[int]:
    """Yields the same for Spark's schema of a type, whose first column has the number `column`."""
    match spark:
        case "variant" if _is_variant(kind):
            yield _metadata_of(kind, column)
        case {"type": "struct", "fields": list(fields)} if pa.types.is_struct(kind):
            by_name = {field["name"]: field["type"] for field in fields}
            for member in kind:
                yield from _of_spark(by_name.get(member.name), member.type, column)
                column += _columns_of(member.type)
        case {"type": "array", "elementType": element} if is_list(kind):
            yield from _of_spark(element, kind.value_type, column)
        case {"type": "map", "valueType": value} if pa.types.is_map(kind):
            yield from _of_spark(value, kind.item_type, column + _columns_of(kind.key_type))


def _columns_of(kind: pa.DataType) -> int:
    """Returns how many columns of a Parquet file a type takes."""
    if not is_nested(kind):
        return 1
    return sum(_columns_of(kind.field(at).type) for at in range(kind.num_fields))


def _metadata_of(kind: pa.StructType, column: int) -> int:
    """Returns the number of the column `metadata` of a variant whose first column has the number `column`."""
    before = kind.get_field_index(METADATA)
    return column + sum(_columns_of(kind.field(at).type) for at in range(before))


def _is_variant(kind: pa.DataType) -> bool:
    if not pa.types.is_struct(kind):
        return False
    members = {field.name: field.type for field in kind}
    others = members.keys() - {METADATA}
    return (
        METADATA in members
        and bool(others)
        and others <= {VALUE, TYPED}
        and pa.types.is_binary(members[METADATA])
        and pa.types.is_binary(members.get(VALUE, pa.binary()))
    )


def _texts(array: pa.StructArray, rows: RowNumbers, path: str, faults: Faults) -> pa.Array:
    parts = _members(array)
    readers = [
        None if metadata is None else _or_fault(_reader, metadata) for metadata in parts[METADATA].to_pylist()
    ]
    values = _values(array, readers)
    texts: list[str | None] = []
    for at, value in enumerate(values):
        text = None
        if isinstance(value, Unreadable):
            faults.setdefault(int(rows[at]), f"field {path!r}: {value}")
        elif value is not None and value is not _MISSING:
            text = text_of(value)
        texts.append(text)
    return pa.array(texts, pa.string())


def _members(array: pa.StructArray) -> dict[str, pa.Array]:
    return {field.name: member for field, member in zip(array.type, fields_of(array), strict=True)}


def _values(array: pa.StructArray, readers: list[Any]) -> list[Any]:
    """Returns the value of each record of `value` and `typed_value`: _MISSING if it has none, Unreadable for a
    fault."""
    parts = _members(array)
    plain = parts[VALUE].to_pylist() if VALUE in parts else [None] * len(array)
    typed = _typed(parts[TYPED], readers) if TYPED in parts else [_MISSING] * len(array)
    return [_value(one, other, reader) for one, other, reader in zip(plain, typed, readers, strict=True)]


def _value(plain: bytes | None, typed: Any, reader: Any) -> Any:
    if isinstance(reader, Unreadable) or isinstance(typed, Unreadable):
        return reader if isinstance(reader, Unreadable) else typed
    if plain is None or reader is None:
        return typed
    try:
        value = reader.value(plain)
    except Unreadable as error:
        return error
    if typed is _MISSING:
        return value
    if not (isinstance(value, dict) and isinstance(typed, dict)) or value.keys() & typed.keys():
        return Unreadable("a damaged VARIANT: two values in one place")
    return typed | value


def _typed(array: pa.Array, readers: list[Any]) -> list[Any]:
    """Returns the shredded values of an array; _MISSING where it is null."""
    kind = array.type
    if pa.types.is_struct(kind):
        columns = {name: _values(member, readers) for name, member in _members(array).items()}
        rows = [_record({name: column[at] for name, column in columns.items()}) for at in range(len(array))]
    elif is_list(kind):
        items = Items(array)
        elements = _values(items.values, [readers[row] for row in items.rows.tolist()])
        ends = np.asarray(items.offsets).tolist()
        rows = [_list(elements[low:high]) for low, high in pairwise(ends)]
    else:
        rows = _scalars(array)
    return [row if there else _MISSING for row, there in zip(rows, array.is_valid().to_pylist(), strict=True)]


def _record(members: dict[str, Any]) -> Any:
    for value in members.values():
        if isinstance(value, Unreadable):
            return value
    return {name: value for name, value in members.items() if value is not _MISSING}


def _list(elements: list[Any]) -> Any:
    for value in elements:
        if isinstance(value, Unreadable):
            return value
    return [None if value is _MISSING else value for value in elements]


def _scalars(array: pa.Array) -> list[Any]:
    """Returns the values of an array that is not nested, None for null."""
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pa.types.is_fixed_size_binary(
        array.type
    ):  # a UUID: no other type of Parquet's VARIANT has a fixed size
        return [None if value is None else str(uuid.UUID(bytes=value)) for value in array.to_pylist()]
    if pa.types.is_date(array.type):
        days = array.cast(pa.date32()).cast(pa.int32()).to_pylist()
        return [None if day is None else _or_fault(date_of, day) for day in days]
    if pa.types.is_decimal(array.type):
        return [None if value is None else number(value) for value in array.to_pylist()]
    return [_or_fault(checked, value) for value in from_array(array)]


def _or_fault(read: Callable[[Any], Any], value: Any) -> Any:
    try:
        return read(value)
    except Unreadable as error:
        return error
