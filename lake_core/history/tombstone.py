"""A tombstone as a branch holds it, and which references it may cover; pure.

A record is visible if no tombstone of the snapshot that was written later covers it.  Records know when they count
as written: from their reference, or one by one where a compaction wrote the object.  A reference also knows up to
which entry tombstones were applied to it: what they covered is no longer in it (`Reference.applied`).

Deletes and replaces leave ordinary tombstones.  An `own` one covers records of its own transaction: it comes with a
load that a replace overtook, which had begun later and landed first; as if the load had landed before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
import pyarrow as pa

from lake_core.conditions import may_hold, must_hold
from lake_core.history.snapshot.reference import Reference
from lake_core.keys import KeyRange
from lake_core.records.conditions import Condition
from lake_core.records.transactions import sequence

NEVER = 1 << 40
"""An entry that no journal reaches."""

SchemaOf = Callable[[str], pa.Schema]
"""A schema by its id."""


class Tombstone(msgspec.Struct, frozen=True, omit_defaults=True):
    """Records of keys in [low, high) of which the condition holds are not visible, if written before `seq`.

    `n`, `base`, `transaction` and `time` (microseconds since 1970) are those of the transaction that wrote it.
    `replaces`: it stands for a replace, which conflicts with others that overlap it.  `sub`: the sub-pool of which
    it covers records, "" for the pool itself.
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

    @property
    def key_range(self) -> KeyRange:
        """The keys that it covers."""
        return KeyRange(self.low, self.high)

    @property
    def started(self) -> tuple[int, str]:
        """When its transaction began: by what it began on, then by its id, which starts with the writer's clock."""
        return self.read_version, self.transaction_id

    def reaches(self, reference: Reference) -> bool:
        """Whether by age and range it may cover records of the reference."""
        if (
            reference.sub_pool != self.sub_pool
            or self.version <= reference.applied
            or not self.key_range.overlaps(reference.key_range)
        ):
            return False
        if self.self_only:
            return reference.first_seq <= self.seq <= reference.seq
        return reference.first_seq < self.seq

    def reaches_all(self, reference: Reference) -> bool:
        """Whether by age, and whatever the range, it covers all records of a reference that it reaches."""
        if self.self_only:
            return reference.oldest is None
        return reference.seq < self.seq

    def may_cover(self, reference: Reference, schema_of: SchemaOf) -> bool:
        """Whether it may cover a record of the reference, as far as range, age and statistics tell."""
        if not self.reaches(reference):
            return False
        if self.condition is None:
            return True
        schema = schema_of(reference.schema)
        return may_hold(self.condition, schema, reference.columns, records=reference.records)

    def covers_all(self, reference: Reference, schema_of: SchemaOf) -> bool:
        """Whether it is sure to cover all records of a reference that it reaches."""
        inside = self.low <= reference.low and (self.high is None or reference.high <= self.high)
        if not inside or not self.reaches_all(reference):
            return False
        if self.condition is None:
            return True
        schema = schema_of(reference.schema)
        return must_hold(self.condition, schema, reference.columns, records=reference.records)


def newer_than_all(
    id: str,
    key_range: KeyRange,
    condition: Condition | None,
    *,
    time: int = 0,
    reason: str = "",
    sub_pool: str = "",
) -> Tombstone:
    """As of a delete that comes after everything: for what no journal holds, and is asked like a delete."""
    seq = sequence(NEVER)
    return Tombstone(
        id,
        NEVER,
        seq,
        NEVER,
        "",
        time,
        key_range.low,
        key_range.high,
        condition=condition,
        reason=reason,
        sub_pool=sub_pool,
    )


def covering(
    tombstones: Iterable[Tombstone], reference: Reference, schema_of: SchemaOf
) -> tuple[Tombstone, ...]:
    """Those that may cover records of the reference."""
    return tuple(t for t in tombstones if t.may_cover(reference, schema_of))
