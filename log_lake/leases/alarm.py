"""Calls functions at their times, by one thread for all.

A thread for each load would add a tenth to the time of a small append in memory.  Here a load costs an entry in
a dictionary, which does not wake the thread.  The thread ends when it wakes and nothing is left.  Used by
`holding`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Hashable

Due = tuple[float, Callable[[], object]]


class Alarm:
    """Functions to call later, by key; safe to use from several threads, and after a fork."""

    def __init__(self) -> None:
        self._reset()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset)  # the child does not have the thread

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._due: dict[Hashable, Due] = {}
        self._wakes: float | None = None

    def set(self, key: Hashable, seconds: float, call: Callable[[], object]) -> None:
        """Calls the function after this many seconds, unless it is cancelled before; the function must be
        quick."""
        at = time.monotonic() + seconds
        with self._changed:
            self._due[key] = at, call
            if self._wakes is None:
                self._wakes = at
                threading.Thread(target=self._run, name="lease-alarm", daemon=True).start()
            elif at < self._wakes:
                self._wakes = at
                self._changed.notify()

    def cancel(self, key: Hashable) -> None:
        """Cancels the call of the function, unless the call has begun."""
        with self._changed:
            self._due.pop(key, None)

    def _run(self) -> None:
        while self._wakes is not None:  # bounded by what is due: each turn waits for the next
            with self._changed:
                self._changed.wait(max(0.0, self._wakes - time.monotonic()))
                now = time.monotonic()
                due = self._due.copy()  # a finalizer that runs here may cancel
                ready = sorted(
                    (key for key, (at, _) in due.items() if at <= now), key=lambda key: due[key][0]
                )
                calls = [self._due.pop(key)[1] for key in ready if key in self._due]
                left = min((at for at, _ in self._due.copy().values()), default=None)
                self._wakes = left
            for call in calls:
                call()
            if left is None:
                return


ALARM = Alarm()
"""The alarm of this process."""
