"""Fixed references: references that never change, in memory or in a checkpoint. A snapshot consists of them and of
the changes since.

Both forms answer the same few questions without making one Python object per reference.  `newest` is the
greatest id of their objects.  Ids sort by time, so a look-up of a newer object needs to read nothing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from lake_core.checkpoints import CheckpointFile
from lake_core.checkpoints.layout import ROW, LazyColumn
from lake_core.errors import CheckpointDamaged
from lake_core.history.snapshot.reference import Reference, from_rows, to_rows
from lake_core.keys import KeyRange
from lake_core.records.transactions import version_of

REFERENCE = "reference"
EVERY = tuple(ROW.names)
"""All columns of a row of references."""

PART = 64
"""The number of references that are decoded at once, if the first few may suffice."""


class FixedReferences(Protocol):
    """The fixed references of one branch, in memory or in a checkpoint."""

    @property
    def newest(self) -> str:
        """The greatest id of the references' objects, "" if there are no references."""

    def __len__(self) -> int: ...

    def get(self, object_id: str, low: bytes) -> Reference | None:
        """Returns the reference to the object that begins at `low`; None if no reference does."""

    def overlapping(self, key_range: KeyRange, *, sub_pool: str) -> Iterable[Reference]:
        """Returns the references of the pool or sub-pool that overlap the range."""

    def reaching(self, sequence: int, key_range: KeyRange, *, sub_pool: str) -> Iterator[Reference]:
        """Yields references like `overlapping`, but only those whose oldest record is no newer than `sequence`;
        decoded as needed."""

    def tables(self, *, sub_pool: str, columns: tuple[str, ...] = EVERY) -> Iterator[pa.Table]:
        """Yields the rows of the pool or sub-pool by low bound, a table at a time, with these `columns` besides
        `key`."""

    def newer_than(self, sequence: int, *, sub_pool: str) -> Iterable[Reference]:
        """Returns the references whose newest record is newer than the sequence."""

    def span(self, *, sub_pool: str) -> KeyRange | None:
        """Returns the range from the lowest bound of the references to the highest; None if there are none."""


@dataclass(frozen=True)
class TableReferences:
    """Fixed references in memory: one table of rows for the pool and for each sub-pool."""

    by_sub_pool: dict[str, pa.Table]
    newest: str = ""

    def rows(self, sub_pool: str) -> pa.Table:
        """Returns the references of the pool or sub-pool, as rows."""
        return self.by_sub_pool[sub_pool] if sub_pool in self.by_sub_pool else to_rows([])

    def changed(
        self,
        *,
        removed: Collection[tuple[str, bytes]],
        added: Iterable[Reference],
        only: str | None = None,
    ) -> TableReferences:
        """Returns a copy without the removed references (named by object and low bound), and with the added
        ones.  `only`: the one sub-pool to copy; None means all."""
        new: dict[str, list[Reference]] = {}
        newest = self.newest
        for reference in added:
            new.setdefault(reference.sub_pool, []).append(reference)
            newest = max(newest, reference.object)
        changed = {}
        for sub_pool in {*self.by_sub_pool, *new} if only is None else {only}:
            parts = [without(self.by_sub_pool[sub_pool], removed)] if sub_pool in self.by_sub_pool else []
            table = pa.concat_tables([*parts, to_rows(new.get(sub_pool, []))])
            changed[sub_pool] = by_key(table)
        return TableReferences(changed, newest)

    def __len__(self) -> int:
        return self._count

    @cached_property
    def _count(self) -> int:  # every added reference needs it
        return sum(t.num_rows for t in self.by_sub_pool.values())

    def get(self, object_id: str, low: bytes) -> Reference | None:
        for sub_pool, table in self.by_sub_pool.items():
            keys = LazyColumn(table, "key")
            begin = bisect_left(keys, low)
            equal = table.slice(begin, bisect_right(keys, low, lo=begin) - begin)
            for reference in from_rows(equal, sub_pool=sub_pool):
                if reference.object == object_id:
                    return reference
        return None

    def overlapping(self, key_range: KeyRange, *, sub_pool: str) -> Iterable[Reference]:
        if sub_pool not in self.by_sub_pool:
            return ()  # to make a table of no rows, Arrow would load pandas if that is installed
        return from_rows(self._overlapping(key_range, sub_pool), sub_pool=sub_pool)

    def _overlapping(self, key_range: KeyRange, sub_pool: str) -> pa.Table:
        table = self.rows(sub_pool)
        overlaps = pc.greater(table["high"], pa.scalar(key_range.low, pa.binary()))
        if key_range.high is not None:
            overlaps = pc.and_(overlaps, pc.less(table["key"], pa.scalar(key_range.high, pa.binary())))
        return table.filter(overlaps)

    def reaching(self, sequence: int, key_range: KeyRange, *, sub_pool: str) -> Iterator[Reference]:
        for part in _parts_until(sequence, self._overlapping(key_range, sub_pool)):
            yield from from_rows(part, sub_pool=sub_pool)

    def tables(self, *, sub_pool: str, columns: tuple[str, ...] = EVERY) -> Iterator[pa.Table]:
        if sub_pool in self.by_sub_pool:
            yield self.by_sub_pool[sub_pool]

    def newer_than(self, sequence: int, *, sub_pool: str) -> Iterable[Reference]:
        for table in self.tables(sub_pool=sub_pool):
            yield from from_rows(table.filter(pc.greater(table["seq"], sequence)), sub_pool=sub_pool)

    def span(self, *, sub_pool: str) -> KeyRange | None:
        table = self.by_sub_pool.get(sub_pool)
        if table is None or not table.num_rows:
            return None
        return KeyRange(table["key"][0].as_py(), pc.max(table["high"]).as_py())


def _parts_until(sequence: int, table: pa.Table) -> Iterator[pa.Table]:
    """Yields the rows whose oldest record is no newer than `sequence`, a few at a time."""
    first = pc.coalesce(table["oldest"], table["seq"])
    until = table.filter(pc.less_equal(first, sequence))
    for begin in range(0, until.num_rows, PART):
        yield until.slice(begin, PART)


def by_key(table: pa.Table) -> pa.Table:
    """Returns the rows in the order of `Reference.order`."""
    names = ("key", "seq", "place", "object")
    return table.take(pc.sort_indices(table, [(name, "ascending") for name in names]))


def without(table: pa.Table, removed: Collection[tuple[str, bytes]]) -> pa.Table:
    """Returns the rows without the removed references, each named by its object and its low bound."""
    if not removed:
        return table
    suspects = pc.is_in(table["object"], pa.array(sorted({id for id, _ in removed})))
    mask = [
        not suspect or (object.as_py(), low.as_py()) not in removed
        for suspect, object, low in zip(suspects.to_pylist(), table["object"], table["key"], strict=True)
    ]
    return table.filter(pa.array(mask, pa.bool_()))


@dataclass(frozen=True)
class CheckpointReferences:
    """Fixed references in a checkpoint; a look-up reads only the row groups that it needs."""

    file: CheckpointFile
    branch: str
    newest: str

    def _sub_pools(self) -> list[str]:
        return [sub_pool for branch, sub_pool in self.file.branches(REFERENCE) if branch == self.branch]

    def __len__(self) -> int:
        return sum(
            self.file.count(REFERENCE, branch=self.branch, sub_pool=sub_pool)
            for sub_pool in self._sub_pools()
        )

    def get(self, object_id: str, low: bytes) -> Reference | None:
        for sub_pool in self._sub_pools():
            for reference in self._found(partial(self.file.at_key, REFERENCE, low), sub_pool):
                if reference.object == object_id:
                    return reference
        return None

    def overlapping(self, key_range: KeyRange, *, sub_pool: str) -> Iterable[Reference]:
        return self._found(partial(self.file.overlapping, key_range), sub_pool)

    def reaching(self, sequence: int, key_range: KeyRange, *, sub_pool: str) -> Iterator[Reference]:
        look_up = partial(self.file.overlapping, key_range, branch=self.branch, sub_pool=sub_pool)
        decode = partial(from_rows, sub_pool=sub_pool)
        for part in _parts_until(sequence, self.file.decoded(look_up)):
            try:
                yield from self.file.rows_of(part, decode)
            except CheckpointDamaged:  # all of them again, from rows that are rebuilt
                again = self.overlapping(key_range, sub_pool=sub_pool)
                yield from (reference for reference in again if reference.first_seq <= sequence)
                return

    def _found(self, look_up: Callable[..., pa.Table], sub_pool: str) -> list[Reference]:
        """Returns the references of the rows that a look-up in the file finds.  Raises Corrupt, Unavailable."""
        return self.file.decoded(
            lambda: list(from_rows(look_up(branch=self.branch, sub_pool=sub_pool), sub_pool=sub_pool))
        )

    def tables(self, *, sub_pool: str, columns: tuple[str, ...] = EVERY) -> Iterator[pa.Table]:
        yield from self.file.scan(REFERENCE, branch=self.branch, sub_pool=sub_pool, columns=columns)

    def newer_than(self, sequence: int, *, sub_pool: str) -> Iterable[Reference]:
        if version_of(sequence + 1) > self.file.footer.version:  # it is older as a whole
            return
        decode = partial(from_rows, sub_pool=sub_pool)
        for table in self.file.greater(REFERENCE, "seq", sequence, branch=self.branch, sub_pool=sub_pool):
            yield from self.file.rows_of(table, decode)

    def span(self, *, sub_pool: str) -> KeyRange | None:
        return self.file.span(REFERENCE, branch=self.branch, sub_pool=sub_pool)
