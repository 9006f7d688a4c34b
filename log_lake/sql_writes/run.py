"""Runs one writing statement of SQL as one transaction of one pool.

| statement | becomes |
|---|---|
| INSERT | a load of the query's records |
| DELETE, TRUNCATE | a delete: a tombstone, whose condition is the WHERE |
| UPDATE of an append pool | a delete by its WHERE and the records with their new values, in one transaction |
| UPDATE of an upsert pool | a load of the records with their new values, which are the newest of their keys |
| MERGE | as UPDATE, and the records that it inserts, in one transaction (`merge`) |
| CREATE TABLE ... AS | a load into a pool that is listed when it holds the records (`create`) |

An UPDATE or a MERGE reads records and writes what follows from them.  So it commits only if nothing was committed
to its branch since it read; otherwise it begins again, `branches.TRIES` times at most.  INSERT and DELETE need no
such check: loads and deletes never conflict.

Called by the `lake` command and by users.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace

import pyarrow as pa

from lake_core.errors import InvalidInput, PlanAgain
from lake_core.keys.ranges import EVERYTHING
from lake_core.naming import MAIN
from lake_core.phrases import did_you_mean
from log_lake.lake import Lake
from log_lake.lake.branches import TRIES, planned
from log_lake.lake.delete_spec import check_delete
from log_lake.lake.loads import begin_adding, begin_load, builder_of, commit_written, lease_of
from log_lake.lake.results import LoadResult, check_keyed
from log_lake.lake.token_kinds import TokenKind, check_brought
from log_lake.lake.view import View
from log_lake.lake.write import WriteArguments
from log_lake.loading.block import Block
from log_lake.reading.filters import has_filters
from log_lake.sql_writes.create import CreateAsked
from log_lake.sql_writes.create_statement import Create
from log_lake.sql_writes.merge import merge
from log_lake.sql_writes.merge_statement import MergeStatement
from log_lake.sql_writes.statement import ChangeStatement, Delete, Insert, Update, parsed
from log_lake.sql_writes.text import ChangeTarget
from log_lake.sql_writes.work import StatementResult, StatementWork, filtered, matching
from log_lake.system_tables.engine import SQL_LIMITS, SqlLimits
from log_lake.system_tables.expressions import Expression, setting
from log_lake.system_tables.sql import query
from log_lake.system_tables.stopping import QueryStop


def execute(
    lake: Lake,
    sql: str,
    *,
    token: str = "",
    message: str = "",
    dry_run: bool = False,
    files: Sequence[str] = (),
    limits: SqlLimits = SQL_LIMITS,
    transaction: str = "",
    stop: QueryStop | None = None,
) -> StatementResult:
    """Runs one INSERT, UPDATE, DELETE, TRUNCATE, MERGE or CREATE TABLE ... AS as one transaction, and returns its
    result.  If there is nothing to change, there is no transaction.

    `dry_run`: count the records, and change nothing.  `files`, `stop`: as in `query`; a statement that is
    stopped has changed nothing.  `transaction`: the id of a transaction over several pools, in which the
    statement works.

    Raises InvalidInput for a statement that cannot be done; the error names the clause.  Raises Conflict if
    other writers committed during each try of an UPDATE or MERGE.  Raises NotFound, AlreadyExists, and what
    loads and deletes raise.
    """
    statement = parsed(sql)
    if isinstance(statement, Create):
        if transaction:
            raise InvalidInput(
                "CREATE: a new pool is no part of a transaction over pools; leave out the transaction"
            )
        asked = CreateAsked(lake, statement, token, message, files, limits, stop or QueryStop())
        return asked.counted() if dry_run else asked.create()
    target = _within(lake, statement, transaction, dry_run=dry_run) if transaction else statement.target
    work = _Work(
        lake,
        target,
        token,
        message,
        files,
        limits,
        stop or QueryStop(),
        deletes=isinstance(statement, Delete),
        transaction=transaction,
    )
    match statement:
        case Insert():
            return work.counted_insert(statement) if dry_run else work.insert(statement)
        case Delete():
            return work.counted(statement, "deleted") if dry_run else work.delete(statement)
        case Update():
            work.check_changed([name for name, _ in statement.sets], verb="UPDATE")
            return work.counted(statement, "updated") if dry_run else work.update(statement)
        case MergeStatement():
            return merge(work, statement, dry_run=dry_run)


def _within(lake: Lake, statement: ChangeStatement, transaction: str, *, dry_run: bool) -> ChangeTarget:
    """Returns the pool and the branch on which a statement works in a transaction over pools.  The pool joins the
    transaction, except in a dry run.

    Raises InvalidInput if the statement names another branch, or is an UPDATE; and what joining raises.
    """
    target = statement.target
    if target.branch != MAIN:
        raise InvalidInput(
            f'SQL: "{target.pool}@{target.branch}" says a branch, and a transaction is given too; write '
            f'"{target.pool}"'
        )
    if isinstance(statement, Update | MergeStatement):
        verb = "UPDATE" if isinstance(statement, Update) else "MERGE"
        raise InvalidInput(
            f"{verb}: is not done in a transaction over pools, because its commit could not tell what it read; use "
            "lake replace"
        )
    within, pool = lake.transaction(transaction), lake.pool(target.pool)
    within.check_open()
    if not dry_run and not pool.sub_pool:
        within.pool(target.pool)
    return ChangeTarget(target.pool, within.revision(pool))


@dataclass
class _Work(StatementWork):
    """An INSERT, UPDATE or DELETE."""

    def _write(self) -> WriteArguments:
        return WriteArguments(token=self.branch.token_of(self.token), message=self.message)

    # --- INSERT

    def insert(self, statement: Insert) -> StatementResult:
        """Loads the records of the query."""
        branch = self.branch
        pending = begin_adding(branch, self._write())
        if isinstance(pending, LoadResult):
            return self.loaded(pending, "inserted")
        with (
            builder_of(branch, pending, alone=True) as builder,
            lease_of(branch, pending, why="insert"),
            closing(self._queried(statement)) as tables,
        ):
            for table in tables:
                builder.add(branch.block(table))
            written = builder.finish()
            check_keyed((one.action for one in written), "INSERT", branch.key)
            return self.loaded(commit_written(branch, pending, written), "inserted")

    def counted_insert(self, statement: Insert) -> StatementResult:
        """Returns how many records an INSERT would load."""
        with closing(self._queried(statement)) as tables:
            return self.would("inserted", sum(table.num_rows for table in tables))

    def _queried(self, statement: Insert) -> Generator[pa.Table, None, None]:
        with query(
            self.lake,
            statement.query,
            files=self.files,
            limits=self.limits,
            transaction=self.transaction,
            stop=self.stop,
        ) as reader:
            names = _names(statement, reader.schema)
            self.new_fields = self._new(names)
            for batch in reader:
                yield pa.Table.from_batches([batch]).rename_columns(names)

    def _new(self, names: Sequence[str]) -> tuple[str, ...]:
        """Returns those names that are not yet fields of the branch; none if the branch has no records."""
        view = self.pool.at_branch(self.target.branch)
        return tuple(name for name in names if view.references and name not in view.schema.names)

    # --- DELETE

    def delete(self, statement: Delete) -> StatementResult:
        """Deletes the records that fulfil the condition."""
        done = self.branch.delete(where=statement.where, token=self.token, reason=self.message, count=True)
        records = 0 if done.version is None else done.records
        return self.written("deleted", done, records, is_exact=done.is_exact)

    # --- UPDATE

    def update(self, statement: Update) -> StatementResult:
        """Replaces the records that fulfil the condition by ones with the new values."""
        try:
            return planned(lambda: self._update(statement))
        except PlanAgain as error:
            raise PlanAgain(
                f"UPDATE: others committed to pool {self.target.pool!r} during each of {TRIES} tries; run it when "
                "less is written, or for fewer records"
            ) from error

    def _update(self, statement: Update) -> StatementResult:
        branch = self.branch
        kinds = (TokenKind.CHANGE,) if branch.rule.keeps_all else (TokenKind.LOAD,)
        pending = begin_load(branch, self._write(), kinds=kinds)
        if isinstance(pending, LoadResult):
            check_brought(pending.version, pending.objects, token=self.token, verb="UPDATE")
            return self._updated(pending)
        if not pending.read_version:  # nothing was ever loaded
            return self.would("updated", 0)
        view = self.pool.at_version(pending.read_version, branch=branch.name)
        spec = check_delete(view, key_range=EVERYTHING, where=statement.where, narrow=True)
        if spec is None:
            return self.would("updated", 0)
        with (
            builder_of(branch, pending, alone=True) as builder,
            lease_of(branch, pending, why="update"),
            self._setting(statement, view) as new,
        ):
            records = 0
            for table in matching(view, spec):
                self.stop.check()
                builder.add(Block(new(table)))
                records += table.num_rows
            if not records:
                return self.would("updated", 0)
            if branch.rule.keeps_all:
                for table in filtered(view, spec):
                    self.stop.check()
                    builder.add(Block(table))
            written = builder.finish()
            check_keyed((one.action for one in written), "UPDATE", branch.key)
            replaced = spec if branch.rule.keeps_all else None
            done = commit_written(branch, pending, written, replaced=replaced, is_exact=True)
        return (
            self._updated(done)
            if done.repeated
            else replace(self._updated(done), records=records, is_exact=True)
        )

    def _updated(self, done: LoadResult) -> StatementResult:
        """Returns the result of a commit, which may hold records, too, that filters hide."""
        is_exact = not (self.branch.rule.keeps_all and has_filters(self.pool.settings))
        return replace(self.loaded(done, "updated"), is_exact=is_exact)

    @contextmanager
    def _setting(self, statement: Update, view: View) -> Iterator[Callable[[pa.Table], pa.Table]]:
        """Gives a function that sets the fields of records.

        The function is first tried on an empty table, so that a wrong expression is refused even if no record
        fulfils the condition.
        """
        names = view.schema.names
        for name, _ in statement.sets:
            if name not in names:
                raise InvalidInput(f"UPDATE: SET {name}: no such field; {did_you_mean(name, names)}")
        expressions = [Expression(view.schema.field(name), sql) for name, sql in statement.sets]
        with setting(expressions, table=self.target.pool, limits=self.limits, stop=self.stop) as new:
            new(view.schema.empty_table())
            yield new

    def counted(self, statement: Delete | Update, verb: str) -> StatementResult:
        """Returns how many records the statement would delete or update."""
        view = self.pool.at_branch(self.target.branch)
        spec = check_delete(view, key_range=EVERYTHING, where=statement.where, narrow=True)
        if spec is None:
            return self.would(verb, 0)
        records = 0
        with self._setting(statement, view) if isinstance(statement, Update) else nullcontext() as new:
            for table in matching(view, spec):
                self.stop.check()
                if new is not None:
                    new(table)  # a value may not fit
                records += table.num_rows
        return self.would(verb, records)


def _names(statement: Insert, schema: pa.Schema) -> list[str]:
    if statement.fields is None:
        return list(schema.names)
    if len(statement.fields) != len(schema.names):
        raise InvalidInput(
            f"INSERT: {len(statement.fields)} fields are named, and the query has {len(schema.names)} columns"
        )
    return list(statement.fields)
