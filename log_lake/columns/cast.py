"""Converts columns and tables to another schema, matching fields by name.

A missing field becomes null.  Values without a common type become typed JSON.  `schemas.schema` unites the
schemas of several objects; this module then converts their records to the united schema, which has a place for
every value.  Called by scans, compaction and the readers of files.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lake_core.errors import Corrupt
from lake_core.values.types import is_json, show_type
from log_lake.columns.arrays import Ints
from log_lake.columns.json_text import typed
from log_lake.columns.nested import Items, mask_of


def cast_table(table: pa.Table, schema: pa.Schema, *, what: str) -> pa.Table:
    """Returns the records in a united schema: fields are matched by name, missing ones are null.

    `what` names the object in the error message.  Raises Corrupt if a value does not fit, which cannot happen
    with a schema that was united from the table's own.
    """
    if table.schema.equals(schema, check_metadata=True):
        return table
    columns = []
    for target in schema:
        index = table.schema.get_field_index(target.name)
        columns.append(
            pa.nulls(table.num_rows, target.type)
            if index < 0
            else _read_as(target, table.column(index), table.schema.field(index), what)
        )
    return pa.table(columns, schema=schema) if columns else table.select([])


def mixed_table(tables: Sequence[pa.Table], schema: pa.Schema, order: Ints, *, what: str) -> pa.Table:
    """Returns the records of several tables as one table, in a united schema with at least one field.  Casts like
    `cast_table`.

    `order` gives the order of the result: it numbers the records of the first table, then those of the next,
    and so on.
    """
    return Mixed(tables, schema, what=what).taken(order)


class Mixed:
    """The records of several tables with different fields, to be joined to one table in a united schema, in any
    order.

    A table that lacks a field takes no memory for it.  Otherwise thousands of tables with different fields
    would need millions of null columns.  Raises Corrupt if a value does not fit the schema.
    """

    def __init__(self, tables: Sequence[pa.Table], schema: pa.Schema, *, what: str) -> None:
        self._schema, self._columns = schema, list[tuple[pa.Array, tuple[int, ...]]]()
        begins = np.cumsum([0, *(table.num_rows for table in tables)])
        having: dict[str, list[tuple[int, int]]] = {}
        for number, table in enumerate(tables):
            for index, name in enumerate(table.schema.names):
                having.setdefault(name, []).append((number, index))
        self._places: dict[tuple[int, ...], Ints] = {}
        for target in schema:
            chunks: list[pa.Array] = []
            for number, index in having.get(target.name, ()):
                table = tables[number]
                chunks += _read_as(target, table.column(index), table.schema.field(index), what).chunks
            numbers = tuple(number for number, _ in having.get(target.name, ()))
            if numbers not in self._places:
                self._places[numbers] = _places(numbers, begins)
            self._columns.append((pa.chunked_array(chunks, target.type).combine_chunks(), numbers))

    def taken(self, order: Ints) -> pa.Table:
        """Returns the records with these numbers.  The first table's records are numbered first, then those of the
        next table, and so on."""
        taken = {}
        for numbers, places in self._places.items():
            chosen = places[order]
            taken[numbers] = pa.array(chosen, mask=chosen < 0)
        columns = [whole.take(taken[numbers]) for whole, numbers in self._columns]
        return pa.table(columns, schema=self._schema)


def _places(numbers: Sequence[int], begins: Ints) -> Ints:
    """Returns for each record the position of its value when the values of the tables `numbers` follow one
    another; -1 if it has no value."""
    places, count = np.full(begins[-1], -1), 0
    for number in numbers:
        low, high = begins[number : number + 2]
        places[low:high] = np.arange(count, count + high - low)
        count += high - low
    return places


def _read_as(target: pa.Field, column: pa.ChunkedArray, field: pa.Field, what: str) -> pa.ChunkedArray:
    try:
        return cast_column(column, field, target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise Corrupt(
            f"{what}: field {target.name!r} of type {show_type(field)} cannot be read as "
            f"{show_type(target)}: {error}"
        ) from error


def cast_column(column: pa.ChunkedArray, field: pa.Field, target: pa.Field) -> pa.ChunkedArray:
    """Returns a column converted to the type of the field `target`."""
    if is_json(target):
        return column.cast(pa.string()) if is_json(field) else typed(column, field)
    if field.type == target.type and not _has_marks(target.type):
        return column
    if not _is_nested(target.type):
        return column.cast(target.type)
    chunks = [_cast_nested(chunk, field, target) for chunk in column.chunks]
    return pa.chunked_array(chunks, target.type)


def _is_nested(kind: pa.DataType) -> bool:
    return pa.types.is_struct(kind) or pa.types.is_list(kind) or pa.types.is_map(kind)


def members_of(kind: pa.DataType) -> list[pa.Field]:
    """Returns the fields inside a record, list or map; empty for any other type."""
    return [kind.field(i) for i in range(kind.num_fields)]


def _has_marks(kind: pa.DataType) -> bool:
    return _is_nested(kind) and any(f.metadata or _has_marks(f.type) for f in members_of(kind))


def _cast_nested(array: pa.Array, field: pa.Field, target: pa.Field) -> pa.Array:
    """Returns the array in the target's type.  `field` says which parts are JSON, not the array's own type,
    because Arrow's builders of maps lose that mark."""
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), target.type)
    if is_json(target):
        return typed(pa.chunked_array([array]), field).combine_chunks()
    if pa.types.is_struct(target.type):
        children = []
        for child in target.type:
            index = array.type.get_field_index(child.name)
            values = pa.nulls(len(array), child.type) if index < 0 else array.field(index)
            source = child if index < 0 else field.type.field(index)
            if index >= 0 and array.offset:
                values = values.slice(array.offset, len(array)) if len(values) != len(array) else values
            children.append(_cast_nested(values, source, child))
        return pa.StructArray.from_arrays(children, fields=list(target.type), mask=mask_of(array))
    if pa.types.is_list(target.type):
        items = Items(array)
        values = _cast_nested(items.values, field.type.value_field, target.type.value_field)
        return items.as_lists(values, target.type)
    if pa.types.is_map(target.type):
        items = Items(array)
        keys, values = items.entries
        return items.as_maps(
            _cast_nested(keys, field.type.key_field, target.type.key_field),
            _cast_nested(values, field.type.item_field, target.type.item_field),
            target.type,
        )
    return array if array.type == target.type else array.cast(target.type)
