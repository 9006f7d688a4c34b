"""The first records of a pool, in the order of its key, as a page shows them.

The values are texts for people (`columns.json_text`), cut to a length that a cell holds.
"""

from __future__ import annotations

import msgspec
import pyarrow as pa

from lake_core.naming import MAIN
from lake_core.schemas.hidden import user_fields
from lake_core.values.types import show_type
from log_lake.columns.json_text import for_people
from log_lake.lake import Lake
from log_lake.lake.view import View

MAX_RECORDS = 20
"""Records that are shown: about a screen."""
MAX_FIELDS = 60
"""Fields that are shown, the first of the pool; a record may have thousands."""
MAX_CELL = 160
"""Characters of a value that are shown."""


class Sample(msgspec.Struct, frozen=True):
    """The first records of a branch at a version: a row each, with None for a null.

    `left_out` counts the fields that are not shown; `numbers` says of each shown field whether it holds numbers.
    """

    version: int
    fields: list[str]
    types: list[str]
    numbers: list[bool]
    left_out: int
    rows: list[list[str | None]]
    more: bool


def sample_of(lake: Lake, name: str, *, branch: str = MAIN, version: int | None = None) -> Sample:
    """The first records of a pool or sub-pool.

    Raises NotFound (pool, branch, version), ObjectVacuumed, ObjectMissing, Corrupt, Unavailable.
    """
    pool = lake.pool(name)
    return sample(pool.at_branch(branch) if version is None else pool.at_version(version, branch=branch))


def sample(view: View, *, max_records: int = MAX_RECORDS, max_fields: int = MAX_FIELDS) -> Sample:
    """The first records of a view.  Raises as `sample_of` does."""
    fields = list(user_fields(view.schema))
    shown = fields[:max_fields]
    rows: list[list[str | None]] = []
    if shown:
        for table in view.scan(columns=[one.name for one in shown], limit=max_records + 1):
            columns = [for_people(table.column(one.name), one) for one in shown]
            rows += [[_cut(value) for value in row] for row in zip(*columns, strict=True)]
    return Sample(
        view.version,
        [one.name for one in shown],
        [show_type(one) for one in shown],
        [_is_number(one.type) for one in shown],
        len(fields) - len(shown),
        rows[:max_records],
        len(rows) > max_records,
    )


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _cut(value: str | None) -> str | None:
    return value if value is None or len(value) <= MAX_CELL else value[: MAX_CELL - 1] + "…"
