"""The catalog as ASGI: reads a request, lets threads of its lake answer, sends the answer.

A store that does not answer delays only requests for its own lake.  If too many wait, the next one is refused.
Only one publication of a table runs at a time, so a slow table occupies one thread.  Requests that only read
have other threads.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import partial
from typing import Any

from lake_core.errors import LakeError
from log_lake.iceberg_catalog.catalog import IcebergCatalog, table_response
from log_lake.iceberg_catalog.refusals import Refusal
from log_lake.iceberg_catalog.request import CatalogRequest, CatalogResponse
from log_lake.iceberg_catalog.routes import (
    AllTables,
    OneTable,
    question_of,
)
from log_lake.iceberg_catalog.tables import Loaded, parts_of_name
from log_lake.iceberg_catalog.turns import Turns
from log_lake.view.guard import is_foreign
from log_lake.view.work import LakeThreads

log = logging.getLogger(__name__)

THREADS = 4
"""How many threads read one lake, and how many others publish its tables; each does one request, or one table, at
a time."""
MAX_PENDING = 400
"""The most requests of one lake at once; the next one is refused.  All requests that wait for one table count as
one."""
MAX_SECONDS = 120.0
"""The most seconds that a client waits for an answer.  A publication goes on afterwards, so a client that asks
again later finds it done."""

Headers = Mapping[bytes, bytes]
AsgiScope = MutableMapping[str, Any]
Send = Callable[[AsgiScope], Awaitable[None]]


class Answering:
    """Answers requests, each in the threads of its lake."""

    def __init__(self, catalog: IcebergCatalog) -> None:
        self.catalog = catalog
        self._reading = {name: _threads() for name in catalog.namespaces}
        self._publishing = {name: _threads() for name in catalog.namespaces}
        self._turns: Turns[Loaded] = Turns()

    async def answer(self, request: CatalogRequest) -> CatalogResponse:
        """Returns the answer; an error of the lake also becomes an answer."""
        try:
            question = question_of(request)
            match question:
                case OneTable(exists=False):
                    return table_response(await self._loaded(question), etag=request.etag)
                case OneTable() | AllTables():
                    self.catalog.check(question.namespace)
                    reading = partial(self.catalog.read, question)
                    return await self._reading[question.namespace].run(reading)
                case _:
                    return self.catalog.answer(question)
        except (LakeError, Refusal) as error:
            return self.refusal(error, request)
        except Exception:
            log.exception("the catalog could not answer %s %s", request.method, request.path)
            broken = Refusal(500, "InternalServerError", "the catalog has a fault; its log says more")
            return self.refusal(broken, request)

    async def _loaded(self, question: OneTable) -> Loaded:
        self.catalog.check(question.namespace)
        threads = self._publishing[question.namespace]
        table = (question.namespace, *parts_of_name(question.table))
        begin = partial(threads.start, partial(self.catalog.loaded, question))
        return await threads.result_of(self._turns.join(table, begin))

    def refusal(self, error: LakeError | Refusal, request: CatalogRequest) -> CatalogResponse:
        """Returns the error as an answer."""
        return self.catalog.refusal(error, with_body=request.method != "HEAD")


def request_of(scope: AsgiScope, *, below: str = "") -> CatalogRequest:
    """Returns the request of an ASGI scope; `below` is the path of the catalog itself."""
    raw: bytes = scope.get("raw_path") or b""
    path = raw.partition(b"?")[0].decode("latin-1")
    headers: Headers = dict(scope["headers"])
    etag = headers.get(b"if-none-match", b"").decode("latin-1")
    query = scope.get("query_string", b"").decode("latin-1")
    return CatalogRequest(scope["method"], path.removeprefix(below), query, etag)


async def send_response(response: CatalogResponse, send: Send) -> None:
    """Sends the answer.  No cache may keep it: it may be another user's."""
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **response.headers}
    if response.body:
        headers["Content-Length"] = str(len(response.body))
    pairs = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": response.status, "headers": pairs})
    await send({"type": "http.response.body", "body": response.body})


class CatalogApp:
    """The ASGI application of `lake serve`; `admit` raises Refusal if it does not admit a request with these
    headers."""

    def __init__(self, catalog: IcebergCatalog, *, admit: Callable[[Headers], object]) -> None:
        self._answering, self._admit = Answering(catalog), admit

    async def __call__(self, scope: AsgiScope, receive: Any, send: Send) -> None:
        if scope["type"] != "http":
            return  # no lifespan, no web sockets
        request = request_of(scope)
        try:
            headers: Headers = dict(scope["headers"])
            if is_foreign(dict(headers)):
                raise Refusal.no_right("refused: a page of another origin asked")
            self._admit(headers)
        except Refusal as refusal:
            response = self._answering.refusal(refusal, request)
        else:
            response = await self._answering.answer(request)
        await send_response(response, send)


def _threads() -> LakeThreads:
    return LakeThreads(threads=THREADS, max_pending=MAX_PENDING, max_seconds=MAX_SECONDS)
