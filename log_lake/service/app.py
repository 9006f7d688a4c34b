"""The service as ASGI: routes of its own, in front of the catalog, which gets all others.

Each lake has threads of its own for queries, and others for writes.  A store that does not answer, or a damaged
pool, delays only requests for its own lake.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

from lake_core.errors import LakeError
from log_lake.iceberg_catalog.app import AsgiScope, Headers, Send, request_of
from log_lake.iceberg_catalog.callers import CallerRole
from log_lake.iceberg_catalog.refusals import Refusal
from log_lake.iceberg_catalog.serving import Admitting
from log_lake.service import conversation, description
from log_lake.service.admitted import AdmittedRequest
from log_lake.service.limits import DISK, OpenRequests, ServiceLimits
from log_lake.service.problems import PROBLEM, ClientGone, Problem, problem_of
from log_lake.service.reading import QueryAnswers
from log_lake.service.receiving import Receive
from log_lake.service.routes import (
    EndingAsked,
    Load,
    OfLake,
    PoolToCreate,
    PoolToDrop,
    Query,
    asked_by,
    is_ours,
    role_for,
)
from log_lake.service.spool import SpoolDisk
from log_lake.service.writing import WriteAnswers
from log_lake.sql_writes import creates, is_write
from log_lake.view.guard import is_foreign
from log_lake.view.lakes import Lakes
from log_lake.view.listening import AsgiApp

log = logging.getLogger(__name__)


class ServiceApp:
    """The ASGI application of `lake serve`, around the catalog."""

    def __init__(
        self,
        catalog: AsgiApp,
        lakes: Lakes,
        admit: Admitting,
        *,
        bounds: ServiceLimits,
        may_write: bool,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._catalog, self._lakes, self._admit, self._may_write = catalog, lakes, admit, may_write
        self._names = [choice.key for choice in lakes.choices]
        sql_limits = bounds.of_sql(len(self._names))
        self._open = OpenRequests()
        self._bounds = bounds
        disk = SpoolDisk(DISK)
        self._reads = QueryAnswers(lakes, bounds, sql_limits, disk=disk)
        self._writes = WriteAnswers(lakes, bounds, sql_limits, disk=disk, environ=environ)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_ours(request_of(scope).path):
            await self._catalog(scope, receive, send)
            return
        has_begun = False

        async def sending(message: AsgiScope) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            with self._open:
                await self._answer(scope, receive, sending)
        except ClientGone:
            return
        except Exception as error:
            if not isinstance(error, LakeError | Problem | Refusal):
                log.exception("the service could not answer %s %s", scope["method"], scope["path"])
            if not has_begun:
                await self._refuse(problem_of(error), send)

    async def _refuse(self, problem: Problem, send: Send) -> None:
        """The answer that says the error, without what may be a secret in the address of a lake."""
        shown = Problem(problem.status, self._lakes.without_users(str(problem)))
        headers = {"Content-Type": PROBLEM, **shown.headers}
        await conversation.answer(send, shown.status, shown.body, headers)

    async def _answer(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        headers: Headers = dict(scope["headers"])
        if is_foreign(dict(headers)):
            raise Problem(403, "refused: a page of another origin asked")
        request = request_of(scope)
        if (as_page := description.is_page(request.path)) is not None:
            self._admit.check_host(headers)
            body, kind = description.page() if as_page else description.document()
            await conversation.answer(send, 200, body, {"Content-Type": kind, **description.HEADERS})
            return
        exchange = AdmittedRequest(
            self._admit(headers),
            headers,
            receive,
            send,
            self._may_write,
            self._bounds.transfer,
            ends_by_closing=scope.get("http_version") == "1.0",
        )
        asked = asked_by(request.method, request.path, request.query)
        exchange.check_role(role_for(asked))
        if isinstance(asked, OfLake) and asked.lake not in self._names:
            raise Problem(
                404, f"there is no lake {asked.lake[:64]!r}; the lakes are {', '.join(self._names)}"
            )
        match asked:
            case Query():
                await self._query(exchange, asked)
            case EndingAsked(id):
                await exchange.done(self._reads.endings.of(exchange.caller.name, id))
            case Load():
                await self._writes.load(exchange, asked)
            case PoolToCreate():
                await self._writes.create(exchange, asked)
            case PoolToDrop():
                await self._writes.drop(exchange, asked)

    async def _query(self, exchange: AdmittedRequest, asked: Query) -> None:
        sql = await exchange.text("SQL")
        if is_write(sql):
            exchange.check_role(CallerRole.KEEPER if creates(sql) else CallerRole.WRITER)
            await self._writes.statement(exchange, asked, sql)
            return
        if asked.token or asked.message or asked.dry_run:
            raise Problem(
                400, "token, message and dry_run are for a statement that changes a pool; leave them out"
            )
        await self._reads.answer(exchange, asked.lake, sql)
