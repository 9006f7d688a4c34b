"""A store loses entries of a journal, one after another, at any place; processes go on, old and new ones.

No state that anyone gets holds an entry together with one that was decided on another entry before it: each is
the fold of a chain as the writers saw it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from lake_core import naming
from lake_core.errors import Corrupt, NotFound
from lake_core.journal import Journal, LoadedState, purge, write_state
from tests.support.notes import Note, State, journal
from tests.support.records import an_id
from tests.support.stores import InPlaceStore

PROCESSES = 3


@dataclass
class Seen:
    """What each entry was decided on, by its text."""

    chains: dict[str, State] = field(default_factory=dict)

    def hold(self, state: State) -> None:
        """The state is a chain that a writer saw, whole."""
        assert not state or self.chains[state[-1]] == state[:-1]


class LosingStore(RuleBasedStateMachine):
    """Some processes with what they have in memory, on a store that loses entries."""

    @initialize()
    def begin(self) -> None:
        self.store = InPlaceStore()
        self.seen = Seen()
        self.processes = [journal(self.store) for _ in range(PROCESSES)]
        self.count = 0

    @rule(who=st.integers(0, PROCESSES - 1))
    def write(self, who: int) -> None:
        self.count += 1
        text = f"t{self.count}"

        def propose(loaded: LoadedState[State]) -> Note:
            self.seen.hold(loaded.state)
            self.seen.chains[text] = loaded.state
            return Note(f"id of {text}", text)

        try:
            appended = self.processes[who].append(propose, id=f"id of {text}")
        except Corrupt:
            return
        assert appended is not None
        self.seen.hold(appended.state)

    @rule(who=st.integers(0, PROCESSES - 1))
    def start_anew(self, who: int) -> None:
        self.processes[who] = journal(self.store)

    @rule(who=st.integers(0, PROCESSES - 1))
    def read(self, who: int) -> None:
        try:
            self.seen.hold(self.processes[who].load().state)
        except Corrupt:
            return

    @rule(who=st.integers(0, PROCESSES - 1), back=st.integers(1, 4))
    def read_an_earlier_version(self, who: int, back: int) -> None:
        ours = self.processes[who]
        try:
            newest = ours.load()
            earlier = ours.load_version(max(0, newest.version - back))
        except (Corrupt, NotFound):
            return
        assert earlier is not None
        assert earlier.state == newest.state[: earlier.version]

    @rule(who=st.integers(0, PROCESSES - 1))
    def read_backwards(self, who: int) -> None:
        ours: Journal[Note, State] = self.processes[who]
        try:
            newest = ours.load().state
            for version, note in ours.backwards():
                assert newest[version - 1] == note.text
        except Corrupt:
            return

    @rule(who=st.integers(0, PROCESSES - 1), purges=st.booleans())
    def checkpoint(self, who: int, purges: bool) -> None:
        ours = self.processes[who]
        try:
            loaded = ours.load()
            if loaded.version:
                self.count += 1
                write_state(ours, loaded, id=an_id(self.count), now=0.0)
            if purges:
                purge(ours, until=max(0, loaded.version - 2))
        except Corrupt:
            return

    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        there = [info.name for info in self.store.list("j") if naming.entry_version(info.name) is not None]
        if there:
            self.store.delete(data.draw(st.sampled_from(there)))


LosingStore.TestCase.settings = settings(max_examples=100, stateful_step_count=30)
test_no_state_mixes_what_was_decided_on_different_entries = LosingStore.TestCase
