"""The indexes of a pool's data objects: which exist, and making those that are missing.

Loads and rewritings make the indexes of new objects.  Objects that are older than a rule get theirs here, without
a transaction: no reference changes.  A lease holds the objects meanwhile, so that no vacuum takes an object whose
index is being made: the index would stay behind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from lake_core.errors import ObjectMissing
from lake_core.history import PoolState, Reference
from lake_core.ids import home_of
from lake_core.keys.ranges import EVERYTHING
from lake_core.records.pools import PoolConfig
from log_lake.indexes.hashes import indexed_field
from log_lake.indexes.lookup import index_fault
from log_lake.indexes.names import ListedIndex, list_indexes
from log_lake.indexes.rule import IndexRule
from log_lake.indexes.writing import MOST_VALUES, IndexWriter
from log_lake.lake.pool import Pool
from log_lake.objects.read import DataObject
from log_lake.workers import Here, Worker, Workers

EACH = 4
"""Objects that one task reads."""


@dataclass(frozen=True)
class RuleState:
    """How far a rule has come: the objects that it wants an index for, those that have it, and the bytes of these.

    `unfit`: objects without the field, or in which it has a type without an index.
    """

    rule: IndexRule
    objects: int = 0
    indexed: int = 0
    unfit: int = 0
    size: int = 0

    @property
    def missing(self) -> int:
        """Objects that are read because their index is missing."""
        return self.objects - self.indexed


@dataclass(frozen=True)
class IndexTask:
    """A data object, and the rules whose indexes it lacks."""

    reference: Reference
    rules: tuple[IndexRule, ...]


def rule_states(pool: Pool) -> list[RuleState]:
    """The states of the pool's rules, over the objects of all branches.  Raises Corrupt, Unavailable."""
    state, rules = pool.history.load_open().state, pool.settings.index_rules
    if not rules:
        return []
    there = _there(pool)
    objects = _objects(pool, state)
    states = []
    for rule in rules:
        fit = {r.object for r in objects if _fits(rule, state.schema(r.schema), r)}
        own = [one for (id, digest), one in there.items() if digest == rule.digest and id in fit]
        size = sum(one.info.size for one in own)
        states.append(RuleState(rule, len(fit), len(own), len(objects) - len(fit), size))
    return states


def missing_indexes(pool: Pool, state: PoolState, *, damaged: bool = False) -> list[IndexTask]:
    """The objects of all branches that lack an index.  Sends one listing.

    With `damaged`, reads every index, and deletes those that are damaged.  Raises Corrupt, Unavailable.
    """
    rules = pool.settings.index_rules
    if not rules:
        return []
    there = _there(pool)
    if damaged:
        bad = [place for place, one in there.items() if index_fault(pool.store, one)]
        pool.store.delete_all([there.pop(place).info.name for place in bad])
    tasks = []
    for reference in _objects(pool, state):
        schema = state.schema(reference.schema)
        lacks = [
            r for r in rules if (reference.object, r.digest) not in there and _fits(r, schema, reference)
        ]
        if lacks:
            tasks.append(IndexTask(reference, tuple(lacks)))
    return tasks


def make_indexes(
    pool: Pool,
    *,
    damaged: bool = False,
    workers: Workers | None = None,
    progress: Callable[[int], None] = lambda count: None,
    most: int | None = None,
) -> tuple[int, int]:
    """Makes the missing indexes of at most `most` data objects.  Returns how many data objects got an index, and
    how many bytes the new indexes have.

    `damaged`: also replaces damaged indexes.  Raises Corrupt, Unavailable; indexes that were made stay.
    """
    loaded = pool.history.load_open()
    with pool.read_lease(loaded.version, why="index"):
        tasks = missing_indexes(pool, loaded.state, damaged=damaged)[:most]
        work = workers or Here.of(pool.context)
        objects = size = 0
        for start in range(0, len(tasks), step := EACH * max(1, work.size) * 4):
            part = tasks[start : start + step]
            sizes = work.map(partial(make_index, pool.config), part, each=EACH, alone=1)
            objects, size = objects + sum(1 for one in sizes if one), size + sum(sizes)
            progress(len(part))
    return objects, size


def make_index(config: PoolConfig, worker: Worker, task: IndexTask) -> int:
    """Makes the indexes of one data object.  Returns how many bytes they have, 0 if the object is gone.

    Raises Corrupt if the object is damaged, Unavailable.
    """
    writer, key = IndexWriter(task.rules), config.key
    with suppress(ObjectMissing), DataObject.at(worker.store, task.reference, pool_id=config.id) as data:
        fields = [indexed_field(data.schema, rule.field) for rule in task.rules]
        names = list(dict.fromkeys(one[0][0] for one in fields if one is not None))
        for batch in data.batches(EVERYTHING, key=key, columns=names):
            writer.add(pa.Table.from_batches([batch]))
        return writer.write(worker.store, config.id, task.reference.object)
    return 0


def _there(pool: Pool) -> dict[tuple[str, str], ListedIndex]:
    listed = list_indexes(pool.store, pool.config.id)
    return {(one.object_id, one.digest): one for one in listed}


def _objects(pool: Pool, state: PoolState) -> Sequence[Reference]:
    """One reference for each object of the pool's folder, of all branches."""
    objects: dict[str, Reference] = {}
    for _, branch in state.branches.items():
        for reference in branch.snapshot.overlapping(EVERYTHING):
            if not reference.data and not home_of(reference.object):
                objects.setdefault(reference.object, reference)
    return list(objects.values())


def _fits(rule: IndexRule, schema: pa.Schema, reference: Reference) -> bool:
    """Whether the object gets an index by the rule; one with more records may have too many values."""
    return indexed_field(schema, rule.field) is not None and reference.records <= MOST_VALUES
