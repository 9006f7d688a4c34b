"""Runs a MERGE as one transaction of one pool.

It reads the pool twice, at one version.  The first time it counts, and finds the keys of the records that
change.  The second time it reads only the records of these keys, and writes the records that replace them:

- In an append pool a tombstone hides these keys, and all of their records are written again, also the unchanged
  ones.  If a condition cannot name so many keys, the tombstone hides the whole range from the first to the last.
- In an upsert pool the changed records, and delete markers, are the newest of their keys.

Records to insert are those of the source that no record of the pool matches.  The commit is exact, as that of
an UPDATE: nothing was committed to the branch since it read.  The source is read at one moment, as every query
is.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.errors import InvalidInput, PlanAgain
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.encoding import AFTER, encode_key, encode_value, from_array
from lake_core.keys.ranges import EVERYTHING
from lake_core.phrases import did_you_mean
from lake_core.records.conditions import And, Compare, Condition, In
from log_lake.lake.branches import TRIES, planned
from log_lake.lake.by_keys import as_markers
from log_lake.lake.delete_spec import DeleteSpec, check_delete
from log_lake.lake.loads import begin_load, builder_of, commit_written, lease_of
from log_lake.lake.results import LoadResult, check_keyed
from log_lake.lake.token_kinds import TokenKind
from log_lake.lake.view import View
from log_lake.lake.write import WriteArguments
from log_lake.loading.block import Block
from log_lake.loading.builder import ObjectBuilder
from log_lake.reading.plan import plan_scan
from log_lake.sql_writes.merge_statement import (
    DeleteRecord,
    InsertRecord,
    MergeAction,
    MergeStatement,
    MergeWhen,
    SetFields,
)
from log_lake.sql_writes.work import MergedRecords, StatementResult, StatementWork, filtered, matching
from log_lake.system_tables.bounds import is_compared
from log_lake.system_tables.columns import folded, sql_names
from log_lake.system_tables.engine import connected
from log_lake.system_tables.expressions import Expression, FieldSetter
from log_lake.system_tables.joined import Cases, MergeJoin, source_columns
from log_lake.system_tables.sql import query
from log_lake.system_tables.stopping import QueryStop
from log_lake.where.of_keys import MAX_KEYS, of_keys

BATCH_ROWS = 1 << 18
"""Records of the pool that are joined at once: each join reads the whole source."""

MOST_VALUES = 1_000
"""The most values of the source by which objects of the pool are left out of the scan.  If the source has more,
only its least and its greatest value are used."""


def merge(work: StatementWork, statement: MergeStatement, *, dry_run: bool) -> StatementResult:
    """Runs a MERGE, and returns its result.  Raises InvalidInput, Conflict (others committed at each try), and
    what loads raise."""
    sets = [name for one in statement.clauses for name in _set_by(one.action)]
    work.check_changed(sets, verb="MERGE")
    if paths := [name for name in work.branch.key.names if "." in name]:
        raise InvalidInput(
            f"MERGE: the key {paths[0]!r} is a path into records, which SQL does not join; use lake replace"
        )
    if dry_run:
        with _merging(work, statement, _newest(work)) as merging:
            changes = merging.changes()
            counts = merging.counts(changes, inserted=sum(table.num_rows for table in merging.inserts()))
        return replace(work.would("merged", counts.total), merged=counts)
    try:
        return planned(lambda: _merge(work, statement))
    except PlanAgain as error:
        raise PlanAgain(
            f"MERGE: others committed to pool {work.target.pool!r} during each of {TRIES} tries; run it when less "
            "is written, or with a smaller source"
        ) from error


def _set_by(action: MergeAction) -> Iterable[str]:
    return [name for name, _ in action.sets or ()] if isinstance(action, SetFields) else ()


def _newest(work: StatementWork) -> View:
    return work.pool.at_branch(work.target.branch)


def _merge(work: StatementWork, statement: MergeStatement) -> StatementResult:
    branch = work.branch
    is_upsert = not branch.rule.keeps_all
    # in a bulk no two objects share a key, so the builder itself combines records of one key
    write = WriteArguments(token=work.token, message=work.message, bulk=is_upsert)
    pending = begin_load(branch, write, kinds=(TokenKind.CHANGE, TokenKind.LOAD, TokenKind.DELETE))
    if isinstance(pending, LoadResult):
        return replace(work.loaded(pending, "merged"), records=None)  # its parts were not kept
    seen = pending.read_version
    view = work.pool.at_version(seen, branch=branch.name) if seen else _newest(work)
    with (
        lease_of(branch, pending, why="merge"),
        _merging(work, statement, view) as merging,
        builder_of(branch, pending, alone=True) as builder,
    ):
        changes = merging.changes()
        spec = merging.spec(changes)
        given = 0 if spec is None else merging.write_changed(spec, builder)
        inserted, keys = 0, []
        for table in merging.inserts():
            inserted += table.num_rows
            block = branch.block(table)
            builder.add(block)
            if is_upsert:
                keys.append(block.table)
        merging.check_absent(keys)
        written = builder.finish()
        counts = merging.counts(changes, inserted=inserted)
        work.new_fields = merging.new_fields
        if not counts.total:
            return replace(work.would("merged", 0), merged=counts)
        check_keyed((one.action for one in written), "MERGE", branch.key)
        if is_upsert:
            merging.check_distinct(given + inserted - sum(one.action.records for one in written))
        done = commit_written(branch, pending, written, replaced=None if is_upsert else spec, is_exact=True)
    return replace(work.loaded(done, "merged"), records=counts.total, merged=counts)


@contextmanager
def _merging(work: StatementWork, statement: MergeStatement, view: View) -> Iterator[_Merging]:
    """Opens a MERGE on a view of the pool: reads its source, and holds it for the block."""
    sql = f"SELECT * FROM {statement.source}"
    with connected(work.limits) as connection:
        join = _join(statement, connection, work.stop)
        with query(work.lake, sql, files=work.files, limits=work.limits, stop=work.stop) as reader:
            source = reader.schema
            join.hold(reader)
        with work.stop.interrupting(connection.interrupt):
            yield _Merging(work, statement, view, join, source)


def _join(statement: MergeStatement, connection: duckdb.DuckDBPyConnection, stop: QueryStop) -> MergeJoin:
    def cases(when: MergeWhen) -> Cases:
        numbered = enumerate(statement.clauses)
        return Cases(tuple((number, one.condition) for number, one in numbered if one.when is when))

    changing = (SetFields, DeleteRecord)
    acts = (number for number, one in enumerate(statement.clauses) if isinstance(one.action, changing))
    return MergeJoin(
        connection,
        stop,
        statement.name,
        statement.source_name,
        statement.on,
        cases(MergeWhen.MATCHED),
        cases(MergeWhen.NOT_BY_SOURCE),
        cases(MergeWhen.NOT_MATCHED),
        frozenset(acts),
    )


@dataclass
class _Changes:
    """What the clauses do with the records of the pool: how many records each clause takes, and the keys of those
    that change."""

    of_clause: Counter[int] = field(default_factory=Counter)
    keys: list[pa.Table] = field(default_factory=list)
    low: bytes = b""
    high: bytes = b""

    @property
    def total(self) -> int:
        return sum(self.of_clause.values())

    def add(self, clauses: pa.ChunkedArray, keys: pa.Table, key: PoolKey) -> None:
        """Counts records with these keys, which are in the order of the key."""
        self.of_clause.update(clauses.to_pylist())
        first, last = (_encoded(keys.slice(at, 1), key) for at in (0, keys.num_rows - 1))
        self.low, self.high = self.low or first, last
        if self.total <= MAX_KEYS:  # otherwise the range will do
            self.keys.append(keys)


def _encoded(row: pa.Table, key: PoolKey) -> bytes:
    return encode_key([from_array(row.column(name))[0] for name in key.names], key)


@dataclass
class _Merging:
    """A MERGE whose source has been read, and the view of the pool that it changes."""

    work: StatementWork
    statement: MergeStatement
    view: View
    join: MergeJoin
    source: pa.Schema
    new_fields: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._setters: dict[int, FieldSetter] = {}
        columns = source_columns(self.source, self.statement.source_name)
        for number, one in enumerate(self.statement.clauses):
            match one.action:
                case SetFields(sets):
                    if self._has_records:
                        self._setters[number] = self._setter(self._every(columns) if sets is None else sets)
        self._values = {
            number: columns if one.action.values is None else one.action.values
            for number, one in enumerate(self.statement.clauses)
            if isinstance(one.action, InsertRecord)
        }
        names = dict.fromkeys(name for values in self._values.values() for name, _ in values)
        if self.view.references:
            self.new_fields = tuple(name for name in names if name not in self.view.schema.names)

    @property
    def _key(self) -> PoolKey:
        return self.view.key

    @property
    def _has_records(self) -> bool:
        return bool(self.view.schema.names)

    def _every(self, columns: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
        """Returns what SET * sets: all, but no key of an upsert pool that ON compares, and which is equal
        already."""
        keys = () if self.view.rule.keeps_all else self._key.names
        return [one for one in columns if one[0] not in keys or (one[0], one[0]) not in self.statement.equal]

    def _setter(self, sets: Sequence[tuple[str, str]]) -> FieldSetter:
        names = self.view.schema.names
        for name, _ in sets:
            if name not in names:
                raise InvalidInput(f"MERGE: SET {name}: no such field; {did_you_mean(name, names)}")
        self.work.check_changed([name for name, _ in sets], verb="MERGE")
        return self.join.setter([Expression(self.view.schema.field(name), sql) for name, sql in sets])

    # --- what changes

    def changes(self) -> _Changes:
        """Returns which records of the pool the clauses change.  Raises InvalidInput if a condition is wrong, or
        if a record of the pool matches more records of the source than MERGE allows."""
        changes = _Changes()
        if not self._has_records:
            return changes
        empty = self.view.schema.empty_table()
        self._set_all(empty, self.join.decided(empty))  # what is wrong is refused also without records
        if self.join.is_empty and not self.statement.needs_every_record:
            return changes
        names = [*self._key.names, *self._compared()]
        where = self._where()
        stored = None if where is None else self.view.names.stored_condition(where)
        plan = plan_scan(self.view, columns=list(dict.fromkeys(names)), where=stored)
        for table in _gathered(self.view.run(plan)):
            decided = self.join.decided(table)
            if decided.num_rows:
                changed = table.select(self._key.names).take(decided.column("target"))
                changes.add(decided.column("clause"), changed, self._key)
        return changes

    def _compared(self) -> Iterator[str]:
        """Yields the fields of the pool that the conditions may name."""
        names = self.view.schema.names
        alike = {
            folded(name)
            for name, sql in zip(names, sql_names(names), strict=True)
            if {folded(name), folded(sql)} & self.statement.fields
        }
        return (name for name in names if folded(name) in alike)

    def _where(self) -> Condition | None:
        """Returns a condition that every record of the pool fulfils if a record of the source matches it, so that
        the scan may skip others; None if no such condition is known."""
        if self.statement.needs_every_record:
            return None
        by_name = {folded(name): name for name in self.view.schema.names}
        of_source = {folded(name) for name in self.source.names}
        conditions = []
        for ours, theirs in self.statement.equal:
            if folded(ours) in by_name and folded(theirs) in of_source:
                conditions += self._among(self.view.schema.field(by_name[folded(ours)]), theirs)
        return And(tuple(conditions)) if len(conditions) > 1 else next(iter(conditions), None)

    def _among(self, target: pa.Field, column: str) -> list[Condition]:
        kind = self.source.field(
            next(name for name in self.source.names if folded(name) == folded(column))
        ).type
        same = kind == target.type or (pa.types.is_integer(kind) and pa.types.is_integer(target.type))
        if not (same and is_compared(target)):
            return []
        path, values = (target.name,), self.join.values(column, most=MOST_VALUES)
        if values is not None:
            encoded = sorted({encode_value(value) for value in from_array(values)})
            if len(encoded) == 1:
                return [Compare(path, "=", encoded[0])]
            return [In(path, tuple(encoded))] if encoded else []
        low, high = (from_array(one)[0] for one in self.join.bounds(column).columns)
        return [Compare(path, ">=", encode_value(low)), Compare(path, "<=", encode_value(high))]

    def spec(self, changes: _Changes) -> DeleteSpec | None:
        """Returns which records to delete, or to write again: those of the keys that change; None if no key
        changes.

        If a condition cannot name all these keys, it is the whole range from the first to the last.
        """
        if not changes.total:
            return None
        if changes.total <= MAX_KEYS:
            keys = pa.concat_tables(changes.keys)
            try:
                condition = of_keys(keys, self._key)
            except InvalidInput:  # keys of several fields need too many comparisons
                condition = None
            if condition is not None:
                return check_delete(self.view, key_range=EVERYTHING, where=condition, narrow=True)
        return DeleteSpec(KeyRange(changes.low, changes.high + AFTER), None)

    def counts(self, changes: _Changes, *, inserted: int) -> MergedRecords:
        """Returns how many records are inserted, updated and deleted."""
        deleted = sum(
            count
            for number, count in changes.of_clause.items()
            if isinstance(self.statement.clauses[number].action, DeleteRecord)
        )
        return MergedRecords(inserted, changes.total - deleted, deleted)

    # --- what is written

    def write_changed(self, spec: DeleteSpec, builder: ObjectBuilder) -> int:
        """Passes the new forms of the records of `spec` to a builder; returns their number."""
        given = 0
        for table in _gathered(matching(self.view, spec)):
            decided = self.join.decided(table, is_new=False)
            for one in self._in_place(table, decided):
                if one.num_rows:
                    builder.add(Block(one))
                    given += one.num_rows
        if self.view.rule.keeps_all:
            for table in filtered(self.view, spec):
                builder.add(Block(table))
        return given

    def _in_place(self, table: pa.Table, decided: pa.Table) -> Iterator[pa.Table]:
        targets = decided.column("target")
        if self.view.rule.keeps_all:
            rows = pa.array(range(table.num_rows), pa.int64())
            yield table.filter(pc.invert(pc.is_in(rows, value_set=targets.combine_chunks())))
        else:
            deletes = [
                number
                for number, one in enumerate(self.statement.clauses)
                if isinstance(one.action, DeleteRecord)
            ]
            chosen = decided.filter(
                pc.is_in(decided.column("clause"), pa.array(deletes, decided.schema.field("clause").type))
            )
            yield as_markers(table.select(self._key.names).take(chosen.column("target")))
        yield from self._set_all(table, decided)

    def _set_all(self, table: pa.Table, decided: pa.Table) -> list[pa.Table]:
        """Returns the records that change, with their new values."""
        results = []
        for number, setter in self._setters.items():
            chosen = decided.filter(pc.equal(decided.column("clause"), number))
            self.join.pick(chosen.column("source"))
            results.append(
                setter.set(self.join.connection, table.take(chosen.column("target")), self.work.stop)
            )
        return results

    def inserts(self) -> Iterator[pa.Table]:
        """Yields the records to insert, once `changes` has seen which records of the source match."""
        for number, values in self._values.items():
            yield from self.join.inserted(number, values, self.source, batch_rows=self.work.limits.batch_rows)

    def check_absent(self, inserted: Sequence[pa.Table]) -> None:
        """Raises InvalidInput if the upsert pool has a record with the key of one that is inserted."""
        names = list(self._key.names)
        if not set(names) <= set(self.view.schema.names):
            return
        tables = [self._keys(one) for one in inserted if names[0] in one.schema.names]
        if not tables:
            return
        keys = pa.concat_tables(tables, promote_options="permissive")
        keys = keys.filter(pc.is_valid(keys.column(names[0])))
        condition = None
        with contextlib.suppress(InvalidInput):  # too many keys
            condition = of_keys(keys, self._key)
        plan = plan_scan(self.view, columns=names, where=condition)
        for table in _gathered(self.view.run(plan)):
            if self.join.meets(table, keys):
                raise InvalidInput(
                    "MERGE: the pool has a record with the key of one that is inserted, and an upsert pool keeps "
                    f"one; nothing was changed. Compare {' and '.join(names)} in ON"
                )

    def _keys(self, records: pa.Table) -> pa.Table:
        """The key columns of new records; a field of the key that they lack is null, as in the pool."""
        for name in self._key.names:
            if name not in records.schema.names:
                field = self.view.schema.field(name)
                records = records.append_column(field, pa.nulls(records.num_rows, field.type))
        return records.select(list(self._key.names))

    def check_distinct(self, lost: int) -> None:
        """Raises InvalidInput if records of an upsert pool were combined, because two have one key."""
        if lost:
            raise InvalidInput(
                "MERGE: two of the new records have one key, and an upsert pool keeps one; nothing was changed. "
                "Let the source have one record for a key"
            )


def _gathered(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yields the same records, in their order, as fewer and larger tables."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(one.num_rows for one in waiting) >= BATCH_ROWS:
            yield pa.concat_tables(waiting).combine_chunks()
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting).combine_chunks()
