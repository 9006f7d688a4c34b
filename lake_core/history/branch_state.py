"""One branch in a pool's state: its tip, its snapshot, its tombstones, and its relation to its parent.

A branch that was created from another one has two *sides*.  The unmerged side has its own writes since the
boundary: a merge brings them to the parent.  The other side has everything that the parent has already, or had
when the branch was created.  The boundary is a version of the pool: at first the version that created the
branch; after a merge, the version up to which the branch was merged.  Sequences tell the sides apart, so a
compaction may not mix them (decision 66).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from rpds import HashTrieMap, List

from lake_core.history.snapshot.reference import Reference
from lake_core.history.snapshot.snapshot import Snapshot
from lake_core.history.tombstone import Tombstone
from lake_core.records.transactions import version_of

MAX_WRITES = 65_000
"""The most unmerged writes of a branch that can be merged: an entry has 65,535 sequences."""


@dataclass(frozen=True)
class Fork:
    """How a branch relates to the branch that it was created from, `parent`.

    It began in version `created`, on version `at` of the parent.  `merged` is the version of this branch up to
    which it was merged, and `joined` the version of that merge; both are 0 if it was never merged.  `writes`
    are the sequences of its unmerged loads, deletes and replaces, newest first; None means that they were too
    many, and the branch cannot be merged any more.  `restored` is the version that last restored the branch, 0
    if it was never deleted.
    """

    parent: str
    at: int
    created: int
    merged: int = 0
    joined: int = 0
    writes: List[int] | None = field(default_factory=List)
    restored: int = 0

    @property
    def boundary(self) -> int:
        """The version after which writes of this branch are unmerged."""
        return max(self.created, self.merged)

    @property
    def parent_boundary(self) -> int:
        """The version of the parent up to which this branch knows the parent's replaces.  Later replaces of the
        parent may conflict with those of this branch."""
        return max(self.at, self.joined)

    def is_unmerged(self, sequence: int) -> bool:
        """Whether records or a tombstone with this sequence were written after the boundary."""
        return version_of(sequence) > self.boundary

    def with_writes(self, sequences: range) -> Fork:
        """Returns the fork with these sequences added to its writes."""
        if self.writes is None or len(self.writes) + len(sequences) > MAX_WRITES:
            return replace(self, writes=None)
        writes = self.writes
        for sequence in sequences:
            writes = writes.push_front(sequence)
        return replace(self, writes=writes)


@dataclass(frozen=True)
class BranchState:
    """A branch: `tip` is the version of its newest transaction, 0 before the first.

    `tombstones` are by name.  `replaced` is the newest version with a replace whose tombstone is now retired.
    If a load began before that version, the state no longer shows whether the replace overtook it.  `settled`
    are retired tombstones that merges still need; readers ignore them.  `fork` is None for `main`.  `revealed`
    is the newest version that reverted a delete; a compaction that began before it may lack the records that
    are visible again.
    """

    tip: int = 0
    snapshot: Snapshot = field(default_factory=Snapshot)
    tombstones: HashTrieMap[str, Tombstone] = field(default_factory=HashTrieMap)
    replaced: int = 0
    fork: Fork | None = None
    settled: HashTrieMap[str, Tombstone] = field(default_factory=HashTrieMap)
    revealed: int = 0

    def is_unmerged(self, reference: Reference) -> bool:
        """Whether the branch wrote this reference and has not merged it into its parent yet; False for a branch
        without a parent."""
        return self.fork is not None and self.fork.is_unmerged(reference.seq)


Branches = Mapping[str, BranchState]


def children(branches: Branches, name: str) -> list[str]:
    """Returns the names of the branches that were created from the branch."""
    return sorted(child for child, state in branches.items() if state.fork and state.fork.parent == name)


Roots = Sequence[tuple[str, int]]
"""The parent of each deleted branch that a tag keeps, and its boundary there (`Fork.parent_boundary`)."""


def is_needed(branches: Branches, name: str, tombstone: Tombstone, *, roots: Roots) -> bool:
    """Whether a merge may still need a retired tombstone of the branch.

    That may be the branch's own merge, or the merge of a child that does not know the tombstone's replace.  A
    deleted child counts, because it may be restored.
    """
    fork = branches[name].fork
    if fork is not None and fork.writes is not None and fork.is_unmerged(tombstone.seq):
        return True
    if not tombstone.replaces:
        return False
    forks = (branches[child].fork for child in children(branches, name))
    boundaries = [fork.parent_boundary for fork in forks if fork is not None]
    boundaries += [boundary for parent, boundary in roots if parent == name]
    return any(tombstone.since > boundary for boundary in boundaries)


def with_settled(
    branches: HashTrieMap[str, BranchState], name: str, *, roots: Roots
) -> HashTrieMap[str, BranchState]:
    """Returns the branches, without the settled tombstones of the branch `name` that no merge needs."""
    branch = branches.get(name)
    if branch is None or not len(branch.settled):
        return branches
    kept = {id: t for id, t in branch.settled.items() if is_needed(branches, name, t, roots=roots)}
    return branches.insert(name, replace(branch, settled=HashTrieMap(kept)))
