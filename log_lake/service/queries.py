"""One query that reads, in a thread: it writes its answer into a spool, within the limits.

It ends early if its client is gone, or if its time is over.  Then DuckDB is interrupted, and everything that
the query uses is freed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import pyarrow as pa

from lake_core.errors import InvalidInput, LakeError
from log_lake.console.output import write_to
from log_lake.lake import Lake
from log_lake.service.problems import BROKEN, ClientGone, Problem
from log_lake.service.spool import AnswerSpool
from log_lake.system_tables import query
from log_lake.system_tables.engine import SqlLimits
from log_lake.system_tables.stopping import AGAIN_SECONDS, QueryStop

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunningQuery:
    """A statement, the format of its answer, its limits, the spool of its answer, and the means to end it."""

    sql: str
    format: str
    sql_limits: SqlLimits
    seconds: float
    rows: int
    spool: AnswerSpool
    stop: QueryStop

    def run(self, opened: Callable[[], Lake]) -> None:
        """Writes the answer; never raises, because errors go into the spool."""
        error: Exception | None = None
        try:
            self.stop.check()
            with query(opened(), self.sql, limits=self.sql_limits, stop=self.stop) as reader:
                write_to(cast(BinaryIO, self.spool), self._bounded(reader), reader.schema, self.format)
        except (LakeError, ClientGone) as raised:
            error = raised
        except Exception:
            log.exception("a query has failed by a fault of the server")
            error = Problem(500, BROKEN)
        self.spool.end(error)

    def _bounded(self, reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
        rows = 0
        for batch in reader:
            self.stop.check()
            rows += batch.num_rows
            if rows > self.rows:
                raise InvalidInput(
                    f"query: the answer has more than the {self.rows:,} records that this server allows; add a "
                    "WHERE or a LIMIT"
                )
            yield pa.Table.from_batches([batch])

    async def end_in_time(self, begun: asyncio.Event, done: Future[None]) -> None:
        """Ends the query when its time is over."""
        await begun.wait()
        await asyncio.sleep(self.seconds)
        await self.end(
            done,
            f"took longer than the {self.seconds:g} s that this server allows; read fewer columns, or a smaller "
            "range of keys",
        )

    async def end(self, done: Future[Any], why: str) -> None:
        """Ends the query for the reason `why`; returns when it has ended."""
        done.cancel()  # one that waits for its thread
        while not done.done():
            self.stop.stop(why)
            await asyncio.sleep(AGAIN_SECONDS)
