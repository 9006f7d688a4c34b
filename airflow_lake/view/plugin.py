"""The view as a plugin of Airflow: an app below `/lake`, and an entry in the menu.

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
"""Where the app is mounted, below the address of Airflow.  Everything in the page is relative to it."""

App = Callable[[MutableMapping[str, Any], Any, Any], Awaitable[None]]


class LazyApp:
    """The app as ASGI, which is built when the first request comes."""

    def __init__(self) -> None:
        self._app: App | None = None
        self._building = threading.Lock()

    def built(self) -> App:
        """The app, built at the first call; safe to call from several threads."""
        with self._building:
            if self._app is None:
                from airflow_lake.view.app import build

                self._app = build()
            return self._app

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        app = await asyncio.to_thread(self.built) if self._app is None else self._app
        await app(scope, receive, send)


class LakeView(AirflowPlugin):
    """The plugin."""

    name = "lake_view"
    fastapi_apps: ClassVar[list[Any]] = [{"app": LazyApp(), "url_prefix": PREFIX, "name": "Lake"}]
    external_views: ClassVar[list[Any]] = [
        {
            "name": "Lake",
            "href": f"{PREFIX.lstrip('/')}/",
            "destination": "nav",
            "category": "browse",
            "url_route": "lake",
        }
    ]
