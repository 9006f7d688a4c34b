"""The strategy `time_window`: for pools whose leading key field is a time, window by window of that time.

An *open* window goes by `size_ratio`.  A *closed* one, whose end lies its own length in the past, is brought into
one run, once: from then on the objects that this made are its base, known by their ids (made after the window was
closed) and by holding several sequences (made by a compaction).  Late data that overlaps the base goes by
`size_ratio` again: stragglers are merged with each other, and the base is rewritten only when they have come to
hold `ratio` - 1 times as much.

References of different windows are merged only where more lie on a key than the policy's depth: data that came
late, together with that of its day, reaches back over the windows before.  Windows are not joined either, so that
what expires by time goes as whole objects; many windows smaller than an object are better served by `size_ratio`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection
from functools import partial
from itertools import accumulate

from lake_core.keys import PoolKey
from lake_core.naming import id_time, is_id
from lake_core.planning.compaction import depth, size_ratio
from lake_core.planning.compaction.claims import Claims
from lake_core.planning.compaction.full import claim_overlaps
from lake_core.planning.compaction.layout import Layout
from lake_core.planning.compaction.neighbours import claim_neighbours
from lake_core.planning.compaction.seams import close_seams
from lake_core.planning.compaction.sweep import sweep
from lake_core.planning.compaction.windows import closes, window_of


def claim_windows(claims: Claims, *, key: PoolKey, now: float, by_arrival: bool) -> None:
    """Claim what each window gives.  Raises InvalidInput where the leading key field cannot be a time."""
    layout, policy = claims.layout, claims.policy
    alike = partial(size_ratio.choose, claims)
    members: dict[int | None, list[int]] = defaultdict(list)
    for member, reference in enumerate(layout.references):
        members[window_of(reference, key=key, length=policy.window)].append(member)
    number = [-1] * len(layout.references)  # of its window
    unsettled = [-1] * len(layout.references)  # the same, of what is to be brought into one run
    for at, (window, inside) in enumerate(members.items()):
        due: set[int] = set()
        if window is not None and (closed := closes(window, length=policy.window)) <= now:
            base = [m for m in inside if _is_sealed(layout, m, closed=closed)]
            due = set(inside) - set(base) - _overlapping(layout, inside, base)
            claim_overlaps(claims, sorted(due), "its window is closed", by_arrival=by_arrival)
        since = len(claims.groups)
        sweep(claims, [m for m in inside if m not in due], alike, by_arrival=by_arrival)
        close_seams(claims, since=since)
        for member in inside:
            number[member] = at
            unsettled[member] = at if member in due else -1
    sweep(claims, range(len(number)), partial(depth.choose, claims), by_arrival=by_arrival)
    claim_neighbours(claims, ratio=1.0, within=unsettled)
    claim_neighbours(claims, ratio=policy.ratio, within=number)


def _is_sealed(layout: Layout, member: int, *, closed: float) -> bool:
    reference = layout.references[member]
    return (
        reference.oldest is not None
        and is_id(reference.object)
        and id_time(reference.object).timestamp() >= closed
    )


def _overlapping(layout: Layout, members: Collection[int], others: Collection[int]) -> set[int]:
    """The members that share a key with one of the others."""
    ordered = sorted(others)  # by low bound
    begins = [int(layout.begin[o]) for o in ordered]
    reach = list(accumulate((int(layout.end[o]) for o in ordered), max))
    found = set()
    for member in members:
        before = bisect_left(begins, int(layout.end[member]))  # those that begin before it ends
        if before and reach[before - 1] > int(layout.begin[member]):
            found.add(member)
    return found
