"""What all tests share: nothing but what pytest is told here."""

from __future__ import annotations

import signal

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Processes that tests start can be interrupted, also where pytest itself was started to ignore that.

    A process below nohup, or in the background of a script, ignores SIGINT, and its children inherit it.  A handler
    that does nothing ignores as well, and is not inherited.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda *_: None)
