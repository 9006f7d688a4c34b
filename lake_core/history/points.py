"""Split points: decides how a draft that adds or removes them fits the newest state, and folds them; pure.

Since the draft was made, another writer may have added a point that the draft adds, or removed one that it
removes. `pointing` leaves out such points.
"""

from __future__ import annotations

from collections.abc import Iterable

from rpds import HashTrieSet

from lake_core.errors import Corrupt, InvalidInput
from lake_core.records import Action, Join, Split
from lake_core.records.points import MAX_POINTS


def pointing(points: Iterable[bytes], actions: Iterable[Action]) -> tuple[Action, ...]:
    """Returns the actions, without points that are already added or removed.  Raises InvalidInput if the pool
    would have too many points."""
    there, left = set(points), list[Action]()
    for action in actions:
        if isinstance(action, Split | Join):
            changed = tuple(p for p in action.points if (p in there) is isinstance(action, Join))
            there ^= set(changed)
            left += [type(action)(changed)] if changed else []
        else:
            left.append(action)
    if len(there) > MAX_POINTS:
        raise InvalidInput(f"{len(there):,} split points: a pool has at most {MAX_POINTS:,}; add fewer")
    return tuple(left)


def pointed(points: HashTrieSet[bytes], actions: Iterable[Action]) -> HashTrieSet[bytes]:
    """Returns the split points after the actions of a transaction.  Raises Corrupt if an action does not fit.
    A point costs the same however many there are: an entry may hold a million of these actions."""
    for action in actions:
        if isinstance(action, Split):
            for point in action.points:
                if point in points:
                    raise Corrupt(f"split point {point.hex()}: added, but the pool has it already")
                points = points.insert(point)
        elif isinstance(action, Join):
            for point in action.points:
                if point not in points:
                    raise Corrupt(f"split point {point.hex()}: removed, but the pool does not have it")
                points = points.remove(point)
    check_number(len(points))
    return points


def check_number(points: int) -> None:
    """Raises Corrupt if a pool cannot have so many split points."""
    if points > MAX_POINTS:
        raise Corrupt(f"{points:,} split points: a pool has at most {MAX_POINTS:,}")
