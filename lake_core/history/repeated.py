"""Decides about a token that was used before: whether its records are, or were, on the branch that uses it again.

A repeated commit writes nothing, because the first one counts.  That would silently lose records if they are
not on the branch: because their load was reverted, or went to another branch, for example a deleted one.
Loading once more could double them, because a revert and a deletion can be undone.  So the commit is refused
(decision 163).  Records that were deleted, replaced or expired on the branch were there, so they are not loaded
again.

The snapshot nearly always suffices, as long as the load's own objects are there; a merged object does not show
whether it contains the load.  Otherwise the entries since the load decide; if they are purged, the first commit
counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from lake_core.errors import InvalidInput
from lake_core.history.branch_state import BranchState
from lake_core.history.lift import unpack
from lake_core.history.state import Remembered
from lake_core.records import CreateBranch, DeleteBranch, Merge, Transaction
from lake_core.records.branching import Restored
from lake_core.records.transactions import sequence, version_of

REVERTS = "lake.reverts"
"""The metadata of a revert: the versions that it reverts, with blanks between them."""


def holds(branch: BranchState, first: Remembered) -> bool:
    """Whether the branch certainly has all that the token's first transaction brought; for a load, all its
    objects."""
    tombstones = [*branch.tombstones.values(), *branch.settled.values()]
    if not first.objects:
        return any(t.transaction_id == first.transaction_id for t in tombstones)
    if any(t.only and version_of(t.only[0]) <= first.version <= version_of(t.only[1]) for t in tombstones):
        return False  # a revert may have left it
    sizes: dict[int, list[int]] = defaultdict(list)
    for r in branch.snapshot.newer_than(sequence(first.version) - 1):
        if r.first_seq == r.seq and version_of(r.seq) == first.version:
            sizes[r.seq].append(r.size)
    return any(len(own) == first.objects and sum(own) == first.size for own in sizes.values())


def check_repeated(
    transactions: Iterable[tuple[int, Transaction]], first: Remembered, *, branch: str, token: str
) -> None:
    """Raises InvalidInput if the token's records never were on the branch, or were reverted there.

    `transactions` are those of the pool with their versions, newest first.  They are read back to the first
    commit.
    """
    since: list[tuple[int, Transaction]] = []
    for version, transaction in transactions:
        if transaction.id == first.transaction_id:
            break
        if version < first.version:
            return
        since.append((version, transaction))
    else:
        return  # purged
    loaded = _OnBranch({first.version: [(first.version, True)]})
    traced = _Trace(first.version, {transaction.branch: loaded})
    for version, later in reversed(since):
        traced.follow(version, later)
    there = traced.branches[branch].shown if branch in traced.branches else {}
    if any(states[-1][1] for states in there.values()):
        return
    if first.version in there:  # and not brought by a merge that was taken back
        by, _ = there[first.version][-1]
        raise InvalidInput(
            f"token {token!r} stands for version {first.version}, which version {by} took back, so nothing was "
            f"written: use another token, or revert version {by}"
        )
    raise InvalidInput(
        f"token {token!r} stands for version {first.version} of branch {transaction.branch!r}, which was not "
        f"merged into {branch!r}, so nothing was written: use another token, or merge that branch (if it was "
        "deleted, restore it from its tag first)"
    )


@dataclass
class _OnBranch:
    """How the branch has shown one load, from version to version.

    `shown`: for each version that brought the load to the branch (its own version, or those of merges), the
    versions from which on the load was shown, or reverted. `reverts`: the changes that each revert made.
    `created`: the version that created the branch, 0 if that was before the load.
    """

    shown: dict[int, list[tuple[int, bool]]] = field(default_factory=dict)
    reverts: dict[int, dict[int, bool]] = field(default_factory=dict)
    created: int = 0

    def at(self, version: int) -> dict[int, list[tuple[int, bool]]]:
        """Returns what `shown` was at a version."""
        states = {v: [one for one in states if one[0] <= version] for v, states in self.shown.items()}
        return {v: past for v, past in states.items() if past}

    def revert(self, version: int, reverted: Iterable[int]) -> None:
        """Records that versions were reverted; the revert of a revert shows again what that one had hidden."""
        changed: dict[int, bool] = {}
        for one in reverted:
            changed |= {one: False} if one in self.shown else {}
            changed |= {v: not is_shown for v, is_shown in self.reverts.get(one, {}).items()}
        self.reverts[version] = changed
        for one, is_shown in changed.items():
            self.shown[one].append((version, is_shown))


@dataclass
class _Trace:
    """Follows the load of a version to the branches that merges bring it to. `deleted` are deleted branches, by
    name and by the version that created them."""

    version: int
    branches: dict[str, _OnBranch]
    deleted: dict[tuple[str, int], _OnBranch] = field(default_factory=dict)

    def follow(self, version: int, transaction: Transaction) -> None:
        """Applies the next transaction; call it from old to new."""
        name = transaction.branch
        for action in transaction.actions:
            match action:
                case CreateBranch(restored=None):
                    parent = self.branches.get(action.parent, _OnBranch())
                    self.branches[name] = _OnBranch(parent.at(action.at or 0), created=version)
                case CreateBranch(restored=back) if back is not None:
                    created = 0 if self._had_the_load(back) else back.created
                    self.branches[name] = self.deleted.get((name, created)) or _OnBranch()
                case DeleteBranch():
                    gone = self.branches.pop(name, _OnBranch())
                    self.deleted[name, gone.created] = gone
                case Merge():
                    merged = self.branches.get(action.branch, _OnBranch()).at(version)
                    if any(v in merged and merged[v][-1][1] for v in map(version_of, unpack(action.writes))):
                        self.branches.setdefault(name, _OnBranch()).shown[version] = [(version, True)]
                case _:
                    pass
        taken_back = [int(v) for v in transaction.metadata.get(REVERTS, "").split() if v.isdecimal()]
        if taken_back and name in self.branches:
            self.branches[name].revert(version, taken_back)

    def _had_the_load(self, restored: Restored) -> bool:
        """Whether the restored branch is the one that had the load; other branches of this name may be deleted
        too."""
        if restored.created > self.version:
            return False
        unmerged = restored.writes
        return (
            unmerged is None
            or self.version <= restored.merged
            or self.version in map(version_of, unpack(unmerged))
        )
