"""Compares the numbers of records of a rewriting's inputs and new objects, before anything is committed.

It reads no record.  If the numbers of the references do not fit, it asks the footers of the inputs, which tell
what the objects hold: a wrong number in a reference must not block a compaction.

| rewriting that applies no delete | the new objects must have at least |
|---|---|
| of an append pool, if it keeps all records | as many records as the inputs that show their whole object |
| of an upsert or aggregate pool, if it also keeps delete markers | 1 record, if an input has one |

In any other rewriting the new objects may be empty.  In every rewriting they must have at most as many records
as the inputs.  A filter counts as a delete.  A delete marker takes the place of a record, so no delete adds
one.  Called by `rewriting.work`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lake_core.errors import NotConserved
from lake_core.history import Reference
from lake_core.phrases import counted
from lake_core.store import Store
from log_lake.objects.read import DataObject
from log_lake.objects.write import WrittenObject
from log_lake.rewriting.refusal import refusal
from log_lake.rewriting.rewriting import Rewriting

log = logging.getLogger(__name__)


def check_counts(work: Rewriting, written: Sequence[WrittenObject], store: Store) -> None:
    """Raises NotConserved if the new objects have too few or too many records for the inputs.

    Raises ObjectMissing, Corrupt, Unavailable if the footer of an input is needed and cannot be read.
    """
    given = sum(one.action.records for one in written)
    on_record = sum(r.records for r in work.inputs)
    if _least(work, on_record) <= given <= on_record:
        return
    footers = _Footers()
    if error := _refused(work, given, footers, store):
        raise error
    if footers.lies:
        reference, records = footers.lies[0]
        log.warning(
            "pool %r, branch %r: %s of %d inputs say another number of records than their objects: the reference "
            "of %s says %s, the object has %s; the new objects fit the objects, so they are taken. `lake fsck %s` "
            "reports such references as statistics_lie",
            *(work.config.name, work.branch, counted(len(footers.lies), "reference"), len(work.inputs)),
            *(reference.object, f"{reference.records:,}", f"{records:,}", work.config.name),
        )


@dataclass
class _Footers:
    """The numbers of records of the inputs, by the footers read so far.

    `whole`: the records of inputs that show their whole object.  `most`: the most records that all these inputs
    can show.
    """

    whole: int = 0
    most: int = 0
    lies: list[tuple[Reference, int]] = field(default_factory=list)
    """References that show their whole object, but have a wrong number of records; with the number in the object's
    footer."""

    def add(self, reference: Reference, data: DataObject) -> None:
        if not data.inside(reference.key_range):
            self.most += data.rows(reference.key_range)
            return
        records = data.metadata.records
        self.whole += records
        self.most += records
        if reference.records != records:
            self.lies.append((reference, records))


def _refused(work: Rewriting, given: int, footers: _Footers, store: Store) -> NotConserved | None:
    """Returns the error if `given`, the number of records in the new objects, does not fit the footers of the
    inputs; otherwise None.  It reads no more footers than needed."""
    has = counted(given, "record")
    surely_enough = _least(work, given + 1) <= given  # never if all records stay
    for _ in _seen(work, footers, store):
        if given < (least := _least(work, footers.whole)):
            return refusal(work, f"at least {counted(least, 'record')}", has)
        if surely_enough and given <= footers.most:
            return None
    if given > footers.most:
        return refusal(work, f"at most {counted(footers.most, 'record')}", has)
    return None


def _seen(work: Rewriting, footers: _Footers, store: Store) -> Iterator[None]:
    for reference in work.inputs:
        with DataObject.at(store, reference, pool_id=work.config.id) as data:
            footers.add(reference, data)
        yield


def _least(work: Rewriting, records: int) -> int:
    """Returns how many records the new objects must have at least if the inputs show `records`."""
    if work.tombstones or not work.keeps_number:
        return 0
    return records if work.rule.keeps_all else min(1, records)
