"""The names of fields in the published table and in the pool's objects, if they differ from those of the pool.

| | key field `user.id`, beside a record `user` with a field `id` |
|---|---|
| in the pool | `user.id` |
| in its objects | `user:id` (`objects.containers.stored_names`) |
| in the table | `user_id`; without such a record it stays `user.id` |

Iceberg uses the same name for a field inside a record and for a field with a dot, and its readers open no file
that has both.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pyiceberg import types as T

from lake_core.errors import InvalidInput
from lake_core.keys import PoolKey
from lake_core.records.conditions import Path
from log_lake.objects.containers.stored_names import renamed, stored_names


@dataclass(frozen=True)
class KeyNames:
    """The names of key fields in the table and in objects; `table`: by field, its other name in the table."""

    key: PoolKey
    table: Mapping[str, str] = field(default_factory=dict)

    def of_table(self, name: str) -> str:
        """Returns the name that a field of the pool has in the table."""
        return self.table.get(name, name)

    def of_pool(self) -> dict[str, str]:
        """Returns, for each column of the table whose name differs, its field in the pool."""
        return {column: name for name, column in self.table.items()}

    def columns(self, schema: pa.Schema) -> pa.Schema:
        """Returns fields of the pool with their names in the table."""
        return renamed(schema, self.table)

    def stored(self, schema: pa.Schema) -> pa.Schema:
        """Returns fields of the pool, named as in an object with just these fields."""
        return renamed(schema, stored_names(schema.names, self.key))

    def fields(self, schema: pa.Schema) -> dict[str, str]:
        """Returns the fields of an object's columns whose names differ, by the name of the column."""
        return {column: name for name, column in stored_names(schema.names, self.key).items()}


def names_of(columns: pa.Schema, key: PoolKey) -> KeyNames:
    """Returns the names of the key's fields in a table that has these columns, and in objects."""
    own = [column for column in columns if column.name in key.names and "." in column.name]
    paths = [path for column in columns if column not in own for path in inside(column, ())]
    taken = {".".join(path).casefold() for path in paths}
    table: dict[str, str] = {}
    for column in own:
        if column.name.casefold() in taken:
            name = column.name.replace(".", "_")
            while name.casefold() in taken:  # bounded by the number of names
                name += "_"
            table[column.name] = name
            taken.add(name.casefold())
    return KeyNames(key, table)


def check_columns(stored: Iterable[pa.Schema], names: KeyNames, *, pool_name: str) -> None:
    """Raises InvalidInput if the same column is a key field in one object and another field in a different
    object."""
    fields: dict[str, str] = {}
    for schema in stored:
        for column, name in zip(names.stored(schema).names, schema.names, strict=True):
            other = fields.setdefault(column, name)
            if other != name:
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
