"""The server of `lake ui`: the pages of the view on this machine, for the person who started it.

    http://127.0.0.1:PORT/TOKEN/      the token is in the path, so that every address of the page has it

It listens on the loopback address only.  Other users of the machine can reach that address, but they do not
know the token.  A page of another site does not know it either.  Such a site could let its own name lead to
this address (DNS rebinding), so a request whose `Host` is not a name of this machine is refused.  The lake is
opened so that nothing can change it (decision 283).
"""

from __future__ import annotations

import json
import secrets
import socket
from collections.abc import Callable, MutableMapping
from typing import Any

from fastapi.responses import Response

from log_lake.view.guard import SameOrigin
from log_lake.view.lakes import Lakes
from log_lake.view.listening import ADDRESS, AsgiApp, open_to_read, run_until_asked
from log_lake.view.routes import LakeApp, answer

NAMES = (ADDRESS, "localhost")
"""The names of this machine that a browser may use in its requests."""


def app_of(lakes: Lakes) -> LakeApp:
    """Returns the routes; without Airflow there is no agent to start."""
    app = LakeApp(lakes)

    @app.get("/data/agents")
    async def agents() -> Response:
        return answer([])

    return app


class LocalOnly:
    """An ASGI application in front of `app`, to which it passes on a request only if the host is a name of this
    machine and the path begins with the token."""

    def __init__(self, app: AsgiApp, *, port: int, token: str) -> None:
        self._app = app
        self._hosts = {f"{name}:{port}".encode() for name in NAMES}
        self._prefix = f"/{token}"

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return  # no lifespan, no web sockets
        if dict(scope["headers"]).get(b"host") not in self._hosts:
            await _refuse(send, 403, "refused: the address names another host than this machine")
            return
        first, _, rest = scope["path"].removeprefix("/").partition("/")
        if not secrets.compare_digest(f"/{first}".encode(), self._prefix.encode()):
            await _refuse(send, 404, "not found: open the whole address that lake ui has printed")
            return
        if scope["path"] == self._prefix:
            await _refuse(send, 404, "not found: the address ends with a slash")
            return
        path = f"/{rest}"
        await self._app({**scope, "path": path, "raw_path": path.encode()}, receive, send)


async def _refuse(send: Any, status: int, detail: str) -> None:
    headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps({"detail": detail}).encode()})


def serve(
    uri: str,
    *,
    listening: socket.socket,
    told: Callable[[str], None],
    started: Callable[[str], None],
    token: str = "",
) -> None:
    """Serves the pages of a lake until the process is asked to end.

    `told` gets their address before the server runs, `started` as soon as it answers; it must not wait. Raises
    what opening the lake raises, before anything is served.
    """
    open_to_read(uri)
    token = token or secrets.token_urlsafe(16)
    port = listening.getsockname()[1]
    app = app_of(Lakes([uri], opener=open_to_read))
    guarded = SameOrigin(LocalOnly(app, port=port, token=token), entrance=f"/{token}/")
    address = f"http://{ADDRESS}:{port}/{token}/"
    told(address)
    run_until_asked(guarded, listening, started=lambda: started(address))
