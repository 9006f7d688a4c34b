"""The intervals of a schedule, and which of them a branch holds."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake_core.errors import InvalidInput
from lake_core.history.covered import CoveredInterval
from lake_core.keys import KeyRange, PoolKey
from log_lake.coverage.backfills import backfills_of
from log_lake.coverage.coverage import HELD, Coverage, IntervalCoverage, coverage_of, has_schedule
from log_lake.coverage.held import HeldRanges
from log_lake.coverage.key_ranges import CLASSES, interval_range, time_of
from log_lake.coverage.schedule import MAX_INTERVALS, intervals, latest_begin
from log_lake.coverage.settings import EVERY, YEARS, CoveragePolicy
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.stores.memory import MemoryStore

BERLIN, TOKYO, KOLKATA = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Tokyo"), ZoneInfo("Asia/Kolkata")
UTC = dt.UTC
ZONES = (UTC, BERLIN, TOKYO, KOLKATA, ZoneInfo("Australia/Lord_Howe"))


def at(*parts: int, zone: dt.tzinfo = UTC) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=zone)  # type: ignore[arg-type, misc]


@given(
    st.datetimes(dt.datetime(2000, 1, 1), dt.datetime(2030, 1, 1)),
    st.integers(0, 300),
    st.sampled_from(EVERY),
    st.sampled_from(ZONES),
)
def test_intervals_follow_one_another_and_hold_the_first_moment(
    since: dt.datetime, hours: int, every: str, zone: dt.tzinfo
) -> None:
    since = since.replace(tzinfo=UTC)
    until = since + dt.timedelta(hours=hours)
    spans = list(intervals(since, until, every=every, zone=zone))
    assert all(one[1].timestamp() == other[0].timestamp() for one, other in pairwise(spans))
    assert all(begin.timestamp() < end.timestamp() and begin.minute == 0 for begin, end in spans)
    if spans:
        assert spans[0][0] <= since < spans[0][1]
        assert spans[-1][1] <= until


def test_a_day_in_which_clocks_change_is_longer_or_shorter() -> None:
    spans = intervals(at(2026, 3, 28, zone=BERLIN), at(2026, 3, 31, zone=BERLIN), every="day", zone=BERLIN)
    hours = [(end.astimezone(UTC) - begin.astimezone(UTC)) / dt.timedelta(hours=1) for begin, end in spans]
    assert hours == [24, 23, 24]


CHANGES = (
    (BERLIN, at(2026, 10, 25, 1)),
    (ZoneInfo("America/New_York"), at(2026, 11, 1, 6)),
    (ZoneInfo("Australia/Lord_Howe"), at(2026, 4, 4, 15)),
    (ZoneInfo("Australia/Lord_Howe"), at(2026, 10, 3, 15, 30)),
)
"""A zone, and when its clocks change: the last by half an hour."""


@given(st.sampled_from(CHANGES), st.integers(-500, 500), st.integers(0, 1_000), st.sets(st.integers(0, 16)))
def test_hours_and_backfills_follow_time_where_clocks_change(
    change: tuple[dt.tzinfo, dt.datetime], start: int, minutes: int, held: set[int]
) -> None:
    zone, moment = change
    minute = dt.timedelta(minutes=1)
    since = moment + start * minute
    until = since + minutes * minute
    spans = list(intervals(since.astimezone(zone), until.astimezone(zone), every="hour", zone=zone))
    instants = [(begin.astimezone(UTC), end.astimezone(UTC)) for begin, end in spans]
    assert all(one[1] == other[0] for one, other in pairwise(instants))
    assert all(60 * minute <= end - begin <= 90 * minute and end <= until for begin, end in instants)
    assert all(time.minute == 0 for span in spans for time in span)
    ends = instants[-1][1] if instants else since
    assert until - ends < 180 * minute
    assert all(begin <= since < end for begin, end in instants[:1])
    ones = (IntervalCoverage(*span, HELD if number in held else "gap") for number, span in enumerate(spans))
    gaps = backfills_of(Coverage(CoveragePolicy("hour", zone), tuple(ones)))
    commands = [one.command("d") for one in gaps]
    loaded = [
        number
        for number, (begin, _) in enumerate(instants)
        for words in commands
        if dt.datetime.fromisoformat(words[6]) <= begin <= dt.datetime.fromisoformat(words[8])
    ]
    assert loaded == [number for number in range(len(spans)) if number not in held]


@pytest.mark.parametrize(("first", "expected"), [(0, "x!x!-"), (1, "x!x-")])
def test_the_hour_that_comes_twice_is_held_and_due_by_itself(first: int, expected: str) -> None:
    pool = a_pool(every="hour", zone="Europe/Berlin", late="1h")
    for hour in (first, first + 2):
        load(pool, "timestamp", at(2026, 10, 25, hour), at(2026, 10, 25, hour + 1))
    now, since = at(2026, 10, 25, 5), at(2026, 10, 25, first)
    found = coverage_of(pool.at(), since=since, until=now, now=now.timestamp())
    assert states(found) == expected
    assert states(coverage_of(pool.at(), until=now, now=now.timestamp())) == states(found)
    due = [one.due.astimezone(UTC) - one.end.astimezone(UTC) for one in found.intervals if one.due]
    assert due == [dt.timedelta(hours=1)] * len(found.intervals)


def test_weeks_begin_on_monday_and_months_on_the_first() -> None:
    def begins(every: str) -> list[str]:
        spans = intervals(at(2025, 12, 31), at(2026, 3, 1), every=every, zone=UTC)
        return [f"{begin:%m-%d}" for begin, _ in spans]

    assert begins("week")[:2] == ["12-29", "01-05"]
    assert begins("month") == ["12-01", "01-01", "02-01"]


def test_too_many_intervals_are_refused_and_so_are_years_beyond_9999() -> None:
    hours = dt.timedelta(hours=1)
    since = at(2000, 1, 1)
    assert (
        sum(1 for _ in intervals(since, since + MAX_INTERVALS * hours, every="hour", zone=UTC))
        == MAX_INTERVALS
    )
    with pytest.raises(InvalidInput, match="more than 100,000 intervals"):
        list(intervals(since, since + (MAX_INTERVALS + 1) * hours, every="hour", zone=UTC))
    with pytest.raises(InvalidInput, match="the years of a time are 1 to 9999"):
        list(intervals(at(9999, 12, 31), at(9999, 12, 31, 5), every="day", zone=UTC))


@pytest.mark.parametrize(
    ("since", "until"),
    [
        (at(9999, 12, 20), at(9999, 12, 31)),
        (at(2026, 1, 1), dt.datetime.fromisoformat("9999-12-31T23:00-05:00")),
        (dt.datetime.fromisoformat("0001-01-01T00:00+05:00"), at(1, 1, 3)),
        (at(2026, 1, 1), dt.datetime.max),
    ],
)
def test_years_that_a_zone_or_a_duration_would_leave_are_refused(
    since: dt.datetime, until: dt.datetime
) -> None:
    pool = a_pool(late="7d", zone="America/New_York")
    with pytest.raises(InvalidInput, match="use a year from 2 to 9799"):
        coverage_of(pool.at(), since=since, until=until)


def test_the_first_and_the_last_year_and_the_longest_delay_are_no_error() -> None:
    pool = a_pool(late="36500d", zone="America/New_York")
    for year in (YEARS.start, YEARS.stop - 1):
        assert states(coverage_of(pool.at(), since=at(year, 1, 1), until=at(year, 1, 2, 12), now=0)) == (
            "!!" if year < 1970 else "--"
        )
    with pytest.raises(InvalidInput, match="use a duration of at most 36,500d"):
        a_pool(late="36501d")


@pytest.mark.parametrize("key_class", CLASSES)
@pytest.mark.parametrize("key", ["t", "t:desc"])
@pytest.mark.parametrize("zone", ZONES, ids=str)
def test_a_bound_tells_the_time_that_it_was_made_of(key_class: str, key: str, zone: dt.tzinfo) -> None:
    parsed, begin, end = PoolKey.parse(key), at(2026, 5, 3, zone=zone), at(2026, 5, 4, zone=zone)
    span = interval_range(begin, end, key=parsed, key_class=key_class)
    bound = span.high if parsed.fields[0].descending else span.low
    assert bound is not None
    assert time_of(bound, key=parsed, zone=zone) == begin


KEYS = {
    "timestamp": pa.timestamp("us"),
    "timestamp with zone": pa.timestamp("us", "UTC"),
    "date": pa.date32(),
    "number": pa.int64(),
    "string": pa.string(),
}
VALUES = {
    "timestamp": dt.datetime(2020, 1, 1),
    "timestamp with zone": dt.datetime(2020, 1, 1),
    "date": dt.date(2020, 1, 1),
    "number": 5,
    "string": "2020-01-01",
}


def a_pool(key_class: str = "timestamp", *, key: str = "t", **settings: str) -> Pool:
    """A pool with one record, which tells the class of its key."""
    pool = a_lake().create_pool("p", key=key, settings={f"intervals.{n}": v for n, v in settings.items()})
    pool.branch().append(pa.table({"t": pa.array([VALUES[key_class]], KEYS[key_class]), "u": [1]}))
    return pool


def a_lake() -> Lake:
    return Lake.create_on(MemoryStore())


def load(pool: Pool, key_class: str, begin: dt.datetime, end: dt.datetime) -> None:
    """Replaces an interval by no records."""
    span = interval_range(begin, end, key=pool.config.key, key_class=key_class)
    empty = pa.table({"t": pa.array([], KEYS[key_class]), "u": pa.array([], pa.int64())})
    pool.branch().replace_with(empty, key_range=span)


def states(found: Coverage) -> str:
    return "".join(
        "x" if one.state == HELD else "-" if one.state == "gap" else "!" for one in found.intervals
    )


@pytest.mark.parametrize("key_class", CLASSES)
@pytest.mark.parametrize("key", ["t", "t:desc", "t,u"])
def test_days_are_held_lacking_or_late(key_class: str, key: str) -> None:
    pool = a_pool(key_class, key=key, since="2026-03-01", late="1d")
    for number in (1, 2, 4):
        load(pool, key_class, at(2026, 3, number), at(2026, 3, number + 1))
    found = coverage_of(pool.at(), now=at(2026, 3, 7, 1).timestamp())
    assert states(found) == "xx!x!-"
    assert found.complete == at(2026, 3, 3)
    assert [one.version for one in found.intervals if one.version] == [2, 3, 4]


def test_an_interval_says_the_newest_load_that_brought_all_of_it_or_the_newest_part() -> None:
    pool = a_pool(since="2026-03-01")
    load(pool, "timestamp", at(2026, 3, 5), at(2026, 3, 6))  # version 2
    load(pool, "timestamp", at(2026, 3, 1), at(2026, 3, 9))
    load(pool, "timestamp", at(2026, 3, 2), at(2026, 3, 3))
    load(pool, "timestamp", at(2026, 3, 3, 5), at(2026, 3, 3, 6))
    load(pool, "timestamp", at(2026, 3, 9, 12), at(2026, 3, 10))
    load(pool, "timestamp", at(2026, 3, 9), at(2026, 3, 9, 12))
    found = coverage_of(pool.at(), until=dt.datetime(2026, 3, 11))
    assert [one.version for one in found.intervals] == [3, 4, 3, 3, 3, 3, 3, 3, 7, None]


@given(st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), max_size=12), st.integers(1, 5))
def test_what_brought_a_span_is_as_each_range_tells(pairs: list[tuple[int, int]], width: int) -> None:
    bounds = sorted((min(pair), max(pair) + 1, version) for version, pair in enumerate(pairs))
    ranges = [CoveredInterval(KeyRange(bytes([a]), bytes([b])), version, "") for a, b, version in bounds]
    spans = [KeyRange(bytes([low]), bytes([low + width])) for low in range(1, 21, width)]
    expected = {}
    for span in spans:
        low, high = span.low[0], span.low[0] + width
        whole = [version for a, b, version in bounds if a <= low and high <= b]
        part = [version for a, b, version in bounds if a < high and low < b]
        held = all(any(a <= key < b for a, b, _ in bounds) for key in range(low, high))
        if held:
            expected[span.low] = max(whole or part)
    found = HeldRanges(ranges).bringing(reversed(spans))
    assert {low: one.version for low, one in found.items()} == expected


@pytest.mark.parametrize("every", ["hour", "day", "week", "month"])
def test_a_far_low_bound_leaves_the_newest_intervals(every: str) -> None:
    until = at(2026, 1, 1)
    near = at(2025, 1, 1)
    assert latest_begin(near, until, every=every) == near
    far = latest_begin(at(1, 2, 1), until, every=every)
    assert far >= at(1, 2, 1)
    assert sum(1 for _ in intervals(far, until, every=every, zone=UTC)) <= MAX_INTERVALS


def test_hours_make_a_day_and_a_month_holds_its_days() -> None:
    pool = a_pool(since="2026-02-01")
    load(pool, "timestamp", at(2026, 2, 1), at(2026, 3, 1))
    for hour in range(23):
        load(pool, "timestamp", at(2026, 3, 1, hour), at(2026, 3, 1, hour + 1))
    found = coverage_of(pool.at(), until=dt.datetime(2026, 3, 2))
    assert states(found) == "x" * 28 + "-"
    load(pool, "timestamp", at(2026, 3, 1, 23), at(2026, 3, 2))
    assert states(coverage_of(pool.at(), until=dt.datetime(2026, 3, 2))) == "x" * 29
    monthly = a_pool(since="2026-02-01", every="month")
    assert states(coverage_of(monthly.at(), until=dt.datetime(2026, 4, 1))) == "--"


@pytest.mark.parametrize("key_class", ["timestamp", "date"])
def test_days_are_those_of_the_zone(key_class: str) -> None:
    pool = a_pool(key_class, zone="Asia/Tokyo")
    load(pool, key_class, at(2026, 3, 1, zone=TOKYO), at(2026, 3, 2, zone=TOKYO))
    found = coverage_of(pool.at(), until=dt.datetime(2026, 3, 3))
    assert [(one.begin.isoformat(), one.state) for one in found.intervals] == [
        ("2026-03-01T00:00:00+09:00", "held"),
        ("2026-03-02T00:00:00+09:00", "gap"),
    ]


def test_a_number_and_a_text_need_a_setting_to_be_times() -> None:
    for key_class in KEYS:
        assert has_schedule(a_pool(key_class).at()) is (key_class not in ("number", "string"))
    assert has_schedule(a_pool("number", since="2026-01-01").at())


def test_a_pool_that_never_had_a_record_may_hold_intervals() -> None:
    empty = a_lake().create_pool("p", key="t", settings={"intervals.since": "2026-01-01"})
    assert has_schedule(empty.at())
    assert states(coverage_of(empty.at(), until=dt.datetime(2026, 1, 3))) == "--"


def test_a_key_that_is_no_time_has_no_schedule() -> None:
    flags = a_lake().create_pool("p", key="t", settings={"intervals.since": "2026-01-01"})
    flags.branch().append(pa.table({"t": [True]}))
    with pytest.raises(InvalidInput, match="intervals need a key that begins with a timestamp"):
        coverage_of(flags.at())
