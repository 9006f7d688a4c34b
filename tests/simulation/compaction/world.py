"""A pool without data: loads land, the planner looks, jobs take their time and land later, and it is measured.

What is simulated is what the planner sees and does: references, their ranges and sizes.  A merge puts the samples
of its inputs into order and cuts them into objects of about the target size, as the real one does with records.
Nothing is random but the loads; clocks are numbers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from lake_core.history import Reference
from lake_core.ids import IdSource
from lake_core.keys import PoolKey
from lake_core.keys.encoding import encode_value
from log_lake.agents.compact import plan_compaction
from log_lake.compaction import CompactionJob, CompactionPolicy
from tests.simulation.compaction.loads import BEGIN, DAY, HOUR, Keys, Load

KEY = PoolKey.parse("k")
GRACE = DAY
"""What was removed is held so long for those who still read it."""
SPEED = 60e6
"""Bytes a second that a worker merges."""
START = 5.0
"""Seconds before a job begins."""
WORKERS = 4


@dataclass(frozen=True)
class Held:
    """An object: its reference, and its samples with the bytes that each stands for."""

    reference: Reference
    keys: Keys
    weights: Keys


@dataclass(frozen=True)
class Moment:
    """What was seen at a time.

    `depths` are those at every byte: mean, the 99th in a hundred, deepest.  `write` is bytes written for each byte
    loaded, loads among them; `space` bytes held for each byte that is read.
    """

    time: float
    depth: float
    depth99: float
    deepest: int
    objects: int
    write: float
    space: float


@dataclass(frozen=True)
class Completed:
    """A plan whose jobs all landed: how deep the pool was then, and how many loads had landed since it was made."""

    deepest: int
    loads: int


@dataclass
class World:
    """One pool under one policy; `moments` is what was seen each hour, where the planner looks, before it does."""

    policy: CompactionPolicy
    every: float = HOUR
    kind: str = "append"
    held: dict[tuple[str, bytes], Held] = field(default_factory=dict)
    moments: list[Moment] = field(default_factory=list)
    completed: list[Completed] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    looks: int = 0
    jobs: int = 0
    written: int = 0
    _loads_at_look: int = 0
    _removed: deque[tuple[float, int]] = field(default_factory=deque)
    _now: float = BEGIN
    _count: int = 0

    def run(self, loads: Iterable[Load]) -> None:
        """All of the loads; the planner looks every `every` seconds, when the jobs of its last plan are done."""
        landing: deque[tuple[float, CompactionJob]] = deque()
        look, tick = BEGIN + self.every, BEGIN + HOUR
        for load in loads:
            while (first := min(tick, landing[0][0] if landing else look)) <= load.time:  # each only grows
                self._now = first
                if first == tick:
                    self.moments.append(self._measure())
                    tick += HOUR
                elif landing:
                    self.finish(landing.popleft()[1])
                    if not landing:
                        self.completed.append(Completed(self._measure().deepest, self._since_look()))
                else:
                    landing = self._look()
                    look = max(look + self.every, self.every * float(np.ceil(first / self.every)))
            self._now = load.time
            self._load(load)

    def _since_look(self) -> int:
        return len(self.sizes) - self._loads_at_look

    def _load(self, load: Load) -> None:
        self.sizes.append(load.size)
        weights = np.full(len(load.keys), load.size / len(load.keys))
        self._add(load.keys, weights, seq=len(self.sizes), oldest=None)

    def finish(self, job: CompactionJob) -> None:
        """A job lands: its inputs go, a run comes."""
        gone = [self.held.pop((r.object, r.low)) for r in job.inputs]
        self.jobs += 1
        self._removed.append((self._now, sum(h.reference.size for h in gone)))
        keys = np.concatenate([h.keys for h in gone])
        weights = np.concatenate([h.weights for h in gone])
        order = np.argsort(keys, kind="stable")
        keys, weights = keys[order], weights[order]
        cuts = np.searchsorted(
            np.cumsum(weights), np.arange(1, job.outputs) * weights.sum() / job.outputs, side="right"
        )
        newest = max(h.reference.seq for h in gone)
        oldest = min(h.reference.first_seq for h in gone)
        for some, of in zip(np.split(keys, cuts), np.split(weights, cuts), strict=True):
            if len(some):
                self._add(some, of, seq=newest, oldest=oldest)

    def _add(self, keys: Keys, weights: Keys, *, seq: int, oldest: int | None) -> None:
        self._count += 1
        size = max(1, round(float(weights.sum())))
        self.written += size
        reference = Reference(
            object=IdSource(lambda: self._now, lambda n: self._count.to_bytes(n, "big")).new(),
            low=encode_value(float(keys[0])),
            high=encode_value(float(keys[-1])) + b"\0",
            seq=seq,
            ordinal=0,
            records=len(keys),
            size=size,
            schema="s",
            oldest=oldest,
        )
        self.held[reference.object, reference.low] = Held(reference, keys, weights)

    def _look(self) -> deque[tuple[float, CompactionJob]]:
        """The jobs of a plan, with when each lands."""
        references = [h.reference for h in self.held.values()]
        self._loads_at_look = len(self.sizes)
        self.looks += 1
        plan = plan_compaction(references, self.policy, key=KEY, kind=self.kind, now=self._now)
        free = [self._now] * WORKERS
        landing = []
        for job in plan.jobs:
            worker = free.index(min(free))
            free[worker] += START + job.size / SPEED
            landing.append((free[worker], job))
        return deque(sorted(landing, key=lambda item: item[0]))

    def _measure(self) -> Moment:
        held = self.held.values()
        lows = np.sort([h.keys[0] for h in held])
        highs = np.sort([h.keys[-1] for h in held])
        # depth changes at lows and highs alone; each object's bytes are taken to lie even between its own
        at = np.concatenate([np.linspace(h.keys[0], h.keys[-1], 5) for h in held])
        weights = np.repeat([h.reference.size for h in held], 5)
        depths = np.searchsorted(lows, at, side="right") - np.searchsorted(highs, at, side="left")
        order = np.argsort(depths)
        share = np.cumsum(weights[order]) / weights.sum()
        live = sum(h.reference.size for h in held)
        while self._removed and self._removed[0][0] < self._now - GRACE:
            self._removed.popleft()
        return Moment(
            time=self._now,
            depth=float(np.average(depths, weights=weights)),
            depth99=float(depths[order][np.searchsorted(share, 0.99)]),
            deepest=int(depths.max()),
            objects=len(held),
            write=self.written / sum(self.sizes),
            space=(live + sum(size for _, size in self._removed)) / live,
        )
