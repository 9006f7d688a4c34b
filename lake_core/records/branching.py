"""Actions on branches and tags, and actions that add references and tombstones of another state (format version
2).

`put_reference` and `put_tombstone` add what another state has: a merge takes it from a branch, a revert from an
earlier version; a new branch gets the difference between an older revision and the newest.  In a merge their
sequences are those of the merged branch, and the fold lifts (renumbers) them (`history.lift`); everywhere else
they are final.
"""

from __future__ import annotations

import msgspec

from lake_core.errors import Corrupt
from lake_core.naming import SUB_POOLS, check_branch_name, is_object
from lake_core.records.column import Column
from lake_core.records.conditions import Condition, is_of_filter
from lake_core.records.decoding import check_counts
from lake_core.records.sums import check_sums

SEQUENCE_BYTES = 8
"""Bytes of a sequence in `writes`: little-endian."""

MAX_ORDINAL = 2**31 - 1
"""The greatest ordinal of an object within its transaction: checkpoints store it in 32 bits."""


class PutReference(msgspec.Struct, frozen=True, tag="put_reference", omit_defaults=True):
    """Adds a reference to an object that the branch does not have; the fields are those of a reference.

    In a merge `seq` and `oldest` are sequences of the merged branch, and `applied` is not 0 if all tombstones
    of the merge were applied to the object.  Guarantees: those of `add_object`.
    """

    object: str
    low: bytes
    high: bytes
    seq: int
    records: int
    size: int
    schema: str
    ordinal: int = msgspec.field(name="place", default=0)
    sub_pool: str = msgspec.field(name="sub", default="")
    columns: tuple[Column, ...] = ()
    oldest: int | None = None
    applied: int = 0
    lifts: tuple[int, ...] = ()
    data: bytes = b""

    def __post_init__(self) -> None:
        if not (is_object(self.object) and self.records > 0 and self.size > 0 and self.low < self.high):
            raise Corrupt(f"put_reference {self.object!r}: needs an id, records, a size, and low < high")
        if not 0 < (self.seq if self.oldest is None else self.oldest) <= self.seq:
            raise Corrupt(f"put_reference {self.object!r}: its sequences are out of order")
        check_held(self.object, ordinal=self.ordinal, sub_pool=self.sub_pool, applied=self.applied)
        check_counts(self.object, records=self.records, size=self.size, seq=self.seq)
        inlined = isinstance(self, PutInlined) or (isinstance(self, PutSummed) and self.data != b"")
        check_data(self.object, self.data, size=self.size, inlined=inlined)


class PutInlined(PutReference, frozen=True, tag="put_inlined", omit_defaults=True):
    """Adds a reference to an inlined object, whose bytes are `data`.  Guarantees: those of `add_inlined`."""


class PutSummed(PutReference, frozen=True, tag="put_summed", omit_defaults=True):
    """Adds a reference with sums, `content` as in `add_object`. With `data` the object is inlined."""

    content: bytes = b""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sums(self.object, self.content, has_ages=self.oldest is not None)


class PutTombstone(msgspec.Struct, frozen=True, tag="put_tombstone", omit_defaults=True):
    """Adds a tombstone of the sequence `seq` to the branch; its other fields are as in `add_tombstone`.

    Its version, read version, transaction and time are those of this transaction.  `only`: hides only records
    from the first to the last of these sequences.  `settled`: the branch keeps it only for merges.
    `replaced_in`: the version from which a replace conflicts with others; 0 means this transaction's.
    """

    tombstone: str
    seq: int
    low: bytes = b""
    high: bytes | None = None
    condition: Condition | None = None
    reason: str = ""
    replaces: bool = False
    only: tuple[int, int] | None = None
    sub_pool: str = msgspec.field(name="sub", default="")
    settled: bool = False
    replaced_in: int = 0

    def __post_init__(self) -> None:
        if not self.tombstone or self.seq <= 0 or (self.high is not None and self.low >= self.high):
            raise Corrupt(
                f"put_tombstone {self.tombstone!r}: needs a name, a sequence and a range that is not empty"
            )
        check_hidden(self.tombstone, sub_pool=self.sub_pool, only=self.only)
        check_stored(self.tombstone, self.condition)
        check_counts(self.tombstone, seq=self.seq, replaced_in=self.replaced_in)


class Restored(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a restored branch relates to its parent.  `writes` are the sequences of its unmerged writes; None if
    they were too many, so that the branch cannot be merged."""

    created: int
    merged: int = 0
    joined: int = 0
    writes: bytes | None = b""

    def __post_init__(self) -> None:
        check_writes(self.writes or b"", "create_branch")
        check_counts("create_branch", created=self.created, merged=self.merged, joined=self.joined)


class CreateBranch(msgspec.Struct, frozen=True, tag="create_branch", omit_defaults=True):
    """Makes the transaction's branch, from the parent's references and tombstones at its version `tip`.

    The branch begins on the parent's version `at`; the other actions of the transaction are the difference from
    `tip` to `at`.  `restored`: the branch was deleted, and exists again.  A draft leaves out `tip` and `at`,
    which means the newest version.
    """

    parent: str
    tip: int | None = None
    at: int | None = None
    restored: Restored | None = None


class DeleteBranch(msgspec.Struct, frozen=True, tag="delete_branch"):
    """Removes the transaction's branch; the tag `root` keeps its state of `version`."""

    root: str
    version: int


class EndBranch(msgspec.Struct, frozen=True, tag="end_branch"):
    """Removes the branch of a transaction over several pools for good, at its version; no tag keeps it.  The
    other actions of the transaction remove the references that only this branch has."""

    version: int

    def __post_init__(self) -> None:
        check_counts("end_branch", version=self.version)


class Merge(msgspec.Struct, frozen=True, tag="merge", omit_defaults=True):
    """Brings the writes of `branch` after its version `since`, up to `upto`, to the transaction's branch.

    `writes` are the sequences of these writes on the merged branch.  `joined` is the version of the branch's
    merge before this one.  A draft names only `branch` and `upto`.
    """

    branch: str
    upto: int
    since: int = 0
    joined: int = 0
    writes: bytes = b""

    def __post_init__(self) -> None:
        check_writes(self.writes, "merge")
        check_counts("merge", upto=self.upto, since=self.since, joined=self.joined)

    @property
    def lifted(self) -> int:
        """How many sequences the merge renumbers, one for each write that it brings."""
        return len(self.writes) // SEQUENCE_BYTES


class SetMerged(msgspec.Struct, frozen=True, tag="set_merged", omit_defaults=True):
    """States after a revert of a merge, or after a revert of that revert, up to which version `branch` counts as
    merged.

    `version` is that of the branch's newest merge.  Now the branch counts as merged up to `merged`, by the
    merge of version `joined`.  The sequences `writes` and the retired tombstones `settled` count as unmerged
    again.
    """

    branch: str
    version: int
    merged: int = 0
    joined: int = 0
    writes: bytes = b""
    settled: tuple[PutTombstone, ...] = ()

    def __post_init__(self) -> None:
        check_writes(self.writes, "set_merged")
        check_counts("set_merged", version=self.version, merged=self.merged, joined=self.joined)


class SetTag(msgspec.Struct, frozen=True, tag="set_tag", omit_defaults=True):
    """Names the state of a branch at a version; `expires` is in microseconds since 1970."""

    tag: str
    version: int
    branch: str
    reason: str = ""
    expires: int | None = None

    def __post_init__(self) -> None:
        check_branch_name(self.tag, what="tag")
        check_counts(f"tag {self.tag!r}", version=self.version, expires=self.expires)


class DeleteTag(msgspec.Struct, frozen=True, tag="delete_tag"):
    """Removes a tag of the pool."""

    tag: str


def check_held(object_id: str, *, ordinal: int, sub_pool: str, applied: int) -> None:
    """Raises Corrupt if no branch can have a reference with these values to the object."""
    check_counts(object_id, applied=applied)
    if not 0 <= ordinal <= MAX_ORDINAL or sub_pool not in ("", *SUB_POOLS):
        raise Corrupt(f"{object_id}: the place {ordinal} in the sub-pool {sub_pool[:80]!r} cannot be")


def check_data(object_id: str, data: bytes, *, size: int, inlined: bool) -> None:
    """Raises Corrupt if the bytes of an inlined object have another size, or if an object on the store has inlined
    bytes."""
    if len(data) != (size if inlined else 0):
        raise Corrupt(f"{object_id}: {len(data)} bytes of an object of {size} bytes lie in the journal")


def check_stored(tombstone: str, condition: Condition | None) -> None:
    """Raises Corrupt if a stored tombstone with this name cannot have the condition."""
    if condition is not None and is_of_filter(condition):
        raise Corrupt(f"tombstone {tombstone!r}: has the condition of a filter, which is never stored")


def check_hidden(tombstone: str, *, sub_pool: str, only: tuple[int, int] | None) -> None:
    """Raises Corrupt if a tombstone with this name cannot hide such records."""
    if sub_pool not in ("", *SUB_POOLS) or (only is not None and not 0 <= only[0] <= only[1]):
        raise Corrupt(
            f"tombstone {tombstone!r}: hides {only} in the sub-pool {sub_pool[:80]!r}, which cannot be"
        )


def check_writes(writes: bytes, action: str) -> None:
    """Raises Corrupt if the bytes are not packed sequences."""
    if len(writes) % SEQUENCE_BYTES:
        raise Corrupt(f"{action}: `writes` holds sequences of {SEQUENCE_BYTES} bytes")
