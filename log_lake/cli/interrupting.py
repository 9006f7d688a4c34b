"""Lets SIGTERM end the commands that run until they are interrupted, such as servers."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def ended_by_signal() -> Iterator[None]:
    """Returns a context in which SIGTERM ends the command as Ctrl-C does, so that it removes its files."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
