"""Actors as greenlets: exactly one runs, until it asks the store for something or sleeps.

The next one is chosen by the seed, so that a run is replayed by its seed alone.  An actor may stall for any
time, and may be killed where it waits: then nothing of it runs any more, no `finally` and no `except`.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from greenlet import GreenletExit, getcurrent, greenlet

LONGEST_STALL = 60


@dataclass
class Actor:
    """One process.  `stalled` steps it will not run."""

    name: str
    thread: greenlet
    stalled: int = 0


@dataclass
class Scheduler:
    """Runs actors until all have ended; at most `most_steps` steps."""

    chance: random.Random
    most_steps: int = 20_000
    stalls: float = 0.02
    longest_stall: int = LONGEST_STALL
    steps: int = 0
    running: Actor | None = None
    actors: list[Actor] = field(default_factory=list)
    after_step: Callable[[], None] = lambda: None
    over: bool = False
    _killed: list[Actor] = field(default_factory=list)
    _main: greenlet = field(default_factory=getcurrent)
    _thread: int = field(default_factory=threading.get_ident)

    def start(self, name: str, run: Callable[[], None]) -> Actor:
        """A new actor, to be run from now on."""
        actor = Actor(name, greenlet(run, parent=self._main))
        self.actors.append(actor)
        return actor

    @property
    def is_elsewhere(self) -> bool:
        """Whether the caller runs in a thread of its own, which the actor that started it waits for."""
        return threading.get_ident() != self._thread

    def pause(self) -> None:
        """Called by an actor: others may run now."""
        if self.over:
            raise GreenletExit
        if getcurrent() is not self._main:
            self._main.switch()

    def kill(self, actor: Actor) -> None:
        """The process is gone, wherever it was: it is never switched to again."""
        self.actors.remove(actor)
        self._killed.append(actor)

    def bury(self) -> None:
        """At the end, when nothing can change any more: let what was killed unwind."""
        self.over = True
        for actor in [*self._killed, *self.actors]:
            actor.thread.throw(GreenletExit)

    def run(self) -> None:
        """Everything, to the end.  Raises what an actor raises."""
        while self.actors:
            self.steps += 1
            if self.steps > self.most_steps:
                raise AssertionError(
                    f"not done after {self.most_steps} steps: {[a.name for a in self.actors]}"
                )
            ready = [a for a in self.actors if not a.stalled]
            for actor in self.actors:
                actor.stalled = max(0, actor.stalled - 1)
            if not ready:
                continue
            actor = self.chance.choice(ready)
            if self.stalls and self.chance.random() < self.stalls:
                actor.stalled = self.chance.randint(1, self.longest_stall)
                continue
            self.running = actor
            actor.thread.switch()
            self.running = None
            if actor.thread.dead and actor in self.actors:
                self.actors.remove(actor)
            self.after_step()
