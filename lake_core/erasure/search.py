"""Which objects of a pool hold such records, wherever the objects are.

Objects that branches and tags refer to are asked by their statistics first.  Removed objects and objects that were
never committed have no statistics in the state: their footers say their range of keys, and what is left is read, in
the columns that the condition names.  Objects never change, so each is read once in a search.

What an old revision in reach refers to is among these: a branch or a tag still holds it, or it is on the list of
the removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from lake_core import naming
from lake_core.combine.hidden import DELETED
from lake_core.combine.newest import are_markers
from lake_core.erasure.target import Target
from lake_core.errors import Corrupt, NotFound, ObjectMissing
from lake_core.history import PoolState, Reference
from lake_core.keys import KeyRange
from lake_core.lake.pool import Pool
from lake_core.objects.read import DataObject
from lake_core.store import Store
from lake_core.vacuum.orphans import iter_objects, unknown_objects

LAST = "~"
"""Greater than any id."""


@dataclass
class Search:
    """Answers whether objects hold such records; `known` are the answers so far."""

    pool: Pool
    target: Target
    known: dict[str, bool] = field(default_factory=dict)

    def holds(self, object_id: str) -> bool:
        """Whether the object holds such a record.  Raises ObjectMissing, Corrupt, Unavailable."""
        if object_id not in self.known:
            self.known[object_id] = holds_such(self.pool.store, self.target, object_id)
        return self.known[object_id]

    def may_hold(self, object_id: str) -> bool:
        """As `holds`, of an object that no branch refers to: False if it is gone, True if it cannot be read."""
        try:
            return self.holds(object_id)
        except ObjectMissing:
            return False
        except Corrupt:  # it may hold the bytes of such a record, and no branch needs it
            return True

    def in_branch(self, state: PoolState, branch: str) -> list[Reference]:
        """The references of a branch whose objects hold such records."""
        return [r for r in self.target.references(state, branch) if self.holds(r.object)]

    def in_branches(self, state: PoolState) -> dict[str, list[Reference]]:
        """Those of each branch that has some."""
        by_branch = {name: self.in_branch(state, name) for name in sorted(state.branches)}
        return {name: references for name, references in by_branch.items() if references}

    def in_tags(self, state: PoolState, *, now: float) -> Iterator[tuple[str, Reference]]:
        """Tags that are live at `now` (seconds since 1970), and references of theirs with such records.

        Raises Corrupt if the state of a tag cannot be read.
        """
        for name, tag in sorted(state.tags.items()):
            if not tag.is_live(int(now * 1_000_000)):
                continue
            try:
                tagged = self.pool.history.load_version(tag.version).state
            except NotFound as error:
                raise Corrupt(
                    f"tag {name!r}: the state of version {tag.version} cannot be read, so what it keeps is "
                    "unknown; delete the tag, or restore the checkpoint"
                ) from error
            for reference in self.target.references(tagged, tag.branch):
                if self.may_hold(reference.object):
                    yield name, reference

    def removed(self, state: PoolState) -> list[str]:
        """Those on the list of the removed."""
        return [id for id, _ in state.removed.items() if self.may_hold(id)]

    def uncommitted(self, state: PoolState) -> list[str]:
        """Those that no branch, tag or list knows, among the names that no scan for orphans has looked at.

        Lists these names.
        """
        infos = list(iter_objects(self.pool.store, self.pool.config.id, state.removed.scanned, LAST))
        ids = [naming.data_id(info.name) for info in unknown_objects(self.pool, state, infos)]
        return [id for id in ids if id is not None and self.may_hold(id)]


def holds_such(store: Store, target: Target, object_id: str) -> bool:
    """Whether the object holds such a record.  Raises ObjectMissing, Corrupt, Unavailable."""
    with DataObject(store, pool_id=target.config.id, object_id=object_id) as data:
        sub_pool = data.metadata.sub_pool
        if sub_pool not in target.sub_pools:
            return False
        span, key = target.range_in(sub_pool), target.key(sub_pool)
        if not span.overlaps(KeyRange(data.metadata.low, data.metadata.high)):
            return False
        columns = [name for name in target.columns(sub_pool) if name in data.schema.names]
        only_markers = False
        for batch in data.batches(span, key=key, columns=columns or None):
            table = pa.Table.from_batches([batch])
            matching = target.fulfilled(table, sub_pool)
            if not matching.any():
                continue
            if not target.leaves_markers(sub_pool) or _has_record(table.filter(pa.array(matching))):
                return True
            only_markers = True
        if not only_markers:
            return False
        batches = data.batches(span, key=key, columns=None)
        return any(target.matches(pa.Table.from_batches([batch]), sub_pool).any() for batch in batches)


def _has_record(records: pa.Table) -> bool:
    """Whether one of the records is no delete marker."""
    return DELETED not in records.schema.names or not all(are_markers(records).to_pylist())
