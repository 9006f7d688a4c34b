"""The first records of a pool, in the order of its key, as a page shows them.

The values are texts for people (`columns.json_text`), cut to a length that a cell holds.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyarrow as pa

from lake_core.naming import MAIN
from lake_core.phrases import printable
from lake_core.schemas.hidden import user_fields
from lake_core.values.types import is_json, show_type
from log_lake.columns.json_text import for_people
from log_lake.lake import Lake
from log_lake.lake.view import View

MAX_RECORDS = 20
"""How many records are shown: about a screen."""
MAX_FIELDS = 60
"""The most fields that are shown, the first of the pool; a record may have thousands."""
MAX_CELL = 160
"""The most characters of a value that are shown."""


class FirstRecords(msgspec.Struct, frozen=True):
    """The first records of a branch at a version: a row each, with None for a null.

    The fields of the key come first.  `left_out` counts the fields that are not shown.  `numbers` says which shown
    fields hold numbers.
    """

    version: int
    fields: list[str]
    types: list[str]
    numbers: list[bool]
    left_out: int
    rows: list[list[str | None]]
    more: bool


def sample_of(lake: Lake, name: str, *, branch: str = MAIN, version: int | None = None) -> FirstRecords:
    """Returns the first records of a pool or sub-pool.

    Raises NotFound (pool, branch, version), ObjectVacuumed, ObjectMissing, Corrupt, Unavailable.
    """
    pool = lake.pool(name)
    return sample(pool.at_branch(branch) if version is None else pool.at_version(version, branch=branch))


def sample(view: View, *, max_records: int = MAX_RECORDS, max_fields: int = MAX_FIELDS) -> FirstRecords:
    """Returns the first records of a view.  Raises as `sample_of` does."""
    names = view.key.names
    fields = sorted(
        user_fields(view.schema), key=lambda one: (one.name not in names, _place(one.name, names))
    )
    shown = fields[:max_fields]
    rows: list[list[str | None]] = []
    if shown:
        for table in view.scan(columns=[one.name for one in shown], limit=max_records + 1):
            columns = [_texts(table.column(one.name), one) for one in shown]
            rows += [[_cut(value) for value in row] for row in zip(*columns, strict=True)]
    return FirstRecords(
        view.version,
        [one.name for one in shown],
        [show_type(one) for one in shown],
        [_is_number(one.type) for one in shown],
        len(fields) - len(shown),
        rows[:max_records],
        len(rows) > max_records,
    )


def _place(name: str, names: Sequence[str]) -> int:
    """Returns the place of a field among the key's fields, which come first; all other fields keep their
    order."""
    return names.index(name) if name in names else 0


def _texts(column: pa.ChunkedArray, field: pa.Field) -> list[str | None]:
    """Returns the values as texts. Strings stay as they are, except for characters that cannot be printed, which
    are escaped."""
    is_text = pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
    if not is_text or is_json(field):
        return for_people(column, field)
    return [None if value is None else printable(value) for value in column.to_pylist()]


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _cut(value: str | None) -> str | None:
    return value if value is None or len(value) <= MAX_CELL else value[: MAX_CELL - 1] + "…"
