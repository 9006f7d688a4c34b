"""Reassembly maps: which segments hold a column, in the shape of its type.

| column | map | as a value |
|---|---|---|
| record | for each field its column (None: always null) and its presence | `{a:{column:...,presence:...},...}` |
| array, set | elements, lengths | `{values:...,lengths:...}` |
| union | columns of its types, the selector | `{c0:...,c1:...,selector:...}` |
| all else | segments | `[{offset:int64,length:int32}]` |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from log_lake.zng.text import type_text
from log_lake.zng.types import INT32, INT64, NULL, UNSIGNED, Array, Record, Type, Union, plain
from log_lake.zng.wire import Cursor, as_signed, as_unsigned, container, corrupt, primitive, signed
from log_lake.zng.zst.layout import MAX_SEGMENT_LENGTH, Segment

SEGMENTS_TYPE = Array(Record(("offset", "length"), (INT64, INT32)))

Segments: TypeAlias = tuple[Segment, ...]


@dataclass(frozen=True)
class FieldMap:
    """A field of a record; `column` is None if the field is null in all records."""

    column: ColumnMap | None
    presence: Segments


@dataclass(frozen=True)
class RecordMap:
    """The fields of a record, by position."""

    fields: tuple[FieldMap, ...]


@dataclass(frozen=True)
class ListMap:
    """The elements of arrays or sets, and how many elements each has."""

    values: ColumnMap
    lengths: Segments


@dataclass(frozen=True)
class UnionMap:
    """The values of each type of a union, and the order in which the types occur."""

    columns: tuple[ColumnMap, ...]
    selector: Segments


ColumnMap: TypeAlias = Segments | RecordMap | ListMap | UnionMap


def segments_of(column_map: ColumnMap) -> Iterator[Segment]:
    """Yields all segments of a map."""
    match column_map:
        case RecordMap():
            for field in column_map.fields:
                if field.column is not None:
                    yield from segments_of(field.column)
                yield from field.presence
        case ListMap():
            yield from column_map.lengths
            yield from segments_of(column_map.values)
        case UnionMap():
            yield from column_map.selector
            for column in column_map.columns:
                yield from segments_of(column)
        case _:
            yield from column_map


# --- to values


def encoded_segments(segments: Segments) -> bytes:
    """Returns a list of segments as a tagged value."""
    pairs = (
        container(primitive(signed(segment.offset)) + primitive(signed(segment.length)))
        for segment in segments
    )
    return container(b"".join(pairs))


def encoded_map(kind: Type, column_map: ColumnMap) -> tuple[Type, bytes]:
    """Returns a map as a value: its type, and its bytes with their tag."""
    kind = plain(kind)
    match column_map:
        case RecordMap():
            assert isinstance(kind, Record)
            parts = [
                _encoded_field(child, field)
                for child, field in zip(kind.children, column_map.fields, strict=True)
            ]
            names = kind.names
        case ListMap():
            parts = [
                encoded_map(kind.children[0], column_map.values),
                (SEGMENTS_TYPE, encoded_segments(column_map.lengths)),
            ]
            names = ("values", "lengths")
        case UnionMap():
            parts = [
                encoded_map(child, column)
                for child, column in zip(kind.children, column_map.columns, strict=True)
            ]
            parts.append((SEGMENTS_TYPE, encoded_segments(column_map.selector)))
            names = (*(f"c{at}" for at in range(len(column_map.columns))), "selector")
        case _:
            return SEGMENTS_TYPE, encoded_segments(column_map)
    return Record(names, tuple(part for part, _ in parts)), container(b"".join(value for _, value in parts))


def _encoded_field(kind: Type, field: FieldMap) -> tuple[Type, bytes]:
    column = (NULL, primitive(None)) if field.column is None else encoded_map(kind, field.column)
    value = container(column[1] + encoded_segments(field.presence))
    return Record(("column", "presence"), (column[0], SEGMENTS_TYPE)), value


# --- from values


def read_segments(kind: Type, body: bytes | None, cursor: Cursor) -> Segments:
    """Returns the segments in a value; `cursor` is for the error."""
    inner = plain(kind.children[0]) if isinstance(kind, Array) else None
    if not isinstance(inner, Record) or inner.names != ("offset", "length") or body is None:
        raise cursor.corrupt(f"segments of type <{type_text(kind)}> instead of <{type_text(SEGMENTS_TYPE)}>")
    segments = []
    for pair in Cursor(body, name=cursor.name, offset=cursor.offset).values():
        numbers = list(Cursor(pair or b"", name=cursor.name, offset=cursor.offset).values())
        if len(numbers) != 2 or None in numbers:
            raise cursor.corrupt("a segment is not an offset and a length")
        offset, length = (
            (as_unsigned if plain(part) in UNSIGNED else as_signed)(number or b"")
            for part, number in zip(inner.children, numbers, strict=True)
        )
        segments.append(Segment(offset, length))
    return tuple(segments)


def read_map(kind: Type, map_type: Type, body: bytes | None, cursor: Cursor) -> ColumnMap:
    """Returns the map of a column of type `kind`, from a value of type `map_type`.  Raises Corrupt if it is not
    such a map."""
    match kind := plain(kind):
        case Record():
            fields = _values(map_type, body, cursor)
            if len(fields) != len(kind.children):
                raise cursor.corrupt(
                    f"a map of {len(fields)} fields, where the type has {len(kind.children)}"
                )
            return RecordMap(
                tuple(
                    _read_field(child, part, value, cursor)
                    for child, (_, part, value) in zip(kind.children, fields, strict=True)
                )
            )
        case Array():
            parts = _by_name(map_type, body, cursor, ("values", "lengths"))
            return ListMap(read_map(kind.inner, *parts[0], cursor), read_segments(*parts[1], cursor))
        case Union():
            names = (*(f"c{at}" for at in range(len(kind.children))), "selector")
            *columns, selector = _by_name(map_type, body, cursor, names)
            maps = (
                read_map(child, *part, cursor) for child, part in zip(kind.children, columns, strict=True)
            )
            return UnionMap(tuple(maps), read_segments(*selector, cursor))
    return read_segments(map_type, body, cursor)


def _read_field(kind: Type, map_type: Type, body: bytes | None, cursor: Cursor) -> FieldMap:
    column, presence = _by_name(map_type, body, cursor, ("column", "presence"))
    below = None if column[1] is None else read_map(kind, *column, cursor)
    return FieldMap(below, read_segments(*presence, cursor))


def _values(map_type: Type, body: bytes | None, cursor: Cursor) -> list[tuple[str, Type, bytes | None]]:
    if not isinstance(map_type, Record) or body is None:
        raise cursor.corrupt(f"a map of type {map_type!r} instead of a record")
    values = list(Cursor(body, name=cursor.name, offset=cursor.offset).values())
    if len(values) != len(map_type.names):
        raise cursor.corrupt(
            f"a map of {len(values)} values, where its type has {len(map_type.names)} fields"
        )
    return list(zip(map_type.names, map_type.children, values, strict=True))


def _by_name(
    map_type: Type, body: bytes | None, cursor: Cursor, names: tuple[str, ...]
) -> list[tuple[Type, bytes | None]]:
    values = {name: (kind, value) for name, kind, value in _values(map_type, body, cursor)}
    missing = [name for name in names if name not in values]
    if missing:
        raise cursor.corrupt(f"a map without the field {missing[0]!r}")
    return [values[name] for name in names]


def checked_segments(segments: list[Segment], *, data_bytes: int, name: str, offset: int) -> None:
    """Raises Corrupt unless the segments are inside the data section and do not overlap.

    Because they do not overlap, the segments together are never longer than the file, whatever lengths the file
    claims.
    """
    end = 0
    for segment in sorted(segments):
        if segment.offset < end or segment.length < 1 or segment.offset + segment.length > data_bytes:
            what = f"a segment of {segment.length:,} bytes at {segment.offset:,} is beyond the data or in another"
            raise corrupt(name, offset, what)
        if segment.length > MAX_SEGMENT_LENGTH:
            raise corrupt(
                name, offset, f"a segment of {segment.length:,} bytes; at most {MAX_SEGMENT_LENGTH:,}"
            )
        end = segment.offset + segment.length
