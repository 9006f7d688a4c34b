"""A tombstone as a branch holds it, and which references it may cover; pure.

A record is visible if no later tombstone of the branch covers it.  The sequence of a record comes from its
reference, or from the record itself if a compaction wrote the object.  A reference also holds the version up to
which tombstones were applied to it: the records that they covered are no longer in it (`Reference.applied`).

Deletes and replaces leave ordinary tombstones.  A self-only tombstone hides only records of its own transaction.
It is added to a load that was overtaken by a later-started replace, so that the result is as if the load had
committed first.  A revert of a load whose objects were compacted leaves a tombstone for exactly its sequence.
An erasure leaves one for the sequences from 0 to a given one: records that are loaded later stay visible,
also on a branch to which a merge brings the tombstone.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pyarrow as pa

from lake_core.conditions import may_hold, must_hold
from lake_core.errors import Corrupt
from lake_core.history.snapshot.reference import Reference
from lake_core.keys import KeyRange
from lake_core.records.branching import check_hidden, check_stored
from lake_core.records.conditions import Condition
from lake_core.records.decoders import MSGPACK
from lake_core.records.decoding import check_counts, check_times

NEVER = 1 << 40
"""A version that no journal reaches."""

SchemaOf = Callable[[str], pa.Schema]
"""A function that returns the schema with an id."""


class Tombstone(msgspec.Struct, frozen=True, omit_defaults=True):
    """Hides records with keys from `low` (inclusive) to `high` (exclusive) that fulfil the condition, if they were
    written before `seq`.

    `version`, `read_version`, `transaction_id` and `time` (microseconds since 1970) are those of the
    transaction that wrote it.  `replaces`: it comes from a replace, which conflicts with overlapping ones.
    `sub_pool`: the sub-pool whose records it covers, "" for the pool itself.  `only`: the first and the last
    sequence of the records that it hides; then its own `seq` does not count.  `replaced_in`: see `since`; 0
    stands for `version`.
    """

    id: str
    version: int = msgspec.field(name="n")
    seq: int
    read_version: int = msgspec.field(name="base")
    transaction_id: str = msgspec.field(name="transaction")
    time: int
    low: bytes = b""
    high: bytes | None = None
    condition: Condition | None = None
    reason: str = ""
    replaces: bool = False
    self_only: bool = msgspec.field(name="own", default=False)
    sub_pool: str = msgspec.field(name="sub", default="")
    only: tuple[int, int] | None = None
    replaced_in: int = 0

    def __post_init__(self) -> None:
        if self.seq <= 0 or (self.high is not None and self.low >= self.high):
            raise Corrupt(f"tombstone {self.id!r}: needs a sequence and a range that is not empty")
        check_hidden(self.id, sub_pool=self.sub_pool, only=self.only)
        versions = {"version": self.version, "base": self.read_version, "replaced_in": self.replaced_in}
        check_counts(f"tombstone {self.id!r}", seq=self.seq, **versions)
        check_times(f"tombstone {self.id!r}", time=self.time)

    @property
    def since(self) -> int:
        """The version from which a replace conflicts with others.  It is the replace's own version, even if the
        tombstone was retired and came back."""
        return self.replaced_in or self.version

    @property
    def exactly(self) -> tuple[int, int] | None:
        """The first and the last sequence of the records that the tombstone hides; None means all records older
        than itself."""
        return (self.seq, self.seq) if self.self_only else self.only

    @property
    def upto(self) -> int | None:
        """The last sequence that the tombstone hides, if it hides all sequences up to that one and no later ones;
        otherwise None."""
        return self.only[1] if self.only is not None and self.only[0] == 0 else None

    @property
    def key_range(self) -> KeyRange:
        """The range of the keys that the tombstone covers."""
        return KeyRange(self.low, self.high)

    @property
    def started(self) -> tuple[int, str]:
        """When the tombstone's transaction began, for comparison: its read version, then its id, which starts with
        the time."""
        return self.read_version, self.transaction_id

    def reaches(self, reference: Reference) -> bool:
        """Whether the tombstone may cover records of the reference, judged by age and range."""
        if (
            reference.sub_pool != self.sub_pool
            or self.version <= reference.applied
            or not self.key_range.overlaps(reference.key_range)
        ):
            return False
        if self.exactly is not None:
            first, last = self.exactly
            return reference.first_seq <= last and first <= reference.seq
        return reference.first_seq < self.seq

    def reaches_all(self, reference: Reference) -> bool:
        """Whether the tombstone covers the ages of all records of a reference; this says nothing about their
        keys."""
        if self.exactly is not None:
            first, last = self.exactly
            return first <= reference.first_seq and reference.seq <= last
        return reference.seq < self.seq

    def may_cover(self, reference: Reference, schema_of: SchemaOf) -> bool:
        """Whether the tombstone may cover a record of the reference, judged by range, age and statistics."""
        if not self.reaches(reference):
            return False
        if self.condition is None:
            return True
        schema = schema_of(reference.schema)
        return may_hold(self.condition, schema, reference.columns, records=reference.records)

    def covers_all(self, reference: Reference, schema_of: SchemaOf) -> bool:
        """Whether the tombstone certainly hides all records of a reference, for which `reaches` is true."""
        inside = self.low <= reference.low and (self.high is None or reference.high <= self.high)
        if not inside or not self.reaches_all(reference):
            return False
        if self.condition is None:
            return True
        schema = schema_of(reference.schema)
        return must_hold(self.condition, schema, reference.columns, records=reference.records)


def tombstone_of(stored: bytes) -> Tombstone:
    """Returns the tombstone that a checkpoint holds.  Raises Corrupt, also for the condition of a filter."""
    tombstone = MSGPACK.of(Tombstone).decode(stored)
    check_stored(tombstone.id, tombstone.condition)
    return tombstone
