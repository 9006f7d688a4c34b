"""Writing references again without the records of an erasure: a transaction each, its reference out and in.

    begin       a reference of a branch becomes work that any process can do
    write       the work: one object; nothing refers to it yet
    commit      the reference goes, the object comes, in one transaction; False if another writer was faster

Records keep their sequences, so what others commit meanwhile means the same before and after.  The deletes that
the branch knows are applied too, as a compaction does.  The new object is written for all keys, not for the range
of the old one, whose bounds may be keys that are erased.  Its id is above the floor of the scans for orphans, even
if the clock is behind.  If another writer took the reference meanwhile, nothing is committed; the next round finds
what that writer wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec
import pyarrow as pa

from lake_core import naming
from lake_core.errors import Conflict
from lake_core.history import Draft, Reference
from lake_core.history.lift import Lift
from lake_core.history.tombstone import Tombstone, covering
from lake_core.ids import first_above, not_below
from lake_core.keys.ranges import EVERYTHING
from lake_core.records import Action, RemoveReference
from lake_core.schemas.hidden import DELETED, with_rows
from log_lake.erasure.target import Target
from log_lake.lake.branch import Branch
from log_lake.objects.metadata import Origin
from log_lake.objects.write import ObjectWriter, WrittenObject, write_tables
from log_lake.reading.deleted import fields_of
from log_lake.reading.limits import LIMITS, ScanLimits
from log_lake.reading.merge.streams import ReferenceReading
from log_lake.reading.revision import Revision
from log_lake.reading.scan import live_records, with_markers
from log_lake.workers import Worker


@dataclass(frozen=True)
class PendingRewrite:
    """A reference of a branch that is to be written again without the records of `target`.

    `schema` is that of its stored records, `records_schema` that of the new object.  The new object has no smaller
    id than `first`, whatever the clock of the worker says.
    """

    target: Target
    branch: str
    read_version: int
    reference: Reference
    origin: Origin
    schema: pa.Schema
    records_schema: pa.Schema
    tombstones: tuple[Tombstone, ...]
    lifts: Mapping[int, Lift] = field(default_factory=dict)
    limits: ScanLimits = LIMITS
    first: str = ""


def begin(branch: Branch, revision: Revision, reference: Reference, target: Target) -> PendingRewrite:
    """The work for a reference that the revision of the branch holds."""
    revision = revision.of_sub_pool(reference.sub_pool)
    state, context = revision.state, branch.context
    tombstones = covering(revision.tombstones, reference, state.schema)  # what `age_off` hides stays
    stored = state.schema(reference.schema)
    schema = with_markers(stored, revision.rule, fields_of(tombstones))
    if target.leaves_markers(reference.sub_pool) and DELETED not in schema.names:
        schema = schema.append(pa.field(DELETED, pa.bool_()))
    if (
        reference.oldest is None or reference.lifts
    ):  # all its records are of one version; or a merge moved them
        target = target.of_all_versions()
    typed = revision.rule.keeps_rows([naming.format_of(reference.object)])
    return PendingRewrite(
        target,
        branch.name,
        revision.version,
        reference,
        Origin(
            context.lake_id,
            branch.config.id,
            context.ids.new(),
            context.author,
            inputs=(reference.object,),
        ),
        stored,
        with_rows(schema) if typed else schema,
        tuple(tombstones),
        revision.lifts_of([reference]),
        revision.limits,
        first_above(state.removed.floor, now=context.now()),
    )


def write(worker: Worker, work: PendingRewrite) -> WrittenObject | None:
    """Write the new object; None if no record is left.  Raises ObjectMissing, Corrupt, Unavailable."""
    reference, target, store = work.reference, work.target, worker.store
    key, sub_pool = target.key(reference.sub_pool), reference.sub_pool
    reading = ReferenceReading(
        store, work.origin.pool_id, key, EVERYTHING, work.records_schema, limits=work.limits, lifts=work.lifts
    )
    id, format = not_below(worker.new_id(), work.first), naming.format_of(reference.object)
    writer = ObjectWriter(
        store,
        key=key,
        object_id=naming.object_id_of(id, format),
        origin=work.origin,
        sub_pool=sub_pool,
        limits=work.limits.objects,
    )

    def tables() -> Iterator[pa.Table]:
        records = live_records(
            {reference: work.tombstones},
            reading,
            rule=target.rule(sub_pool),
            schemas={reference.schema: work.schema},
            has_sequence=True,
        )
        return (target.without(table, sub_pool) for table in records)

    return write_tables(writer, tables)


def commit(
    branch: Branch,
    work: PendingRewrite,
    written: WrittenObject | None,
    *,
    message: str,
    metadata: Mapping[str, str],
) -> bool:
    """Put the new object in the reference's place; False if another writer took the reference first.

    Raises OutcomeUnknown, Unavailable, NotFound (the branch was deleted).
    """
    actions: list[Action] = [RemoveReference(work.reference.object, work.reference.low)]
    if written is not None:
        actions.append(msgspec.structs.replace(written.action, applied=work.read_version))
    draft = Draft(
        work.origin.transaction_id,
        branch.name,
        work.read_version,
        branch.context.author,
        tuple(actions),
        () if written is None else (written.schema,),
        message=message,
        metadata=metadata,
    )
    try:
        branch.commit_draft(draft, does="erases")
    except Conflict:
        return False
    return True
