"""A token that was used before: whether what it committed is, or was, on the branch that uses it again.

A repeated commit writes nothing, because the first one counts.  That would lose records in silence if they are
not there: its load was reverted, or went to another branch, such as one that is deleted.  Loading once more could
double them, because a revert and a deletion can be taken back.  So the commit is refused (decision 163).  What was
deleted, replaced or expired on the branch was there, and is not loaded again.

The snapshot answers nearly always.  Otherwise the entries since tell; if they are purged, the first commit counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from lake_core.errors import InvalidInput
from lake_core.history.branch_state import BranchState
from lake_core.history.lift import unpack
from lake_core.history.state import Remembered
from lake_core.records import CreateBranch, Merge, Transaction
from lake_core.records.transactions import sequence, version_of

REVERTS = "lake.reverts"
"""The metadata of a revert: the versions that it takes back, with blanks between them."""


def holds(branch: BranchState, first: Remembered) -> bool:
    """Whether the branch surely has what the transaction brought; of a load an object that may hold its records."""
    tombstones = [*branch.tombstones.values(), *branch.settled.values()]
    if not first.objects:
        return any(t.transaction_id == first.transaction_id for t in tombstones)
    if any(t.only and version_of(t.only[0]) <= first.version <= version_of(t.only[1]) for t in tombstones):
        return False  # a revert may have left it
    newer = branch.snapshot.newer_than(sequence(first.version) - 1)
    return any(version_of(r.first_seq) <= first.version for r in newer)


def check_repeated(
    transactions: Iterable[tuple[int, Transaction]], first: Remembered, *, branch: str, token: str
) -> None:
    """Raises InvalidInput if what the token committed never was on the branch, or was taken back there.

    `transactions` are those of the pool with their versions, newest first.  They are read down to the first commit.
    """
    reverted: dict[tuple[str, int], int] = {}
    since: list[tuple[int, Transaction]] = []
    for version, transaction in transactions:
        if transaction.id == first.transaction_id:
            break
        if version < first.version:
            return
        own = transaction.branch
        if (own, version) not in reverted:  # otherwise it counts as not done
            versions = transaction.metadata.get(REVERTS, "").split()
            reverted |= {(own, int(v)): version for v in versions if v.isdecimal()}
            since.append((version, transaction))
    else:
        return  # purged
    if (by := reverted.get((transaction.branch, first.version))) is not None:
        raise InvalidInput(
            f"token {token!r} stands for version {first.version}, which version {by} took back, so nothing was "
            f"written: use another token, or revert version {by}"
        )
    if branch not in _reached(first.version, transaction.branch, reversed(since)):
        raise InvalidInput(
            f"token {token!r} stands for version {first.version} of branch {transaction.branch!r}, which was not "
            f"merged into {branch!r}, so nothing was written: use another token, or merge that branch (if it was "
            "deleted, restore it from its tag first)"
        )


def _reached(version: int, branch: str, later: Iterable[tuple[int, Transaction]]) -> set[str]:
    """The branches that got the version of a branch; `later` are the transactions since, from old to new."""
    at: dict[str, set[int]] = defaultdict(set, {branch: {version}})
    for number, transaction in later:
        for action in transaction.actions:
            if isinstance(action, CreateBranch) and any(v <= (action.at or 0) for v in at[action.parent]):
                at[transaction.branch] |= {v for v in at[action.parent] if v <= (action.at or 0)}
            elif isinstance(action, Merge) and at[action.branch].intersection(
                map(version_of, unpack(action.writes))
            ):
                at[transaction.branch].add(number)
    return {name for name, versions in at.items() if versions}
