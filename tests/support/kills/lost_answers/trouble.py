"""Makes trouble for clients of a store: a proxy loses answers and requests at random, and kills a client in the
middle of a request."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable

from tests.support.servers.proxy import ALWAYS, Answer, Forward, Proxy, Request, everything

SLOW_DOWN = Answer(
    503,
    b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>reduce your rate</Message></Error>",
    (("Content-Type", "application/xml"),),
)
INTERNAL = Answer(
    500,
    b"<?xml version='1.0'?><Error><Code>InternalError</Code><Message>try again</Message></Error>",
    (("Content-Type", "application/xml"),),
)


class Trouble:
    """What the proxy does to a share of all requests; it passes the others on.

    `kill_at(number, kill, phase)` kills a client at one of its next requests, or of its next writes: `before`
    the server gets it, `after` the server has answered it, or `late`: the server gets it once the client is
    gone.
    """

    def __init__(self, chance: random.Random, *, share: float) -> None:
        self.chance, self.share = chance, share
        self.done: Counter[str] = Counter()
        self._guard = threading.Lock()
        self._left = 0
        self._kill: Callable[[], None] = lambda: None
        self._phase = ""
        self._only_writes = False
        self._underway = 0

    def kill_at(self, number: int, kill: Callable[[], None], phase: str, *, only_writes: bool) -> None:
        with self._guard:
            self._left, self._kill, self._phase, self._only_writes = number, kill, phase, only_writes

    def forget_kill(self) -> bool:
        """Drops the kill that was asked for. Returns whether it had not happened yet."""
        with self._guard:
            waits, self._left = self._left > 0, 0
            return waits

    def wait_until_idle(self, seconds: float = 60.0) -> None:
        """Waits until every request that was sent has reached the server, and was done or refused."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with self._guard:
                if not self._underway:
                    return
            time.sleep(0.01)
        raise AssertionError("a request is under way for ever")

    def __call__(self, request: Request, forward: Forward) -> Answer | None:
        with self._guard:
            self._underway += 1
            counts = not self._only_writes or request.method not in ("GET", "HEAD")
            kills = counts and self._left == 1
            self._left = max(0, self._left - counts)
            deed = self._deed() if not kills else f"kill {self._phase}"
            self.done[deed] += 1
        try:
            return self._do(deed, request, forward)
        finally:
            with self._guard:
                self._underway -= 1

    def _deed(self) -> str:
        if self.chance.random() >= self.share:
            return "pass"
        deeds = ("drop", "drop", "reset", "500", "503", "500 though done", "slow", "late")
        return self.chance.choice(deeds)

    def _do(self, deed: str, request: Request, forward: Forward) -> Answer | None:
        match deed:
            case "pass":
                return forward(request)
            case "drop":
                forward(request)
                return None
            case "reset" | "500" | "503":
                return {"reset": None, "500": INTERNAL, "503": SLOW_DOWN}[deed]
            case "500 though done":
                forward(request)
                return INTERNAL
            case "slow":
                time.sleep(self.chance.uniform(0.2, 1.5))
                return forward(request)
            case "late":
                self._later(request, forward, self.chance.uniform(0.05, 1.0))
                return None
            case "kill before":
                self._kill()
                return None
            case "kill after":
                forward(request)
                self._kill()
                return None
            case "kill late":
                self._kill()
                self._later(request, forward, self.chance.uniform(0.05, 1.0))
                return None
        raise AssertionError(deed)

    def _later(self, request: Request, forward: Forward, seconds: float) -> None:
        """Passes the request on to the server when nobody waits for its answer any more."""
        with self._guard:
            self._underway += 1

        def arrive() -> None:
            try:
                time.sleep(seconds)
                forward(request)
            finally:
                with self._guard:
                    self._underway -= 1

        threading.Thread(target=arrive, daemon=True).start()


def troubled(proxy: Proxy, trouble: Trouble) -> None:
    """Makes the proxy do from now on what the trouble says."""
    proxy.on(everything, trouble, times=ALWAYS)
