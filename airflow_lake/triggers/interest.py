"""Records which pools the triggers of one lake wait for, and from which positions; pure.

All triggers of a lake in one triggerer share one polling loop, and one `Interest`.  A trigger adds its pools
with the positions that it has seen; the loop polls from the oldest of them.  So some triggers get news that
they have already seen, and each trigger ignores these (`is_new`).

A poll that began before a trigger was added may start after positions that this trigger has seen, and so may
skip news for it.  The trigger ignores such a poll (`leaves_gap`).  The loop goes back, so a later poll has
everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from log_lake.lake.watch import News, WatchPosition


@dataclass
class Interest:
    """For which pools the triggers of a lake wait, and from which positions the next poll must begin."""

    positions: dict[str, WatchPosition] = field(default_factory=dict)
    _waiting: Counter[str] = field(default_factory=Counter)

    def add(self, positions: Mapping[str, WatchPosition]) -> None:
        """Adds a trigger that waits for these pools, from these positions on."""
        for pool, position in positions.items():
            present = self.positions.get(pool, position)
            if present.pool_id == position.pool_id:
                self.positions[pool] = min(present, position)
            else:  # the pool was made again: look at it from its beginning
                self.positions[pool] = WatchPosition()
            self._waiting[pool] += 1

    def remove(self, pools: Mapping[str, WatchPosition]) -> None:
        """Removes a trigger that waits for these pools."""
        for pool in pools:
            self._waiting[pool] -= 1
            if self._waiting[pool] <= 0:
                del self._waiting[pool]
                self.positions.pop(pool, None)

    def advance(self, before: Mapping[str, WatchPosition], after: Mapping[str, WatchPosition]) -> None:
        """Records that a poll went from the positions `before` to `after`.  A pool that a trigger set back
        meanwhile keeps its position."""
        for pool, position in after.items():
            if self.positions.get(pool) == before.get(pool):
                self.positions[pool] = position


def leaves_gap(before: WatchPosition, first: News, seen: WatchPosition) -> bool:
    """Whether entries lie between what a trigger has seen (`seen`) and the first news of a poll that began at
    `before`."""
    pool_id = first.position.pool_id
    return before.version_of(pool_id) > seen.version_of(pool_id)


def is_new(news: News, seen: WatchPosition, *, branch: str, maintenance: bool) -> bool:
    """Whether a trigger that has seen the position `seen`, and waits for that branch, fires for the news."""
    later = news.position.pool_id != seen.pool_id or news.position.version > seen.version
    return later and news.branch in (branch, "") and (maintenance or news.changes_records)
