"""A revision: one branch of a pool after one entry of its journal, as a value.

Planners, deletes, `explain` and the agents get one revision instead of its parts (state, branch, key, rule,
time) one by one. `Pool.at` and `Branch.revision` make revisions; `lake.view.View` is a revision and the store
of its objects.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from lake_core.errors import Corrupt, NotFound
from lake_core.history import PoolState, Reference, Snapshot
from lake_core.history.branch_state import BranchState
from lake_core.history.fields import key_classes
from lake_core.history.lift import Lift
from lake_core.history.rebase import still_covered
from lake_core.history.tombstone import Tombstone
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.encoding import key_class
from lake_core.keys.ranges import EVERYTHING
from lake_core.naming import SUB_POOLS
from lake_core.phrases import did_you_mean
from lake_core.records.pools import PoolConfig
from lake_core.schemas import Rule
from lake_core.schemas.rule import rule_of
from lake_core.schemas.schema import unite_schemas
from log_lake.fields.names import FieldNames, names_at, with_added
from log_lake.indexes.cluster_rule import ClusterRule
from log_lake.indexes.rule import IndexRule
from log_lake.reading.age_off import NAME as AGE_OFF
from log_lake.reading.filters import filters_of, has_filters
from log_lake.reading.limits import LIMITS, ScanLimits
from log_lake.settings import Settings


class PoolPart:
    """The records of a pool, or of one of its sub-pools: their order, and the rule for equal keys."""

    config: PoolConfig
    sub_pool: str

    @property
    def key(self) -> PoolKey:
        """The key by which the records are ordered; a sub-pool's records are in order of arrival."""
        return self.config.key_of(self.sub_pool)

    @property
    def rule(self) -> Rule:
        """The rule by which records of equal keys combine; sub-pools keep all records."""
        return rule_of(self.config, self.sub_pool)

    @property
    def settings(self) -> Settings:
        """The settings of the pool."""
        return Settings(self.config.settings)


@dataclass(frozen=True)
class Revision(PoolPart):
    """The state of one branch after entry `version`, or of a sub-pool of it.

    `now` is the time from which ages count, in seconds since 1970; `limits` bound the memory of its merges.

    Guarantees, checked when a revision is made:

    - It never changes, whatever is committed, renamed or configured afterwards.
    - The branch exists in the state, and its newest transaction is of entry `version` or older.
    - `sub_pool` is "" (the pool itself) or the name of a sub-pool.

    The same revision always gives the same answers. It may read checkpoints, which never change, and so raise
    Corrupt or Unavailable.
    """

    config: PoolConfig
    version: int
    branch: str
    state: PoolState
    now: float
    sub_pool: str = ""
    limits: ScanLimits = LIMITS

    def __post_init__(self) -> None:
        branch = self.state.branches.get(self.branch)
        if branch is None:
            raise NotFound(
                f"pool {self.config.name!r} at version {self.version}: branch {self.branch!r} does not exist; "
                f"{did_you_mean(self.branch, self.state.branches)}"
            )
        if branch.tip > self.version:
            raise ValueError(f"a state of version {branch.tip} is no revision of version {self.version}")
        if self.sub_pool and self.sub_pool not in SUB_POOLS:
            raise ValueError(f"{self.sub_pool!r} is no sub-pool")

    def of_sub_pool(self, sub_pool: str) -> Revision:
        """Returns the same revision of a sub-pool; "" means the pool itself."""
        return replace(self, sub_pool=sub_pool)

    @property
    def held(self) -> BranchState:
        """What the branch has: its tip, snapshot and tombstones, including those of sub-pools."""
        return self.state.branches[self.branch]

    @property
    def snapshot(self) -> Snapshot:
        """The references of the branch, including those of sub-pools."""
        return self.held.snapshot

    @property
    def references(self) -> list[Reference]:
        """Returns all references, by low bound, then by arrival."""
        return self.references_in(EVERYTHING)

    def references_in(self, key_range: KeyRange) -> list[Reference]:
        """Returns the references that overlap a key range, clipped to it, by low bound, then by arrival."""
        return self.snapshot.overlapping(key_range, sub_pool=self.sub_pool)

    @property
    def points(self) -> tuple[bytes, ...]:
        """The pool's split points; a sub-pool has none, because its key is the order of arrival."""
        return () if self.sub_pool else self.state.points

    def lifts_of(self, references: Iterable[Reference]) -> dict[int, Lift]:
        """Returns the lifts that the references name.  Raises Corrupt if one of them is not known."""
        named = {base for reference in references for base in reference.lifts}
        if unknown := [base for base in named if base not in self.state.lifts]:
            raise Corrupt(f"pool {self.config.name!r}: the lift {unknown[0]} of a merge is not known")
        return {base: self.state.lifts[base] for base in sorted(named)}

    @property
    def records(self) -> int:
        """The number of records in the objects, including deleted and superseded ones."""
        return self.snapshot.totals(self.sub_pool).records

    @cached_property
    def names(self) -> FieldNames:
        """The names of the fields, and the names under which they are stored."""
        return names_at(self.state, self.sub_pool)

    @cached_property
    def schema(self) -> pa.Schema:
        """The united schema of all records as readers see it, with fields in the order in which the branch got
        them."""
        return self.names.shown(self.stored_schema)

    @cached_property
    def stored_schema(self) -> pa.Schema:
        """The united schema of all records in their objects, and of added fields, with stored names, also those of
        hidden fields."""
        united = unite_schemas(self.state.schema(id) for id in self.snapshot.schemas(self.sub_pool))
        return with_added(united, self.state, self.sub_pool)

    @property
    def schema_ever(self) -> pa.Schema:
        """The united schema, with stored names, of all records that the branch has or had: no compaction takes a
        field out of it."""
        ever = self.snapshot.schemas_ever(self.sub_pool)
        return unite_schemas([self.stored_schema, *map(self.state.schema, ever)])

    @property
    def tombstones(self) -> list[Tombstone]:
        """The tombstones of the journal that are not retired, oldest first."""
        live = (t for t in self.held.tombstones.values() if t.sub_pool == self.sub_pool)
        return sorted(live, key=lambda t: t.seq)

    @cached_property
    def filters(self) -> tuple[Tombstone, ...]:
        """The tombstones for the records that the pool's filters hide at `now`, newer than all others; empty for
        sub-pools."""
        settings = self.settings
        is_filtered = has_filters(settings) and not self.sub_pool
        return filters_of(settings, self.schema_ever, self.names, now=self.now) if is_filtered else ()

    @property
    def lasting_filters(self) -> tuple[Tombstone, ...]:
        """The tombstones of the filters that hide the same records at all times: all but `age_off`."""
        return tuple(tombstone for tombstone in self.filters if tombstone.id != AGE_OFF)

    @property
    def index_rules(self) -> tuple[IndexRule, ...]:
        """The indexes that every new data object gets, with the stored names of their fields."""
        return self.names.stored_rules(self.settings.index_rules)

    @property
    def cluster(self) -> ClusterRule | None:
        """How new data objects divide records by the hash of a field, with its stored name; a sub-pool does not."""
        return None if self.sub_pool else self.names.stored_cluster(self.settings.cluster)

    def may_hide(self, tombstone: Tombstone) -> list[Reference]:
        """Returns the references in which the tombstone may hide records, by range, age and statistics."""
        return still_covered(self.state, self.held, tombstone)

    @property
    def key_classes(self) -> dict[str, str]:
        """The class of each key field, from the records or, if there are none, from the declared fields."""
        declared = self.settings.declared
        from_settings = {name: key_class(declared[name].type) for name in self.key.names if name in declared}
        return from_settings | key_classes(self.state, self.key)
