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
from lake_core.commits.landing import Draft, Landed, land
from lake_core.commits.requests import Request, Requests
from lake_core.commits.state import PoolState, Remembered, fold_transaction
from lake_core.errors import CheckpointDamaged, CheckpointGone, LakeError, OutcomeUnknown, Unavailable
from lake_core.journal import Head, Journal, Overtaken
from lake_core.keys import PoolKey
from lake_core.records import Consume, Entry, Transaction
from lake_core.store import ObjectInfo

PATIENCE = 2
"""How many races a writer loses before it asks the winner of the next to commit for it."""

PAUSES, MOST_PAUSES = 8, 32
"""For how many pauses a writer lets each of those before it in the line go first, and all of them together: to
commit takes a listing, the requests side by side, the entry, and a look for fences."""

LOOK_EVERY = 8
"""Whoever writes an entry of a number that this divides looks for requests, though it lost no race: a writer that
always wins would else never hear of those that always lose.  By the number, so that it holds for many
processes of one commit each as well."""


@dataclass
class Attempt:
    """One commit under way: `propose` and `lost` are for `Journal.append`.

    `now`: microseconds since 1970.  `company`: others were met lately.  `seen` is the entry after which the draft
    may be in the history without our knowing: others have been asked to commit it, or an earlier try of it was of
    unknown outcome.  `met` says that others commit as well.
    """

    journal: Journal[Entry, PoolState]
    requests: Requests
    key: PoolKey
    rule: Rule
    now: Callable[[], int]
    draft: Draft
    company: bool
    seen: int | None = None
    posted: bool = False
    met: bool = False
    line: list[ObjectInfo] = field(default_factory=list)
    refusal: LakeError | None = None
    outcome: Landed | None = None

    @property
    def name(self) -> str:
        """Of the request."""
        return naming.request(self.journal.name, self.draft.id)

    def lost(self, times: int, head: Head[PoolState]) -> None:
        """After the second lost race, ask whoever wins the next one."""
        if not self.posted and times >= PATIENCE:
            self.met = True
            self._post(head)

    def _post(self, head: Head[PoolState]) -> None:
        self.posted = True
        self.seen = head.n if self.seen is None else self.seen
        self.requests.post(self.draft, seen=self.seen, time=self.now())

    def _waited(self, head: Head[PoolState]) -> Entry | None:
        """The next entry if it is there, perhaps by one of those before us in the line, whom we let go first.

        All of them would else read all requests, make one entry each of them, and lose the race but for one.
        """
        if not self.line:  # the first time: others may have committed while our objects were written
            entry = self._next(head)
            if entry is not None:
                return entry
        retry, requests = self.journal.retry, self.requests
        asked = retry.clock()
        self.line = requests.line()
        answer = retry.clock() - asked
        waiting = [r.id for r in self._read([i for i in self.line if not _is_done(i, head)], head)]
        self.met |= bool(waiting)
        before = sum(id < self.draft.id for id in waiting)
        for _ in range(min(before * PAUSES, MOST_PAUSES)):
            retry.rest(answer, before=before)
            entry = self._next(head)
            if entry is not None:
                return entry
        if before:  # whoever is before us has died, or is slow, and the line is no longer what it was
            self.line = requests.line()
        return self._next(head)

    def _next(self, head: Head[PoolState]) -> Entry | None:
        with contextlib.suppress(Unavailable):
            return self.journal.read(head.n + 1)
        return None

    def propose(self, head: Head[PoolState]) -> Entry | Overtaken[Entry] | None:
        """The entry that should come next, None where the outcome is known already."""
        if self.company and not self.posted:
            self._post(head)
        if self.posted:
            entry = self._waited(head)
            if entry is not None:
                return Overtaken(entry)
        if self.seen is not None and not _is_told(self.seen, head):
            self.outcome = self._searched(self.seen, head)
            if self.outcome is not None:
                return None
        try:
            self.refusal = None
            landing = self._landing(head.state, self.draft)
        except LakeError as error:  # a state that cannot be read now refuses nothing
            if not isinstance(error, Unavailable | CheckpointGone | CheckpointDamaged):
                self.refusal = error
            raise
        if isinstance(landing, Remembered):
            self.outcome = Landed(landing.n, landing.id, repeated=landing)
            return None
        transactions = [landing]
        if self.seen is not None or self.company or (head.n + 1) % LOOK_EVERY == 0:
            transactions += self._requested(head, landing)
        self.met |= len(transactions) > 1
        return Entry(self.draft.id, tuple(transactions))

    def _landing(self, state: PoolState, draft: Draft) -> Transaction | Remembered:
        return land(state, draft, key=self.key, rule=self.rule, time=self.now())

    def _requested(self, head: Head[PoolState], first: Transaction) -> list[Transaction]:
        """The transactions of others that fit behind ours."""
        n = head.n + 1
        state = fold_transaction(head.state, n, 0, first)
        taken: dict[str, Transaction] = {}
        line = self.line if self.posted else self.requests.line()
        if n % LOOK_EVERY == 0:  # those who live do so themselves
            for info in line:
                if _is_done(info, head):
                    self.requests.withdraw(naming.request_id(info.name))
                    self.requests.overlook(info.name)
        for request in self._read([info for info in line if not _is_done(info, head)], head):
            try:
                if _is_taken(state, request.draft):
                    continue
                landing = self._landing(state, request.draft)
                if isinstance(landing, Transaction):
                    state = fold_transaction(state, n, len(taken) + 1, landing)
                    taken[request.id] = landing
            except (Unavailable, CheckpointGone, CheckpointDamaged):  # the state cannot be read now
                continue
            except LakeError:  # its writer will find out why when it proposes it itself
                self.requests.overlook(naming.request(self.journal.name, request.id))
        return list(taken.values())

    def _read(self, line: list[ObjectInfo], head: Head[PoolState]) -> list[Request]:
        """The requests of others that may come next, as much as one entry can take."""
        others = [info for info in line if info.name != self.name]
        live = []
        for request in self.requests.read(others, at_once=self.journal.read_all):
            if request.may_be_committed_at(head.n + 1, now=self.now()):
                live.append(request)
            else:  # nobody's concern any more, whether it can be deleted or not
                self.requests.withdraw(request.id)
                self.requests.overlook(naming.request(self.journal.name, request.id))
        return live

    def _searched(self, seen: int, head: Head[PoolState]) -> Landed | None:
        """Whether the draft was committed, from the entries themselves."""
        landed = missing = None
        for n in range(seen + 1, head.n + 1):  # bounded: a stalled writer's entries
            entry = self.journal.read(n)
            if entry is None:
                missing = n
                break
            if any(t.id == self.draft.id for t in entry.transactions):
                landed = Landed(n, self.draft.id)
                break
        fence = self.journal.marks().fence  # what was read at or below it may never have been history
        if landed is not None and landed.n > fence:
            return landed
        if missing is None and fence <= seen:
            return None
        raise OutcomeUnknown(
            f"{naming.entry(self.journal.name, missing or seen + 1)}: purged; whether the transaction "
            f"{self.draft.id} was committed is unknown",
            entry_id=self.draft.id,
            n=seen + 1,
        )


def _is_taken(state: PoolState, draft: Draft) -> bool:
    """Whether a source of the draft was taken in, in whatever form: if in the same, its writer has heard of a
    conflict, and must not find later that it was committed all the same, after the form has changed."""
    consumed = [action for action in draft.actions if isinstance(action, Consume)]
    return any(
        (draft.branch, source.uri) in state.sources for action in consumed for source in action.sources
    )


def _is_done(request: ObjectInfo, head: Head[PoolState]) -> bool:
    """Whether the recent ids tell that what was asked for is committed."""
    return head.recent.find(naming.request_id(request.name)) is not None


def _is_told(seen: int, head: Head[PoolState]) -> bool:
    """Whether the recent ids tell of every entry since `seen`."""
    return head.recent.reaches(seen + 1)
