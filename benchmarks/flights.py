"""The flights of the demo as a large pool, through Airflow: from a bulk import to retention.

The flights of 2013 are repeated with shifted years.  Half of the files are imported in bulk; the agent splits
the pool; the rest comes in ten batches, which compaction merges range by range. Then March 2014 is deleted, the
tombstones agent applies the delete, and the retention agent deletes objects that are not needed any more. After
each step the pool is read, and the number of its records is checked.

FLIGHTS: records.  FLIGHTS_FILES: files.  FLIGHTS_PICTURES: a folder for pictures of the web view in Airflow.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from benchmarks import data
from benchmarks.airflow_live import finished, whole_airflow
from benchmarks.measure import Measure
from local import flights

RECORDS = int(os.environ.get("FLIGHTS", "20000000"))
FILES = int(os.environ.get("FLIGHTS_FILES", "500"))
BATCHES, RANGES = 10, 16
POOL = "flights"
PICTURES = ("split", "last of ten batches", "compaction by ranges")
MARCH = ("2014-03-01T00:00:00Z", "2014-04-01T00:00:00Z")


def year_of_flights() -> pa.Table:
    """Returns the flights of 2013, in order of time."""
    text = pyarrow.csv.read_csv(
        io.BytesIO(flights.read_flights()),
        convert_options=pyarrow.csv.ConvertOptions(
            null_values=["NA"], strings_can_be_null=True, column_types={"time_hour": pa.timestamp("s", "UTC")}
        ),
    )
    return text.sort_by("time_hour")


def make_files(folder: Path) -> list[Path]:
    """Makes the files, each with the flights of some days. Returns them in the order in which they arrive; every
    17th arrives too late."""
    folder.mkdir(parents=True)
    year, made = year_of_flights(), list[Path]()
    each = RECORDS // FILES
    for number in range(FILES):
        parts, first = list[pa.Table](), number * each
        while first < (number + 1) * each:
            shift, place = divmod(first, year.num_rows)
            part = year.slice(place, min(year.num_rows - place, (number + 1) * each - first))
            parts.append(_shifted(part, shift))
            first += part.num_rows
        made.append(folder / f"{number:03d}.parquet")
        pq.write_table(pa.concat_tables(parts), made[-1], compression="zstd")
    return [path for n, path in enumerate(made) if n % 17] + made[::17]


def _shifted(part: pa.Table, years: int) -> pa.Table:
    """Returns the flights `years` years of 365 days later, so that no day of March is doubled."""
    time = pc.add(part["time_hour"], pa.scalar(years * 365 * 86_400, pa.duration("s")))
    part = part.set_column(part.schema.get_field_index("time_hour"), "time_hour", time)
    year = pc.year(time)
    return part.set_column(part.schema.get_field_index("year"), "year", year)


def measures() -> Iterator[Measure]:
    """Yields a line for each step. Its seconds go from the request for a run to the run's end, so they include
    Airflow's own share."""
    from log_lake.lake import Lake

    path, landing = data.fresh("flights"), Path(data.fresh("flights-landing"))
    waiting = make_files(Path(data.fresh("flights-files")))
    landing.mkdir(parents=True)
    settings = {
        "ingest.source": str(landing),
        "ingest.batch_age": "0s",
        "range.records": str(RECORDS // RANGES),
        "compact.target_size": "8MiB",
        "history.keep": "0s",
        "vacuum.grace": "0s",
    }
    pool = Lake.create(path).create_pool(POOL, key=flights.KEY, settings=settings)
    present = 0

    def arrive(count: int) -> None:
        nonlocal present
        for file in waiting[:count]:
            present += pq.read_metadata(file).num_rows
            file.rename(landing / file.name)
        del waiting[:count]

    def step(name: str, dag: str, **conf: Any) -> Measure:
        begun, tasks = finished(services, dag, {"pools": [POOL], **conf})
        seconds = max(_moment(task["end_date"]) for task in tasks.values() if task["end_date"]) - begun
        view = pool.at()
        found = sum(table.num_rows for table in view.scan(columns=["flight"]))
        if found != present:
            raise RuntimeError(f"{name}: {found:,} records are there, {present:,} must be")
        largest = max(one.depth for one in pool.ranges())
        note = f"{len(view.points) + 1} ranges, {len(view.references)} objects, depth {largest}"
        picture(name)
        return Measure(name, seconds, present, 0, note, begins=name == "bulk import")

    def picture(name: str) -> None:
        folder = os.environ.get("FLIGHTS_PICTURES")
        if folder and name in PICTURES:
            take_picture(path, Path(folder) / f"flights-{name.replace(' ', '-')}.png")

    with whole_airflow(path) as services:
        arrive(FILES // 2)
        yield step("bulk import", "lake_ingest", wait=False, bulk=True)
        yield step("split", "lake_split")
        for _ in range(BATCHES - 1):
            arrive(FILES // 2 // BATCHES)
            finished(services, "lake_ingest", {"pools": [POOL], "wait": False})
        arrive(len(waiting))
        yield step("last of ten batches", "lake_ingest", wait=False)
        yield step("split again", "lake_split")
        yield step("compaction by ranges", "lake_compact")
        march = pool.at().key_range(low=MARCH[0], high=MARCH[1])
        present -= sum(table.num_rows for table in pool.at().scan(key_range=march, columns=["flight"]))
        pool.branch().delete(key_range=march, reason="a month is deleted")
        yield step("delete of a month applied", "lake_tombstones")
        yield step("retention", "lake_retention")


def _moment(text: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(text).timestamp()


def take_picture(lake: str, file: Path) -> None:
    """Saves a picture of the geometry of the pool, as the web view in Airflow draws it."""
    import json

    from tests.support.servers.airflow_api import api_server
    from tests.support.servers.chromium import chromium

    folder = Path(data.fresh("flights-view"))
    folder.mkdir(parents=True)
    environ = {
        "AIRFLOW_CONN_BIG": json.dumps({"conn_type": "lake", "host": lake}),
        "LAKE_VIEW_LAKES": "big",
    }
    with api_server(folder, environ=environ) as server, chromium() as browser:
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        context.add_cookies([{"name": "_token", "value": server.token("viewer"), "url": server.url}])
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.goto(f"{server.url}/lake/#geometry/big/{POOL}")
        page.locator("canvas[data-boxes]").first.wait_for()
        page.screenshot(path=str(file))
        context.close()
