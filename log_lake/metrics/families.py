"""Presents the state of lakes and of this process as families of metrics of Prometheus; pure.

Labels are bounded: lakes are named by the server, pools are at most `MAX_POOLS` of a lake, and agents, kinds,
phases and states come from tables of this program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from lake_core.errors import InvalidInput
from lake_core.store.meter import Counts
from log_lake.doctor.dues import DUES
from log_lake.doctor.kinds import paused_by
from log_lake.metrics.job_sums import STATES, AgentSums
from log_lake.metrics.pool_watch import SeenPool, SeenPools

DONE_BY = {"publish": "compact", "purge": "checkpoint"}
"""By the name of a lag: the agent that does this work, if its name differs."""


@dataclass(frozen=True)
class SeenLake:
    """A lake as the server names it: its pools, None if it could not be read; and the sums over its jobs."""

    name: str
    pools: SeenPools | None = None
    jobs: Mapping[str, AgentSums] = field(default_factory=dict)
    seconds: float = 0.0


def _tail(pool: SeenPool) -> int | None:
    return None if pool.signs.tail is None else pool.signs.tail.entries


def _figure(name: str) -> Callable[[SeenPool], float | None]:
    def figure(pool: SeenPool) -> float | None:
        return None if pool.figures is None else float(getattr(pool.figures, name))

    return figure


POOL_GAUGES: tuple[tuple[str, str, Callable[[SeenPool], float | None]], ...] = (
    (
        "lake_pool_readable",
        "1 if the pool could be read, otherwise 0",
        lambda p: float(p.figures is not None),
    ),
    ("lake_pool_depth", "Objects that overlap at one key, at most", _figure("depth")),
    ("lake_pool_objects", "Objects of the branch main", _figure("objects")),
    ("lake_pool_records", "Records that readers of main see, at most", _figure("records")),
    ("lake_pool_live_bytes", "Bytes of the objects of main", _figure("live")),
    (
        "lake_pool_held_bytes",
        "Bytes of the objects of main, and of removed ones on the store",
        _figure("held"),
    ),
    ("lake_pool_tombstones", "Tombstones of main that are not retired", _figure("tombstones")),
    ("lake_pool_branches", "Branches", _figure("branches")),
    ("lake_pool_tail_entries", "Entries behind the newest checkpoint", _tail),
    ("lake_pool_parked_files", "Files that cannot be loaded", lambda p: float(len(p.signs.parked))),
    (
        "lake_pool_unseen_parts",
        "Parts of the pool that could not be seen",
        lambda p: float(len(p.signs.failures)),
    ),
)
"""Each gauge of a pool: its name, its help, and a function that returns its value, or None if it is not
known."""


def families(lakes: Sequence[SeenLake], process: Counts) -> Iterator[Metric]:
    """Yields all families of metrics; `process` are the totals of this process."""
    yield from _of_lakes(lakes)
    yield from _of_pools(lakes)
    yield from _of_jobs(lakes)
    yield from _of_process(process)


def _of_lakes(lakes: Sequence[SeenLake]) -> Iterator[Metric]:
    readable = GaugeMetricFamily(
        "lake_up", "1 if the list of pools could be read, otherwise 0", labels=["lake"]
    )
    total = GaugeMetricFamily("lake_pools", "Pools of the lake", labels=["lake"])
    left = GaugeMetricFamily(
        "lake_pools_left_out", "Pools without metrics: there are too many", labels=["lake"]
    )
    looked = GaugeMetricFamily(
        "lake_pools_looked_at", "Pools at which this answer looked anew", labels=["lake"]
    )
    took = GaugeMetricFamily("lake_look_seconds", "Seconds that the look at the lake took", labels=["lake"])
    for lake in lakes:
        readable.add_metric([lake.name], float(lake.pools is not None))
        took.add_metric([lake.name], lake.seconds)
        if lake.pools is not None:
            total.add_metric([lake.name], lake.pools.total)
            left.add_metric([lake.name], lake.pools.total - len(lake.pools.pools))
            looked.add_metric([lake.name], lake.pools.looked)
    yield from (readable, total, left, looked, took)


def _of_pools(lakes: Sequence[SeenLake]) -> Iterator[Metric]:
    for name, says, value in POOL_GAUGES:
        gauge = GaugeMetricFamily(name, says, labels=["lake", "pool"])
        for lake, pool in _pools(lakes):
            if (number := value(pool)) is not None:
                gauge.add_metric([lake, pool.config.name], number)
        yield gauge
    entries = CounterMetricFamily(
        "lake_pool_entries", "Entries of the pool's journal, by all writers", labels=["lake", "pool"]
    )
    lag = GaugeMetricFamily(
        "lake_agent_lag_seconds",
        "Seconds since the oldest work of the agent on the pool became due, 0 if none is",
        labels=["lake", "pool", "agent"],
    )
    now = {lake.name: lake.pools.now for lake in lakes if lake.pools is not None}
    for lake_name, pool in _pools(lakes):
        if pool.figures is None:
            continue
        entries.add_metric([lake_name, pool.config.name], pool.figures.version)
        for agent, seconds in lags(pool, now=now[lake_name]):
            lag.add_metric([lake_name, pool.config.name, agent], seconds)
    yield from (entries, lag)


def _pools(lakes: Sequence[SeenLake]) -> Iterator[tuple[str, SeenPool]]:
    for lake in lakes:
        for pool in lake.pools.pools if lake.pools is not None else ():
            yield lake.name, pool


def lags(pool: SeenPool, *, now: float) -> Iterator[tuple[str, float]]:
    """Yields, by agent, how many seconds ago its oldest work on the pool became due; 0 also if a setting pauses
    the agent.

    Agents whose settings cannot be used are left out.
    """
    for name, due_of in DUES.items():
        try:
            due = due_of(pool.signs)
            is_paused = bool(paused_by(pool.signs, DONE_BY.get(name, name)))
        except InvalidInput:
            continue
        yield name, 0.0 if due is None or is_paused else max(0.0, now - due)


def _of_jobs(lakes: Sequence[SeenLake]) -> Iterator[Metric]:
    sums = [(lake.name, agent, one) for lake in lakes for agent, one in lake.jobs.items()]
    ended = _counter(
        "lake_jobs", "Jobs of agents that ended since this server looked first", "state", by_agent=True
    )
    for lake, agent, one in sums:
        for state in STATES:
            ended.add_metric([lake, agent, state.replace(" ", "_")], one.ended.get(state, 0))
    yield ended
    seconds = CounterMetricFamily("lake_job_seconds", "Seconds of these jobs", labels=["lake", "agent"])
    for lake, agent, one in sums:
        seconds.add_metric([lake, agent], one.seconds)
    yield seconds
    yield from _counters("lake_job", "these jobs", [((lake, agent), one.cost) for lake, agent, one in sums])


def _of_process(process: Counts) -> Iterator[Metric]:
    yield from _counters("lake_server", "this server itself", [((), process)])


def _counter(name: str, says: str, *more: str, by_agent: bool) -> CounterMetricFamily:
    return CounterMetricFamily(name, says, labels=[*(["lake", "agent"] if by_agent else []), *more])


def _counters(
    name: str, whose: str, costs: Iterable[tuple[tuple[str, ...], Counts]]
) -> Iterator[CounterMetricFamily]:
    """Yields the counters of costs; each cost has the values of its first labels."""
    costs = list(costs)
    by_agent = name == "lake_job"
    requests = _counter(f"{name}_requests", f"Requests to stores by {whose}", "kind", by_agent=by_agent)
    moved = _counter(f"{name}_bytes", f"Bytes from and to stores, by {whose}", "direction", by_agent=by_agent)
    commits = _counter(f"{name}_commits", f"Transactions that {whose} committed to pools", by_agent=by_agent)
    races = _counter(
        f"{name}_races_lost", f"Races for the next entry of a journal that {whose} lost", by_agent=by_agent
    )
    phases = _counter(
        f"{name}_phase_seconds",
        f"Seconds by phase of loads, scans and rewritings, by {whose}",
        "work",
        "phase",
        by_agent=by_agent,
    )
    for labels, cost in costs:
        for kind in ("reads", "lists", "writes", "deletes"):
            requests.add_metric([*labels, kind.removesuffix("s")], getattr(cost, kind))
        for direction in ("received", "sent"):
            moved.add_metric([*labels, direction], getattr(cost, direction))
        commits.add_metric(labels, cost.commits)
        races.add_metric(labels, cost.races_lost)
        for phase, seconds in sorted(cost.seconds.items()):
            work, _, part = phase.partition(".")
            phases.add_metric([*labels, work, part], seconds)
    yield from (requests, moved, commits, races, phases)
