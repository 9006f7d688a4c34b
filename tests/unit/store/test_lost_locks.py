"""A lock that is lost at each step of a create, on a store that overwrites: another writer has the name meanwhile.

One moment is left in which an acknowledged write is lost, and `lake init` says so (`probe.ONLY_THE_LOCK`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from lake_core.errors import Unavailable
from lake_core.store import Created
from log_lake.stores.locked import LockCheck, LockedStore
from log_lake.stores.memory import MemoryStore

NAME, OURS, THEIRS = "p/journal/1", b"ours", b"theirs"
UNAVAILABLE = "unavailable"


class Revocable:
    """A lock that a test takes away from its holder; `at` is called at each step."""

    kind = "test"

    def __init__(self, at: Callable[[str], None]) -> None:
        self.at, self.is_lost = at, False

    @contextlib.contextmanager
    def hold(self, name: str) -> Iterator[LockCheck]:
        def check() -> None:
            if self.is_lost:
                raise Unavailable("the lock was lost")
            self.at("after the check")

        self.at("before all")
        yield check
        self.at("before the release")
        if self.is_lost:
            raise Unavailable("the lock was lost")


class Overwriting(MemoryStore):
    """A store that overwrites although it is asked not to; `at` is called at each step of our writer."""

    def __init__(self, at: Callable[[str], None]) -> None:
        super().__init__()
        self.at, self.reads = at, 0

    def get(self, name: str) -> bytes | None:
        found = super().get(name)
        self.reads += 1
        self.at(f"after read {self.reads}")
        return found

    def create(self, name: str, data: bytes) -> Created:
        self.put(name, data)
        self.at("after the write")
        return Created.YES


@pytest.mark.parametrize(
    ("step", "ours", "theirs", "stored"),
    [
        ("before all", Created.EXISTS, Created.YES, THEIRS),
        ("after read 1", UNAVAILABLE, Created.YES, THEIRS),
        ("after the check", Created.UNKNOWN, Created.YES, OURS),  # the moment that no lock can guard
        ("after the write", Created.UNKNOWN, Created.EXISTS, OURS),
        ("after read 2", Created.UNKNOWN, Created.EXISTS, OURS),
        ("before the release", Created.UNKNOWN, Created.EXISTS, OURS),
    ],
)
def test_a_lock_lost_at_a_step(step: str, ours: Created | str, theirs: Created, stored: bytes) -> None:
    answers: list[Created] = []  # of the other writer

    def at(now: str) -> None:
        if now == step and not answers:
            lock.is_lost = True
            answers.append(Created.UNKNOWN)  # nothing more happens at the steps of the other writer
            answers[0] = LockedStore(store, Revocable(lambda _: None)).create(NAME, THEIRS)

    store, lock = Overwriting(at), Revocable(at)
    answer: Created | str
    try:
        answer = LockedStore(store, lock).create(NAME, OURS)
    except Unavailable:
        answer = UNAVAILABLE
    assert (answer, answers[0], MemoryStore.get(store, NAME)) == (ours, theirs, stored)
    if step != "after the check":
        assert answers[0] is not Created.YES or stored == THEIRS  # what was acknowledged is there
