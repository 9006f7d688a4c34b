"""Packs work into few tasks; pure.

Each mapped task costs Airflow about a second and rows in its database, and Airflow refuses more than
`max_map_length` (1,024).  So at most `MAX_TASKS` are mapped, however many pools have work.  Up to that number
each piece gets a task; beyond it, pieces are packed so that tasks weigh about the same.  `tasks` stores packs in
the lake.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from msgspec.structs import replace

from lake_core.phrases import counted, listed

if TYPE_CHECKING:
    from log_lake.agents.work import Work

MAX_TASKS = 64
LONGEST_TITLE = 250
"""Characters of a title: Airflow names mapped tasks by their titles, and its database refuses longer ones."""


@dataclass(frozen=True)
class Pack:
    """The pieces of work that one mapped task does."""

    title: str
    all_work: tuple[Work, ...]


def pack(all_work: Sequence[Work], *, most: int = MAX_TASKS) -> list[Pack]:
    """Returns at most `most` packs, each with its pieces in the order in which they were handed out.

    The heaviest piece goes first, each into the lightest pack, so the largest pack is at most a third above the
    best possible.  Each piece gets the number of its task (`task`).
    """
    if most < 1:
        raise ValueError(f"most must be at least 1 (got {most})")
    if len(all_work) <= most:
        members = [[index] for index in range(len(all_work))]
    else:
        members = [[] for _ in range(most)]
        lightest = [(0, number) for number in range(most)]
        order = sorted(range(len(all_work)), key=lambda index: (-all_work[index].weight, index))
        for index in order:
            weight, number = heappop(lightest)
            members[number].append(index)
            heappush(lightest, (weight + all_work[index].weight, number))
    packs = [[all_work[index] for index in sorted(indexes)] for indexes in members]
    return [
        Pack(_title(part), tuple(replace(work, task=number) for work in part))
        for number, part in enumerate(packs)
    ]


def _title(part: Sequence[Work]) -> str:
    pools = list(dict.fromkeys(work.pool for work in part))
    title = part[0].title if len(part) == 1 else f"{counted(len(pools), 'pool')}: {listed(pools, 3)}"
    return title if len(title) <= LONGEST_TITLE else title[: LONGEST_TITLE - 1] + "…"
