"""Decides which objects a published table has, and by which rule records of each are hidden; pure.

Readers of a table do not merge records: its rows are the records of its objects, without those at hidden
positions. So a table can express these pools and parts of pools:

| pool, or part of it | how |
|---|---|
| append | each object alone, however many overlap |
| upsert, aggregate | only objects that overlap no other, because readers of a table combine no records |
| clipped references, tombstones, filters, delete markers | hidden positions (`positions`) |

The rule of an object is the references to it, each with the tombstones that may hide records of it.  The same
rule hides the same records, because objects never change.  So the name of the file of deletes contains the
rule's digest.  If the previous publication had the same rule, nothing is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import pyarrow as pa

from lake_core.errors import InvalidInput
from lake_core.history import Reference
from lake_core.history.lift import Lifts
from lake_core.history.tombstone import Tombstone
from lake_core.keys.encoding import encode_value
from lake_core.naming import PARQUET, format_of
from lake_core.phrases import counted
from lake_core.schemas.hidden import DELETED
from log_lake.reading.covers import Covering
from log_lake.reading.plan import overlapping
from log_lake.reading.revision import Revision


@dataclass(frozen=True)
class ObjectRule:
    """The references to one object, each with the tombstones that may hide records of it, oldest first.

    `markers`: whether the object may hold delete markers.
    """

    references: tuple[Reference, ...]
    tombstones: tuple[tuple[Tombstone, ...], ...]
    markers: bool

    @property
    def object(self) -> str:
        """The object's id."""
        return self.references[0].object

    def digest(self, lifts: Lifts) -> str:
        """Returns a digest of the rule.  `lifts`: the lifts that the references name; a lift gives the records of
        a merge a new age."""
        parts = [
            (r.object, r.low, r.high, r.seq, r.oldest, [(b, lifts[b].writes) for b in r.lifts])
            for r in self.references
        ]
        hidden = [
            [(t.seq, t.low, t.high, t.exactly, msgspec.msgpack.encode(t.condition)) for t in each]
            for each in self.tombstones
        ]
        return hashlib.sha256(msgspec.msgpack.encode((parts, hidden, self.markers))).hexdigest()[:20]


def rules_of(revision: Revision, filters: Sequence[Tombstone] | None = None) -> dict[str, ObjectRule]:
    """Returns for each object of the published table the rule that decides which of its records are hidden: by
    the object's id, in key order.

    `filters` are the tombstones of the filters to apply; None: of the pool's present filters.  Raises InvalidInput
    if records of several objects would have to be combined, or if an object is not Parquet or is inlined in the
    journal.
    """
    schemas = {id: revision.state.schema(id) for id in revision.snapshot.schemas(revision.sub_pool)}
    is_upsert = revision.rule.kind == "upsert"
    tombstones = (*revision.tombstones, *(revision.filters if filters is None else filters))
    covering = Covering(tombstones, schemas.__getitem__)
    hidden: dict[Reference, tuple[Tombstone, ...]] = {}
    for reference in revision.references:
        covers = covering.of(reference)
        if not covers.hide_all(upsert=is_upsert):
            hidden[reference] = covers.tombstones
    if not revision.rule.keeps_all and (several := overlapping(list(hidden))):
        name = revision.config.name
        raise InvalidInput(
            f"pool {name!r}: {counted(several, 'object')} of this {revision.rule.kind} pool overlap, and Iceberg "
            f"does not combine their records; merge them first (lake compact {name} --strategy full)"
        )
    if typed := len({r.object for r in hidden if format_of(r.object) != PARQUET}):
        name = revision.config.name
        raise InvalidInput(
            f"pool {name!r}: {counted(typed, 'object')} not Parquet, as Iceberg reads it; let a compaction write "
            f"them anew (lake set {name} format=parquet; lake compact {name} --strategy full)"
        )
    if inlined := len({r.object for r in hidden if r.data}):
        name = revision.config.name
        raise InvalidInput(
            f"pool {name!r}: {counted(inlined, 'object')} in the journal, which Iceberg does not read; let a "
            f"compaction write them (lake compact {name} --strategy full)"
        )
    by_object: dict[str, list[Reference]] = {}
    for reference in hidden:
        by_object.setdefault(reference.object, []).append(reference)
    return {
        id: ObjectRule(
            tuple(references),
            tuple(hidden[reference] for reference in references),
            is_upsert and any(_may_have_markers(r, schemas[r.schema]) for r in references),
        )
        for id, references in by_object.items()
    }


def _may_have_markers(reference: Reference, schema: pa.Schema) -> bool:
    if DELETED not in schema.names or pa.types.is_null(schema.field(DELETED).type):
        return False
    statistics = next((c for c in reference.columns if c.name == DELETED), None)
    if statistics is None:
        return True
    return statistics.high is not None and statistics.high != encode_value(False)


def schemas_of(rules: Mapping[str, ObjectRule], revision: Revision) -> dict[pa.Schema, int]:
    """Returns the number of objects with each schema."""
    counts: dict[str, int] = {}
    for rule in rules.values():
        counts[rule.references[0].schema] = counts.get(rule.references[0].schema, 0) + 1
    return {revision.state.schema(id): count for id, count in counts.items()}
