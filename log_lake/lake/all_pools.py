"""Sets one tag on every pool of a lake: a moment of the lake that stays readable.

Each pool gets the tag on its newest version of `main`.  First all pools are read at one moment, and only then
the tags are set.  So the tags have everything that was acknowledged before the first pool was read, and nothing
that began after the last one was read.  A transaction over pools is in all of them, or in none (`moment`).
Other transactions that were committed during the reads may be in one pool and not in another.

If a tag cannot be set, those that were set are deleted again.  The process knows its own tags by the ids of the
transactions that set them, so it deletes no tag of another process.  A process that is killed may leave some
tags; `delete_from_all` deletes these.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from lake_core import naming
from lake_core.errors import AlreadyExists, Incomplete, InvalidInput, LakeError, NotFound, Unavailable
from lake_core.history import PoolState
from lake_core.journal import LoadedState
from lake_core.naming import MAIN
from lake_core.phrases import counted, listed
from log_lake.lake.isolated import answer_of
from log_lake.lake.lake import Lake
from log_lake.lake.moment import states_at_one_moment
from log_lake.lake.pool import Pool
from log_lake.lake.tags import TagResult, is_set_by, set_tag_on

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TaggedLake:
    """A tag that was set on every pool, or deleted: what happened to each pool, by name.

    `empty`: pools without a transaction, which have nothing to tag.  `failures`: pools whose tag could not be
    deleted.
    """

    tag: str
    pools: dict[str, TagResult]
    empty: tuple[str, ...] = ()
    failures: dict[str, LakeError] = field(default_factory=dict)

    def check(self) -> None:
        """Raises Incomplete, with the errors, if a pool failed."""
        if self.failures:
            errors = "; ".join(f"{pool!r}: {error}" for pool, error in self.failures.items())
            raise Incomplete(
                f"{counted(len(self.failures), 'pool')} may keep the tag {self.tag!r}; mend what the errors say, "
                f"then run the command again: {errors}"
            )


@dataclass(frozen=True)
class _Newest:
    """What `tag_all` needs of a pool's state: the version to tag, and the tag or branch that already has the
    name."""

    version: int
    has_tag: bool
    has_branch: bool
    pending: frozenset[str]


def tag_all(lake: Lake, name: str, *, reason: str = "", expires: float | None = None) -> TaggedLake:
    """Gives the newest version of every pool the same name, as a tag; `expires` is in seconds since 1970.

    Raises AlreadyExists (a pool has a tag or a branch of this name), NotFound (no pool has a transaction),
    InvalidInput, Corrupt, OutcomeUnknown, Unavailable.  After an error no pool has the tag of this call, unless
    a warning or the OutcomeUnknown says so.
    """
    pools = _pools(lake)
    states = states_at_one_moment(pools)
    newest = {pool.name: _newest(states[pool.config.id], name) for pool in pools}
    del states
    _check_free(name, newest)
    begun = [pool for pool in pools if newest[pool.name].version]
    if not begun:
        raise NotFound("no pool of this lake has a transaction yet, so there is nothing to tag")
    done: dict[str, TagResult] = {}
    ids: list[str] = []

    def new_id() -> str:
        ids.append(lake.context.ids.new())
        return ids[-1]

    try:
        for pool in begun:
            at = partial(_at_version, pool, newest[pool.name])
            done[pool.name] = set_tag_on(pool, name, at, reason=reason, expires=expires, new_id=new_id)
    except BaseException as error:
        is_refused = isinstance(error, AlreadyExists | InvalidInput)  # otherwise the last one may be set
        _take_back(begun[: len(done) + (not is_refused)], name, ids)
        raise
    return TaggedLake(name, done, tuple(pool.name for pool in pools if pool not in begun))


def delete_from_all(lake: Lake, name: str) -> TaggedLake:
    """Deletes the tag with this name in every pool that has one.

    If a pool fails, the others continue, and `TaggedLake.check` raises Incomplete.  Raises NotFound if no pool
    has the tag. Raises Corrupt or Unavailable if the list of pools cannot be read.
    """
    naming.check_chosen_name(naming.check_branch_name(name, what="tag"), what="tag")
    done: dict[str, TagResult] = {}
    failures: dict[str, LakeError] = {}
    for pool in _pools(lake):
        answer = answer_of(pool.name, partial(_delete_if_there, lake, pool, name))
        if isinstance(answer, TagResult):
            done[pool.name] = answer
        elif answer is not None:
            failures[pool.name] = answer
    if not done and not failures:
        raise NotFound(f"no pool has a tag {name!r}; lake tags lists them")
    return TaggedLake(name, done, failures=failures)


def _delete_if_there(lake: Lake, pool: Pool, name: str) -> TagResult | None:
    """Deletes the tag.  Returns None if the pool has no such tag, or if the pool or its tag was deleted meanwhile.

    Raises NotFound if a drop of the pool was interrupted, Corrupt, OutcomeUnknown, Unavailable.
    """
    try:
        tags = pool.history.load_open().state.tags
    except NotFound:
        if lake.pools_of([pool.name]):  # still listed, so that a restore brings it back with its tag
            raise
        return None
    with suppress(NotFound):
        return pool.delete_tag(name) if name in tags else None
    return None


def _pools(lake: Lake) -> list[Pool]:
    """Returns the pools of users, without those that the lake makes itself."""
    names = [config.name for config in lake.pools() if not naming.is_own(config.name)]
    return list(lake.pools_of(names).values())


def _newest(loaded: LoadedState[PoolState], name: str) -> _Newest:
    state = loaded.state
    return _Newest(
        loaded.version, name in state.tags, name in state.branches, frozenset(state.pending.keys())
    )


def _check_free(name: str, newest: dict[str, _Newest]) -> None:
    """Raises AlreadyExists if a pool has a tag or a branch of this name."""
    tags = [pool for pool, one in newest.items() if one.has_tag]
    branches = [pool for pool, one in newest.items() if one.has_branch]
    parts = [
        *([f"{_have(tags)} a tag {name!r} already"] if tags else []),
        *([f"{_have(branches)} a branch {name!r}"] if branches else []),
    ]
    if not parts:
        return
    message = f"{', and '.join(parts)}; choose another name"
    if not branches:
        message += (
            ". Only if an earlier lake tag --all was interrupted (lake tags shows when each was set), delete its "
            f"tags first: lake tag --all -d {name}"
        )
    raise AlreadyExists(message)


def _have(pools: Sequence[str]) -> str:
    return f"pool {pools[0]} has" if len(pools) == 1 else f"pools {listed(pools)} have"


def _at_version(pool: Pool, newest: _Newest) -> tuple[LoadedState[PoolState], str]:
    loaded = pool.history.load_version(newest.version)
    if frozenset(loaded.state.pending.keys()) != newest.pending:  # shown in memory, but in no entry
        raise Unavailable(
            f"pool {pool.name!r}: a committed transaction over several pools could not be settled here; try again"
        )
    return loaded, MAIN


def _take_back(pools: Sequence[Pool], name: str, ids: Sequence[str]) -> None:
    """Deletes the tag in those of these pools where a transaction with one of these ids set it."""
    for pool in pools:
        error = answer_of(pool.name, partial(_delete_own, pool, name, ids))
        if error is not None:
            log.warning(
                "pool %r may keep the tag %r, which the others do not have: %s", pool.name, name, error
            )


def _delete_own(pool: Pool, name: str, ids: Sequence[str]) -> None:
    with suppress(NotFound):  # the pool or its tag went meanwhile
        if is_set_by(pool, name, ids):
            pool.delete_tag(name)
