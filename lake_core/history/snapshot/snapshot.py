"""A snapshot: the references that a branch holds at a transaction.

A pool may have a million references, so most of them are columns: in a checkpoint that is read when needed
(`checkpoint`), and in memory if they were folded since (`folded`).  `removed` are those taken out of the
checkpoint, `dropped` those taken out of `folded`, `added` the latest ones.  These three are persistent maps: a
change makes a new snapshot in constant time and leaves the old one unchanged.  When they reach an eighth of
`folded`, they are merged into it.

`shapes` counts references, records and bytes by sub-pool and schema, so that totals and the united schema need no
look at the references.

The fold is total: adding a reference twice, or removing one that is absent, is Corrupt, never skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import msgspec
import pyarrow as pa
from rpds import HashTrieMap, HashTrieSet

from lake_core.errors import Corrupt
from lake_core.history.snapshot.fixed import EVERY, FixedReferences, TableReferences, without
from lake_core.history.snapshot.reference import Reference, in_order
from lake_core.keys import KeyRange
from lake_core.keys.ranges import EVERYTHING

MIN_CHANGES = 1024
"""The number of references that `added` and `dropped` may have before they are merged into `folded`, even if
`folded` is small: merging copies all of `folded`."""
_EMPTY = TableReferences({})

Identity = tuple[str, bytes]
"""What identifies a reference: its object, and its low bound."""


class Shape(msgspec.Struct, frozen=True):
    """The totals of the references of one sub-pool and schema: their number, records and bytes.

    `first`: the oldest sequence of the first reference that ever had this sub-pool and schema.  `inlined`: how
    many of the bytes are in the journal; left out if none are.
    """

    first: int
    references: int = 0
    records: int = 0
    size: int = 0
    inlined: int | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        counts = (self.first, self.references, self.records, self.size, self.inlined or 0)
        if min(counts) < 0 or (self.inlined or 0) > self.size:
            raise Corrupt(
                f"the totals of a branch: {self.references} references, {self.records} records, {self.size} bytes"
            )

    def plus(self, reference: Reference, times: int) -> Shape:
        """Returns the totals with the reference added `times` times; -1 removes it."""
        return Shape(
            self.first,
            self.references + times,
            self.records + times * reference.records,
            self.size + times * reference.size,
            (self.inlined or 0) + times * len(reference.data) or msgspec.UNSET,
        )


@dataclass(frozen=True)
class Snapshot:
    """The references of one branch; make it with `Snapshot()`, `add` and `remove`."""

    checkpoint: FixedReferences = _EMPTY
    folded: TableReferences = _EMPTY
    added: HashTrieMap[Identity, Reference] = field(default_factory=HashTrieMap)
    removed: HashTrieSet[Identity] = field(default_factory=HashTrieSet)
    dropped: HashTrieSet[Identity] = field(default_factory=HashTrieSet)
    shapes: HashTrieMap[tuple[str, str], Shape] = field(default_factory=HashTrieMap)
    min_changes: int = field(default=MIN_CHANGES, compare=False)

    def __len__(self) -> int:
        return sum(s.references for s in self.shapes.values())

    @property
    def records(self) -> int:
        """The number of records of the pool and its sub-pools."""
        return sum(s.records for s in self.shapes.values())

    @property
    def size(self) -> int:
        """The bytes of the objects of the pool and its sub-pools."""
        return sum(s.size for s in self.shapes.values())

    @property
    def inlined(self) -> int:
        """The bytes of all inlined objects of the pool and its sub-pools."""
        return sum(s.inlined or 0 for s in self.shapes.values())

    def totals(self, sub_pool: str = "") -> Shape:
        """Returns the number of references, records and bytes of the pool or of one sub-pool."""
        shapes = [s for (of, _), s in self.shapes.items() if of == sub_pool]
        return Shape(
            min((s.first for s in shapes), default=0),
            sum(s.references for s in shapes),
            sum(s.records for s in shapes),
            sum(s.size for s in shapes),
        )

    def schemas(self, sub_pool: str = "") -> list[str]:
        """Returns the ids of the schemas of the sub-pool's references, by first use.  If all references were
        removed, returns the ids that they had, because an empty pool keeps its fields."""
        all_ = [(s.first, schema, s.references) for (of, schema), s in self.shapes.items() if of == sub_pool]
        used = [item for item in all_ if item[2]] or all_
        return [schema for _, schema, _ in sorted(used)]

    def schemas_ever(self, sub_pool: str = "") -> list[str]:
        """Returns the ids of all schemas that references of the sub-pool have or had, by first use."""
        all_ = [(s.first, schema) for (of, schema), s in self.shapes.items() if of == sub_pool]
        return [schema for _, schema in sorted(all_)]

    def sub_pools(self) -> list[str]:
        """Returns the names of the sub-pools that have references."""
        return sorted({sub_pool for (sub_pool, _), s in self.shapes.items() if sub_pool and s.references})

    def add(self, reference: Reference) -> Snapshot:
        """Returns the snapshot with the reference added.  Raises Corrupt if the snapshot has it already."""
        identity = (reference.object, reference.low)
        if self._find(identity) is not None:
            raise Corrupt(f"reference to {reference.object}: added, but the branch has it already")
        added, shapes = self.added.insert(identity, reference), self._counted(reference, 1)
        changed = Snapshot(self.checkpoint, self.folded, added, self.removed, self.dropped, shapes)
        return changed._settled()

    def remove(self, object_id: str, low: bytes) -> Snapshot:
        """Returns the snapshot without the reference.  Raises Corrupt if the snapshot does not have it."""
        return self.take(object_id, low)[0]

    def take(self, object_id: str, low: bytes) -> tuple[Snapshot, Reference]:
        """Removes a reference like `remove`; also returns that reference."""
        identity = (object_id, low)
        reference = self._find(identity)
        if reference is None:
            raise Corrupt(f"reference to {object_id}: removed, but the branch does not have it")
        shapes = self._counted(reference, -1)
        if identity in self.added:
            return replace(self, added=self.added.remove(identity), shapes=shapes), reference
        if self._in_folded(identity) is not None:
            return replace(self, dropped=self.dropped.insert(identity), shapes=shapes)._settled(), reference
        return replace(self, removed=self.removed.insert(identity), shapes=shapes), reference

    def mark_applied(self, object_id: str, low: bytes, upto: int) -> Snapshot:
        """Returns the snapshot after tombstones up to version `upto` were applied to a reference.  Raises
        Corrupt if the snapshot does not have the reference."""
        reference = self._find((object_id, low))
        without = self.remove(object_id, low)
        assert reference is not None
        return without.add(msgspec.structs.replace(reference, applied=max(reference.applied, upto)))

    def reference(self, object_id: str, low: bytes) -> Reference | None:
        """Returns the reference to the object's range that begins at `low`; None if the branch has none."""
        return self._find((object_id, low))

    def holds(self, object_id: str, low: bytes) -> bool:
        """Whether the branch refers to the object's range that begins at `low`."""
        return self._find((object_id, low)) is not None

    def overlapping(self, key_range: KeyRange = EVERYTHING, *, sub_pool: str = "") -> list[Reference]:
        """Returns the references of the pool or sub-pool that overlap the range, by low bound, then by arrival."""
        added = [r for r in self.added.values() if r.sub_pool == sub_pool and r.key_range.overlaps(key_range)]
        below = self._overlapping(self.checkpoint, self.removed, key_range, sub_pool=sub_pool)
        folded = self._overlapping(self.folded, self.dropped, key_range, sub_pool=sub_pool)
        return in_order([*added, *below, *folded])

    def ends(self, *, sub_pool: str = "") -> tuple[list[Reference], list[Reference]] | None:
        """Returns the references with the lowest bound, and those with the highest; reads few row groups.
        Returns None if there are no references, or if a removed reference may have had such a bound."""
        fixed = (self.checkpoint.span(sub_pool=sub_pool), self.folded.span(sub_pool=sub_pool))
        added = (r.key_range for r in self.added.values() if r.sub_pool == sub_pool)
        spans = [span for span in (*fixed, *added) if span is not None]
        if not spans:
            return None
        low, high = min(span.low for span in spans), max(span.high or b"" for span in spans)
        first = [r for r in self.overlapping(KeyRange(b"", low + b"\0"), sub_pool=sub_pool) if r.low == low]
        last = [r for r in self.overlapping(KeyRange(high[:-1]), sub_pool=sub_pool) if r.high == high]
        return (first, last) if first and last else None

    def reaching(self, sequence: int, key_range: KeyRange, *, sub_pool: str = "") -> Iterator[Reference]:
        """Yields references like `overlapping`, but only those whose oldest record is no newer than `sequence`,
        in no order.  They are decoded as they are asked for."""
        for reference in self.added.values():
            if (
                reference.sub_pool == sub_pool
                and reference.first_seq <= sequence
                and reference.key_range.overlaps(key_range)
            ):
                yield reference
        for fixed, removed in ((self.folded, self.dropped), (self.checkpoint, self.removed)):
            for reference in fixed.reaching(sequence, key_range, sub_pool=sub_pool):
                if (reference.object, reference.low) not in removed:
                    yield reference

    def all(self) -> Iterator[Reference]:
        """Yields the references of the pool itself and of its sub-pools."""
        for sub_pool in ("", *self.sub_pools()):
            yield from self.overlapping(sub_pool=sub_pool)

    def newer_than(self, sequence: int) -> list[Reference]:
        """Returns the references, also of sub-pools, whose newest record is newer than the sequence, from old to
        new."""
        references = [r for r in self.added.values() if r.seq > sequence]
        for sub_pool in ("", *self.sub_pools()):
            for fixed, removed in ((self.checkpoint, self.removed), (self.folded, self.dropped)):
                newer = fixed.newer_than(sequence, sub_pool=sub_pool)
                references += [r for r in newer if (r.object, r.low) not in removed]
        return sorted(references, key=lambda r: (r.seq, r.ordinal, r.low, r.object))

    def table(self, *, sub_pool: str = "", columns: tuple[str, ...] = EVERY) -> pa.Table:
        """Returns the references of the sub-pool as rows, in no order, so that a caller can examine many at
        once."""
        names = tuple(dict.fromkeys(("key", "object", *columns)))
        below = [
            without(part.select(list(names)), self.removed)
            for part in self.checkpoint.tables(sub_pool=sub_pool, columns=names)
        ]
        return pa.concat_tables([*below, self.since_checkpoint(sub_pool=sub_pool).select(list(names))])

    def since_checkpoint(self, *, sub_pool: str) -> pa.Table:
        """Returns the references of the sub-pool that the checkpoint does not have, as rows."""
        changed = self.folded.changed(removed=self.dropped, added=self.added.values(), only=sub_pool)
        return changed.rows(sub_pool)

    @staticmethod
    def _overlapping(
        fixed: FixedReferences, removed: HashTrieSet[Identity], key_range: KeyRange, *, sub_pool: str
    ) -> list[Reference]:
        overlapping = fixed.overlapping(key_range, sub_pool=sub_pool)
        return [r for r in overlapping if (r.object, r.low) not in removed]

    def _find(self, identity: Identity) -> Reference | None:
        reference = self.added.get(identity) or self._in_folded(identity)
        if reference is None and identity not in self.removed and identity[0] <= self.checkpoint.newest:
            return self.checkpoint.get(*identity)
        return reference

    def _in_folded(self, identity: Identity) -> Reference | None:
        if identity in self.dropped or identity[0] > self.folded.newest:
            return None
        return self.folded.get(*identity)

    def _counted(self, reference: Reference, times: int) -> HashTrieMap[tuple[str, str], Shape]:
        shape_key = (reference.sub_pool, reference.schema)
        shape = self.shapes.get(shape_key) or Shape(reference.first_seq)
        return self.shapes.insert(shape_key, shape.plus(reference, times))

    def _settled(self) -> Snapshot:
        """Returns the same content, with `added` and `dropped` merged into `folded` if they have grown too
        large."""
        if len(self.added) + len(self.dropped) <= max(self.min_changes, len(self.folded) // 8):
            return self
        folded = self.folded.changed(removed=self.dropped, added=self.added.values())
        return replace(self, folded=folded, added=HashTrieMap(), dropped=HashTrieSet())
