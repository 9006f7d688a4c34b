"""Sums over the jobs of a lake that ended since the first read of it: counters in the form that Prometheus needs.

A counter begins with its process; Prometheus notices if it begins again after a restart.  Jobs are read only if
the journal of `$jobs` has news, and only those from the oldest that still ran at the last read.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from lake_core import naming
from lake_core.errors import NotFound
from lake_core.store.meter import Counts
from log_lake.agents.jobs import DIED, DONE, FAILED, PUT_OFF, RUNNING, Job, list_jobs
from log_lake.agents.roster import AGENTS
from log_lake.lake import Lake

OTHER = "other"
"""The label for agents and phases that this program does not know: a writer of `$jobs` may write any name."""
PHASES = frozenset(
    f"{work}.{phase}"
    for work, phases in (
        ("load", ("read", "sort", "write", "commit")),
        ("scan", ("plan", "read")),
        ("rewriting", ("plan", "write", "commit")),
    )
    for phase in phases
)
STATES = (DONE, FAILED, DIED, PUT_OFF)
READ_SECONDS = 30.0
"""Seconds between two reads of `$jobs`, to which the agents of many pools write all the time."""
MOST_SECONDS, MOST = 1e9, 10**15
"""The most seconds, and the most bytes or requests, of one job.  A writer of `$jobs` may write any number, and a
wrong one would hide all others in a sum."""
OVERLAP, LONGEST = dt.timedelta(hours=1), dt.timedelta(days=1)
"""Clocks of agents may differ by `OVERLAP`.  A job that ran for longer than `LONGEST` may not be counted."""


@dataclass(frozen=True)
class AgentSums:
    """Sums over the jobs of one agent: how many ended in each state, their seconds, and their costs."""

    ended: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    cost: Counts = field(default_factory=Counts)

    def plus(self, job: Job) -> AgentSums:
        """Returns the sums with one more job."""
        ended = {**self.ended, job.state: self.ended.get(job.state, 0) + 1}
        cost = Counts() if job.cost is None else _known_phases(job.cost)
        return AgentSums(ended, self.seconds + _counted(job.seconds or 0.0), self.cost + cost)


def _known_phases(cost: Counts) -> Counts:
    seconds: defaultdict[str, float] = defaultdict(float)
    for phase, took in cost.seconds.items():
        seconds[phase if phase in PHASES else OTHER] += _counted(took)
    return Counts.of((one if 0 <= one <= MOST else 0 for one in cost.numbers), seconds)


def _counted(seconds: float) -> float:
    """Returns the seconds; or 0 for a number that no job can take, or NaN, because a counter must never
    fall."""
    return seconds if 0 <= seconds <= MOST_SECONDS else 0.0


class JobSums:
    """The sums over the jobs of a lake by agent, since the first read, by the lake's clock; one thread adds at a
    time."""

    def __init__(self, *, every: float = READ_SECONDS) -> None:
        self._every, self._read = every, 0.0
        self._began: dt.datetime | None = None
        self._since = dt.datetime.max
        self._counted: dict[str, dt.datetime] = {}
        self._version = -1
        self.by_agent: dict[str, AgentSums] = {name: AgentSums() for name in AGENTS}

    def update(self, lake: Lake) -> None:
        """Adds the jobs that ended since the last call.  Raises what `list_jobs` raises."""
        now = lake.context.now()
        if self._began is None:
            self._began = dt.datetime.fromtimestamp(now, dt.UTC)
            self._since = self._began - LONGEST
        try:
            version = lake.pool(naming.JOBS).history.load().version
        except NotFound:  # no agent has run yet
            return
        if version == self._version or now - self._read < self._every:
            return
        self._read = now
        jobs = list_jobs(lake, since=self._since)
        for job in jobs:
            if job.state in STATES and job.id not in self._counted:
                self._counted[job.id] = job.began
                if (job.ended or job.began) >= self._began:
                    agent = job.agent if job.agent in AGENTS else OTHER
                    self.by_agent[agent] = self.by_agent.get(agent, AgentSums()).plus(job)
        self._version = version
        newest = max((job.began for job in jobs), default=self._since)
        running = min((job.began for job in jobs if job.state == RUNNING), default=newest)
        self._since = max(self._since, min(running, newest - OVERLAP))
        self._counted = {id: time for id, time in self._counted.items() if time >= self._since}
