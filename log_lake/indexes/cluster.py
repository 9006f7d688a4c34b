"""Clusters: within a range, records lie by the hash of a field in N buckets; an object of one bucket says so.

The rule is the pool's setting `cluster.by=FIELD:N`.  The bucket of a value is its number (`hashes`) modulo N, so
values that conditions take as equal have the same bucket, whatever their types.  Null and absent values have
bucket 0.

Every writer of objects hashes the field of what it writes (`BucketSeen`).  An object whose records have one bucket
states it with the statistics of the field (`Column.bucket`).  Any other object states none, and may hold every
value.  So a statement is never copied, and no answer depends on the rule.  Called by `objects.write`, by loads and
compactions, which divide records by bucket, and by `repair`, which compares statements with records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lake_core.conditions.fields import find_field
from lake_core.records.column import Bucket, Column
from lake_core.records.conditions import Path
from lake_core.values.types import is_json
from log_lake.indexes.cluster_rule import ClusterRule
from log_lake.indexes.hashes import hashed, indexed_field, values_at

Buckets = npt.NDArray[np.uint64]
"""The bucket of each record of a table."""


def buckets_of(table: pa.Table, rule: ClusterRule) -> Buckets | None:
    """Returns the bucket of each record; None if the table has no such field, or one whose type has no hash."""
    indexed = indexed_field(table.schema, rule.field)
    return None if indexed is None else _buckets(table, *indexed, of=rule.of)


def _buckets(table: pa.Table, path: Path, own: pa.Field, *, of: int) -> Buckets:
    buckets = np.zeros(table.num_rows, np.uint64)
    at = 0
    for chunk in values_at(table, path).chunks:
        if chunk.null_count < len(chunk):
            valid = chunk.is_valid().to_numpy(zero_copy_only=False)
            buckets[at : at + len(chunk)][valid] = hashed(chunk.drop_null(), own) % np.uint64(of)
        at += len(chunk)
    return buckets


def divided(table: pa.Table, buckets: Buckets) -> Iterator[tuple[int, pa.Table]]:
    """Yields the records of each bucket that has some, in their order, by bucket."""
    order = np.argsort(buckets, kind="stable")
    ends = np.searchsorted(buckets, np.unique(buckets), side="right", sorter=order)
    begin = 0
    for end in ends:
        places = order[begin:end]
        yield int(buckets[places[0]]), table if len(places) == len(order) else table.take(pa.array(places))
        begin = end


@dataclass
class BucketSeen:
    """Watches the records of one object, and finds the one bucket that all of them have, if there is one."""

    rule: ClusterRule
    _path: Path = ()
    _number: int = -1
    _is_over: bool = field(default=False, init=False)

    def add(self, table: pa.Table) -> None:
        """Adds records of the object."""
        if self._is_over or not table.num_rows:
            return
        indexed = indexed_field(table.schema, self.rule.field)
        if indexed is None:
            self._is_over = True
            return
        buckets = _buckets(table, *indexed, of=self.rule.of)
        first = int(buckets[0]) if self._number < 0 else self._number
        self._is_over = bool((buckets != first).any()) or (self._number >= 0 and indexed[0] != self._path)
        self._path, self._number = indexed[0], first

    @property
    def bucket(self) -> tuple[str, Bucket] | None:
        """The name of the column, and the bucket of all records; None if they have several, or none."""
        if self._is_over or self._number < 0:
            return None
        return self._path[0], Bucket(self.rule.of, self._number, self._path[1:])

    def stated(self, columns: Sequence[Column]) -> tuple[Column, ...]:
        """Returns the statistics of the object with the bucket."""
        name, bucket = self.bucket or ("", None)
        return tuple(
            msgspec.structs.replace(one, bucket=bucket) if bucket is not None and one.name == name else one
            for one in columns
        )


def strays(table: pa.Table, stated: tuple[str, Bucket] | None) -> int:
    """Returns how many records are not in the bucket that the statistics of their object state."""
    if stated is None:
        return 0
    name, bucket = stated
    path = (name, *bucket.path)
    own, rest = find_field(table.schema, path)
    if own is None or rest or is_json(own):
        return table.num_rows
    return int((_buckets(table, path, own, of=bucket.of) != bucket.number).sum())


class Stating(Protocol):
    """Anything with statistics of an object: a reference, or an action that adds one."""

    @property
    def columns(self) -> tuple[Column, ...]: ...


R = TypeVar("R", bound=Stating)


def by_bucket(references: Iterable[R], rule: ClusterRule | None) -> list[list[R]]:
    """Returns the references in groups, in their order: those of each bucket of the rule, then those of none."""
    groups: dict[int, list[R]] = defaultdict(list)
    for reference in references:
        groups[bucket_by(rule, reference.columns)].append(reference)
    return [groups[number] for number in sorted(groups, key=lambda number: (number < 0, number))]


NO_BUCKET = -1
"""In place of a bucket: an object states none, or one of another rule."""


def bucket_by(rule: ClusterRule | None, columns: Sequence[Column]) -> int:
    """Returns the bucket of the rule that the statistics of an object state, or `NO_BUCKET`."""
    stated = None if rule is None else stated_bucket(columns)
    if rule is None or stated is None:
        return NO_BUCKET
    name, bucket = stated
    is_of_rule = bucket.of == rule.of and ".".join((name, *bucket.path)) == rule.field
    return bucket.number if is_of_rule else NO_BUCKET


def stated_bucket(columns: Sequence[Column]) -> tuple[str, Bucket] | None:
    """Returns the bucket that the statistics of an object state, with the name of the column; None: none."""
    return next(((one.name, one.bucket) for one in columns if one.bucket is not None), None)
