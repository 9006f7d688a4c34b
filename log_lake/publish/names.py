"""The names of fields in the published table and in the pool's objects, by the stored names of the pool.

| | key field `user.id`, beside a record `user` with a field `id` |
|---|---|
| in the pool | `user.id` |
| in its objects | `user:id` (`objects.containers.stored_names`) |
| in the table | `user_id`; without such a record it stays `user.id` |

Iceberg uses the same name for a field inside a record and for a field with a dot, and its readers open no file
that has both.

A field that was renamed has its new name in the table, and its stored name in the objects (`log_lake.fields`).
Here, `field` and `column` without more words mean stored names.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pyiceberg import types as T

from lake_core.errors import InvalidInput
from lake_core.keys import PoolKey
from lake_core.records.conditions import Path
from log_lake.fields.names import SAME, FieldNames
from log_lake.objects.containers.stored_names import renamed, stored_names


@dataclass(frozen=True)
class TableNames:
    """The names of fields in the table and in objects; `table`: by field, its other name in the table.  `fields`
    are the names that readers of the pool see."""

    key: PoolKey
    table: Mapping[str, str] = field(default_factory=dict)
    fields: FieldNames = SAME

    def of_table(self, name: str) -> str:
        """Returns the name that a field has in the table."""
        return self.table.get(name, name)

    def of_pool(self) -> dict[str, str]:
        """Returns, for each column of the table whose name differs, its field."""
        return {column: name for name, column in self.table.items()}

    def of_column(self, column: str) -> str:
        """Returns the field of a column of objects; a key field has another name there."""
        return {column: name for name, column in stored_names(self.key.names, self.key).items()}.get(
            column, column
        )

    def of_earlier(self, column: str) -> str:
        """Returns the field of a column of an earlier table that its name mapping lacks, by its name there.

        If that name had another stored name then, the answer is a field that is hidden forever, so its id is used
        by no column.
        """
        return {self.table[name]: name for name in self.key.names if name in self.table}.get(column, column)

    def columns(self, schema: pa.Schema) -> pa.Schema:
        """Returns fields with their names in the table."""
        return renamed(schema, self.table)

    def stored(self, schema: pa.Schema) -> pa.Schema:
        """Returns fields with their names in an object that has these fields."""
        return renamed(schema, stored_names(schema.names, self.key))

    def of_columns(self, schema: pa.Schema) -> dict[str, str]:
        """Returns the fields of an object's columns whose names differ, by the name of the column."""
        return {column: name for name, column in stored_names(schema.names, self.key).items()}


def names_of(columns: pa.Schema, key: PoolKey, fields: FieldNames = SAME) -> TableNames:
    """Returns the names in a table that has these columns, and in objects.  `columns` have the names that readers
    of the pool see, `fields` are these names."""
    own = [column for column in columns if column.name in key.names and "." in column.name]
    paths = [path for column in columns if column not in own for path in inside(column, ())]
    taken = {".".join(path).casefold() for path in paths}
    stored = {fields.stored_name(column.name): column.name for column in columns}
    table = {field: name for field, name in stored.items() if field != name}
    for column in own:
        if column.name.casefold() in taken:
            name = column.name.replace(".", "_")
            while name.casefold() in taken:  # bounded by the number of names
                name += "_"
            table[column.name] = name
            taken.add(name.casefold())
    return TableNames(key, table, fields)


def check_columns(stored: Iterable[pa.Schema], names: TableNames, *, pool_name: str) -> None:
    """Raises InvalidInput if the same column is a key field in one object and another field in a different
    object."""
    fields: dict[str, str] = {}
    for schema in stored:
        for column, name in zip(names.stored(schema).names, schema.names, strict=True):
            other = fields.setdefault(column, name)
            if other != name:
                other, name = names.fields.shown_columns([other, name])
                raise InvalidInput(
                    f"pool {pool_name!r}: objects hold fields {other!r} and {name!r} as a column {column!r}, which "
                    "readers do not tell apart; publish a pool with another name for one"
                )


def inside(column: pa.Field, above: Path) -> Iterable[Path]:
    """Returns the paths of a field and of all fields inside it."""
    path = (*above, column.name)
    yield path
    for part in parts_of(column.type):
        yield from inside(part, path)


def parts_of(kind: pa.DataType) -> list[pa.Field]:
    """Returns the fields inside a record, list or map, with the names that Parquet uses; empty for other
    types."""
    if pa.types.is_list(kind):
        return [kind.value_field.with_name("element")]
    if pa.types.is_map(kind):
        return [kind.key_field.with_name("key"), kind.item_field.with_name("value")]
    return list(kind) if pa.types.is_struct(kind) else []


def paths_of(column: T.NestedField, above: Path) -> Iterable[tuple[Path, tuple[int, T.IcebergType]]]:
    """Yields the path of a table's column and of each field inside it, with its id and type."""
    path = (*above, column.name)
    yield path, (column.field_id, column.field_type)
    kind = column.field_type
    parts: Iterable[T.NestedField] = ()
    if isinstance(kind, T.StructType):
        parts = kind.fields
    elif isinstance(kind, T.ListType):
        parts = (kind.element_field,)
    elif isinstance(kind, T.MapType):
        parts = (kind.key_field, kind.value_field)
    for part in parts:
        yield from paths_of(part, path)
