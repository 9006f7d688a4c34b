"""One tag on every pool of a lake: a moment of the lake that stays readable.

Each pool gets the tag on its newest version of `main`.  First all pools are read, one after another, and only then
the tags are set.  So a tag has everything that was acknowledged before the first pool was read, and nothing that
began after the last one was.  What was committed in between may be in one pool and not in another: no transaction
covers several pools.

If a tag cannot be set, those that were set are deleted again.  A process that is killed may leave some, and
`delete_from_all` deletes these.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from lake_core import naming
from lake_core.errors import AlreadyExists, LakeError, NotFound
from lake_core.history import PoolState
from lake_core.journal import LoadedState
from lake_core.naming import MAIN
from lake_core.phrases import listed
from log_lake.lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.lake.tags import TagResult, set_tag_on

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TaggedLake:
    """A tag that was set on every pool, or deleted: what happened to each pool, by name.

    `empty`: pools without a transaction, which have nothing to tag.
    """

    tag: str
    pools: dict[str, TagResult]
    empty: tuple[str, ...] = ()


def tag_all(lake: Lake, name: str, *, reason: str = "", expires: float | None = None) -> TaggedLake:
    """Gives the newest version of every pool the same name; `expires` is in seconds since 1970.

    Raises AlreadyExists (a pool has a tag or a branch of this name), NotFound (no pool has a transaction),
    InvalidInput, Corrupt, OutcomeUnknown, Unavailable; then no pool has the tag, unless a warning says so.
    """
    pools = _pools(lake)
    newest = {pool.name: pool.history.load_open() for pool in pools}
    taken = [
        pool for pool, loaded in newest.items() if name in loaded.state.tags or name in loaded.state.branches
    ]
    if taken:
        raise AlreadyExists(
            f"pools {listed(taken)} have a tag or a branch {name!r} already; choose another name, or delete the "
            f"tag everywhere (lake tag --all -d {name})"
        )
    begun = [pool for pool in pools if newest[pool.name].version]
    if not begun:
        raise NotFound("no pool of this lake has a transaction yet, so there is nothing to tag")
    done: dict[str, TagResult] = {}
    try:
        for pool in begun:
            version = newest[pool.name].version
            done[pool.name] = set_tag_on(
                pool, name, partial(_at_version, pool, version), reason=reason, expires=expires
            )
    except BaseException:
        _take_back(begun[: len(done) + 1], name)
        raise
    return TaggedLake(name, done, tuple(pool.name for pool in pools if pool not in begun))


def delete_from_all(lake: Lake, name: str) -> TaggedLake:
    """Delete the tag of this name of every pool that has one.

    Raises NotFound if no pool has it, OutcomeUnknown, Unavailable.
    """
    naming.check_chosen_name(naming.check_branch_name(name, what="tag"), what="tag")
    done = {pool.name: pool.delete_tag(name) for pool in _pools(lake) if name in pool.tags}
    if not done:
        raise NotFound(f"no pool has a tag {name!r}; lake tags lists them")
    return TaggedLake(name, done)


def _pools(lake: Lake) -> list[Pool]:
    """The pools that users made."""
    return [lake.pool(config.name) for config in lake.pools() if not naming.is_own(config.name)]


def _at_version(pool: Pool, version: int) -> tuple[LoadedState[PoolState], str]:
    return pool.history.load_version(version), MAIN


def _take_back(pools: list[Pool], name: str) -> None:
    """Deletes the tag that was set on these pools; on the last one it may not be."""
    for pool in pools:
        try:
            with suppress(NotFound):
                pool.delete_tag(name)
        except LakeError as error:
            log.warning(
                "pool %r may keep the tag %r, which the others do not have: %s", pool.name, name, error
            )
