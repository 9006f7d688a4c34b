"""`lake coverage` and the table POOL:coverage, as a user types them."""

from __future__ import annotations

import pytest

from tests.support.command import INVALID_INPUT, Command

UNTIL = ("--until", "2013-01-08")


def day(number: int) -> str:
    return f"2013-01-{number:02}"


def replace(lake: Command, first: int, last: int, *, pool: str = "p") -> None:
    """The days from `first` to below `last` are replaced by a record each."""
    records = [{"day": f"{day(number)}T06:00:00Z", "n": number} for number in range(first, last)]
    lake("replace", pool, lake.file(f"{first}.ndjson", records), "--from", day(first), "--to", day(last))


@pytest.fixture
def pool(lake: Command) -> Command:
    """Days 1, 2 and 5 of January 2013 are held; until the 8th, days 3, 4, 6 and 7 are not."""
    lake.pool("p", key="day", types={"day": "timestamp"})
    replace(lake, 1, 2)
    replace(lake, 2, 3)
    replace(lake, 5, 6)
    return lake


def test_it_prints_what_is_held_and_what_is_not(pool: Command) -> None:
    lines = pool("coverage", "p", *UNTIL).out.splitlines()
    assert [line.split()[:4] for line in lines[1:-1]] == [
        ["2013-01-01T00:00:00Z", "2013-01-03T00:00:00Z", "held", "2"],
        ["2013-01-03T00:00:00Z", "2013-01-05T00:00:00Z", "gap", "2"],
        ["2013-01-05T00:00:00Z", "2013-01-06T00:00:00Z", "held", "1"],
        ["2013-01-06T00:00:00Z", "2013-01-08T00:00:00Z", "gap", "2"],
    ]
    assert lines[-1] == "p: 3 of 7 days held; complete until 2013-01-03T00:00:00Z"


def test_gaps_are_late_after_a_time_that_the_pool_says(pool: Command) -> None:
    pool("set", "p", "intervals.late=6h")
    gaps = pool("coverage", "p", *UNTIL, "--gaps", "--json").records
    assert [(one["begin"][:10], one["state"], one["due"]) for one in gaps][:2] == [
        (day(3), "late", "2013-01-04T06:00:00Z"),
        (day(4), "late", "2013-01-05T06:00:00Z"),
    ]
    assert len(gaps) == 4
    assert "; complete" in pool("coverage", "p", *UNTIL, "--gaps").out
    pool("set", "p", "intervals.late=800000h")
    assert {one["state"] for one in pool("coverage", "p", *UNTIL, "--gaps", "--json").records} == {"gap"}


def test_a_delete_of_an_interval_makes_a_gap_and_its_revert_closes_it(pool: Command) -> None:
    pool("delete", "p", "--from", day(1), "--to", day(2))
    since = ("--since", day(1))
    assert "the first is not held" in pool("coverage", "p", *since, *UNTIL).out
    pool("revert", "p", "4")
    assert "complete until 2013-01-03" in pool("coverage", "p", *since, *UNTIL).out


def test_it_prints_the_backfills_of_exactly_the_gaps(pool: Command) -> None:
    printed = pool("coverage", "p", *UNTIL, "--gaps", "--backfill")
    assert printed.out.splitlines() == [
        f"airflow backfill create --dag-id lake_intervals --from-date {begin} --to-date {end} "
        "--reprocess-behavior completed"
        for begin, end in (
            ("2013-01-03T00:00:00+00:00", "2013-01-04T23:59:59+00:00"),
            ("2013-01-06T00:00:00+00:00", "2013-01-07T23:59:59+00:00"),
        )
    ]
    assert "one backfill of a DAG at a time" in printed.err
    replace(pool, 3, 5)
    until = ("--until", day(6))
    assert pool("coverage", "p", *until, "--backfill").out == ""


def test_a_far_low_bound_is_told(pool: Command) -> None:
    pool("replace", "p", pool.file("old.ndjson", []), "--from", "1700-01-01", "--to", "1701-01-01")
    assert "; those before 1739-03-27T" in pool("coverage", "p", *UNTIL, "--gaps").out


def test_it_is_a_table_in_sql(pool: Command) -> None:
    where = """WHERE "end" <= '2013-01-08' GROUP BY ALL ORDER BY state"""
    rows = pool.query(f'SELECT state, count(*) AS n FROM "p:coverage" {where}')
    assert rows == [{"state": "gap", "n": 4}, {"state": "held", "n": 3}]


def test_ranges_of_keys_that_are_no_times_are_listed(lake: Command) -> None:
    lake.pool("q", key="k")
    lake("set", "q", "intervals.every=key")
    lake("replace", "q", lake.file("a.ndjson", [{"k": "b"}]), "--from", "a", "--to", "c")
    (row,) = lake("coverage", "q", "--json").records
    assert (row["low"], row["high"], row["state"], row["version"]) == ('"a"', '"c"', "held", 1)
    assert lake.query('SELECT low, "begin" FROM "q:coverage"') == [{"low": '"a"'}]
    assert "gaps cannot be told" in lake.fails(INVALID_INPUT, "coverage", "q", "--gaps")


def test_a_pool_without_replaces_says_so(lake: Command) -> None:
    lake.pool("p", key="day", types={"day": "timestamp"})
    assert "no interval is held; say since when" in lake("coverage", "p").out
    lake("set", "p", "intervals.since=2013-01-01")
    assert (
        lake("coverage", "p", "--until", day(4)).out.splitlines()[-1]
        == "p: 0 of 3 days held; the first is not held"
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--since", "now"), "--since 'now': use a day or a time of ISO 8601"),
        (("--since", "0001-01-01"), "--since '0001-01-01': use a year from 2 to 9799"),
        (("--since", "0002-01-01", "--until", "2013-01-01"), "more than 100,000 intervals"),
    ],
)
def test_bad_times_are_refused(pool: Command, words: tuple[str, ...], says: str) -> None:
    assert says in pool.fails(INVALID_INPUT, "coverage", "p", *words)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("intervals.zone=Mars", "use the name of a time zone"),
        ("intervals.every=fortnight", "use hour, day, week, month or key"),
        ("intervals.since=soon", "use a day or a time of ISO 8601"),
        ("intervals.late=1w", "use a duration"),
    ],
)
def test_bad_settings_are_refused(pool: Command, setting: str, says: str) -> None:
    assert says in pool.fails(INVALID_INPUT, "set", "p", setting)
