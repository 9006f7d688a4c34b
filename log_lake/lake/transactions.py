"""Transactions over several pools: all of their writes become visible at one moment, or none of them.

    with lake.transaction() as tx:
        tx.pool("orders").load(["orders.csv"])
        tx.pool("totals").delete(where="day = 3")

In each pool a transaction writes on a branch of its own.  So each write is an ordinary load or delete there,
and the transaction reads its own writes.  The commit prepares one pool after the other, in the order of their
ids: an entry in each journal promises to merge the branch.  Then it makes the decision, one object for all
pools.  Then it settles each pool.  docs/transactions.md explains it, docs/protocol.md says why it is right.
All prepare pools in the same order, and hold only prepared pools while they wait, so there is no deadlock.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Protocol

from lake_core import naming
from lake_core.catalog import Catalog
from lake_core.context import Context
from lake_core.errors import (
    AlreadyExists,
    Conflict,
    InvalidInput,
    LakeError,
    NotFound,
    OutcomeUnknown,
    PlanAgain,
    Unavailable,
)
from lake_core.history import Draft, PoolState
from lake_core.history.transactions.decisions import (
    TOKEN,
    TTL,
    Begun,
    CommitLease,
    Decision,
    Decisions,
    JoinedPool,
    ListedTransaction,
)
from lake_core.ids import is_id
from lake_core.journal import LoadedState
from lake_core.naming import MAIN
from lake_core.records import CreateBranch, Prepare, Settle
from lake_core.records.pools import PoolConfig
from log_lake.lake.branch import Branch
from log_lake.lake.branches import check_inlined, planned
from log_lake.lake.pool import Pool
from log_lake.lake.transaction_branch import branch_of, end_branch, first_use, has_writes
from log_lake.lake.view import View

log = logging.getLogger(__name__)


class HasPools(Protocol):
    """What a transaction needs of its lake; a lake imports this module, so this module cannot import it."""

    context: Context
    catalog: Catalog

    def pool(self, name: str) -> Pool: ...

    def unlisted(self, config: PoolConfig) -> Pool: ...


@dataclass(frozen=True)
class TransactionResult:
    """What a commit did: by the name of each pool, the version that merged the transaction.  Pools without writes
    are left out.

    `repeated`: an earlier transaction with its token was committed, and this one changed nothing.
    """

    id: str
    versions: dict[str, int]
    repeated: bool = False


class PoolsTransaction:
    """A transaction over pools of a lake, known by its id; any number of processes may write in it.

    In a `with` statement it is committed at the end of the block, and aborted if the block fails.
    """

    def __init__(self, lake: HasPools, id: str) -> None:
        if not isinstance(id, str) or not is_id(id):
            raise InvalidInput(f"transaction {id!r}: give the id of one that was begun")
        self.id = id
        self.branch = naming.transaction_branch(id)
        self.result: TransactionResult | None = None
        self._lake = lake
        self._decisions = Decisions(lake.context.store, lake.context.clock)
        self._renewed = 0.0
        self._join_of: dict[str, JoinedPool] = {}
        self._at_once = lake.catalog.journal.read_all

    # --- writing and reading

    def pool(self, name: str, *, into: str = MAIN) -> Branch:
        """Returns a branch of the pool `name` to write to; the commit merges it into the branch `into`.

        The first call for a pool makes that branch; from then on the transaction sees the pool as it was, and
        its own writes. Raises NotFound (no such pool, branch or transaction), Conflict (it was committed or
        aborted), InvalidInput (the pool joined with another `into`), Unavailable.
        """
        self.check_open()
        pool = self._lake.pool(name)
        if pool.sub_pool:
            raise InvalidInput(f"the sub-pool {name} is read-only: load into the pool itself")
        state = pool.history.load_open().state
        if self.branch in state.branches:
            joined = self._decisions.joined(self.id, pool.config.id)
        else:
            joined = self._join(pool, state, into)
        if joined is None:  # its objects were deleted
            raise NotFound(f"transaction {self.id} was ended")
        if joined.into != into:
            raise InvalidInput(f"pool {name!r} is in this transaction for branch {joined.into!r} already")
        return pool.known_branch(self.branch)

    def at(self, name: str, *, into: str = MAIN) -> View:
        """Returns a pool as this transaction sees it.  If the transaction has not written to the pool, this is its
        newest version.

        Raises NotFound, Unavailable.
        """
        pool = self._lake.pool(name)
        return pool.at_branch(self.revision(pool, into=into))

    def revision(self, pool: Pool, *, into: str = MAIN) -> str:
        """Returns the branch of a pool that this transaction reads: its own, or `into` if it writes nothing there.

        Raises NotFound, Unavailable.
        """
        return self.branch if self.branch in pool.history.load_open().state.branches else into

    def check_open(self) -> None:
        """Raises NotFound if the transaction is unknown or was ended, Conflict if a process has begun to commit or
        end it."""
        objects = self._decisions.listed(self.id)
        if naming.BEGUN not in objects.objects:
            raise NotFound(f"transaction {self.id} does not exist, or was ended; begin another one")
        if not objects.is_open:
            raise Conflict(
                f"transaction {self.id} is being committed or aborted, and takes no more reads or writes"
            )

    def _join(self, pool: Pool, state: PoolState, into: str) -> JoinedPool:
        """Makes the branch, unless the pool has joined for another one.  Returns how the pool joined.

        First it records the join, so that a process that ends the transaction finds the branch.

        Last, it checks that no commit has begun.  A commit writes its lease before it looks for branches, so
        either the commit finds this branch, or this process finds the lease.
        """
        branch_of(pool, state, into)
        joined = self._decisions.join(self.id, pool.config.id, JoinedPool(into))
        if joined.into != into:
            return joined  # `pool` says so
        with contextlib.suppress(AlreadyExists):  # another process of the transaction made it
            loaded = pool.history.load_open()  # again: the branch may be deleted meanwhile
            check_inlined(pool, loaded.state, branch_of(pool, loaded.state, into))
            message = f"begin transaction {self.id}"
            pool.commit_actions((CreateBranch(into),), branch=self.branch, on=loaded.version, message=message)
        try:
            self.check_open()
        except NotFound:  # it was ended meanwhile, and no process will look for this branch
            self._end_branch(pool)
            raise
        return joined

    # --- the commit

    def commit(self) -> TransactionResult:
        """Commits all pools at one moment; a repeated call returns the same result, also in another process.

        Raises NotFound if the transaction is unknown, or ended long ago; Conflict if it was aborted.  If a pool
        refuses the merge, it is aborted, too: Conflict, or InvalidInput as a merge raises it.  Raises
        OutcomeUnknown or Unavailable: then call it again.
        """
        begun = self._decisions.begun(self.id)
        if begun is None:
            raise NotFound(f"transaction {self.id} does not exist, or was ended; begin another one")
        decided: Decision | TransactionResult | None = self._decisions.get(self.id)
        if decided is not None:
            listed = self._decisions.listed(self.id)
        else:
            self._keep_lease(always=True)
            listed = self._decisions.listed(self.id)
            if naming.BEGUN not in listed.objects:  # it was ended just now
                self._decisions.forget(listed)
                raise NotFound(f"transaction {self.id} was ended by another process")
            decided = self._decided(listed, begun)
        if isinstance(decided, TransactionResult):
            return decided
        return self._finished(decided, listed)

    def _finished(self, decision: Decision, listed: ListedTransaction) -> TransactionResult:
        """Returns the result of a decision.  Raises Conflict if it was aborted, and what `_settled` raises."""
        if not decision.committed:
            self.end(listed)
            raise Conflict(f"transaction {self.id} was aborted by {decision.by}; begin another one")
        self.result = TransactionResult(self.id, self._settled(decision, listed))
        return self.result

    def _decided(self, listed: ListedTransaction, begun: Begun) -> Decision | TransactionResult:
        """Returns the decision, which this process makes if there is none; or the result of an earlier commit with
        the same token.

        If a pool refuses, aborts the transaction and raises what the pool raised.
        """
        author = self._lake.context.author
        try:
            pools = self.pools(listed)
            if len(pools) < len(listed.pools):
                raise NotFound(f"transaction {self.id}: a pool of it was dropped, so it cannot be committed")
            token = f"{TOKEN}{begun.token}" if begun.token else ""
            if token and (first := first_use(pools, begun.token)):
                decision = self._decisions.decide(
                    self.id, committed=False, by=f"{author}: its token was used"
                )
                if decision.committed:  # it was this transaction that used it, in another process
                    return decision
                self._check_known()
                self.end(listed)
                self.result = TransactionResult(self.id, first, repeated=True)
                return self.result
            prepared: dict[str, int] = {}
            for pool, looked in zip(pools, list(self._at_once(self._look, pools)), strict=True):
                version = self._prepared_in(pool, token, looked)
                if version is not None:
                    prepared[pool.config.id] = version
                self._keep_lease()
            return self._decisions.decide(self.id, committed=True, by=author, prepared=prepared)
        except (Unavailable, OutcomeUnknown):  # the same commit may succeed
            raise
        except LakeError as error:
            decision = self._decisions.decide(self.id, committed=False, by=f"{author}: a pool refused")
            if decision.committed:  # another process committed it meanwhile
                return decision
            self._check_known()
            self.end(listed)
            log.info("transaction %s is aborted: %s", self.id, error)
            raise

    def _look(self, pool: Pool) -> LoadedState[PoolState] | None:
        """Reads what `_prepare` needs, after the lease was written; None if `_prepare` has to read it."""
        try:
            self._joined(pool)
            return pool.history.load_open()
        except LakeError:  # `_prepare` meets it again
            return None

    def _prepared_in(self, pool: Pool, token: str, looked: LoadedState[PoolState] | None) -> int | None:
        """Calls `_prepare`; adds the name of the pool to its errors."""
        try:
            return self._prepare(pool, token, looked)
        except (Conflict, InvalidInput) as error:
            why = str(error).rpartition("; ")[0] or str(error)  # what it advises is about a merge
            error.args = (
                f"transaction {self.id}, pool {pool.name!r}: {why}; all of it is aborted, begin another one",
                *error.args[1:],
            )
            raise

    def _prepare(self, pool: Pool, token: str, looked: LoadedState[PoolState] | None = None) -> int | None:
        """The version of the pool's pending entry; None if the transaction has written nothing there.

        `looked`: a state that was read since the lease was written.
        """
        into = self._joined(pool).into

        def prepare() -> int | None:
            nonlocal looked
            loaded, looked = looked or pool.history.load_open(), None
            part = loaded.state.pending.get(self.id)
            if part is not None:  # an earlier try of this commit prepared it
                return part.version
            child = loaded.state.branches.get(self.branch)
            if child is None:
                return None
            if not has_writes(child):
                self._end_branch(pool)  # so that no process writes there any more
                return None
            ids = self._lake.context.ids
            action = Prepare(self.id, self.branch, into, ids.new(), token=token)
            message, author = f"prepare transaction {self.id}", self._lake.context.author
            draft = Draft(ids.new(), "", loaded.version, author, (action,), message=message)
            done = pool.history.commit(draft, meanwhile=self._keep_lease)
            if done.repeated is not None:
                raise Conflict(f"the token of transaction {self.id} was used meanwhile; begin another one")
            if done.unchanged:
                raise PlanAgain(f"transaction {self.id} changed in pool {pool.name!r} meanwhile")
            return done.version

        return planned(prepare)

    def _settled(self, decision: Decision, listed: ListedTransaction) -> dict[str, int]:
        """Settles all pools, and removes the branches.  Returns the versions that merged the transaction, by pool
        name.

        Raises OutcomeUnknown if no pool shows that it is committed.
        """
        versions: dict[str, int] = {}
        failed: list[LakeError] = []
        by_others = False
        pools = self.pools(listed)
        prepared = [pool for pool in pools if pool.config.id in decision.prepared]
        settle = partial(self._settle, decision)
        for pool, done in zip(prepared, self._at_once(settle, prepared), strict=True):
            if isinstance(done, LakeError):
                failed.append(done)
                continue
            by_others = by_others or done is None
            versions[pool.name] = done or self._settled_in(pool, decision.prepared[pool.config.id])
        if failed and not versions:
            what = f"transaction {self.id}: {failed[0]}; commit it again"
            raise OutcomeUnknown(what, entry_id=self.id, version=0) from failed[0]
        if by_others or not versions:
            self._check_known()
        self._end(decision, pools)
        return versions

    def _check_known(self) -> None:
        """Raises OutcomeUnknown if the first decision was deleted, so that the one that counts is unknown."""
        if self._decisions.begun(self.id) is None:  # it is deleted before the decision
            what = "was ended by another process, while this one stood still; look at its pools"
            raise OutcomeUnknown(f"transaction {self.id} {what}", entry_id=self.id, version=0)

    def _settle(self, decision: Decision, pool: Pool) -> int | LakeError | None:
        """The version that settled a pool; None if another process settled it."""
        try:
            return pool.history.settle(self.id, decision)
        except LakeError as error:
            log.warning("transaction %s is committed, and pool %r not settled: %s", self.id, pool.name, error)
            return error

    def _settled_in(self, pool: Pool, prepared: int) -> int:
        """Returns the version in which another process settled a pool; if that entry is purged, the version of the
        pending entry."""
        with contextlib.suppress(LakeError):
            for version, transaction in pool.history.read_transactions():
                if version <= prepared:
                    break
                if any(isinstance(a, Settle) and a.over == self.id for a in transaction.actions):
                    return version
        return prepared

    # --- the end

    def abort(self) -> None:
        """Ends the transaction, so that none of its writes is ever visible. If that was done before, removes what
        is left of it.

        Raises Conflict if it is committed, OutcomeUnknown, Unavailable.
        """
        listed = self._decisions.listed(self.id)
        if not listed.objects:
            for config in self._lake.catalog.load().state.pools.values():
                self._end_branch(self._lake.unlisted(config))
            return
        decision = self._decisions.decide(self.id, committed=False, by=self._lake.context.author)
        if decision.committed:
            self._settled(decision, listed)
            raise Conflict(f"transaction {self.id} is committed; lake revert takes it back, pool by pool")
        self.end(self._decisions.listed(self.id))

    def end(self, listed: ListedTransaction) -> None:
        """Ends the transaction in all pools, after its decision: settles what is pending, and removes the
        branches.

        The objects of an aborted transaction are deleted too, if all pools were cleaned: no journal needs them.
        Failures are logged; `clean`, or a process that finds what is left, completes the work.
        """
        decision = self._decisions.get(self.id)
        if decision is not None:
            self._end(decision, self.pools(listed))

    def _end(self, decision: Decision, pools: Sequence[Pool]) -> None:
        ended = list(self._at_once(partial(self._end_in, decision), pools))
        if all(ended) and not decision.committed:
            with contextlib.suppress(LakeError):
                self.forget({pool.config.id for pool in pools})

    def _end_in(self, decision: Decision, pool: Pool) -> bool:
        """Whether a pool has nothing of the transaction any more."""
        try:
            if pool.config.id not in decision.prepared:  # otherwise it was settled just now
                pool.history.settle(self.id, decision)
            self._end_branch(pool)
        except LakeError as error:
            log.warning("transaction %s is not ended in pool %r: %s", self.id, pool.name, error)
            return False
        return True

    def forget(self, ended: Set[str]) -> bool:
        """Deletes the objects that record the transaction.  Returns whether it did.

        It keeps them if a pool that joined and is not in `ended` may still have its branch: such a pool joined
        just now, or was dropped.  If it is restored, `clean` finds its branch by these objects.
        """
        listed = self._decisions.listed(self.id)
        state = self._lake.catalog.load().state
        if any(id in state.pools or id in state.dropped for id in set(listed.pools) - ended):
            return False
        self._decisions.forget(listed)
        return True

    def _end_branch(self, pool: Pool) -> None:
        planned(lambda: end_branch(pool, self.branch))

    def pools(self, listed: ListedTransaction) -> list[Pool]:
        """Returns the pools that joined and are not dropped, in the order of their ids."""
        pools = self._lake.catalog.load().state.pools
        return [self._lake.unlisted(pools[id]) for id in listed.pools if id in pools]

    def _joined(self, pool: Pool) -> JoinedPool:
        """How a pool joined, which never changes."""
        joined = self._join_of.get(pool.config.id) or self._decisions.joined(self.id, pool.config.id)
        if joined is not None:
            self._join_of[pool.config.id] = joined
        return joined or JoinedPool()

    def _keep_lease(self, *, always: bool = False) -> None:
        """Writes the lease of the commit again, unless that was done a short time ago and `always` is false."""
        now = self._lake.context.now()
        if always or abs(now - self._renewed) > TTL / 4:
            self._decisions.keep_lease(self.id, CommitLease(self._lake.context.author))
            self._renewed = now

    def __enter__(self) -> PoolsTransaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.commit()
            return
        try:
            self.abort()
        except LakeError as failure:  # the block's own error is the one to see
            log.warning("transaction %s is not aborted: %s", self.id, failure)
