"""Shows on standard error which call a command waits for, once a store has not answered for a while.

Nothing is shown if standard error is no terminal.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isfinite

from log_lake.console.sink import print_message
from log_lake.stores.patience import Wait, all_waits

SHOWN_AFTER = 5.0
"""Seconds of waiting, after which a person wonders."""

_LOOKS = 0.5


@contextmanager
def shown_waiting() -> Iterator[None]:
    """Returns a context in which the terminal shows calls that wait for a store."""
    if not sys.stderr.isatty():
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=_show, args=(ended, print_message), name="waiting", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _show(ended: threading.Event, say: Callable[[str], None]) -> None:
    told: set[Wait] = set()
    while not ended.wait(_LOOKS):  # bounded by the command
        waits = all_waits()
        told &= set(waits)
        line = next_line(waits, told)
        if line:
            say(line)


def next_line(waits: list[Wait], told: set[Wait]) -> str:
    """Returns the line about the oldest of the waiting calls; "" if that call is young, or if `told` already has
    it."""
    oldest = waits[0] if waits else None
    if oldest is None or oldest in told or oldest.waited() < SHOWN_AFTER:
        return ""
    told.add(oldest)
    left = oldest.left()
    end = f"gives up after {left:.0f} s more" if isfinite(left) else "nothing ends a call of the file system"
    asked = f", sent {oldest.sent} times" if oldest.sent > 1 else ""
    return f"lake: waits for {oldest.what}: not served for {oldest.waited():.0f} s{asked}; {end}\n"
