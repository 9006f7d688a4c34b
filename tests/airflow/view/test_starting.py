"""The page in a real browser: what starts agents, what is asked before, and what a page of another site can do."""

from __future__ import annotations

import datetime as dt
import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from log_lake.coverage.key_ranges import interval_range
from tests.airflow.view.conftest import SHOWN, Shown
from tests.airflow.view.pages import WITHIN_MS, Open, picture, shows

pytestmark = pytest.mark.airflow


def test_a_viewer_has_buttons_that_do_nothing(open_page: Open) -> None:
    page = open_page(role="viewer")
    button = page.get_by_role("button", name="compact")
    button.wait_for()
    assert button.is_disabled()
    assert button.get_attribute("title") == "you may not start lake_compact"


def test_a_user_starts_an_agent_as_themselves(open_page: Open, shown: Shown) -> None:
    page = open_page(f"geometry/{SHOWN}/flights", role="user")
    page.get_by_role("button", name="tombstones").click()
    page.check("#dry")
    picture(page, "web-view-start")
    page.click("#start")
    shows(page, "#note", "queued")
    runs = shown.server.request("/api/v2/dags/lake_tombstones/dagRuns?order_by=-run_after", role="user").json
    run = runs["dag_runs"][0]
    assert run["conf"] == {"lake": SHOWN, "pools": ["flights"], "dry_run": True}
    assert run["triggering_user_name"] == "user"
    assert run["dag_run_id"] in page.inner_text("#note")


def test_retention_begins_with_a_dry_run_and_asks_for_the_name_without_one(open_page: Open) -> None:
    page = open_page(f"pool/{SHOWN}/flights", role="user")
    page.get_by_role("button", name="retention").click()
    assert page.is_checked("#dry")
    shows(page, "#about", "removed objects")
    assert page.is_enabled("#start")
    page.uncheck("#dry")
    assert page.is_disabled("#start")
    page.fill("#confirm", "flight")
    assert page.is_disabled("#start")
    page.fill("#confirm", "flights")
    assert page.is_enabled("#start")


def test_an_erasure_is_counted_tried_and_confirmed(open_page: Open, shown: Shown) -> None:
    page = open_page(f"pool/{SHOWN}/flights", role="user")
    addresses: list[str] = []
    page.on("request", lambda request: addresses.append(request.url))
    page.get_by_role("button", name="erasure…").click()
    assert page.is_checked("#dry")
    assert page.is_disabled("#start")
    page.fill("#erase-where", "carrier = 'AA'")
    assert page.is_disabled("#start"), "nothing is counted yet"
    page.click("#count")
    shows(page, "#found", "records match now")
    assert page.is_enabled("#start"), "a dry run needs no confirmation"
    page.fill("#erase-from", "0")
    assert page.is_disabled("#start"), "other records than those that were counted"
    page.fill("#erase-to", "10")
    page.click("#count")
    shows(page, "#found", "5 records match now")
    page.uncheck("#dry")
    assert page.is_disabled("#start")
    page.fill("#confirm", "flights")
    assert page.is_enabled("#start")
    page.check("#dry")
    picture(page, "web-view-erasure")
    page.click("#start")
    shows(page, "#note", "queued")
    runs = shown.server.request("/api/v2/dags/lake_erasure/dagRuns?order_by=-run_after", role="user").json
    conf = {
        "lake": SHOWN,
        "pools": ["flights"],
        "where": "carrier = 'AA'",
        "from": "0",
        "to": "10",
        "dry_run": True,
    }
    assert runs["dag_runs"][0]["conf"] == conf
    assert any(address.endswith("/data/matching") for address in addresses), "servers log what follows a ?"
    assert not any("carrier" in address for address in addresses)


@pytest.fixture
def gap(shown: Shown) -> Iterator[str]:
    """A pool that holds one of two days, and its name."""
    since = {"type.day": "timestamp", "intervals.since": "2026-01-01", "intervals.source": "/in/%Y-%m-%d"}
    pool = shown.lake.create_pool("gap", key="day", settings=since)
    first = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    held = interval_range(
        first + dt.timedelta(days=2),
        first + dt.timedelta(days=9_999),
        key=pool.config.key,
        key_class="timestamp with zone",
    )
    pool.branch().replace([], key_range=held)
    yield "gap"
    shown.lake.drop_pool("gap")


def test_a_gap_is_loaded_by_who_may_start_its_dag(open_page: Open, shown: Shown, gap: str) -> None:
    path, name = "/api/v2/backfills?dag_id=lake_intervals", "Load 2026-01-01T00:00 to 2026-01-02T23:59"
    days = {"from_date": "2026-01-01T00:00:00Z", "to_date": "2026-01-02T00:00:00Z"}
    body = json.dumps({"dag_id": "lake_intervals", **days}).encode()
    foreign = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    for role, content, more, refused in (
        ("viewer", "application/json", {}, (403,)),
        ("admin", "text/plain", foreign, (400, 403, 415, 422)),  # what any page may send
    ):
        headers = {"Content-Type": content, **more}
        done = shown.server.request(
            "/api/v2/backfills", role=role, method="POST", body=body, headers=headers, cookie=True
        )
        assert done.status in refused
    assert shown.server.request(path, role="admin").json["total_entries"] == 0
    page = open_page(f"coverage/{SHOWN}/{gap}", role="user")
    page.get_by_role("button", name=name).click()
    shows(page, "#note", "has begun")
    picture(page, "web-view-gap")
    (made,) = shown.server.request(path, role="admin").json["backfills"]
    assert made["dag_run_conf"] == {"lake": SHOWN, "pools": [gap]}
    assert (made["from_date"], made["to_date"]) == ("2026-01-01T00:00:00Z", "2026-01-02T23:59:59Z")
    assert page.get_by_role("button", name=name).is_disabled(), "it has begun"


@contextmanager
def foreign_page(html: str) -> Iterator[str]:
    """A page of another origin: the address of a server that answers everything with it."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://localhost:{server.server_address[1]}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_page_of_another_site_reads_nothing_and_starts_nothing(browser: Any, shown: Shown) -> None:
    """The browser of an admin who is logged in opens a page that tries."""
    url, dag = shown.server.url, "/api/v2/dags/lake_retention/dagRuns"
    body = '{"logical_date":null,"conf":{}}'
    attack = f"""<body><script>
      const ask = (path, how) => fetch("{url}" + path, {{credentials: "include", ...how}}).then((r) => r.text());
      const tries = [
        ask("/lake/data/about"),
        ask("{dag}", {{method: "POST", mode: "no-cors", body: '{body}'}}),
        ask("{dag}", {{method: "POST", body: '{body}', headers: {{"Content-Type": "application/json"}}}}),
        new Promise((done) => {{
          const frame = document.createElement("iframe");
          frame.onload = () => done(frame.contentDocument?.body.textContent ?? "closed");
          frame.src = "{url}/lake/";
          document.body.append(frame);
        }}),
      ];
      Promise.allSettled(tries).then((all) => {{ window.results = all.map((one) => one.value ?? "refused"); }});
    </script></body>"""
    before = shown.server.request(dag, role="admin").json["total_entries"]
    context = browser.new_context()
    context.set_default_timeout(WITHIN_MS)
    context.add_cookies([{"name": "_token", "value": shown.server.token("admin"), "url": url}])
    page = context.new_page()
    with foreign_page(attack) as address:
        page.goto(address)
        page.wait_for_function("window.results")
        results = page.evaluate("window.results")
    context.close()
    assert SHOWN not in "".join(result or "" for result in results)
    assert shown.server.request(dag, role="admin").json["total_entries"] == before


def test_the_form_of_an_agent_can_be_sent_as_it_opens(shown: Shown, browser: Any) -> None:
    """Airflow's form takes an empty field for a missing one, unless its schema allows null."""
    context = browser.new_context(viewport={"width": 900, "height": 1380}, color_scheme="light")
    context.set_default_timeout(WITHIN_MS)
    context.add_cookies([{"name": "_token", "value": shown.server.token("user"), "url": shown.server.url}])
    page = context.new_page()
    for agent in ("intervals", "erasure", "apply", "compact"):
        page.goto(f"{shown.server.url}/dags/lake_{agent}")
        page.get_by_role("button", name="Trigger").first.click()
        form = page.get_by_role("dialog")
        form.get_by_text("Log the ").first.wait_for()  # the description of "Dry run"
        send = form.get_by_role("button", name="Trigger", exact=True)
        assert send.is_enabled(), agent
    picture(form, "airflow-form")
    send.click()
    form.wait_for(state="detached")
    runs = shown.server.request("/api/v2/dags/lake_compact/dagRuns?order_by=-run_after", role="user").json
    conf = runs["dag_runs"][0]["conf"]
    assert not any(conf.values()), "the run is asked for nothing but all pools"
    context.close()
