"""Clones: a new pool that begins with the records of another one, without a copy of its objects.

1. A tag in the source, `clone-<id>`, protects the version: its checkpoint from purges, its objects from vacuums
   and erasures.  It has no expiry; it is deleted when the clone no longer needs it (`holds`).
2. The clone's first checkpoint and a fence at its version: its history begins as after a purge.
3. The clone's first entry.  If a clone is never listed, an agent ends it: it makes the first entry itself, as
   one that closes the pool.  Only one of the two processes can make that entry, however long the other one
   paused.
4. The clone is listed.  Until then no program sees it.

Called by `Lake.clone`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass

from lake_core import naming
from lake_core.catalog import Catalog
from lake_core.context import Context
from lake_core.errors import AlreadyExists, InvalidInput, LakeError, NotFound, Unavailable
from lake_core.history import History, PoolState
from lake_core.history.branch_state import BranchState
from lake_core.ids import first_id
from lake_core.journal import LoadedState, put_fence, write_state
from lake_core.journal.recent import Recent
from lake_core.naming import MAIN
from lake_core.records import ScanOrphans
from lake_core.records.pools import CloneOrigin, PoolConfig
from log_lake.lake import tags
from log_lake.lake.cloned_state import CloneFormat, homes_of, state_of_clone
from log_lake.lake.given_up import give_up
from log_lake.lake.histories import history_of
from log_lake.lake.named import resolve_revision
from log_lake.lake.pool import Pool

log = logging.getLogger(__name__)

SINCE = 3
"""The format version of a lake from which on it may have clones: programs of older ones do not know them."""

ONE_POOL = ("ingest.source", "intervals.source", "derive.from", "derive.query")
"""Settings that only one pool should have. The place of a published table (`publish.iceberg`) is another
one."""


def settings_of_copy(config: PoolConfig) -> dict[str, str]:
    """Returns those settings of a pool that another pool with the same records may have as well."""
    return {
        name: text
        for name, text in config.settings.items()
        if name not in ONE_POOL and (name != "publish.iceberg" or text == "beside")
    }


def clone(
    source: Pool, new: str, *, at: str, catalog: Catalog, unlisted: Callable[[PoolConfig], Pool]
) -> Pool:
    """Makes a pool that begins with a revision of the source, without copying an object.

    Raises AlreadyExists, NotFound, InvalidInput, ObjectVacuumed, Conflict, OutcomeUnknown, Unavailable.
    """
    context = source.context
    check_cloned(source)
    if new in catalog.load().state.names:
        raise AlreadyExists(f"pool {new!r} exists already; use another name")
    id, old = context.ids.new(), source.config
    plain = PoolConfig(id, new, old.key, old.kind, settings_of_copy(old), dict(old.aggregates))
    catalog.check_new(plain)
    kept = hold(source, id, at=at, reason=f"clone {new}")
    loaded, branch = kept.loaded, kept.branch
    origin = CloneOrigin(old.id, old.name, loaded.version, branch, tuple(sorted(kept.homes)))
    config = PoolConfig(
        id, new, old.key, old.kind, dict(plain.settings), dict(plain.aggregates), clone=origin
    )
    try:
        begin_journal(source.history, context, config, kept)
        pool = unlisted(config)
        nothing = ScanOrphans(first_id(0.0), first_id(0.0))
        message = f"clone of {old.name}@{loaded.version}" + ("" if branch == MAIN else f" of {branch}")
        pool.commit_actions((nothing,), on=loaded.version, message=message)
        catalog.create(config)
    except (AlreadyExists, InvalidInput):  # it is surely not listed
        _take_back(source, id)
        raise
    pool.history.load_open()  # NotFound if this stood still, and the agent has ended the clone meanwhile
    log.info("%s: a clone of %s at version %d", new, old.name, loaded.version)
    return pool


def check_cloned(source: Pool) -> None:
    """Raises InvalidInput for a pool that cannot be cloned."""
    if source.sub_pool or naming.is_own(source.name):
        raise InvalidInput(f"clone of {source.name!r}: name a pool of records; its sub-pools come along")
    if source.context.format_version < SINCE:
        raise InvalidInput(
            f"this lake has format version {source.context.format_version}, which has no clones: run lake upgrade"
        )


@dataclass(frozen=True)
class Hold:
    """What a tag in the source keeps for a clone: a state of the source, and a branch in it.  `source_id` is ""
    for a copy in another lake."""

    source_id: str
    loaded: LoadedState[PoolState]
    branch: str

    @property
    def state(self) -> BranchState:
        """The state of the branch with which the clone begins."""
        return self.loaded.state.branches[self.branch]

    @property
    def homes(self) -> frozenset[str]:
        """The pools in whose folders objects of the clone may lie."""
        return homes_of(self.state.snapshot) | {self.source_id}


def hold(source: Pool, clone_id: str, *, at: str, reason: str) -> Hold:
    """Sets a tag by which the source keeps a revision for a clone with this id. Raises what setting a tag
    raises."""
    holds: list[Hold] = []

    def resolved() -> tuple[LoadedState[PoolState], str]:
        loaded, branch = resolve_revision(source.history, at)
        if naming.transaction_of(branch):
            raise InvalidInput(f"branch {branch!r} is of a transaction over pools: commit it, then clone")
        if not loaded.version:
            raise InvalidInput(f"pool {source.name!r} has no transaction yet, so there is nothing to clone")
        stored = source.history.load_version(loaded.version)
        check_settled(source, loaded.state, stored.state, branch)
        holds.append(Hold(source.config.id, stored, branch))
        return stored, branch

    tags.keep_for(source, naming.clone_tag(clone_id), resolved, reason=reason)
    return holds[-1]


def check_settled(source: Pool, shown: PoolState, stored: PoolState, branch: str) -> None:
    """Raises Unavailable if readers of the branch see a transaction over pools that the stored state does not have
    yet.

    In that case this process could not settle the transaction there.  A pool that begins with the stored state
    would lack the transaction's records for good.
    """
    for over, part in stored.pending.items():
        if part.into == branch and over not in shown.pending:
            raise Unavailable(
                f"pool {source.name!r}: transaction {over} is committed, but not settled in this pool, and this "
                "process could not do it; let one that may write the pool read it, then run this again"
            )


def begin_journal(source: History, context: Context, config: PoolConfig, kept: Hold) -> None:
    """Writes the first checkpoint of a pool that begins with the state in `kept`, and a fence at its
    version."""
    version = kept.loaded.version
    state = state_of_clone(kept.loaded.state, kept.branch, pool_id=kept.source_id)
    history = history_of(context, config)
    history.journal.format = CloneFormat(
        homes=config.homes, source=kept.source_id, without=_elsewhere(source, kept)
    )
    loaded = LoadedState(version, state, Recent(version))
    write_state(history.journal, loaded, id=context.ids.new(), now=context.now())
    put_fence(history.journal, version)


def _elsewhere(history: History, kept: Hold) -> frozenset[str]:
    """Returns the tokens of loads whose records are not on the branch, so that the clone loads them if such a load
    is repeated."""
    state = kept.loaded.state
    if len(state.branches) == 1 and not any(tag.deleted for tag in state.tags.values()):
        return frozenset()
    elsewhere = set()
    for version, transaction in history.read_transactions():
        token = transaction.token
        if version > kept.loaded.version or not token or transaction.branch == kept.branch:
            continue
        first = state.tokens.get(token)
        if first is None or first.transaction_id != transaction.id:
            continue
        try:
            history.first_use(state, token, branch=kept.branch)
        except InvalidInput:
            elsewhere.add(token)
    return frozenset(elsewhere)


def _take_back(source: Pool, clone_id: str) -> None:
    """Deletes the tag for a clone that is not listed; if this fails, an agent does it later."""
    with contextlib.suppress(LakeError):
        give_up(source.context, clone_id, why="a clone that was not listed")
        release(source, clone_id)


def release(source: Pool, clone_id: str) -> None:
    """Deletes the tag in the source that keeps a version for a clone, if there is one.  Raises OutcomeUnknown,
    Unavailable."""
    with contextlib.suppress(NotFound):
        tags.let_go(source, naming.clone_tag(clone_id))
