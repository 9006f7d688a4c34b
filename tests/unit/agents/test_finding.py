"""Looking at pools: side by side, in their order, and one that fails holds back no other."""

from __future__ import annotations

import threading
import time

import pytest

from lake_core.errors import Corrupt, NotFound
from log_lake.agents.finding import AT_ONCE, look_at_each, looks

NAMES = [f"p{number:03d}" for number in range(3 * AT_ONCE)]


def test_pools_are_looked_at_side_by_side_and_never_too_many_at_a_time() -> None:
    inside, most, lock = 0, 0, threading.Lock()
    together = threading.Barrier(AT_ONCE, timeout=600)

    def look(name: str) -> str:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        together.wait()  # fails unless as many are inside
        with lock:
            inside -= 1
        return name.upper()

    assert list(looks(NAMES, look)) == [(name, name.upper()) for name in NAMES]
    assert most == AT_ONCE


def test_what_is_found_comes_in_the_order_of_the_pools() -> None:
    def look(name: str) -> int:
        time.sleep(0.02 if name == "a" else 0)
        return ord(name)

    assert list(look_at_each(["a", "b", "c"], look, named=False)) == [("a", 97), ("b", 98), ("c", 99)]


def test_a_pool_that_cannot_be_read_holds_back_no_other(caplog: pytest.LogCaptureFixture) -> None:
    bad = Corrupt("a hole")

    def look(name: str) -> str:
        if name == "bad":
            raise bad
        if name == "gone":
            raise NotFound("no pool")
        return name

    assert list(look_at_each(["bad", "gone", "good"], look, named=False)) == [
        ("bad", bad),
        ("good", "good"),
    ]
    assert caplog.messages == ["bad: a hole"]


def test_a_run_that_must_find_something_fails_if_no_pool_has_it() -> None:
    def look(name: str) -> str:
        if name != "has":
            raise NotFound(f"pool {name}: no branch 'dve'")
        return name

    assert list(look_at_each(["a", "has", "b"], look, named=False, must_find=True)) == [("has", "has")]
    assert list(look_at_each([], look, named=False, must_find=True)) == []
    assert list(look_at_each(["a"], look, named=False)) == []
    with pytest.raises(NotFound, match="no branch 'dve'"):
        list(look_at_each(["a", "b"], look, named=False, must_find=True))


def test_a_named_pool_that_is_gone_ends_the_run_and_the_pools_that_wait_are_not_begun() -> None:
    seen: list[str] = []

    def look(name: str) -> str:
        seen.append(name)
        if name == NAMES[0]:
            raise NotFound("no pool p000")
        time.sleep(0.5)  # the caller learns of the error meanwhile, at the latest after one of forty turns
        return name

    names = [*NAMES, *(f"q{number}" for number in range(40 * AT_ONCE))]
    with pytest.raises(NotFound, match="no pool p000"):
        list(look_at_each(names, look, named=True))
    assert len(seen) < len(names)


def test_an_error_that_is_none_of_the_lakes_is_that_of_its_pool_alone() -> None:
    def look(name: str) -> str:
        if name == "a":
            raise ZeroDivisionError("by zero")
        return f"{name} is sound"

    (_, error), b = looks(["a", "b"], look)
    assert isinstance(error, Corrupt)
    assert "pool 'a': cannot be read: ZeroDivisionError: by zero" in str(error)
    assert b == ("b", "b is sound")
