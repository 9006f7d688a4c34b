"""The budget of time of a store: what counts as one trouble, what ends it, what is said; with a clock by hand."""

from __future__ import annotations

import math
import sys
import threading
from types import FrameType
from typing import Any

import pytest

from lake_core.errors import Corrupt, InvalidInput, Unavailable
from log_lake.cli.waiting import SHOWN_AFTER, next_line
from log_lake.stores import open_store
from log_lake.stores.patience import (
    APART,
    SECONDS,
    SLOWEST,
    UNTOLD,
    VARIABLE,
    Patience,
    Wait,
    Waiting,
    given_seconds,
    lasting,
    parse_seconds,
)


class Hand:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Hand:
    return Hand()


@pytest.fixture
def patience(clock: Hand) -> Patience:
    return Patience(60.0, clock=clock)


def fail(patience: Patience, clock: Hand, seconds: float) -> None:
    wait = patience.begin("a")
    clock.now += seconds
    patience.end(wait, served=False)


def test_calls_that_are_not_served_share_one_budget(patience: Patience, clock: Hand) -> None:
    fail(patience, clock, 25)
    fail(patience, clock, 25)
    clock.now += APART  # a pause between repeats
    assert patience.begin("a").left() == 60 - 50 - APART


def test_a_call_that_is_served_gives_the_whole_budget_again(patience: Patience, clock: Hand) -> None:
    fail(patience, clock, 50)
    patience.end(patience.begin("b"), served=True)
    assert patience.begin("a").left() == 60


def test_work_of_any_length_goes_on_while_calls_are_served(patience: Patience, clock: Hand) -> None:
    for _ in range(100):
        wait = patience.begin("a")
        clock.now += 59
        patience.end(wait, served=True)
    assert patience.begin("a").left() == 60


def test_a_trouble_of_long_ago_is_over(patience: Patience, clock: Hand) -> None:
    fail(patience, clock, 50)
    clock.now += APART + 1
    assert patience.begin("a").left() == 60


def test_when_the_budget_is_spent_calls_fail_for_a_while_and_then_have_a_new_one(
    patience: Patience, clock: Hand
) -> None:
    fail(patience, clock, 30)
    fail(patience, clock, 31)
    for _ in range(3):
        with pytest.raises(Unavailable, match=r"b: the store served nothing for 60 s; .* --timeout"):
            patience.begin("b")
    clock.now += patience.rest
    assert patience.begin("b").left() == 60


def test_a_call_beside_served_ones_has_its_own_budget(patience: Patience, clock: Hand) -> None:
    hanging = patience.begin("a")
    for _ in range(6):
        clock.now += 9
        patience.end(patience.begin("b"), served=True)
    assert hanging.left() == 6
    assert patience.waits() == [hanging]


def test_bytes_that_move_give_time_and_an_answer_begins_it_anew(patience: Patience, clock: Hand) -> None:
    wait = patience.begin("a")
    wait.send_chunk(10 * SLOWEST)
    assert wait.left() == 70
    clock.now += 50
    wait.answer(503, 0)
    assert wait.left() == 20
    wait.answer(429, 0)
    assert wait.left() == 20
    wait.answer(200, 5 * SLOWEST)
    assert wait.left() == 75
    wait.answer(200, None)
    assert wait.left() == 75 + 60 * UNTOLD


def test_a_cut_call_is_unavailable_whatever_its_block_made_of_it() -> None:
    """A client takes the end of its requests for an empty answer."""
    calls: list[Wait] = []

    def cut(error: BaseException | None) -> None:
        with Waiting(Patience(60.0), "a") as wait:
            calls.append(wait)
            wait.sent, wait.is_cut = 2, True
            if error is not None:
                raise error

    said = r"a: the store served nothing for 60 s \(2 requests sent, none served\)"
    for error in (None, TypeError("None has no bytes"), FileNotFoundError()):
        with pytest.raises(Unavailable, match=said):
            cut(error)
    with pytest.raises(KeyboardInterrupt):
        cut(KeyboardInterrupt())
    assert all(wait.is_ended for wait in calls)


@pytest.mark.parametrize("error", [FileNotFoundError(), Corrupt("x")])
def test_an_answer_that_is_an_error_is_served(patience: Patience, clock: Hand, error: Exception) -> None:
    fail(patience, clock, 50)
    with pytest.raises(type(error)), Waiting(patience, "a"):
        raise error
    assert patience.begin("a").left() == 60


def test_a_person_hears_once_of_the_oldest_call(patience: Patience, clock: Hand) -> None:
    told: set[Wait] = set()
    wait = patience.begin("s3://b/lake/x")
    assert next_line(patience.waits(), told) == ""
    clock.now += SHOWN_AFTER
    wait.sent = 3
    assert next_line(patience.waits(), told) == (
        "lake: waits for s3://b/lake/x: not served for 5 s, sent 3 times; gives up after 55 s more\n"
    )
    assert next_line(patience.waits(), told) == ""
    folder = Patience(math.inf, clock=clock)
    folder.begin("/lake/x")
    clock.now += 9
    assert next_line(folder.waits(), told).endswith("nothing ends a call of the file system\n")


@pytest.mark.parametrize(
    ("text", "seconds"), [("60", 60), ("90s", 90), ("5m", 300), ("1h", 3600), ("0.5", 0.5), (7, 7)]
)
def test_a_budget_is_a_time(text: object, seconds: float) -> None:
    assert parse_seconds(text, what="timeout") == seconds


@pytest.mark.parametrize("text", ["0", "", "-1", "soon", "1d", "inf", "nan", "0s", "1e3"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="write a time above 0"):
        parse_seconds(text, what="timeout")


def test_the_command_goes_before_the_variable_and_the_option_before_both(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert given_seconds() == SECONDS
    monkeypatch.setenv(VARIABLE, "90s")
    assert given_seconds() == 90
    with lasting(5.0):
        assert given_seconds() == 5
        with lasting(None):
            assert given_seconds() == 5
        store = open_store("s3://b/lake", {"timeout": "7", "key": "k", "secret": "s"})
        assert store.patience.seconds == 7  # type: ignore[attr-defined]
        assert store.options["timeout"] == "7"  # type: ignore[attr-defined]  # workers get it with the address
    monkeypatch.setenv(VARIABLE, "soon")
    with pytest.raises(InvalidInput, match=VARIABLE):
        open_store("s3://b/lake", {"key": "k", "secret": "s"})


def test_a_finalizer_that_runs_within_a_call_may_call_the_store(patience: Patience) -> None:
    """Python may end a forgotten generator at any line, and its last act may be a request: none of them hangs."""
    lines: set[int] = set()
    done: list[str] = []

    def finalize(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != sys.modules[Patience.__module__].__file__:
            return None
        if event == "line" and frame.f_lineno not in lines:
            lines.add(frame.f_lineno)
            patience.end(patience.begin("of the finalizer"), served=True)
            patience.waits()
        return finalize

    def work() -> None:
        sys.settrace(finalize)
        wait = patience.begin("a")
        assert wait in patience.waits()
        patience.end(wait, served=False)
        done.append("all")

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(600)
    assert not thread.is_alive(), "it waits for a lock that it holds"
    assert done == ["all"]
    assert len(lines) > 10
    assert patience.waits() == []
