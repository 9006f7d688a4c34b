"""Reads lakes for the page, without delaying Airflow's own requests.

Airflow's server has one pool of threads for all routes that are not async.  A store that does not answer would
block one thread after another, until Airflow answers nothing.  So the view reads in its own threads, a few for
each lake, and refuses requests that would wait too long.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from lake_core.errors import Unavailable

T = TypeVar("T")

THREADS = 4
"""Requests that read at once; the table of all pools reads with more threads below."""
MAX_PENDING = 32
"""Requests that read or wait; the next one is refused."""


MAX_SECONDS = 30.0
"""For an answer: then the page is told that the lake does not answer."""


class LakeThreads:
    """The threads for one lake.

    They are daemon threads: a store that does not answer must not keep Airflow's server from ending.
    """

    def __init__(
        self, *, threads: int = THREADS, max_pending: int = MAX_PENDING, max_seconds: float = MAX_SECONDS
    ) -> None:
        self._slots = threading.Semaphore(threads)
        self._max_pending, self._pending, self._max_seconds = max_pending, 0, max_seconds
        self._changing = threading.Lock()

    async def run(self, call: Callable[[], T]) -> T:
        """The result of the call.  Raises what it raises; Unavailable if too many calls are pending, or if it
        takes too long."""
        with self._changing:
            if self._pending >= self._max_pending:
                raise Unavailable(
                    f"the server is busy with this lake: {self._pending} requests wait; ask again in a minute"
                )
            self._pending += 1
        future: Future[T] = Future()
        future.add_done_callback(self._ended)  # a page that has gone away does not end the reading
        threading.Thread(target=self._do, args=(future, call), name="lake-view", daemon=True).start()
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), self._max_seconds)
        except TimeoutError as error:
            future.cancel()  # one that has not begun yet
            raise Unavailable(
                f"the lake did not answer within {self._max_seconds:g} s; ask again in a minute"
            ) from error

    def _do(self, future: Future[T], call: Callable[[], T]) -> None:
        with self._slots:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(call())
            except BaseException as error:
                future.set_exception(error)

    def _ended(self, _: object) -> None:
        with self._changing:
            self._pending -= 1
