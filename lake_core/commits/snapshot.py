"""A snapshot: the references that a branch holds at a transaction, as columns.

A pool may have a million references, so they are an Arrow table (sorted by low bound) and a small overlay of
what came since: `added` and `removed`, persistent maps that make a new snapshot in constant time and leave
the old one as it was.  When the overlay has grown to an eighth of the table, the two become a new table.

The fold is total: adding what is there or removing what is not is Corrupt, never skipped.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from rpds import HashTrieMap, HashTrieSet

from lake_core.errors import Corrupt
from lake_core.keys import KeyRange
from lake_core.keys.ranges import EVERYTHING
from lake_core.records import Column


class Reference(msgspec.Struct, frozen=True):
    """A data object clipped to [low, high), as the branch holds it.

    Records count as written at `seq`; `place` orders the objects of one transaction by arrival.
    """

    object: str
    low: bytes
    high: bytes
    seq: int
    place: int
    records: int
    size: int
    schema: str
    sub: str = ""
    columns: tuple[Column, ...] = ()

    @property
    def span(self) -> KeyRange:
        """The range that the reference answers for."""
        return KeyRange(self.low, self.high)

    @property
    def order(self) -> tuple[bytes, int, int]:
        """By low bound, then by arrival."""
        return self.low, self.seq, self.place


_SCHEMA = pa.schema(
    [
        ("object", pa.string()),
        ("low", pa.binary()),
        ("high", pa.binary()),
        ("seq", pa.int64()),
        ("place", pa.int32()),
        ("records", pa.int64()),
        ("size", pa.int64()),
        ("schema", pa.string()),
        ("sub", pa.string()),
        ("columns", pa.binary()),
    ]
)
_COLUMNS = msgspec.msgpack.Decoder(tuple[Column, ...])
_SMALLEST_OVERLAY = 1024

Identity = tuple[str, bytes]


@dataclass(frozen=True)
class Snapshot:
    """References of one branch; make it with `Snapshot()` and `add` / `remove`."""

    table: pa.Table = field(default_factory=_SCHEMA.empty_table)
    added: HashTrieMap[Identity, Reference] = field(default_factory=HashTrieMap)
    removed: HashTrieSet[Identity] = field(default_factory=HashTrieSet)
    records: int = 0
    size: int = 0

    def __len__(self) -> int:
        return self.table.num_rows + len(self.added) - len(self.removed)

    def add(self, reference: Reference) -> Snapshot:
        """The snapshot with one reference more; raises Corrupt where it is there."""
        identity = (reference.object, reference.low)
        if self._holds(identity):
            raise Corrupt(f"reference to {reference.object}: added although it is there")
        return Snapshot(
            self.table,
            self.added.insert(identity, reference),
            self.removed,
            self.records + reference.records,
            self.size + reference.size,
        )._settled()

    def remove(self, object_id: str, low: bytes) -> Snapshot:
        """The snapshot without one reference; raises Corrupt where it is not there."""
        identity = (object_id, low)
        reference = self.added.get(identity)
        if reference is not None:
            added, removed = self.added.remove(identity), self.removed
        else:
            reference = self._in_table(identity)
            if reference is None or identity in self.removed:
                raise Corrupt(f"reference to {object_id}: removed although it is not there")
            added, removed = self.added, self.removed.insert(identity)
        return Snapshot(
            self.table, added, removed, self.records - reference.records, self.size - reference.size
        )._settled()

    def find(self, span: KeyRange = EVERYTHING, *, sub: str = "") -> list[Reference]:
        """References of the (sub-)pool that overlap the range, by low bound, then by arrival."""
        found = [r for r in self.added.values() if r.sub == sub and r.span.overlaps(span)]
        if self.table.num_rows:
            hit = pc.and_(pc.equal(self.table["sub"], sub), pc.greater(self.table["high"], span.low))
            if span.high is not None:
                hit = pc.and_(hit, pc.less(self.table["low"], span.high))
            found += [r for r in _from_table(self.table.filter(hit)) if (r.object, r.low) not in self.removed]
        return sorted(found, key=lambda r: r.order)

    def sub_pools(self) -> list[str]:
        """Names of the sub-pools that hold references."""
        names = {r.sub for r in self.added.values()} | set(self.table["sub"].unique().to_pylist())
        return sorted(name for name in names if name and self.find(sub=name))

    def _holds(self, identity: Identity) -> bool:
        if identity in self.added:
            return True
        return identity not in self.removed and self._in_table(identity) is not None

    def _in_table(self, identity: Identity) -> Reference | None:
        if not self.table.num_rows:
            return None
        object_id, low = identity
        hits = self.table.filter(pc.equal(self.table["object"], object_id))
        return next((r for r in _from_table(hits) if r.low == low), None)

    def _settled(self) -> Snapshot:
        """Itself, or the same content with the overlay taken into the table."""
        overlay = len(self.added) + len(self.removed)
        if overlay <= max(_SMALLEST_OVERLAY, self.table.num_rows // 8):
            return self
        kept = [r for r in _from_table(self.table) if (r.object, r.low) not in self.removed]
        everything = sorted([*kept, *self.added.values()], key=lambda r: r.order)
        return Snapshot(_to_table(everything), records=self.records, size=self.size)


def _to_table(references: list[Reference]) -> pa.Table:
    columns = {
        name: pa.array(
            [
                msgspec.msgpack.encode(r.columns) if name == "columns" else getattr(r, name)
                for r in references
            ],
            _SCHEMA.field(name).type,
        )
        for name in _SCHEMA.names
    }
    return pa.table(columns, schema=_SCHEMA)


def _from_table(table: pa.Table) -> list[Reference]:
    rows = zip(*(table[name].to_pylist() for name in _SCHEMA.names), strict=True)
    return [Reference(*row[:-1], columns=_COLUMNS.decode(row[-1])) for row in rows]  # type: ignore[misc]
