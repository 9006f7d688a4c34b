"""Transactions over the pool of a pair and its neighbour, as one more actor; and what must be true of both.

The neighbour is an append pool that only transactions write to, beside a load now and then.  Each transaction
writes records of its own here, and its number there.  So the numbers there must be those of the transactions that
are merged here: at each moment, and in the end.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from unittest.mock import patch

import pyarrow as pa

from lake_core.errors import Conflict, LakeError, OutcomeUnknown, Unavailable
from lake_core.keys import KeyRange
from lake_core.keys.encoding import encode_value
from lake_core.naming import MAIN, transaction_of
from log_lake.lake import Lake
from log_lake.lake.branch import Branch
from log_lake.lake.moment import views_at_one_moment
from log_lake.lake.open_transactions import clean
from log_lake.lake.pool import Pool
from log_lake.lake.transactions import PoolsTransaction
from log_lake.lake.view import View
from tests.simulation.oracle import Write
from tests.simulation.pair_process import DAY, KEYS, POOL, Process
from tests.simulation.truth import Violation

NEIGHBOUR = "q"
ALONE = -1
"""The number of loads of the neighbour that are part of no transaction."""
TRIES = 3
SILENT = (Unavailable, OutcomeUnknown)


def make_neighbour(lake: Lake, store: object) -> None:
    """Make the pool, with a chance of its own, so that what else happens does not depend on it."""
    with patch.object(store, "chance", random.Random(NEIGHBOUR)):
        lake.create_pool(NEIGHBOUR, key="k", settings={"load.inline": "64KiB"})


def neighbour_of(me: Process) -> Pool:
    """The pool as this process has it; the lake keeps its history, and so its transactions use it too."""
    pool = me.lake.pool(NEIGHBOUR)
    me.settle_in(pool.history.journal)
    return pool


def numbers(*found: int) -> pa.Table:
    return pa.table({"k": pa.array([abs(number) for number in found], pa.int64()), "n": list(found)})


def transactor(me: Process) -> None:
    """Begins, writes and ends a transaction; loads into the neighbour; reads both pools at one moment."""
    neighbour, what = neighbour_of(me), me.chance.random()
    if what < 0.2:
        look(me, {POOL: me.pool, NEIGHBOUR: neighbour})
    elif what < 0.3:
        neighbour.branch().append(numbers(ALONE))
    elif what < 0.4:
        clean(me.lake, grace=me.chance.choice((0.0, 0.0, 100.0)))
    else:
        transact(me)


def transact(me: Process) -> None:
    """Its writes, and its end."""
    into = me.branch().name if me.chance.random() < 0.3 else MAIN
    if transaction_of(into):
        into = MAIN
    transaction = me.lake.transaction(open_for=me.chance.choice((100.0, DAY)))
    number = me.world.truth.numbers[transaction.id] = me.world.number()
    try:
        for where in me.chance.sample((POOL, NEIGHBOUR), 2):
            if where == POOL:
                for _ in range(me.chance.randint(1, 2)):
                    write(me, transaction.pool(POOL, into=into))
            else:
                transaction.pool(NEIGHBOUR).append(numbers(number))
            me.sleep(me.chance.choice((0.0, 0.0, 5.0, 200.0)))
    except LakeError:
        transaction.abort()
        raise
    if me.chance.random() < 0.15:
        transaction.abort()
    elif me.chance.random() < 0.9:  # otherwise it stays open, for the one who ends it
        commit(me, transaction)


def write(me: Process, branch: Branch) -> None:
    """A load or a replace."""
    if me.chance.random() < 0.25:
        low = me.chance.randrange(KEYS)
        high = me.chance.randint(low + 1, KEYS)
        span = KeyRange(encode_value(low), encode_value(high))
        replace = Write(me.rows(low, high), (low, high), replaces=True)
        me.write(
            replace,
            lambda message: branch.replace_with(me.table(replace), key_range=span, message=message),
        )
    else:
        load = Write(me.rows())
        me.write(load, lambda message: branch.append(me.table(load), message=message))


def commit(me: Process, transaction: PoolsTransaction) -> None:
    """Until the outcome is known, or for some times; what is told is true."""
    truth, tries = me.world.truth, TRIES
    while tries:
        tries -= 1
        try:
            transaction.commit()
        except SILENT:
            if not tries:
                raise
        except Conflict:
            truth.refused.add(transaction.id)
            raise
        else:
            truth.told_committed.add(transaction.id)  # a pool that the store refused may be settled later
            return


def look(me: Process, pools: dict[str, Pool]) -> None:
    """Both pools at one moment."""
    views = views_at_one_moment(pools)
    here = views[POOL]
    me.check(here, here.to_table())
    shown = {id for id, version in me.world.truth.merged.items() if version <= here.version}
    shown |= me.settled_early(here)
    check_numbers(views[NEIGHBOUR], (me.world.truth.numbers[id] for id in shown))


def check_numbers(there: View, expected: Iterable[int]) -> None:
    """The neighbour has just the transactions that are merged here."""
    found = sorted(n for n in there.to_table()["n"].to_pylist() if n != ALONE) if there.references else []
    if found != (wanted := sorted(expected)):
        raise Violation(f"version {there.version} of the neighbour has {found}; merged here are {wanted}")


def end(me: Process) -> None:
    """Nobody acts any more: nothing of a transaction is left, and no write has to wait."""
    pools = {POOL: me.pool, NEIGHBOUR: neighbour_of(me)}
    me.world.passed += 2 * DAY
    pools[NEIGHBOUR].branch().append(numbers(ALONE))
    clean(me.lake, grace=0.0)
    me.world.passed += DAY
    clean(me.lake, grace=0.0)
    look(me, pools)
    if lost := me.world.truth.told_committed - me.world.truth.merged.keys():
        raise Violation(f"acknowledged, and not merged: {sorted(lost)}")
    if wrong := me.world.truth.refused & me.world.truth.merged.keys():
        raise Violation(f"refused, and merged: {sorted(wrong)}")
    if left := [name for name in me.world.store.objects if name.startswith("transactions/")]:
        raise Violation(f"left over: {left}")
    for name, pool in pools.items():
        state = pool.history.load().state
        branches = [branch for branch in state.branches if transaction_of(branch)]
        if branches or len(state.pending):
            raise Violation(f"left over in {name}: {branches}, {sorted(state.pending.keys())}")
