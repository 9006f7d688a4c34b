"""Who does what to a journal: writers, readers, purgers, vandals and the reaper; each is one process.

A writer checks what it was told, whatever it was: that a change stands, that it does not and never will, or that
nobody knows.  `PoolWriter` commits to a pool, `ListWriter` changes the list of pools.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lake_core import naming
from lake_core.catalog import Catalog
from lake_core.context import Context
from lake_core.errors import (
    AlreadyExists,
    CheckpointDamaged,
    CheckpointGone,
    Conflict,
    Corrupt,
    NotFound,
    OutcomeUnknown,
    Unavailable,
)
from lake_core.history import Draft, History
from lake_core.history.group_commit.requests import request_of
from lake_core.journal import Journal, purge, write_state
from lake_core.keys.encoding import encode_value
from lake_core.records import Action, AddObject, AddTombstone, Consume, RemoveReference, Source
from lake_core.records.codec import Codec
from log_lake.lake.pool import Pool
from tests.simulation.truth import PoolTruth, Violation
from tests.support.records import add, an_id, draft

if TYPE_CHECKING:
    from tests.simulation.world import World

LOST = (CheckpointGone, CheckpointDamaged)
"""What a state may say long after it was loaded: load again."""

NOISE = (b"", b"0", b"3", b"999", b"\x00\xff", b"12345678901234567890123", b"PAR1" * 9, b"LKJ\x01\x80")
LOADS_AGAIN = 8


# ---------------------------------------------------------------- writers


def pool_writer(world: World) -> None:
    """Commits drafts, as a user does who tries again under the token, or with the same draft."""
    history = world.history()
    for _ in range(world.chance.randint(1, 8)):
        if world.chance.random() < 0.1:
            history = world.history()  # the process was restarted
        token = f"token {world.chance.randint(1, 40)}" if world.chance.random() < 0.5 else ""
        one = _draft(world, token)
        for _ in range(4):
            if _commit(world, history, one):
                break
            if world.chance.random() < 0.5:  # else the same draft, as a driver does that kept it
                if not token:
                    break
                one = _draft(world, token)


def _draft(world: World, token: str) -> Draft:
    number, truth = world.number(), world.truth
    assert isinstance(truth, PoolTruth)
    actions: list[Action] = [add(number, low=number % 7, high=10)]
    if world.chance.random() < 0.2:
        form = world.chance.choice(("first", "second"))
        actions.append(Consume((Source(f"landing/{world.chance.randint(1, 4)}", 1, form),)))
    if truth.objects[-1] and world.chance.random() < 0.15:
        victim = world.chance.choice(sorted(truth.objects[-1]))
        actions.append(RemoveReference(victim, encode_value(int(victim) % 7)))
    base = world.chance.choice((0, truth.n))
    if world.chance.random() < 0.25:
        low = world.chance.randint(0, 9)
        actions.append(
            AddTombstone(
                an_id(number),
                encode_value(low),
                encode_value(world.chance.randint(low + 1, 12)),
                replaces=world.chance.random() < 0.6,
            )
        )
    return draft(number, *actions, token=token, read_version=base)


def _commit(world: World, history: History, one: Draft) -> bool:
    """Whether the outcome is known."""
    truth, was_unknown = world.truth, one.id in world.unknown
    try:
        landed = history.commit(one)
    except (Conflict, Corrupt) as error:
        takes = any(isinstance(a, Consume) for a in one.actions)
        if isinstance(error, Conflict) and not (takes or _is_misfit(world, one) or _is_taken(world, one)):
            raise Violation(f"{one.id} gave up although loads never conflict: {error}") from None
        if isinstance(error, Corrupt) and not _is_misfit(world, one):
            raise
        if not was_unknown:
            truth.refuse(one.id)
        world.count("refused")
        return True
    except NotFound:
        if not isinstance(truth, PoolTruth) or not truth.closed:
            raise
        if not was_unknown:
            truth.refuse(one.id)
        world.count("refused by a dropped pool")
        return True
    except Unavailable:
        if not was_unknown:
            truth.refuse(one.id)
        world.count("unavailable")
        return True
    except OutcomeUnknown:
        world.unknown.add(one.id)
        world.count("unknown")
        return False
    world.count("repeated" if landed.repeated else "committed")
    truth.acknowledge(landed.transaction_id, landed.version)
    if landed.transaction_id == one.id:
        return True
    if not landed.repeated:
        raise Violation(f"{one.id} was answered with the outcome of {landed.transaction_id}")
    if isinstance(truth, PoolTruth) and truth.keeps_tokens and not was_unknown:
        truth.refuse(one.id)
    return True


def dropper(world: World) -> None:
    """Drops the pool: one transaction that ends its history."""
    pool = Pool(
        Context(world.guarded_store(), "", NumberedIds(world, world.clock()), "test"),  # type: ignore[arg-type]
        world.pool("p"),
        world.history(),
    )
    for _ in range(world.chance.randint(0, 200)):
        world.scheduler.pause()
    with contextlib.suppress(OutcomeUnknown, Unavailable):
        pool.close()
        assert isinstance(world.truth, PoolTruth)
        if not world.truth.closed:
            raise Violation("the pool was said to be closed, and is not")
        world.count("closed")


@dataclass
class NumberedIds:
    """An `IdSource` of numbers; `last` is the id made last for this process."""

    world: World
    clock: Callable[[], float]
    last: str = ""

    def new(self) -> str:
        self.last = an_id(self.world.number())
        return self.last


def list_writer(world: World) -> None:
    """Makes, renames, changes and drops pools of a few names."""
    ids = NumberedIds(world, world.clock())
    catalog = world.catalog(ids)
    for _ in range(world.chance.randint(1, 8)):
        if world.chance.random() < 0.1:
            catalog = world.catalog(ids)
        name, other = (f"pool-{world.chance.randint(1, 4)}" for _ in range(2))
        ids.last = ""  # what is refused before it has an id must not take back what the one before was told
        try:
            n = _change(world, catalog, name, other)
        except (AlreadyExists, NotFound):
            world.truth.refuse(ids.last)
            world.count("refused")
        except Unavailable:
            world.truth.refuse(ids.last)
            world.count("unavailable")
        except OutcomeUnknown:
            world.count("unknown")
        else:
            world.truth.acknowledge(ids.last, n)
            world.count("committed")


def _change(world: World, catalog: Catalog, name: str, other: str) -> int:
    match world.chance.randrange(4):
        case 0:
            return catalog.rename(name, other)
        case 1:
            return catalog.configure(name, {"description": str(world.number())})
        case 2:
            return catalog.drop(catalog.load().state.named(name))
        case _:
            return catalog.create(world.pool(name))


def _is_taken(world: World, one: Draft) -> bool:
    """Whether the draft replaces what another replace has taken since it began."""
    assert isinstance(world.truth, PoolTruth)
    return world.truth.overlaps(one)


def _is_misfit(world: World, one: Draft) -> bool:
    """Whether the draft adds what is there, or removes what is not; nothing comes back here that was removed."""
    assert isinstance(world.truth, PoolTruth)
    held = world.truth.objects[-1]
    added = {action.object for action in one.actions if isinstance(action, AddObject)}
    removed = {action.object for action in one.actions if isinstance(action, RemoveReference)}
    return one.id in world.truth.ids or bool(added & held) or not removed <= held


# ---------------------------------------------------------------- readers


def reader(world: World) -> None:
    """Loads, keeps states for a while, looks back, reads the log."""
    process, truth = world.process(), world.truth
    for _ in range(world.chance.randint(1, 12)):
        if world.chance.random() < 0.3:
            process = world.process()
            if world.outcomes.get("rotten"):
                world.count("a new process after late damage")
        journal = process.journal
        world.scheduler.pause()
        with contextlib.suppress(Unavailable):
            look(world, journal, pauses=world.chance.choice((0, 0, 0, 1, 10)))
            world.count("loaded")
        if truth.n and world.chance.random() < 0.3:
            n = world.chance.randint(1, truth.n)
            with contextlib.suppress(Unavailable, NotFound, *LOST):
                head = journal.load_version(n)
                assert head is not None
                truth.is_state(n, head.state)
                world.count("looked back")
        if isinstance(process, History) and world.chance.random() < 0.2:
            with contextlib.suppress(Unavailable):
                truth.told(process.read_transactions())
                world.count("told")


def look(world: World, journal: Journal[Any, Any], *, pauses: int = 0) -> None:
    """Load and look at the state, which is one of the history; it can be had within a few tries."""
    for _ in range(LOADS_AGAIN):
        since = world.truth.n
        head = journal.load()
        for _ in range(pauses):
            world.scheduler.pause()
        try:
            world.truth.loaded(head.version, head.state, since=since)
        except LOST as error:
            if world.rots:
                raise Violation(f"damage was not mended although all entries are there: {error}") from error
            world.count("loaded again")
            pauses = 0
            continue
        return
    raise Violation("a state was given again and again that cannot be read")


# ---------------------------------------------------------------- purgers


def purger(world: World) -> None:
    """Writes checkpoints and purges, by a clock of its own, with others at the same."""
    process = world.process()
    journal, now = process.journal, world.clock()
    for _ in range(world.chance.randint(1, 5)):
        world.scheduler.pause()
        with contextlib.suppress(Unavailable, *LOST):
            head = journal.load()
            if head.version:
                mark = write_state(journal, head, id=an_id(world.chance.randrange(10**8)), now=now())
                with contextlib.suppress(*((Corrupt,) if world.rots else ())):  # by now it may be rotten
                    world.truth.is_state(mark.version, journal.restore(mark).state)
            if not world.rots:
                purge(journal, until=head.version - world.chance.choice((0, 0, 1, 4)))
                world.count("purged")


# ---------------------------------------------------------------- who breaks things


def vandal(world: World) -> None:
    """Noise in the hints, half and damaged checkpoints beside the sound ones, junk among marks and requests."""
    store, journal = world.store, world.truth.journal
    for _ in range(world.chance.randint(1, 12)):
        world.scheduler.pause()
        what = world.chance.random()
        if what < 0.4:
            name = world.chance.choice((naming.head, naming.tail))(journal)
            store.objects.pop(name, None)
            if world.chance.random() < 0.7:
                store.objects[name] = world.chance.choice(NOISE)
        elif what < 0.8:
            _damaged_checkpoint(world)
        elif what < 0.9:
            junk = world.chance.choice(
                (
                    "x",
                    ".nfs0001",
                    f"{2:020d}.checkpoint",
                    f"{2:019d}.fence",
                    f"{2:020d}.fence.tmp",
                    f"{2:020d}.txn",
                )
            )
            store.objects[f"{naming.marks(journal)}/{junk}"] = world.chance.choice(NOISE)
            store.objects[f"{journal}/.nfs0002"] = b"left by the file system"
        else:
            _junk_request(world)


def rot(world: World) -> None:
    """Turns bits in checkpoints that were sound: readers of new processes meet them, and so do states in use."""
    store = world.store
    for _ in range(world.chance.randint(1, 12)):
        for _ in range(world.chance.randint(1, 20)):
            world.scheduler.pause()
        there = sorted(n for n in store.objects if naming.checkpoint_version(n) is not None)
        if there:
            name = world.chance.choice(there)
            data = store.objects[name]
            where, bit = world.chance.randrange(max(1, len(data))), 1 << world.chance.randrange(8)
            if data:
                store.objects[name] = data[:where] + bytes((data[where] ^ bit,)) + data[where + 1 :]
            world.count("rotten")


def _damaged_checkpoint(world: World) -> None:
    """A copy of some checkpoint under another name, at its number or the next, cut or with one bit turned."""
    store, journal = world.store, world.truth.journal
    sound = sorted(n for n in store.objects if naming.checkpoint_version(n) is not None)
    at, data = world.chance.randint(0, world.truth.n + 1), world.chance.choice(NOISE)
    if sound:
        name = world.chance.choice(sound)
        at, data = naming.checkpoint_version(name) or 0, store.objects[name]
        if not data or world.chance.random() < 0.4:
            data = data[: world.chance.randrange(len(data) + 1)]
        else:
            where, bit = world.chance.randrange(len(data)), 1 << world.chance.randrange(8)
            data = data[:where] + bytes((data[where] ^ bit,)) + data[where + 1 :]
        at += world.chance.choice((0, 0, 1))
    store.objects.setdefault(naming.checkpoint(journal, at, an_id(world.chance.randrange(10**8))), data)


def _junk_request(world: World) -> None:
    """Noise; a request that cannot be met; one of a writer that died long ago, or a second copy of one."""
    store, journal = world.store, world.truth.journal
    name = naming.request(journal, an_id(world.chance.randrange(10**8)))
    there = sorted(n for n in store.objects if n.startswith(naming.requests(journal)))
    what = world.chance.randrange(3)
    if what == 0:
        store.objects[name] = world.chance.choice(NOISE)
    elif what == 1 and there:
        store.objects[name] = store.objects[world.chance.choice(there)]
    else:
        number = world.number()
        one = request_of(
            draft(number, add(number), branch="none"), possible_since=0, time=int(world.clock()() * 1e6)
        )
        store.objects[name] = Codec(type(one)).encode(one)


def reaper(world: World) -> None:
    """Kills processes between any two requests."""
    for _ in range(world.chance.randint(0, 4)):
        for _ in range(world.chance.randint(1, 80)):
            world.scheduler.pause()
        victims = [a for a in world.scheduler.actors if a.name != "reaper"]
        if victims:
            world.scheduler.kill(world.chance.choice(victims))
            world.count("killed")
