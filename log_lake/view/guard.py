"""Rules for the requests of browsers, in Airflow and in `lake ui`.

`SameOrigin` answers only pages of this server, and tells the browser to load nothing from elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "frame-ancestors 'self'; base-uri 'none'; form-action 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
"""The headers of every answer, even of errors."""


def is_foreign(headers: dict[bytes, bytes]) -> bool:
    """Whether the request comes from a page of another origin.

    Programs send neither of the two headers; only their login counts.
    """
    site = headers.get(b"sec-fetch-site", b"none")
    if site not in (b"none", b"same-origin"):
        return True
    origin = headers.get(b"origin", b"").decode("latin-1")
    try:
        return bool(origin) and urlsplit(origin).netloc != headers.get(b"host", b"").decode("latin-1")
    except ValueError:  # no URL
        return True


def is_opened(headers: dict[bytes, bytes]) -> bool:
    """Whether a browser asks for a whole page, in its own tab, because a person followed a link or opened a
    file."""
    asks = (headers.get(b"sec-fetch-mode"), headers.get(b"sec-fetch-dest"), b"origin" in headers)
    return asks == (b"navigate", b"document", False)


class SameOrigin:
    """Refuses requests of pages of other origins, and adds `HEADERS` to every answer; ASGI around `app`.

    `entrance` is the path of the one page that a link of another page, or a file, may open; "" for none.
    """

    def __init__(self, app: Callable[..., Awaitable[None]], *, entrance: str = "") -> None:
        self._app, self._entrance = app, entrance

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sent(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        headers = dict(scope["headers"])
        enters = scope["path"] == self._entrance and scope["method"] == "GET" and is_opened(headers)
        if is_foreign(headers) and not enters:
            body = json.dumps({"detail": "refused: a page of another origin asked"}).encode()
            json_type = (b"content-type", b"application/json")
            await sent({"type": "http.response.start", "status": 403, "headers": [json_type]})
            await send({"type": "http.response.body", "body": body})
            return
        await self._app(scope, receive, sent)
