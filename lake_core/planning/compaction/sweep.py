"""From left to right over the keys: at each *peak*, the stack of references there is offered to a strategy.

A peak is where a reference ends after one began.  All that ever lie together on a key do so at a peak, so it is
enough to look at these.  What was chosen at one peak counts at the next as the one reference that it will be.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from lake_core.planning.compaction.claims import FREE, Claims

Choose = Callable[[Sequence[int], int], list[tuple[range, str]]]
"""The free references of a stack and the depth there -> which stretches of them to merge, and why."""


def sweep(claims: Claims, members: Sequence[int], choose: Choose, *, by_arrival: bool) -> None:
    """Claim what the strategy chooses at the peaks of the members.

    A stack is in the order of shares, smallest first; with `by_arrival` in the order of arrival, and in several
    parts where something that is not free came between.
    """
    layout, holder = claims.layout, claims.holder
    chosen = np.asarray(members, np.int64)
    who = np.concatenate((chosen, chosen))
    opens = np.repeat((True, False), len(chosen))
    # ends come before beginnings of the same rank: ranges are half-open
    order = np.lexsort((opens, np.concatenate((layout.begin[chosen], layout.end[chosen]))))
    place = claims.arrival if by_arrival else claims.by_share
    free: set[tuple[int, int]] = set()
    held: list[int] = []  # places, in order
    groups: Counter[int] = Counter()
    rising = False
    for member, begins in zip(who[order].tolist(), opens[order].tolist(), strict=True):
        if rising and not begins and len(free) > 1:
            stack = sorted(free)
            parts = _apart(stack, held) if by_arrival else [stack]
            for taken in _chosen(
                claims, [[m for _, m in part] for part in parts], len(free) + len(groups), choose
            ):
                free.remove((place[taken], taken))
                insort(held, place[taken])
                groups[holder[taken]] += 1
        rising = begins
        if holder[member] == FREE:
            (free.add if begins else free.remove)((place[member], member))
        elif begins:
            insort(held, place[member])
            groups[holder[member]] += 1
        else:
            del held[bisect_left(held, place[member])]
            groups[holder[member]] -= 1
            if not groups[holder[member]]:
                del groups[holder[member]]


def _chosen(claims: Claims, parts: list[list[int]], depth: int, choose: Choose) -> list[int]:
    taken: list[int] = []
    for part in parts:
        for stretch, why in choose(part, depth):
            picked = sorted((part[i] for i in stretch), key=claims.arrival.__getitem__)
            for portion in claims.portions(picked):
                claims.claim(portion, why)
                depth -= len(portion) - 1
                taken += portion
    return taken


def _apart(stack: list[tuple[int, int]], held: list[int]) -> list[list[tuple[int, int]]]:
    parts = [stack[:1]]
    for (before, _), one in pairwise(stack):
        if bisect_left(held, before) == bisect_left(held, one[0]):
            parts[-1].append(one)
        else:
            parts.append([one])
    return parts
