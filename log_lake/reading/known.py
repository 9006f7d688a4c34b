"""Decides which references of a plan must be read for a count, a minimum or a maximum.

A reference is known if its statistics describe exactly the records that readers see.  A reference must be read
if a delete or a filter may hide some of its records, if it may have delete markers, or if it shares keys with
another one in a pool that combines equal keys.  So no reference that must be read shares a key with a known
one.  Pure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import pyarrow as pa

from lake_core.errors import InvalidInput
from lake_core.history import Reference
from lake_core.keys.encoding import class_of, key_class
from lake_core.schemas.hidden import DELETED
from log_lake.objects.statistics import exact_value
from log_lake.reading.covers import Covering
from log_lake.reading.filters import SETTING_OF
from log_lake.reading.merge.bounds import exact_scalar
from log_lake.reading.plan import ScanPlan, sharing

DELETE, MARKERS, SHARED = (
    "a delete may hide records",
    "it may hold delete markers",
    "it shares keys with another object",
)
"""Why a reference must be read, besides the pool's filters."""

BY_FILTER = {id: f"{setting} may hide records" for id, setting in SETTING_OF.items()}
"""Why a reference must be read if only filters may hide some of its records, by the id of a filter's tombstone."""


@dataclass(frozen=True)
class Known:
    """The references of a plan, divided into those whose statistics count, and those that must be read, each with
    the reason."""

    references: tuple[Reference, ...]
    read: tuple[tuple[Reference, str], ...] = ()


def known_references(plan: ScanPlan) -> Known:
    """Divides the references of a plan for all records into known ones and those to read. In an append pool,
    references that deletes hide completely are left out.

    Raises Corrupt for a schema that is not known.
    """
    covering = Covering(plan.tombstones, plan.schemas.__getitem__)
    shared = set[int]() if plan.rule.keeps_all else sharing(plan.references)
    certain, read = list[Reference](), list[tuple[Reference, str]]()
    for place, reference in enumerate(plan.references):
        if place in shared:
            read.append((reference, SHARED))
        elif plan.tombstones and (covers := covering.of(reference)).tombstones:
            if not (plan.rule.keeps_all and covers.hide_all(upsert=False)):
                of_filters = [BY_FILTER.get(tombstone.id, DELETE) for tombstone in covers.tombstones]
                read.append((reference, DELETE if DELETE in of_filters else of_filters[0]))
        elif plan.rule.kind == "upsert" and _may_have_markers(reference, plan.schemas[reference.schema]):
            read.append((reference, MARKERS))
        else:
            certain.append(reference)
    return Known(tuple(certain), tuple(read))


def _may_have_markers(reference: Reference, schema: pa.Schema) -> bool:
    column = FieldStatistics.of(reference, DELETED, schema)
    return column is None or column.nulls < reference.records


@dataclass(frozen=True)
class FieldStatistics:
    """How many records of a reference lack a field, and the encoded bounds of the values that its other records
    have.

    The bounds are at or below, and at or above, every value except NaN; None means that a bound is not known.
    """

    nulls: int
    low: bytes | None = None
    high: bytes | None = None

    @classmethod
    def of(cls, reference: Reference, name: str, schema: pa.Schema) -> FieldStatistics | None:
        """Returns the statistics of a top-level field.  Returns None if the reference has none for it, or has
        impossible ones.

        `schema` is the schema of the reference.
        """
        if name not in schema.names:
            return cls(reference.records)
        column = next((c for c in reference.columns if c.name == name), None)
        if column is None or column.nulls > reference.records:
            return None
        low, high = column.low, column.high
        if low is None or high is None:
            return cls(column.nulls)
        return cls(column.nulls, low, high) if column.nulls < reference.records and low <= high else None


def value_in(bound: bytes | None, kind: pa.DataType) -> pa.Scalar | None:
    """Returns the value of a bound in a field's type.  Returns None if the bound was shortened, is not of that
    type, or is 0.0 or NaN.

    Statistics do not distinguish -0.0 from 0.0.
    """
    value = None if bound is None else exact_value(bound)
    try:
        if value is None or class_of(value) != key_class(kind):
            return None
        if not pa.types.is_floating(kind):
            return exact_scalar(value, kind)
        return None if value == 0 or math.isnan(value) else pa.scalar(float(value), kind)
    except (pa.ArrowException, InvalidInput, OverflowError, TypeError, ValueError):
        return None
