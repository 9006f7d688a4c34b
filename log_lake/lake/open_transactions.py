"""Begins transactions over several pools, lists them, and ends those that were left open."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass
from datetime import UTC, datetime

from lake_core import naming
from lake_core.errors import Conflict, Corrupt, InvalidInput, LakeError, Unavailable
from lake_core.history.transactions.decisions import Begun, Decisions, ListedTransaction
from lake_core.records.metadata import check_text
from log_lake.lake.transactions import HasPools, PoolsTransaction

log = logging.getLogger(__name__)

OPEN_FOR = 86_400.0
"""Seconds for which a transaction may stay open; after that `clean` ends it."""

LONGEST = 366 * 86_400.0
"""The longest time in seconds for which a user may let a transaction stay open."""

GRACE = 3_600.0
"""Seconds for which a decision is kept after its transaction has ended everywhere: a read that began before may
ask for it."""


def begin(
    lake: HasPools, *, token: str = "", message: str = "", open_for: float = OPEN_FOR
) -> PoolsTransaction:
    """Begins a transaction over several pools; it may stay open for `open_for` seconds.

    Raises InvalidInput (a lake of an older format, a text too long, an impossible time), Unavailable.
    """
    context = lake.context
    if context.format_version < 3:
        raise InvalidInput(
            f"this lake has format version {context.format_version}, which has no transactions over several "
            "pools: run lake upgrade"
        )
    check_text("token", token)
    check_text("message", message)
    if not isinstance(open_for, int | float) or not 0 < open_for <= LONGEST:
        raise InvalidInput(f"open_for={open_for!r}: give seconds; a transaction may be open for up to a year")
    now = int(context.now() * 1_000_000)
    id = context.ids.new()
    begun = Begun(
        context.author, now, now + int(open_for * 1_000_000), token, message, dict(context.metadata)
    )
    Decisions(context.store, context.clock).begin(id, begun)
    return PoolsTransaction(lake, id)


@dataclass(frozen=True)
class Cleaned:
    """The ids of two kinds of transactions: those that `clean` ended, and those whose objects it deleted because
    no journal needs them."""

    ended: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()


def due(lake: HasPools, *, grace: float = GRACE) -> Cleaned:
    """Returns what `clean` would do, by this machine's clock. Costs one listing, and a read for each open
    transaction.

    Raises Unavailable.
    """
    decisions, now = Decisions(lake.context.store, lake.context.clock), lake.context.now()
    all = decisions.all()
    decided = [one for one in all if naming.DECISION in one.objects]
    old = [one.id for one in decided if one.objects[naming.DECISION].modified < now - grace]
    over = [one.id for one in all if one not in decided and _is_due(decisions, one, now * 1_000_000)]
    return Cleaned(tuple(over), tuple(old))


def _is_due(decisions: Decisions, one: ListedTransaction, now: float) -> bool:
    """Whether a transaction is open for too long; False for a damaged one, because that is not known."""
    try:
        return _expires(decisions, one) <= now
    except Corrupt:
        return False


def clean(lake: HasPools, *, grace: float = GRACE) -> Cleaned:
    """Ends transactions that have been open for too long, and deletes the objects that no journal needs.

    Objects that a running read may need stay for `grace` seconds, by the store's clock.  A transaction that is
    damaged, or has a damaged pool, stays; a warning says so.  Raises Unavailable.
    """
    decisions = Decisions(lake.context.store, lake.context.clock)
    ended, forgotten = list[str](), list[str]()
    for one in decisions.all():
        try:
            now = decisions.now(one.id)
            if naming.DECISION in one.objects:
                if _clean_decided(lake, decisions, one, before=now - grace):
                    forgotten.append(one.id)
            elif _is_over(decisions, one, now):
                with contextlib.suppress(Conflict):  # it was committed just now
                    PoolsTransaction(lake, one.id).abort()
                    ended.append(one.id)
        except Unavailable:
            raise
        except LakeError as error:
            log.warning("transaction %s is not cleaned: %s", one.id, error)
    return Cleaned(tuple(ended), tuple(forgotten))


def _expires(decisions: Decisions, one: ListedTransaction) -> int:
    """Returns until when a transaction may stay open, in microseconds; 0 if it is not known any more."""
    begun = decisions.begun(one.id)
    return 0 if begun is None else begun.expires


def _is_over(decisions: Decisions, one: ListedTransaction, now: float) -> bool:
    """Whether an undecided transaction has been open for too long, and no process commits it at `now`."""
    if _expires(decisions, one) > now * 1_000_000:
        return False
    return naming.LEASE not in one.objects or decisions.is_dead(one.id)


def _clean_decided(lake: HasPools, decisions: Decisions, one: ListedTransaction, *, before: float) -> bool:
    """Ends a decided transaction everywhere. Deletes its objects if it was decided before the time `before`;
    returns whether it did."""
    transaction = PoolsTransaction(lake, one.id)
    transaction.end(one)
    pools = transaction.pools(one)
    is_left = any(transaction.branch in pool.history.load_open().state.branches for pool in pools)
    if is_left or one.objects[naming.DECISION].modified >= before:
        return False
    return transaction.forget({pool.config.id for pool in pools})


@dataclass(frozen=True)
class TransactionRow:
    """A transaction as people see it.  `state` is open, committing, committed, aborted or damaged; None: not known
    any more.

    `renewed`: when the process that commits it last showed that it lives, by the store's clock.
    """

    id: str
    state: str
    pools: tuple[str, ...]
    author: str | None
    begun: datetime | None
    expires: datetime | None
    token: str = ""
    message: str = ""
    renewed: datetime | None = None


def transactions(lake: HasPools, *, limit: int | None = None) -> list[TransactionRow]:
    """Returns the transactions whose objects are on the store, oldest first; with a limit, only the newest of
    them.

    Raises Unavailable.
    """
    decisions = Decisions(lake.context.store, lake.context.clock)
    listed = decisions.all()
    return [_row(lake, decisions, one) for one in (listed if limit is None else listed[-limit:])]


def _row(lake: HasPools, decisions: Decisions, one: ListedTransaction) -> TransactionRow:
    pools = tuple(sorted(pool.name for pool in PoolsTransaction(lake, one.id).pools(one)))
    try:
        begun, decision = decisions.begun(one.id), decisions.get(one.id)
    except Corrupt as error:
        log.warning("transaction %s: %s", one.id, error)
        return TransactionRow(one.id, "damaged", pools, None, None, None)
    if decision is not None:
        state = "committed" if decision.committed else "aborted"
    else:
        state = "committing" if naming.LEASE in one.objects else "open"
    lease = one.objects.get(naming.LEASE)
    renewed = None if lease is None else datetime.fromtimestamp(lease.modified, UTC)
    if begun is None:
        return TransactionRow(one.id, state, pools, None, None, None, renewed=renewed)
    since, expires = (datetime.fromtimestamp(time / 1e6, UTC) for time in (begun.time, begun.expires))
    return TransactionRow(
        one.id, state, pools, begun.author, since, expires, begun.token, begun.message, renewed
    )
