"""Answers requests that change a lake, in threads for writes.  A write continues if its caller is gone.

So a transaction is there as a whole or not at all, and a request with the same token gets its result later.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import asdict
from functools import partial
from typing import Any

from log_lake.lake import Lake
from log_lake.service import receiving, writes
from log_lake.service.admitted import AdmittedRequest
from log_lake.service.formats import URIS, body_format, media_type
from log_lake.service.handing_over import hand_over
from log_lake.service.limits import BODIES, MAX_OPEN, WAIT_SECONDS, WRITES, ServiceLimits
from log_lake.service.problems import Problem
from log_lake.service.routes import Load, PoolToCreate, PoolToDrop, Query
from log_lake.service.spool import SpoolDisk
from log_lake.system_tables.engine import SqlLimits
from log_lake.view.lakes import Lakes
from log_lake.view.work import LakeThreads


class _Body:
    """The file of one body, in a folder of its own, and its share of the disk."""

    def __init__(self, disk: SpoolDisk) -> None:
        self._disk, self._size = disk, 0
        self._folder = tempfile.TemporaryDirectory(prefix="lake-body-")
        self.path = os.path.join(self._folder.name, "body")

    def take(self, size: int) -> None:
        """Reserves disk for so many bytes.  Raises Unavailable if others fill the disk."""
        self._disk.take(size)
        self._size += size

    def delete(self) -> None:
        """Deletes the file, once, when no thread reads it any more."""
        self._folder.cleanup()
        self._disk.give(self._size)


class WriteAnswers:
    """Answers writes to several lakes; used only in the event loop.

    `environ`: the environment of the server, whose variables may allow callers to name more files.
    """

    def __init__(
        self,
        lakes: Lakes,
        bounds: ServiceLimits,
        sql_limits: SqlLimits,
        *,
        disk: SpoolDisk,
        environ: Mapping[str, str],
    ) -> None:
        self._disk = disk
        self._lakes, self._bounds, self._sql_limits, self._environ = lakes, bounds, sql_limits, environ
        self._threads = {
            choice.key: LakeThreads(threads=WRITES, max_pending=MAX_OPEN, max_seconds=WAIT_SECONDS)
            for choice in lakes.choices
        }
        self._bodies = asyncio.Semaphore(BODIES)

    async def statement(self, exchange: AdmittedRequest, asked: Query, sql: str) -> None:
        """Runs a statement that changes a pool, and answers with its result."""
        if not asked.token and not asked.dry_run:
            raise Problem(
                400,
                "token: a statement that changes a pool needs one: add ?token=TEXT, the same if you ask again",
            )
        seconds = self._bounds.seconds if asked.dry_run else self._bounds.write_seconds
        run = partial(writes.run_statement, sql=sql, asked=asked, limits=self._sql_limits, seconds=seconds)
        await exchange.done(asdict(await self._result(self._start(exchange, asked.lake, run), asked.lake)))

    async def create(self, exchange: AdmittedRequest, asked: PoolToCreate) -> None:
        """Creates a pool, and answers with the result."""
        run = partial(writes.create_pool, asked=asked)
        await exchange.done(await self._result(self._start(exchange, asked.lake, run), asked.lake), 201)

    async def drop(self, exchange: AdmittedRequest, asked: PoolToDrop) -> None:
        """Drops a pool, and answers with the result."""
        run = partial(writes.drop_pool, asked=asked)
        await exchange.done(await self._result(self._start(exchange, asked.lake, run), asked.lake))

    async def load(self, exchange: AdmittedRequest, asked: Load) -> None:
        """Loads the body, or the files that it lists, or leaves the body to the ingest agent."""
        content_type = exchange.header("content-type")
        is_later = "respond-async" in exchange.header("prefer").lower()
        if media_type(content_type) != URIS:
            await self._load_body(exchange, asked, body_format(content_type, asked.format), is_later=is_later)
            return
        if is_later:
            raise Problem(
                400,
                "Prefer: respond-async is for a body; the ingest agent finds files by itself; leave it out",
            )
        text = await exchange.text("a list of URIs")
        run = partial(writes.load_uris, load=asked, text=text, environ=self._environ)
        await exchange.done(asdict(await self._result(self._start(exchange, asked.lake, run), asked.lake)))

    async def _load_body(
        self, exchange: AdmittedRequest, asked: Load, format: str, *, is_later: bool
    ) -> None:
        body = _Body(self._disk)

        def later(lake: Lake) -> Any:
            return hand_over(lake.pool(asked.pool), asked, path=body.path, format=format)

        now = partial(writes.load_body, load=asked, path=body.path, format=format)
        try:
            await self._receive(exchange, body)
            future = self._start(exchange, asked.lake, later if is_later else now)
        except BaseException:
            body.delete()
            raise
        future.add_done_callback(lambda _: body.delete())  # the write may outlast this request
        result = await self._result(future, asked.lake)
        await exchange.done(result if is_later else asdict(result), 202 if is_later else 200)

    async def _receive(self, exchange: AdmittedRequest, body: _Body) -> None:
        try:
            await asyncio.wait_for(self._bodies.acquire(), WAIT_SECONDS)
        except TimeoutError as error:
            raise Problem(503, f"{BODIES} bodies are being received; send it again in a minute") from error
        try:
            with open(body.path, "wb") as file:
                length = exchange.header("content-length")
                await receiving.keep(
                    exchange.receive,
                    file,
                    most=self._bounds.body,
                    length=length,
                    seconds=self._bounds.transfer,
                    take=body.take,
                )
        finally:
            self._bodies.release()

    def _start(self, exchange: AdmittedRequest, lake: str, run: Callable[[Lake], Any]) -> Future[Any]:
        def work() -> Any:
            return run(writes.lake_for(exchange.caller, self._lakes.shown(lake)[0]))

        return self._threads[lake].start(work)

    async def _result(self, future: Future[Any], lake: str) -> Any:
        return await self._threads[lake].result_of(future)
