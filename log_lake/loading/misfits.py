"""Counts the values of a load that the pool's fields cannot hold, so that the load changes the types of these
fields.

The builder counts them while it has the records, because the stored result no longer shows which values needed
the change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from lake_core.schemas.change import holds
from lake_core.schemas.hidden import DELETED, ROW
from lake_core.values.types import is_json

Misfits = Mapping[str, int | None]
"""By field: how many of its values the pool's field cannot hold; None if they were not counted."""

_BEGINS = (
    (pa.types.is_integer, "-0123456789"),
    (pa.types.is_floating, "-0123456789"),
    (pa.types.is_string, '"'),
    (pa.types.is_boolean, "tf"),
    (pa.types.is_list, "["),
    (pa.types.is_struct, "{"),
)
"""The first characters of typed JSON, by the class of the value. Texts of other classes begin like records."""


def misfits(table: pa.Table, fields: pa.Schema) -> dict[str, int | None]:
    """Returns by field how many of its values the pool's field cannot hold; None if the number is not known.

    Fields whose values all fit are left out.  For typed JSON, the beginning of the text shows the class of the
    value, so a load that changes a type needs only one more pass over the column.
    """
    targets = {target.name: target for target in fields}
    counts: dict[str, int | None] = {}
    for brought, column in zip(table.schema, table.columns, strict=True):
        target = targets.get(brought.name)
        if brought.name in (DELETED, *ROW.names) or (target is not None and holds(target, brought)):
            continue
        counts[brought.name] = _misfits(column, brought, target)
    return counts


def _misfits(column: pa.ChunkedArray, field: pa.Field, target: pa.Field | None) -> int | None:
    values = len(column) - column.null_count
    if target is None:
        return values
    if not is_json(field):
        if pa.types.is_integer(target.type) and pa.types.is_floating(field.type):
            return int(pc.sum(pc.not_equal(pc.floor(column), column)).as_py() or 0) or values
        return None if pa.types.is_nested(field.type) and pa.types.is_nested(target.type) else values
    begins = next((begins for is_kind, begins in _BEGINS if is_kind(target.type)), None)
    if begins is None:
        return None
    fits = pc.is_in(pc.utf8_slice_codeunits(column, 0, 1), pa.array(list(begins)))
    return values - int(pc.sum(fits).as_py() or 0) or None


def summed(parts: Iterable[Misfits]) -> Misfits:
    """Adds up by field how many values do not fit, over all objects; None for a field that was not counted in one
    of them."""
    sums: dict[str, int | None] = {}
    for part in parts:
        for name, count in part.items():
            before = sums.get(name, 0)
            sums[name] = None if count is None or before is None else before + count
    return sums
