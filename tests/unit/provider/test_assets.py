"""A pool as an asset: its URI, and the partitions of an interval."""

from __future__ import annotations

import datetime as dt
from urllib.parse import urlsplit

import msgspec
import pytest

from airflow_lake.assets import (
    MAX_PARTITIONS,
    PoolEvent,
    asset_uri,
    check_partitions,
    check_uri,
    is_other_pool,
    lake_asset,
    partition_keys,
)
from airflow_lake.interval import in_zone
from lake_core.errors import InvalidInput
from log_lake.lake.results import LoadResult


@pytest.mark.parametrize(
    ("pool", "lake", "branch", "uri"),
    [
        ("flights", "", "main", "lake://lake_default/flights"),
        ("flights", "team_a", "main", "lake://team_a/flights"),
        ("flights", "team_a", "dev/x", "lake://team_a/flights?branch=dev%2Fx"),
        ("flights", "s3://bucket/lake/", "main", "lake://s3/bucket/lake/flights"),
        ("flights", "/data/lake", "main", "lake://file/data/lake/flights"),
        ("flights", "file:///data/lake", "main", "lake://file/data/lake/flights"),
        ("logs.$nokey", "", "main", "lake://lake_default/logs.$nokey"),
        ("a b", "", "main", "lake://lake_default/a%20b"),
    ],
)
def test_a_pool_has_one_uri(pool: str, lake: str, branch: str, uri: str) -> None:
    assert asset_uri(pool, lake=lake, branch=branch) == uri
    assert check_uri(urlsplit(uri)).geturl() == uri, "Airflow keeps it as it is"


@pytest.mark.parametrize(
    ("pool", "lake", "branch", "is_other"),
    [
        ("p", "c", "dev", False),
        ("p.$rejected", "c", "dev", False),
        ("p", "c", "main", True),
        ("p2", "c", "dev", True),
        ("q", "c", "dev", True),
        ("q", "another", "dev", False),
    ],
)
def test_an_asset_is_of_another_pool_if_its_lake_has_the_same_name(
    pool: str, lake: str, branch: str, is_other: bool
) -> None:
    own = lake_asset("p", lake="c", branch="dev")
    assert is_other_pool(lake_asset(pool, lake=lake, branch=branch), own) is is_other


@pytest.mark.parametrize("uri", ["lake://lake_default", "lake://lake_default/", "lake:///flights"])
def test_a_uri_without_a_lake_or_a_pool_is_refused(uri: str) -> None:
    with pytest.raises(ValueError, match="names no pool; write lake://LAKE/POOL"):
        check_uri(urlsplit(uri))


def at(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("begin", "end", "keys"),
    [
        (
            "2026-01-30T00:00:00Z",
            "2026-02-02T00:00:00Z",
            ["2026-01-30T00:00:00", "2026-01-31T00:00:00", "2026-02-01T00:00:00"],
        ),
        ("2026-01-30T22:00:00Z", "2026-01-31T00:00:00Z", ["2026-01-30T22:00:00", "2026-01-30T23:00:00"]),
        ("2026-01-30T01:00:00+01:00", "2026-01-31T01:00:00+01:00", ["2026-01-30T00:00:00"]),
        ("2026-01-30T00:10:00Z", "2026-01-30T03:00:00Z", ["2026-01-30T00:10:00"]),
    ],
    ids=["days", "hours", "another zone", "neither"],
)
def test_an_interval_has_days_or_hours_for_partitions(begin: str, end: str, keys: list[str]) -> None:
    assert partition_keys(at(begin), at(end)) == keys


@pytest.mark.parametrize(
    ("begin", "end", "zone", "keys"),
    [
        (
            "2026-03-06T15:00Z",
            "2026-03-08T15:00Z",
            "Asia/Tokyo",
            ["2026-03-07T00:00:00", "2026-03-08T00:00:00"],
        ),
        ("2026-03-06T18:15Z", "2026-03-07T18:15Z", "Asia/Kathmandu", ["2026-03-07T00:00:00"]),
        ("2026-03-06T18:15Z", "2026-03-06T19:15Z", "Asia/Kathmandu", ["2026-03-07T00:00:00"]),
        ("2026-03-08T05:00Z", "2026-03-09T04:00Z", "America/New_York", ["2026-03-08T00:00:00"]),
        ("2026-11-01T04:00Z", "2026-11-02T05:00Z", "America/New_York", ["2026-11-01T00:00:00"]),
        ("2026-11-01T05:00Z", "2026-11-01T07:00Z", "America/New_York", ["2026-11-01T01:00:00"]),
        ("2026-04-23T22:00Z", "2026-04-24T21:00Z", "Africa/Cairo", ["2026-04-24T00:00:00"]),
        (
            "2026-03-07T00:00+09:00",
            "2026-03-07T02:00+09:00",
            "UTC",
            ["2026-03-06T15:00:00", "2026-03-06T16:00:00"],
        ),
    ],
    ids=[
        "days",
        "no whole hour from UTC",
        "such an hour",
        "a day of 23 hours",
        "a day of 25 hours",
        "an hour that the clock shows twice",
        "a day that begins at one o'clock",
        "bounds of another zone",
    ],
)
def test_partitions_are_those_of_the_schedules_zone(begin: str, end: str, zone: str, keys: list[str]) -> None:
    assert partition_keys(at(begin), at(end), zone=zone) == keys


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Kolkata", "America/New_York", "UTC"])
@pytest.mark.parametrize(
    ("begin", "end", "count"),
    [("2026-01-31", "2026-02-01", 1), ("2026-01-01", "2026-02-01", 31), ("2026-03-01", "2026-04-12", 42)],
    ids=["a day", "a month", "six weeks in which clocks are put forward"],
)
def test_days_of_utc_stay_days_in_every_zone(begin: str, end: str, count: int, zone: str) -> None:
    """A DAG writes begin="{{ ds }}", and a time without a zone is in UTC."""
    interval = at(f"{begin}T00:00Z"), at(f"{end}T00:00Z")
    keys = partition_keys(*interval, zone=zone)
    assert keys == partition_keys(*interval)
    assert (len(keys), keys[0]) == (count, f"{begin}T00:00:00")
    assert partition_keys(*in_zone(interval, zone), zone=zone) == keys, "as the replace operator asks"


@pytest.mark.parametrize(
    ("begin", "end", "keys"),
    [
        ("2026-01-31T00:00Z", "2026-01-31T02:00Z", ["2026-01-31T05:30:00", "2026-01-31T06:30:00"]),
        ("2026-01-31T18:30Z", "2026-01-31T20:30Z", ["2026-02-01T00:00:00", "2026-02-01T01:00:00"]),
        ("2026-01-31T00:10Z", "2026-02-28T00:10Z", ["2026-01-31T05:40:00"]),
    ],
    ids=["hours of UTC", "hours of the zone", "neither"],
)
def test_hours_of_utc_stay_hours_where_no_hour_of_the_zone_begins(
    begin: str, end: str, keys: list[str]
) -> None:
    assert partition_keys(at(begin), at(end), zone="Asia/Kolkata") == keys


def test_days_of_the_zone_go_before_days_of_utc() -> None:
    """London's winter has both; an interval that ends in its summer is of days of UTC."""
    begin, zone = at("2026-03-28T00:00Z"), "Europe/London"
    assert partition_keys(begin, at("2026-03-30T23:00Z"), zone=zone) == [
        "2026-03-28T00:00:00",
        "2026-03-29T00:00:00",
        "2026-03-30T00:00:00",
    ]
    assert len(partition_keys(begin, at("2026-03-31T00:00Z"), zone=zone)) == 3


def test_an_interval_of_no_partition_or_of_too_many_is_refused() -> None:
    begin = at("2026-01-30T00:00:00Z")
    with pytest.raises(InvalidInput, match=r"is empty.*CronDataIntervalTimetable"):
        partition_keys(begin, begin)
    assert len(partition_keys(begin, begin + dt.timedelta(days=MAX_PARTITIONS))) == MAX_PARTITIONS
    with pytest.raises(InvalidInput, match=r"has 1,001 partitions; at most 1,000"):
        partition_keys(begin, begin + dt.timedelta(days=MAX_PARTITIONS + 1))


def test_an_event_says_what_was_committed_in_plain_values() -> None:
    event = PoolEvent.of("p", LoadResult(3, "t", records=2, size=9, notes=("x",)))
    assert event is not None
    assert event.extra == {"version": 3, "transaction_id": "t", "records": 2, "objects": 0, "size": 9}
    assert msgspec.convert(event.values, PoolEvent) == event
    assert PoolEvent.of("p", LoadResult(None)) is None


def test_partitions_that_airflow_would_refuse_are_refused_before() -> None:
    check_partitions(["x" * 250, *map(str, range(MAX_PARTITIONS - 1))], task="t")
    with pytest.raises(InvalidInput, match=r"t: the partition 'x{40}\.\.\.' has 251 characters; at most 250"):
        check_partitions(["x" * 251], task="t")
    with pytest.raises(InvalidInput, match="1,001 partitions; at most 1,000"):
        check_partitions(["x"] * (MAX_PARTITIONS + 1), task="t")


@pytest.mark.parametrize(
    ("pool", "says"),
    [
        ("", "pool name"),
        ("flights@exp", r"name the branch apart: lake_asset\(POOL, branch=...\)"),
        ("flights, people", "a name cannot have"),
    ],
)
def test_an_asset_of_no_pool_is_refused_because_it_would_have_no_event(pool: str, says: str) -> None:
    pytest.importorskip("airflow")
    with pytest.raises(ValueError, match=says):
        lake_asset(pool)
    assert lake_asset("flights.$nokey", lake="prod").uri.endswith("/flights.$nokey")
