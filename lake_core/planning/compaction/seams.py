"""Jobs that overlap are made one where they fit: the same bytes, and one run where there would be two with a seam.

Only jobs of like shares.  The outputs of one job are one run from its lowest to its highest key; to merge a wide
thin one into a narrow dense one would spread the ends of the dense run thinly over all the keys of the thin one.
"""

from __future__ import annotations

from lake_core.planning.compaction.claims import Claims, Group


def close_seams(claims: Claims, *, since: int) -> None:
    """Join groups of the claims, from number `since` on."""
    ratio = claims.policy.ratio
    numbered = [(number, group) for number, group in enumerate(claims.groups) if number >= since and group]
    open_: list[int] = []
    for number, group in sorted(numbered, key=lambda item: (item[1].begin, item[0])):
        open_ = [
            o
            for o in open_
            if (other := claims.groups[o]) and other.end > group.begin and _room(claims, other)
        ]
        share = _share(claims, group)
        for o in open_:
            other = claims.groups[o]
            assert other is not None
            apart = share / _share(claims, other)
            if 1 / ratio <= apart <= ratio and _fit(claims, group, other):
                number = claims.join(o, number)
                open_.remove(o)
                break
        open_.append(number)


def _share(claims: Claims, group: Group) -> float:
    return group.size / max(1.0, claims.layout.between(group.begin, group.end))


def _fit(claims: Claims, one: Group, other: Group) -> bool:
    return claims.fits(len(one.members) + len(other.members), one.size + other.size)


def _room(claims: Claims, group: Group) -> bool:
    return len(group.members) + 2 <= claims.policy.most_inputs and group.size < claims.policy.most_bytes
