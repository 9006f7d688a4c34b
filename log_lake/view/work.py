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
from functools import partial
from typing import Any, TypeVar

from lake_core.errors import Unavailable

T = TypeVar("T")

THREADS = 4
"""How many requests read at the same time; the table of all pools uses more threads of its own."""
MAX_PENDING = 32
"""The most requests that read or wait; further ones are refused."""
MAX_SECONDS = 30.0
"""The most seconds of an answer; after that, the page is told that the lake does not answer."""


class LakeThreads:
    """The threads for one lake: never more than `threads`, even if the store answers none of them.

    A call that waits has no thread yet; it is dropped if its caller has stopped waiting.  The threads are
    daemon threads, because a store that does not answer must not prevent Airflow's server from ending.
    """

    def __init__(
        self, *, threads: int = THREADS, max_pending: int = MAX_PENDING, max_seconds: float = MAX_SECONDS
    ) -> None:
        self._threads, self._max_pending, self._max_seconds = threads, max_pending, max_seconds
        self._waiting: dict[Future[Any], Callable[[], Any]] = {}
        self._running = 0
        self._changing = threading.Lock()

    async def run(self, call: Callable[[], T]) -> T:
        """Returns the result of the call.  Raises what the call raises, and Unavailable if too many calls are
        pending, or if it takes too long."""
        future = self.start(call)
        try:
            return await self.result_of(future)
        finally:
            future.cancel()  # one that has not begun yet; one that has begun goes on

    def start(self, call: Callable[[], T]) -> Future[T]:
        """Starts the call as soon as a thread is free. Raises Unavailable if too many calls are pending."""
        future: Future[T] = Future()
        with self._changing:
            pending = len(self._waiting) + self._running
            if pending >= self._max_pending:
                raise Unavailable(
                    f"the server is busy with this lake: {pending} requests wait; ask again in a minute"
                )
            self._waiting[future] = call
            is_free = self._running < self._threads
            self._running += is_free
        future.add_done_callback(self._drop)
        if is_free:
            threading.Thread(target=self._work, name="lake-view", daemon=True).start()
        return future

    async def result_of(self, future: Future[T]) -> T:
        """Returns the result of a call that was started; the call continues even if its caller has given up.

        Raises what the call raises, and Unavailable if it takes too long.
        """
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), self._max_seconds)
        except TimeoutError as error:
            raise Unavailable(
                f"the lake did not answer within {self._max_seconds:g} s; ask again in a minute"
            ) from error

    def _work(self) -> None:
        """Runs the waiting calls, then ends."""
        while (call := self._next()) is not None:
            call()

    def _next(self) -> Callable[[], None] | None:
        with self._changing:
            future = next(iter(self._waiting), None)
            if future is None:
                self._running -= 1
                return None
            return partial(_do, future, self._waiting.pop(future))

    def _drop(self, future: Future[Any]) -> None:
        with self._changing:
            self._waiting.pop(future, None)


def _do(future: Future[T], call: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(call())
    except BaseException as error:
        future.set_exception(error)
