"""Adds and removes split points of a pool, and lists the ranges between them.  Called by `Pool`.

docs/ranges.md says when a pool should have any.  No answer depends on them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lake_core.errors import InvalidInput
from lake_core.keys import KeyRange
from lake_core.keys.ranges import EVERYTHING
from lake_core.phrases import counted
from lake_core.records import Join, Split
from lake_core.records.points import MAX_POINTS
from log_lake.compaction.ranges import figures
from log_lake.lake.journaled import Journaled
from log_lake.lake.view import View
from log_lake.reading.split import whole_keys
from log_lake.texts.keytext import check_classes, show_key


@dataclass(frozen=True)
class SplitResult:
    """The result of adding or removing split points; `version` and `transaction_id` are None if none changed.

    `points`: how many were added or removed; `ranges`: how many ranges the pool has now.
    """

    version: int | None
    transaction_id: str | None
    points: int
    ranges: int


@dataclass(frozen=True)
class PoolRange:
    """The keys from `low` (inclusive) to `high` (exclusive), None for an open end, and the figures of a branch
    there.

    A bound is a value, or a list of values if the key has several fields.  An object in several ranges (a
    straddling one) adds an equal share to the `records` and the `size` (bytes) of each.  `objects`: how many
    overlap the range; `straddling`: how many of them lie in other ranges too.  `depth`: the most objects that
    overlap at a key; `runs`: how many sorted files a reader of the whole range merges.  `compacted`: when
    compaction last wrote an object there; None: never.
    """

    low: object
    high: object
    records: int
    size: int
    objects: int
    straddling: int
    depth: int
    runs: int
    compacted: dt.datetime | None


def ranges_of(view: View) -> list[PoolRange]:
    """Returns the ranges of a view in the order of the key: one range if the pool has no split points."""
    return [
        PoolRange(
            low=show_key(one.key_range.low, view.key),
            high=show_key(one.key_range.high, view.key),
            records=one.records,
            size=one.size,
            objects=one.objects,
            straddling=one.straddling,
            depth=one.depth,
            runs=one.runs,
            compacted=None if one.compacted is None else dt.datetime.fromtimestamp(one.compacted, dt.UTC),
        )
        for one in figures(view.references, view.points)
    ]


def points_at(view: View, at: Sequence[Any]) -> tuple[bytes, ...]:
    """Returns the split points at these keys, in ascending order.  Raises InvalidInput."""
    if not isinstance(at, list | tuple) or any(key in ("", [""], None, [None]) for key in at):
        raise InvalidInput(f"split points {at!r}: write a list of keys; none may be an empty text or None")
    points = {view.bound(key) for key in at}
    for point in points:
        check_classes(KeyRange(point), view.key, view.key_classes)
    return tuple(sorted(points))


def points_into(view: View, into: int) -> tuple[bytes, ...]:
    """Returns at most `into - 1` split points that cut the view's bytes evenly, by the samples in the objects'
    footers.

    Raises InvalidInput if the view has no records, or if the pool already has other split points.  Raises
    ObjectMissing, Corrupt, Unavailable.
    """
    if not isinstance(into, int) or not 2 <= into <= MAX_POINTS + 1:
        raise InvalidInput(f"into={into!r}: a pool is split into 2 to {MAX_POINTS + 1:,} ranges (inclusive)")
    if not view.references:
        raise InvalidInput(
            f"pool {view.config.name!r} has no records whose keys could be divided; name the keys to split at"
        )
    cuts = [r.high for r in view.split(EVERYTHING, pieces=into) if r.high is not None]
    points = whole_keys(cuts, view.key)
    if view.points and not set(points) <= set(view.points):
        raise InvalidInput(
            f"pool {view.config.name!r} has {counted(len(view.points), 'split point')} already: remove them first "
            "(lake unsplit POOL), or name the keys to split at"
        )
    return points


def split(pool: Journaled, view: View, points: tuple[bytes, ...]) -> SplitResult:
    """Adds to the pool the points that it does not have yet."""
    has = set(view.points)
    new = tuple(point for point in points if point not in has)
    return _committed(pool, view, Split, new, f"split at {counted(len(new), 'key')}")


def unsplit(pool: Journaled, view: View, points: tuple[bytes, ...]) -> SplitResult:
    """Removes from the pool the points that it has."""
    named = set(points)
    old = tuple(point for point in view.points if point in named)
    return _committed(pool, view, Join, old, f"join ranges at {counted(len(old), 'key')}")


def _committed(
    pool: Journaled, view: View, kind: type[Split | Join], points: tuple[bytes, ...], message: str
) -> SplitResult:
    if not points:
        return SplitResult(None, None, 0, len(view.points) + 1)
    done = pool.commit_actions((kind(points),), on=view.version, message=message)
    ranges = len(pool.history.load_recent().state.points) + 1
    if done.unchanged:
        return SplitResult(None, None, 0, ranges)
    return SplitResult(done.version, done.transaction_id, len(points), ranges)
