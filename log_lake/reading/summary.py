"""Counts and bounds of a revision, from its state. Objects are opened only if the caller wants that, and only
those whose statistics do not suffice.

Every reference has the number of its records, and for each field the number of nulls and the bounds.  They
describe all records in the object, so they are exact if nothing hides or combines any (`known`).  A bound of
one field may still be unknown: a long text is shortened, NaN is in no bound but comes after all numbers, and
types without an order have no bounds.  Pure.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from lake_core.history import Reference
from lake_core.keys import PoolKey
from lake_core.keys.encoding import Value, decode_key, encode_value
from lake_core.phrases import counted
from lake_core.schemas.hidden import DELETED
from lake_core.values.types import is_json
from log_lake.objects.statistics import column_statistics, exact_value
from log_lake.reading.known import (
    BY_FILTER,
    DELETE,
    MARKERS,
    SHARED,
    FieldStatistics,
    known_references,
    value_in,
)
from log_lake.reading.live import live_count_of
from log_lake.reading.plan import ScanPlan
from log_lake.reading.revision import Revision


@dataclass(frozen=True)
class FieldSummary:
    """The summary of one field: the number of records without it, its least and its greatest value; None means not
    known.

    The two values are also None if no record has the field.
    """

    nulls: int
    low: Value = None
    high: Value = None


@dataclass(frozen=True)
class Summary:
    """The summary of a revision: the number of its records, and its fields by name.

    `records` is None if the state does not show it; readers then see at most `at_most`.  There are no fields if
    something may hide or combine records, and nothing was read; `why` gives the reason.
    """

    version: int
    records: int | None
    fields: dict[str, FieldSummary] = field(default_factory=dict)
    why: str = ""
    at_most: int | None = None


@dataclass(frozen=True)
class KeyEnds:
    """The number of records of a revision, and the least and the greatest value of the first field of its key."""

    records: int
    low: pa.Scalar | None = None
    high: pa.Scalar | None = None


_Part = tuple[int, dict[str, FieldStatistics]]
"""The number of records of a part, and the statistics of their fields."""


def summarize(
    revision: Revision, plan: ScanPlan, *, read: Callable[[ScanPlan], Iterable[pa.Table]] | None = None
) -> Summary:
    """Returns the summary of a revision; `plan` must be its plan for all records.

    `read` yields the records of a plan; without it, the summary has no fields if some object would have to be
    read.

    Raises Corrupt, Unavailable (checkpoints are read), and what `read` raises.
    """
    certain = known_references(plan)
    parts, without = list[_Part](), list[Reference]()
    for reference in certain.references:
        schema = plan.schemas[reference.schema]
        named = ((plan.names.of_stored(name), name) for name in schema.names)
        statistics = {
            name: FieldStatistics.of(reference, stored, schema) for name, stored in named if name is not None
        }
        if None in statistics.values():
            without.append(reference)
        parts.append((reference.records, {name: one for name, one in statistics.items() if one}))
    to_read = (*without, *(reference for reference, _ in certain.read))
    if to_read and read is None:
        live = live_count_of(revision, plan.references)
        why = _why(revision, [reason for _, reason in certain.read])
        return Summary(
            revision.version, live.records if live.is_exact else None, why=why, at_most=live.records
        )
    if to_read and read is not None:
        missing = set(without)
        parts = [part for part, one in zip(parts, certain.references, strict=True) if one not in missing]
        parts += map(_part, read(replace(plan, references=tuple(sorted(to_read, key=lambda r: r.order)))))
    records = sum(count for count, _ in parts)
    hidden = {DELETED} if revision.rule.kind == "upsert" else set()
    fields = {one.name: _of_field(one, parts) for one in revision.schema if one.name not in hidden}
    return Summary(revision.version, records, fields, at_most=records)


def key_ends(revision: Revision, *, wants_values: bool) -> KeyEnds | None:
    """Returns the number of records, and the least and the greatest value of the first key field, without visiting
    each reference.

    Returns None if a delete, a filter or the pool's kind may hide or combine records, or if the ends of the
    key do not show the values of its first field: for null, doubles, and paths into records.  Raises Corrupt,
    Unavailable.
    """
    if not revision.rule.keeps_all or revision.tombstones or revision.filters:
        return None
    totals = revision.snapshot.totals(revision.sub_pool)
    if not wants_values or not totals.references:
        return KeyEnds(totals.records)
    key, ends = revision.key, revision.snapshot.ends(sub_pool=revision.sub_pool)
    if ends is None or not key.fields or key.fields[0].name not in revision.schema.names:
        return None
    kind = revision.schema.field(key.fields[0].name).type
    if pa.types.is_floating(kind):
        return None
    (least, *_), (most, *_) = reversed(ends) if key.fields[0].descending else ends
    bounds = [_leading(least, key, greatest=False), _leading(most, key, greatest=True)]
    for reference, bound, column in zip((least, most), bounds, ("low", "high"), strict=True):
        schema = revision.state.schema(reference.schema)
        statistics = FieldStatistics.of(reference, key.fields[0].name, schema)
        if statistics is None or (statistics.low if column == "low" else statistics.high) != bound:
            return None  # a bound that was cut, or that is damaged
    low, high = (value_in(bound, kind) for bound in bounds)
    return None if low is None or high is None else KeyEnds(totals.records, low, high)


def _leading(reference: Reference, key: PoolKey, *, greatest: bool) -> bytes | None:
    """Returns the encoded value of the key's first field at one end of a reference; None if it is null
    there."""
    bound = reference.low if greatest == key.fields[0].descending else reference.high
    values = decode_key(bound, key)
    return encode_value(values[0]) if values and values[0] is not None else None


def _why(revision: Revision, reasons: Sequence[str]) -> str:
    """Returns why the state does not suffice, in words."""
    if SHARED in reasons or MARKERS in reasons:
        return f"records of equal keys are combined ({revision.rule.kind})"
    if DELETE in reasons:
        open_deletes = [t for t in revision.tombstones if revision.may_hide(t)]
        return f"{counted(len(open_deletes), 'delete')} may still hide records (lake tombstones removes them)"
    by_filter = [reason for reason in BY_FILTER.values() if reason in reasons]
    return by_filter[0] if by_filter else "some objects have no statistics of a field"


def _part(table: pa.Table) -> _Part:
    columns = column_statistics(table, longest=sys.maxsize)
    return table.num_rows, {c.name: FieldStatistics(c.nulls, c.low, c.high) for c in columns}


def _of_field(one: pa.Field, parts: Sequence[_Part]) -> FieldSummary:
    nulls, having = 0, list[FieldStatistics]()
    for records, statistics in parts:
        of_part = statistics.get(one.name)
        nulls += records if of_part is None else of_part.nulls
        if of_part is not None and of_part.nulls < records:
            having.append(of_part)
    if not having or is_json(one):
        return FieldSummary(nulls)
    lows, highs = [of_part.low for of_part in having], [of_part.high for of_part in having]
    low = None if None in lows else exact_value(min(bound for bound in lows if bound is not None))
    if pa.types.is_floating(one.type) or None in highs:  # NaN may be there
        return FieldSummary(nulls, low)
    return FieldSummary(nulls, low, exact_value(max(bound for bound in highs if bound is not None)))
