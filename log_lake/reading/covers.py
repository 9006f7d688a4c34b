"""Finds the tombstones that may hide records of a reference, for many tombstones and many references.

To compare each tombstone with each reference would take as long as reading the objects, with a thousand
tombstones and a hundred references.  So the ages, key ranges and conditions of the tombstones are arrays, which
are compared with a reference at once.  A condition is compared by the interval of each field that it reads
(`where.keyrange`).  The statistics decide about the few that remain.  Called by scans, rewritings, publishers,
and native plans.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lake_core.conditions import top_level
from lake_core.conditions.classwise import CACHED, NULL_VALUE
from lake_core.history import Reference
from lake_core.history.tombstone import SchemaOf, Tombstone
from lake_core.keys import KeyField
from lake_core.keys.encoding import encode_value, key_class
from lake_core.records.conditions import And, Compare, Condition
from lake_core.values.types import is_json
from log_lake.columns.arrays import Mask
from log_lake.where.keyrange import ALL, FieldCut, FieldInterval, interval_of

FEW = 8
"""Up to this many tombstones are compared one by one."""

_NAN = encode_value(math.nan)


@dataclass(frozen=True)
class Covers:
    """The tombstones that may hide records of one reference, and those among them that certainly hide all of its
    records."""

    tombstones: tuple[Tombstone, ...] = ()
    whole: tuple[Tombstone, ...] = ()

    def hide_all(self, *, upsert: bool) -> bool:
        """Whether the tombstones certainly hide the whole reference, so that it need not be read.

        In upsert pools a record that a condition hides still hides older ones of its key.
        """
        return any(not (upsert and t.condition) for t in self.whole)


class Covering:
    """Many tombstones, arranged so that questions about many references are answered quickly."""

    def __init__(self, tombstones: Iterable[Tombstone], schema_of: SchemaOf) -> None:
        self._tombstones, self._schema_of = tuple(tombstones), schema_of
        self._of_schema = lru_cache(maxsize=None)(self._prepared)
        if len(self._tombstones) <= FEW:
            return
        self._versions = np.array([t.version for t in self._tombstones], np.int64)
        self._seqs = np.array([t.seq for t in self._tombstones], np.uint64)
        self._exact = np.array([t.exactly is not None for t in self._tombstones])
        self._ranges = _Spans([(t.low, t.high) for t in self._tombstones])

    def of(self, reference: Reference) -> Covers:
        """Returns the tombstones that may hide records of the reference.  Raises Corrupt for a schema that is not
        known."""
        if len(self._tombstones) <= FEW:
            few = [t for t in self._tombstones if t.may_cover(reference, self._schema_of)]
            return Covers(tuple(few), tuple(t for t in few if t.covers_all(reference, self._schema_of)))
        of_schema = self._of_schema(reference.schema)
        may = (self._versions > reference.applied) & ((self._seqs > reference.first_seq) | self._exact)
        may &= self._ranges.overlap(reference.low, reference.high)
        sure = may.copy()
        for of_field in of_schema.fields:
            of_field.narrow(may, sure, reference)
        covering, whole = list[Tombstone](), list[Tombstone]()
        for place in map(int, np.flatnonzero(may)):
            tombstone = self._tombstones[place]
            if (
                tombstone.reaches(reference)
                if of_schema.is_plain[place]
                else self._may_cover(place, reference)
            ):
                covering.append(tombstone)
                if sure[place] and tombstone.covers_all(reference, self._schema_of):
                    whole.append(tombstone)
        return Covers(tuple(covering), tuple(whole))

    def _may_cover(self, place: int, reference: Reference) -> bool:
        return self._tombstones[place].may_cover(reference, self._schema_of)

    def _prepared(self, schema_id: str) -> _OfSchema:
        schema = self._schema_of(schema_id)
        kinds = {
            field.name: key_class(field.type)
            for field in schema
            if not (is_json(field) or pa.types.is_nested(field.type))
        }
        intervals: dict[str, list[tuple[int, FieldInterval]]] = defaultdict(list)
        is_plain = np.ones(len(self._tombstones), np.bool_)
        for place, tombstone in enumerate(self._tombstones):
            if tombstone.condition is not None:
                plain, of_fields = _intervals(tombstone.condition, kinds)
                is_plain[place] = plain
                for name, interval in of_fields.items():
                    intervals[name].append((place, interval))
        fields = (
            _OfField(
                name,
                pa.types.is_floating(schema.field(name).type),
                np.array([place for place, _ in of_field]),
                _Spans([(interval.low, interval.high) for _, interval in of_field]),
            )
            for name, of_field in intervals.items()
        )
        return _OfSchema(tuple(fields), is_plain)


def _intervals(condition: Condition, kinds: Mapping[str, str]) -> tuple[bool, dict[str, FieldInterval]]:
    """Returns the interval of each field of the condition, and whether statistics can tell no more about it than
    these intervals do."""
    intervals = {
        name: _interval(condition, name, kinds[name]) for name in _fields(condition) if name in kinds
    }
    leaves = condition.of if isinstance(condition, And) else (condition,)
    by_name = {name: interval for name, interval in intervals.items() if interval != ALL}
    plain = all(isinstance(leaf, Compare) and leaf.field[0] in by_name for leaf in leaves)
    return plain, by_name


@lru_cache(maxsize=CACHED)
def _fields(condition: Condition) -> tuple[str, ...]:
    return top_level(condition)


@lru_cache(maxsize=CACHED)
def _interval(condition: Condition, name: str, kind: str) -> FieldInterval:
    """Returns the interval of a field.  Cached, because a pool's deletes are compared again at each scan and for
    each schema."""
    return interval_of(condition, KeyField(name), kind)


@dataclass(frozen=True)
class _OfSchema:
    """What the conditions say about references of one schema."""

    fields: tuple[_OfField, ...]
    is_plain: Mask
    """For each tombstone, whether statistics can tell no more about it than the intervals of its fields do."""


@dataclass(frozen=True)
class _OfField:
    """The intervals that the conditions of tombstones set for one field; `places` are the indices of these
    tombstones."""

    name: str
    is_floating: bool
    places: npt.NDArray[np.int64]
    spans: _Spans

    def narrow(self, may: Mask, sure: Mask, reference: Reference) -> None:
        """Clears, in `may` and `sure`, the tombstones that the statistics of the field exclude."""
        column = next((c for c in reference.columns if c.name == self.name), None)
        if column is None or column.low is None or column.high is None:
            return
        low: FieldCut = (NULL_VALUE if column.nulls else column.low, 0)
        high: FieldCut = (_NAN if self.is_floating else column.high, 1)  # any column of doubles may hold NaN
        may[self.places] &= self.spans.overlap(low, high)
        sure[self.places] &= self.spans.contain(low, high)


class _Spans:
    """Spans of keys from `low` to before `high`. Their bounds are stored as ranks among all bounds; a high bound
    of None is open."""

    def __init__(self, spans: Sequence[tuple[Any, Any]]) -> None:
        self._edges = sorted({edge for span in spans for edge in span if edge is not None})
        rank = {edge: place for place, edge in enumerate(self._edges)}
        self._lows = np.array([rank[low] for low, _ in spans])
        self._highs = np.array([len(rank) if high is None else rank[high] for _, high in spans])

    def overlap(self, low: Any, high: Any) -> Mask:
        """Returns for each span whether it overlaps the range from `low` (inclusive) to `high` (exclusive)."""
        below_high: Mask = self._lows < bisect_left(self._edges, high)
        return below_high & (self._highs >= bisect_right(self._edges, low))

    def contain(self, low: Any, high: Any) -> Mask:
        """Returns for each span whether it contains the whole range from `low` (inclusive) to `high`
        (exclusive)."""
        from_low: Mask = self._lows < bisect_right(self._edges, low)
        return from_low & (self._highs >= bisect_left(self._edges, high))
