"""The states of one commit, the events that move it from one to the next, and the diagram of both; pure.

`TRANSITIONS` is the whole machine: an event that a state does not list is a bug, and raises `ImpossibleEvent`.
`attempt` moves by it.  docs/protocol.md has the text that `page` writes, and a test compares the two.
"""

from __future__ import annotations

import enum


class State(enum.Enum):
    """What a writer knows about its draft; the value is the meaning."""

    IDLE = "no contention; the journal holds nothing of the draft until its entry is put"
    CONTENDED = "others commit at the same time; the writer posts a request next"
    POSTED = "the request is stored; no listing has shown a queue yet"
    QUEUED = "the writer has seen the queue, and lets older requests go first"
    UNKNOWN = "the draft may be committed without the writer knowing"
    DONE = "the outcome is known: committed, refused, or not written at all"


class Event(enum.Enum):
    """What happens to a commit; the value is the meaning."""

    CONTENTION = "the writer lost two races, or saw contention at one of its last commits"
    POST = "the writer stores its request"
    QUEUE_LISTED = "a listing shows requests"
    NOTHING_LISTED = "a listing shows no request, or the store does not answer"
    COMMITTED = "the draft is in the history, by this writer, another one, or an earlier commit of its token"
    REFUSED = "the newest state refuses the draft for good, or no writer can read the journal"
    GAVE_UP = "races or repeats are used up, and no entry of this writer is in doubt"
    ANSWER_LOST = (
        "no answer tells whether the entry stands: the store is silent, or the program was interrupted"
    )


class ImpossibleEvent(RuntimeError):
    """Raised if an event happens in a state that does not list it: a bug in the code that moves the commit."""


_ENDS = {Event.COMMITTED: State.DONE, Event.REFUSED: State.DONE, Event.ANSWER_LOST: State.UNKNOWN}

TRANSITIONS: dict[State, dict[Event, State]] = {
    State.IDLE: {Event.CONTENTION: State.CONTENDED, **_ENDS, Event.GAVE_UP: State.DONE},
    State.CONTENDED: {Event.POST: State.POSTED, Event.ANSWER_LOST: State.UNKNOWN},
    State.POSTED: {
        Event.QUEUE_LISTED: State.QUEUED,
        Event.NOTHING_LISTED: State.POSTED,
        **_ENDS,
        Event.GAVE_UP: State.UNKNOWN,
    },
    State.QUEUED: {
        Event.QUEUE_LISTED: State.QUEUED,
        Event.NOTHING_LISTED: State.POSTED,
        **_ENDS,
        Event.GAVE_UP: State.UNKNOWN,
    },
    State.UNKNOWN: {Event.CONTENTION: State.CONTENDED, **_ENDS, Event.GAVE_UP: State.UNKNOWN},
    State.DONE: {},
}
"""A commit begins in IDLE, or in UNKNOWN if an earlier commit of the same draft ended there."""

REQUEST_IS_STORED = frozenset({State.POSTED, State.QUEUED})
"""In these states other writers may commit the draft."""


def next_state(state: State, event: Event) -> State:
    """Returns the state after the event.  Raises ImpossibleEvent if the state does not list the event."""
    try:
        return TRANSITIONS[state][event]
    except KeyError:
        raise ImpossibleEvent(f"commit in state {state.name}: {event.name} cannot happen") from None


def page() -> str:
    """Returns the part of docs/protocol.md that shows the states and events, as Markdown: a diagram, then two
    tables."""
    edges: dict[tuple[State, State], list[str]] = {}
    for state, events in TRANSITIONS.items():
        for event, after in events.items():
            edges.setdefault((state, after), []).append(event.name)
    lines = [
        "```mermaid",
        "stateDiagram-v2",
        "  [*] --> IDLE",
        "  [*] --> UNKNOWN: the same draft again",
        *(f"  {state.name} --> {after.name}: {', '.join(names)}" for (state, after), names in edges.items()),
        "  DONE --> [*]",
        "```",
        "",
        *_table("state", State),
        "",
        *_table("event", Event),
    ]
    return "\n".join(lines) + "\n"


def _table(head: str, members: type[State] | type[Event]) -> list[str]:
    return [f"| {head} | means |", "|---|---|", *(f"| {m.name} | {m.value} |" for m in members)]


if __name__ == "__main__":
    print(page(), end="")
