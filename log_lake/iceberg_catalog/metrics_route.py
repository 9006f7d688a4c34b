"""`GET /metrics` of `lake serve`, in front of the other routes and under the same token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from log_lake.iceberg_catalog.app import AsgiScope, Headers, Send, request_of, send_response
from log_lake.iceberg_catalog.refusals import Refusal, refusal_response
from log_lake.iceberg_catalog.request import CatalogResponse
from log_lake.metrics.watching import Watching
from log_lake.view.guard import is_foreign
from log_lake.view.listening import AsgiApp

PATH = "/metrics"
TEXT = "text/plain; version=0.0.4; charset=utf-8"
"""The format that every Prometheus reads."""


class MetricsRoute:
    """An ASGI application: answers `/metrics`, and passes everything else on to `app`."""

    def __init__(self, app: AsgiApp, watching: Watching, *, admit: Callable[[Headers], object]) -> None:
        self._app, self._watching, self._admit = app, watching, admit

    async def __call__(self, scope: AsgiScope, receive: Any, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != PATH:
            await self._app(scope, receive, send)
            return
        request, headers = request_of(scope), dict(scope["headers"])
        try:
            if is_foreign(headers):
                raise Refusal.no_right("refused: a page of another origin asked")
            self._admit(headers)
            if request.method not in ("GET", "HEAD"):
                raise Refusal(406, "UnsupportedOperationException", f"{request.method}: ask by GET")
        except Refusal as refusal:
            response = refusal_response(refusal, with_body=request.method != "HEAD")
        else:
            body = await self._watching.text() if request.method == "GET" else b""
            response = CatalogResponse(200, body, {"Content-Type": TEXT})
        await send_response(response, send)
