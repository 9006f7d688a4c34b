"""Chooses the references that a scan must open, and the schema of its records. The result depends on the revision
alone; it may read checkpoints, which never change.

References are clipped to the wanted range.  The schema is that of the whole revision, not only of the chosen
references, so a narrow scan has the same columns as a wide one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from lake_core.conditions import may_hold
from lake_core.errors import Corrupt, InvalidInput
from lake_core.history import Reference
from lake_core.history.lift import Lifts
from lake_core.history.tombstone import Tombstone
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.ranges import EVERYTHING, parts_within, united
from lake_core.naming import format_of
from lake_core.records.conditions import Condition
from lake_core.schemas import APPEND, Rule
from lake_core.schemas.hidden import DELETED
from log_lake.compaction.ranges import places
from log_lake.fields.names import SAME, FieldNames
from log_lake.indexes.lookup import IndexAnswer
from log_lake.reading.clustered import may_lie_there
from log_lake.reading.limits import LIMITS, ScanLimits
from log_lake.reading.revision import Revision
from log_lake.texts.keytext import check_range
from log_lake.where import check
from log_lake.where.keyrange import key_range_of

FEW_RANGES = 64
"""For at most this many ranges, the references of each are looked up; for more, all references between the first
and the last range are taken."""

NOTHING = KeyRange(b"", b"")
"""The range without keys."""


class AnnouncedSchemas(dict[str, pa.Schema]):
    """The schemas that a pool has announced, by id.  Raises Corrupt for a schema that a reference names but no
    entry announced."""

    def __missing__(self, id: str) -> pa.Schema:
        raise Corrupt(f"schema {id[:80]!r}: a reference has this schema, which the pool never announced")


@dataclass(frozen=True)
class SkippedReferences:
    """How many references of the pool a plan leaves out, by the reason.  `answers` counts the answers of
    indexes; None if no index was asked."""

    by_range: int = 0
    by_statistics: int = 0
    by_cluster: int = 0
    by_index: int = 0
    answers: Mapping[IndexAnswer, int] | None = None


@dataclass(frozen=True)
class ScanPlan:
    """What a scan reads: references in order of their low bound, and `columns` in the requested order.

    `depth`: the most references that overlap at one key.  `rule`: how records of equal keys combine.
    `tombstones`: those that may hide records of the references.  `schemas`: the references' schemas by id.
    `where`: the condition that records of the result fulfil.  `lifts`: the lifts that the references name.
    """

    references: tuple[Reference, ...]
    key_range: KeyRange
    key: PoolKey
    schema: pa.Schema
    columns: tuple[str, ...]
    depth: int
    limits: ScanLimits = LIMITS
    rule: Rule = APPEND
    tombstones: tuple[Tombstone, ...] = ()
    schemas: Mapping[str, pa.Schema] = field(default_factory=AnnouncedSchemas)
    where: Condition | None = None
    lifts: Lifts = field(default_factory=dict)
    keep: tuple[str, ...] = ()
    """Columns of `hidden.ROW` that the result has after the requested ones."""
    ranges: tuple[KeyRange, ...] = ()
    """The ranges that are read, united and ascending, within `key_range`; if empty, all of it."""
    absent: frozenset[str] = frozenset()
    """Objects that hold no record that fulfils the condition, as their indexes say (`reading.indexed`)."""
    groups: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """By object, the only row groups that may hold such a record; only in append pools."""
    left_out: SkippedReferences = SkippedReferences()
    names: FieldNames = SAME
    """The names that the result has; `schema`, `columns` and `where` have stored names."""

    @property
    def shown(self) -> list[str]:
        """The names of the columns in the result."""
        return self.names.shown_columns(self.columns)

    @property
    def records(self) -> int:
        """The number of records in the references, an upper bound for the scan."""
        return sum(r.records for r in self.references)

    def parts(self, cuts: Sequence[bytes]) -> list[ScanPlan]:
        """Divides the plan at `cuts`, which must be ascending keys inside `key_range`.  Returns the parts that
        have a reference.

        It visits each reference once, however many parts there are.
        """
        lows, highs = [self.key_range.low, *cuts], [*cuts, self.key_range.high]
        spans = [KeyRange(low, high) for low, high in zip(lows, highs, strict=True)]
        ranges = [parts_within(self.ranges, span) for span in spans]
        references: list[list[Reference]] = [[] for _ in spans]
        for reference in self.references:
            for number in places(reference, cuts):
                if not self.ranges or parts_within(ranges[number], reference.key_range):
                    references[number].append(reference)
        tombstones: list[list[Tombstone]] = [[] for _ in spans]
        for tombstone in self.tombstones:
            for number in places(tombstone, cuts):
                tombstones[number].append(tombstone)
        each = zip(spans, ranges, references, tombstones, strict=True)
        return [
            replace(self, key_range=span, ranges=within, references=tuple(inside), tombstones=tuple(over))
            for span, within, inside, over in each
            if inside
        ]


def plan_scan(
    revision: Revision,
    *,
    key_range: KeyRange = EVERYTHING,
    ranges: Sequence[KeyRange] | None = None,
    columns: list[str] | None = None,
    where: str | Condition | None = None,
    filtered: bool = True,
    keep: Collection[str] = (),
) -> ScanPlan:
    """Returns the plan to scan a key range of a revision.  Without `filtered`, records that the
    pool's filters hide are included.

    `ranges`: the plan reads only keys in these ranges, each once; an empty list reads no record.  It is still
    one plan, which opens each object once.

    `keep`: columns of `hidden.ROW`, which have the records' own types; they are added if some object has them.

    `columns` and a text in `where` name fields as readers see them, a condition has stored names.

    Raises InvalidInput for an unknown column, an empty range, or a condition that does not fit the fields.
    """
    schema, key, rule, names_of = revision.stored_schema, revision.key, revision.rule, revision.names
    shown = revision.schema
    check_range(key_range, key)
    if columns is None:
        columns = [name for name in shown.names if not (name == DELETED and rule.kind == "upsert")]
    given: object = columns
    if isinstance(given, str):  # a program's slip: its letters would count as names
        raise InvalidInput(f"columns={given!r}: give a list of names, as [{given!r}]")
    names = set(shown.names)
    unknown = [c for c in columns if c not in names]
    if unknown:
        raise InvalidInput(
            f"column {unknown[0]!r} does not exist; there are: {', '.join(shown.names) or 'none'}"
        )
    if len(set(columns)) < len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        raise InvalidInput(f"column {twice!r} is named twice; name each column once")
    announced = revision.snapshot.schemas(revision.sub_pool)
    schemas = AnnouncedSchemas({id: revision.state.schema(id) for id in announced})
    condition: Condition | None = None
    if isinstance(where, str):
        condition = names_of.stored_condition(check(where, shown))
    elif where is not None:
        condition = check(where, schema)
    if condition is not None:
        key_range = key_range.intersect(key_range_of(condition, key, schema))
    spans: tuple[KeyRange, ...] = ()
    if ranges is not None:
        for span in ranges:
            check_range(span, key)
        spans = parts_within(united(ranges), key_range)
        key_range = KeyRange(spans[0].low, spans[-1].high) if spans else NOTHING
    references = _references(revision, key_range, spans)
    in_range = len(references)
    if condition is not None and rule.keeps_all:
        references = [
            r for r in references if may_hold(condition, schemas[r.schema], r.columns, records=r.records)
        ]
    by_statistics = in_range - len(references)
    if condition is not None:
        fields = None if rule.keeps_all else key.names
        references = [
            r
            for r in references
            if may_lie_there(condition, schemas[r.schema], r.columns, among_fields=fields)
        ]
    keeps = keep and rule.keeps_rows(format_of(r.object) for r in references)
    if keeps and names_of:
        raise InvalidInput(
            f"pool {revision.config.name!r}: its records keep names of fields in themselves, and fields of it were "
            "renamed or dropped since; read them with their fields united, as Parquet, JSON or CSV"
        )
    tombstones = (*revision.tombstones, *(revision.filters if filtered else ()))
    return ScanPlan(
        references=tuple(references),
        key_range=key_range,
        key=key,
        schema=schema,
        columns=tuple(names_of.stored_names(columns)),
        depth=overlap_depth(references),
        limits=revision.limits,
        rule=rule,
        tombstones=tuple(t for t in tombstones if t.key_range.overlaps(key_range)),
        schemas=schemas,
        where=condition,
        lifts=revision.lifts_of(references),
        keep=tuple(keep) if keeps else (),
        ranges=spans if len(spans) > 1 else (),
        left_out=SkippedReferences(
            revision.snapshot.totals(revision.sub_pool).references - in_range,
            by_statistics,
            in_range - by_statistics - len(references),
        ),
        names=names_of,
    )


def _references(revision: Revision, key_range: KeyRange, spans: Sequence[KeyRange]) -> list[Reference]:
    """Returns the references of the ranges `spans`, or, if there are none, of the key range."""
    if key_range.empty:
        return []
    if not 1 < len(spans) <= FEW_RANGES:
        references = revision.references_in(key_range)
        return [r for r in references if parts_within(spans, r.key_range)] if spans else references
    each = {(r.object, r.low): r for span in spans for r in revision.references_in(span)}
    return sorted(each.values(), key=lambda r: r.order)


def overlap_depth(references: Sequence[Reference]) -> int:
    """Returns how many references overlap at the key where most of them do."""
    edges = sorted(edge for r in references for edge in ((r.low, 1), (r.high, -1)))
    depth = deepest = 0
    for _, step in edges:  # at equal bounds the end (-1) comes first: ranges are half-open
        depth += step
        deepest = max(deepest, depth)
    return deepest


def overlapping(references: Sequence[Reference]) -> int:
    """Returns how many references share a key with another one."""
    return len(sharing(references))


def sharing(references: Sequence[Reference]) -> set[int]:
    """Returns the indices of the references that share a key with another one."""
    shared: set[int] = set()
    reach, reaching = b"", -1  # the furthest end so far, and whose it is
    for i in sorted(range(len(references)), key=lambda i: references[i].low):
        if reaching >= 0 and references[i].low < reach:
            shared |= {reaching, i}
        if references[i].high > reach:
            reach, reaching = references[i].high, i
    return shared
