"""Reverts a merge, or the revert of one: decides up to where the merged branch counts as merged; pure.

The branch gets its unmerged writes and its settled tombstones back as they were before, so that it can be
merged again.  That is refused once the branch has compacted merged writes.  Called by `reverts.revert`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lake_core.errors import Conflict
from lake_core.history.branch_state import BranchState, Fork
from lake_core.history.create import putting_tombstone
from lake_core.history.lift import pack
from lake_core.history.snapshot.snapshot import Snapshot
from lake_core.history.state import PoolState
from lake_core.records import Merge, SetMerged
from lake_core.records.transactions import sequence, version_of
from log_lake.reverts.change import Change, check_untouched


@dataclass(frozen=True)
class Unmerging:
    """A change that merged a branch, or reverted a merge; the later changes of the parent; and the newest
    state."""

    change: Change
    later: Sequence[Change]
    newest: PoolState

    def unmerge(self, merge: Merge) -> Iterator[SetMerged]:
        """Yields the action that gives the merged branch the boundary and the unmerged writes that it had before
        the merge; nothing if the branch was deleted since."""
        child = self.newest.branches.get(merge.branch)
        if child is None or child.fork is None or child.fork.created > self.change.version:
            return
        self._check_merge(merge.branch, child.fork, self.change.version)
        yield self._merged_as_before(merge.branch, child, child.fork)

    def merge_again(self, action: SetMerged) -> Iterator[SetMerged]:
        """Yields the action that gives the merged branch the boundary and the unmerged writes that it had before
        this change moved them; nothing if the branch was deleted since."""
        child, before = self.newest.branches.get(action.branch), self.change.state.branches.get(action.branch)
        if child is None or child.fork is None or before is None or before.fork is None:
            return
        if child.fork.created != before.fork.created:
            return
        self._check_merge(action.branch, child.fork, action.joined)
        yield self._merged_as_before(action.branch, child, child.fork)

    def _check_merge(self, name: str, fork: Fork, joined: int) -> None:
        """Raises Conflict, InvalidInput if the newest merge of the branch is another one than `joined`."""
        if fork.joined == joined:
            return
        if fork.joined <= self.change.version:
            check_untouched(self.change, self.later, lambda a: isinstance(a, SetMerged) and a.branch == name)
        raise Conflict(
            f"version {fork.joined} merged {name!r} since version {self.change.version}; revert version "
            f"{fork.joined} first"
        )

    def _merged_as_before(self, name: str, child: BranchState, fork: Fork) -> SetMerged:
        """Moves the boundary of the branch to where it was before the change."""
        then = self.change.state.branches[name]
        before = then.fork
        assert before is not None  # the callers looked
        if before.boundary < fork.boundary:
            self._check_uncompacted(name, child, fork, then.snapshot, before)
        else:
            self._check_unmixed(name, child, before)
        tombstones = (*then.tombstones.values(), *then.settled.values())
        retired = [
            putting_tombstone(t, settled=True, replaced_in=t.since)
            for t in sorted(tombstones, key=lambda t: (t.seq, t.id))
            if before.is_unmerged(t.seq) and not fork.is_unmerged(t.seq)
            if t.id not in child.tombstones and t.id not in child.settled
        ]
        writes = [seq for seq in before.writes or () if version_of(seq) <= fork.merged]
        return SetMerged(
            name, fork.joined, before.merged, before.joined, pack(reversed(writes)), tuple(retired)
        )

    def _check_uncompacted(
        self, name: str, child: BranchState, fork: Fork, then: Snapshot, before: Fork
    ) -> None:
        """Raises Conflict if the branch compacted what is merged now, and will be unmerged again."""
        for reference in child.snapshot.newer_than(sequence(before.boundary + 1) - 1):
            was_held = then.holds(reference.object, reference.low)
            if not was_held and not fork.is_unmerged(reference.first_seq):
                raise Conflict(
                    f"object {reference.object} of branch {name!r} was compacted after version "
                    f"{self.change.version} merged it; revert that compaction first (lake undo)"
                )

    def _check_unmixed(self, name: str, child: BranchState, before: Fork) -> None:
        """Raises Conflict if the branch mixed what will be merged again with later writes."""
        tombstones = (*child.tombstones.values(), *child.settled.values())
        exact = (
            t.exactly
            for t in tombstones
            if before.is_unmerged(t.seq) and t.exactly is not None and t.upto is None
        )
        mixed = [
            *(r.first_seq for r in child.snapshot.all() if before.is_unmerged(r.seq)),
            *(first for first, _ in exact),
        ]
        if not all(before.is_unmerged(first) for first in mixed):
            raise Conflict(
                f"branch {name!r} was compacted, or loads of it were reverted, since version "
                f"{self.change.version} took the merge back; revert that first"
            )
