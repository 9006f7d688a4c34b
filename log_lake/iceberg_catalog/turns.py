"""Turns: one call at a time for each key, and requests that wait share the next one.

A call answers only requests that came before it began.  So if many requests come at once, two calls answer all
of them: the one for the first request, and the next one.  Requests that wait hold no thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class _Waiting(Generic[T]):
    start: Callable[[], Future[T]]
    result: Future[T] = field(default_factory=Future)


class Turns(Generic[T]):
    """The calls that run, and those that wait for their turn, by key.  A key is kept only while a call runs for
    it.  Safe to use from several threads."""

    def __init__(self) -> None:
        self._running: set[Hashable] = set()
        self._next: dict[Hashable, _Waiting[T]] = {}
        self._changing = threading.Lock()

    def join(self, key: Hashable, start: Callable[[], Future[T]]) -> Future[T]:
        """Returns the result of a call for the key that begins after this moment.

        `start` begins a call; it is used if no other request waits for the same key.  Raises what it raises.
        """
        with self._changing:
            if key in self._running:
                return self._next.setdefault(key, _Waiting(start)).result
            self._running.add(key)
        return self._begun(key, start)

    def _begun(self, key: Hashable, start: Callable[[], Future[T]]) -> Future[T]:
        try:
            future = start()
        except BaseException:
            self._end(key)
            raise
        future.add_done_callback(lambda _: self._end(key))
        return future

    def _end(self, key: Hashable) -> None:
        """Ends the turn; begins the next one, if a request waits for it."""
        with self._changing:
            waiting = self._next.pop(key, None)
            if waiting is None:
                self._running.discard(key)
                return
        try:
            future = self._begun(key, waiting.start)
        except BaseException as error:
            waiting.result.set_exception(error)
        else:
            future.add_done_callback(lambda done: _pass_on(done, waiting.result))


def _pass_on(done: Future[T], to: Future[T]) -> None:
    error = done.exception()
    if error is not None:
        to.set_exception(error)
    else:
        to.set_result(done.result())
