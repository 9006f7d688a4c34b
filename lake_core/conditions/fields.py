"""Finding the field of a schema that a path names.

The first part is a field of the pool by its exact name; each further part is a field inside of the record before.
A bare name with dots may be a name or a path: `id.orig_h` is the field of exactly that name if there is one.
Otherwise it is cut into a path, at each level after the longest name that leads to a field.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lake_core.records.conditions import DEEPEST, Called, Compare, Condition, In, IsNull, Path, members
from lake_core.values.types import is_json


def top_level(condition: Condition) -> tuple[str, ...]:
    """Returns the fields of the pool that a condition reads, each once.  The condition must be checked already."""
    return tuple(dict.fromkeys(path[0] for path in paths(condition)))


def paths(condition: Condition) -> Iterator[Path]:
    """Yields the fields that a condition reads, from left to right."""
    if isinstance(condition, Compare | In | IsNull):
        yield condition.field
    if isinstance(condition, Called):
        yield from ((name,) for name in condition.fields)
    for member in members(condition):
        yield from paths(member)


def find_field(schema: pa.Schema, path: Path) -> tuple[pa.Field | None, Path]:
    """Returns the field at the path; None if there is no such field.  If a field of JSON lies on the way, returns
    that field, and the rest of the path."""
    fields: pa.Schema | pa.StructType = schema
    field = None
    for depth, name in enumerate(path, 1):
        index = fields.get_field_index(name)
        if index < 0:
            return None, ()
        field = fields.field(index)
        if is_json(field):
            return field, path[depth:]
        fields = field.type if pa.types.is_struct(field.type) else pa.schema([])
    return field, ()


def resolve(schema: pa.Schema, written: Path) -> Path | None:
    """Returns the path that a written field means, perhaps into JSON; None if there is no such field."""
    if len(written) > 1:
        return written if find_field(schema, written)[0] is not None else None
    parts = written[0].split(".")
    if len(parts) > DEEPEST:  # no path has more parts
        return written if written[0] in schema.names else None
    return _cut(schema, parts)


def _cut(fields: pa.Schema | pa.StructType, parts: list[str]) -> Path | None:
    for size in range(len(parts), 0, -1):
        name, rest = ".".join(parts[:size]), parts[size:]
        index = fields.get_field_index(name)
        if index < 0:
            continue
        field = fields.field(index)
        if not rest or is_json(field):
            return (name, *rest)
        inner = _cut(field.type, rest) if pa.types.is_struct(field.type) else None
        if inner is not None:
            return (name, *inner)
    return None
