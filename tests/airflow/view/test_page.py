"""The page in a real browser: what is drawn, what hostile texts do, and what its buttons ask of Airflow.

With LAKE_VIEW_PICTURES=FOLDER the pictures of docs/web-view.md and docs/airflow.md are taken anew.
"""

from __future__ import annotations

import http.server
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.view.conftest import HOSTILE, HOSTILE_POOL, MANY, PAYLOAD, POOLS, SHOWN, Shown
from tests.support.servers.chromium import chromium

pytestmark = pytest.mark.airflow

WITHIN_MS = 600_000
"""How long the browser waits for what a test expects to see."""
DARK = "rgb(24, 24, 27)"
LIGHT = "rgb(255, 255, 255)"

Open = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def open_page(shown: Shown, browser: Any) -> Iterator[Open]:
    """Opens the view as a user of a role; no page may complain, and no text may run as a script."""
    complaints: list[str] = []
    contexts: list[Any] = []

    def open_page(hash: str = "", *, role: str = "viewer", path: str = "/lake/", **how: Any) -> Any:
        context = browser.new_context(viewport={"width": 1280, "height": 800}, **how)
        contexts.append(context)
        context.set_default_timeout(WITHIN_MS)
        context.add_cookies([{"name": "_token", "value": shown.server.token(role), "url": shown.server.url}])
        page = context.new_page()
        page.on("console", lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        page.goto(f"{shown.server.url}{path}{hash and '#' + hash}")
        return page

    yield open_page
    for context in contexts:
        assert all(page.title() != "owned" for page in context.pages)
        context.close()
    assert complaints == []


def picture(page: Any, name: str) -> None:
    folder = os.environ.get("LAKE_VIEW_PICTURES")
    if folder:
        page.screenshot(path=str(Path(folder) / f"{name}.png"))


def background(page: Any) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def shows(page: Any, where: str, text: str) -> None:
    """Waits until the element shows the text; the policy of the page forbids what `wait_for_function` does."""
    page.locator(where, has_text=text).wait_for()


def colours(page: Any) -> int:
    """How many colours the canvas shows."""
    return int(
        page.evaluate(
            """() => {
              const canvas = document.getElementById("geometry");
              const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
              return new Set(new Uint32Array(data.buffer)).size;
            }"""
        )
    )


def test_a_thousand_pools_are_a_table_that_is_sorted_and_filtered(open_page: Open) -> None:
    page = open_page()
    page.select_option("#lake", MANY)
    page.wait_for_selector(f"#pools tbody tr:nth-child({POOLS})")
    first = page.locator("#pools tbody tr:first-child td:first-child")
    assert first.inner_text() == "pool-0000"
    page.locator("#pools th button").first.click()
    assert first.inner_text() == "pool-0999"
    page.fill("input[type=search]", "0042")
    assert page.locator("#pools tbody tr").count() == 1
    assert "1 of 1,000 pools" in page.inner_text("main")


def test_the_link_of_a_task_opens_its_pool_and_its_transaction_at_the_version(open_page: Open) -> None:
    page = open_page(f"geometry/{SHOWN}/flights/3/main")
    shows(page, "#said", "version 3 of 21")
    page.evaluate(f"location.hash = 'log/{SHOWN}/flights/13/main'")
    shows(page, "#log details[open] summary", "13")
    assert page.locator("#log details").count() == 13, (
        "a link leads to the version; what is newer is left out"
    )
    page.get_by_role("button", name="Newest").click()
    page.wait_for_selector("#log li:nth-child(21)")
    page.evaluate("location.hash = 'geometry/lake_elsewhere/flights/3/main'")
    shows(page, ".bad", "the lake lake_elsewhere is not shown here")


def test_figures_are_sorted_as_numbers(open_page: Open) -> None:
    page = open_page()
    page.wait_for_selector("#pools tbody tr:nth-child(5)")
    page.get_by_role("button", name="Records").click()
    names = page.locator("#pools tbody tr td:first-child").all_inner_texts()
    assert names == ["clicks", "orders", "flights", "$jobs", "empty"]


def test_the_page_is_light_and_dark_as_the_system_says(open_page: Open) -> None:
    for scheme, ground in (("light", LIGHT), ("dark", DARK)):
        page = open_page(color_scheme=scheme)
        page.wait_for_selector("#pools")
        assert background(page) == ground
        picture(page, f"web-view-pools-{scheme}")


def test_the_theme_that_was_chosen_in_airflow_wins(open_page: Open) -> None:
    page = open_page(color_scheme="light")
    page.wait_for_selector("#pools")
    page.evaluate("localStorage.setItem('theme', 'dark')")
    page.reload()
    page.wait_for_selector("#pools")
    assert background(page) == DARK


def test_hostile_names_messages_and_keys_are_text(open_page: Open) -> None:
    page = open_page(f"pools/{HOSTILE}")
    page.get_by_role("button", name=HOSTILE_POOL).click()
    page.wait_for_selector("canvas[data-boxes]")
    assert page.inner_text("h2") == HOSTILE_POOL
    assert PAYLOAD in page.inner_text(".keys")
    page.hover("canvas", position={"x": 300, "y": 360})
    assert PAYLOAD in page.inner_text("#tip")
    page.get_by_role("button", name="Log").click()
    page.wait_for_selector("#log circle")
    page.locator("#log summary").first.click()
    assert PAYLOAD in page.inner_text("#log")
    assert page.locator("main img, main script, main svg svg").count() == 0
    page.get_by_role("button", name="Jobs").click()
    page.wait_for_selector("#jobs")
    assert PAYLOAD in page.inner_text("#jobs")
    assert page.locator("main img, main script, main svg").count() == 0


def test_the_geometry_draws_bars_tombstones_and_old_versions(open_page: Open) -> None:
    for scheme in ("light", "dark"):
        page = open_page(f"geometry/{SHOWN}/flights", color_scheme=scheme)
        page.wait_for_selector("canvas[data-boxes]")
        assert colours(page) > 20
        assert "version 21 of 21" in page.inner_text("#said")
        page.hover("canvas", position={"x": 200, "y": 376})
        assert "records" in page.inner_text("#tip")
        picture(page, f"web-view-geometry-{scheme}")
    tips = []
    for x in range(10, 1200, 40):
        page.hover("canvas", position={"x": x, "y": 6})
        tips.append(page.evaluate("document.getElementById('tip').textContent"))
    assert "delete of version 14" in tips
    assert "delete of version 15 where carrier = 'AA' and k >= 400 and k < 500" in tips
    page.fill("#version", "2")
    shows(page, "#said", "version 2 of 21")
    assert page.get_attribute("canvas", "data-boxes") == "2"


def test_a_sub_pool_and_a_branch_can_be_chosen(open_page: Open) -> None:
    page = open_page(f"geometry/{SHOWN}/flights")
    page.wait_for_selector("canvas[data-boxes]")
    page.select_option("main select", "dev")
    shows(page, "#figures", "10 references")
    page.get_by_role("button", name="flights.$nokey").click()
    shows(page, "h2", "flights.$nokey")
    assert page.inner_text("#figures").startswith("1 reference, 1 record, ")
    assert page.inner_text(".keys") == "", "the order of arrival has no keys"


def test_arrow_keys_go_through_the_bars_of_the_geometry(open_page: Open) -> None:
    page = open_page(f"geometry/{SHOWN}/clicks")
    page.wait_for_selector("canvas[data-boxes]")
    assert page.locator(".keys span").all_inner_texts() == ["0", "49999"], "each bound once"

    def drawn() -> str:  # not a screenshot: its round corners differ by a shade from time to time
        return str(page.evaluate("document.querySelector('canvas').toDataURL()"))

    page.locator("#agents button").first.wait_for()  # they come later, and may move what is below
    before = drawn()
    page.focus("canvas")
    for key in ("ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
        assert "50,000 records" in page.inner_text("#tip")
    assert drawn() != before, "the bar has a frame"
    page.keyboard.press("Tab")
    page.locator("#tip").wait_for(state="hidden")
    assert drawn() == before


def test_a_pool_without_records_says_so(open_page: Open) -> None:
    page = open_page(f"geometry/{SHOWN}/empty")
    page.get_by_text("No records in this version.").wait_for()
    page.evaluate(f"location.hash = 'geometry/{SHOWN}/clicks'")
    shows(page, "h2", "clicks")
    page.get_by_text("No records in this version.").wait_for(state="hidden")


def test_what_is_shown_belongs_to_the_lake_that_is_named_also_while_it_is_read(open_page: Open) -> None:
    page = open_page()
    page.wait_for_selector("#pools tbody tr:nth-child(5)")
    held: list[Any] = []
    page.route(f"**/data/pools?lake={MANY}", lambda route: held.append(route))
    page.select_option("#lake", MANY)
    page.get_by_text(f"Reading the lake {MANY}…").wait_for()
    assert page.locator("#pools").count() == 0
    held[0].continue_()
    page.wait_for_selector("#pools tbody tr:nth-child(100)")


def test_a_tab_that_is_pressed_again_shows_what_is_there_now(open_page: Open) -> None:
    page = open_page(f"pools/{SHOWN}")
    page.wait_for_selector("#pools tbody tr:nth-child(5)")
    with page.expect_response("**/data/pools?*"):
        page.get_by_role("button", name="Pools").click()


def test_a_pool_that_cannot_be_shown_is_named_above_the_reason(open_page: Open) -> None:
    page = open_page(f"pools/{SHOWN}")
    page.wait_for_selector("#pools tbody tr:nth-child(5)")
    page.route("**/data/geometry?*", lambda route: route.fulfill(status=200, body="no JSON"))
    page.evaluate(f"location.hash = 'geometry/{SHOWN}/clicks'")
    page.locator("main .bad").wait_for()
    assert page.inner_text("h2") == "clicks"


def test_on_a_narrow_screen_names_stay_readable_and_the_table_scrolls_not_the_page(open_page: Open) -> None:
    page = open_page(f"pools/{SHOWN}")
    page.set_viewport_size({"width": 800, "height": 600})
    page.wait_for_selector("#pools tbody tr:nth-child(5)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 800
    assert page.locator("#pools td:first-child").first.bounding_box()["width"] >= 160


def test_the_log_is_a_graph_with_a_lane_a_branch(open_page: Open) -> None:
    for scheme in ("light", "dark"):
        page = open_page(f"log/{SHOWN}/flights", color_scheme=scheme)
        page.wait_for_selector("#log circle")
        assert page.locator("#log circle").count() == page.locator("#log li").count() == 21
        assert page.locator("#log path.merge").count() == 1
        assert page.locator("#log path.branch").count() == 1
        assert page.locator("#log .badge").all_inner_texts() == ["main", "tag monthly", "dev"]
        page.locator("#log summary").nth(3).click()
        assert "transaction" in page.inner_text("#log dl >> nth=3")
        picture(page, f"web-view-log-{scheme}")


def test_jobs_say_what_was_done_and_what_failed(open_page: Open) -> None:
    page = open_page(f"jobs/{SHOWN}")
    page.wait_for_selector("#jobs tbody tr:nth-child(2)")
    assert "Unavailable: the store does not answer" in page.inner_text("#jobs")
    assert "inputs 4, size_in 1.2 MB" in page.inner_text("#jobs")
    picture(page.locator("#jobs"), "web-view-jobs")
    page.locator("#jobs").get_by_role("button", name="flights").click()
    page.get_by_role("button", name="Jobs").click()
    shows(page, "h2", "Jobs of flights")
    assert page.locator("#jobs tbody tr").count() == 1


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


def test_the_view_is_a_page_of_airflows_own_ui(browser: Any, shown: Shown) -> None:
    """In the frame that Airflow gives it, which forbids pop-ups and dialogs of the browser."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme="dark")
    context.set_default_timeout(WITHIN_MS)
    context.add_cookies([{"name": "_token", "value": shown.server.token("user"), "url": shown.server.url}])
    page = context.new_page()
    page.goto(f"{shown.server.url}/plugin/lake")
    frame = page.frame_locator("iframe[title=Lake]")
    frame.locator("#pools tbody tr").nth(2).wait_for()
    frame.get_by_role("button", name="compact").click()
    frame.locator("#ask").get_by_role("button", name="Cancel").click()
    picture(page, "web-view-airflow")
    context.close()


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
        ask("/lake/data/lakes"),
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
    assert shown.server.request(dag, role="admin").json["total_entries"] == 0


def test_the_first_paint_with_a_thousand_pools_is_measured(open_page: Open) -> None:
    """Prints figures; asserts nothing about time."""
    for visit in ("first", "second"):
        page = open_page(f"pools/{MANY}")
        page.wait_for_selector(f"#pools tbody tr:nth-child({POOLS})")
        rows = page.evaluate("performance.getEntriesByName('shown pools')[0].startTime")
        whole = page.evaluate("performance.now()")
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        asked, answered = page.evaluate(
            """(() => {
              const all = performance.getEntriesByType("resource");
              const one = all.find((entry) => entry.name.includes("data/pools"));
              return [one.startTime, one.responseEnd];
            })()"""
        )
        print(
            f"{visit} visit: first paint {paint:.0f} ms; pools asked for at {asked:.0f} ms, answered at "
            f"{answered:.0f} ms, first rows {rows:.0f} ms, {POOLS:,} rows {whole:.0f} ms"
        )
        assert page.locator("#pools tbody tr").count() == POOLS


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


def test_the_dag_of_the_quick_start_is_a_graph_of_groups(shown: Shown, browser: Any) -> None:
    context = browser.new_context(viewport={"width": 1600, "height": 640}, color_scheme="light")
    context.set_default_timeout(WITHIN_MS)
    context.add_cookies([{"name": "_token", "value": shown.server.token("user"), "url": shown.server.url}])
    page = context.new_page()
    page.goto(f"{shown.server.url}/dags/logs_upkeep")
    page.get_by_label("Show Graph (Press g)").click()
    page.get_by_label("Expand all task groups").click()
    graph = page.locator(".react-flow")
    for group in ("lake_upkeep", "compact", "tombstones", "checkpoint", "retention"):
        graph.locator(".react-flow__node", has_text=group).first.wait_for()
    for name, count in (("find", 4), ("report", 4)):
        graph.get_by_text(name, exact=True).nth(count - 1).wait_for()
    page.locator(".react-flow__minimap").evaluate("map => map.remove()")
    picture(graph, "airflow-graph")
    context.close()
