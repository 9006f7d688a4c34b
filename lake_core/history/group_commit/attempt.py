"""One commit under way: the writer proposes its draft on ever newer states, alone or with the requests of others.

A writer that lost two races, or saw contention at one of its last commits, stores its draft as a request and
waits in the queue (group commit: docs/protocol.md).  `states` defines the allowed transitions; this module does
the writer's work in each state.  Each call of `History.commit` makes one attempt.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from lake_core import naming
from lake_core.errors import (
    CheckpointDamaged,
    CheckpointGone,
    Conflict,
    LakeError,
    OutcomeUnknown,
    Unavailable,
    Undecided,
)
from lake_core.history.draft import Draft
from lake_core.history.fold import fold_transaction
from lake_core.history.group_commit.requests import DraftRequest, Requests
from lake_core.history.group_commit.states import REQUEST_IS_STORED, Event, State, next_state
from lake_core.history.limits import HISTORY_LIMITS, HistoryLimits
from lake_core.history.rebase import Committed, rebase
from lake_core.history.refusals import may_be_posted, may_have_been_refused
from lake_core.history.state import PoolState, Remembered
from lake_core.journal import Appended, Journal, LoadedState, NextEntry
from lake_core.journal.link import StoredEntry, fits
from lake_core.keys import PoolKey
from lake_core.records import Entry, Transaction
from lake_core.records.transactions import MAX_TRANSACTIONS
from lake_core.schemas import Rule
from lake_core.store import ObjectInfo

log = logging.getLogger(__name__)

PAUSES_PER_WRITER, MAX_PAUSES = 8, 32
"""Pauses to wait for each writer ahead in the queue, and in total.  A commit takes about that long: one listing,
the requests in parallel, the entry, the check for fences (decision 24)."""

COLLECT_EVERY = 8
"""The writer of every eighth entry collects pending requests even if it lost no race; otherwise a writer that
always wins would never see the requests of those that always lose.  The version is used, not a counter of the
writer, so that this also works for many processes that commit once each (decision 20)."""


@dataclass
class Attempt:
    """One commit under way: `Journal.append` calls `propose` and `lose_race`; then comes `succeed` or `fail`.

    `now`: microseconds since 1970.  `contended`: the writer saw contention at one of its last commits.
    `possible_since`: after this version another writer may have committed the draft without our knowing,
    because we posted a request or because an earlier attempt ended with an unknown outcome; None: no other
    writer can have.  `begun`: the version on which this attempt first proposed.  `lost`: how many races it
    lost.  `others`: how many other writers it has seen.  `answer`: the known outcome or the refusal, if the
    last proposal gave one of these instead of an entry.
    """

    journal: Journal[Entry, PoolState]
    requests: Requests
    key: PoolKey
    rule: Rule
    now: Callable[[], int]
    draft: Draft
    contended: bool
    limits: HistoryLimits = HISTORY_LIMITS
    possible_since: int | None = None
    begun: int | None = None
    state: State = field(init=False)
    lost: int = 0
    others: int = 0
    queue: list[ObjectInfo] = field(default_factory=list)
    answer: LakeError | Committed | None = None

    def __post_init__(self) -> None:
        self.state = State.IDLE if self.possible_since is None else State.UNKNOWN

    @property
    def name(self) -> str:
        """The name of the draft's request."""
        return naming.request(self.journal.name, self.draft.id)

    def _move(self, event: Event) -> None:
        before, self.state = self.state, next_state(self.state, event)
        log.debug("%s: %s: %s -> %s", self.draft.id, event.name, before.name, self.state.name)

    # --- for Journal.append

    def propose(self, loaded: LoadedState[PoolState]) -> Entry | NextEntry[Entry] | None:
        """Returns the entry that the writer should put next; None if the outcome is already known.  If another
        writer's next entry was found on the store, returns that entry."""
        self.answer = None
        if self.begun is None:
            self.begun = loaded.version
            if self.contended:
                self._post(loaded)
        if self.state in REQUEST_IS_STORED:
            entry = self._wait_in_queue(loaded)
            if entry is not None:
                return NextEntry(entry)
        if self.possible_since is not None and not _is_known_since(self.possible_since, loaded):
            self.answer = self._search_entries(self.possible_since, loaded)
            if self.answer is not None:
                return None
        try:
            rebased = self._rebase(loaded.state, self.draft)
        except LakeError as error:
            if not isinstance(error, _STATE_UNREADABLE):
                self.answer = error
            raise
        if isinstance(rebased, Remembered):
            self.answer = Committed(rebased.version, rebased.transaction_id, repeated=rebased)
            return None
        if rebased is None:
            self.answer = Committed(loaded.version, self.draft.id, unchanged=True)
            return None
        collected: list[Transaction] = []
        if self.state is not State.IDLE or (loaded.version + 1) % COLLECT_EVERY == 0:
            collected = self._collect_requests(loaded, rebased)
        self.others += len(collected)
        return Entry(self.draft.id, (rebased, *collected))

    def lose_race(self, times: int, loaded: LoadedState[PoolState]) -> None:
        """Records a lost race; after enough of them, posts a request."""
        self.lost = times
        log.debug("%s: lost %d races, the last for version %d", self.draft.id, times, loaded.version + 1)
        if self.state not in REQUEST_IS_STORED and times >= self.limits.lost_races_before_request:
            self.others += times
            self._post(loaded)

    def succeed(self, appended: Appended[PoolState] | None) -> Committed:
        """Returns the outcome of a commit that the journal finished."""
        self._move(Event.COMMITTED)
        if appended is not None:
            log.info(
                "%s: version %d holds transaction %s; tried %d versions, met %d other writers",
                self.journal.name,
                appended.version,
                self.draft.id,
                appended.tries,
                self.others,
            )
            # a draft of tags has no branch, and one that deletes its branch leaves none
            branch = appended.state.branches.get(self.draft.branch)
            tombstones = branch.tombstones.values() if branch is not None else ()
            overtaken = [t.reason for t in tombstones if t.self_only and t.transaction_id == self.draft.id]
            return Committed(appended.version, self.draft.id, overtaken=tuple(sorted(overtaken)))
        assert isinstance(self.answer, Committed)  # propose returns None only after setting it
        how = "has nothing to do" if self.answer.unchanged else "is committed already"
        log.info("%s: %s %s, in version %d", *self._named, how, self.answer.version)
        return self.answer

    def fail(self, error: BaseException) -> None:
        """Records the error that ended the commit: the state becomes DONE if the draft is certainly not
        committed."""
        if isinstance(error, OutcomeUnknown):
            self.possible_since = error.version - 1  # earlier entries were folded, and do not hold the draft
            event = Event.ANSWER_LOST
        elif isinstance(error, LakeError):
            # the refusal itself is raised only if it rests on the newest state
            is_refusal = error is self.answer or not isinstance(error, Conflict | Unavailable)
            event = Event.REFUSED if is_refusal else Event.GAVE_UP
        elif self.begun is None:  # interrupted before anything was proposed
            event = Event.GAVE_UP
        else:  # interrupted: the entry may be written, or others may commit the request
            self.possible_since = self.begun if self.possible_since is None else self.possible_since
            event = Event.ANSWER_LOST
        self._move(event)
        log.info("%s: %s ends in state %s: %s", *self._named, self.state.name, type(error).__name__)

    @property
    def _named(self) -> tuple[str, str]:
        return self.journal.name, self.draft.id

    # --- the request, and the queue of requests

    def _post(self, loaded: LoadedState[PoolState]) -> None:
        """Posts the draft, if others may commit it."""
        if self.draft.is_own or not may_be_posted(loaded.state, self.draft, rule=self.rule):
            return
        self._move(Event.CONTENTION)
        self.possible_since = loaded.version if self.possible_since is None else self.possible_since
        self._move(Event.POST)
        self.requests.post(self.draft, possible_since=self.possible_since, time=self.now())

    def _wait_in_queue(self, loaded: LoadedState[PoolState]) -> StoredEntry[Entry] | None:
        """Lets older requests go first, for a bounded number of pauses. Returns the next entry if another writer
        has put it meanwhile, otherwise None.

        Without the queue, every waiting writer would read all requests and build its own combined entry, and
        all but one would lose the race.
        """
        if self.state is State.POSTED:  # others may have committed while this writer wrote its objects
            entry = self._read_next(loaded)
            if entry is not None:
                return entry
        retry = self.journal.retry
        asked = retry.clock()
        self._list_queue()
        answer = retry.clock() - asked
        pending = [info for info in self.queue if not _is_done(info, loaded)]
        waiting = [request.id for request in self._read_requests(pending, loaded)]
        self.others += len(waiting)
        before = sum(id < self.draft.id for id in waiting)
        pauses = min(before * PAUSES_PER_WRITER, MAX_PAUSES)
        log.debug(
            "%s: %d requests ahead in the queue; waits at most %d pauses", self.draft.id, before, pauses
        )
        for _ in range(pauses):
            retry.rest(answer, before=before)
            entry = self._read_next(loaded)
            if entry is not None:
                return entry
        if before:  # the writers ahead died or are slow, and the queue has changed meanwhile
            self._list_queue()
        return self._read_next(loaded)

    def _list_queue(self) -> None:
        self.queue = self.requests.queue()
        self._move(Event.QUEUE_LISTED if self.queue else Event.NOTHING_LISTED)

    def _read_next(self, loaded: LoadedState[PoolState]) -> StoredEntry[Entry] | None:
        with contextlib.suppress(Unavailable):
            return self.journal.read_stored(loaded.version + 1)
        return None

    def _rebase(self, state: PoolState, draft: Draft) -> Transaction | Remembered | None:
        return rebase(state, draft, key=self.key, rule=self.rule, time=self.now())

    def _collect_requests(self, loaded: LoadedState[PoolState], first: Transaction) -> list[Transaction]:
        """Returns the transactions of other writers that fit after ours, oldest request first."""
        version = loaded.version + 1
        state, index = fold_transaction(loaded.state, version, 0, first), first.width
        collected: dict[str, Transaction] = {}
        queue = self.queue if self.state in REQUEST_IS_STORED else self.requests.queue()
        if version % COLLECT_EVERY == 0:  # a living writer withdraws its own request; this is for the dead
            for info in queue:
                if _is_done(info, loaded):
                    self.requests.withdraw(naming.request_id(info.name))
                    self.requests.overlook(info.name)
        pending = [info for info in queue if not _is_done(info, loaded)]
        for request in self._read_requests(pending, loaded):
            try:
                if may_have_been_refused(state, request.draft, since=request.possible_since):
                    self.requests.overlook(naming.request(self.journal.name, request.id))
                    continue
                rebased = self._rebase(state, request.draft)
                if isinstance(rebased, Transaction) and index + rebased.width < MAX_TRANSACTIONS:
                    state = fold_transaction(state, version, index, rebased)
                    collected[request.id] = rebased
                    index += rebased.width
            except _STATE_UNREADABLE:
                continue
            except LakeError as error:  # its writer finds out why when it proposes the draft itself
                log.debug("request %s is overlooked: %s", request.id, error)
                self.requests.overlook(naming.request(self.journal.name, request.id))
        if queue:
            log.info(
                "%s: version %d collects %d of %d requests",
                self.journal.name,
                version,
                len(collected),
                len(queue),
            )
        return list(collected.values())

    def _read_requests(self, queue: list[ObjectInfo], loaded: LoadedState[PoolState]) -> list[DraftRequest]:
        """Returns the requests of other writers that may come next, at most as many as one entry can hold."""
        others = [info for info in queue if info.name != self.name]
        live = []
        for request in self.requests.read(others, at_once=self.journal.read_all):
            if request.may_be_committed_at(loaded.version + 1, now=self.now(), limits=self.limits.journal):
                live.append(request)
            else:  # expired: overlook it even if it cannot be deleted
                log.debug("request %s has expired", request.id)
                self.requests.withdraw(request.id)
                self.requests.overlook(naming.request(self.journal.name, request.id))
        return live

    def _search_entries(self, possible_since: int, loaded: LoadedState[PoolState]) -> Committed | None:
        """Returns the commit of the draft, found in the entries themselves; None if it is not committed.
        Raises OutcomeUnknown if one of the entries is purged or lost."""
        log.info(
            "%s: searches versions %d to %d for %s",
            self.journal.name,
            possible_since + 1,
            loaded.version,
            self.draft.id,
        )
        committed = missing = None
        checksum = 0
        for version in range(possible_since + 1, loaded.version + 1):  # bounded: a stalled writer's entries
            stored = self.journal.read_stored(version)
            if stored is None:
                missing = version
                break
            if not fits(
                stored.entry.previous, checksum
            ):  # the entry before was lost, and another is in its place
                missing = version - 1
                break
            checksum = stored.checksum
            if any(t.id == self.draft.id for t in stored.entry.transactions):
                committed = Committed(version, self.draft.id)
                break
        fence = self.journal.marks().fence  # an entry read at or below it may never have been in the history
        if committed is not None and committed.version > fence:
            return committed
        if missing is None and fence <= possible_since:
            return None
        raise OutcomeUnknown(
            f"{naming.entry(self.journal.name, missing or possible_since + 1)}: purged or lost; whether the "
            f"transaction {self.draft.id} was committed is unknown",
            entry_id=self.draft.id,
            version=possible_since + 1,
        )


_STATE_UNREADABLE = (Unavailable, CheckpointGone, CheckpointDamaged, Undecided)
"""Errors that do not refuse the draft: the state cannot be read, or a transaction over pools is undecided.  A
later try of the same draft may be accepted."""


def _is_done(request: ObjectInfo, loaded: LoadedState[PoolState]) -> bool:
    """Whether the recent ids show that the draft of the request is committed."""
    return loaded.recent.version_of(naming.request_id(request.name)) is not None


def _is_known_since(version: int, loaded: LoadedState[PoolState]) -> bool:
    """Whether the recent ids reach back to every entry after the version."""
    return loaded.recent.reaches(version + 1)
