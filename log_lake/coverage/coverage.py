"""The coverage of a branch: each interval of its schedule, and whether the branch holds it."""

from __future__ import annotations

import datetime as dt
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from lake_core.errors import InvalidInput
from lake_core.history.covered import CoveredInterval, covered_intervals
from lake_core.ids import id_seconds
from log_lake.coverage.held import HeldRanges
from log_lake.coverage.key_ranges import TIMES, possible_ranges
from log_lake.coverage.schedule import TimeSpan, intervals, latest_begin, utc
from log_lake.coverage.settings import CoveragePolicy, coverage_policy_of, in_zone
from log_lake.reading.revision import Revision
from log_lake.settings.covering import KEYS, keeps_keys, tells_times

HELD, GAP, LATE = "held", "gap", "late"
"""The states of an interval.  Held: replaces brought all of it.  Gap: a part is missing.  Late: a part is missing
after its deadline."""

SAY_SINCE = "say since when there should be some: intervals.since"


@dataclass(frozen=True)
class IntervalCoverage:
    """One interval of the schedule, from `begin` (inclusive) to `end` (exclusive), and its state.

    If the branch holds it, it has the version that brought it, and when that work began.  This is the newest
    version that brought all of it, or, if several brought a part each, the newest of those.  `due`: the time
    from which on it is late if it is not held; None: never.
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

    `policy` defines the intervals.  There are none if nothing is held and no setting gives a first one.
    `is_cut`: earlier ones are left out, because there would be more than `MAX_INTERVALS`.
    """

    policy: CoveragePolicy
    intervals: tuple[IntervalCoverage, ...]
    is_cut: bool = False

    @property
    def cut_before(self) -> dt.datetime | None:
        """The time before which intervals are left out; None if none are."""
        return self.intervals[0].begin if self.is_cut and self.intervals else None

    @property
    def gaps(self) -> tuple[IntervalCoverage, ...]:
        """The intervals that are not held."""
        return tuple(one for one in self.intervals if one.state != HELD)

    @property
    def complete(self) -> dt.datetime | None:
        """The time before which every interval is held; None if the first one is not held, or there is none."""
        until = None
        for one in self.intervals:
            if one.state != HELD:
                break
            until = one.end
        return until

    @property
    def spans(self) -> list[tuple[str, Sequence[IntervalCoverage]]]:
        """The intervals in groups of neighbours with the same state, in order."""
        return [(state, tuple(ones)) for state, ones in groupby(self.intervals, key=lambda one: one.state)]


def coverage_of(
    revision: Revision,
    *,
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
    now: float | None = None,
) -> Coverage:
    """Returns the coverage of a branch from `since` (default: the setting, or the first interval that is held) up
    to `until` (default: now).

    A time without a zone is one of the schedule.  `now` is in seconds since 1970.  Raises InvalidInput for a
    pool whose key begins with no time, for a year that is not in `YEARS`, and for too many intervals since a
    time that was given.
    """
    policy = coverage_policy_of(revision.settings)
    at = dt.datetime.fromtimestamp(revision.now if now is None else now, dt.UTC)
    brought = HeldRanges(covered_intervals(revision.state, revision.branch))
    begin = policy.since if since is None else in_zone(since, policy.zone)
    end = at if until is None else in_zone(until, policy.zone)
    if not revision.key.fields or policy.every == KEYS:
        return Coverage(policy, ())
    first = begin or brought.first(revision.key, policy.zone)
    if first is None:
        return Coverage(policy, ())
    since = begin or latest_begin(first, end, every=policy.every)
    spans = list(intervals(since, end, every=policy.every, zone=policy.zone))
    told = tuple(_intervals(revision, brought, spans, policy, now=at))
    return Coverage(policy, told, is_cut=since is not first)


def has_schedule(revision: Revision) -> bool:
    """Whether the keys stand for times: the key begins with a time, or the settings `intervals.*` say that it
    does.

    A number or a text may mean anything, so without such a setting it is only a key.
    """
    if keeps_keys(revision.settings):
        return False
    key_class = class_of(revision)
    return (
        tells_times(revision.settings)
        or key_class in TIMES
        or (key_class is None and bool(revision.key.fields))
    )


def check_schedule(revision: Revision) -> None:
    """Raises InvalidInput if the pool's keys cannot be times."""
    if not has_schedule(revision):
        raise InvalidInput(
            f"{revision.config.name}: its key {str(revision.key)!r} is no time, so gaps cannot be told; if it "
            "holds seconds or dates as text, say since when: "
            f"lake set {shlex.quote(revision.config.name)} intervals.every=day intervals.since=2026-01-31"
        )


def class_of(revision: Revision) -> str | None:
    """Returns the class of the leading key field; None if no record shows it yet."""
    return revision.key_classes.get(revision.key.names[0]) if revision.key.fields else ""


def _intervals(
    revision: Revision,
    brought: HeldRanges,
    spans: Iterable[TimeSpan],
    policy: CoveragePolicy,
    *,
    now: dt.datetime,
) -> Iterator[IntervalCoverage]:
    key, key_class = revision.key, class_of(revision)
    ranges = [(begin, end, possible_ranges(begin, end, key=key, key_class=key_class)) for begin, end in spans]
    bringing = brought.bringing(one for *_, possible in ranges for one in possible)
    for begin, end, possible in ranges:
        due = None if policy.late is None else (utc(end) + policy.late).astimezone(policy.zone)
        by = next((bringing[one.low] for one in possible if one.low in bringing), None)
        if by is not None:
            yield IntervalCoverage(begin, end, HELD, by.version, loaded_at(by), due)
        else:
            yield IntervalCoverage(begin, end, LATE if due is not None and utc(due) <= now else GAP, due=due)


def loaded_at(one: CoveredInterval) -> dt.datetime | None:
    """Returns when the transaction that brought an interval began, by its writer's clock; None if the
    transaction's id has no time."""
    seconds = id_seconds(one.transaction_id)
    return dt.datetime.fromtimestamp(seconds, dt.UTC) if seconds else None
