"""How a batch of landed files is cut into units of work for parallel tasks: pure.

A unit is read, sorted and written by one task.  Units are runs of neighbouring parts, so that their numbers
keep the order of arrival; a part is a file, or some row groups of a large Parquet file.  No unit is made
smaller than `smallest` bytes for the sake of parallelism: a task has a price.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """A file, or the row groups [first, last) of it; `size` in bytes."""

    file: str
    size: int
    row_groups: tuple[int, int] | None = None


@dataclass(frozen=True)
class Unit:
    """What one task does; `number` orders the units by arrival."""

    number: int
    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        """Bytes of its parts."""
        return sum(p.size for p in self.parts)


def plan_units(parts: Sequence[Part], *, parallelism: int, smallest: int) -> list[Unit]:
    """At most `parallelism` units of about equal size, of neighbouring parts."""
    left = sum(p.size for p in parts)
    units: list[Unit] = []
    gathered: list[Part] = []
    size = 0
    for part in parts:
        # a part goes where more than half of it fits; `left` is what no finished unit holds, all of it the last's
        target = left / max(1, parallelism - len(units))
        may_end = size >= smallest and left - size >= smallest
        if gathered and may_end and size + part.size / 2 > target:
            units.append(Unit(len(units), tuple(gathered)))
            left -= size
            gathered, size = [], 0
        gathered.append(part)
        size += part.size
    if gathered:
        units.append(Unit(len(units), tuple(gathered)))
    return units


def split_row_groups(file: str, sizes: Sequence[int], *, target: int) -> list[Part]:
    """A Parquet file as parts of about `target` bytes, cut between row groups of the sizes given."""
    parts: list[Part] = []
    first = size = 0
    for number, group in enumerate(sizes):
        if number > first and size + group / 2 > target:
            parts.append(Part(file, size, (first, number)))
            first, size = number, 0
        size += group
    if first < len(sizes):
        parts.append(Part(file, size, (first, len(sizes))))
    return parts
