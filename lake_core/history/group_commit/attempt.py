"""One commit under way: the draft is proposed on ever newer states, alone or with the requests of others.

Who has lost two races, or met others at one of its last commits, asks whoever wins the next number to commit for
it, and stands in line (group commit: docs/protocol.md).  Each call of `History.commit` makes an attempt.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field

from lake_core import naming
from lake_core.combine import Rule
from lake_core.errors import CheckpointDamaged, CheckpointGone, LakeError, OutcomeUnknown, Unavailable
from lake_core.history.group_commit.requests import Request, Requests
from lake_core.history.rebase import Committed, Draft, rebase
from lake_core.history.state import PoolState, Remembered, fold_transaction
from lake_core.journal import Journal, LoadedState, Overtaken
from lake_core.keys import PoolKey
from lake_core.records import Consume, Entry, Transaction
from lake_core.store import ObjectInfo

LOST_RACES_BEFORE_REQUEST = 2
"""How many races a writer loses before it asks the winner of the next to commit for it."""

PAUSES_PER_WRITER, MAX_PAUSES = 8, 32
"""For how many pauses a writer lets each of those before it in the line go first, and all of them together: to
commit takes a listing, the requests side by side, the entry, and a look for fences."""

COLLECT_EVERY = 8
"""Whoever writes an entry of a number that this divides looks for requests, though it lost no race: a writer that
always wins would else never hear of those that always lose.  By the number, so that it holds for many
processes of one commit each as well."""


@dataclass
class Attempt:
    """One commit under way: `propose` and `lost` are for `Journal.append`.

    `now`: microseconds since 1970.  `company`: others were met lately.  `seen` is the entry after which the draft
    may be in the history without our knowing: others have been asked to commit it, or an earlier try of it was of
    unknown outcome.  `met` says that others commit as well.  `begun` is the entry after which this try began.
    """

    journal: Journal[Entry, PoolState]
    requests: Requests
    key: PoolKey
    rule: Rule
    now: Callable[[], int]
    draft: Draft
    contended: bool
    possible_since: int | None = None
    begun: int | None = None
    posted: bool = False
    met_others: bool = False
    queue: list[ObjectInfo] = field(default_factory=list)
    refusal: LakeError | None = None
    outcome: Committed | None = None

    @property
    def name(self) -> str:
        """Of the request."""
        return naming.request(self.journal.name, self.draft.id)

    def lost(self, times: int, loaded: LoadedState[PoolState]) -> None:
        """After the second lost race, ask whoever wins the next one."""
        if not self.posted and times >= LOST_RACES_BEFORE_REQUEST:
            self.met_others = True
            self._post(loaded)

    def _post(self, loaded: LoadedState[PoolState]) -> None:
        self.posted = True
        self.possible_since = loaded.version if self.possible_since is None else self.possible_since
        self.requests.post(self.draft, possible_since=self.possible_since, time=self.now())

    def _wait_in_queue(self, loaded: LoadedState[PoolState]) -> Entry | None:
        """The next entry if it is there, perhaps by one of those before us in the line, whom we let go first.

        All of them would else read all requests, make one entry each of them, and lose the race but for one.
        """
        if not self.queue:  # the first time: others may have committed while our objects were written
            entry = self._next(loaded)
            if entry is not None:
                return entry
        retry, requests = self.journal.retry, self.requests
        asked = retry.clock()
        self.queue = requests.queue()
        answer = retry.clock() - asked
        waiting = [
            r.id for r in self._read_requests([i for i in self.queue if not _is_done(i, loaded)], loaded)
        ]
        self.met_others |= bool(waiting)
        before = sum(id < self.draft.id for id in waiting)
        for _ in range(min(before * PAUSES_PER_WRITER, MAX_PAUSES)):
            retry.rest(answer, before=before)
            entry = self._next(loaded)
            if entry is not None:
                return entry
        if before:  # whoever is before us has died, or is slow, and the line is no longer what it was
            self.queue = requests.queue()
        return self._next(loaded)

    def _next(self, loaded: LoadedState[PoolState]) -> Entry | None:
        with contextlib.suppress(Unavailable):
            return self.journal.read(loaded.version + 1)
        return None

    def propose(self, loaded: LoadedState[PoolState]) -> Entry | Overtaken[Entry] | None:
        """The entry that should come next, None where the outcome is known already."""
        self.begun = loaded.version if self.begun is None else self.begun
        if self.contended and not self.posted:
            self._post(loaded)
        if self.posted:
            entry = self._wait_in_queue(loaded)
            if entry is not None:
                return Overtaken(entry)
        if self.possible_since is not None and not _is_known_since(self.possible_since, loaded):
            self.outcome = self._search_entries(self.possible_since, loaded)
            if self.outcome is not None:
                return None
        try:
            self.refusal = None
            rebased = self._rebased(loaded.state, self.draft)
        except LakeError as error:  # a state that cannot be read now refuses nothing
            if not isinstance(error, Unavailable | CheckpointGone | CheckpointDamaged):
                self.refusal = error
            raise
        if isinstance(rebased, Remembered):
            self.outcome = Committed(rebased.version, rebased.transaction_id, repeated=rebased)
            return None
        transactions = [rebased]
        if self.possible_since is not None or self.contended or (loaded.version + 1) % COLLECT_EVERY == 0:
            transactions += self._collect_requests(loaded, rebased)
        self.met_others |= len(transactions) > 1
        return Entry(self.draft.id, tuple(transactions))

    def _rebased(self, state: PoolState, draft: Draft) -> Transaction | Remembered:
        return rebase(state, draft, key=self.key, rule=self.rule, time=self.now())

    def _collect_requests(self, loaded: LoadedState[PoolState], first: Transaction) -> list[Transaction]:
        """The transactions of others that fit behind ours."""
        version = loaded.version + 1
        state = fold_transaction(loaded.state, version, 0, first)
        taken: dict[str, Transaction] = {}
        queue = self.queue if self.posted else self.requests.queue()
        if version % COLLECT_EVERY == 0:  # those who live do so themselves
            for info in queue:
                if _is_done(info, loaded):
                    self.requests.withdraw(naming.request_id(info.name))
                    self.requests.overlook(info.name)
        for request in self._read_requests([info for info in queue if not _is_done(info, loaded)], loaded):
            try:
                if _is_taken(state, request.draft):
                    continue
                rebased = self._rebased(state, request.draft)
                if isinstance(rebased, Transaction):
                    state = fold_transaction(state, version, len(taken) + 1, rebased)
                    taken[request.id] = rebased
            except (Unavailable, CheckpointGone, CheckpointDamaged):  # the state cannot be read now
                continue
            except LakeError:  # its writer will find out why when it proposes it itself
                self.requests.overlook(naming.request(self.journal.name, request.id))
        return list(taken.values())

    def _read_requests(self, queue: list[ObjectInfo], loaded: LoadedState[PoolState]) -> list[Request]:
        """The requests of others that may come next, as much as one entry can take."""
        others = [info for info in queue if info.name != self.name]
        live = []
        for request in self.requests.read(others, at_once=self.journal.read_all):
            if request.may_be_committed_at(loaded.version + 1, now=self.now()):
                live.append(request)
            else:  # nobody's concern any more, whether it can be deleted or not
                self.requests.withdraw(request.id)
                self.requests.overlook(naming.request(self.journal.name, request.id))
        return live

    def _search_entries(self, possible_since: int, loaded: LoadedState[PoolState]) -> Committed | None:
        """Whether the draft was committed, from the entries themselves."""
        committed = missing = None
        for version in range(possible_since + 1, loaded.version + 1):  # bounded: a stalled writer's entries
            entry = self.journal.read(version)
            if entry is None:
                missing = version
                break
            if any(t.id == self.draft.id for t in entry.transactions):
                committed = Committed(version, self.draft.id)
                break
        fence = self.journal.marks().fence  # what was read at or below it may never have been history
        if committed is not None and committed.version > fence:
            return committed
        if missing is None and fence <= possible_since:
            return None
        raise OutcomeUnknown(
            f"{naming.entry(self.journal.name, missing or possible_since + 1)}: purged; whether the transaction "
            f"{self.draft.id} was committed is unknown",
            entry_id=self.draft.id,
            version=possible_since + 1,
        )


def _is_taken(state: PoolState, draft: Draft) -> bool:
    """Whether a source of the draft was taken in, in whatever form: if in the same, its writer has heard of a
    conflict, and must not find later that it was committed all the same, after the form has changed."""
    consumed = [action for action in draft.actions if isinstance(action, Consume)]
    return any(
        (draft.branch, source.uri) in state.sources for action in consumed for source in action.sources
    )


def _is_done(request: ObjectInfo, loaded: LoadedState[PoolState]) -> bool:
    """Whether the recent ids tell that what was asked for is committed."""
    return loaded.recent.find(naming.request_id(request.name)) is not None


def _is_known_since(version: int, loaded: LoadedState[PoolState]) -> bool:
    """Whether the recent ids tell of every entry since `seen`."""
    return loaded.recent.reaches(version + 1)
