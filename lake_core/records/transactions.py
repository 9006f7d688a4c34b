"""Transactions of a pool: the actions of one atomic change to one branch.

An `Entry` is one journal object; it holds one transaction, or several that were committed together.  The version of
the entry is its name and is not repeated inside.  A record's sequence is the version times 65,536 plus the
transaction's index in the entry (`sequence`).  The index is the sum of the widths of the transactions before it: 1,
or more for a merge, which has a sequence of its own for each write that it brings.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from lake_core.errors import Corrupt
from lake_core.ids import home_of, is_id
from lake_core.keys.ranges import KeyRange
from lake_core.naming import check_objects, is_object
from lake_core.records.branching import (
    CreateBranch,
    DeleteBranch,
    DeleteTag,
    EndBranch,
    Merge,
    PutInlined,
    PutReference,
    PutSummed,
    PutTombstone,
    SetMerged,
    SetTag,
    check_data,
    check_held,
    check_hidden,
    check_stored,
)
from lake_core.records.column import Column
from lake_core.records.conditions import Condition
from lake_core.records.decoding import check_counts, check_times
from lake_core.records.pending import Prepare, Settle
from lake_core.records.points import Join, Split
from lake_core.records.renaming import AddField, RenameField
from lake_core.records.sums import Conserve, check_sums
from lake_core.records.vacuuming import BeginVacuum, ConfirmVacuum, Discard, EndVacuum, ScanOrphans

MAX_TRANSACTIONS = 65_536
"""The number of sequences that the transactions of one entry share; every index is below it."""


def sequence(version: int, index: int = 0) -> int:
    """Returns the sequence of a transaction's records, which decides when they count as written."""
    return version * MAX_TRANSACTIONS + index


def version_of(sequence: int) -> int:
    """Returns the version of the entry to which the sequence belongs."""
    return sequence // MAX_TRANSACTIONS


class AddObject(msgspec.Struct, frozen=True, tag="add_object", omit_defaults=True):
    """Adds a data object to the branch, with its whole range from `low` to before `high`.

    `ordinal` is the order of arrival within the transaction; `sub_pool` the sub-pool, "" for the pool itself.
    `size` is in bytes.  `seqs` are the oldest and the newest sequence of its records, if the object stores the
    sequence of each record, as objects of compactions do; None: all have the sequence of this transaction.
    `applied`: no tombstone up to this version covers a record of the object.  `data`: empty, see `AddInlined`.
    `content`: its sums (`records.sums`), b"" if it has none. Guarantees: has records, a size, low < high, and
    sequences in order.
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
    data: bytes = b""
    content: bytes = b""

    def __post_init__(self) -> None:
        if not (is_object(self.object) and self.records > 0 and self.size > 0 and self.low < self.high):
            raise Corrupt(f"add_object {self.object!r}: needs an id, records, a size, and low < high")
        if self.seqs is not None and not 0 < self.seqs[0] <= self.seqs[1]:
            raise Corrupt(f"add_object {self.object!r}: the sequences {self.seqs} are out of order")
        if home_of(self.object):
            raise Corrupt(f"add_object {self.object!r}: a new object lies in the folder of its own pool")
        check_held(self.object, ordinal=self.ordinal, sub_pool=self.sub_pool, applied=self.applied)
        check_counts(self.object, records=self.records, size=self.size)
        check_data(self.object, self.data, size=self.size, inlined=isinstance(self, AddInlined))
        check_sums(self.object, self.content, has_ages=self.seqs is not None)


class AddInlined(AddObject, frozen=True, tag="add_inlined", omit_defaults=True):
    """Adds an object whose bytes are `data`: it lies in the journal, and not on the store.  Guarantees, besides
    those of `AddObject`: it has as many bytes as its size says."""


class RemoveReference(msgspec.Struct, frozen=True, tag="remove_reference"):
    """Removes the branch's reference to the range of an object that begins at `low`."""

    object: str
    low: bytes

    def __post_init__(self) -> None:
        check_objects((self.object,), what="remove_reference")


class MarkApplied(msgspec.Struct, frozen=True, tag="mark_applied"):
    """States that a reference was searched: no tombstone up to version `upto` covers a record of it."""

    object: str
    low: bytes
    upto: int

    def __post_init__(self) -> None:
        check_objects((self.object,), what="mark_applied")
        check_counts("mark_applied", upto=self.upto)


class AddTombstone(msgspec.Struct, frozen=True, tag="add_tombstone", omit_defaults=True):
    """Hides records with keys from `low` to before `high` that were written before this transaction.

    With a condition, it hides only records that fulfil it.  `replaces`: the transaction is a replace, which
    conflicts with overlapping ones.  `self_only`: hides records of this transaction instead, because a replace
    overtook it.  `sub_pool`: hides only records of that sub-pool.  `only`: hides only records from the first to
    the last of these sequences.  Guarantees: a name, and a range that is not empty.
    """

    tombstone: str
    low: bytes = b""
    high: bytes | None = None
    condition: Condition | None = None
    reason: str = ""
    replaces: bool = False
    self_only: bool = msgspec.field(name="own", default=False)
    sub_pool: str = msgspec.field(name="sub", default="")
    only: tuple[int, int] | None = None

    @property
    def range(self) -> KeyRange:
        """The range of the keys that the tombstone covers."""
        return KeyRange(self.low, self.high)

    def __post_init__(self) -> None:
        if not self.tombstone or (self.high is not None and self.low >= self.high):
            raise Corrupt(f"add_tombstone {self.tombstone!r}: needs a name and a range that is not empty")
        check_hidden(self.tombstone, sub_pool=self.sub_pool, only=self.only)
        check_stored(self.tombstone, self.condition)


class RemoveTombstone(msgspec.Struct, frozen=True, tag="remove_tombstone", omit_defaults=True):
    """Retires a tombstone that covers nothing any more.  `forced`: it is retired although it may cover records,
    because it cannot be evaluated."""

    tombstone: str
    forced: bool = False


class SetSchema(msgspec.Struct, frozen=True, tag="set_schema"):
    """Announces a schema: its id is the hash of its content, an Arrow schema in IPC form."""

    schema: str
    arrow: bytes


class Source(msgspec.Struct, frozen=True, omit_defaults=True):
    """A source file that was ingested; equal name, size and etag mean the same file.  `size` is in bytes."""

    uri: str
    size: int
    etag: str = ""
    records: int = 0

    def __post_init__(self) -> None:
        check_counts(f"source file {self.uri[:200]!r}", size=self.size, records=self.records)


class Consume(msgspec.Struct, frozen=True, tag="consume"):
    """Names the source files whose records this transaction holds."""

    sources: tuple[Source, ...]


class Release(msgspec.Struct, frozen=True, tag="release"):
    """Lets source files be ingested again, because the merge that brought their records was reverted."""

    sources: tuple[Source, ...]


class Close(msgspec.Struct, frozen=True, tag="close"):
    """Closes the pool, which is dropped: after it only `close` and `reopen` may follow."""


class Reopen(msgspec.Struct, frozen=True, tag="reopen"):
    """Opens the pool again, because it is restored; the transaction of version `closed` closed it last."""

    closed: int


Action = (
    AddObject
    | AddInlined
    | RemoveReference
    | MarkApplied
    | AddTombstone
    | RemoveTombstone
    | SetSchema
    | Consume
    | Close
    | Reopen
    | Release
    | PutReference
    | PutInlined
    | PutSummed
    | PutTombstone
    | CreateBranch
    | DeleteBranch
    | Merge
    | SetMerged
    | SetTag
    | DeleteTag
    | ScanOrphans
    | Discard
    | BeginVacuum
    | ConfirmVacuum
    | EndVacuum
    | Split
    | Join
    | EndBranch
    | Prepare
    | Settle
    | Conserve
    | RenameField
    | AddField
)

OF_NO_BRANCH = (
    SetTag,
    DeleteTag,
    ScanOrphans,
    Discard,
    BeginVacuum,
    ConfirmVacuum,
    EndVacuum,
    Split,
    Join,
    Prepare,
    Settle,
    RenameField,
    AddField,
)
"""Actions of transactions that belong to no branch; a `settle` is also in the merge that it commits."""

VERSION_2 = (
    Reopen,
    Release,
    PutReference,
    PutTombstone,
    CreateBranch,
    DeleteBranch,
    Merge,
    SetMerged,
    SetTag,
    DeleteTag,
    ScanOrphans,
    Discard,
    BeginVacuum,
    ConfirmVacuum,
    EndVacuum,
)
"""Actions that a lake of format version 1 cannot hold."""

VERSION_3 = (
    Split,
    Join,
    AddInlined,
    PutInlined,
    PutSummed,
    EndBranch,
    Prepare,
    Settle,
    Conserve,
    RenameField,
    AddField,
)
"""Actions that a lake of format version 2 cannot hold."""


class Transaction(msgspec.Struct, frozen=True, omit_defaults=True):
    """One atomic change to one branch.

    `parent` is the version of the branch's tip when this was committed (0: none), `read_version` the version
    that the work began on.  `time` is in microseconds since 1970, by the writer's clock.  Transactions with the
    same `token` commit only once.  `metadata` are texts of the writer's own.  `branch` is "" for actions that
    belong to no branch: tags, split points, names of fields and vacuums.
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
    metadata: dict[str, str] = {}

    def __post_init__(self) -> None:
        of_none = all(isinstance(action, OF_NO_BRANCH) for action in self.actions)
        if not (
            is_id(self.id)
            and bool(self.branch) != of_none
            and self.read_version >= 0
            and self.parent >= 0
            and self.actions
        ):
            raise Corrupt(
                f"transaction {self.id!r}: needs an id, a branch, a parent, a read version and actions"
            )
        check_counts(f"transaction {self.id}", parent=self.parent, base=self.read_version)
        check_times(f"transaction {self.id}", time=self.time)

    @property
    def width(self) -> int:
        """The number of its sequences: one, and one more for each write that a merge brings."""
        return 1 + sum(action.lifted for action in self.actions if isinstance(action, Merge))

    @property
    def action_counts(self) -> dict[str, int]:
        """How many actions of each kind the transaction has, by the kind's name in the format."""
        return dict(Counter(str(type(action).__struct_config__.tag) for action in self.actions))


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One object of a pool's journal; the writer gives the `id`, by which it recognizes its own entry.
    `previous` is the checksum of the entry before it (`journal.link`)."""

    id: str
    transactions: tuple[Transaction, ...]
    previous: int = 0

    def __post_init__(self) -> None:
        if not 1 <= sum(t.width for t in self.transactions) < MAX_TRANSACTIONS:
            raise Corrupt(
                f"entry {self.id!r}: holds 1 to {MAX_TRANSACTIONS - 1} transactions, or as many merged writes"
            )

    @property
    def written_at(self) -> float:
        """The latest time of its transactions, in seconds since 1970, by the clocks of their authors."""
        return max(t.time for t in self.transactions) / 1e6
