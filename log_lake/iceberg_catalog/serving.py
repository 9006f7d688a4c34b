"""The address of `lake serve`, and who may ask there: programs on this machine, or with a token.

| address | who may ask |
|---|---|
| loopback, no token | every process of this machine; no page of a browser, whatever name led it here |
| loopback or another, with a token | who sends `Authorization: Bearer TOKEN` |
| another, no token | refused before anything is served |

No address holds a secret, and the catalog hands out no credentials: clients read the objects with their own.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Mapping, Sequence

from lake_core.errors import InvalidInput
from log_lake.iceberg_catalog.app import CatalogApp, Headers
from log_lake.iceberg_catalog.callers import ANYBODY, Caller, caller_with
from log_lake.iceberg_catalog.catalog import IcebergCatalog
from log_lake.iceberg_catalog.metrics_route import MetricsRoute
from log_lake.iceberg_catalog.refusals import Refusal
from log_lake.lake import Lake
from log_lake.metrics.watching import Watching
from log_lake.view.lakes import Lakes
from log_lake.view.listening import ADDRESS, AsgiApp, listen, open_to_read, run_until_asked

MAX_CONNECTIONS = 500
"""The most open connections; a further one is answered with 503.  A process may often have 1,024 open files, and
reading a lake needs some too."""
HTTP_PORT = 80
TAKES_NOTHING_MS = 60_000
"""Milliseconds after which the system ends a connection whose client takes nothing of what was sent to it."""


def is_loopback(host: str) -> bool:
    """Whether only processes of this machine reach the address.  Raises InvalidInput if it is no address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError as error:
        raise InvalidInput(
            f"--host {host}: write an address of this machine, such as {ADDRESS} or 0.0.0.0"
        ) from error


def bound(host: str, port: int, *, has_token: bool) -> socket.socket:
    """Returns a socket at the address; port 0 is any free one.  Raises InvalidInput."""
    if not is_loopback(host) and not has_token:
        raise InvalidInput(
            f"--host {host}: other machines reach this address, so it needs a token; add --token-file FILE"
        )
    listening = listen(port, host)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux; connections inherit it
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, TAKES_NOTHING_MS)
    return listening


def address_of(listening: socket.socket) -> str:
    """Returns the address of the catalog, as clients name it."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


class Admitting:
    """Refuses requests that it does not admit.  If the server has tokens, a request needs one.  Otherwise its
    Host header must name this machine.

    A page of another site may lead its own name to this machine (DNS rebinding); then the Host header has that
    name.
    """

    def __init__(self, *, host: str, port: int, callers: Sequence[Caller]) -> None:
        names = (f"[{host}]" if ":" in host else host, "localhost")
        self._hosts = {f"{name}:{port}".encode() for name in names}
        if port == HTTP_PORT:  # clients leave it out
            self._hosts |= {name.encode() for name in names}
        self._callers = callers

    def check_host(self, headers: Headers) -> None:
        """Raises Refusal if the server has no tokens and the request names another host than this machine."""
        if not self._callers and headers.get(b"host") not in self._hosts:
            raise Refusal.no_right("refused: the address names another host than this machine")

    def __call__(self, headers: Headers) -> Caller:
        """Who asks with these headers.  Raises Refusal if no caller may ask so."""
        self.check_host(headers)
        if not self._callers:
            return ANYBODY
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        caller = caller_with(token.strip(), self._callers) if scheme.lower() == b"bearer" else None
        if caller is None:
            raise Refusal.no_login("refused: send the token of this server (Authorization: Bearer TOKEN)")
        return caller


def serve(
    lakes: Mapping[str, str],
    *,
    listening: socket.socket,
    callers: Sequence[Caller],
    may_write: bool,
    started: Callable[[], None],
    around: Callable[[CatalogApp, Lakes, Admitting], AsgiApp],
) -> None:
    """Serves the catalog of these lakes, by their namespaces, until the process is asked to end.

    `around` returns an application with all other routes, which passes requests for the catalog on.  `started`
    is called as soon as the server answers.  Without `may_write` nothing is published.
    """
    import log_lake.publish.files  # noqa: F401  takes seconds to import; the first client need not wait for it

    opener: Callable[[str], Lake] = Lake.open if may_write else open_to_read
    host, port = listening.getsockname()[:2]
    opened, admit = Lakes(lakes, opener=opener), Admitting(host=host, port=port, callers=callers)
    app = around(CatalogApp(IcebergCatalog(opened), admit=admit), opened, admit)
    app = MetricsRoute(app, Watching(opened), admit=admit)
    run_until_asked(app, listening, started=started, most_connections=MAX_CONNECTIONS)
