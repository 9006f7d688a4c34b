"""The history of a pool on its store: load states, commit drafts, look back.

The thin part: the journal races, `attempt` proposes, `landing` decides, the clock comes in from the edge.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator

from lake_core import naming
from lake_core.combine import APPEND, Rule
from lake_core.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    OutcomeUnknown,
    Unavailable,
)
from lake_core.history.checkpoint import PoolStateFormat
from lake_core.history.group_commit.attempt import Attempt
from lake_core.history.group_commit.requests import Requests
from lake_core.history.group_commit.states import State
from lake_core.history.rebase import Committed, Draft, check_open
from lake_core.history.state import PoolState, fold_entry
from lake_core.journal import Journal, LoadedState, Retry
from lake_core.keys import PoolKey
from lake_core.records import Entry, Transaction
from lake_core.records.codec import Codec
from lake_core.store import Store

CONTENDED_COMMITS = 8
"""For how many commits a writer that met others asks at once: to ask for nothing costs three requests, to lose two
races ten."""


class History:
    """One pool's journal, seen as transactions."""

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
    ) -> None:
        self._key, self._rule = key, rule
        self._clock = clock
        self._contended = 0
        self._unknown: dict[str, int] = {}
        name = naming.pool_journal(pool_id)
        self._requests = Requests(store, name)
        self.journal: Journal[Entry, PoolState] = Journal(
            store,
            name,
            Codec(Entry),
            PoolState(),
            fold_entry,
            retry or Retry(),
            ids=lambda entry: tuple(t.id for t in entry.transactions),
            format=PoolStateFormat(token_keep),
        )

    def now(self) -> int:
        """Microseconds since 1970, by this process's clock."""
        return int(self._clock() * 1_000_000)

    def load(self) -> LoadedState[PoolState]:
        """The newest state."""
        return self.journal.load()

    def load_open(self) -> LoadedState[PoolState]:
        """The newest state, on which work may begin; raises NotFound if the pool was dropped."""
        loaded = self.load()
        check_open(loaded.state)
        return loaded

    def commit(self, draft: Draft) -> Committed:
        """Land the draft on its branch, whatever else lands meanwhile.

        After an OutcomeUnknown, or an interruption such as Ctrl-C, the same draft may be committed again here, as
        often as it takes; elsewhere only with a token.  Raises what `landing.land` and `Journal.append` raise.
        """
        attempt = Attempt(
            self.journal,
            self._requests,
            self._key,
            self._rule,
            self.now,
            draft,
            contended=self._contended > 0,
            possible_since=self._unknown.get(draft.id),
        )
        try:
            appended = self.journal.append(attempt.propose, id=draft.id, lost=attempt.lose_race)
        except BaseException as error:
            attempt.fail(error)
            self._note(attempt)
            if attempt.state is State.UNKNOWN and isinstance(error, Conflict | Unavailable):
                raise self._outcome_unknown(attempt, error) from error
            raise
        committed = attempt.succeed(appended)
        self._note(attempt)
        if appended is not None:
            self._contended = CONTENDED_COMMITS if attempt.others else max(0, self._contended - 1)
        return committed

    def _note(self, attempt: Attempt) -> None:
        """Withdraw the request if the outcome is known; otherwise remember from which version to look for it."""
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

    def keep_tokens(self, seconds: float) -> None:
        """The next checkpoint remembers tokens at least this long."""
        self.journal.format = PoolStateFormat(seconds)

    def find_commit(self, token: str) -> Committed | None:
        """The transaction that the token stands for, if any."""
        found = self.load().state.tokens.get(token)
        return Committed(found.version, found.transaction_id, repeated=found) if found else None

    def load_version(self, version: int) -> LoadedState[PoolState]:
        """The state after entry `n`; raises NotFound."""
        loaded = self.journal.load_version(version) if version > 0 else None
        if loaded is None:
            raise NotFound(f"version {version} does not exist; the newest is {self.load().version}")
        return loaded

    def read_transactions(self, *, branch: str | None = None) -> Iterator[tuple[int, Transaction]]:
        """The history newest first, of one branch or of all, back to where it is purged."""
        for version, entry in self.journal.backwards():
            for transaction in reversed(entry.transactions):
                if branch is None or transaction.branch == branch:
                    yield version, transaction

    def resolve_revision(self, at: str) -> tuple[LoadedState[PoolState], str]:
        """The state and the branch that a revision names.

        `at`: a transaction number, a transaction id, a branch, or BRANCH@TIME (ISO 8601; without zone UTC).
        Raises NotFound, and InvalidInput for a time that cannot be read.
        """
        newest = self.load_open()
        if at in newest.state.branches:
            return newest, at
        if at.isascii() and at.isdigit():
            loaded = self.load_version(int(at))
            return loaded, next(name for name, b in loaded.state.branches.items() if b.tip == loaded.version)
        branch, sign, time = at.rpartition("@")
        if sign and branch in newest.state.branches:
            moment = _microseconds(time)
            found = next(
                (version for version, t in self.read_transactions(branch=branch) if t.time <= moment), None
            )
            if found is None:
                raise NotFound(f"branch {branch!r} has no transaction at or before {time}{self._begins()}")
            return self.load_version(found), branch
        if naming.is_id(at):
            match = next(((version, t) for version, t in self.read_transactions() if t.id == at), None)
            if match is not None:
                return self.load_version(match[0]), match[1].branch
        branches = ", ".join(sorted(newest.state.branches))
        raise NotFound(
            f"revision {at!r} does not exist{self._begins()}; name a transaction, a branch ({branches}) or "
            "BRANCH@TIME"
        )

    def _begins(self) -> str:
        """For messages: what is not found may have been purged."""
        fence = self.journal.marks().fence
        return f" (the history begins after {fence}: what came before is purged)" if fence else ""


def _microseconds(text: str) -> int:
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(f"time {text!r}: not ISO 8601, such as 2026-11-20T12:00:00Z") from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return round(moment.timestamp() * 1_000_000)
