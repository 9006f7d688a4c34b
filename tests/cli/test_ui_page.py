"""`lake ui` in a real browser: the pages of the view, without Airflow and without a complaint.

With LAKE_VIEW_PICTURES=FOLDER the picture of README.md is taken anew, of the flights that the demo loads:

    LAKE_VIEW_PICTURES=docs LAKE_TEST_BROWSER=1 .venv/bin/python -m pytest tests/cli/test_ui_page.py -q
"""

from __future__ import annotations

import datetime as dt
import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pytest

from lake_core.keys import KeyRange
from lake_core.keys.encoding import encode_key
from local import flights
from log_lake.agents.ingest.parking import park
from log_lake.lake import Lake
from log_lake.loading.source_files import SourceFile
from log_lake.rewriting.compaction import compact
from tests.support.servers.chromium import chromium, watched
from tests.support.ui import Served, serving

pytestmark = pytest.mark.slow

WITHIN_MS = 120_000
DAYS = 40
POOL = "<svg-onload=document.title=`owned`><img-src=x>&amp;"
"""A name that a pool may have: as HTML it would be a script."""
LARGEST = 150_000
"""Bytes of the picture in README.md, at most."""

Open = Callable[..., Any]


def filled(folder: Path) -> None:
    """The first days of the flights of 2013, a load a day; some deleted, some merged, a file parked."""
    lake = Lake.create(str(folder), author="ada")
    days = flights.by_day(flights.read_flights())
    pool = lake.create_pool("flights", key=flights.KEY, settings={"ingest.source": "/data/incoming"})
    nulls = pc.ConvertOptions(null_values=[flights.NULL], strings_can_be_null=True)
    for day in list(days)[:DAYS]:
        table = pc.read_csv(io.BytesIO(days[day]), convert_options=nulls)
        pool.branch().append(table, message=f"flights of {day}")
    compact(pool.branch(), pool.at().references[:12], message="compaction")
    pool.branch().delete(where="carrier = 'UA' and month = 1", reason="asked for by mail")
    pool.create_branch("trial")
    park(pool, SourceFile("/data/incoming/notes.txt", 120, "", 0.0), why="no CSV", now=1_700_000_000.0)
    lake.create_pool("airports", key="faa").branch().append(
        pa.table({"faa": ["EWR", "JFK"], "since": [dt.date(1928, 10, 1)] * 2})
    )
    lake.create_pool(POOL, key="k").branch().append(pa.table({"k": [POOL]}), message=POOL)
    lake.create_pool("empty", key="k")
    transaction = lake.transaction(message=POOL)
    for name in ("airports", "empty"):
        transaction.pool(name)
    covered = lake.create_pool("days", key="day", settings={"intervals.since": "2026-01-01"})
    for first in (dt.date(2026, 1, 1), dt.date(2026, 2, 10)):
        span = KeyRange(
            *(encode_key([first + number * dt.timedelta(days=1)], covered.config.key) for number in (0, 30))
        )
        covered.branch().replace_with(pa.table({"day": [first]}), key_range=span)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("ui") / "my-lake"
    filled(folder)
    with serving(folder) as served:
        yield served


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def open_page(served: Served, browser: Any) -> Iterator[Open]:
    """Opens the address that was printed; no page may complain, and no text may run as a script."""
    with watched(browser, within_ms=WITHIN_MS) as new_page:

        def open_page(*, width: int = 1280, height: int = 800, scheme: str = "light") -> Any:
            page = new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            page.goto(served.address)
            page.wait_for_selector("#pools tbody tr:nth-child(4)")
            return page

        yield open_page


@pytest.mark.parametrize(
    ("scheme", "width"), [("light", 1200), ("dark", 1280), ("light", 420), ("dark", 420)]
)
def test_every_page_is_shown_at_every_width_without_a_complaint(
    open_page: Open, scheme: str, width: int
) -> None:
    page = open_page(scheme=scheme, width=width)
    assert page.locator("#agents button").count() == 0, "there is no Airflow that could start one"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("button", name="flights", exact=True).click()
    page.wait_for_selector("#records table")
    assert "1 file cannot be loaded, and is skipped" in page.inner_text("#health")
    assert "/data/incoming/notes.txt" in page.inner_text("#parked")
    assert page.locator("#records tbody tr").count() == 20
    page.click("#settings summary")
    narrowest = "Math.min(...[...document.querySelectorAll('.settings td')].map((cell) => cell.offsetWidth))"
    assert page.evaluate(narrowest) > 100, "no column holds one word a line"
    for tab, there in (("Geometry", "canvas[data-boxes]"), ("Log", "#log circle"), ("Jobs", "main p.quiet")):
        page.get_by_role("button", name=tab, exact=True).click()
        page.wait_for_selector(there)
        assert page.inner_text("main").strip(), "no pane is blank"
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate("history.go(-1)")
    page.wait_for_selector("#log circle")
    assert "deleted records where carrier = 'UA' and month = 1" in page.inner_text("#log")


def test_open_transactions_are_listed_with_their_author_and_state(open_page: Open) -> None:
    page = open_page()
    page.get_by_role("button", name="Transactions", exact=True).click()
    page.wait_for_selector("#transactions tbody tr")
    said = page.inner_text("#transactions tbody")
    assert all(text in said for text in ("open", "ada", POOL, "airports, empty"))
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 420)])
def test_the_first_page_says_whether_all_is_well(open_page: Open, scheme: str, width: int) -> None:
    page = open_page(scheme=scheme, width=width)
    page.wait_for_selector("#verdict .verdict")
    assert "1 needs attention" in page.inner_text("#verdict")
    page.locator("#verdict").get_by_role("button", name="Health").click()
    page.wait_for_selector("#findings li")
    first = page.locator("#findings li").first.inner_text()
    assert "1 file cannot be loaded, and is skipped" in first
    assert "lake parked flights" in first
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.locator("#findings").get_by_role("button", name="flights", exact=True).click()
    page.wait_for_selector("#records table")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 420)])
def test_the_calendar_shows_which_days_are_held(open_page: Open, scheme: str, width: int) -> None:
    page = open_page(scheme=scheme, width=width)
    page.get_by_role("button", name="days", exact=True).click()
    page.get_by_role("button", name="Coverage", exact=True).click()
    page.wait_for_selector("#calendar li")
    rows = page.locator("#calendar .cells")
    said = [rows.nth(at).get_attribute("aria-label") for at in range(2)]
    assert said == ["2026-01: 30 held, 1 not held", "2026-02: 19 held, 9 not held"]
    assert page.locator("#calendar li:first-child .held").count() == 30
    assert "Complete until 2026-01-31." in page.inner_text("main")
    assert "--from-date 2026-01-31T00:00:00+00:00 --to-date 2026-02-09T23:59:59+00:00" in page.inner_text(
        "pre"
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if folder := os.environ.get("LAKE_VIEW_PICTURES"):
        page.screenshot(path=f"{folder}/coverage-{scheme}-{width}.png")


def test_a_hostile_pool_is_text(open_page: Open) -> None:
    page = open_page()
    page.get_by_role("button", name=POOL).click()
    page.wait_for_selector("#records table")
    assert page.inner_text("h2") == POOL
    assert page.locator("#records td").all_inner_texts() == [POOL]
    assert page.locator("main img").count() == 0


def test_an_empty_pool_says_what_is_not_there(open_page: Open) -> None:
    page = open_page()
    page.get_by_role("button", name="empty", exact=True).click()
    page.get_by_text("No records in this pool.").wait_for()
    page.get_by_text("No fields yet").wait_for()


def test_a_server_that_has_ended_is_named(open_page: Open, tmp_path: Path, browser: Any) -> None:
    filled_lake = Lake.create(str(tmp_path / "lake"))
    filled_lake.create_pool("logs", key="k")
    context = browser.new_context()
    context.set_default_timeout(WITHIN_MS)
    page = context.new_page()
    with serving(tmp_path / "lake") as ended:
        page.goto(ended.address)
        page.wait_for_selector("#pools tbody tr")
    page.get_by_role("button", name="logs").click()
    page.get_by_text("the server cannot be reached; is it still running?").wait_for()
    context.close()


def test_the_picture_of_the_readme_is_small(open_page: Open, tmp_path: Path) -> None:
    page = open_page(width=1000, height=640)
    page.get_by_role("button", name="flights", exact=True).click()
    page.wait_for_selector("#records table")
    folder = Path(os.environ.get("LAKE_VIEW_PICTURES") or tmp_path)
    page.screenshot(path=str(folder / "lake-ui.png"))
    assert (folder / "lake-ui.png").stat().st_size < LARGEST
