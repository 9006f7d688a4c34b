"""Key fields inside of records: the key `user.id` of `{"user": {"id": 5}}`.

Everything below a load knows a key as a field of its own, by its exact name.  So a load gives each record the field
`user.id`, a copy of what is at the path, and the pool keeps both (decision 146).  A record that has a field of that
exact name keeps it: the path counts only if there is no such field, or it is null.  A path leads through records,
maps with keys of text, and fields that are JSON; at each step the longest name that exists is taken.  No path leads
into a list.

Pure.  Called by `checks` for each block of a file, and for tables of a program.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lake_core.errors import InvalidInput
from lake_core.loading.declared import declared_columns
from lake_core.loading.formats.python_values import table_from_records
from lake_core.objects.schema import cast_column, unite_fields
from lake_core.values.nested import fields_of
from lake_core.values.typed_json import value_of
from lake_core.values.types import is_json


@dataclass(frozen=True)
class Keyed:
    """Records with the fields of their key, and those whose value at a path is not of the declared type: why."""

    table: pa.Table
    wrong: Mapping[int, str]
    added: bool


def with_key_paths(table: pa.Table, names: Iterable[str], declared: Mapping[str, pa.Field]) -> Keyed:
    """The records, in which each name of the key that leads into records is a field too."""
    wrong: dict[int, str] = {}
    added = False
    for name in names:
        inside = _at(table, name)
        if inside is None:
            continue
        field, column = _declared(*inside, declared, wrong)
        index = table.schema.get_field_index(name)
        if index < 0:
            table = table.append_column(field, column)
        elif table.column(index).null_count:
            united = unite_fields(table.schema.field(index), field)
            own = cast_column(table.column(index), table.schema.field(index), united)
            table = table.set_column(index, united, pc.coalesce(own, cast_column(column, field, united)))
        else:
            continue
        added = True
    return Keyed(table, wrong, added)


def may_have_key(name: str, fields: Collection[str]) -> bool:
    """Whether records of these fields may have the field of a key: by its name, or as a path."""
    return name in fields or any(head in fields for head, _ in cuts(name))


def cuts(name: str) -> Iterator[tuple[str, str]]:
    """The name cut at each of its dots, the longest beginning first."""
    at = name.rfind(".")
    while at >= 0:  # bounded by the name
        if 0 < at < len(name) - 1:
            yield name[:at], name[at + 1 :]
        at = name.rfind(".", 0, at)


def _at(table: pa.Table, name: str) -> tuple[pa.Field, pa.ChunkedArray] | None:
    """The values at a path, as a field of its name; None if it leads nowhere."""
    for head, rest in cuts(name):
        index = table.schema.get_field_index(head)
        if (
            index >= 0
            and (inner := _inside(table.schema.field(index), table.column(index), rest)) is not None
        ):
            field, column = inner
            return field.with_name(name), column
    return None


def _inside(field: pa.Field, column: pa.ChunkedArray, rest: str) -> tuple[pa.Field, pa.ChunkedArray] | None:
    kind = field.type
    if is_json(field):
        return _inside_json(column, rest)
    if pa.types.is_struct(kind):
        for head, below in ((rest, ""), *cuts(rest)):
            at = kind.get_field_index(head)
            if at < 0:
                continue
            chunks = [fields_of(chunk)[at] for chunk in column.chunks]
            values = pa.chunked_array(chunks, kind.field(at).type)
            inner = _inside(kind.field(at), values, below) if below else (kind.field(at), values)
            if inner is not None:
                return inner
    if pa.types.is_map(kind) and pa.types.is_string(kind.key_type):
        return kind.item_field, pc.map_lookup(column, pa.scalar(rest), "first")
    return None


def _inside_json(column: pa.ChunkedArray, rest: str) -> tuple[pa.Field, pa.ChunkedArray]:
    values = [None if text is None else _value_at(value_of(text), rest) for text in column.to_pylist()]
    table = table_from_records([{"": value} for value in values], {})
    return table.schema.field(0), table.column(0)


def _value_at(value: Any, rest: str) -> Any:
    if not isinstance(value, dict):
        return None
    if rest in value:
        return value[rest]
    return next((_value_at(value[head], below) for head, below in cuts(rest) if head in value), None)


def _declared(
    field: pa.Field, column: pa.ChunkedArray, declared: Mapping[str, pa.Field], wrong: dict[int, str]
) -> tuple[pa.Field, pa.ChunkedArray]:
    """The values in the type that the pool declares for the field; one that is not of it is null, and `wrong` says
    why."""
    if field.name not in declared:
        return field, column
    target = {field.name: declared[field.name]}
    table = pa.table([column], schema=pa.schema([field]))
    try:
        table = declared_columns(table, target, source="")
    except InvalidInput:
        rows = [table.slice(row, 1) for row in range(table.num_rows)]
        for row, one in enumerate(rows):
            try:
                rows[row] = declared_columns(one, target, source="")
            except InvalidInput as error:
                wrong.setdefault(row, str(error).removeprefix(": "))
                rows[row] = pa.table(
                    [pa.nulls(1, declared[field.name].type)], schema=pa.schema(target.values())
                )
        table = pa.concat_tables(rows)
    return table.schema.field(0), table.column(0)
