"""Hidden columns: those that an object has besides the user's fields.

    _seq      the record's sequence: when it counts as written; in every object that a compaction wrote
    _place    the ordinal of the record's first object in its transaction; in the same objects
    _deleted  in upsert pools: true if the record is a delete marker, so that its key is absent

All records of a load have the sequence of its transaction, which is not known yet when they are written.  So
objects of loads have neither `_seq` nor `_place`.  A load with a field of a reserved name is refused.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from lake_core.errors import InvalidInput

SEQ, ORDINAL, DELETED = "_seq", "_place", "_deleted"

ORDER = pa.schema([(SEQ, pa.int64()), (ORDINAL, pa.int32())])
"""The columns that order records of equal keys; they follow the user's fields."""

_RESERVED = (SEQ, ORDINAL)


def check_names(names: Iterable[str]) -> None:
    """Raises InvalidInput if a user's field has a reserved name."""
    for name in names:
        if name in _RESERVED:
            raise InvalidInput(f"field {name!r}: the name is reserved; give the field another one")


def user_fields(schema: pa.Schema) -> pa.Schema:
    """The user's fields."""
    return pa.schema([field for field in schema if field.name not in _RESERVED])


def with_order(table: pa.Table, *, seq: int, ordinal: int) -> pa.Table:
    """The table with the sequence and ordinal that all its records have."""
    rows = table.num_rows
    return table.append_column(ORDER.field(0), pa.repeat(pa.scalar(seq, pa.int64()), rows)).append_column(
        ORDER.field(1), pa.repeat(pa.scalar(ordinal, pa.int32()), rows)
    )
