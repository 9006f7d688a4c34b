"""Finds what a name from a user stands for: a revision (a version, a transaction id, a branch, a tag,
BRANCH@TIME), or a dropped pool."""

from __future__ import annotations

import datetime as dt

from lake_core.catalog.state import PoolsState
from lake_core.errors import InvalidInput, NotFound
from lake_core.history import PoolState
from lake_core.history.history import History
from lake_core.ids import is_id
from lake_core.journal import LoadedState
from lake_core.naming import MAIN
from lake_core.phrases import counted, did_you_mean
from lake_core.records.pools import PoolConfig


def resolve_revision(
    history: History, revision: str, newest: LoadedState[PoolState] | None = None
) -> tuple[LoadedState[PoolState], str]:
    """Returns the state and the branch of a revision.  `newest`: the newest state, if the caller has read it.

    `revision`: a version, a transaction id, a branch, a tag, or BRANCH@TIME (ISO 8601; UTC if it has no zone).
    Raises NotFound, and InvalidInput for a text that is not a time.
    """
    newest = newest or history.load_open()
    if revision in newest.state.branches:
        return newest, revision
    tag = newest.state.tags.get(revision)
    if tag is not None:
        return history.load_version(tag.version), tag.branch
    if revision.isascii() and revision.isdigit():
        loaded = history.load_version(int(revision))
        return loaded, _changed(loaded)
    branch, sign, time = revision.rpartition("@")
    if sign and branch in newest.state.branches:
        return state_at_time(history, time, branch=branch), branch
    if is_id(revision):
        match = next(((version, t) for version, t in history.read_transactions() if t.id == revision), None)
        if match is not None:
            return history.load_version(match[0]), match[1].branch or MAIN
    branches = ", ".join(sorted(newest.state.branches))
    raise NotFound(
        f"revision {revision!r} does not exist{_begins(history)}; name a version, a transaction id, a tag, a "
        f"branch ({branches}) or BRANCH@TIME"
    )


def state_at_time(history: History, time: str, *, branch: str = MAIN) -> LoadedState[PoolState]:
    """Returns the state after the last transaction of a branch at or before a time.  Raises NotFound,
    InvalidInput."""
    moment = microseconds(time)
    version = next(
        (version for version, t in history.read_transactions(branch=branch) if t.time <= moment), None
    )
    if version is None:
        raise NotFound(f"branch {branch!r} has no transaction at or before {time}{_begins(history)}")
    return history.load_version(version)


def _begins(history: History) -> str:
    """Returns a remark for error messages: from which version on there are entries, so that the revision may be
    purged; "" if none is purged."""
    fence = history.journal.marks().fence
    return f" (the history begins after {fence}: earlier versions are purged)" if fence else ""


def _changed(loaded: LoadedState[PoolState]) -> str:
    """Returns the branch to read if only a version is given: `main` if the entry changed `main` or no branch,
    otherwise the first by name of those that it changed."""
    changed = [name for name, branch in loaded.state.branches.items() if branch.tip == loaded.version]
    return MAIN if MAIN in changed or not changed else min(changed)


def microseconds(text: str) -> int:
    """Returns a time in ISO 8601, UTC if it has no zone, as microseconds since 1970.  Raises InvalidInput."""
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(f"time {text!r} is not ISO 8601; write it as in 2026-11-20T12:00:00Z") from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return round(moment.timestamp() * 1_000_000)


def pool_to_restore(state: PoolsState, text: str) -> PoolConfig:
    """Returns the dropped pool that a user names: NAME, or NAME#ID if several had the name.

    If no dropped pool has the name, returns the listed pool with the name, because its drop may have been
    interrupted. Raises NotFound, and InvalidInput if several pools fit.
    """
    dropped = [d for d in state.dropped.values() if text in (d.pool.name, _dropped_name(d.pool))]
    left = sorted((d for d in dropped if not d.is_deleted), key=lambda d: -d.version)
    if len(left) > 1:
        raise InvalidInput(
            f"{counted(len(left), 'pool')} with the name {text!r} were dropped; name one, newest first: "
            f"{', '.join(_dropped_name(d.pool) for d in left)}"
        )
    if left:
        return left[0].pool
    for pool in state.pools.values():
        if text in (pool.name, _dropped_name(pool)):
            return pool
    if dropped:
        raise NotFound(
            f"pool {text!r} was dropped, and its grace time is over: its objects are being deleted"
        )
    names = sorted({d.pool.name for d in state.dropped.values() if not d.is_deleted})
    raise NotFound(
        f"no pool with the name {text!r} was dropped, or nothing is left of it; "
        f"{did_you_mean(text, names, none='no dropped pool can be restored')}"
    )


def _dropped_name(pool: PoolConfig) -> str:
    """Returns the text that identifies a dropped pool: NAME#ID."""
    return f"{pool.name}#{pool.id}"
