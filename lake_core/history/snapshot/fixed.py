"""What a snapshot rests on: references as columns, in memory or in a checkpoint.

Both answer the same few questions without making an object of every reference.  `newest` is the greatest id
among them: since ids sort by time, a reference to a newer object cannot be there, and nothing has to be read to
know it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from lake_core.checkpoints import CheckpointFile
from lake_core.checkpoints.layout import Column
from lake_core.history.snapshot.reference import Reference, from_rows, to_rows
from lake_core.keys import KeyRange

REFERENCE = "reference"


class FixedReferences(Protocol):
    """Fixed references of one branch."""

    @property
    def newest(self) -> str:
        """The greatest object id, "" where there is none."""

    def __len__(self) -> int: ...

    def get(self, object_id: str, low: bytes) -> Reference | None:
        """The reference to the object that begins at `low`."""

    def overlapping(self, key_range: KeyRange, *, sub_pool: str) -> Iterable[Reference]:
        """References of the (sub-)pool that overlap the range."""

    def tables(self, *, sub_pool: str) -> Iterator[pa.Table]:
        """Rows of the (sub-)pool by low bound, a part at a time."""


@dataclass(frozen=True)
class TableReferences:
    """In memory: one table of rows for each (sub-)pool."""

    by_sub_pool: dict[str, pa.Table]
    newest: str = ""

    def rows(self, sub_pool: str) -> pa.Table:
        """The (sub-)pool's references."""
        return self.by_sub_pool[sub_pool] if sub_pool in self.by_sub_pool else to_rows([])

    def changed(
        self,
        *,
        gone: Collection[tuple[str, bytes]],
        added: Iterable[Reference],
        only: str | None = None,
    ) -> TableReferences:
        """Without some references (by object and low bound), with others; of all sub-pools or only one."""
        new: dict[str, list[Reference]] = {}
        newest = self.newest
        for reference in added:
            new.setdefault(reference.sub_pool, []).append(reference)
            newest = max(newest, reference.object)
        changed = {}
        for sub_pool in {*self.by_sub_pool, *new} if only is None else {only}:
            parts = [without(self.by_sub_pool[sub_pool], gone)] if sub_pool in self.by_sub_pool else []
            table = pa.concat_tables([*parts, to_rows(new.get(sub_pool, []))])
            changed[sub_pool] = by_key(table)
        return TableReferences(changed, newest)

    def __len__(self) -> int:
        return self._count

    @cached_property
    def _count(self) -> int:  # asked for with every reference that is added
        return sum(t.num_rows for t in self.by_sub_pool.values())

    def get(self, object_id: str, low: bytes) -> Reference | None:
        for sub_pool, table in self.by_sub_pool.items():
            keys = Column(table, "key")
            begin = bisect_left(keys, low)
            equal = table.slice(begin, bisect_right(keys, low, lo=begin) - begin)
            for reference in from_rows(equal, sub_pool=sub_pool):
                if reference.object == object_id:
                    return reference
        return None

    def overlapping(self, key_range: KeyRange, *, sub_pool: str) -> Iterable[Reference]:
        table = self.by_sub_pool.get(sub_pool)
        if table is None:
            return []
        hit = pc.greater(table["high"], pa.scalar(key_range.low, pa.binary()))
        if key_range.high is not None:
            hit = pc.and_(hit, pc.less(table["key"], pa.scalar(key_range.high, pa.binary())))
        return from_rows(table.filter(hit), sub_pool=sub_pool)

    def tables(self, *, sub_pool: str) -> Iterator[pa.Table]:
        if sub_pool in self.by_sub_pool:
            yield self.by_sub_pool[sub_pool]


def by_key(table: pa.Table) -> pa.Table:
    """Rows in the order of `Reference.order`."""
    names = ("key", "seq", "place", "object")
    return table.take(pc.sort_indices(table, [(name, "ascending") for name in names]))


def without(table: pa.Table, gone: Collection[tuple[str, bytes]]) -> pa.Table:
    """The rows that are not of these (object, low bound)."""
    if not gone:
        return table
    suspects = pc.is_in(table["object"], pa.array(sorted({id for id, _ in gone})))
    held = [
        not suspect or (object.as_py(), low.as_py()) not in gone
        for suspect, object, low in zip(suspects.to_pylist(), table["object"], table["key"], strict=True)
    ]
    return table.filter(pa.array(held))


@dataclass(frozen=True)
class CheckpointReferences:
    """In a checkpoint: only the row groups that a question needs are read."""

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
            for reference in from_rows(
                self.file.at_key(REFERENCE, low, branch=self.branch, sub_pool=sub_pool), sub_pool=sub_pool
            ):
                if reference.object == object_id:
                    return reference
        return None

    def overlapping(self, key_range: KeyRange, *, sub_pool: str) -> Iterable[Reference]:
        return from_rows(
            self.file.overlapping(key_range, branch=self.branch, sub_pool=sub_pool), sub_pool=sub_pool
        )

    def tables(self, *, sub_pool: str) -> Iterator[pa.Table]:
        yield from self.file.scan(REFERENCE, branch=self.branch, sub_pool=sub_pool)
