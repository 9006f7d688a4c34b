"""A limit for waiting on a store that does not answer: one budget of seconds for all repeats of a request.

The client libraries repeat unanswered requests, the journal repeats its calls, and then the next step asks
again. No layer limits all of them together: a store that accepts and never answers was asked 72 times, for 20
minutes.  So each store has one `Patience`, and each of its calls is a `Wait`.

- The time runs from the begin of the first call that the store does not serve.  It goes on through all calls
  that begin within `APART` seconds of such a call, until the store serves one.  So work of any length goes on
  as long as the store serves, but a store in trouble ends a command after `seconds` in all.
- A call of several requests, such as a long listing, counts from the last one that was answered.
- A call may take a second more for each `SLOWEST` bytes that it sends or is promised.  So a slow line does not
  end a large request, and a store that answers a byte at a time does not hold a small one.
- When the time is over, the requests of the call are cancelled, and it fails.  For a while (`rest`) every
  further call fails before anything is sent: repeats and clean-up then end at once.  After that it has the
  whole budget again.

`seconds` comes from the option `timeout` of a store, from `lasting` (the command's --timeout), or from the
variable LAKE_STORE_TIMEOUT.  Calls of the operating system, such as those to a file server that hangs, cannot
be bounded.  `waits` only shows them.

`failures` makes a wait of each call, `log_lake.stores.sends` reports requests to it, and `cli.waiting` shows
waits to people.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from lake_core.errors import InvalidInput, LakeError, Unavailable
from lake_core.store.meter import Meter
from lake_core.values.units import unit_seconds

if TYPE_CHECKING:
    import asyncio

SECONDS = 60.0
"""The default budget in seconds: longer than a store needs to fail over, shorter than a person waits."""

APART = 5.0
"""If less than these seconds lie between two failed calls, they count as one trouble. It is more than any pause
between repeats."""

SLOWEST = 256 << 10
"""The fewest bytes per second (2 Mbit/s) at which a line counts as working: 50 MB, the largest part of an upload,
may take 190 s more."""

TOO_MANY = 429
"""The HTTP status of a store that refuses for now."""

UNTOLD = 9
"""An answer that does not state its length may take this many budgets more."""

_REST_PART, _SHORTEST_REST = 0.1, 2.0

_SECONDS = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(s|m|h)?")

VARIABLE = "LAKE_STORE_TIMEOUT"

_LASTING: ContextVar[float | None] = ContextVar("lake_store_timeout", default=None)
_ALL: WeakSet[Patience] = WeakSet()
_CURRENT: ContextVar[Wait | None] = ContextVar("lake_wait", default=None)


def parse_seconds(text: object, *, what: str) -> float:
    """Returns the seconds that a text such as 60, 90s, 5m, 1h means; `what` names the option in the error.  Raises
    InvalidInput."""
    match = _SECONDS.fullmatch(str(text).strip())
    seconds = float(match[1]) * unit_seconds(match[2]) if match else 0.0
    if not seconds:
        raise InvalidInput(f"{what}={text!r}: write a time above 0, as in 60, 90s or 5m")
    return seconds


def given_seconds() -> float:
    """Returns the budget from the options or the environment, in seconds.  Raises InvalidInput."""
    lasting = _LASTING.get()
    if lasting is not None:
        return lasting
    text = os.environ.get(VARIABLE, "")
    return parse_seconds(text, what=VARIABLE) if text else SECONDS


@contextlib.contextmanager
def lasting(seconds: float | None) -> Iterator[None]:
    """Returns a context in which stores are opened with this budget of seconds; None changes nothing."""
    token = _LASTING.set(_LASTING.get() if seconds is None else seconds)
    try:
        yield
    finally:
        _LASTING.reset(token)


@dataclass(eq=False)
class Wait:
    """One call of a store: `what` it asks for, its begin (by the clock of `patience`), and its outcome.

    `more`: seconds that it may take beyond the budget.  `is_cut`: its requests were cancelled.
    """

    patience: Patience
    what: str
    begun: float
    more: float = 0.0
    sent: int = 0
    is_cut: bool = False
    is_ended: bool = False
    _tasks: list[asyncio.Task[Any]] = field(default_factory=list)

    def left(self) -> float:
        """Returns how many seconds the call may still take."""
        return self.patience.left(self)

    def waited(self) -> float:
        """Returns how many seconds ago the call began."""
        return self.patience.clock() - self.begun

    def failed(self) -> Unavailable:
        """Returns the error of a call that was cut."""
        return self.patience.spent(self.what, sent=self.sent)

    # --- in the event loop of the client

    def begin_request(self) -> None:
        """Watches the task of a new request, and ends the task when the time is over."""
        import asyncio  # only clients of servers have a loop, and have loaded it

        task = asyncio.current_task()
        if task is None or self.is_ended:
            return
        if self.is_cut:
            task.cancel()
        elif task not in self._tasks:
            self._tasks.append(task)
            if len(self._tasks) == 1:
                self._look(task.get_loop())

    def send_chunk(self, size: int) -> None:
        """Allows more time for bytes that are sent."""
        self.more += size / SLOWEST

    def answer(self, status: int, size: int | None) -> None:
        """Restarts the count at a successful answer, and allows time for its bytes; `size` is None if the answer
        does not state it."""
        if status < 500 and status != TOO_MANY:
            self.begun = self.patience.clock()
        self.more += self.patience.seconds * UNTOLD if size is None else size / SLOWEST

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.is_ended:
            return
        left = self.left()
        if left > 0:
            loop.call_later(left, self._look, loop)
            return
        self.is_cut = True
        for task in self._tasks:
            task.cancel()


class Patience:
    """The time budget of one store: `seconds`. `clock` must never go back. Safe to use from several threads."""

    def __init__(self, seconds: float = SECONDS, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds, self.clock = seconds, clock
        self.meter: Meter | None = None
        """Of the store whose budget it is, if that counts what it sends."""
        self.rest = max(_SHORTEST_REST, seconds * _REST_PART) if math.isfinite(seconds) else 0.0
        self._lock = threading.RLock()  # a finalizer that runs within a call of this may call the store
        self._waits: set[Wait] = set()
        self._since: float | None = None
        self._last = self._resting_until = -math.inf
        _ALL.add(self)

    def begin(self, what: str) -> Wait:
        """Begins a call. Raises Unavailable if the budget was used up a short time ago."""
        now = self.clock()
        with self._lock:
            if now < self._resting_until:
                raise self.spent(what, sent=0)
            if self._since is not None and now - self._last > APART:
                self._since = None
            wait = Wait(self, what, now)
            self._waits.add(wait)
        return wait

    def end(self, wait: Wait, *, served: bool) -> None:
        """Ends a call, and notes whether the store answered it."""
        now = self.clock()
        with self._lock:
            wait.is_ended = True
            self._waits.discard(wait)
            if served and not wait.is_cut:
                self._since = None
                return
            since = self._since
            since = wait.begun if since is None else min(since, wait.begun)
            self._since, self._last = since, now
            if wait.is_cut or now - since >= self.seconds:
                self._since, self._resting_until = None, now + self.rest

    def left(self, wait: Wait) -> float:
        """Returns how many seconds a call may still take."""
        since = self._since
        begun = wait.begun if since is None else min(since, wait.begun)
        return begun + self.seconds + wait.more - self.clock()

    def waits(self) -> list[Wait]:
        """Returns the calls under way, oldest first."""
        with self._lock:
            return sorted(self._waits.copy(), key=lambda wait: wait.begun)

    def spent(self, what: str, *, sent: int) -> Unavailable:
        """Returns the error for a call that has no time left."""
        asked = "" if not sent else f" ({sent} request{'s' if sent > 1 else ''} sent, none served)"
        return Unavailable(
            f"{what}: the store served nothing for {self.seconds:g} s{asked}; look at the store and the network, "
            f"then try again. To wait longer: --timeout, or {VARIABLE}"
        )


@functools.cache
def _shared(seconds: float) -> Patience:
    return Patience(seconds)


def of_sources() -> Patience:
    """Returns the budget for reading source files in buckets."""
    return _shared(given_seconds())


def current() -> Wait | None:
    """Returns the wait of the calling thread or task; None if it is in no call."""
    return _CURRENT.get()


def _is_served(error: BaseException) -> bool:
    """Whether the store served a call that failed with this error: it has no such object, or the lake refuses the
    answer."""
    return isinstance(error, FileNotFoundError) or (
        isinstance(error, LakeError) and not isinstance(error, Unavailable)
    )


class Waiting:
    """A context that makes its block one call of a store.

    It raises Unavailable if the call is cut, whatever the block raised or returned, because a client may take
    the end of its requests for an empty answer.  `is_served` decides whether an error still counts as an answer
    of the store.
    """

    __slots__ = ("_is_served", "_patience", "_token", "_what", "wait")

    def __init__(
        self, patience: Patience, what: str, *, is_served: Callable[[BaseException], bool] = _is_served
    ) -> None:
        self._patience, self._what, self._is_served = patience, what, is_served

    def __enter__(self) -> Wait:
        self.wait = self._patience.begin(self._what)
        self._token = _CURRENT.set(self.wait)
        return self.wait

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        _CURRENT.reset(self._token)
        served = error is None or self._is_served(error)
        self._patience.end(self.wait, served=served)
        if self.wait.is_cut and (error is None or isinstance(error, Exception)):
            raise self.wait.failed() from error


def all_waits() -> list[Wait]:
    """Returns the calls of all stores of this process that are under way, oldest first."""
    return sorted((wait for one in list(_ALL) for wait in one.waits()), key=lambda wait: wait.begun)
