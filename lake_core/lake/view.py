"""A pool at one revision, to be read: `pool.at("main")`, `pool.at("17")`.

A view is a state and a branch; it never changes, whatever is committed meanwhile.  Everything that reads goes
through here: the command, SQL, PySpark.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lake_core import naming
from lake_core.catalog import Settings
from lake_core.combine import APPEND, Rule
from lake_core.combine.rule import rule_of
from lake_core.history import PoolState, Reference
from lake_core.history.rebase import key_classes
from lake_core.history.tombstone import Tombstone
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.encoding import AFTER, Value, key_class
from lake_core.keys.ranges import EVERYTHING
from lake_core.keys.spec import ARRIVAL
from lake_core.reading.age_off import age_off
from lake_core.reading.explain import StoredRecord, explain
from lake_core.reading.limits import LIMITS, Limits
from lake_core.reading.plan import ScanPlan, overlap_depth, plan_scan, united_schema
from lake_core.reading.scan import result_schema, scan
from lake_core.records.conditions import Condition
from lake_core.records.pools import PoolConfig
from lake_core.store import Store
from lake_core.values.keytext import encoded, parts_of

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class View:
    """`n` is the newest entry the view knows; `sub` the sub-pool it reads, "" for the pool itself; `now` in seconds
    since 1970 when it was opened, from which ages count.  `limits` bound what its scans hold in memory.
    """

    store: Store
    config: PoolConfig
    version: int
    branch: str
    state: PoolState
    sub_pool: str
    now: float
    limits: Limits = LIMITS

    @property
    def key(self) -> PoolKey:
        """The order of the records; the sub-pools keep the order of arrival."""
        return ARRIVAL if self.sub_pool else self.config.key

    @property
    def rule(self) -> Rule:
        """What becomes of records with equal keys; the sub-pools keep all."""
        return APPEND if self.sub_pool else rule_of(self.config.kind, self.config.aggregates)

    @property
    def references(self) -> list[Reference]:
        """What the view reads, by low bound, then by arrival."""
        return self.state.branches[self.branch].snapshot.find(sub_pool=self.sub_pool)

    @property
    def _aged_off(self) -> tuple[Tombstone, ...]:
        policy = Settings(self.config.settings)["age_off"]
        return age_off(policy, self.schema, now=self.now) if policy and not self.sub_pool else ()

    @property
    def tombstones(self) -> list[Tombstone]:
        """What is deleted, as far as it is not applied yet; in the order in which it was."""
        held = self.state.branches[self.branch].tombstones.values()
        return sorted((t for t in held if t.sub_pool == self.sub_pool), key=lambda t: t.seq)

    @property
    def records(self) -> int:
        """How many records the objects hold."""
        return self.state.branches[self.branch].snapshot.totals(self.sub_pool).records

    @property
    def depth(self) -> int:
        """The most objects that overlap at one key."""
        return overlap_depth(tuple(self.references))

    @property
    def schema(self) -> pa.Schema:
        """The united schema of all records."""
        return united_schema(self.state, branch=self.branch, sub_pool=self.sub_pool)

    def plan(
        self,
        *,
        key_range: KeyRange = EVERYTHING,
        columns: list[str] | None = None,
        where: str | Condition | None = None,
    ) -> ScanPlan:
        """What a scan would open; raises InvalidInput (unknown column, empty range, bad condition)."""
        plan = plan_scan(
            self.state,
            branch=self.branch,
            key=self.key,
            key_range=key_range,
            sub_pool=self.sub_pool,
            columns=columns,
            rule=self.rule,
            where=where,
            more=self._aged_off,
            limits=self.limits,
        )
        log.info(
            "%s at version %d: reads %d of %d objects, at most %d of them at one key; %d deletes to apply",
            self.config.name,
            self.version,
            len(plan.references),
            len(self.state.branches[self.branch].snapshot),
            plan.depth,
            len(plan.tombstones),
        )
        return plan

    def scan(
        self,
        *,
        key_range: KeyRange = EVERYTHING,
        columns: list[str] | None = None,
        where: str | Condition | None = None,
        limit: int | None = None,
    ) -> Iterator[pa.Table]:
        """Records in key order, a table at a time, in bounded memory.

        Raises InvalidInput, ObjectMissing, Corrupt, Unavailable.
        """
        return self.run(self.plan(key_range=key_range, columns=columns, where=where), limit=limit)

    def run(self, plan: ScanPlan, *, limit: int | None = None) -> Iterator[pa.Table]:
        """The records of a plan of this view."""
        left = limit
        for table in scan(plan, self.store, pool_id=self.config.id):
            if left is None:
                yield table
                continue
            yield table.slice(0, left)
            left -= table.num_rows
            if left <= 0:
                return

    def to_table(
        self,
        *,
        key_range: KeyRange = EVERYTHING,
        columns: list[str] | None = None,
        where: str | Condition | None = None,
    ) -> pa.Table:
        """All records at once; for results that fit in memory."""
        plan = self.plan(key_range=key_range, columns=columns, where=where)
        tables = list(self.run(plan))
        if not plan.columns:  # Arrow forgets how many records there are when it joins tables of no columns
            return pa.table({"": pa.nulls(sum(t.num_rows for t in tables))}).select([])
        return pa.concat_tables([result_schema(plan).empty_table(), *tables])

    def get(self, values: Value | list[Value]) -> pa.Table:
        """The records of one key, or of all keys that begin with the values given."""
        prefix = self.bound(values)
        return self.to_table(key_range=KeyRange(prefix, prefix + AFTER))

    def explain(self, key_range: KeyRange) -> list[StoredRecord]:
        """Every stored version of the keys in a range, and what became of each."""
        return explain(
            self.state.branches[self.branch].snapshot.find(key_range, sub_pool=self.sub_pool),
            [t for t in (*self.tombstones, *self._aged_off) if t.key_range.overlaps(key_range)],
            self.store,
            pool_id=self.config.id,
            key_range=key_range,
            key=self.key,
            rule=self.rule,
            schema=self.schema,
        )

    def key_range(self, *, low: Any = None, high: Any = None) -> KeyRange:
        """The range [low, high) from values in the order of the key; None is an open end."""
        return KeyRange(b"" if low is None else self.bound(low), None if high is None else self.bound(high))

    def bound(self, values: Any) -> bytes:
        """Key values, or a prefix of them, as an encoded bound.

        A scalar is the first field.  Texts are read as the type that the key field has in the pool.
        Raises InvalidInput.
        """
        parts = values if isinstance(values, list | tuple) else [values]
        return encoded(parts, self.key, self._key_classes)

    def bound_of_text(self, text: str) -> bytes:
        """A key as people write it (`values.keytext`), as an encoded bound; raises InvalidInput."""
        return encoded(parts_of(text, self.key), self.key, self._key_classes)

    @property
    def _key_classes(self) -> dict[str, str]:
        """The classes of the key's fields: as declared, otherwise as in the records."""
        declared = Settings(self.config.settings).declared
        known = {name: key_class(declared[name].type) for name in self.key.names if name in declared}
        return known | key_classes(self.state, self.key)

    def object_name(self, reference: Reference) -> str:
        """Where the reference's data object is."""
        return naming.data_object(self.config.id, reference.object)
