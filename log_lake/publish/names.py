"""Names of fields in the published table and in the pool's objects, where they differ from those of the pool.

| | key field `user.id`, beside a record `user` with a field `id` |
|---|---|
| in the pool | `user.id` |
| in its objects | `user:id` (`objects.containers.stored_names`) |
| in the table | `user_id`; without such a record it stays `user.id` |

Iceberg has one name for a field in a record and a field with a dot, and allows a file that has both to no reader.
Pure.
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
    """The key fields that the table calls otherwise, by field; and how objects name the fields of the key."""

    key: PoolKey
    table: Mapping[str, str] = field(default_factory=dict)

    def of_table(self, name: str) -> str:
        """The table's name of a field of the pool."""
        return self.table.get(name, name)

    def of_pool(self) -> dict[str, str]:
        """The field of each column that the table calls otherwise."""
        return {column: name for name, column in self.table.items()}

    def columns(self, schema: pa.Schema) -> pa.Schema:
        """Fields of the pool as the table names them."""
        return renamed(schema, self.table)

    def stored(self, schema: pa.Schema) -> pa.Schema:
        """Fields of the pool as an object with these fields names them."""
        return renamed(schema, stored_names(schema.names, self.key))

    def fields(self, schema: pa.Schema) -> dict[str, str]:
        """The field of each column that an object with these fields names otherwise."""
        return {column: name for name, column in stored_names(schema.names, self.key).items()}


def names_of(columns: pa.Schema, key: PoolKey) -> KeyNames:
    """The names in a table with these fields."""
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
    """Raises InvalidInput if a column is a field of the key in one object, and another field in another object."""
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
    """The paths of a field and of all fields inside of it."""
    path = (*above, column.name)
    yield path
    for part in parts_of(column.type):
        yield from inside(part, path)


def parts_of(kind: pa.DataType) -> list[pa.Field]:
    """The fields inside of a record, list or map, named as in Parquet; none of a plain type."""
    if pa.types.is_list(kind):
        return [kind.value_field.with_name("element")]
    if pa.types.is_map(kind):
        return [kind.key_field.with_name("key"), kind.item_field.with_name("value")]
    return list(kind) if pa.types.is_struct(kind) else []


def paths_of(column: T.NestedField, above: Path) -> Iterable[tuple[Path, tuple[int, T.IcebergType]]]:
    """The path, the id and the type of a column of a table and of all fields inside of it."""
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
