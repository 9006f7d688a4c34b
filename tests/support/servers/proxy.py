"""A proxy on loopback in front of an HTTP server that interferes with chosen requests.

    proxy.on(creates("a/1"), drop_answer)                   the server does it, and the client hears nothing
    proxy.on(creates("a/1"), answer(409, body), times=2)    the server never hears of it
    proxy.on(everything, without("If-None-Match"), times=ALWAYS)

A rule is used for one request unless `times` says more. The first rule that fits is used; other requests pass
through. `requests` lists all of them. Each connection has a thread. A forwarded request keeps the client's
Host, because its signature covers it.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

ALWAYS = 1_000_000_000
PATIENCE = 30.0
_BETWEEN_TWO = {"connection", "keep-alive", "transfer-encoding", "content-length", "expect"}


@dataclass(frozen=True)
class Request:
    """A request of a client."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def is_create(self) -> bool:
        """Whether it is a create-only put, in S3's or Google's form."""
        return "if-none-match" in self.headers or "ifGenerationMatch=0" in self.path


@dataclass(frozen=True)
class Answer:
    """An answer of the server."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


Forward = Callable[[Request], Answer]
Deed = Callable[[Request, Forward], Answer | None]
"""A function that makes an answer, and may ask the server for it. None means silence: the connection is cut."""


def drop_answer(request: Request, forward: Forward) -> None:
    """The server does what it is asked, but its answer is lost."""
    forward(request)


def answer(status: int, body: bytes | str = b"", **headers: str) -> Deed:
    """Returns a deed that answers this instead of the server."""
    data = body.encode() if isinstance(body, str) else body
    said = Answer(status, data, tuple((name.replace("_", "-"), value) for name, value in headers.items()))
    return lambda request, forward: said


def without(header: str) -> Deed:
    """Returns a deed that removes a header before the request reaches the server."""

    def forget(request: Request, forward: Forward) -> Answer:
        kept = {name: value for name, value in request.headers.items() if name != header.lower()}
        return forward(Request(request.method, request.path, kept, request.body))

    return forget


def everything(request: Request) -> bool:
    """Whether the request fits: all do."""
    return True


def creates(name: str) -> Callable[[Request], bool]:
    """Fits the create-only puts of names that end like this."""
    body_name = f'{name}"'.encode()  # Google is told the name in the body

    def fits(request: Request) -> bool:
        path = unquote(urlsplit(request.path).path)
        return request.is_create and (path.endswith(name) or body_name in request.body)

    return fits


@dataclass
class _Rule:
    fits: Callable[[Request], bool]
    deed: Deed
    times: int


class Proxy:
    """The proxy; clients reach it at `url`."""

    def __init__(self, target: str) -> None:
        self._target = urlsplit(target).netloc
        self._rules: list[_Rule] = []
        self._guard = threading.Lock()
        self.requests: list[Request] = []
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            timeout = PATIENCE

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except ConnectionError:  # a client that hangs up is no news
                    self.close_connection = True

            def do(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Request(self.command, self.path, headers, self.rfile.read(length))
                said = proxy._serve(request)
                if said is None:
                    self.close_connection = True
                    with contextlib.suppress(OSError):
                        self.connection.shutdown(socket.SHUT_RDWR)
                    return
                self.send_response_only(said.status)
                sizes = {name.lower(): value for name, value in said.headers}
                for name, value in said.headers:
                    if name.lower() not in _BETWEEN_TWO:
                        self.send_header(name, value)
                is_head = self.command == "HEAD"
                size = sizes.get("content-length", "0") if is_head else str(len(said.body))
                self.send_header("Content-Length", size)
                self.end_headers()
                if not is_head:
                    self.wfile.write(said.body)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = do  # the server's names

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def on(self, fits: Callable[[Request], bool], deed: Deed, *, times: int = 1) -> None:
        """Adds a rule: what happens to the next `times` requests that fit."""
        with self._guard:
            self._rules.append(_Rule(fits, deed, times))

    def forget(self) -> None:
        """Removes all rules, and empties the log."""
        with self._guard:
            self._rules.clear()
            self.requests.clear()

    def asked(self, fits: Callable[[Request], bool]) -> int:
        """Returns how many requests fitted."""
        with self._guard:
            return sum(1 for request in self.requests if fits(request))

    def _serve(self, request: Request) -> Answer | None:
        with self._guard:
            self.requests.append(request)
            rule = next((rule for rule in self._rules if rule.times and rule.fits(request)), None)
            if rule is not None:
                rule.times -= 1
        return self._forward(request) if rule is None else rule.deed(request, self._forward)

    def _forward(self, request: Request) -> Answer:
        connection = http.client.HTTPConnection(self._target, timeout=PATIENCE)
        try:
            connection.putrequest(request.method, request.path, skip_host=True, skip_accept_encoding=True)
            for name, value in request.headers.items():
                if name not in _BETWEEN_TWO:
                    connection.putheader(name, value)
            connection.putheader("content-length", str(len(request.body)))
            connection.endheaders(request.body)
            response = connection.getresponse()
            return Answer(response.status, response.read(), tuple(response.getheaders()))
        finally:
            connection.close()

    def __enter__(self) -> Proxy:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(PATIENCE)
