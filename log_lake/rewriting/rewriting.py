"""What a rewriting is: references that become new objects, as one value for any process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from lake_core.history import Reference
from lake_core.history.lift import Lifts
from lake_core.history.tombstone import Tombstone
from lake_core.keys import KeyRange
from lake_core.keys.ranges import EVERYTHING
from lake_core.records.pools import PoolConfig
from log_lake.combine.newest import emptied
from log_lake.indexes.cluster_rule import ClusterRule
from log_lake.indexes.rule import IndexRule
from log_lake.objects.metadata import Origin
from log_lake.reading.covers import Covering
from log_lake.reading.limits import ScanLimits
from log_lake.reading.revision import PoolPart

Keeps = Callable[[pa.Table], pa.Table]
"""A function that returns the part of a table of merged records that new objects keep; the table has all their
columns."""


def everything(table: pa.Table) -> pa.Table:
    """Returns the table unchanged: a selection that keeps every record."""
    return table


@dataclass(frozen=True)
class Rewriting(PoolPart):
    """References of one sub-pool of a branch that become new objects, one for each of the `pieces` of the key
    range.

    `schema` is that of the new objects; `schemas` has those of the inputs by id.  Records that the `tombstones`
    cover are left out.  No new object has an id below `first`, whatever the clock of the worker says.  An output
    stores the bounds of its piece only if `bounded`, because bounds may be keys that are erased.  `verifies`: the
    content of each piece is compared with that of the inputs.  `sums`: the new objects get content sums.
    `divides`: each piece becomes one object for each bucket of the rule `cluster`.
    `oldest_only`: delete markers are left out, so no older reference may hold records that they hide.
    """

    config: PoolConfig
    branch: str
    read_version: int
    origin: Origin
    inputs: tuple[Reference, ...]
    sub_pool: str
    schema: pa.Schema
    schemas: Mapping[str, pa.Schema]
    tombstones: tuple[Tombstone, ...]
    lifts: Lifts
    limits: ScanLimits
    first: str
    format: str
    keeps: Keeps = everything
    pieces: tuple[KeyRange, ...] = (EVERYTHING,)
    bounded: bool = True
    oldest_only: bool = False
    verifies: bool = False
    sums: bool = False
    indexes: tuple[IndexRule, ...] = ()
    cluster: ClusterRule | None = None
    divides: bool = False
    message: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Total bytes of the inputs."""
        return sum(r.size for r in self.inputs)

    @property
    def conserves(self) -> bool:
        """Whether the sums of the new objects can be compared with those of the inputs: all inputs have sums, and
        the pool combines no records."""
        return self.sums and self.rule.keeps_all and all(r.content for r in self.inputs)

    @property
    def keeps_everything(self) -> bool:
        """Whether the new objects keep all records that no delete hides."""
        return self.keeps is everything

    @property
    def keeps_number(self) -> bool:
        """Whether the new objects have as many records as deletes leave.  A delete marker may lose all fields but
        its key, and still counts."""
        return self.keeps_everything or (isinstance(self.keeps, partial) and self.keeps.func is emptied)

    def covering(self) -> Covering:
        """Returns the tombstones of the rewriting, arranged to find those that may cover records of an input, or
        certainly cover all."""
        return Covering(self.tombstones, self.schemas.__getitem__)
