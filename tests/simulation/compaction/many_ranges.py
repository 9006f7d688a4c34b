"""A large pool of many ranges, without data: bulk imports land, the agent `split` splits, jobs run on many workers.

The planner, the agent's plan and the cuts of a job are the real ones; what they see are references.  The pool is
kept in *zones*: references and ranges that hang together by what straddles points, as the planner groups them.  So
a zone to which nothing came is not planned again, and one look at a million references takes seconds.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from lake_core.history import Reference
from lake_core.ids import IdSource
from lake_core.keys import PoolKey
from lake_core.keys.encoding import encode_value
from log_lake.agents.compact.plan import plan_compaction
from log_lake.agents.split.plan import cuts_of, plan_ranges
from log_lake.agents.split.policy import RangePolicy
from log_lake.compaction import CompactionJob, CompactionPolicy
from log_lake.compaction.layout import depth_of
from log_lake.compaction.ranges import apart, cuts, places
from log_lake.reading.ranges import WeightedSample
from tests.simulation.compaction.loads import BEGIN, DAY, HOUR, Keys, Load
from tests.simulation.compaction.one_journal import Bill, OneJournal, bytes_of

KEY = PoolKey.parse("k")
SAMPLES = 4
"""Keys that are kept of an object, each with the bytes that it stands for."""
GRACE = DAY
SPEED, START = 60e6, 5.0
"""Bytes a second that a worker merges, and seconds before it begins."""
FOOTERS = 64


@dataclass(frozen=True, slots=True)
class Held:
    """An object: its reference, some of its keys with the bytes that each stands for."""

    reference: Reference
    keys: Keys
    weights: Keys

    @property
    def name(self) -> tuple[str, bytes]:
        return self.reference.object, self.reference.low


@dataclass
class Zone:
    """Objects that hang together; `low` is where it begins, `calm` whether the planner found nothing to do."""

    low: bytes
    held: dict[tuple[str, bytes], Held]
    calm: bool = False
    depth: int = 0
    measured: bool = False

    @property
    def references(self) -> list[Reference]:
        return [held.reference for held in self.held.values()]

    def changed(self) -> None:
        self.calm = self.measured = False


@dataclass(frozen=True)
class Hour:
    """What was seen in an hour.

    `deepest`: before the planner looked; `after`: when all its jobs had landed; `since`: loads that landed
    meanwhile.  `lasted`: seconds until the last job had landed; `busy`: workers at work at a time, at most.
    `rewritten`: bytes that the jobs read.
    """

    time: float
    references: int
    ranges: int
    zones: int
    deepest: int
    after: int
    since: int
    jobs: int
    rewritten: int
    lasted: float
    busy: int


@dataclass
class LargePool:
    """The pool; `run` lets loads land and looks each hour."""

    policy: CompactionPolicy
    ranges: RangePolicy
    workers: int
    points: list[bytes] = field(default_factory=list)
    zones: list[Zone] = field(default_factory=list)
    hours: list[Hour] = field(default_factory=list)
    bill: Bill = field(default_factory=Bill)
    loaded: int = 0
    largest_job: int = 0
    longest_job: float = 0.0
    most_inputs: int = 0
    _loads: int = 0
    _now: float = BEGIN
    _seq: int = 1
    _removed: deque[tuple[float, int]] = field(default_factory=deque)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.journal = OneJournal(self.bill)
        self._ids = IdSource(lambda: self._now, lambda n: next(self._numbers).to_bytes(n, "big"))

    # ------------------------------------------------------------ what is there

    @property
    def references(self) -> int:
        return sum(len(zone.held) for zone in self.zones)

    @property
    def size(self) -> int:
        return sum(held.reference.size for zone in self.zones for held in zone.held.values())

    @property
    def deepest(self) -> int:
        """The depth; a zone's is measured again if something came or went."""
        for zone in self.zones:
            if not zone.measured:
                zone.depth, zone.measured = depth_of(r.key_range for r in zone.references), True
        return max((zone.depth for zone in self.zones), default=0)

    def lay(
        self, keys: Keys, weights: Keys, *, cut: Sequence[bytes], seq: int, oldest: int | None = None
    ) -> list[Held]:
        """Objects of about the target size with these keys; none crosses a key of `cut`."""
        bounds = [bisect_left(keys, point, key=_encoded) for point in cut]
        made: list[Held] = []
        for some, of in zip(np.split(keys, bounds), np.split(weights, bounds), strict=True):
            if not len(some):
                continue
            total = float(of.sum())
            pieces = max(1, round(total / self.policy.target_size))
            ends = np.searchsorted(np.cumsum(of), np.arange(1, pieces) * total / pieces, side="right")
            for part, weight in zip(np.split(some, ends), np.split(of, ends), strict=True):
                if len(part):
                    made.append(self._object(part, weight, seq=seq, oldest=oldest))
        return made

    def _object(self, keys: Keys, weights: Keys, *, seq: int, oldest: int | None) -> Held:
        reference = Reference(
            object=self._ids.new(),
            low=encode_value(float(keys[0])),
            high=encode_value(float(keys[-1])) + b"\0",
            seq=seq,
            ordinal=0,
            records=max(1, round(float(weights.sum()) / 100)),
            size=max(1, round(float(weights.sum()))),
            schema="s",
            oldest=oldest,
        )
        return Held(reference, *_thin(keys, weights))

    def begin(self, held: Iterable[Held], points: Iterable[bytes]) -> None:
        """What the pool has before anything is counted."""
        self.points = sorted(points)
        self._zone_again(list(held), self.points)
        self.bill.puts = self.bill.gets = self.bill.written = self.bill.read = 0

    def _zone_again(self, held: Sequence[Held], points: Sequence[bytes], at: slice = slice(0, 0)) -> None:
        """Zones of these objects, in the place of those at `at`."""
        by_name = {one.name: one for one in held}
        groups = apart((one.reference for one in held), points)
        made = []
        for group in groups:
            first = places(group[0], points).start
            low = points[first - 1] if first else b""
            made.append(Zone(low, {(r.object, r.low): by_name[r.object, r.low] for r in group}))
        self.zones[at] = made

    def _zone_of(self, low: bytes) -> int:
        return bisect_right(self.zones, low, key=lambda zone: zone.low) - 1

    # ------------------------------------------------------------ what happens

    def run(self, loads: Iterable[Load], *, looks: int) -> None:
        """All of the loads; the agents look each hour, if the jobs of their last look have landed."""
        coming = deque(loads)

        def land_until(time: float) -> None:
            while coming and coming[0].time <= time:
                self._land(coming.popleft())

        for _ in range(looks):
            before, look = self._now, HOUR * np.floor(self._now / HOUR + 1)
            land_until(look)
            self._now = look
            deepest = self.deepest
            self._pay((look - before) / DAY)
            self._split()
            references, loads_before = self.references, self._loads
            running, busy = self._started()
            for one in running:
                land_until(one.end)
                self._finish(one)
            lasted = self._now - look
            self._settle()
            self.hours.append(
                Hour(
                    look,
                    references,
                    len(self.points) + 1,
                    len(self.zones),
                    deepest,
                    self.deepest,
                    self._loads - loads_before,
                    len(running),
                    sum(one.job.size for one in running),
                    lasted,
                    busy,
                )
            )

    def _pay(self, days: float) -> None:
        while self._removed and self._removed[0][0] < self._now - GRACE:
            self._removed.popleft()
        self.bill.byte_days += (self.size + sum(size for _, size in self._removed)) * days

    def _land(self, load: Load) -> None:
        """A bulk import: an object or more in each range that it has keys of, in one transaction."""
        self._now = load.time
        self._seq += 1 << 16
        self._loads += 1
        self.loaded += load.size
        weights = np.full(len(load.keys), load.size / len(load.keys))
        objects = self.lay(load.keys, weights, cut=self.points, seq=self._seq)
        for held in objects:
            zone = self.zones[self._zone_of(held.reference.low)]
            zone.held[held.name] = held
            zone.changed()
            self.bill.write_object(held.reference.size)
        self.journal.commit(load.time, bytes_of(removed=0, added=len(objects)))

    def _split(self) -> None:
        """The agent `split`, for zones to which something came; nothing shrinks here, so nothing is joined."""
        for number in range(len(self.zones) - 1, -1, -1):
            zone = self.zones[number]
            if zone.calm:
                continue
            inner = self._points_of(number)
            found: list[bytes] = []
            for key_range, _ in plan_ranges(zone.references, inner, self.ranges).splits:
                inside = [held for held in zone.held.values() if held.reference.key_range.overlaps(key_range)]
                inside.sort(key=lambda held: held.reference.size, reverse=True)
                samples = [self._sample(held, known=n < FOOTERS) for n, held in enumerate(inside)]
                low = key_range.low or zone.low
                high = key_range.high or (
                    self.zones[number + 1].low if number + 1 < len(self.zones) else None
                )
                found += cuts_of(samples, type(key_range)(low, high))
            if found:
                for point in found:
                    self.points.insert(bisect_left(self.points, point), point)
                self._zone_again(
                    list(zone.held.values()), self._between(zone.low, number), slice(number, number + 1)
                )
                self.zones[number].low = zone.low
                self.bill.gets += 2 * FOOTERS
                self.journal.commit(self._now, 200 + 20 * len(found))

    def _between(self, low: bytes, number: int) -> list[bytes]:
        """The points from `low` (inclusive) to the next zone."""
        first = bisect_left(self.points, low) if low else 0
        end = len(self.points)
        if number + 1 < len(self.zones):
            end = bisect_left(self.points, self.zones[number + 1].low)
        return self.points[first:end]

    def _points_of(self, number: int) -> list[bytes]:
        """The points inside a zone."""
        between = self._between(self.zones[number].low, number)
        return between[1:] if between and between[0] == self.zones[number].low else between

    def _sample(self, held: Held, *, known: bool) -> WeightedSample:
        """What the agent knows of an object: its footer's sample, or its bounds."""
        reference, part = held.reference, self.ranges.part(held.reference)
        if not known or len(held.keys) < 2:
            return WeightedSample.of_bounds(reference.low, reference.high, weight=part)
        keys = sorted({reference.low, *(encode_value(float(key)) for key in held.keys)})
        return WeightedSample((*keys, reference.high), (part / len(keys),) * len(keys))

    def jobs(self) -> Iterator[tuple[CompactionJob, list[bytes]]]:
        """The jobs of all zones that changed, as `plan_branch` makes them, with the points that cut each."""
        for number, zone in enumerate(self.zones):
            if zone.calm:
                continue
            inner = self._points_of(number)
            plan = plan_compaction(zone.references, self.policy, key=KEY, kind="append", now=self._now)
            jobs = [piece for job in plan.jobs for piece in job.apart(inner)]
            zone.calm = not jobs
            for job in jobs:
                yield job, cuts(inner, job.key_range, size=job.size)

    def _started(self) -> tuple[list[Running], int]:
        """The jobs by the time at which each has written its objects; how many workers are at work, at most."""
        running: list[Running] = []
        free = [self._now] * self.workers
        for job, cut in self.jobs():
            assert self.policy.fits(len(job.inputs), job.size), (
                f"{len(job.inputs)} inputs of {job.size} bytes"
            )
            lasts = START + job.size / SPEED
            self.largest_job = max(self.largest_job, job.size)
            self.most_inputs = max(self.most_inputs, len(job.inputs))
            self.longest_job = max(self.longest_job, lasts)
            running.append(Running(heapq.heapreplace(free, free[0] + lasts) + lasts, job, cut))
        return sorted(running, key=lambda one: one.end), min(self.workers, len(running))

    def _finish(self, one: Running) -> None:
        """A job lands: its inputs go, a run comes."""
        job = one.job
        zone = self.zones[self._zone_of(job.inputs[0].low)]
        gone = [zone.held.pop((r.object, r.low)) for r in job.inputs]
        keys = np.concatenate([held.keys for held in gone])
        weights = np.concatenate([held.weights for held in gone])
        order = np.argsort(keys, kind="stable")
        newest, oldest = max(r.seq for r in job.inputs), min(r.first_seq for r in job.inputs)
        made = self.lay(keys[order], weights[order], cut=one.cut, seq=newest, oldest=oldest)
        zone.held |= {held.name: held for held in made}
        zone.changed()
        for held in made:
            self.bill.write_object(held.reference.size)
        for held in gone:
            self.bill.read_object(held.reference.size)
        self._now = self.journal.commit(one.end, bytes_of(removed=len(gone), added=len(made)))
        self._removed.append((self._now, job.size))

    def _settle(self) -> None:
        """Zones that no straddling object holds together any more."""
        for number in range(len(self.zones) - 1, -1, -1):
            if not self.zones[number].measured and self._points_of(number):
                self._apart(number)

    def _apart(self, number: int) -> None:
        """A zone as the zones that no straddling object holds together."""
        zone = self.zones[number]
        self._zone_again(list(zone.held.values()), self._between(zone.low, number), slice(number, number + 1))
        self.zones[number].low = zone.low


@dataclass(frozen=True, slots=True)
class Running:
    """A job that has begun: when its objects are written, and the points at which these are cut."""

    end: float
    job: CompactionJob
    cut: list[bytes]


def _encoded(key: float) -> bytes:
    return encode_value(float(key))


def _thin(keys: Keys, weights: Keys) -> tuple[Keys, Keys]:
    """A few of the keys, the first and the last among them, with all of the weight."""
    if len(keys) <= SAMPLES:
        return keys, weights
    chosen = np.linspace(0, len(keys) - 1, SAMPLES).round().astype(int)
    return keys[chosen], np.add.reduceat(weights, chosen)
