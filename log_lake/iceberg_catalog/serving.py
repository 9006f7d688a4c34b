"""The server of `lake serve`: the catalog over some lakes, for programs on this machine or with a token.

| address | who may ask |
|---|---|
| loopback, no token | every process of this machine; no page of a browser, whatever name led it here |
| loopback or another, with a token | who sends `Authorization: Bearer TOKEN` |
| another, no token | refused before anything is served |

No address of the catalog holds a secret, and it hands out no credentials: clients read the objects with their own.
"""

from __future__ import annotations

import ipaddress
import re
import secrets
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

from lake_core.errors import InvalidInput
from log_lake.iceberg_catalog.app import CatalogApp, Headers
from log_lake.iceberg_catalog.catalog import IcebergCatalog
from log_lake.iceberg_catalog.refusals import Refusal
from log_lake.lake import Lake
from log_lake.view.lakes import Lakes
from log_lake.view.serving import ADDRESS, listen, open_to_read, run_until_asked

MIN_TOKEN, MAX_TOKEN = 16, 4_096
"""Characters of a token: fewer can be guessed; more are no token but another file."""
MAX_CONNECTIONS = 500
"""At once; who comes next gets 503.  A process may often have 1,024 open files; reading a lake needs some too."""
HTTP_PORT = 80
_TOKEN = re.compile(r"[\x21-\x7e]+")


def token_in(path: str) -> str:
    """The token in a file, without white space around it.  Raises InvalidInput."""
    if not path:  # as from a variable that is not set
        raise InvalidInput("--token-file is empty; name a file with a token, or leave the option out")
    try:
        with Path(path).open("rb") as file:
            text = file.read(MAX_TOKEN + 2).strip().decode("latin-1")
    except OSError as error:
        raise InvalidInput(
            f"--token-file {path}: {error.strerror or error}; name a file with a token"
        ) from error
    if not MIN_TOKEN <= len(text) <= MAX_TOKEN or not _TOKEN.fullmatch(text):
        raise InvalidInput(
            f"--token-file {path}: a token has {MIN_TOKEN} to {MAX_TOKEN:,} characters, all visible ASCII; make "
            "one with: python3 -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    return text


def is_loopback(host: str) -> bool:
    """Whether only processes of this machine reach the address.  Raises InvalidInput if it is no address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError as error:
        raise InvalidInput(
            f"--host {host}: write an address of this machine, such as {ADDRESS} or 0.0.0.0"
        ) from error


def bound(host: str, port: int, *, has_token: bool) -> socket.socket:
    """A socket at the address; port 0 is any free one.  Raises InvalidInput."""
    if not is_loopback(host) and not has_token:
        raise InvalidInput(
            f"--host {host}: other machines reach this address, so it needs a token; add --token-file FILE"
        )
    return listen(port, host)


def address_of(listening: socket.socket) -> str:
    """The address of the catalog, as clients name it."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


class Admitting:
    """Refuses requests without the token; without a token, those that name another host than this machine.

    A page of another site may lead its own name to this machine (DNS rebinding); then the host is that name.
    """

    def __init__(self, *, host: str, port: int, token: str) -> None:
        names = (f"[{host}]" if ":" in host else host, "localhost")
        self._hosts = {f"{name}:{port}".encode() for name in names}
        if port == HTTP_PORT:  # clients leave it out
            self._hosts |= {name.encode() for name in names}
        self._token = token.encode()

    def __call__(self, headers: Headers) -> None:
        """Raises Refusal if a request with these headers may not ask."""
        if not self._token:
            if headers.get(b"host") not in self._hosts:
                raise Refusal.no_right("refused: the address names another host than this machine")
            return
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer" or not secrets.compare_digest(token.strip(), self._token):
            raise Refusal.no_login("refused: send the token of this server (Authorization: Bearer TOKEN)")


def serve(
    lakes: Mapping[str, str],
    *,
    listening: socket.socket,
    token: str,
    may_write: bool,
    started: Callable[[], None],
) -> None:
    """Serve the catalog of these lakes, by their namespaces, until the process is asked to end.

    `started` is called as soon as the server answers.  Without `may_write` nothing is published.
    """
    import log_lake.publish.files  # noqa: F401  takes seconds to import; the first client need not wait for it

    opener: Callable[[str], Lake] = Lake.open if may_write else open_to_read
    host, port = listening.getsockname()[:2]
    app = CatalogApp(
        IcebergCatalog(Lakes(lakes, opener=opener)), admit=Admitting(host=host, port=port, token=token)
    )
    run_until_asked(app, listening, started=started, most_connections=MAX_CONNECTIONS)
