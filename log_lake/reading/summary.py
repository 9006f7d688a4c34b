"""Counts and bounds of a revision from its state alone: no object is opened.

Every reference has the number of its records, and of each field the nulls and bounds.  They count all records that
the objects hold, so they are exact only if nothing hides or combines any: in append pools, if no delete and no
`age_off` may still cover a record.  Otherwise the summary says why it has no figures.  A bound of one field may be
unknown by itself: a long text is stored cut, NaN is in no bound but comes after all numbers, and types without an
order have none.  Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lake_core.history import Reference
from lake_core.keys.encoding import Value
from lake_core.phrases import counted
from lake_core.values.types import is_json
from log_lake.objects.statistics import exact_value
from log_lake.reading.live import live_count
from log_lake.reading.revision import Revision


@dataclass(frozen=True)
class FieldSummary:
    """One field: the number of records without it, its least and its greatest value; None: not known.

    The two values are also None if no record has the field.
    """

    nulls: int
    low: Value = None
    high: Value = None


@dataclass(frozen=True)
class Summary:
    """A revision: the number of its records, and its fields by name.

    `records` is None if the state does not tell; then readers see `at_most` so many.  There are no fields if
    something may hide or combine records; `why` says what.
    """

    version: int
    records: int | None
    fields: dict[str, FieldSummary] = field(default_factory=dict)
    why: str = ""
    at_most: int | None = None


def summarize(revision: Revision) -> Summary:
    """The summary of a revision.  Raises Corrupt, Unavailable (checkpoints are read)."""
    if why := _unknown(revision):
        live = live_count(revision)
        return Summary(
            revision.version, live.records if live.is_exact else None, why=why, at_most=live.records
        )
    references = revision.references
    records = sum(reference.records for reference in references)
    fields = {one.name: _of_field(one, references) for one in revision.schema}
    return Summary(revision.version, records, fields, at_most=records)


def _unknown(revision: Revision) -> str:
    """Why the state does not tell; "" if it does."""
    if not revision.rule.keeps_all:
        return f"records of equal keys are combined ({revision.rule.kind})"
    open_deletes = [t for t in revision.tombstones if revision.may_hide(t)]
    if open_deletes:
        return f"{counted(len(open_deletes), 'delete')} may still hide records (lake tombstones removes them)"
    if any(revision.may_hide(t) for t in revision.aged_off):
        return "age_off may hide records"
    return ""


def _of_field(one: pa.Field, references: Sequence[Reference]) -> FieldSummary:
    columns = []
    nulls = 0
    for reference in references:
        column = next((c for c in reference.columns if c.name == one.name), None)
        nulls += reference.records if column is None else column.nulls
        if column is not None and column.nulls < reference.records:
            columns.append(column)
    if not columns or is_json(one):
        return FieldSummary(nulls)
    lows, highs = [column.low for column in columns], [column.high for column in columns]
    low = None if None in lows else exact_value(min(bound for bound in lows if bound is not None))
    if pa.types.is_floating(one.type) or None in highs:  # NaN may be there
        return FieldSummary(nulls, low)
    return FieldSummary(nulls, low, exact_value(max(bound for bound in highs if bound is not None)))
