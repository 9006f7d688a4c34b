"""Who may see the view, and what a browser may ask of it.

Airflow hands requests to a mounted app without a look at them.  So every route depends on `may_read`: the user is
logged in, and may see assets, since a pool is an asset.  The right to start an agent is Airflow's own right to
start a run of its DAG; Airflow's API checks it again when the page asks for a run (decision 91).

`SameOrigin` answers only pages of this server, and tells the browser to load nothing from elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Annotated, Any
from urllib.parse import urlsplit

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import get_user, requires_access_asset
from fastapi import Depends

User = Annotated[BaseUser, Depends(get_user)]
"""The user of the request; 401 if there is none."""

may_read = Depends(requires_access_asset("GET"))
"""Lets a request through if its user may see assets; otherwise 401 or 403."""

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
"""Sent with every answer, errors too."""


def may_start(user: BaseUser, dag_id: str) -> bool:
    """Whether the user may start runs of the DAG."""
    return bool(
        get_auth_manager().is_authorized_dag(
            method="POST", access_entity=DagAccessEntity.RUN, details=DagDetails(id=dag_id), user=user
        )
    )


def is_foreign(headers: dict[bytes, bytes]) -> bool:
    """Whether a page of another origin asks.  Programs send neither header, and are judged by their login alone."""
    site = headers.get(b"sec-fetch-site", b"none")
    if site not in (b"none", b"same-origin"):
        return True
    origin = headers.get(b"origin", b"").decode("latin-1")
    try:
        return bool(origin) and urlsplit(origin).netloc != headers.get(b"host", b"").decode("latin-1")
    except ValueError:  # no URL
        return True


class SameOrigin:
    """Refuses requests of pages of other origins, and adds `HEADERS` to every answer; ASGI around `app`."""

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self._app = app

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sent(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        if is_foreign(dict(scope["headers"])):
            body = json.dumps({"detail": "refused: a page of another origin asked"}).encode()
            json_type = (b"content-type", b"application/json")
            await sent({"type": "http.response.start", "status": 403, "headers": [json_type]})
            await send({"type": "http.response.body", "body": body})
            return
        await self._app(scope, receive, sent)
