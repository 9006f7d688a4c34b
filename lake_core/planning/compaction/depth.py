"""The strategy `depth`: on no key more references than the bound, for the fewest bytes.

Nothing is done until the bound is passed.  Then as many of the references on a key are merged as must be, those
with the smallest shares, which cost the fewest bytes for each key that they cover.  More are added as long as they
cost less than those chosen do for each reference that is gone: nine equal ones are merged all at once rather than
two of them now and two with the next load.
"""

from __future__ import annotations

from collections.abc import Sequence

from lake_core.planning.compaction.claims import Claims


def choose(claims: Claims, stack: Sequence[int], depth: int) -> list[tuple[range, str]]:
    """Which neighbours of a stack to merge, and why."""
    bound = claims.policy.depth
    least = min(depth - bound + 1, len(stack))
    if least < 2:
        return []
    shares = [float(claims.layout.share[m]) for m in stack]
    return [(cheapest(shares, least=least), f"{depth} on a key, where {bound} may stay")]


def cheapest(costs: Sequence[float], *, least: int) -> range:
    """The neighbours, at least `least` of them (2 to all), whose merge costs least for each of them that is gone."""
    first = min(range(len(costs) - least + 1), key=_sums(costs, least).__getitem__)
    last = first + least
    spent = sum(costs[first:last])
    while last - first < len(costs):  # one more each time
        before = costs[first - 1] if first > 0 else None
        after = costs[last] if last < len(costs) else None
        cost = min(c for c in (before, after) if c is not None)
        if cost > spent / (last - first - 1):
            break
        spent += cost
        if cost == before:
            first -= 1
        else:
            last += 1
    return range(first, last)


def _sums(costs: Sequence[float], width: int) -> list[float]:
    sums = [sum(costs[:width])]
    for first in range(1, len(costs) - width + 1):
        sums.append(sums[-1] - costs[first - 1] + costs[first + width - 1])
    return sums
