"""Reads ORC timestamps of all years: pyorc reads those that Arrow refuses, because Arrow's nanoseconds end in 1677
and 2262.

pyorc gives Python values, so it reads only fields with timestamps, from the first batch that Arrow refuses.
Times come as pairs of integers, and stay records of two fields until they are stored (`instants`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import pyarrow as pa

from log_lake.columns.nested import is_list, is_nested

SECONDS, NANOS = "seconds", "nanoseconds"
PAIR = pa.struct([(SECONDS, pa.int64()), (NANOS, pa.int64())])
_PAIRED = b"lake.pair"
"""Metadata of a field whose pairs stand for timestamps; its value is their zone."""

_BESIDE = "beside timestamps of the years before 1677 or after 2262"


def pair_zone(field: pa.Field) -> str | None:
    """Returns the zone of a field's timestamps if pyorc gave them as pairs of integers.  Returns "" if such
    timestamps have no zone, and None if the field has no pairs."""
    zone = (field.metadata or {}).get(_PAIRED)
    return None if zone is None else zone.decode()


def has_times(kind: pa.DataType) -> bool:
    """Whether there are timestamps in the type at any depth."""
    if is_nested(kind):
        return any(has_times(kind.field(at).type) for at in range(kind.num_fields))
    return bool(pa.types.is_timestamp(kind))


Columns = list[tuple[pa.Array, pa.Field]]
"""Some columns, each with its field."""


def are_plain(names: list[str]) -> bool:
    """Whether ORC's readers can find columns by these names: they read a dot as a path."""
    return all(name and "." not in name for name in names)


def read_pairs(file: BinaryIO, first: int, fields: list[pa.Field]) -> Callable[[int], Columns]:
    """Returns a function that reads the next records of the file; its argument says how many.  The records have
    only `fields`, with pairs of integers in place of timestamps.

    `first` is the number of the first record, from 0.  At the end of the file the function returns no columns.
    It raises what pyorc raises for a damaged file, and ValueError for types that pyorc does not distinguish and for
    text that is not UTF-8.
    """
    import pyorc

    class Times(pyorc.converters.ORCConverter):
        @staticmethod
        def from_orc(seconds: int, nanoseconds: int, timezone: Any) -> tuple[int, int]:
            return seconds, nanoseconds

    class Days(pyorc.converters.ORCConverter):
        @staticmethod
        def from_orc(days: int) -> int:
            return days

    converters: Any = {pyorc.TypeKind.TIMESTAMP: Times, pyorc.TypeKind.DATE: Days}
    converters[pyorc.TypeKind.TIMESTAMP_INSTANT] = Times
    file.seek(0)
    names = [field.name for field in fields]
    columns = names if are_plain(names) else None
    reader = pyorc.Reader(
        file, column_names=columns, struct_repr=pyorc.StructRepr.DICT, converters=converters
    )
    with _naming_texts(names):
        _check_maps(reader, fields)
    reader.seek(first)
    paired = [_paired(field) for field in fields]

    def read(count: int) -> Columns:
        with _naming_texts(names):
            rows: list[Any] = list(reader.read(count))
        if not rows:
            return []
        return [(pa.array([_python(row[one.name], one) for row in rows], one.type), one) for one in paired]

    return read


@contextmanager
def _naming_texts(names: list[str]) -> Iterator[None]:
    """Within the block an error of pyorc's, about text that is not UTF-8, names the fields."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(
            f"text that is not UTF-8, in a field of {', '.join(map(repr, names))}, {_BESIDE}"
        ) from error


def _check_maps(reader: Any, fields: list[pa.Field]) -> None:
    """Raises ValueError if a map of the file has the same key twice: pyorc's maps are dicts, and so lack an entry.

    The file's statistics say how many keys it has.  A file without statistics is not checked.
    """
    described, keys = reader.schema.fields, dict[int, int]()
    for field in fields:
        for key in _keys_of(described[field.name]):
            keys[key] = 0
    if not keys:
        return
    for row in reader:
        for field in fields:
            _count_keys(row[field.name], described[field.name], keys)
    for key, counted in keys.items():
        if reader[key].statistics.get("number_of_values", 0) > counted:
            raise ValueError(f"a map has the same key twice, {_BESIDE}")


def _keys_of(described: Any) -> Iterator[int]:
    """Yields the number of the key's column of each map in a type."""
    if hasattr(described, "key"):
        yield described.key.column_id
        yield from _keys_of(described.value)
    elif hasattr(described, "fields"):
        for member in described.fields.values():
            yield from _keys_of(member)
    elif hasattr(described, "type"):
        yield from _keys_of(described.type)


def _count_keys(value: Any, described: Any, keys: dict[int, int]) -> None:
    if value is None:
        return
    if hasattr(described, "key"):
        keys[described.key.column_id] += len(value) - (None in value)
        for item in value.values():
            _count_keys(item, described.value, keys)
    elif hasattr(described, "fields"):
        for name, member in described.fields.items():
            _count_keys(value[name], member, keys)
    elif hasattr(described, "type"):
        for item in value:
            _count_keys(item, described.type, keys)


def _paired(field: pa.Field) -> pa.Field:
    """Returns the field with pairs in place of timestamps."""
    kind = field.type
    if pa.types.is_timestamp(kind):
        return field.with_type(PAIR).with_metadata({_PAIRED: (kind.tz or "").encode()})
    if pa.types.is_struct(kind):
        return field.with_type(pa.struct([_paired(member) for member in kind]))
    if pa.types.is_map(kind):
        return field.with_type(pa.map_(_paired(kind.key_field), _paired(kind.item_field)))
    if is_list(kind):
        return field.with_type(pa.list_(_paired(kind.value_field)))
    if pa.types.is_union(kind):
        raise ValueError(f"field {field.name!r}: a union {_BESIDE}")
    return field


def _python(value: Any, field: pa.Field) -> Any:
    """Converts a value from pyorc to the form that Arrow accepts."""
    if value is None:
        return None
    kind = field.type
    if pair_zone(field) is not None:
        return {SECONDS: value[0], NANOS: value[1]}
    if pa.types.is_struct(kind):
        return {member.name: _python(value[member.name], member) for member in kind}
    if pa.types.is_map(kind):
        return [(_python(key, kind.key_field), _python(item, kind.item_field)) for key, item in value.items()]
    if is_list(kind):
        return [_python(item, kind.value_field) for item in value]
    return value
