"""The history of a pool on its store: load states, commit drafts, look back.

The thin part: the journal races, `landing` decides, the clock comes in from the edge.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lake_core import naming
from lake_core.commits.checkpoint import PoolStateFormat
from lake_core.commits.landing import Draft, Landed, land
from lake_core.commits.requests import Requests
from lake_core.commits.state import PoolState, Remembered, fold_entry, fold_transaction
from lake_core.errors import Conflict, InvalidInput, LakeError, NotFound, OutcomeUnknown, Unavailable
from lake_core.journal import Head, Journal, Retry
from lake_core.keys import PoolKey
from lake_core.records import Entry, Transaction
from lake_core.records.codec import Codec
from lake_core.store import Store

PATIENCE = 2
"""How many races a writer loses before it asks the winner of the next to commit for it."""


class History:
    """One pool's journal, seen as transactions."""

    def __init__(
        self,
        store: Store,
        *,
        pool_id: str,
        key: PoolKey,
        clock: Callable[[], float],
        retry: Retry | None = None,
        token_keep: float = 30 * 86400,
    ) -> None:
        self._key = key
        self._clock = clock
        self._crowded = False
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

    def load(self) -> Head[PoolState]:
        """The newest state."""
        return self.journal.load()

    def commit(self, draft: Draft) -> Landed:
        """Land the draft on its branch, whatever else lands meanwhile.

        Raises what `landing.land` and `Journal.append` raise.
        """
        attempt = _Attempt(self, draft)
        try:
            appended = self.journal.append(attempt.propose, id=draft.id, lost=attempt.lost)
        except (Conflict, Unavailable) as error:
            if attempt.seen is None or attempt.refused:
                attempt.withdraw()
                raise
            raise OutcomeUnknown(
                f"{error}; the transaction {draft.id} may be committed by another writer yet. Run the same "
                "command with the same token again",
                entry_id=draft.id,
                n=attempt.seen,
            ) from error
        except OutcomeUnknown:
            raise
        except LakeError:
            attempt.withdraw()
            raise
        attempt.withdraw()
        if appended is not None:
            self._crowded = appended.tries > 1 or attempt.others > 0
            return Landed(appended.n, draft.id)
        assert attempt.outcome is not None  # propose returns None only after setting it
        return attempt.outcome

    def remembered(self, token: str) -> Landed | None:
        """The transaction that the token stands for, if any."""
        found = self.load().state.tokens.get(token)
        return Landed(found.n, found.id, repeated=found) if found else None

    def at(self, n: int) -> Head[PoolState]:
        """The state after entry `n`; raises NotFound."""
        head = self.journal.at(n) if n > 0 else None
        if head is None:
            raise NotFound(f"transaction {n} does not exist; the newest is {self.load().n}")
        return head

    def transactions(self, *, branch: str | None = None) -> Iterator[tuple[int, Transaction]]:
        """The history newest first, of one branch or of all, back to where it is purged."""
        newest = self.load().n
        for n in range(newest, self.journal.marks().fence, -1):
            entry = self.journal.read(n)
            if entry is None:
                return
            for transaction in reversed(entry.transactions):
                if branch is None or transaction.branch == branch:
                    yield n, transaction

    def resolve(self, at: str) -> tuple[Head[PoolState], str]:
        """The state and the branch that a revision names.

        `at`: a transaction number, a transaction id, a branch, or BRANCH@TIME (ISO 8601; without zone UTC).
        Raises NotFound, and InvalidInput for a time that cannot be read.
        """
        newest = self.load()
        if at in newest.state.branches:
            return newest, at
        if at.isascii() and at.isdigit():
            head = self.at(int(at))
            return head, next(name for name, b in head.state.branches.items() if b.tip == head.n)
        branch, sign, time = at.rpartition("@")
        if sign and branch in newest.state.branches:
            moment = _microseconds(time)
            found = next((n for n, t in self.transactions(branch=branch) if t.time <= moment), None)
            if found is None:
                raise NotFound(f"branch {branch!r} has no transaction at or before {time}")
            return self.at(found), branch
        if naming.is_id(at):
            match = next(((n, t) for n, t in self.transactions() if t.id == at), None)
            if match is not None:
                return self.at(match[0]), match[1].branch
        branches = ", ".join(sorted(newest.state.branches))
        raise NotFound(
            f"revision {at!r} does not exist; name a transaction, a branch ({branches}) or BRANCH@TIME"
        )


def _microseconds(text: str) -> int:
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(f"time {text!r}: not ISO 8601, such as 2026-11-20T12:00:00Z") from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return round(moment.timestamp() * 1_000_000)


@dataclass
class _Attempt:
    """One commit under way: proposes the draft on ever newer states, alone or with the requests of others."""

    history: History
    draft: Draft
    seen: int | None = None
    others: int = 0
    refused: bool = False
    outcome: Landed | None = None

    def lost(self, times: int, head: Head[PoolState]) -> None:
        """After the second lost race, ask whoever wins the next one."""
        if times == PATIENCE:
            self.seen = head.n
            self.history._requests.post(self.draft, seen=head.n)

    def withdraw(self) -> None:
        """The outcome is known: nobody need commit it any more."""
        if self.seen is not None:
            self.history._requests.withdraw(self.draft.id)

    def propose(self, head: Head[PoolState]) -> Entry | None:
        """The entry that should come next, None where the outcome is known already."""
        if self.seen is not None and not _is_told(self.seen, head):
            self.outcome = self._searched(self.seen, head)
            if self.outcome is not None:
                return None
        self.refused = True
        landing = self._landing(head.state, self.draft)
        self.refused = False
        if isinstance(landing, Remembered):
            self.outcome = Landed(landing.n, landing.id, repeated=landing)
            return None
        transactions = [landing]
        if self.seen is not None or self.history._crowded:
            transactions += self._requested(head, landing)
        self.others = len(transactions) - 1
        return Entry(self.draft.id, tuple(transactions))

    def _landing(self, state: PoolState, draft: Draft) -> Transaction | Remembered:
        time = int(self.history._clock() * 1_000_000)
        return land(state, draft, key=self.history._key, time=time)

    def _requested(self, head: Head[PoolState], first: Transaction) -> list[Transaction]:
        """The transactions of others that fit behind ours."""
        n = head.n + 1
        state = fold_transaction(head.state, n, 0, first)
        taken: list[Transaction] = []
        for request in self.history._requests.waiting():
            if head.recent.find(request.id) is not None:
                self.history._requests.withdraw(request.id)  # done; its writer finds it in the history
                continue
            if request.id == self.draft.id or not request.may_be_committed_at(n):
                continue
            try:
                landing = self._landing(state, request.draft)
                if isinstance(landing, Transaction):
                    state = fold_transaction(state, n, len(taken) + 1, landing)
                    taken.append(landing)
            except LakeError:  # its writer will find out why when it proposes it itself
                continue
        return taken

    def _searched(self, seen: int, head: Head[PoolState]) -> Landed | None:
        """Whether somebody committed our request, from the entries themselves."""
        for n in range(seen + 1, head.n + 1):  # bounded: a stalled writer's entries
            entry = self.history.journal.read(n)
            if entry is None:
                raise OutcomeUnknown(
                    f"{naming.entry(self.history.journal.name, n)}: purged; whether the transaction "
                    f"{self.draft.id} was committed cannot be told",
                    entry_id=self.draft.id,
                    n=n,
                )
            if any(t.id == self.draft.id for t in entry.transactions):
                return Landed(n, self.draft.id)
        return None


def _is_told(seen: int, head: Head[PoolState]) -> bool:
    """Whether the recent ids tell of every entry since `seen`."""
    return head.recent.reaches(seen + 1)
