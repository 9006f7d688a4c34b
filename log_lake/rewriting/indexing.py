"""The indexes of a pool's data objects: which exist, and making those that are missing.

Loads and rewritings make the indexes of new objects.  Objects that are older than a rule get theirs here, without
a transaction: no reference changes.  An index holds traces of values, so none may stay behind when a vacuum takes
its object.  A lease holds the objects meanwhile.  A process that is paused may lose its lease.  So after each
index it looks for the data object once more, and deletes an index that came too late (decision 510).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from lake_core import naming
from lake_core.errors import Corrupt, ObjectMissing
from lake_core.history import PoolState, Reference
from lake_core.ids import home_of
from lake_core.keys.ranges import EVERYTHING
from lake_core.records.pools import PoolConfig
from log_lake.fields.names import names_at
from log_lake.indexes.gathering import MOST_VALUES
from log_lake.indexes.hashes import indexed_field
from log_lake.indexes.lookup import faults_of
from log_lake.indexes.names import ListedIndex, index_name, list_indexes
from log_lake.indexes.rule import BLOOM, IndexRule
from log_lake.indexes.writing import IndexWriter
from log_lake.lake.pool import Pool
from log_lake.objects.read import DataObject
from log_lake.workers import Here, Worker, Workers

EACH = 4
"""Objects that one task reads."""


@dataclass(frozen=True)
class RuleState:
    """How many objects have the index of a rule: the objects that need one, those that have one, and the bytes
    of these.

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

    @property
    def size(self) -> int:
        """Bytes of the data object."""
        return self.reference.size


@dataclass(frozen=True)
class IndexesMade:
    """What came of making indexes: the data objects that got theirs, and the bytes of the new index objects.

    `damaged` index objects were deleted first.  `gone` data objects were taken by a vacuum meanwhile.  `left`: data
    objects beyond the limit.  `faults`: a line for each data object that is damaged or missing.
    """

    objects: int = 0
    size: int = 0
    damaged: int = 0
    gone: int = 0
    left: int = 0
    faults: tuple[str, ...] = ()


def rule_states(pool: Pool) -> list[RuleState]:
    """The states of the pool's rules, over the objects of all branches.  Raises Corrupt, Unavailable."""
    state, rules = pool.history.load_open().state, pool.settings.index_rules
    if not rules:
        return []
    there = _there(pool)
    objects = _objects(pool, state)
    states = []
    names = names_at(state)
    for rule in rules:
        stored = names.stored_rule(rule)
        fit = {r.object for r in objects if _fits(stored, state.schema(r.schema), r)}
        own = [one for (id, digest), one in there.items() if digest == stored.digest and id in fit]
        size = sum(one.info.size for one in own)
        states.append(RuleState(rule, len(fit), len(own), len(objects) - len(fit), size))
    return states


def lacking(pool: Pool, state: PoolState, there: Iterable[ListedIndex]) -> list[IndexTask]:
    """Returns the objects of all branches that lack an index, the largest first; `there` are the whole indexes.

    An object that several branches share is returned once.  A clone's objects lie in another pool, which makes
    their indexes.
    """
    rules = names_at(state).stored_rules(pool.settings.index_rules)
    has = {(one.object_id, one.digest) for one in there}
    tasks = []
    for reference in _objects(pool, state):
        schema = state.schema(reference.schema)
        lacks = [
            rule
            for rule in rules
            if (reference.object, rule.digest) not in has and _fits(rule, schema, reference)
        ]
        if lacks:
            tasks.append(IndexTask(reference, tuple(lacks)))
    return sorted(tasks, key=lambda task: (-task.size, task.reference.object))


def make_indexes(
    pool: Pool,
    *,
    checks: Callable[[str], bool] = lambda name: False,
    workers: Workers | None = None,
    progress: Callable[[int], None] = lambda count: None,
    most_bytes: int | None = None,
) -> IndexesMade:
    """Makes the indexes that data objects lack, for at least one object, and for more up to `most_bytes` together.

    `checks` names the index objects that are read first; those that are damaged are deleted and made again.
    Raises Corrupt if the pool is damaged, Denied without the right to a lease, Unavailable; indexes that were made
    stay.
    """
    loaded = pool.history.load_open()
    work = workers or Here.of(pool.context)
    results: list[IndexMade] = []
    with pool.read_lease(loaded.version, why="index", optional=False) as lease:
        there = list(list_indexes(pool.store, pool.config.id))
        damaged = faults_of(pool.store, [one for one in there if checks(one.info.name)])
        if damaged:
            pool.store.delete_all([*damaged])
        tasks = lacking(pool, loaded.state, [one for one in there if one.info.name not in damaged])
        chosen = tasks if most_bytes is None else tasks[: _within([task.size for task in tasks], most_bytes)]
        for start in range(0, len(chosen), step := EACH * max(1, work.size) * 4):
            if lease.is_lost:  # a vacuum may take the objects; the next run begins anew
                break
            part = chosen[start : start + step]
            results += work.map(partial(make_index, pool.config), part, each=EACH, alone=1)
            progress(len(part))
    return IndexesMade(
        objects=sum(one.size > 0 for one in results),
        size=sum(one.size for one in results),
        damaged=len(damaged),
        gone=sum(one.is_gone for one in results),
        left=len(tasks) - len(results),
        faults=tuple(one.fault for one in results if one.fault),
    )


def _within(sizes: Sequence[int], most: int) -> int:
    """Returns how many of these sizes are at most `most` together, at least 1."""
    total = 0
    for count, size in enumerate(sizes):
        total += size
        if total > most:
            return max(1, count)
    return len(sizes)


@dataclass(frozen=True)
class IndexMade:
    """The result for one data object: the bytes of its new indexes; or a vacuum has taken it, or `fault` says
    what is wrong with it."""

    size: int = 0
    is_gone: bool = False
    fault: str = ""


def make_index(config: PoolConfig, worker: Worker, task: IndexTask) -> IndexMade:
    """Makes the indexes of one data object.  Raises Denied, Unavailable."""
    writer, key, object_id = IndexWriter(task.rules), config.key, task.reference.object
    try:
        with DataObject.at(worker.store, task.reference, pool_id=config.id) as data:
            fields = [indexed_field(data.schema, rule.field) for rule in task.rules]
            names = list(dict.fromkeys(one[0][0] for one in fields if one is not None))
            for group in data.groups(EVERYTHING):
                batches = data.batches(EVERYTHING, key=key, columns=names, groups=[group])
                table = pa.Table.from_batches(batches)
                writer.add(table, [table.num_rows])
        size = writer.write(worker.store, config.id, object_id, must=True)
        worker.store.open_input(naming.data_object(config.id, object_id)).close()
    except (ObjectMissing, FileNotFoundError):
        worker.store.delete_all([index_name(config.id, object_id, rule.digest) for rule in task.rules])
        return IndexMade(is_gone=True)
    except Corrupt as error:
        return IndexMade(fault=str(error))
    return IndexMade(size)


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
    few = rule.kind != BLOOM or reference.records <= MOST_VALUES
    return few and indexed_field(schema, rule.field) is not None
