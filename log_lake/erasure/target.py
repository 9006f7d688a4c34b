"""Which records an erasure removes (the matching records), and what an object keeps of them; pure.

Records match by key range and condition, in every stored version, even if a delete or a newer version hides
them, or if they have aged off.  All branches use the same condition.  It is checked against the fields of all
schemas that the pool ever had, because a branch may store a field in another class.

What an object keeps of a matching record:

- In append and aggregate pools: nothing.  In an aggregate pool the condition names key fields only, because
  values of other fields are combined from many records and cannot be separated.
- In upsert pools, if range and condition depend on the key alone: nothing.  Then all versions of the key match,
  so no older one can reappear.
- Otherwise in upsert pools: a delete marker with the key.  It prevents an older version that does not match from
  reappearing.  A delete marker with nothing but its key does not count as a matching record.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lake_core.conditions import may_hold, top_level
from lake_core.history import PoolState, Reference
from lake_core.history.tombstone import NEVER, SchemaOf
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.ranges import EVERYTHING
from lake_core.naming import NOKEY
from lake_core.records.conditions import Condition
from lake_core.records.pools import PoolConfig
from lake_core.records.transactions import sequence
from lake_core.schemas import Rule
from lake_core.schemas.hidden import DELETED, SEQ
from lake_core.schemas.rule import rule_of
from lake_core.schemas.schema import unite_schemas
from log_lake.columns.arrays import Mask
from log_lake.combine.newest import as_markers, bare_markers, truth
from log_lake.fields.names import SAME, FieldNames
from log_lake.lake.delete_spec import unfit_fields
from log_lake.objects.read import rows_below
from log_lake.texts.keytext import check_range
from log_lake.where import check, holds
from log_lake.where.keyrange import key_range_of


@dataclass(frozen=True)
class Target:
    """The matching records: keys in `key_range` that fulfil `condition` (checked; None: all), in a pool or one
    sub-pool.

    `schema`: that of the records, which shows the class of the key; without it the condition narrows no range.
    `until`: the last version whose records match; 0: all versions.
    """

    config: PoolConfig
    key_range: KeyRange = EVERYTHING
    condition: Condition | None = None
    sub_pool: str = ""
    schema: pa.Schema | None = None
    until: int = 0

    @property
    def last(self) -> int:
        """The greatest sequence that a matching record can have."""
        return sequence(self.until + 1 if self.until else NEVER) - 1

    @property
    def sub_pools(self) -> tuple[str, ...]:
        """The sub-pools that may hold matching records.  Records without the key are in no range, but may
        fulfil a condition."""
        if self.sub_pool or self.condition is None or self.key_range != EVERYTHING:
            return (self.sub_pool,)
        return ("", NOKEY)

    def key(self, sub_pool: str) -> PoolKey:
        """Returns the key by which records are sorted."""
        return self.config.key_of(sub_pool)

    def rule(self, sub_pool: str) -> Rule:
        """Returns the rule by which records with equal keys are combined in a pool or sub-pool."""
        return rule_of(self.config, sub_pool)

    def range_in(self, sub_pool: str) -> KeyRange:
        """Returns the keys that a matching record can have; empty if no record can match."""
        key = self.key(sub_pool)
        if self.condition is None or self.schema is None or not key.fields:
            return self.key_range
        return self.key_range.intersect(key_range_of(self.condition, key, self.schema))

    def leaves_markers(self, sub_pool: str) -> bool:
        """Whether a delete marker takes the place of a matching record."""
        if self.condition is None or self.rule(sub_pool).kind != "upsert":
            return False
        return not set(top_level(self.condition)) <= set(self.key(sub_pool).names)

    def columns(self, sub_pool: str) -> list[str]:
        """Returns the columns that show whether a record matches."""
        fields = top_level(self.condition) if self.condition is not None else ()
        markers = [DELETED] if self.leaves_markers(sub_pool) else []
        age = [SEQ] if self._goes_by_age(sub_pool) else []
        return list(dict.fromkeys([*self.key(sub_pool).names, *fields, *markers, *age]))

    def _goes_by_age(self, sub_pool: str) -> bool:
        """Whether a record matches only if it was written early enough, so that its sequence must be read.  In an
        aggregate pool no sequence can tell this, because a combined record also has values of older records."""
        return bool(self.until) and self.rule(sub_pool).kind != "aggregate"

    def of_all_versions(self) -> Target:
        """Returns the same records in all versions."""
        return replace(self, until=0)

    def may_be_in(self, reference: Reference, schema_of: SchemaOf) -> bool:
        """Whether the object may hold a matching record, by range and statistics."""
        if reference.sub_pool not in self.sub_pools:
            return False
        if not self.range_in(reference.sub_pool).overlaps(reference.key_range):
            return False
        return self.condition is None or may_hold(
            self.condition, schema_of(reference.schema), reference.columns, records=reference.records
        )

    def references(self, state: PoolState, branch: str) -> Iterator[Reference]:
        """Yields the references of a branch that may hold matching records."""
        branch_state = state.branches.get(branch)
        if branch_state is None:
            return
        for sub_pool in self.sub_pools:
            span = self.range_in(sub_pool)
            for reference in () if span.empty else branch_state.snapshot.overlapping(span, sub_pool=sub_pool):
                if self.may_be_in(reference, state.schema):
                    yield reference

    def fulfilled(self, table: pa.Table, sub_pool: str) -> Mask:
        """Returns for each record of a sorted table whether it is in the range and fulfils the condition.

        Delete markers can be among them.
        """
        key, span = self.key(sub_pool), self.range_in(sub_pool)
        mask = np.zeros(table.num_rows, np.bool_)
        if not table.num_rows or span.empty:
            return mask
        begin = rows_below(table, span.low, key) if span.low else 0
        end = table.num_rows if span.high is None else rows_below(table, span.high, key)
        if begin < end:
            part = table.slice(begin, end - begin)
            mask[begin:end] = True if self.condition is None else truth(holds(self.condition, part))
        if SEQ in table.schema.names and self._goes_by_age(sub_pool):
            mask &= table.column(SEQ).to_numpy() <= self.last
        return mask

    def matches(self, table: pa.Table, sub_pool: str) -> Mask:
        """Returns for each record of a sorted table with all its columns whether it matches."""
        mask = self.fulfilled(table, sub_pool)
        if mask.any() and self.leaves_markers(sub_pool):
            mask &= ~bare_markers(table, self.key(sub_pool).names)
        return mask

    def without(self, table: pa.Table, sub_pool: str) -> pa.Table:
        """Returns what an object keeps of a sorted table with all its columns; the table needs `_deleted` if
        markers are left."""
        mask = self.matches(table, sub_pool)
        if not mask.any():
            return table
        if self.leaves_markers(sub_pool):
            return as_markers(table, mask, self.key(sub_pool).names)
        return table.filter(pa.array(~mask))


def target_of(
    config: PoolConfig,
    state: PoolState,
    *,
    sub_pool: str = "",
    key_range: KeyRange = EVERYTHING,
    where: str | Condition | None = None,
    names: FieldNames = SAME,
) -> Target:
    """Returns the matching records as a value, after checking range and condition.

    `names`: the names of fields that `where` uses; `SAME`: it uses stored names, as receipts do.

    Raises InvalidInput for an empty range, or for a condition that does not fit the pool's fields or names a
    combined field of an aggregate pool.
    """
    check_range(key_range, config.key_of(sub_pool))
    if where is None:
        return Target(config, key_range, None, sub_pool)
    schema = unite_schemas(state.schema(id) for id in _schemas(state, sub_pool))
    shown = names.shown(schema)
    unfit = unfit_fields(rule_of(config, sub_pool), config.key_of(sub_pool), shown)
    condition = names.stored_condition(check(where, shown, unfit=unfit))
    return Target(config, key_range, condition, sub_pool, schema)


def _schemas(state: PoolState, sub_pool: str) -> list[str]:
    """Returns the ids of the schemas whose fields a condition may name: first those that branches use, then, for a
    whole pool, those that no branch uses any more."""
    sub_pools = (sub_pool,) if sub_pool else ("", NOKEY)
    branches = [branch for _, branch in sorted(state.branches.items())]
    used = [id for branch in branches for name in sub_pools for id in branch.snapshot.schemas(name)]
    return list(dict.fromkeys([*used, *(() if sub_pool else sorted(state.pool_schemas))]))
