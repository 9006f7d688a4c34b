"""Reading lakes beside Airflow's own requests, without keeping these waiting.

Airflow's server has one pool of threads for all routes that are not async.  A store that does not answer would
hold them one after another, and Airflow would stand still.  So the view reads in threads of its own, a few for each
lake, and refuses what would wait too long.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from lake_core.errors import Unavailable

T = TypeVar("T")

THREADS = 4
"""Requests that read at once; the table of all pools reads with more threads below."""
MAX_PENDING = 32
"""Requests that read or wait; the next one is refused."""


class Work:
    """The threads for one lake."""

    def __init__(self, *, threads: int = THREADS, max_pending: int = MAX_PENDING) -> None:
        self._threads = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="lake-view")
        self._max_pending, self._pending = max_pending, 0
        self._changing = threading.Lock()

    async def run(self, call: Callable[[], T]) -> T:
        """The answer of the call.  Raises what it raises, and Unavailable if too many are pending."""
        with self._changing:
            if self._pending >= self._max_pending:
                raise Unavailable(
                    f"the view is busy with this lake: {self._pending} requests are pending; load the page again "
                    "in a minute"
                )
            self._pending += 1
        future = self._threads.submit(call)
        future.add_done_callback(self._ended)  # a page that has gone away does not end the reading
        return await asyncio.wrap_future(future)

    def _ended(self, _: object) -> None:
        with self._changing:
            self._pending -= 1
