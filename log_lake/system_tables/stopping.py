"""Ends a query from another thread, because its client is gone or its time is over."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lake_core.errors import InvalidInput


class QueryStop:
    """Lets a caller end a query; safe to use from several threads.

    An interrupt between two statements of an engine is lost.  So `stop` may be called again, until the query
    has ended.
    """

    def __init__(self) -> None:
        self.why = ""
        self._interrupt: Callable[[], object] | None = None
        self._changing = threading.Lock()

    def stop(self, why: str) -> None:
        """Ends the query, now or as soon as it begins.  `why` goes into its error; the first reason stays."""
        with self._changing:
            self.why = self.why or why
            if self._interrupt is not None:
                self._interrupt()

    def check(self) -> None:
        """Raises InvalidInput if the query was stopped."""
        if self.why:
            raise InvalidInput(f"query: {self.why}")

    @contextmanager
    def interrupting(self, interrupt: Callable[[], object]) -> Iterator[None]:
        """Returns a context in which `stop` calls `interrupt`."""
        with self._changing:
            self._interrupt = interrupt
        try:
            yield
        finally:
            with self._changing:
                self._interrupt = None


AGAIN_SECONDS = 0.25
"""How many seconds to wait until a query that has not ended is interrupted again."""


@contextmanager
def stopped_after(seconds: float, why: str) -> Iterator[QueryStop]:
    """Yields a `QueryStop` that stops the queries of the block after so many seconds."""
    stop, done = QueryStop(), threading.Event()

    def wait() -> None:
        patience = seconds
        while not done.wait(patience):
            stop.stop(why)
            patience = AGAIN_SECONDS

    thread = threading.Thread(target=wait, name="lake-stop", daemon=True)
    thread.start()
    try:
        yield stop
    finally:
        done.set()
        thread.join()
