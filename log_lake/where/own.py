"""Functions of a user's own that conditions call: which records a filter keeps, decided by an installed package.

A package names such a function in its entry points; a program may also `register` one for itself.

    [project.entry-points."log_lake.filters"]
    clean = "acme.filters:CLEAN"

    CLEAN = OwnFilter(version=3, keeps=lambda records: pc.not_equal(records["level"], "debug"))

What a function must promise: its answer for a record depends on that record's values of the named fields alone, and
under one version it never changes.  Readers and compaction apply it any number of times, in any process, to
any division of the records into tables.  So a function that is missing, or has another version, is an error and
never left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points

import pyarrow as pa

from lake_core.errors import InvalidInput
from lake_core.keys.encoding import Value, class_of, from_array, key_class
from lake_core.records.conditions import Called
from lake_core.values.types import declared_field, is_json
from log_lake.texts.floor import floor
from log_lake.texts.typed_json import value_of

GROUP = "log_lake.filters"
"""The group of entry points in which packages name their functions."""


@dataclass(frozen=True)
class OwnFilter:
    """A function that says which records are kept, and its version, a whole number.

    `keeps` gets a table with the fields that the pool's setting names, in the types that the pool declares, and
    returns a boolean for each record; null counts as false.
    """

    version: int
    keeps: Callable[[pa.Table], pa.Array | pa.ChunkedArray]


_registered: dict[str, OwnFilter] = {}


def register(name: str, filter: OwnFilter) -> None:
    """Adds a function under a free name, in this process.  Raises InvalidInput."""
    if name in names():
        raise InvalidInput(f"filter {name!r} exists already: use another name")
    _registered[name] = filter


def names() -> tuple[str, ...]:
    """Returns the names of the functions that are there, in alphabetical order."""
    return tuple(sorted({*_registered, *(point.name for point in entry_points(group=GROUP))}))


def find_filter(name: str, version: int) -> OwnFilter:
    """Returns the function of that name and version.  Raises InvalidInput if it is not installed."""
    own = _registered.get(name) or _installed(name)
    if own is None:
        raise InvalidInput(
            f"keep.by={name}@{version}: no installed package has the filter {name!r}; install the package on every "
            "machine that reads the pool"
        )
    if own.version != version:
        raise InvalidInput(
            f"keep.by={name}@{version}: the installed filter {name!r} has version {own.version}; install version "
            f"{version}, or set keep.by to the new one"
        )
    return own


@lru_cache(maxsize=64)
def _installed(name: str) -> OwnFilter | None:
    """Returns the function that a package names; None if none does.  Cached, because each batch asks."""
    for point in entry_points(group=GROUP, name=name):
        try:
            own = point.load()
        except Exception as error:  # whatever the package raises when it is imported
            raise InvalidInput(
                f"filter {name!r}: {point.value} cannot be imported: {error}; mend the package"
            ) from error
        if not isinstance(own, OwnFilter):
            raise InvalidInput(f"filter {name!r}: {point.value} is no OwnFilter; mend the package")
        return own
    return None


def called(condition: Called, records: pa.Table | pa.RecordBatch) -> pa.ChunkedArray:
    """Returns for each record whether the function keeps it.

    Raises InvalidInput if the function is not installed in this version, fails, or returns something else.
    """
    own = find_filter(condition.function, condition.version)
    what = f"keep.by={condition.function}@{condition.version}"
    table = pa.table(
        {
            name: _in_type(records, field, _declared(name, text, what=what))
            for field, name, text in zip(condition.fields, condition.names, condition.types, strict=True)
        }
    )
    try:
        answer = own.keeps(table)
    except Exception as error:  # whatever the function raises
        raise InvalidInput(f"{what}: the filter failed: {type(error).__name__}: {error}; mend it") from error
    is_column = isinstance(answer, pa.Array | pa.ChunkedArray) and pa.types.is_boolean(answer.type)
    if not is_column or len(answer) != table.num_rows:
        raise InvalidInput(
            f"{what}: the filter must return a boolean for each of the {table.num_rows} records; mend it"
        )
    return answer if isinstance(answer, pa.ChunkedArray) else pa.chunked_array([answer])


def _declared(name: str, text: str, *, what: str) -> pa.DataType:
    """Returns the declared type of a field.  Raises InvalidInput if it has none."""
    if not text:
        raise InvalidInput(
            f"{what}: field {name!r} has no declared type; declare it (lake set POOL type.{name}=TYPE)"
        )
    return declared_field(name, text).type


def _in_type(records: pa.Table | pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Returns a field in a type; null for a value that this type does not hold exactly."""
    if (at := records.schema.get_field_index(name)) < 0:
        return pa.nulls(records.num_rows, kind)
    field, column = records.schema.field(at), records.column(at)
    if field.type == kind and not is_json(field):
        return column
    values = (
        [None if one is None else value_of(one) for one in column.to_pylist()]
        if is_json(field)
        else from_array(column)
    )
    return pa.array([_held(value, kind) for value in values], kind)


def _held(value: Value, kind: pa.DataType) -> pa.Scalar | None:
    try:
        is_alike = value is not None and class_of(value) == key_class(kind)
    except InvalidInput:  # a record or a list
        is_alike = False
    floored = floor(value, kind) if is_alike else None
    return floored[0] if floored is not None and floored[1] else None
