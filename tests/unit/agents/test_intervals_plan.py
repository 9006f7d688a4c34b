"""Intervals of time as ranges of keys."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from lake_core.errors import InvalidInput
from lake_core.keys import PoolKey
from lake_core.keys.encoding import encode_key, from_scalar
from log_lake.agents.intervals.plan import path_of
from log_lake.coverage.key_ranges import interval_range

BEGIN = dt.datetime(2013, 2, 1, tzinfo=dt.UTC)
END = dt.datetime(2013, 2, 2, tzinfo=dt.UTC)
SECOND = dt.timedelta(seconds=1)


def naive(moment: dt.datetime) -> dt.datetime:
    return moment.replace(tzinfo=None)


@pytest.mark.parametrize("key", ["t", "t:desc", "t,x", "t:desc,x:desc"])
@pytest.mark.parametrize(
    ("key_class", "kind", "inside", "outside"),
    [
        ("timestamp with zone", pa.timestamp("us", "UTC"), [BEGIN, END - SECOND], [BEGIN - SECOND, END]),
        (
            "timestamp",
            pa.timestamp("ns"),
            [naive(BEGIN), naive(END - SECOND)],
            [naive(BEGIN - SECOND), naive(END)],
        ),
        ("date", pa.date32(), [BEGIN.date()], [BEGIN.date() - dt.timedelta(days=1), END.date()]),
        (
            "number",
            pa.float64(),
            [BEGIN.timestamp(), END.timestamp() - 0.5],
            [BEGIN.timestamp() - 0.5, END.timestamp()],
        ),
        (
            "string",
            pa.string(),
            ["2013-02-01", "2013-02-01T00:00:00Z", "2013-02-01T23:59:59.9Z"],
            ["2013-01-31T23:59:59Z", "2013-02-02", "2013-02-02T00:00:00"],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_exactly_the_keys_of_the_interval_are_in_the_range(
    key: str, key_class: str, kind: pa.DataType, inside: list[object], outside: list[object]
) -> None:
    parsed = PoolKey.parse(key)
    span = interval_range(BEGIN, END, key=parsed, key_class=key_class)
    more = [1] if len(parsed.fields) > 1 else []
    for moment, lies_in in [*((m, True) for m in inside), *((m, False) for m in outside)]:
        encoded = encode_key([from_scalar(pa.scalar(moment, kind)), *more], parsed)
        assert span.contains(encoded) == lies_in, moment


def test_intervals_that_follow_each_other_share_no_key_and_leave_none_out() -> None:
    for key in ("t", "t:desc"):
        parsed = PoolKey.parse(key)
        day = [BEGIN + dt.timedelta(days=n) for n in range(3)]
        one, two = (
            interval_range(a, b, key=parsed, key_class="number")
            for a, b in ((day[0], day[1]), (day[1], day[2]))
        )
        assert (one.high == two.low) if key == "t" else (two.high == one.low)


@pytest.mark.parametrize(
    ("key_class", "begin", "said"),
    [
        ("date", BEGIN + SECOND, "must begin and end at midnight"),
        ("boolean", BEGIN, "the key field 't' is a boolean"),
        ("number", END, "is empty"),
    ],
)
def test_what_cannot_be_an_interval_is_said(key_class: str, begin: dt.datetime, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        interval_range(begin, END, key=PoolKey.parse("t"), key_class=key_class)


def test_the_place_of_an_interval_is_that_of_its_beginning_in_its_own_zone() -> None:
    """A day in Tokyo begins at 15:00 UTC of the day before."""
    tokyo = dt.datetime(2013, 2, 1, tzinfo=dt.timezone(dt.timedelta(hours=9)))
    assert path_of("/landing/%Y/%m-%d/%H.csv", tokyo) == "/landing/2013/02-01/00.csv"
    assert path_of("/landing/%Y/%m-%d/%H.csv", tokyo.astimezone(dt.UTC)) == "/landing/2013/01-31/15.csv"
    with pytest.raises(InvalidInput, match="name the interval in it"):
        path_of("/landing/all.csv", BEGIN)


@pytest.mark.parametrize("hours", [-11, -5, 0, 9, 14])
def test_a_key_of_dates_has_the_days_of_the_intervals_zone(hours: int) -> None:
    key, zone = PoolKey.parse("t"), dt.timezone(dt.timedelta(hours=hours))
    begin = dt.datetime(2013, 2, 1, tzinfo=zone)
    span = interval_range(begin, begin + dt.timedelta(days=1), key=key, key_class="date")
    days = [dt.date(2013, 1, 31), dt.date(2013, 2, 1), dt.date(2013, 2, 2)]
    assert [span.contains(encode_key([day], key)) for day in days] == [False, True, False]
