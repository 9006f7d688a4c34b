"""Copies key fields out of records: the key `user.id` of `{"user": {"id": 5}}`.

All code after a load knows a key field only by its exact name.  So a load gives each record a field `user.id`,
a copy of the value at the path, and the pool stores both (decision 146).  If a record already has a field of
that exact name, this field counts; the path counts only where that field is missing or null.  A path leads
through records, maps with text keys, and fields that are JSON.  A text such as `a.b.c` may be read as several
paths. Each record gets the first value that is not null; the path with the longest first name comes first
(decision 182).  No path leads into a list.

Pure.  Called by `checks` for each block of a file, and for tables of a program.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.schemas.schema import unite_fields
from lake_core.values.types import is_json
from log_lake.columns.cast import cast_column
from log_lake.columns.nested import fields_of
from log_lake.loading.declared import OtherClass, fitting_values
from log_lake.loading.formats.python_values import table_from_records
from log_lake.texts.typed_json import value_of

FieldValues = tuple[pa.Field, pa.ChunkedArray]
"""A column with its field."""


@dataclass(frozen=True)
class Keyed:
    """A table whose records have the fields of their key, and, by row, why the value at a path does not have the
    declared type."""

    table: pa.Table
    wrong: Mapping[int, str]
    added: bool


def with_key_paths(table: pa.Table, names: Iterable[str], declared: Mapping[str, pa.Field]) -> Keyed:
    """Returns the records, with a field added for each name of the key that is a path into records."""
    wrong: dict[int, str] = {}
    added = False
    for name in names:
        index = table.schema.get_field_index(name)
        own = [] if index < 0 else [(table.schema.field(index), table.column(index))]
        if own and not own[0][1].null_count:
            continue
        values = [*own, *((field.with_name(name), column) for field, column in _at(table, name))]
        if len(values) == len(own):
            continue
        field, column = _declared(*reduce(_filled, values), declared, wrong)
        table = table.set_column(index, field, column) if own else table.append_column(field, column)
        added = True
    return Keyed(table, wrong, added)


def _filled(first: FieldValues, second: FieldValues) -> FieldValues:
    """Returns the first values, and the second ones where the first are null."""
    (field, column), (other, others) = first, second
    absent = pc.is_null(column)
    if not pc.any(pc.and_(absent, pc.is_valid(others))).as_py():
        return first
    if column.null_count == len(column):
        return second
    others = pc.if_else(absent, others, pa.scalar(None, others.type))
    united = unite_fields(field, other)
    return united, pc.coalesce(cast_column(column, field, united), cast_column(others, other, united))


def may_have_key(name: str, fields: Collection[str]) -> bool:
    """Whether records with these fields may have the key field `name`: as a field of that name, or at a
    path."""
    return name in fields or any(head in fields for head, _ in cuts(name))


def cuts(name: str) -> Iterator[tuple[str, str]]:
    """Yields the name divided in two at each of its dots, from the last dot to the first.  Neither part is
    empty."""
    at = name.rfind(".")
    while at >= 0:  # bounded by the name
        if 0 < at < len(name) - 1:
            yield name[:at], name[at + 1 :]
        at = name.rfind(".", 0, at)


def _at(table: pa.Table, name: str) -> Iterator[FieldValues]:
    """Yields the values at a path, for each way to divide it into names; the way with the longest first name comes
    first."""
    for head, rest in cuts(name):
        index = table.schema.get_field_index(head)
        if index >= 0:
            yield from _inside(table.schema.field(index), table.column(index), rest)


def _inside(field: pa.Field, column: pa.ChunkedArray, rest: str) -> Iterator[FieldValues]:
    kind = field.type
    if is_json(field):
        yield _inside_json(column, rest)
        return
    for head, below in ((rest, ""), *cuts(rest)):
        inner = None
        if pa.types.is_struct(kind) and (at := kind.get_field_index(head)) >= 0:
            chunks = [fields_of(chunk)[at] for chunk in column.chunks]
            inner = kind.field(at), pa.chunked_array(chunks, kind.field(at).type)
        elif pa.types.is_map(kind) and pa.types.is_string(kind.key_type):
            inner = kind.item_field, pc.map_lookup(column, pa.scalar(head), "first")
        if inner is not None:
            yield from _inside(*inner, below) if below else (inner,)


def _inside_json(column: pa.ChunkedArray, rest: str) -> FieldValues:
    values = [None if text is None else _value_at(value_of(text), rest) for text in column.to_pylist()]
    table = table_from_records([{"": value} for value in values], {})
    return table.schema.field(0), table.column(0)


def _value_at(value: Any, rest: str) -> Any:
    if not isinstance(value, dict):
        return None
    inner = value.get(rest)
    for head, below in cuts(rest):
        if inner is not None:
            break
        inner = _value_at(value.get(head), below)
    return inner


def _declared(
    field: pa.Field, column: pa.ChunkedArray, declared: Mapping[str, pa.Field], wrong: dict[int, str]
) -> FieldValues:
    """Returns the values in the type that the pool declares for the field.  A value that does not fit is null, and
    `wrong` gets the reason."""
    if field.name not in declared:
        return field, column
    target = declared[field.name]
    try:
        values, faults = fitting_values(column, field, target, first=False)
    except OtherClass as error:
        values = pa.chunked_array([pa.nulls(len(column), target.type)])
        faults = dict.fromkeys(np.flatnonzero(column.is_valid().to_numpy()).tolist(), str(error))
    for row, why in faults.items():
        wrong.setdefault(row, why)
    return target, values
