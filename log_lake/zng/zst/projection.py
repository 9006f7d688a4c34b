"""Chooses columns to read: makes a type and a map that have only the requested fields.

A field is named by its path, such as `id.orig_h`; naming a record selects all of its fields.  Fields keep the
order of the file.  A record without any requested field stays, as `{}`, so that no row is lost or shifted.  A
record type that loses fields loses its name too, because the name stands for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from log_lake.zng.types import Record, Type, plain
from log_lake.zng.zst.maps import FieldMap, RecordMap

Path: TypeAlias = tuple[str, ...]
"""The names on the way to a field."""


def projected(
    kind: Type, record_map: RecordMap, fields: Sequence[str | Path] | None
) -> tuple[Type, RecordMap]:
    """Returns the type and the map with only these fields, or with all fields if `fields` is None."""
    return (
        (kind, record_map)
        if fields is None
        else _chosen(
            kind, record_map, [tuple(path.split(".")) if isinstance(path, str) else path for path in fields]
        )
    )


def _chosen(kind: Type, record_map: RecordMap, paths: list[Path]) -> tuple[Type, RecordMap]:
    record = plain(kind)
    assert isinstance(record, Record)
    names: list[str] = []
    types: list[Type] = []
    maps: list[FieldMap] = []
    for name, child, field in zip(record.names, record.children, record_map.fields, strict=True):
        below = [path[1:] for path in paths if path[0] == name]
        if not below:
            continue
        if () not in below:
            if not isinstance(plain(child), Record):
                continue
            if field.column is None:
                empty = RecordMap(tuple(FieldMap(None, ()) for _ in plain(child).children))
                child, _ = _chosen(child, empty, below)
            else:
                assert isinstance(field.column, RecordMap)
                child, column = _chosen(child, field.column, below)
                field = FieldMap(column, field.presence)
        names.append(name)
        types.append(child)
        maps.append(field)
    if len(names) == len(record.names) and tuple(types) == record.children:
        return kind, record_map
    return Record(tuple(names), tuple(types)), RecordMap(tuple(maps))
