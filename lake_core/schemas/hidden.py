r"""Hidden columns: those that an object has besides the user's fields.

    _seq      the record's sequence, which orders it in time; in every object that a compaction wrote
    _place    the ordinal of the record's first object in its transaction; in the same objects
    _deleted  in upsert pools: true if the record is a delete marker, so that its key is absent
    \0type    the digest of the record's ZNG type, null if only its fields define it
    \0body    the record's ZNG bytes, null with it; both in objects whose format keeps the types of records

All records of a load have the sequence of its transaction, which is not known yet when they are written.  So
objects of loads have neither `_seq` nor `_place`.  A load with a field of a reserved name is refused.  No
field's name can contain NUL.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pyarrow as pa

from lake_core.errors import InvalidInput

SEQ, ORDINAL, DELETED = "_seq", "_place", "_deleted"

ORDER = pa.schema([(SEQ, pa.int64()), (ORDINAL, pa.int32())])
"""The columns that order records of equal keys; they follow the user's fields."""

TYPE, BODY = "\0type", "\0body"

ROW = pa.schema([(TYPE, pa.binary()), (BODY, pa.binary())])
"""The columns that keep a record in its original form, beside the fields that queries use."""

_RESERVED = (SEQ, ORDINAL)
_HIDDEN = (*_RESERVED, TYPE, BODY)


def check_names(names: Iterable[str]) -> None:
    """Raises InvalidInput if a user's field has a reserved name."""
    for name in names:
        if name in _RESERVED:
            raise InvalidInput(f"field {name!r}: the name is reserved; give the field another one")


def user_fields(schema: pa.Schema) -> pa.Schema:
    """Returns the schema with the user's fields alone, without hidden columns."""
    return pa.schema([field for field in schema if field.name not in _HIDDEN])


def with_rows(schema: pa.Schema, keep: Collection[str] = ROW.names) -> pa.Schema:
    """Returns the schema with these columns of `ROW` added at its end."""
    return pa.schema([*schema, *(field for field in ROW if field.name in keep)])


def beside(table: pa.Table, rows: pa.Table) -> pa.Table:
    """Returns the table with the columns `ROW` for its records added from `rows`."""
    for field, column in zip(ROW, rows.select(ROW.names).columns, strict=True):
        table = table.append_column(field, column)
    return table


def without_rows(table: pa.Table) -> pa.Table:
    """Returns the table without the columns of `ROW`, so that only its fields describe its records."""
    here = [name for name in ROW.names if name in table.schema.names]
    return table.drop_columns(here) if here else table


def with_order(table: pa.Table, *, seq: int, ordinal: int) -> pa.Table:
    """Returns the table with two more columns: the sequence and the ordinal that all its records have."""
    rows = table.num_rows
    return table.append_column(ORDER.field(0), pa.repeat(pa.scalar(seq, pa.int64()), rows)).append_column(
        ORDER.field(1), pa.repeat(pa.scalar(ordinal, pa.int32()), rows)
    )
