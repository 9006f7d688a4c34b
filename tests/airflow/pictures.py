"""Pictures of a running Airflow for the documentation, taken if LAKE_VIEW_PICTURES names a folder."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

from local.services import Services
from tests.airflow.view.pages import WITHIN_MS, picture
from tests.support.servers.chromium import chromium


def is_drawing() -> bool:
    return bool(os.environ.get("LAKE_VIEW_PICTURES"))


@contextlib.contextmanager
def open_airflow(services: Services) -> Iterator[Callable[[str], Any]]:
    """A function that opens a page of Airflow as its user."""
    login = {"username": services.user, "password": services.password}
    token = services.api._send("POST", "/auth/token", body=login)["access_token"]
    with chromium() as browser:
        context = browser.new_context(viewport={"width": 1280, "height": 560}, color_scheme="light")
        context.set_default_timeout(WITHIN_MS)
        context.add_cookies([{"name": "_token", "value": token, "url": services.airflow_url}])

        def open_page(path: str) -> Any:
            page = context.new_page()
            page.goto(services.airflow_url + path)
            return page

        yield open_page
        context.close()


def draw_graph(page: Any, name: str, *tasks: str, has_groups: bool = False) -> None:
    """The graph of a DAG or a run, once it shows these tasks."""
    page.get_by_label("Show Graph (Press g)").click()
    if has_groups:
        page.get_by_label("Expand all task groups").click()
    graph = page.locator(".react-flow")
    for task in tasks:
        graph.get_by_text(task, exact=True).first.wait_for()
    page.get_by_label("Collapse Details Panel").click()
    page.locator(".react-flow__minimap").evaluate_all("maps => maps.forEach((map) => map.remove())")
    page.get_by_label("Fit View").click()
    page.wait_for_timeout(2_000)  # the graph glides to its place
    picture(graph, name)
