"""Deciding which records of a revision Spark's own Parquet reader reads, and which the data source: pure.

A native read has no order.  So in append pools no record needs a merge, and each reference is decided on its
own.  In upsert and aggregate pools the keys are cut into stretches, at the bounds of the references: where two
references overlap, the data source merges them; where one lies alone, its records are part of the answer as
they are stored.

Spark's reader takes a reference if Spark can express all of these exactly; otherwise the data source reads it:

| what | how Spark expresses it |
|---|---|
| columns | the object's own, cast to the pool's (`columns`); columns that it lacks are null |
| the range asked for, and a clip of the reference | comparisons of the key's columns (`bounds`) |
| tombstones, age-off, `where` | conditions (`conditions`), and `_seq` if an object has several sequences |
| delete markers of upsert pools | `_deleted` |

References with the same columns and conditions are one read.  The number of reads, of comparisons and of key
ranges for the data source is bounded; the data source reads what is beyond a bound.  `read` does what is
decided here, `explain` shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import pyarrow as pa

from lake_core import naming
from lake_core.conditions import may_hold
from lake_core.history import Reference
from lake_core.history.tombstone import Tombstone
from lake_core.keys import KeyRange
from lake_core.phrases import counted
from lake_core.schemas.hidden import DELETED, ORDER, SEQ
from log_lake.reading.covers import Covering
from log_lake.reading.plan import ScanPlan
from spark_apps.native.bounds import is_whole, within
from spark_apps.native.columns import NotNative, check_names, check_readable, may_be_moved, presented
from spark_apps.native.conditions import predicate_of
from spark_apps.native.predicates import (
    TRUE,
    Compared,
    NotTrue,
    Predicate,
    all_of,
    any_of,
    columns_of,
    comparisons,
    sql,
)
from spark_apps.native.stretches import highest, joined, overlapping, stretches, with_few_ranges

PARQUET, SOURCE = "parquet", "data source"


@dataclass(frozen=True)
class NativeLimits:
    """The limits of one native read: how many reads, comparisons and key ranges it may have."""

    reads: int = 64
    """Reads by Spark's reader: each is a branch of the query's plan."""

    ranges: int = 256
    """Key ranges for the data source: each task gets those that it reads."""

    comparisons: int = 200
    """Comparisons in the condition of one read: Spark compiles them."""


LIMITS = NativeLimits()


@dataclass(frozen=True)
class ParquetRead:
    """One read by Spark's Parquet reader: objects of one schema, the columns to read, a filter, and the result's
    columns.

    `projection`: an SQL expression for each column of the result.
    """

    references: tuple[Reference, ...]
    columns: pa.Schema
    predicate: Predicate
    projection: tuple[str, ...]


@dataclass(frozen=True)
class SourceRead:
    """What the data source reads: key ranges in key order, and in them only `references`; None: all."""

    key_ranges: tuple[KeyRange, ...]
    references: tuple[Reference, ...] | None


@dataclass(frozen=True)
class Share:
    """Some references of a read: those that are read in one way for one reason.

    `key_range` contains all of them; `size` is in bytes.  Records and bytes are those of the references, an
    upper bound of what is read.
    """

    way: str
    why: str
    key_range: KeyRange
    references: int
    records: int
    size: int


@dataclass(frozen=True)
class NativePlan:
    """The reads of a native read; their rows together are the records of the scan's plan, each once."""

    parquet: tuple[ParquetRead, ...]
    source: SourceRead | None
    shares: tuple[Share, ...]


def decide(
    plan: ScanPlan,
    *,
    asked: KeyRange,
    whole: Mapping[str, KeyRange],
    blocked: str = "",
    limits: NativeLimits = LIMITS,
) -> NativePlan:
    """Decides how the records of a plan that `alive` returned are read.

    `asked`: the key range that the user asked for; a range that follows from the condition is not in it.
    `whole`: the key ranges of objects whose references may be clipped, from their footers.  `blocked`: why
    Spark's reader can read nothing; "" if it can.
    """
    return _Deciding(plan, asked, whole, blocked, limits).decided()


def alive(plan: ScanPlan) -> ScanPlan:
    """Returns the plan with only the references that may hold a record of the answer, as `reading.scan` decides
    it.

    The objects of the other references are never opened, so it is no error if a vacuum has deleted them.
    """
    covering, upsert = Covering(plan.tombstones, plan.schemas.__getitem__), plan.rule.kind == "upsert"
    return replace(
        plan, references=tuple(r for r in plan.references if not covering.of(r).hide_all(upsert=upsert))
    )


def unclear(plan: ScanPlan) -> list[Reference]:
    """Returns the references that may be clipped: the state does not show that they cover their whole
    object."""
    return [r for r in plan.references if not is_whole(r, plan.key, plan.schemas[r.schema])]


@dataclass
class _Deciding:
    plan: ScanPlan
    asked: KeyRange
    whole: Mapping[str, KeyRange]
    blocked: str
    limits: NativeLimits
    _reads: dict[tuple[str, ...], ParquetRead] = field(default_factory=dict)
    _events: list[tuple[str, str, KeyRange, Reference | None]] = field(default_factory=list)
    _shapes: dict[tuple[str, frozenset[str]], tuple[str, ...] | NotNative] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._covering = Covering(self.plan.tombstones, self.plan.schemas.__getitem__)

    def decided(self) -> NativePlan:
        references = self.plan.references
        if self.blocked and references:
            self._events += [(SOURCE, self.blocked, r.key_range, r) for r in references]
            return NativePlan((), SourceRead((self.plan.key_range,), None), self._shares())
        source = self._append(references) if self.plan.rule.keeps_all else self._merging(references)
        return NativePlan(tuple(self._reads.values()), source, self._shares())

    def _tombstones(self, reference: Reference) -> tuple[Tombstone, ...]:
        return self._covering.of(reference).tombstones

    # --- pools that keep all records: each reference on its own

    def _append(self, references: Sequence[Reference]) -> SourceRead | None:
        parts = {}
        for reference in references:
            key_range = reference.key_range.intersect(self.asked)
            if not key_range.empty:
                parts[reference] = [key_range]
        rejected = self._by_parquet(parts)
        for reference, (why, key_ranges) in rejected.items():
            self._events += [(SOURCE, why, key_range, reference) for key_range in key_ranges]
        only = None if len(rejected) == len(references) else tuple(rejected)
        return SourceRead((self.plan.key_range,), only) if rejected else None

    # --- pools whose records combine: stretches of keys

    def _merging(self, references: Sequence[Reference]) -> SourceRead | None:
        cut = [
            stretch
            for stretch in stretches(references, self.asked)
            if stretch.alone is None or self._may_fulfil(stretch.alone)
        ]
        parts: dict[Reference, list[KeyRange]] = {}
        merged: list[KeyRange] = []
        for is_native, run in groupby(
            zip(cut, with_few_ranges(cut, self.limits.ranges), strict=True), key=lambda pair: pair[1]
        ):
            together = [stretch for stretch, _ in run]
            if is_native:
                for stretch in together:
                    assert stretch.alone is not None
                    parts.setdefault(stretch.alone, []).append(stretch.key_range)
                continue
            merged.append(KeyRange(together[0].key_range.low, together[-1].key_range.high))
            for stretch in together:
                why = "between stretches that are merged" if stretch.alone else "references overlap: merged"
                self._events.append((SOURCE, why, stretch.key_range, stretch.alone))
        for reference, (why, key_ranges) in self._by_parquet(parts).items():
            self._events += [(SOURCE, why, key_range, reference) for key_range in key_ranges]
            merged += key_ranges
        ranges = [r.intersect(self.plan.key_range) for r in joined(merged)]
        kept = tuple(r for r in ranges if not r.empty)
        return SourceRead(kept, None) if kept else None

    def _may_fulfil(self, reference: Reference) -> bool:
        where, schema = self.plan.where, self.plan.schemas[reference.schema]
        may = where is None or may_hold(where, schema, reference.columns, records=reference.records)
        return may and reference.object not in self.plan.absent

    # --- one reference by Spark's reader

    def _by_parquet(
        self, parts: Mapping[Reference, list[KeyRange]]
    ) -> dict[Reference, tuple[str, list[KeyRange]]]:
        """Make the reads; returns the references that the data source must read, why, and their key ranges."""
        rejected: dict[Reference, tuple[str, list[KeyRange]]] = {}
        groups: dict[tuple[str, ...], list[tuple[Reference, ParquetRead]]] = {}
        for reference, key_ranges in parts.items():
            try:
                if self.blocked:
                    raise NotNative(self.blocked)
                read = self._read(reference, joined(key_ranges))
            except NotNative as reason:
                rejected[reference] = (str(reason), key_ranges)
                continue
            types = [f"{f.name} {f.type}" for f in read.columns]
            name = (sql(read.predicate), *types, "", *read.projection)
            groups.setdefault(name, []).append((reference, read))
        by_size = sorted(groups, key=lambda name: -sum(r.size for r, _ in groups[name]))
        for name in by_size[self.limits.reads :]:
            why = f"beyond {counted(self.limits.reads, 'read')} with conditions of their own"
            for reference, _ in groups.pop(name):
                rejected[reference] = (why, parts[reference])
        for name, members in groups.items():
            first = members[0][1]
            references = tuple(reference for reference, _ in members)
            self._reads[name] = ParquetRead(references, first.columns, first.predicate, first.projection)
            why = "no merge needed"
            if first.predicate != TRUE:
                why += f", {counted(comparisons(first.predicate), 'comparison')} a row"
            self._events += [
                (PARQUET, why, r, reference) for reference in references for r in parts[reference]
            ]
        return rejected

    def _read(self, reference: Reference, key_ranges: Sequence[KeyRange]) -> ParquetRead:
        """Returns the read of one reference's records in the key ranges.  Raises NotNative."""
        if naming.format_of(reference.object) != naming.PARQUET:
            raise NotNative("the object is not Parquet")
        if reference.data:
            raise NotNative("the object lies in the journal")
        plan, schema = self.plan, self.plan.schemas[reference.schema]
        names = [*schema.names, *(ORDER.names if reference.oldest is not None else ())]
        check_names(names)
        parts: list[Predicate] = [self._clip(reference, key_ranges, schema)]
        parts += [self._not_hidden(t, reference, schema) for t in self._tombstones(reference)]
        if plan.where is not None:
            parts.append(predicate_of(plan.where, schema))
        has_markers = plan.rule.kind == "upsert" and DELETED in schema.names
        if has_markers and not pa.types.is_null(schema.field(DELETED).type):
            parts.append(NotTrue(Compared((DELETED,), "=", pa.scalar(True))))
        predicate = all_of([part for part in parts if part != TRUE])
        if comparisons(predicate) > self.limits.comparisons:
            raise NotNative(f"its conditions have more than {self.limits.comparisons:,} comparisons")
        projection = self._projection(reference, schema)
        stored = pa.schema([*schema, *(ORDER if reference.oldest is not None else ())])
        used = {*plan.columns, *columns_of(predicate)}
        if dotted := next((name for name in plan.key.names if "." in name and name in used), None):
            raise NotNative(f"objects have the key's field {dotted!r} under another name")
        columns = [f for f in stored if f.name in used and not pa.types.is_null(f.type)]
        return ParquetRead((reference,), pa.schema(columns or [_narrow(schema)]), predicate, projection)

    def _projection(self, reference: Reference, schema: pa.Schema) -> tuple[str, ...]:
        """Returns the columns of the result, from an object of the schema.  Raises NotNative."""
        statistics = {column.name: column for column in reference.columns}
        asked = [f for f in schema if f.name in self.plan.columns]
        moved = frozenset(f.name for f in asked if may_be_moved(f, statistics.get(f.name)))
        shape = self._shapes.get((reference.schema, moved))
        if shape is None:
            by_name = {f.name: f for f in asked}
            try:
                shape = tuple(
                    presented(by_name.get(name), self.plan.schema.field(name), moved=name in moved)
                    for name in self.plan.columns
                )
            except NotNative as reason:
                shape = reason
            self._shapes[reference.schema, moved] = shape
        if isinstance(shape, NotNative):
            raise shape
        return shape

    def _clip(self, reference: Reference, key_ranges: Sequence[KeyRange], schema: pa.Schema) -> Predicate:
        whole = self.whole.get(reference.object)
        if whole is None:
            if not is_whole(reference, self.plan.key, schema):
                raise NotNative("whether it is a clip of its object is not known: too many footers to read")
            whole = reference.key_range
        inside = [within(key_range, whole, self.plan.key, schema) for key_range in key_ranges]
        return TRUE if TRUE in inside else any_of(inside)

    def _not_hidden(self, tombstone: Tombstone, reference: Reference, schema: pa.Schema) -> Predicate:
        """Returns the records of the reference that the tombstone does not hide.  Raises NotNative."""
        parts: list[Predicate] = []
        if not tombstone.reaches_all(reference):
            if reference.lifts:
                raise NotNative("a merge of branches gave its records other sequences than they store")
            if tombstone.exactly is None:
                parts.append(Compared((SEQ,), "<", pa.scalar(tombstone.seq, pa.int64())))
            else:
                first, last = (pa.scalar(seq, pa.int64()) for seq in tombstone.exactly)
                parts += [Compared((SEQ,), ">=", first), Compared((SEQ,), "<=", last)]
        parts.append(within(tombstone.key_range, reference.key_range, self.plan.key, schema))
        if tombstone.condition is not None:
            parts.append(predicate_of(tombstone.condition, schema))
        return NotTrue(all_of([part for part in parts if part != TRUE]))

    def _shares(self) -> tuple[Share, ...]:
        shares = []
        grouped: dict[tuple[str, str], list[tuple[KeyRange, Reference | None]]] = {}
        for way, why, key_range, reference in self._events:
            grouped.setdefault((way, why), []).append((key_range, reference))
        for (way, why), parts in grouped.items():
            ranges = [key_range for key_range, _ in parts]
            hull = KeyRange(min(r.low for r in ranges), highest(ranges))
            references: Iterable[Reference] = {r for _, r in parts if r is not None}
            if not references:  # merged stretches have several references each
                references = overlapping(self.plan.references, joined(ranges))
            records, size = sum(r.records for r in references), sum(r.size for r in references)
            shares.append(Share(way, why, hull, len(list(references)), records, size))
        return tuple(sorted(shares, key=lambda s: (s.way != PARQUET, -s.size)))


def _narrow(schema: pa.Schema) -> pa.Field:
    """Returns a column to read if none is asked for, so that Spark counts the records.  Raises NotNative."""
    for stored in sorted(schema, key=lambda f: (pa.types.is_nested(f.type), pa.types.is_string(f.type))):
        try:
            check_readable(stored)
        except NotNative:
            continue
        if not pa.types.is_null(stored.type):
            return stored
    raise NotNative("it has no column that Spark's reader gives")
