"""The history of a pool on its store: load states, commit drafts, look back.

The thin part: the journal races, `landing` decides, the clock comes in from the edge.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from lake_core import naming
from lake_core.checkpoints import CheckpointDamaged
from lake_core.commits.checkpoint import PoolStateFormat
from lake_core.commits.landing import Draft, Landed, land
from lake_core.commits.requests import Requests
from lake_core.commits.state import PoolState, Remembered, fold_entry, fold_transaction
from lake_core.errors import (
    CheckpointGone,
    Conflict,
    InvalidInput,
    LakeError,
    NotFound,
    OutcomeUnknown,
    Unavailable,
)
from lake_core.journal import Head, Journal, Overtaken, Retry
from lake_core.keys import PoolKey
from lake_core.records import Consume, Entry, Transaction
from lake_core.records.codec import Codec
from lake_core.store import ObjectInfo, Store

PATIENCE = 2
"""How many races a writer loses before it asks the winner of the next to commit for it."""

PAUSES, MOST_PAUSES = 8, 32
"""For how many pauses a writer lets each of those before it in the line go first, and all of them together: to
commit takes a listing, the requests side by side, the entry, and a look for fences."""

COMPANY = 8
"""For how many commits a writer that met others asks at once: to ask for nothing costs three requests, to lose two
races ten."""

LOOK_EVERY = 8
"""Whoever writes an entry of a number that this divides looks for requests, though it lost no race: a writer that
always wins would else never hear of those that always lose.  By the number, so that it holds for many
processes of one commit each as well."""


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
        self._company = 0
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

    def load(self) -> Head[PoolState]:
        """The newest state."""
        return self.journal.load()

    def commit(self, draft: Draft) -> Landed:
        """Land the draft on its branch, whatever else lands meanwhile.

        After an OutcomeUnknown the same draft may be committed again here, as often as it takes; elsewhere only
        with a token.  Raises what `landing.land` and `Journal.append` raise.
        """
        attempt = _Attempt(self, draft, seen=self._unknown.get(draft.id))
        try:
            appended = self.journal.append(attempt.propose, id=draft.id, lost=attempt.lost)
        except (Conflict, Unavailable) as error:
            # a refusal counts when it is what is raised: it may have rested on a state that was not the newest
            if attempt.seen is None or error is attempt.refusal:
                self._resolved(attempt)
                raise
            self._unknown[draft.id] = attempt.seen
            raise OutcomeUnknown(
                f"{error}; the transaction {draft.id} may be committed yet. Run the same command with the same "
                "token again",
                entry_id=draft.id,
                n=attempt.seen,
            ) from error
        except OutcomeUnknown as error:
            self._unknown[draft.id] = error.n - 1 if attempt.seen is None else attempt.seen
            raise
        except LakeError:
            self._resolved(attempt)
            raise
        self._resolved(attempt)
        if appended is not None:
            self._company = COMPANY if attempt.met else max(0, self._company - 1)
            return Landed(appended.n, draft.id)
        assert attempt.outcome is not None  # propose returns None only after setting it
        return attempt.outcome

    def _resolved(self, attempt: _Attempt) -> None:
        """The outcome is known: nobody need commit it any more, or look for it."""
        self._unknown.pop(attempt.draft.id, None)
        if attempt.seen is not None:
            self._requests.withdraw(attempt.draft.id)

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
        for n, entry in self.journal.backwards():
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
                raise NotFound(f"branch {branch!r} has no transaction at or before {time}{self._begins()}")
            return self.at(found), branch
        if naming.is_id(at):
            match = next(((n, t) for n, t in self.transactions() if t.id == at), None)
            if match is not None:
                return self.at(match[0]), match[1].branch
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


@dataclass
class _Attempt:
    """One commit under way: proposes the draft on ever newer states, alone or with the requests of others.

    Who has lost two races, or met others at one of its last commits, asks the others and stands in line.
    `seen` is the entry after which the draft may be in the history without our knowing: others have been asked to
    commit it, or an earlier try of it was of unknown outcome.  `met` says that others commit as well.
    """

    history: History
    draft: Draft
    seen: int | None = None
    posted: bool = False
    met: bool = False
    line: list[ObjectInfo] = field(default_factory=list)
    refusal: LakeError | None = None
    outcome: Landed | None = None

    @property
    def name(self) -> str:
        """Of the request."""
        return naming.request(self.history.journal.name, self.draft.id)

    def lost(self, times: int, head: Head[PoolState]) -> None:
        """After the second lost race, ask whoever wins the next one."""
        if not self.posted and times >= PATIENCE:
            self.met = True
            self._post(head)

    def _post(self, head: Head[PoolState]) -> None:
        self.posted = True
        self.seen = head.n if self.seen is None else self.seen
        self.history._requests.post(self.draft, seen=self.seen, time=self.history.now())

    def _waited(self, head: Head[PoolState]) -> Entry | None:
        """The next entry if it is there, perhaps by one of those before us in the line, whom we let go first.

        All of them would else read all requests, make one entry each of them, and lose the race but for one.
        """
        if not self.line:  # the first time: others may have committed while our objects were written
            entry = self._next(head)
            if entry is not None:
                return entry
        retry, requests = self.history.journal.retry, self.history._requests
        asked = retry.clock()
        self.line = requests.line()
        answer = retry.clock() - asked
        waiting = [info.name for info in self.line if not _is_done(info, head)]
        self.met |= len(waiting) > 1
        before = waiting.index(self.name) if self.name in waiting else 0
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
            return self.history.journal.read(head.n + 1)
        return None

    def propose(self, head: Head[PoolState]) -> Entry | Overtaken[Entry] | None:
        """The entry that should come next, None where the outcome is known already."""
        if self.history._company and not self.posted:
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
        if self.seen is not None or self.history._company or (head.n + 1) % LOOK_EVERY == 0:
            transactions += self._requested(head, landing)
        self.met |= len(transactions) > 1
        return Entry(self.draft.id, tuple(transactions))

    def _landing(self, state: PoolState, draft: Draft) -> Transaction | Remembered:
        return land(state, draft, key=self.history._key, time=self.history.now())

    def _requested(self, head: Head[PoolState], first: Transaction) -> list[Transaction]:
        """The transactions of others that fit behind ours."""
        n, now = head.n + 1, self.history.now()
        state = fold_transaction(head.state, n, 0, first)
        taken: dict[str, Transaction] = {}
        requests = self.history._requests
        line = self.line if self.posted else requests.line()
        if n % LOOK_EVERY == 0:  # those who live do so themselves
            for info in line:
                if _is_done(info, head):
                    requests.withdraw(naming.request_id(info.name))
        waiting = [info for info in line if info.name != self.name and not _is_done(info, head)]
        for request in requests.read(waiting, at_once=self.history.journal.read_all):
            if request.id == self.draft.id or request.id in taken or head.recent.find(request.id) is not None:
                continue
            if not request.may_be_committed_at(n, now=now):
                requests.withdraw(request.id)  # nobody's concern any more
                continue
            try:
                if _is_taken(state, request.draft):
                    continue
                landing = self._landing(state, request.draft)
                if isinstance(landing, Transaction):
                    state = fold_transaction(state, n, len(taken) + 1, landing)
                    taken[request.id] = landing
            except LakeError:  # its writer will find out why when it proposes it itself
                continue
        return list(taken.values())

    def _searched(self, seen: int, head: Head[PoolState]) -> Landed | None:
        """Whether the draft was committed, from the entries themselves."""
        journal = self.history.journal
        landed = missing = None
        for n in range(seen + 1, head.n + 1):  # bounded: a stalled writer's entries
            entry = journal.read(n)
            if entry is None:
                missing = n
                break
            if any(t.id == self.draft.id for t in entry.transactions):
                landed = Landed(n, self.draft.id)
                break
        fence = journal.marks().fence  # what was read at or below it may never have been history
        if landed is not None and landed.n > fence:
            return landed
        if missing is None and fence <= seen:
            return None
        raise OutcomeUnknown(
            f"{naming.entry(journal.name, missing or seen + 1)}: purged; whether the transaction {self.draft.id} "
            "was committed cannot be told. Run the same command with the same token again",
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
