"""Transactions of a pool: the actions of one atomic change to one branch.

An `Entry` is one journal object; it holds one transaction, or several that were committed together.  The
number of the entry is its name and is not repeated inside.  A record's sequence is the entry's number times
65,536 plus the transaction's place in the entry (`sequence`).
"""

from __future__ import annotations

import msgspec

from lake_core.errors import Corrupt
from lake_core.keys.ranges import KeyRange
from lake_core.naming import is_id
from lake_core.records.conditions import Condition

MAX_TRANSACTIONS = 65_536
"""How many transactions one entry can hold."""


def sequence(version: int, index: int = 0) -> int:
    """When the records of transaction `place` of entry `n` count as written."""
    return version * MAX_TRANSACTIONS + index


class Column(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of one field of one object: bounds in the encoding of keys (ascending), and nulls.

    `low` is at or below every value, `high` at or above; both are cut when long, None where unknown.
    """

    name: str
    nulls: int = 0
    low: bytes | None = None
    high: bytes | None = None


class AddObject(msgspec.Struct, frozen=True, tag="add_object", omit_defaults=True):
    """A new data object, held by the branch in its whole range [low, high).

    `place` is the object's place in the order of arrival within the transaction; `sub` the sub-pool, ""
    for the pool itself.  `seqs` are the oldest and the newest sequence of its records where a compaction wrote
    the object, which then holds the sequence of each; None: all count as written by this transaction.
    `applied`: what tombstones up to this entry cover is not in it.
    Guarantees: has records, a size in bytes, low < high, and sequences in order.
    """

    object: str
    records: int
    size: int
    schema: str
    low: bytes
    high: bytes
    ordinal: int = msgspec.field(name="place", default=0)
    sub_pool: str = msgspec.field(name="sub", default="")
    columns: tuple[Column, ...] = ()
    seqs: tuple[int, int] | None = None
    applied: int = 0

    def __post_init__(self) -> None:
        if not (is_id(self.object) and self.records > 0 and self.size > 0 and self.low < self.high):
            raise Corrupt(f"add_object {self.object!r}: needs an id, records, a size, and low < high")
        if self.seqs is not None and not 0 < self.seqs[0] <= self.seqs[1]:
            raise Corrupt(f"add_object {self.object!r}: the sequences {self.seqs} are out of order")


class RemoveReference(msgspec.Struct, frozen=True, tag="remove_reference"):
    """The branch lets go of an object's range that begins at `low`."""

    object: str
    low: bytes


class MarkApplied(msgspec.Struct, frozen=True, tag="mark_applied"):
    """A reference was searched: it holds no record that a tombstone up to entry `upto` covers."""

    object: str
    low: bytes
    upto: int


class AddTombstone(msgspec.Struct, frozen=True, tag="add_tombstone", omit_defaults=True):
    """Records of keys in [low, high) that were written before this transaction are not visible any more.

    With a condition only those of which it holds.  `replaces`: the transaction stands for a replace; others that
    overlap it conflict.  `own`: records of this very transaction are covered instead, as a replace overtook it.
    `sub`: records of that sub-pool are covered, and no others.
    Guarantees: a name, and a range that is not empty.
    """

    tombstone: str
    low: bytes = b""
    high: bytes | None = None
    condition: Condition | None = None
    reason: str = ""
    replaces: bool = False
    self_only: bool = msgspec.field(name="own", default=False)
    sub_pool: str = msgspec.field(name="sub", default="")

    @property
    def range(self) -> KeyRange:
        """The keys that it covers."""
        return KeyRange(self.low, self.high)

    def __post_init__(self) -> None:
        if not self.tombstone or (self.high is not None and self.low >= self.high):
            raise Corrupt(f"add_tombstone {self.tombstone!r}: needs a name and a range that is not empty")


class RemoveTombstone(msgspec.Struct, frozen=True, tag="remove_tombstone", omit_defaults=True):
    """The tombstone covers nothing any more; `forced`: it goes whatever it covers, since it cannot be evaluated."""

    tombstone: str
    forced: bool = False


class SetSchema(msgspec.Struct, frozen=True, tag="set_schema"):
    """Makes a schema known: its id is the hash of its content, an Arrow schema in IPC form."""

    schema: str
    arrow: bytes


class Source(msgspec.Struct, frozen=True, omit_defaults=True):
    """A landed file that was taken in; equal name, size and etag are the same file."""

    uri: str
    size: int
    etag: str = ""
    records: int = 0


class Consume(msgspec.Struct, frozen=True, tag="consume"):
    """The landed files whose records this transaction holds."""

    sources: tuple[Source, ...]


class Close(msgspec.Struct, frozen=True, tag="close"):
    """The pool is dropped: no transaction comes after this one."""


Action = (
    AddObject | RemoveReference | MarkApplied | AddTombstone | RemoveTombstone | SetSchema | Consume | Close
)


class Transaction(msgspec.Struct, frozen=True, omit_defaults=True):
    """One atomic change to one branch.

    `parent` is the entry of the branch's tip when this landed (0: none), `base` the entry at which the work
    began, `time` microseconds since 1970 by the writer's clock, `token` makes a repeated commit the same one.
    """

    id: str
    branch: str
    parent: int
    read_version: int = msgspec.field(name="base")
    time: int
    author: str
    actions: tuple[Action, ...]
    message: str = ""
    token: str = ""

    def __post_init__(self) -> None:
        if not (
            is_id(self.id) and self.branch and self.read_version >= 0 and self.parent >= 0 and self.actions
        ):
            raise Corrupt(f"transaction {self.id!r}: needs an id, a branch, a parent, a base and actions")


class Entry(msgspec.Struct, frozen=True):
    """One object of a pool's journal; `id` is the writer's, by which it knows its own entry again."""

    id: str
    transactions: tuple[Transaction, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.transactions) < MAX_TRANSACTIONS:
            raise Corrupt(f"entry {self.id!r}: holds 1 to {MAX_TRANSACTIONS - 1} transactions")
