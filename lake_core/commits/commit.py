"""The history of a pool on its store: load states, commit drafts, look back.

The thin part: the journal races, `landing` decides, the clock comes in from the edge.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator

from lake_core import naming
from lake_core.commits.landing import Draft, Landed, land
from lake_core.commits.state import PoolState, Remembered, fold_entry
from lake_core.errors import InvalidInput, NotFound
from lake_core.journal import Head, Journal
from lake_core.journal.journal import Retry
from lake_core.keys import PoolKey
from lake_core.records import Entry, Transaction
from lake_core.records.codec import Codec
from lake_core.store import Store


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
    ) -> None:
        self._key = key
        self._clock = clock
        self._journal: Journal[Entry, PoolState] = Journal(
            store, naming.pool_journal(pool_id), Codec(Entry), PoolState(), fold_entry, retry or Retry()
        )

    def load(self) -> Head[PoolState]:
        """The newest state."""
        return self._journal.load()

    def commit(self, draft: Draft) -> Landed:
        """Land the draft on its branch, whatever else lands meanwhile.

        Raises what `landing.land` and `Journal.append` raise.
        """
        repeated: Remembered | None = None

        def propose(head: Head[PoolState]) -> Entry | None:
            nonlocal repeated
            landing = land(head.state, draft, key=self._key, time=int(self._clock() * 1_000_000))
            if isinstance(landing, Remembered):
                repeated = landing
                return None
            return Entry(draft.id, (landing,))

        appended = self._journal.append(propose)
        if appended is not None:
            return Landed(appended.n, draft.id)
        assert repeated is not None  # propose returns None only after setting it
        return Landed(repeated.n, repeated.id, repeated=True)

    def remembered(self, token: str) -> Landed | None:
        """The transaction that the token stands for, if any."""
        found = self.load().state.tokens.get(token)
        return Landed(found.n, found.id, repeated=True) if found else None

    def at(self, n: int) -> Head[PoolState]:
        """The state after entry `n`; raises NotFound."""
        head = self._journal.at(n) if n > 0 else None
        if head is None:
            raise NotFound(f"transaction {n} does not exist; the newest is {self.load().n}")
        return head

    def transactions(self, *, branch: str | None = None) -> Iterator[tuple[int, Transaction]]:
        """The history newest first, of one branch or of all."""
        for n in range(self.load().n, 0, -1):
            entry = self._journal.read(n)
            if entry is None:
                return
            for transaction in reversed(entry.transactions):
                if branch is None or transaction.branch == branch:
                    yield n, transaction

    def transaction(self, n: int, id: str) -> Transaction:
        """Transaction `id` of entry `n`; raises NotFound."""
        entry = self._journal.read(n)
        for transaction in entry.transactions if entry else ():
            if transaction.id == id:
                return transaction
        raise NotFound(f"transaction {n} ({id}) does not exist")

    def resolve(self, at: str) -> tuple[Head[PoolState], str]:
        """The state and the branch that a revision names.

        `at`: a transaction number, a transaction id, a branch, or BRANCH@TIME (ISO 8601; without zone UTC).
        Raises NotFound, and InvalidInput for a time that cannot be read.
        """
        newest = self.load()
        if at in newest.state.branches:
            return newest, at
        if at.isascii() and at.isdigit():
            n = int(at)
            return self.at(n), self._branch_of(n)
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

    def _branch_of(self, n: int) -> str:
        entry = self._journal.read(n)
        if entry is None:
            raise NotFound(f"transaction {n} does not exist")
        return entry.transactions[-1].branch


def _microseconds(text: str) -> int:
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(f"time {text!r}: not ISO 8601, such as 2026-11-20T12:00:00Z") from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return round(moment.timestamp() * 1_000_000)
