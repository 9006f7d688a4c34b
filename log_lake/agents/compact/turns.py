"""The order in which a run takes the jobs of pools and ranges, so that none is left out in run after run; pure.

A pool with many jobs is handed out in pieces.  Each range of the pool gives a job in turn, and the time of the run
decides which range comes first.  So if a run has a limit, or ends early, the next run does not begin at the same
keys.  Between pools, each gives a piece first, then as many in a turn as its setting `compact.share` says
(`agents.finding.in_turns`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from hashlib import sha256

from log_lake.compaction.jobs import CompactionJob, NamedJob
from log_lake.compaction.ranges import places

PIECE = 64
"""Jobs of a pool in one piece of work: a task of a piece lasts minutes, and other pools wait no longer."""


def pieces_of(
    jobs: Sequence[CompactionJob], points: Sequence[bytes], *, now: float
) -> list[tuple[NamedJob, ...]]:
    """The jobs by ranges in turn, in pieces; without jobs one piece that is empty.

    A job over several ranges counts for the first of them.
    """
    by_range: dict[int, list[CompactionJob]] = defaultdict(list)
    for job in jobs:
        by_range[places(job.key_range, points).start].append(job)
    ranges = sorted(by_range)
    first = int.from_bytes(sha256(f"{now}".encode()).digest()[:8]) % max(1, len(ranges))
    turns = [by_range[number] for number in ranges[first:] + ranges[:first]]
    longest = max(map(len, turns), default=0)
    ordered = [of_range[turn].named for turn in range(longest) for of_range in turns if turn < len(of_range)]
    return [tuple(ordered[at : at + PIECE]) for at in range(0, len(ordered), PIECE)] or [()]
