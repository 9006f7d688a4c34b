"""Every kind of stored thing, changed at random with right checksums: the right answer, or its pool's error.

A thing with right checksums is taken for what it says, or is Corrupt.  Of a damaged one, whose checksums do not
fit, readers give the answers that they gave before, or call it Corrupt.  Whatever was changed in one pool, the
others are listed, kept and shown as before, and no object of theirs is written or deleted.

`LAKE_TEST_MUTATIONS=5000` (`make fuzz`) tries as many of each kind, and counts what came of them.  A failure names
its kind and number, which are the seed.
"""

from __future__ import annotations

import itertools
import logging
import os
import random
import resource
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import pytest

from lake_core.errors import Corrupt, LakeError
from log_lake.stores.guard import GuardedStore
from log_lake.stores.memory import MemoryStore
from log_lake.system_tables.inspection import inspect_object
from tests.support.clone_kinds import CLONE_KINDS, build_clone
from tests.support.stored_kinds import KINDS, Kind
from tests.support.stored_things import URI, Asks, World, asks_of_others, build, upkeep

COUNT = int(os.environ.get("LAKE_TEST_MUTATIONS", "30"))
EVERY, VIEWED = max(30, COUNT // 50), max(5, COUNT // 200)
"""After one of so many mutations the agents work on the pool, and they and `lake fsck` look at all others; after
one of so many the others are listed and shown."""

SECONDS = 30
"""The processor time that a reader may take for one of them, at most: other work on the machine does not count."""

MEMORY = 256 << 20
"""Bytes that the process may grow by for one of them."""


@pytest.fixture(scope="module")
def world() -> World:
    return build(MemoryStore(URI))


# --- answers


@dataclass(frozen=True)
class Answer:
    """What a reader was told: a value, as text, or the class and the message of an error.

    Values and errors lead to the lake that was asked, and 5,000 lakes would stay in memory.
    """

    value: str = ""
    error: type[LakeError] | None = None
    message: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Answer) and (self.value, self.error) == (other.value, other.error)

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def of(cls, error: LakeError) -> Answer:
        return cls("", type(error), str(error))


def answers(asks: Callable[[], Asks]) -> dict[str, Answer]:
    """The answer to each question.  Only errors of the lake are answers, in one line."""
    told: dict[str, Answer] = {}
    try:
        for what, ask in asks():
            try:
                told[what] = Answer(repr(ask()))
            except LakeError as error:
                told[what] = Answer.of(error)
    except LakeError as error:  # of who opens what the questions are about
        told["opened"] = Answer.of(error)
    for what, answer in told.items():
        assert "\n" not in answer.message, what
    return told


@contextmanager
def bounded(what: str) -> Iterator[None]:
    """Fails the block if it takes too much of a processor, whatever else the machine does, or too much memory."""

    def late(*_: object) -> None:
        raise TimeoutError(f"{what} took {SECONDS} s of the processor")

    before, memory = signal.signal(signal.SIGPROF, late), peak()
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    if peak() - memory > MEMORY:
        raise MemoryError(f"{what} took {peak() - memory:,} bytes")


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def is_damage(error: type[LakeError] | None) -> bool:
    return error is not None and issubclass(error, Corrupt)


def check_exact(told: dict[str, Answer], sound: dict[str, Answer]) -> None:
    """Each answer is the one of the sound object, or the object is Corrupt."""
    for what, answer in told.items():
        assert is_damage(answer.error) or answer == sound[what], f"{what}: {answer}, not {sound[what]}"


def check_alone(before: World, after: World) -> None:
    """Of the other pools no object was written or deleted; what is not the pool's is the lake's own."""
    own = (f"{after.a}/", "activity/", "quiet/", "packs/", "pools")
    now = World(after.store, after.a).objects
    theirs = [
        {n: d for n, d in objects.items() if not n.startswith(own)} for objects in (before.objects, now)
    ]
    assert theirs[0] == theirs[1]


class Tally:
    """What came of the mutations of each kind."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = {}

    def count(self, kind: str, told: dict[str, Answer], sound: dict[str, Answer]) -> None:
        counts = self.counts.setdefault(kind, Counter())
        errors = {answer.error for answer in told.values() if answer.error is not None}
        others = errors - {answer.error for answer in sound.values()}
        counts["tried"] += 1
        if any(issubclass(error, Corrupt) for error in errors):
            counts["Corrupt"] += 1
        elif others:
            counts[min(error.__name__ for error in others)] += 1
        else:
            counts["as before" if told == sound else "as it says"] += 1

    def lines(self) -> list[str]:
        return [
            f"{kind}: {', '.join(f'{n:,} {what}' for what, n in c.items())}"
            for kind, c in self.counts.items()
        ]


@pytest.fixture(scope="module")
def tally() -> Iterator[Tally]:
    counted = Tally()
    yield counted
    print("", *counted.lines(), sep="\n")


@pytest.fixture(autouse=True)
def no_logs() -> Iterator[None]:
    """pytest keeps each record of a log, whose error keeps what a whole read held: 4 MB for each mutation."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


class Trials:
    """The mutations of one kind."""

    def __init__(self, world: World, kind: str, tally: Tally, *, kinds: Mapping[str, Kind] = KINDS) -> None:
        self.kind, self.of, self.tally = kind, kinds[kind], tally
        self.base = self.of.of(world)
        self.names = self.base.names_like(self.of.pattern)
        self.sound = {name: answers(partial(self.of.ask, self.base.changed({}), name)) for name in self.names}
        self.others = answers(partial(asks_of_others, self.base.changed({})))
        self.before: dict[frozenset[tuple[str, bytes | None]], dict[str, Answer]] = {}

    def writes(self, number: int) -> tuple[str, Mapping[str, bytes | None]]:
        """The name of the object that is changed, and what is written."""
        rng = random.Random(f"{self.kind} {number}")
        for name in itertools.islice(itertools.cycle(self.names), number, number + 20 * len(self.names)):
            writes = self.of.change(self.base, name, rng)  # some entries have no action of the kind
            if writes is not None:
                return name, writes
        raise AssertionError("no object can be changed like this")

    def run(self, number: int) -> None:
        """Change an object, and ask all who read it."""
        name, writes = self.writes(number)
        same = frozenset(writes.items())
        if same in self.before:  # a hint has few bytes, and so there are few
            self.tally.count(self.kind, self.before[same], self.sound[name])
            return
        after = self.base.changed(writes)
        with bounded("a reader"):
            told = self.before[same] = answers(partial(self.of.ask, after, name))
            answers(lambda: iter([("it", partial(inspect_object, GuardedStore(after.store), name))]))
        self.tally.count(self.kind, told, self.sound[name])
        if self.of.exact:
            check_exact(told, self.sound[name])
        whole = number % EVERY == 0
        if self.of.alone and number % VIEWED == 0:
            with bounded("a look at the other pools"):
                seen = answers(partial(asks_of_others, self.base.changed(writes), whole=whole))
                assert seen == {what: self.others[what] for what in seen}
        if whole:
            kept = self.base.changed(writes)
            with bounded("an agent"):
                answers(partial(upkeep, kept))
            if self.of.alone:
                check_alone(self.base.changed(writes), kept)


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_thing_gives_the_right_answer_or_is_corrupt_of_its_pool_alone(
    world: World, tally: Tally, kind: str
) -> None:
    run_all(Trials(world, kind, tally))


@pytest.mark.parametrize("kind", CLONE_KINDS)
def test_so_does_a_thing_of_a_clone_and_of_content_sums(tally: Tally, kind: str) -> None:
    run_all(Trials(build_clone(MemoryStore(URI)), kind, tally, kinds=CLONE_KINDS))


def run_all(trials: Trials) -> None:
    for number in range(COUNT):
        try:
            trials.run(number)
        except Exception as error:
            raise AssertionError(f"{trials.kind} {number}: {type(error).__name__}: {error}") from error
