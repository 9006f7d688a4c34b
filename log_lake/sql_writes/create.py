"""Runs a CREATE TABLE ... AS: a new pool that holds the records of a query.

The pool is listed last, as a rekeyed pool is: until then no program sees it.  So a process that is killed
leaves only a folder, which `lake fsck` names, and no incomplete pool.  The token is stored in the new pool, so
the same statement again finds its first commit there.  Called by `run`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa

from lake_core.errors import AlreadyExists, InvalidInput
from lake_core.naming import MAIN
from lake_core.phrases import did_you_mean
from log_lake.lake import Lake
from log_lake.lake.loads import begin_load, builder_of, commit_written, lease_of
from log_lake.lake.pool import Pool
from log_lake.lake.rekey import REKEY, names_what_is_left
from log_lake.lake.results import LoadResult, PendingLoad, check_keyed, repeated_load
from log_lake.lake.write import WriteArguments
from log_lake.sql_writes.create_statement import Create
from log_lake.sql_writes.work import StatementResult
from log_lake.system_tables.engine import SqlLimits
from log_lake.system_tables.sql import query
from log_lake.system_tables.stopping import QueryStop


@dataclass(frozen=True)
class CreateAsked:
    """A CREATE TABLE ... AS with the arguments of `execute`, such as its token."""

    lake: Lake
    statement: Create
    token: str
    message: str
    files: Sequence[str]
    limits: SqlLimits
    stop: QueryStop

    def create(self) -> StatementResult:
        """Makes the pool with its records.  Raises AlreadyExists, InvalidInput (no record, one without the
        key)."""
        if (there := self._there()) is not None:
            return there
        lake, statement = self.lake, self.statement
        config = lake.new_pool(statement.target.pool, key=statement.key, kind=statement.kind)
        lake.catalog.check_new(config)
        pool = lake.unlisted(config)
        with self._queried() as reader, names_what_is_left(pool):
            done = self._loaded(pool, reader)
            try:
                lake.catalog.create(config)
            except AlreadyExists:
                if (there := self._there()) is not None:  # the same statement, in another process
                    return there
                raise
        return self._result(done.version, done, done.records)

    def counted(self) -> StatementResult:
        """Returns how many records the pool would have."""
        if (there := self._there()) is not None:
            return there
        lake, statement = self.lake, self.statement
        lake.catalog.check_new(lake.new_pool(statement.target.pool, key=statement.key, kind=statement.kind))
        with self._queried() as reader:
            records = sum(batch.num_rows for batch in reader)
        return self._result(None, None, records)

    def _there(self) -> StatementResult | None:
        """Returns the result if the pool exists already and this is allowed: the same token made it, or the
        statement says IF NOT EXISTS.  Returns None if the pool does not exist.  Raises AlreadyExists otherwise.
        """
        name = self.statement.target.pool
        if name not in self.lake.catalog.load().state.names:
            return None
        history = self.lake.pool(name).branch().history
        first = history.first_use(history.load_open().state, self.token, branch=MAIN) if self.token else None
        if first is not None:
            return self._result(first.version, repeated_load(first), first.records)
        if self.statement.if_missing:
            return self._result(None, None, 0)
        raise AlreadyExists(
            f"pool {name!r} exists already; use another name, or CREATE TABLE IF NOT EXISTS, which leaves it as it "
            "is"
        )

    def _queried(self) -> pa.RecordBatchReader:
        reader = query(self.lake, self.statement.query, files=self.files, limits=self.limits, stop=self.stop)
        for name in self.statement.key.names:
            if name not in reader.schema.names:
                reader.close()
                raise InvalidInput(
                    f"CREATE: the key {name!r} is no field of the query; {did_you_mean(name, reader.schema.names)}"
                )
        return reader

    def _loaded(self, pool: Pool, reader: pa.RecordBatchReader) -> LoadResult:
        branch = pool.branch()
        pending = begin_load(branch, WriteArguments(token=self.token, message=self.message, bulk=True))
        assert isinstance(pending, PendingLoad)  # a new pool knows no token
        with builder_of(branch, pending) as builder, lease_of(branch, pending, why=REKEY), closing(reader):
            given = 0
            for batch in reader:
                given += batch.num_rows
                builder.add(branch.block(pa.Table.from_batches([batch])))
            written = builder.finish()
            if not written:
                raise InvalidInput(
                    "CREATE: the query has no record, and a pool has the fields of its records; lake create makes "
                    "a pool without records"
                )
            check_keyed((one.action for one in written), "CREATE", branch.key)
            if given > sum(one.action.records for one in written):
                raise InvalidInput(
                    "CREATE: two records of the query have one key, and an upsert pool keeps one; no pool was "
                    "made. Let the query have one record for a key"
                )
            return commit_written(branch, pending, written)

    def _result(self, version: int | None, done: LoadResult | None, records: int) -> StatementResult:
        return StatementResult(
            self.statement.target.pool,
            MAIN,
            "created",
            version,
            None if done is None else done.transaction_id,
            records,
            repeated=done is not None and done.repeated,
        )
