"""`upkeep.window` on the days on which clocks change, compared with pendulum's calendar."""

from __future__ import annotations

import pytest

from log_lake.agents.upkeep_hours import upkeep_hours

pendulum = pytest.importorskip("pendulum")


@pytest.mark.parametrize(
    ("zone", "day"),
    [
        ("Europe/Berlin", (2026, 3, 29)),
        ("Europe/Berlin", (2026, 10, 25)),
        ("America/New_York", (2026, 3, 8)),
        ("Australia/Lord_Howe", (2026, 4, 5)),  # half an hour
        ("America/Havana", (2026, 3, 8)),  # a day without midnight
    ],
)
@pytest.mark.parametrize("window", ["22:00-02:30", "02:00-03:00", "00:00-01:00,23:45-24:00"])
def test_a_window_goes_by_the_clock_of_the_place(zone: str, day: tuple[int, int, int], window: str) -> None:
    hours = upkeep_hours(f"{window} {zone}")
    assert hours is not None
    begin = pendulum.datetime(*day, tz="UTC").subtract(hours=24)
    spans = [part.split("-") for part in window.split(",")]
    for quarter in range(4 * 72):
        moment = begin.add(minutes=15 * quarter)
        shown = moment.in_timezone(zone).format("HH:mm")
        expected = any(a <= shown < b if a < b else shown >= a or shown < b for a, b in spans)
        assert hours.is_open(moment.timestamp()) == expected, (shown, moment)
