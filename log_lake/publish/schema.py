"""Makes the schema of a published table: its columns with their ids, the name mapping, the sort order.

A column keeps its id in later tables.  It gets a new id if its type changes to one that Iceberg does not regard
as wider.  The lake's objects contain no ids: readers find columns by the names in the mapping.

An id belongs to a stored name.  So a column that is renamed keeps its id, and a new field with the name of a
dropped one gets another id.  In this module, paths begin with the stored name of a field.  Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyiceberg import types as T
from pyiceberg.schema import Schema
from pyiceberg.table.name_mapping import MappedField, NameMapping, parse_mapping_from_json
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.transforms import IdentityTransform

from lake_core.errors import InvalidInput
from lake_core.records.conditions import Path
from log_lake.publish.fields import is_wider, plain_type
from log_lake.publish.names import TableNames, inside, parts_of, paths_of


@dataclass
class ColumnIds:
    """Assigns ids to columns: the ids that earlier tables used, otherwise new ones.

    For columns of earlier tables it also knows the types.  `last` is the greatest id that was ever used.
    """

    before: Mapping[Path, tuple[int, T.IcebergType | None]]
    last: int
    assigned: dict[Path, int] = field(default_factory=dict)

    def of(self, path: Path, kind: T.IcebergType | None = None) -> int:
        """Returns the id of a path; `kind` is the type of a plain column, None for a record, a list or a
        map."""
        id, earlier = self.before.get(path, (0, None))
        fits = earlier is None or (kind is None) == (not isinstance(earlier, T.PrimitiveType))
        if kind is not None and earlier is not None:
            fits = fits and is_wider(kind, earlier)
        if not id or not fits or id in self.assigned.values():
            self.last += 1
            id = self.last
        self.assigned[path] = id
        return id


def ids_of(schemas: Iterable[Schema], mapping: str, last: int, names: TableNames) -> ColumnIds:
    """Returns the ids that earlier tables used.

    `schemas`: the schemas of earlier tables, newest last; `mapping`: their name mapping, "" if there is none;
    `last`: the greatest id that was ever used; `names`: those of the next table.
    """
    before: dict[Path, tuple[int, T.IcebergType | None]] = {}
    mapped = parse_mapping_from_json(mapping).root if mapping else ()
    stored = {one.field_id: names.of_column(one.names[0]) for one in mapped}
    for path, id in _mapped(mapped, ()):
        before[path] = (id, None)
    for schema in schemas:
        for column in schema.fields:
            name = stored.get(column.field_id) or names.of_earlier(column.name)
            before |= {(name, *inside): id for (_, *inside), id in paths_of(column, ())}
    return ColumnIds(before, last)


def table_schema(columns: pa.Schema, ids: ColumnIds, names: TableNames, *, schema_id: int) -> Schema:
    """Returns the schema of the table; `columns` have stored names."""
    own = [_column(column, (column.name,), ids, name=names.of_table(column.name)) for column in columns]
    return Schema(*own, schema_id=schema_id)


def _column(column: pa.Field, path: Path, ids: ColumnIds, *, name: str) -> T.NestedField:
    plain = plain_type(column.type)
    id = ids.of(path, plain)
    kind = plain if plain is not None else _nested(column.type, path, ids)
    return T.NestedField(field_id=id, name=name, field_type=kind, required=False)


def _nested(kind: pa.DataType, path: Path, ids: ColumnIds) -> T.IcebergType:
    if pa.types.is_struct(kind):
        return T.StructType(
            *(_column(member, (*path, member.name), ids, name=member.name) for member in kind)
        )
    parts = [_column(part, (*path, part.name), ids, name=part.name) for part in parts_of(kind)]
    if pa.types.is_list(kind):
        (item,) = parts
        return T.ListType(element_id=item.field_id, element_type=item.field_type, element_required=False)
    key, value = parts
    return T.MapType(
        key_id=key.field_id,
        key_type=key.field_type,
        value_id=value.field_id,
        value_type=value.field_type,
        value_required=False,
    )


def check_paths(columns: pa.Schema, stored: Iterable[pa.Schema], *, pool_name: str) -> None:
    """Raises InvalidInput if readers would confuse two fields, because their paths, written with dots, are
    equal.

    Readers index the columns of the table and ignore case.  They index all fields of its objects by their stored
    names, even those that the table leaves out.
    """
    of_objects: dict[str, Path] = {}
    for path in dict.fromkeys(path for schema in stored for column in schema for path in inside(column, ())):
        other = of_objects.setdefault(".".join(path), path)
        if other != path:
            raise InvalidInput(
                f"pool {pool_name!r}: fields {_shown(other)} and {_shown(path)} have one name in Iceberg, "
                f"{'.'.join(path)!r}, and readers open objects as a whole; publish a pool with another name for one"
            )
    of_table: dict[str, Path] = {}
    for path in (path for column in columns for path in inside(column, ())):
        other = of_table.setdefault(".".join(path).casefold(), path)
        if other != path:
            raise InvalidInput(
                f"pool {pool_name!r}: field {_shown(path)} differs from {_shown(other)} in case only, which "
                f"readers do not tell apart; leave it out (--without {path[0]})"
            )


def _shown(path: Path) -> str:
    return " in ".join(repr(name) for name in reversed(path))


# --- the name mapping


def name_mapping(stored: Iterable[pa.Schema], ids: ColumnIds, names: TableNames) -> str:
    """Returns the names by which readers find the columns, as a property of the table; `stored` are schemas of the
    pool.

    It also has the columns of objects that are not in the table, with ids that no schema uses: pyiceberg opens
    an object only if it finds all its columns.  A key field is also listed under its own name, which objects of
    earlier programs have, unless a field inside a record has that name in Iceberg.
    """
    columns: dict[Path, dict[Path, Any]] = {}
    fields: dict[str, str] = {}
    taken: set[str] = set()
    for schema in stored:
        fields |= names.of_columns(schema)
        for column in names.stored(schema):
            _add_names(columns, column, (column.name,))
            taken |= {".".join(path) for path in inside(column, ())}
    mapped = _as_mapping(columns, ids, {(column,): (name,) for column, name in fields.items()})
    for one in mapped:
        name = fields.get(one.names[0])
        if name is not None and name not in taken:
            one.names.append(name)
    text: str = NameMapping(root=mapped).model_dump_json()
    return text


def names_inside(mapping: str) -> frozenset[str]:
    """Returns the names in the mapping of fields inside records, lists and maps."""
    paths = (path for path, _ in _mapped(parse_mapping_from_json(mapping).root, ()))
    return frozenset(".".join(path) for path in paths if len(path) > 1)


def _add_names(fields: dict[Path, dict[Path, Any]], column: pa.Field, path: Path) -> None:
    inside = fields.setdefault(path, {})
    for part in parts_of(column.type):
        _add_names(inside, part, (*path, part.name))


def _as_mapping(
    fields: Mapping[Path, dict[Path, Any]], ids: ColumnIds, columns: Mapping[Path, Path]
) -> list[MappedField]:
    """Returns the fields as a name mapping.  `columns`: the field's path of each column whose name in objects
    differs."""
    mapped = []
    for path, parts in fields.items():
        column = columns.get(path, path)
        id = ids.assigned[column] if column in ids.assigned else ids.of(column)
        mapped.append(MappedField(field_id=id, names=[path[-1]], fields=_as_mapping(parts, ids, columns)))
    return mapped


def _mapped(fields: Iterable[MappedField], above: Path) -> Iterable[tuple[Path, int]]:
    for one in fields:
        for path in ((*above, name) for name in one.names):
            yield path, one.field_id
            yield from _mapped(one.fields, path)


def sort_order(
    names: TableNames, schema: Schema, *, before: Iterable[SortOrder] = (), texts: Collection[str] = ()
) -> SortOrder:
    """Returns the order of records in each object, by those of the key's fields that the table has.

    If an earlier sort order is equal, that one is returned.  Null comes first in either direction.  The order
    ends before a float, because Iceberg sorts -0.0 before 0.0, and before a field that is text only in the
    table (`texts`).
    """
    fields = []
    for part in names.key.fields:
        column = next((c for c in schema.fields if c.name == names.of_table(part.name)), None)
        if column is None or part.name in texts or isinstance(column.field_type, T.FloatType | T.DoubleType):
            break
        direction = SortDirection.DESC if part.descending else SortDirection.ASC
        fields.append(SortField(column.field_id, IdentityTransform(), direction, NullOrder.NULLS_FIRST))
    orders = list(before)
    for order in orders:
        if order.fields == fields:
            return order
    if not fields:
        return SortOrder(order_id=0)
    return SortOrder(*fields, order_id=max((order.order_id for order in orders), default=0) + 1)
