"""One seed: a store, actors, faults; run to the end, with the invariants checked after every step."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from unittest.mock import patch

from lake_core import naming
from lake_core.commits import History
from lake_core.errors import Conflict, LakeError, NotFound, OutcomeUnknown, Unavailable
from lake_core.journal import Retry, purge, recent, write_state
from lake_core.keys import PoolKey
from tests.fakes.records import add, an_id, draft
from tests.simulation.faulty import Faults, FaultyStore
from tests.simulation.scheduler import Actor, Scheduler
from tests.simulation.truth import Truth, Violation

POOL = "pool"
KEY = PoolKey.parse("k")
NOISE = (b"", b"0", b"3", b"999", b"\x00\xff", b"12345678901234567890123")


@dataclass
class World:
    """All of one simulation.  `generation` is how long ids are remembered, small so that it matters."""

    seed: int
    generation: int = 8
    chance: random.Random = field(init=False)
    truth: Truth = field(init=False)
    scheduler: Scheduler = field(init=False)
    store: FaultyStore = field(init=False)
    faults: Faults = field(default_factory=Faults)
    drafts: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.truth = Truth(naming.pool_journal(POOL))
        self.scheduler = Scheduler(self.chance, stalls=self.chance.choice((0.0, 0.01, 0.05)))
        self.scheduler.after_step = self.truth.check
        self.store = FaultyStore(
            self.chance,
            self.scheduler,
            self.truth,
            self.faults,
            lists_from_name=self.chance.random() < 0.5,
        )

    def run(self) -> None:
        """Raises Violation, or anything that an actor should not raise."""
        with patch.object(recent, "GENERATION", self.generation):
            for number in range(self.chance.randint(2, 5)):
                self._start(f"writer {number}", self._writer)
            for number in range(self.chance.randint(0, 2)):
                self._start(f"purger {number}", self._purger)
            for number in range(self.chance.randint(0, 2)):
                self._start(f"reader {number}", self._reader)
            if self.chance.random() < 0.3:
                self._start("vandal", self._vandal)
            self._start("reaper", self._reaper)
            self.scheduler.run()
            self._afterwards()

    def _start(self, name: str, run: Callable[[], None]) -> Actor:
        return self.scheduler.start(name, run)

    def history(self) -> History:
        """The pool's history as a new process sees it; its clock is skewed."""
        skew = self.chance.uniform(-1e6, 1e6)
        retry = Retry(
            races=400,
            repeats=4,
            sleep=lambda seconds: self.scheduler.pause(),
            jitter=self.chance.random,
        )
        history = History(self.store, pool_id=POOL, key=KEY, clock=lambda: 1_700_000_000 + skew, retry=retry)
        history.journal.fetch = lambda read, numbers: [read(n) for n in numbers]
        return history

    # --- actors

    def _writer(self) -> None:
        history = self.history()
        for _ in range(self.chance.randint(1, 8)):
            if self.chance.random() < 0.1:
                history = self.history()  # the process was restarted
            self.drafts += 1
            number = self.drafts
            token = f"token {number}" if self.chance.random() < 0.5 else ""
            for _ in range(4):  # a user who tries again, under the token
                if not self._try(history, number, token) or not token:
                    break
                self.drafts += 1
                number = self.drafts

    def _try(self, history: History, number: int, token: str) -> bool:
        """Whether the commit should be tried again."""
        action = add(number, low=number % 7, high=10)
        try:
            landed = history.commit(draft(number, action, token=token, base=0))
        except (Unavailable, OutcomeUnknown) as error:
            self._count(type(error).__name__)
            return True
        except Conflict:
            raise Violation(f"draft {number} gave up although loads never conflict") from None
        self._count("repeated" if landed.repeated else "committed")
        self.truth.acknowledge(landed.id, landed.n)
        if not landed.repeated and landed.id != an_id(number):
            raise Violation(f"draft {number} was answered with the outcome of {landed.id}")
        return False

    def _purger(self) -> None:
        history = self.history()
        for _ in range(self.chance.randint(1, 5)):
            self.scheduler.pause()
            with contextlib.suppress(Unavailable, OutcomeUnknown):
                head = history.load()
                mark = write_state(history.journal, head, id=an_id(self.chance.randrange(10**8)), now=0.0)
                self.truth.is_state(mark.n, history.journal.restore(mark).state)
                keep = self.chance.choice((0, 0, 1, 4))
                purge(history.journal, until=head.n - keep)
                self._count("purged")

    def _reader(self) -> None:
        history = self.history()
        for _ in range(self.chance.randint(1, 12)):
            self.scheduler.pause()
            since = self.truth.n
            with contextlib.suppress(Unavailable):
                head = history.load()
                self.truth.loaded(head.n, head.state, since=since)
                self._count("loaded")
            if self.truth.n and self.chance.random() < 0.3:
                n = self.chance.randint(1, self.truth.n)
                with contextlib.suppress(Unavailable, NotFound):
                    self.truth.is_state(n, history.at(n).state)
                    self._count("looked back")

    def _vandal(self) -> None:
        for _ in range(self.chance.randint(1, 10)):
            self.scheduler.pause()
            name = self.chance.choice((naming.head, naming.tail))(naming.pool_journal(POOL))
            if self.chance.random() < 0.3:
                self.store.objects.pop(name, None)
            else:
                self.store.objects[name] = self.chance.choice(NOISE)

    def _reaper(self) -> None:
        """Kills processes between any two requests; then all others end, and the faults with them."""
        for _ in range(self.chance.randint(0, 4)):
            for _ in range(self.chance.randint(1, 80)):
                self.scheduler.pause()
            victims = [a for a in self.scheduler.actors if a.name != "reaper"]
            if victims:
                self.scheduler.kill(self.chance.choice(victims))
                self._count("killed")

    # --- the end

    def _afterwards(self) -> None:
        """Faults have stopped; late requests may still arrive."""
        self.faults.none()
        while self.store.late:
            self.store._apply(*self.store.late.pop())
        self.truth.check()
        for id, n in self.truth.acknowledged.items():
            if self.truth.ids.get(id) != n:
                raise Violation(f"{id}, acknowledged as {n}, is not there")
        since = self.truth.n
        head = self.history().load()
        self.truth.loaded(head.n, head.state, since=since)
        before = self.store.requests
        self.drafts += 1
        landed = self.history().commit(draft(self.drafts, add(self.drafts)))
        self.truth.acknowledge(landed.id, landed.n)
        if self.store.requests - before > 60 + 2 * len(self.store.objects):
            raise Violation(f"a new writer needed {self.store.requests - before} requests")
        self._count("steps", self.scheduler.steps)

    def _count(self, what: str, times: int = 1) -> None:
        self.outcomes[what] = self.outcomes.get(what, 0) + times


def simulate(seed: int, **settings: int) -> dict[str, int]:
    """Run one seed; how often what happened.  Raises Violation with the seed in its message."""
    world = World(seed, **settings)
    try:
        world.run()
    except (AssertionError, LakeError) as error:
        raise Violation(f"seed {seed}: {type(error).__name__}: {error}") from error
    finally:
        world.scheduler.bury()
    return world.outcomes


def failing_seeds(seeds: range, *, enough: int = 1) -> Iterator[tuple[int, str]]:
    """Seeds that fail, and how, up to `enough` of them."""
    found = 0
    for seed in seeds:
        try:
            simulate(seed)
        except Violation as violation:
            yield seed, str(violation)
            found += 1
            if found >= enough:
                return
