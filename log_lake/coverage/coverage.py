"""The coverage of a branch: each interval of its schedule, and whether the branch holds it."""

from __future__ import annotations

import datetime as dt
import shlex
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from lake_core.errors import InvalidInput
from lake_core.history.covered import CoveredInterval, covered_intervals
from lake_core.ids import id_seconds
from lake_core.keys import KeyRange
from log_lake.coverage.key_ranges import TIMES, possible_ranges, time_of
from log_lake.coverage.schedule import TimeSpan, intervals, utc
from log_lake.coverage.settings import KEYS, YEARS, CoveragePolicy, coverage_policy_of, in_zone
from log_lake.reading.revision import Revision

HELD, GAP, LATE = "held", "gap", "late"
"""A replace brought all of the interval; it lacks a part; it lacks a part and is past its time."""


@dataclass(frozen=True)
class IntervalCoverage:
    """One interval of the schedule, [begin, end), and its state.

    If it is held: the version that brought it, the newest if several did, and when that work began.  `due`: from
    then on it is late if it is not held; None: never.
    """

    begin: dt.datetime
    end: dt.datetime
    state: str
    version: int | None = None
    loaded: dt.datetime | None = None
    due: dt.datetime | None = None


@dataclass(frozen=True)
class Coverage:
    """The intervals of a branch in order, without a gap in time between them.

    `policy` says which there are; none if nothing is held and no setting says since when there should be.
    """

    policy: CoveragePolicy
    intervals: tuple[IntervalCoverage, ...]

    @property
    def gaps(self) -> tuple[IntervalCoverage, ...]:
        """The intervals that are not held."""
        return tuple(one for one in self.intervals if one.state != HELD)

    @property
    def complete(self) -> dt.datetime | None:
        """All intervals up to here (exclusive) are held; None if the first is not, or there is none."""
        until = None
        for one in self.intervals:
            if one.state != HELD:
                break
            until = one.end
        return until

    @property
    def spans(self) -> list[tuple[str, Sequence[IntervalCoverage]]]:
        """Neighbours with the same state, in order."""
        return [(state, tuple(ones)) for state, ones in groupby(self.intervals, key=lambda one: one.state)]


def coverage_of(
    revision: Revision,
    *,
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
    now: float | None = None,
) -> Coverage:
    """The coverage of a branch from `since` (default: the setting, or the first interval that is held) up to
    `until` (default: now).

    A time without a zone is one of the schedule.  `now` is in seconds since 1970.  Raises InvalidInput for a pool
    whose key begins with no time, for a year that is not in `YEARS`, and for too many intervals.
    """
    policy = coverage_policy_of(revision.settings)
    at = dt.datetime.fromtimestamp(revision.now if now is None else now, dt.UTC)
    brought = _Held(covered_intervals(revision.state, revision.branch))
    begin = policy.since if since is None else in_zone(since, policy.zone)
    begin = begin or brought.first(revision, policy.zone)
    end = at if until is None else in_zone(until, policy.zone)
    if begin is None or not revision.key.fields or policy.every == KEYS:
        return Coverage(policy, ())
    spans = intervals(begin, end, every=policy.every, zone=policy.zone)
    return Coverage(policy, tuple(_intervals(revision, brought, spans, policy, now=at)))


def has_schedule(revision: Revision) -> bool:
    """Whether intervals of time can be told: the key begins with a time, or a setting says that it does.

    A number and a text may be anything, so without such a setting they are only keys.
    """
    if revision.settings.text("intervals.every") == KEYS:
        return False
    key_class = class_of(revision)
    says = any(revision.settings.text(f"intervals.{name}") for name in ("source", "since", "late"))
    return says or key_class in TIMES or (key_class is None and bool(revision.key.fields))


def check_schedule(revision: Revision) -> None:
    """Raises InvalidInput if the pool can have no intervals of time."""
    if not has_schedule(revision):
        raise InvalidInput(
            f"{revision.config.name}: its key {str(revision.key)!r} is no time, so gaps cannot be told; if it "
            "holds seconds or dates as text, say since when: "
            f"lake set {shlex.quote(revision.config.name)} intervals.every=day intervals.since=2026-01-31"
        )


def class_of(revision: Revision) -> str | None:
    """The class of the leading key field; None if no record tells it yet."""
    return revision.key_classes.get(revision.key.names[0]) if revision.key.fields else ""


def _intervals(
    revision: Revision, brought: _Held, spans: Iterator[TimeSpan], policy: CoveragePolicy, *, now: dt.datetime
) -> Iterator[IntervalCoverage]:
    key, key_class = revision.key, class_of(revision)
    for begin, end in spans:
        due = None if policy.late is None else (utc(end) + policy.late).astimezone(policy.zone)
        for key_range in possible_ranges(begin, end, key=key, key_class=key_class):
            if (by := brought.by(key_range)) is not None:
                yield IntervalCoverage(begin, end, HELD, by.version, loaded_at(by), due)
                break
        else:
            yield IntervalCoverage(begin, end, LATE if due is not None and utc(due) <= now else GAP, due=due)


def loaded_at(one: CoveredInterval) -> dt.datetime | None:
    """When the transaction that brought an interval began, by its writer's clock; None if its id tells no time."""
    seconds = id_seconds(one.transaction_id)
    return dt.datetime.fromtimestamp(seconds, dt.UTC) if seconds else None


@dataclass(frozen=True)
class _Held:
    """The ranges of keys that are held, by their low bound; they may overlap."""

    ranges: list[CoveredInterval]

    @cached_property
    def _lows(self) -> list[bytes]:
        return [one.key_range.low for one in self.ranges]

    @cached_property
    def _united(self) -> list[tuple[bytes, bytes]]:
        """The same ranges without overlaps: those that touch are one."""
        united: list[tuple[bytes, bytes]] = []
        for one in self.ranges:
            low, high = one.key_range.low, one.key_range.high or b""
            if united and low <= united[-1][1]:
                united[-1] = united[-1][0], max(united[-1][1], high)
            else:
                united.append((low, high))
        return united

    def by(self, key_range: KeyRange) -> CoveredInterval | None:
        """The newest range that brought a part of this one; None if a part of it is not held."""
        low, high = key_range.low, key_range.high or b""
        at = bisect_right(self._united, (low, b"\xff" * 2 + high)) - 1
        if at < 0 or not (self._united[at][0] <= low and high <= self._united[at][1]):
            return None
        first, last = bisect_left(self._lows, low), bisect_left(self._lows, high)
        inside = self.ranges[first:last] or self.ranges[max(0, first - 1) : first]
        return max(inside, key=lambda one: one.version)

    def first(self, revision: Revision, zone: dt.tzinfo) -> dt.datetime | None:
        """The begin of the first interval that is held; None if none is."""
        descending = revision.key.fields[0].descending
        bounds = (one.key_range.high if descending else one.key_range.low for one in self.ranges)
        times = (time_of(bound, key=revision.key, zone=zone) for bound in bounds if bound)
        return min((time for time in times if time is not None and time.year in YEARS), key=utc, default=None)
