"""The page in a real browser: what is drawn, what hostile texts do, and what its buttons ask of Airflow.

With LAKE_VIEW_PICTURES=FOLDER the pictures of docs/web-view.md and docs/airflow.md are taken anew.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.airflow.view.conftest import HOSTILE, HOSTILE_POOL, MANY, PAYLOAD, POOLS, SHOWN, Shown
from tests.airflow.view.pages import WITHIN_MS, Open, background, colours, picture, shows

pytestmark = pytest.mark.airflow

DARK = "rgb(24, 24, 27)"
LIGHT = "rgb(255, 255, 255)"


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
    page.wait_for_selector("#records table")
    assert PAYLOAD in page.inner_text("#records")
    assert PAYLOAD in page.inner_text("#health")
    assert page.locator("main img, main script, main svg").count() == 0
    page.get_by_role("button", name="Geometry").click()
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
    assert page.inner_text("#figures").startswith("1 reference with 1 record, ")
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
    link = page.locator("#jobs").get_by_role("link", name="lake_compact / manual__1 / run")
    assert link.get_attribute("href").endswith("/dags/lake_compact/runs/manual__1")
    picture(page.locator("#jobs"), "web-view-jobs")
    page.locator("#jobs").get_by_role("button", name="flights").click()
    page.wait_for_selector("#health")
    page.get_by_role("button", name="Jobs").click()
    shows(page, "h2", "Jobs of flights")
    assert page.locator("#jobs tbody tr").count() == 1


def test_a_pool_has_a_page_with_counts_health_records_fields_and_settings(open_page: Open) -> None:
    for scheme, width in (("light", 1280), ("dark", 1280), ("light", 420)):
        page = open_page(f"pool/{SHOWN}/flights", color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_selector("#records table")
        assert "in objects" in page.inner_text("#figures")
        assert page.locator("#records tbody tr").count() == 20
        assert page.locator("#fields tbody tr").count() == 2
        assert page.inner_text("#health").startswith("well")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        picture(page, f"web-view-pool-{scheme}-{width}")
    page.get_by_role("button", name="flights.$nokey (1)").click()
    shows(page, "#records", "no key")


def test_a_delete_with_a_condition_whitens_nothing(open_page: Open) -> None:
    """It may hide no record at all: it is dotted, and has an entry of its own in the legend."""
    page = open_page(f"geometry/{SHOWN}/flights")
    page.wait_for_selector("canvas[data-boxes]")
    assert page.locator(".legend .swatch").count() == 2
    assert page.inner_text(".legend").endswith("deleted where a condition holds")
    page.fill("#version", "14")
    shows(page, "#said", "version 14 of 21")
    page.locator(".legend .dotted").wait_for(state="detached")
    assert page.locator(".legend .hatched").count() == 1


def test_a_page_that_gets_no_answer_says_so_and_offers_another_try(open_page: Open) -> None:
    page = open_page(f"pools/{SHOWN}")
    page.wait_for_selector("#pools tbody tr:nth-child(5)")
    page.route("**/data/pool?*", lambda route: route.fulfill(status=200, body="no JSON"))
    page.evaluate(f"location.hash = 'pool/{SHOWN}/clicks'")
    shows(page, "main .bad", "the answer cannot be read")
    assert page.get_by_role("button", name="Try again").count() == 1


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
