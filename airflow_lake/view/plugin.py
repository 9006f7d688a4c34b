"""The view and the catalog as a plugin of Airflow: two apps, and an entry in the menu.

Airflow imports this module in the scheduler and in every task too, so it imports nothing else.  The app is built
at the first request.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin

PREFIX = "/lake"
"""Where the pages are mounted, below the address of Airflow.  Everything in a page is relative to it."""
CATALOG = "/lake-catalog"
"""Where the Iceberg catalog is mounted."""

App = Callable[[MutableMapping[str, Any], Any, Any], Awaitable[None]]


class LazyApp:
    """An app in ASGI's form that is built by `build` when the first request comes."""

    def __init__(self, build: Callable[[], App]) -> None:
        self._build = build
        self._app: App | None = None
        self._building = threading.Lock()

    def built(self) -> App:
        """Returns the app, which the first call builds; safe to call from several threads."""
        with self._building:
            if self._app is None:
                self._app = self._build()
            return self._app

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        app = await asyncio.to_thread(self.built) if self._app is None else self._app
        await app(scope, receive, send)


def _view() -> App:
    from airflow_lake.view.app import build

    return build()


def _catalog() -> App:
    from airflow_lake.view.catalog import build

    return build()


class LakeView(AirflowPlugin):
    """The plugin by which Airflow mounts the view and the catalog, and adds the entry in the menu."""

    name = "lake_view"
    fastapi_apps: ClassVar[list[Any]] = [
        {"app": LazyApp(_view), "url_prefix": PREFIX, "name": "Lake"},
        {"app": LazyApp(_catalog), "url_prefix": CATALOG, "name": "Lake catalog"},
    ]
    external_views: ClassVar[list[Any]] = [
        {
            "name": "Lake",
            "href": f"{PREFIX.lstrip('/')}/",
            "destination": "nav",
            "category": "browse",
            "url_route": "lake",
        }
    ]
