"""Answers the queries that read: starts each in the threads of its lake, and sends its answer."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable
from concurrent.futures import Future
from dataclasses import dataclass

from log_lake.iceberg_catalog.callers import Caller
from log_lake.service import conversation
from log_lake.service.admitted import AdmittedRequest
from log_lake.service.endings import Endings, QueryEnding
from log_lake.service.formats import AnswerFormat, answer_format
from log_lake.service.limits import HELD, MAX_OPEN, QUERIES, WAIT_SECONDS, ServiceLimits
from log_lake.service.problems import Problem, problem_of
from log_lake.service.queries import RunningQuery
from log_lake.service.spool import AnswerSpool, SpoolDisk
from log_lake.system_tables.engine import SqlLimits
from log_lake.system_tables.stopping import QueryStop
from log_lake.view.lakes import Lakes
from log_lake.view.work import LakeThreads

QUERY_ID = "Lake-Query"
"""The header with the id of a query."""


@dataclass
class _Asked:
    """A query that runs or waits: its id, its spool, whether it has begun and has ended, and whether its answer was
    sent whole."""

    id: str
    caller: Caller
    format: AnswerFormat
    running: RunningQuery
    begun: asyncio.Event
    done: Future[None]
    is_sent: bool = False

    @property
    def spool(self) -> AnswerSpool:
        return self.running.spool


class QueryAnswers:
    """Answers queries over several lakes; only for the event loop."""

    def __init__(
        self, lakes: Lakes, bounds: ServiceLimits, sql_limits: SqlLimits, *, disk: SpoolDisk
    ) -> None:
        self._lakes, self._bounds, self._sql_limits = lakes, bounds, sql_limits
        self._threads = {
            choice.key: LakeThreads(threads=QUERIES, max_pending=MAX_OPEN, max_seconds=WAIT_SECONDS)
            for choice in lakes.choices
        }
        self._disk = disk
        self._ending: set[asyncio.Future[None]] = set()
        self.endings = Endings()

    async def answer(self, exchange: AdmittedRequest, lake: str, sql: str) -> None:
        """Answers with the records of a SELECT; raises its error if that comes before the first records."""
        asked = self._start(exchange, lake, sql)
        timed = asyncio.ensure_future(asked.running.end_in_time(asked.begun, asked.done))
        self.endings.note(asked.caller.name, QueryEnding(asked.id, "running"))
        try:
            await conversation.while_there(exchange.receive, self._sent(exchange, asked))
        finally:
            timed.cancel()
            self._note(asked)
            asked.spool.release()
            if not asked.done.done():
                self._keep(asked.running.end(asked.done, "its client has gone"))

    def _start(self, exchange: AdmittedRequest, lake: str, sql: str) -> _Asked:
        """Starts the query in a thread of its lake.  Raises Problem if the client accepts no format of answers,
        Unavailable if too many queries wait."""
        format = answer_format(exchange.header("accept"))
        spool, begun = AnswerSpool(self._disk, most=self._bounds.answer), asyncio.Event()
        running = RunningQuery(
            sql, format.name, self._sql_limits, self._bounds.seconds, self._bounds.rows, spool, QueryStop()
        )
        loop = asyncio.get_running_loop()

        def run() -> None:
            loop.call_soon_threadsafe(begun.set)
            running.run(lambda: self._lakes.shown(lake)[0])

        done = self._threads[lake].start(run)
        return _Asked(secrets.token_hex(8), exchange.caller, format, running, begun, done)

    async def _sent(self, exchange: AdmittedRequest, asked: _Asked) -> None:
        spool = asked.spool
        try:
            await asyncio.wait_for(asked.begun.wait(), WAIT_SECONDS)
        except TimeoutError as error:
            raise Problem(503, f"no thread was free for {WAIT_SECONDS:g} s; ask again in a minute") from error
        await spool.wait_for(self._bounds.answer + 1 if exchange.ends_by_closing else HELD)
        if spool.error is not None:
            raise spool.error
        headers = {"Content-Type": asked.format.media_type, QUERY_ID: asked.id}
        if spool.is_whole:
            headers["Content-Length"] = str(spool.size)
        await conversation.begin(exchange.send, 200, headers)
        asked.is_sent = await conversation.stream(exchange.send, spool, most=self._bounds.transfer)

    def _note(self, asked: _Asked) -> None:
        """Remember how the query ended."""
        spool = asked.spool
        if asked.is_sent:
            ending = QueryEnding(asked.id, "done", spool.size)
        else:
            detail = "its client has gone, or took the answer too slowly"
            if spool.error is not None:
                detail = self._lakes.without_users(str(problem_of(spool.error)))
            ending = QueryEnding(asked.id, "failed", spool.size, " ".join(detail.split()))
        self.endings.note(asked.caller.name, ending)

    def _keep(self, work: Awaitable[None]) -> None:
        """Keeps a reference to the work, because the event loop itself has only a weak one."""
        task = asyncio.ensure_future(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
