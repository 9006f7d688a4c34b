"""Writing one reference again without the records of an erasure: one transaction, its reference out and in.

Records keep their sequences, so what others commit meanwhile means the same before and after.  The deletes that
the branch knows are applied too, as a compaction does.  The new object is written for all keys, not for the range
of the old one, whose bounds may be keys that are erased.  If another writer took the reference meanwhile, nothing
is committed; the next round finds what that writer wrote.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pyarrow as pa

from lake_core.combine.hidden import DELETED
from lake_core.erasure.target import Target
from lake_core.errors import Conflict
from lake_core.history import Draft, Reference
from lake_core.history.tombstone import covering
from lake_core.keys.ranges import EVERYTHING
from lake_core.lake.branch import Branch
from lake_core.objects.metadata import Origin
from lake_core.objects.write import ObjectWriter, WrittenObject
from lake_core.reading.deleted import fields_of
from lake_core.reading.merge.streams import Reading
from lake_core.reading.revision import Revision
from lake_core.reading.scan import live_records, with_markers
from lake_core.records import Action, RemoveReference


def rewrite(
    branch: Branch, reference: Reference, target: Target, *, message: str, metadata: Mapping[str, str]
) -> bool:
    """Write the reference again without such records; False if another writer took it first.

    Raises ObjectMissing, Corrupt, OutcomeUnknown, Unavailable.
    """
    revision = branch.revision().of_sub_pool(reference.sub_pool)
    if not revision.snapshot.holds(reference.object, reference.low):
        return False
    id = branch.context.ids.new()
    written = _written(branch, revision, reference, target, transaction_id=id)
    actions: list[Action] = [RemoveReference(reference.object, reference.low)]
    if written is not None:
        actions.append(msgspec.structs.replace(written.action, applied=revision.version))
    draft = Draft(
        id,
        branch.name,
        revision.version,
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


def _written(
    branch: Branch, revision: Revision, reference: Reference, target: Target, *, transaction_id: str
) -> WrittenObject | None:
    """The new object; None if no record is left."""
    state, rule, sub_pool = revision.state, revision.rule, reference.sub_pool
    tombstones = covering([*revision.tombstones, *revision.aged_off], reference, state.schema)
    schemas = {reference.schema: state.schema(reference.schema)}
    schema = with_markers(schemas[reference.schema], rule, fields_of(tombstones))
    if target.leaves_markers(sub_pool) and DELETED not in schema.names:
        schema = schema.append(pa.field(DELETED, pa.bool_()))
    reading = Reading(
        branch.store,
        branch.config.id,
        revision.key,
        EVERYTHING,
        schema,
        limits=revision.limits,
        lifts=revision.lifts_of([reference]),
    )
    context = branch.context
    origin = Origin(
        context.lake_id, branch.config.id, transaction_id, context.author, inputs=(reference.object,)
    )
    writer = ObjectWriter(
        branch.store,
        key=revision.key,
        object_id=context.ids.new(),
        origin=origin,
        sub_pool=sub_pool,
        limits=revision.limits.objects,
    )
    with writer:
        for table in live_records(
            {reference: tombstones}, reading, rule=rule, schemas=schemas, has_sequence=True
        ):
            writer.write(target.without(table, sub_pool))
    return writer.written if writer.records else None
