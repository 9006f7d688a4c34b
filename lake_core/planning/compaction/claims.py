"""Which reference goes into which job while a plan is made: jobs are disjoint and keep within the policy's bounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from lake_core.planning.compaction.layout import Ints, Layout
from lake_core.planning.compaction.policy import CompactionPolicy

FREE = -1


@dataclass(frozen=True)
class Group:
    """A job in the making: its members, why they belong together, and the ranks between which they lie."""

    why: str
    members: tuple[int, ...]
    begin: int
    end: int
    size: int


@dataclass
class Claims:
    """`holder` is the group of each reference, or FREE; `groups` may hold None where one became part of another.

    `arrival` and `by_share` are the places of the references in these two orders.
    """

    layout: Layout
    policy: CompactionPolicy
    holder: list[int] = field(init=False)
    held: Ints = field(init=False)
    groups: list[Group | None] = field(init=False, default_factory=list)
    arrival: list[int] = field(init=False)
    by_share: list[int] = field(init=False)

    def __post_init__(self) -> None:
        count = len(self.layout.references)
        self.holder = [FREE] * count
        self.held = np.full(count, FREE, np.int64)
        came = sorted(range(count), key=lambda i: self.layout.references[i].order[1:])
        self.arrival = _places(came)
        self.by_share = _places(np.argsort(self.layout.share, kind="stable").tolist())

    @property
    def free(self) -> list[int]:
        """What no group holds."""
        return [member for member, group in enumerate(self.holder) if group == FREE]

    def fits(self, count: int, size: int) -> bool:
        """Whether a job may take so many references of so many bytes together."""
        return count <= 2 or (count <= self.policy.most_inputs and size <= self.policy.most_bytes)

    def portions(self, members: Iterable[int]) -> list[list[int]]:
        """The members, in their order, as stretches that each fit a job; what is left over and alone is left out."""
        found: list[list[int]] = [[]]
        size = 0
        for member in members:
            weight = int(self.layout.size[member])
            if not self.fits(len(found[-1]) + 1, size + weight):
                found.append([])
                size = 0
            found[-1].append(member)
            size += weight
        return [portion for portion in found if len(portion) > 1]

    def claim(self, members: Sequence[int], why: str) -> int:
        """Make a group of the members; gives its number."""
        for member in members:
            self.holder[member] = len(self.groups)
            self.held[member] = len(self.groups)
        self.groups.append(
            Group(
                why,
                tuple(members),
                begin=min(int(self.layout.begin[m]) for m in members),
                end=max(int(self.layout.end[m]) for m in members),
                size=sum(int(self.layout.size[m]) for m in members),
            )
        )
        return len(self.groups) - 1

    def join(self, one: int, other: int) -> int:
        """Make one group of two; gives its number."""
        first, second = self.groups[one], self.groups[other]
        assert first is not None
        assert second is not None
        self.groups[one] = self.groups[other] = None
        return self.claim(first.members + second.members, first.why)

    def release(self, group: int) -> None:
        """Give up a group."""
        held = self.groups[group]
        assert held is not None
        for member in held.members:
            self.holder[member] = FREE
            self.held[member] = FREE
        self.groups[group] = None


def _places(order: Sequence[int]) -> list[int]:
    places = [0] * len(order)
    for place, member in enumerate(order):
        places[member] = place
    return places
