"""The states of a commit: what may follow what, and the page that shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lake_core.history.group_commit.states import (
    REQUEST_IS_STORED,
    TRANSITIONS,
    Event,
    ImpossibleEvent,
    State,
    next_state,
    page,
)

PROTOCOL = Path(__file__).parents[3] / "docs" / "protocol.md"


def reachable(start: State) -> set[State]:
    states, found = [start], {start}
    while states:
        for after in TRANSITIONS[states.pop()].values():
            if after not in found:
                found.add(after)
                states.append(after)
    return found


def test_every_state_and_every_event_is_in_the_table() -> None:
    assert set(TRANSITIONS) == set(State)
    assert {event for events in TRANSITIONS.values() for event in events} == set(Event)


def test_a_commit_reaches_every_state_and_can_end_from_each() -> None:
    assert reachable(State.IDLE) == set(State)
    assert all(State.DONE in reachable(state) for state in State)


def test_nothing_happens_to_a_commit_that_is_done() -> None:
    for event in Event:
        with pytest.raises(ImpossibleEvent, match=f"commit in state DONE: {event.name} cannot happen"):
            next_state(State.DONE, event)


@pytest.mark.parametrize("state", sorted(REQUEST_IS_STORED, key=lambda s: s.name))
def test_a_writer_that_gives_up_with_a_stored_request_does_not_know_the_outcome(state: State) -> None:
    assert next_state(state, Event.GAVE_UP) is State.UNKNOWN


def test_a_writer_that_gives_up_alone_knows_that_nothing_was_written() -> None:
    assert next_state(State.IDLE, Event.GAVE_UP) is State.DONE


def test_a_lost_answer_is_unknown_in_every_state_but_done() -> None:
    for state in set(State) - {State.DONE}:
        assert next_state(state, Event.ANSWER_LOST) is State.UNKNOWN


def test_a_request_is_posted_once() -> None:
    posting = {state for state, events in TRANSITIONS.items() if Event.POST in events}
    assert posting == {State.CONTENDED}
    assert not any(Event.CONTENTION in TRANSITIONS[state] for state in REQUEST_IS_STORED)


def test_the_protocol_page_shows_exactly_this_machine() -> None:
    text = PROTOCOL.read_text()
    shown = text.partition("<!-- states: begin -->\n")[2].partition("<!-- states: end -->")[0]
    assert shown == page()
