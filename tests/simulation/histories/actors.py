"""Those who work on a lake of several pools: transactions, single writers, readers, upkeep, and a reaper."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lake_core.errors import (
    CheckpointDamaged,
    Conflict,
    Corrupt,
    InvalidInput,
    LakeError,
    NotFound,
    ObjectMissing,
    OutcomeUnknown,
    Unavailable,
)
from lake_core.keys import KeyRange
from lake_core.keys.encoding import encode_value
from lake_core.naming import transaction_of
from log_lake.agents.checkpoint.run import checkpoint_and_purge
from log_lake.agents.tombstones.run import apply
from log_lake.lake import Lake
from log_lake.lake.branch import Branch
from log_lake.lake.open_transactions import clean
from log_lake.lake.transactions import PoolsTransaction
from log_lake.rewriting.compaction import compact
from log_lake.vacuum.execute import vacuum
from log_lake.vacuum.orphans import scan_orphans
from tests.simulation.histories.recorded import Operation
from tests.simulation.truth import Violation

if TYPE_CHECKING:
    from tests.simulation.histories.world import World

TRIES = 6
SILENT = (Unavailable, OutcomeUnknown)
"""Nothing is known: the same may be done, or be done again."""
ANSWERS = (ObjectMissing, CheckpointDamaged)
"""Of a state that was read before a purge and a vacuum."""


# ---------------------------------------------------------------- transactions


def transactor(world: World, name: str) -> None:
    """Begins, writes, and commits or aborts; others may do the same to its transactions."""
    for _ in range(world.chance.randint(1, 2)):
        lake = world.process(name)
        token = world.chance.choice(("", "", "", "first", "second"))
        operation = world.history.begin(is_transaction=True, token=token)
        try:
            transaction = lake.transaction(token=token)
        except SILENT:
            world.history.refuse(operation, "nobody knows its id")
            continue
        if not _write(world, transaction, operation) or world.chance.random() < 0.1:
            _abort(world, transaction, operation)
            continue
        _others(world, name, transaction.id, operation)
        if world.chance.random() < 0.2:
            world.start(f"reaper of {name}", _reaper_of(name, world.chance.randint(1, 60)))
        if not _commit(world, transaction, operation):
            _commit_again(world, name, transaction.id, operation)


def _write(world: World, transaction: PoolsTransaction, operation: Operation) -> bool:
    """Some writes to some pools; whether all of them were done."""
    chance = world.chance
    try:
        for pool in chance.sample(sorted(world.kinds), chance.randint(1, len(world.kinds))):
            branch = transaction.pool(pool)
            for _ in range(chance.randint(1, 2)):
                _change(world, pool, branch, operation)
            _check_own(world, transaction, pool, operation)
    except (*SILENT, Conflict, NotFound) as error:  # others may have ended it
        world.count(f"a write in a transaction: {type(error).__name__}")
        return False
    return True


def _change(world: World, pool: str, branch: Branch, operation: Operation) -> None:
    """One load, delete or replace.  It is noted before it is tried."""
    part, chance, kind = operation.part(pool), world.chance, world.kinds[pool]
    what = chance.random()
    if what < 0.25 and world.victims[pool]:
        victim = world.victims[pool].pop()
        part.removes.add(victim)
        branch.delete(where=f"v = {victim}")
        return
    if what < 0.55:
        key, value = chance.choice(world.registers), world.history.value()
        part.registers[key] = value
        if kind == "append":
            span = KeyRange(encode_value(key), encode_value(key + 1))
            branch.replace_with(world.table(pool, [], {key: value}), key_range=span)
            return
        registers = {key: value}
    else:
        registers = {}
    values = [world.history.value() for _ in range(chance.randint(1, 2))]
    part.adds.update(values)
    branch.append(world.table(pool, values, registers))


def _check_own(world: World, transaction: PoolsTransaction, pool: str, operation: Operation) -> None:
    """A transaction reads its own writes."""
    seen, part = world.seen(transaction.at(pool)), operation.parts[pool]
    records = set(seen.records)
    registers = {key: values for key, values in seen.registers.items() if key in part.registers}
    if (
        not part.adds <= records
        or part.removes & records
        or registers != {key: [value] for key, value in part.registers.items()}
    ):
        raise Violation(f"operation {operation.number} wrote {part} in {pool}, and reads {seen}")


def _others(world: World, name: str, id: str, operation: Operation) -> None:
    """Another process may commit the same transaction, or abort it."""
    what = world.chance.random()
    if what < 0.25:
        world.start(f"second of {name}", lambda world, me: _commit_again(world, me, id, operation))
    elif what < 0.35:
        world.start(
            f"aborter of {name}",
            lambda world, me: _abort(world, world.process(me).transaction(id), operation),
        )


def _commit_again(world: World, name: str, id: str, operation: Operation) -> None:
    """In new processes, until one is told the outcome."""
    for _ in range(TRIES):
        try:
            transaction = world.process(name).transaction(id)
        except SILENT:
            continue
        if _commit(world, transaction, operation):
            return


def _commit(world: World, transaction: PoolsTransaction, operation: Operation) -> bool:
    """Whether the outcome is known."""
    try:
        result = transaction.commit()
    except SILENT as error:
        world.count(f"commit: {type(error).__name__}")
        return False
    except NotFound as error:
        _ended(world, operation, error)
        world.count("commit: NotFound")
    except (Conflict, InvalidInput) as error:
        world.history.refuse(operation, str(error))
        world.count("commit: refused")
    else:
        if result.repeated:
            world.history.refuse(operation, "its token was used")
            world.count("commit: repeated")
        else:
            world.history.acknowledge(operation)
            world.count("commit: done")
    return True


def _ended(world: World, operation: Operation, error: NotFound) -> None:
    """It is not known any more.  If decisions are kept for long, it was not committed."""
    if world.tells_the_end:
        world.history.refuse(operation, str(error))


def _abort(world: World, transaction: PoolsTransaction, operation: Operation) -> None:
    try:
        transaction.abort()
    except SILENT as error:
        world.count(f"abort: {type(error).__name__}")
    except Conflict:
        world.history.acknowledge(operation)
        world.count("abort: it is committed")
    else:
        if world.tells_the_end:  # otherwise it may have been committed, and forgotten
            world.history.refuse(operation, "it was aborted")
        world.count("abort: done")


# ---------------------------------------------------------------- others


def single_writer(world: World, name: str) -> None:
    """Writes to one pool at a time."""
    lake = world.process(name)
    for _ in range(world.chance.randint(1, 3)):
        pool = world.chance.choice(sorted(world.kinds))
        branch = lake.pool(pool).branch()
        operation = world.history.begin(is_transaction=False)
        try:
            _change(world, pool, branch, operation)
        except OutcomeUnknown:
            world.count("single writer: unknown")
        except Corrupt:
            raise
        except LakeError as error:
            world.history.refuse(operation, str(error))
            world.count(f"single writer: {type(error).__name__}")
        else:
            world.history.acknowledge(operation)
            world.count("single writer: done")


def reader(world: World, name: str) -> None:
    """Reads several pools at one moment, now or a short time ago."""
    for _ in range(world.chance.randint(2, 5)):
        names = world.chance.sample(sorted(world.kinds), world.chance.randint(1, len(world.kinds)))
        ago = world.chance.choice((None, None, None, 0.1, 1.0, 10.0))
        time = "" if ago is None else datetime.fromtimestamp(world.now() - ago, UTC).isoformat()
        try:
            world.read(world.process(name), names, name, time=time, pauses=world.chance.choice((0, 0, 30)))
            world.count("reader: now" if ago is None else "reader: a past time")
        except LakeError as error:
            if isinstance(error, Corrupt) and not isinstance(error, ANSWERS):
                raise
            world.count(f"reader: {type(error).__name__}")
        world.sleep(world.chance.choice((0.0, 0.02, 0.2, 1.0)))


def upkeep(world: World, name: str) -> None:
    """What agents do, to pools and to the branches of transactions."""
    for _ in range(world.chance.randint(1, 6)):
        what = world.chance.choice(sorted(UPKEEP))
        try:
            UPKEEP[what](world, world.process(name), world.chance.choice(sorted(world.kinds)))
            world.count(f"upkeep, {what}: done")
        except LakeError as error:
            if isinstance(error, Corrupt) and not isinstance(error, ANSWERS):
                raise
            world.count(f"upkeep, {what}: {type(error).__name__}")
        world.sleep(world.chance.choice((0.0, 0.05, 0.5, 5.0)))


def _compact(world: World, lake: Lake, name: str) -> None:
    branch = lake.pool(name).branch()
    if references := branch.revision().references:
        compact(branch, references)


def _compact_branch(world: World, lake: Lake, name: str) -> None:
    """Of a transaction, what it wrote or what it found."""
    pool = lake.pool(name)
    branches = pool.history.load_open().state.branches
    if names := sorted(each for each in branches if transaction_of(each)):
        branch = pool.branch(chosen := world.chance.choice(names))
        written = world.chance.random() < 0.7
        references = [
            one for one in branch.revision().references if branches[chosen].is_unmerged(one) == written
        ]
        if references:
            compact(branch, references)


UPKEEP: dict[str, Callable[[World, Lake, str], object]] = {
    "compaction": _compact,
    "compaction of a transaction": _compact_branch,
    "checkpoint and purge": lambda world, lake, name: checkpoint_and_purge(lake, name, now=world.now()),
    "tombstones": lambda world, lake, name: apply(lake.pool(name).branch(), now=world.now(), at_once=True),
    "tag": lambda world, lake, name: lake.pool(name).tag(f"t{world.history.value()}"),
    "vacuum": lambda world, lake, name: vacuum(lake.pool(name)),
    "orphan scan": lambda world, lake, name: scan_orphans(lake.pool(name)),
    "end of transactions": lambda world, lake, name: clean(lake, grace=world.cleans),
}


def reaper(world: World, name: str) -> None:
    """Kills processes between any two requests."""
    for _ in range(world.chance.randint(1, 3)):
        for _ in range(world.chance.randint(1, 200)):
            world.scheduler.pause()
        _kill(world, "")


def _reaper_of(name: str, steps: int) -> Callable[[World, str], None]:
    def reap(world: World, me: str) -> None:
        for _ in range(steps):
            world.scheduler.pause()
        _kill(world, name)

    return reap


def _kill(world: World, name: str) -> None:
    """The process of that name, or any one."""
    victims = [
        actor
        for actor in world.scheduler.actors
        if actor is not world.scheduler.running and (actor.name == name or not name)
    ]
    if victims:
        world.scheduler.kill(world.chance.choice(victims))
        world.count("killed")
