"""Work packed into few tasks; pure.

Each mapped task of Airflow costs about a second and rows in its database, and Airflow refuses more than
`max_map_length` of them (1,024).  So at most `MAX_TASKS` are mapped, however many pools have work: up to that many
pieces get a task each, more are packed so that the tasks weigh about the same.  `tasks` keeps packs in the lake.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

from lake_core.phrases import counted, listed

MAX_TASKS = 64
LONGEST_TITLE = 250
"""Characters of a title: Airflow names mapped tasks by them, and its database refuses longer ones."""

PlannedWork = Mapping[str, Any]
"""What `find` of an agent hands out: a pool, a title, and values of the agent's own."""


def weight_of(work: PlannedWork) -> int:
    """How heavy a piece of work is, against others of one agent: its files, jobs or erasures; at least 1."""
    return max(1, *(len(work.get(name) or ()) for name in ("files", "jobs", "erasures")))


def pack(all_work: Sequence[PlannedWork], *, most: int = MAX_TASKS) -> list[dict[str, Any]]:
    """At most `most` packs: each a `title`, and its `all_work` in the order in which it was handed out.

    The heaviest piece goes first, each into the lightest pack (the largest is at most a third above the best).
    Each piece is told the number of its task (`task`).
    """
    if most < 1:
        raise ValueError(f"most must be at least 1 (got {most})")
    if len(all_work) <= most:
        members = [[index] for index in range(len(all_work))]
    else:
        members = [[] for _ in range(most)]
        lightest = [(0, number) for number in range(most)]
        order = sorted(range(len(all_work)), key=lambda index: (-weight_of(all_work[index]), index))
        for index in order:
            weight, number = heappop(lightest)
            members[number].append(index)
            heappush(lightest, (weight + weight_of(all_work[index]), number))
    packs = [[all_work[index] for index in sorted(indexes)] for indexes in members]
    return [
        {"title": _title(part), "all_work": [{**work, "task": number} for work in part]}
        for number, part in enumerate(packs)
    ]


def _title(part: Sequence[PlannedWork]) -> str:
    pools = list(dict.fromkeys(str(work["pool"]) for work in part))
    title = str(part[0]["title"]) if len(part) == 1 else f"{counted(len(pools), 'pool')}: {listed(pools, 3)}"
    return title if len(title) <= LONGEST_TITLE else title[: LONGEST_TITLE - 1] + "…"
