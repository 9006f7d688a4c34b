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
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn
from fastapi.responses import Response

from lake_core.errors import InvalidInput
from log_lake.lake import Lake
from log_lake.stores import open_store
from log_lake.stores.read_only import ReadOnlyStore
from log_lake.view.guard import SameOrigin
from log_lake.view.lakes import Lakes
from log_lake.view.routes import LakeApp, answer

ADDRESS = "127.0.0.1"
NAMES = (ADDRESS, "localhost")
"""The names of this machine that a browser may use in its requests."""

AsgiApp = Callable[[MutableMapping[str, Any], Any, Any], Awaitable[None]]


def open_to_read(uri: str) -> Lake:
    """The lake, which this process cannot change.  Raises InvalidInput, NotFound, Corrupt, Unavailable."""
    store = open_store(uri)
    return Lake.open_on(store if isinstance(store, ReadOnlyStore) else ReadOnlyStore(store))


def app_of(lakes: Lakes) -> LakeApp:
    """The routes; without Airflow there is no agent to start."""
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


class _Telling(uvicorn.Server):
    """A server that calls `started` once it answers requests."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._started()


def run_until_asked(
    app: AsgiApp,
    listening: socket.socket,
    *,
    started: Callable[[], None],
    most_connections: int | None = None,
) -> None:
    """Serves an application until the process is asked to end; `started` is called as soon as it answers.

    More than `most_connections` connections at once are refused with 503; None: no limit.
    """
    config = uvicorn.Config(
        app,
        http="h11",  # bounds what a request says before its body, and takes one Host (decision 365)
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        limit_concurrency=most_connections,
    )
    _Telling(config, started).run(sockets=[listening])


def listen(port: int, host: str = ADDRESS) -> socket.socket:
    """Opens a socket at an address, by default the loopback one; port 0 means any free port.

    Raises InvalidInput if the port is in use, or the machine does not have the address.
    """
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise InvalidInput(
            f"port {port} of {host}: {error.strerror or error}; name another --port"
        ) from error


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
