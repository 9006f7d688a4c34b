"""Refuses a token whose first transaction was another kind of work than the one that uses it now.

A token makes repeated work count once.  If a replace used the token of a load, it would count as done, although
nothing was replaced.  The state remembers only totals of a token's transaction, so its entry tells the kind
(decision 493).  If the entry is purged, the totals decide, as far as they tell: work that brings records is no
delete (`check_brought`, `results`).

Called by loads, replaces and deletes.
"""

from __future__ import annotations

from enum import Enum

from lake_core.errors import InvalidInput
from lake_core.history import History
from lake_core.history.state import Remembered
from lake_core.records import AddObject, AddTombstone
from lake_core.records.transactions import Transaction


class TokenKind(Enum):
    """The kind of a transaction that brings or deletes records; its value names it in errors.

    A CHANGE is an UPDATE or a MERGE of an append pool.  In an upsert pool these are loads.
    """

    LOAD = "a load"
    REPLACE = "a replace"
    DELETE = "a delete"
    CHANGE = "an UPDATE or a MERGE"


def kind_of(transaction: Transaction) -> TokenKind:
    """Returns the kind of a transaction that a token committed."""
    tombstones = [a for a in transaction.actions if isinstance(a, AddTombstone) and not a.self_only]
    if not tombstones:
        return TokenKind.LOAD
    if any(one.replaces for one in tombstones):
        return TokenKind.REPLACE
    return (
        TokenKind.CHANGE if any(isinstance(a, AddObject) for a in transaction.actions) else TokenKind.DELETE
    )


TokenKinds = tuple[TokenKind, ...]
"""The kinds of work for which a token may stand, the usual one first; none: any kind."""


def check_kind(history: History, first: Remembered, kinds: TokenKinds, *, token: str) -> None:
    """Raises InvalidInput if the token's first transaction was work of another kind.  Sends at most one request.

    Raises Corrupt, Unavailable.
    """
    if not kinds:
        return
    entry = history.journal.read(first.version)
    transactions = () if entry is None else entry.transactions
    for transaction in transactions:
        if transaction.id == first.transaction_id and (was := kind_of(transaction)) not in kinds:
            raise InvalidInput(
                f"token {token!r} stands for version {first.version}, which was {was.value} and not "
                f"{kinds[0].value}, so nothing was written; use another token"
            )


def check_brought(version: int | None, objects: int, *, token: str, verb: str) -> None:
    """Raises InvalidInput if a token's first transaction brought no object: then it was a delete, and not this
    work, which brings records."""
    if not objects:
        raise InvalidInput(
            f"{verb}: token {token!r} stands for version {version}, which brought no records, so nothing was "
            "written; use another token"
        )
