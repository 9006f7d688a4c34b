"""Describes what a load changes in the fields of its branch (decision 250).

The fields are compared with those of the version on which the load began.  Called by `loads`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lake_core.phrases import counted, listed
from lake_core.records import AddObject
from lake_core.schemas.change import FieldChange, changes
from lake_core.schemas.schema import schema_id
from lake_core.values.types import show_type
from log_lake.fields.names import SAME, FieldNames
from log_lake.loading.misfits import Misfits

MOST_LINES = 20
"""The most fields with another type that a load names."""

METADATA = "retyped"
"""The metadata in which a load records the fields whose type it changed, for `lake log`, unless the user gave
metadata of that name."""

_MOST_RECORDED = 2_000
"""The most characters of that text: metadata is a part of the journal."""


@dataclass(frozen=True)
class FieldChanges:
    """What a load changes in the fields of its branch, as lines: one for each field that gets another type, and
    one for all new fields."""

    lines: tuple[str, ...] = ()
    retyped: int = 0

    @property
    def metadata(self) -> dict[str, str]:
        """Returns the metadata by which the transaction records the changes; empty if no field gets another
        type."""
        if not self.retyped:
            return {}
        text = "; ".join(line.removeprefix("field ") for line in self.lines[: min(self.retyped, MOST_LINES)])
        return {METADATA: text if len(text) <= _MOST_RECORDED else text[: _MOST_RECORDED - 3] + "..."}


UNCHANGED = FieldChanges()


def field_changes(
    before: pa.Schema,
    objects: Sequence[AddObject],
    schemas: Iterable[pa.Schema],
    misfits: Misfits,
    names: FieldNames = SAME,
) -> FieldChanges:
    """Returns what new objects with these stored schemas change in the fields `before`, as readers see them.

    `misfits`: by field, how many records have a value that the field cannot hold; None if they were not
    counted.
    """
    own = [one for one in objects if not one.sub_pool]
    used = {one.schema for one in own}
    changed = changes(before, (names.shown(schema) for schema in schemas if schema_id(schema) in used))
    retyped = [one for one in changed if one.before is not None]
    records = sum(one.records for one in own)
    lines = [_line(one, misfits, records) for one in retyped[:MOST_LINES]]
    if more := len(retyped) - len(lines):
        lines.append(f"{counted(more, 'more field gets', 'more fields get')} another type")
    if new := [f"{one.path} {show_type(one.after)}" for one in changed if one.before is None]:
        lines.append(f"{counted(len(new), 'new field')}: {listed(new)}")
    return FieldChanges(tuple(lines), len(retyped))


def _line(change: FieldChange, misfits: Misfits, records: int) -> str:
    count = misfits.get(change.field)
    return f"{change.text} ({counted(count, 'record')} of {records:,})" if count else change.text
