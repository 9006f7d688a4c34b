"""Split points: what becomes of a draft that adds or removes them, and what transactions make of them; pure.

A point that a draft adds may be there by now, and one that it removes may be gone: `pointing` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from lake_core.errors import Corrupt, InvalidInput
from lake_core.records import Action, Join, Split
from lake_core.records.points import MAX_POINTS


def pointing(points: Iterable[bytes], actions: Iterable[Action]) -> tuple[Action, ...]:
    """The actions, without points that are there already, or gone.  Raises InvalidInput if they become too many."""
    there, left = set(points), list[Action]()
    for action in actions:
        if isinstance(action, Split | Join):
            changed = tuple(p for p in action.points if (p in there) is isinstance(action, Join))
            there ^= set(changed)
            left += [type(action)(changed)] if changed else []
        else:
            left.append(action)
    if len(there) > MAX_POINTS and len(there) > len(set(points)):
        raise InvalidInput(f"{len(there):,} split points: a pool has at most {MAX_POINTS:,}; add fewer")
    return tuple(left)


def pointed(points: tuple[bytes, ...], actions: Iterable[Action]) -> tuple[bytes, ...]:
    """The split points after the actions of a transaction.  Raises Corrupt if one does not fit."""
    for action in actions:
        if isinstance(action, Split):
            if again := set(points).intersection(action.points):
                raise Corrupt(f"split point {min(again).hex()}: added, but the pool has it already")
            points = tuple(sorted(chain(points, action.points)))
        elif isinstance(action, Join):
            gone = set(action.points)
            if unknown := gone.difference(points):
                raise Corrupt(f"split point {min(unknown).hex()}: removed, but the pool does not have it")
            points = tuple(point for point in points if point not in gone)
    return points
