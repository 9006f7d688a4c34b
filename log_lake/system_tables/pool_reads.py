"""The pools that one SQL statement reads, all at one moment of the lake.

A statement that names one pool reads its newest state.  A statement that names several reads them so that each
transaction over pools is in all of them or in none (`lake.moment`).  All revisions that the statement names are
found from these states.  With a time, each pool is read as it was then.  Within a transaction, each pool is
read as the transaction sees it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from lake_core.errors import InvalidInput, NotFound
from lake_core.history import PoolState
from lake_core.journal import LoadedState
from lake_core.naming import MAIN
from log_lake.lake import Lake
from log_lake.lake.moment import States, states_at_one_moment, states_at_time
from log_lake.lake.pool import Pool
from log_lake.lake.transactions import PoolsTransaction
from log_lake.system_tables.names import is_system_table, pool_and_shape


@dataclass(frozen=True)
class Reads:
    """At which moment pools are read: at their newest state, as they were at `time` (ISO 8601), or within a
    transaction."""

    time: str = ""
    transaction: str = ""

    def __post_init__(self) -> None:
        if self.time and self.transaction:
            raise InvalidInput("query: a time and a transaction contradict each other; give one of them")

    @property
    def is_chosen(self) -> bool:
        """Whether the caller chooses the moment. Then no table's name may choose another one."""
        return bool(self.time or self.transaction)


@dataclass
class PoolReads:
    """The pools of a statement; the states of all are read when the first of them is needed."""

    lake: Lake
    tables: Iterable[str]
    reads: Reads = Reads()
    _pools: dict[str, Pool] = field(default_factory=dict)
    _states: States | None = None
    _transaction: PoolsTransaction | None = None

    def check(self, name: str) -> None:
        """Raises InvalidInput if the name of the table gives another moment than the caller."""
        if not self.reads.is_chosen:
            return
        given = "a time" if self.reads.time else "a transaction"
        if is_system_table(name):
            raise InvalidInput(
                f'query: "{name}" is a table of the lake, which is not read with {given}; ask for it alone'
            )
        pool, sign, _ = pool_and_shape(name)[0].partition("@")
        if sign:
            raise InvalidInput(f'query: "{name}" says a revision, and {given} is given too; write "{pool}"')

    def place(self, table: str) -> tuple[Pool, str, LoadedState[PoolState]]:
        """Returns the pool of POOL or POOL@REVISION, the revision to read, and the state from which the revision
        is found.

        Raises NotFound, InvalidInput, Conflict, and what `lake.moment` raises.
        """
        name, _, named = table.partition("@")
        pool = self._pool(name)
        newest = self._read()[pool.config.id]
        if not self.reads.transaction:
            return pool, named or MAIN, newest
        if self._transaction is None:
            self._transaction = self.lake.transaction(self.reads.transaction)
            self._transaction.check_open()
        branch = self._transaction.branch
        return pool, branch if branch in newest.state.branches else MAIN, newest

    def _pool(self, name: str) -> Pool:
        if name not in self._pools:
            self._pools[name] = self.lake.pool(name)
        return self._pools[name]

    def _read(self) -> States:
        """Returns the states of all pools that the statement names, by their ids; ignores tables that are not
        pools."""
        if self._states is None:
            for table in self.tables:
                if not is_system_table(table):
                    with contextlib.suppress(
                        NotFound, InvalidInput
                    ):  # said when the table itself is asked for
                        self._pool(pool_and_shape(table)[0].partition("@")[0])
            pools = list({pool.config.id: pool for pool in self._pools.values()}.values())
            time = self.reads.time
            self._states = states_at_time(pools, time) if time else states_at_one_moment(pools)
        return self._states
