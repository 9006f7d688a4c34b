"""The history of a pool on its store: loads states, commits drafts, reads older transactions.

This module only connects others: `journal` puts entries and finds lost races, `group_commit` proposes entries,
`rebase` decides what a draft becomes. The caller passes the clock in.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from lake_core import naming
from lake_core.context import FORMAT_VERSION
from lake_core.errors import (
    Conflict,
    InvalidInput,
    LakeError,
    NotFound,
    OutcomeUnknown,
    Unavailable,
    Undecided,
)
from lake_core.history.activity import ActivityNote
from lake_core.history.checkpoint import PoolStateFormat
from lake_core.history.draft import Draft
from lake_core.history.fold import fold_entry, fold_transaction
from lake_core.history.group_commit.attempt import Attempt
from lake_core.history.group_commit.requests import DraftRequest, Requests
from lake_core.history.group_commit.states import State
from lake_core.history.limits import HISTORY_LIMITS, HistoryLimits
from lake_core.history.rebase import Committed, check_open, rebase
from lake_core.history.repeated import check_repeated, holds
from lake_core.history.state import PoolState, Remembered
from lake_core.history.transactions.decisions import TOKEN, Decision, Decisions
from lake_core.history.transactions.preparing import settling
from lake_core.history.transactions.waiting import DecisionWait
from lake_core.journal import Journal, LoadedState, Retry, gates
from lake_core.keys import PoolKey
from lake_core.records import AddField, Entry, Join, RenameField, Settle, Split, Transaction
from lake_core.records.codec import Codec
from lake_core.records.metadata import check_text
from lake_core.schemas import APPEND, Rule
from lake_core.store import Store
from lake_core.store.meter import COMMITS, RACES_LOST, meter_of

log = logging.getLogger(__name__)

CONTENDED_COMMITS = 8
"""After meeting contention, post a request right away for this many commits.  A needless request costs three store
calls; losing two races costs ten (decision 24)."""


class History:
    """The history of one pool: its journal, as transactions.  `pool_name` is for messages, "" if it is not
    known."""

    def __init__(
        self,
        store: Store,
        *,
        pool_id: str,
        key: PoolKey,
        clock: Callable[[], float],
        rule: Rule = APPEND,
        retry: Retry | None = None,
        token_keep: float = 30 * 86400,
        limits: HistoryLimits = HISTORY_LIMITS,
        format_version: int = FORMAT_VERSION,
        metadata: Mapping[str, str] | None = None,
        gated: bool = True,
        homes: frozenset[str] = frozenset(),
    ) -> None:
        """`homes`: the other pools, by id, in whose folders objects of this one may lie."""
        self.pool_name = ""
        self._homes = homes
        self._metadata = dict(metadata or {})
        self.limits = limits
        self._format_version = format_version
        self._key, self._rule = key, rule
        self._clock = clock
        self._meter = meter_of(store)
        self._contended = 0
        self._unknown: dict[str, int] = {}
        name = naming.pool_journal(pool_id)
        self._activity = ActivityNote(store, pool_id, clock)
        self.decisions = Decisions(store, clock)
        self._requests = Requests(store, name, Codec(DraftRequest, version=format_version))
        self.journal: Journal[Entry, PoolState] = Journal(
            store,
            name,
            Codec(Entry, version=format_version),
            PoolState.empty(min_changes=limits.min_changes),
            fold_entry,
            retry or Retry(),
            ids=lambda entry: tuple(t.id for t in entry.transactions),
            format=PoolStateFormat(token_keep, limits, homes),
            limits=limits.journal,
            kept=PoolState.kept_at,
            gated=gated and format_version >= gates.FORMAT,
        )

    def now(self) -> int:
        """Returns the time by the lake's clock, in microseconds since 1970."""
        return int(self._clock() * 1_000_000)

    def load(self) -> LoadedState[PoolState]:
        """Returns the newest state.  Raises Corrupt, Unavailable."""
        return self.journal.load()

    def load_open(self) -> LoadedState[PoolState]:
        """Returns the newest state, like `load`.  Raises NotFound if the pool was dropped.

        Decided transactions over several pools are first settled in this pool.  If this process may not write,
        the returned state shows them all the same.
        """
        loaded = self.load()
        check_open(loaded.state, pool=self.pool_name)
        return self._shown(loaded) if len(loaded.state.pending) else loaded

    def _shown(self, loaded: LoadedState[PoolState]) -> LoadedState[PoolState]:
        """Returns the state with all pending parts that are committed.  If this process may not write, and so
        cannot settle them, the returned state shows them as if they were settled."""
        decided = [(over, self.decisions.get(over)) for over in sorted(loaded.state.pending.keys())]
        committed: list[tuple[str, Decision]] = []
        for over, decision in decided:
            if decision is None:
                continue
            try:
                self.settle(over, decision)
            except LakeError as error:
                log.info("%s: transaction %s is shown, not settled: %s", self.journal.name, over, error)
                committed += [(over, decision)] if decision.committed else []
        loaded = self.load()
        check_open(loaded.state, pool=self.pool_name)
        return self.with_committed(loaded, committed)

    def with_committed(
        self, loaded: LoadedState[PoolState], committed: Sequence[tuple[str, Decision]]
    ) -> LoadedState[PoolState]:
        """Returns the state as if these committed transactions were settled in it, if they are pending there."""
        state, index = loaded.state, 0
        for over, decision in committed:
            if (part := state.pending.get(over)) is None:
                continue
            draft = settling(part, over, committed=True, prepared=decision.prepared)
            settles = rebase(state, draft, key=self._key, rule=self._rule, time=decision.time)
            assert isinstance(settles, Transaction)  # commuting lets nothing in that would refuse it
            state = fold_transaction(state, loaded.version + 1, index, settles)
            index += settles.width
            shown = replace(state.branches[part.into], tip=loaded.version)  # no entry is newer
            state = replace(state, branches=state.branches.insert(part.into, shown))
        return replace(loaded, state=state) if index else loaded

    def settle(self, over: str, decision: Decision) -> int | None:
        """Commits in this pool what a transaction over several pools decided.  Returns the version.  Returns
        None if this pool has no pending part of it."""
        part = self.load().state.pending.get(over)
        if part is None:
            return None
        done = self._commit(settling(part, over, committed=decision.committed, prepared=decision.prepared))
        return None if done.unchanged else done.version

    def load_recent(self) -> LoadedState[PoolState]:
        """Returns the state in memory if it was the newest a short time ago, otherwise calls `load`."""
        return self.journal.load_recent()

    def believed(self) -> LoadedState[PoolState] | None:
        """Returns the open state in memory if it is probably still the newest, for a draft that `is_exact`."""
        loaded = None if self._contended else self.journal.believed()
        is_open = loaded is not None and loaded.state.closed is None and not len(loaded.state.pending)
        return loaded if is_open else None

    def commit(self, draft: Draft, *, meanwhile: Callable[[], None] = lambda: None) -> Committed:
        """Commits the draft to its branch, rebased onto the transactions that other writers commit meanwhile.

        If a transaction over several pools is being committed, and the draft does not commute with it, this
        waits for the decision, up to `MOST_WAITING` seconds; `meanwhile` is called before each check.  It
        aborts a transaction whose owner is dead.

        After an OutcomeUnknown, or an interruption such as Ctrl-C, this History may commit the same draft
        again, as often as necessary; another process may do so only if the draft has a token.  Raises the
        errors of `rebase.rebase` and `Journal.append`, and InvalidInput if the lake's format cannot hold the
        draft.
        """
        waiting = DecisionWait(self.journal.retry)
        while True:  # bounded by the time that `waiting` allows
            try:
                return self._commit(draft)
            except Undecided as error:
                meanwhile()
                self._resolve(error, waiting)

    def _resolve(self, error: Undecided, waiting: DecisionWait) -> None:
        """Settles the transaction that the draft must wait for, if it is decided or can be aborted; otherwise
        pauses.  Raises the error if the wait has lasted too long."""
        decision = self.decisions.get(error.over)
        if (
            decision is None
            and waiting.asks()
            and self.decisions.is_dead(error.over, met_in=self.journal.name)
        ):
            if error.over not in self.load().state.pending:  # it was settled, and its objects deleted
                return
            log.warning("%s: transaction %s has no live owner, and is aborted", self.journal.name, error.over)
            decision = self.decisions.decide(error.over, committed=False, by="a process that waited for it")
        if decision is not None:
            self.settle(error.over, decision)
        elif waiting.is_over():
            raise error
        else:
            waiting.pause()

    def _commit(self, draft: Draft) -> Committed:
        """Like `commit`, but raises Undecided instead of waiting."""
        self.check_draft(draft)
        self._activity.keep()
        draft = replace(draft, metadata={**self._metadata, **draft.metadata})
        contended = self._contended > 0
        attempt = Attempt(
            self.journal,
            self._requests,
            self._key,
            self._rule,
            self.now,
            draft,
            contended=contended,
            limits=self.limits,
            possible_since=self._unknown.get(draft.id),
        )
        try:
            appended = self.journal.append(
                attempt.propose, id=draft.id, lost=attempt.lose_race, contended=contended
            )
        except BaseException as error:
            attempt.fail(error)
            self._note(attempt)
            if isinstance(error, Undecided):
                raise
            if attempt.state is State.UNKNOWN and isinstance(error, Conflict | Unavailable):
                raise self._outcome_unknown(attempt, error) from error
            raise
        finally:
            if attempt.lost:
                self._meter.count(RACES_LOST, attempt.lost)
            self._activity.keep()  # again if the commit took so long that the note does not stand for it
        committed = attempt.succeed(appended)
        self._activity.warn()
        self._note(attempt)
        if committed.repeated is not None:
            self.first_use(self.load().state, draft.token, branch=draft.branch)
        if appended is not None:
            self._meter.count(COMMITS)
            self._contended = CONTENDED_COMMITS if attempt.others else max(0, self._contended - 1)
        return committed

    def check_draft(self, draft: Draft) -> None:
        """Raises InvalidInput if the lake's format cannot hold the draft, or one of its texts is not allowed."""
        if self._format_version < (needed := draft.needs_version):
            inlines = any(getattr(action, "data", b"") for action in draft.actions)
            splits = any(isinstance(action, Split | Join) for action in draft.actions)
            edits = any(isinstance(action, RenameField | AddField) for action in draft.actions)
            named = {"inlined objects": inlines, "split points": splits, "edits of fields": edits}
            newest = next(
                (name for name, is_there in named.items() if is_there), "transactions over several pools"
            )
            lacks = "branches, tags, reverts and vacuum" if needed == 2 else newest
            raise InvalidInput(
                f"this lake has format version {self._format_version}, which has no {lacks}: run lake upgrade"
            )
        check_text("message", draft.message)
        check_text("token", draft.token)
        if draft.token.startswith(TOKEN) and not any(isinstance(one, Settle) for one in draft.actions):
            raise InvalidInput(
                f"token: {TOKEN!r} begins the tokens of transactions over pools; choose another"
            )
        for action in draft.actions:
            check_text("reason", getattr(action, "reason", ""))

    def _note(self, attempt: Attempt) -> None:
        """Withdraws the request if the outcome is known; otherwise remembers the version from which to search for
        it."""
        if attempt.state is not State.DONE:
            assert attempt.possible_since is not None  # so it is in every other state that ends an attempt
            self._unknown[attempt.draft.id] = attempt.possible_since
            return
        self._unknown.pop(attempt.draft.id, None)
        if attempt.possible_since is not None:
            self._requests.withdraw(attempt.draft.id)

    @staticmethod
    def _outcome_unknown(attempt: Attempt, error: Exception) -> OutcomeUnknown:
        assert attempt.possible_since is not None  # others may commit the draft, or have
        return OutcomeUnknown(
            f"{error}; the transaction {attempt.draft.id} may still be committed",
            entry_id=attempt.draft.id,
            version=attempt.possible_since,
        )

    def first_use(self, state: PoolState, token: str, *, branch: str) -> Remembered | None:
        """Returns the first result under the token; None without a token, or if the state does not know it.
        Raises InvalidInput if that result is not on the branch (`repeated`), Corrupt, Unavailable."""
        first = state.tokens.get(token) if token else None
        there = state.branches.get(branch)
        if first is not None and there is not None and not holds(there, first):
            check_repeated(self.read_transactions(), first, branch=branch, token=token)
        return first

    def keep_tokens(self, seconds: float) -> None:
        """Makes the next checkpoint remember tokens for at least this many seconds."""
        self.journal.format = PoolStateFormat(seconds, self.limits, self._homes)

    def load_version(self, version: int) -> LoadedState[PoolState]:
        """Returns the state at a version.  Raises NotFound if the version does not exist or is purged."""
        loaded = self.journal.load_version(version) if version > 0 else None
        if loaded is None:
            raise NotFound(f"version {version} does not exist; the newest is {self.load().version}")
        return loaded

    def read_transactions(self, *, branch: str | None = None) -> Iterator[tuple[int, Transaction]]:
        """Yields versions and transactions, newest first, of one branch or of all, back to the newest fence."""
        for version, entry in self.journal.backwards():
            for transaction in reversed(entry.transactions):
                if branch is None or transaction.branch == branch:
                    yield version, transaction
