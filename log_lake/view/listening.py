"""A server of this machine: its socket, its loop, and a lake that it cannot change.

`lake ui` and `lake serve` share it.  It needs no package but uvicorn, because `lake serve` has no pages.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn

from lake_core.errors import InvalidInput
from log_lake.lake import Lake
from log_lake.stores import open_store
from log_lake.stores.read_only import ReadOnlyStore

ADDRESS = "127.0.0.1"

AsgiApp = Callable[[MutableMapping[str, Any], Any, Any], Awaitable[None]]


def open_to_read(uri: str) -> Lake:
    """Returns the lake, which this process cannot change.  Raises InvalidInput, NotFound, Corrupt,
    Unavailable."""
    store = open_store(uri)
    return Lake.open_on(store if isinstance(store, ReadOnlyStore) else ReadOnlyStore(store))


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
