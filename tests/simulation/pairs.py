"""Every two of those who work on a pool, against each other, on a store that fails as a seed says.

A seed names a pair of `ACTORS` (an actor may meet itself, and in two fifths of the seeds a third one joins), the
kind of the pool, and its past: loads, deletes, compactions, branches, tags, orphans and removed objects of many
ages.  The actors run as greenlets, one request at a time.  Requests are refused, acts and answers are lost or late;
processes stall beyond the grace time and the life of leases, and are killed; some clocks are behind or ahead.

`oracle` checks every entry, every deletion and every read.  In the end nobody acts any more: all grace passes,
upkeep runs, and a full listing shows not one object too many.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from unittest.mock import patch

import pyarrow as pa

from lake_core import naming
from lake_core.errors import (
    CheckpointDamaged,
    Corrupt,
    LakeError,
    ObjectMissing,
    ObjectVacuumed,
    OutcomeUnknown,
)
from lake_core.history import PoolState
from lake_core.ids import IdSource
from lake_core.journal import JournalLimits, LoadedState, Retry
from lake_core.keys import KeyRange
from lake_core.keys.encoding import encode_value
from lake_core.records import Action, RemoveReference, RemoveTombstone
from lake_core.store import Created
from log_lake.agents.checkpoint.run import checkpoint_and_purge
from log_lake.agents.retention.expire import expire
from log_lake.agents.tombstones.run import apply
from log_lake.erasure.receipt import DONE
from log_lake.erasure.run import erase
from log_lake.erasure.verify import verify
from log_lake.lake import Lake
from log_lake.lake.branch import Branch
from log_lake.lake.pool import Pool
from log_lake.lake.results import DeleteResult, LoadResult, PendingLoad
from log_lake.lake.tags import delete_tag
from log_lake.lake.view import View
from log_lake.leases.holding import HeldLease
from log_lake.loading.block import Block
from log_lake.rewriting.compaction import begin_compaction, compact
from log_lake.rewriting.exchange import commit
from log_lake.rewriting.work import write as rewrite
from log_lake.stores.guard import guarded
from log_lake.vacuum.execute import vacuum
from log_lake.vacuum.orphans import scan_orphans
from log_lake.workers import Here
from tests.simulation.faulty import Faults, FaultyStore
from tests.simulation.oracle import ERASED, PairTruth, Promise, Rows, Write
from tests.simulation.scheduler import Actor, Scheduler
from tests.simulation.truth import Violation

POOL = "p"
KINDS = ("append", "upsert", "aggregate")
KEYS = 6
EPOCH = 2_000_000_000.0
GRACE, TTL, DAY = 100.0, 60.0, 86_400.0
ROUNDS = 2
"""Times that all grace passes and upkeep runs, at most: the orphans of a first scan wait once more."""
ANY_CLOCK = JournalLimits(clock_skew=math.inf)
"""A machine whose clock is far off is not refused: it has to do no harm."""
PASTS = 6
"""Pasts of each kind of pool: they are made once, and copied for each seed."""


class Process:
    """One process at work on the pool: it opened the lake by itself, and has a clock of its own."""

    def __init__(self, world: World, name: str, *, skew: float = 0.0) -> None:
        self.world, self.name, self.chance = world, name, world.chance
        ids = IdSource(clock=lambda: world.now() + skew, entropy=world.chance.randbytes)
        self.lake = Lake.open_on(world.store, ids=ids, author=name)
        self.lake.catalog.journal.fetch = _one_by_one
        self.pool = self.lake.pool(POOL)
        journal = self.pool.history.journal
        journal.limits = ANY_CLOCK
        journal.fetch = _one_by_one
        journal.retry = world.retry()
        if world.seen is not None and self.chance.random() < 0.7:  # otherwise it has just been started
            journal._loaded = world.seen

    @property
    def now(self) -> float:
        """By the process's clock."""
        return self.lake.context.now()

    @property
    def state(self) -> PoolState:
        """The newest one."""
        return self.pool.history.load_open().state

    def branch(self) -> Branch:
        """Mostly main."""
        others = sorted(name for name in self.state.branches if name != "main")
        return self.pool.branch(
            self.chance.choice(others) if others and self.chance.random() < 0.3 else "main"
        )

    def version(self) -> str:
        """One of the newest."""
        return str(max(1, self.pool.history.load_open().version - self.chance.randrange(10)))

    def rows(self, low: int = 0, high: int = KEYS) -> tuple[tuple[int, int, bool], ...]:
        """Records of different keys, and the number of this load."""
        number = self.world.number()
        keys = self.chance.sample(range(low, high), self.chance.randint(1, min(3, high - low)))
        upsert = self.world.kind == "upsert"
        rows = [(key, number, upsert and self.chance.random() < 0.2) for key in keys]
        if self.world.is_past and low == 0 and self.chance.random() < 0.5:
            rows.append((ERASED, number, False))
        return tuple(rows)

    def table(self, write: Write) -> pa.Table:
        """The records in Arrow."""
        keys, numbers, gone = (list(column) for column in zip(*write.rows, strict=True))
        table = pa.table({"k": keys, "n": numbers})
        return table.append_column("_deleted", pa.array(gone)) if self.world.kind == "upsert" else table

    def write(self, write: Write, commit: Callable[[str], LoadResult | DeleteResult]) -> None:
        """Commit under a message of its own, and check what is answered."""
        truth, message = self.world.truth, f"{self.name} {self.world.number()}"
        truth.writes[message] = write
        try:
            done = commit(message)
        except OutcomeUnknown:
            raise
        except LakeError:
            truth.told_refusal(message)
            raise
        if done.version is not None:
            truth.told_version(message, done.version)

    def sleep(self, seconds: float) -> None:
        """Stand still: nothing of the process goes on, its leases neither."""
        self.world.stall(seconds)

    def check(self, view: View, table: pa.Table) -> None:
        """The table is what the view's version shows."""
        rows, expected = self.world.rows_of(table), self.world.truth.shown[view.version][view.branch]
        if rows != expected:
            raise Violation(f"version {view.version} of {view.branch} shows {rows}, not {expected}")


# ---------------------------------------------------------------- who works on a pool


def loader(me: Process) -> None:
    write, branch = Write(me.rows()), me.branch()
    me.write(write, lambda message: branch.append(me.table(write), message=message))


def replacer(me: Process) -> None:
    low = me.chance.randrange(KEYS)
    high = me.chance.randint(low + 1, KEYS)
    span = KeyRange(encode_value(low), encode_value(high))
    write, branch = Write(me.rows(low, high), (low, high), replaces=True), me.branch()
    me.write(write, lambda message: branch.replace_with(me.table(write), key_range=span, message=message))


def deleter(me: Process) -> None:
    branch, key = me.branch(), me.chance.randrange(KEYS)
    rows = me.world.truth.shown[-1].get(branch.name, {})
    if me.world.kind == "aggregate" or not rows or me.chance.random() < 0.5:
        write, where = Write(span=(key, key + 1)), f"k = {key}"
    else:
        row = me.chance.choice(sorted(rows))
        number = row[1] if me.world.kind == "append" else rows[row]
        write, where = Write(span=(0, ERASED + 1), number=number), f"n = {number}"
    me.write(write, lambda message: branch.delete(where=where, reason=message))


def compactor(me: Process) -> None:
    branch = me.branch()
    references = branch.revision().references
    if references:
        chosen = me.chance.sample(references, me.chance.randint(1, len(references)))
        compact(branch, chosen, outputs=me.chance.choice((1, 1, 2)))


def tombstones(me: Process) -> None:
    apply(me.branch(), now=me.now, at_once=me.chance.random() < 0.8)


def checkpoint(me: Process) -> None:
    checkpoint_and_purge(me.lake, POOL, now=me.now, purging=me.chance.random() < 0.7)


def brancher(me: Process) -> None:
    branches = sorted(name for name in me.state.branches if name != "main")
    roots = [(name, tag.branch) for name, tag in me.pool.tags.items() if tag.deleted]
    what = me.chance.choice(("create", "load", "load", "merge", "merge", "delete", "delete", "restore"))
    if what == "restore" and roots:
        root, name = me.chance.choice(roots)
        me.pool.create_branch(name, at=root)
    elif what == "create" or not branches:
        at = "main" if me.chance.random() < 0.6 else me.version()
        me.pool.create_branch(f"b{me.world.number()}", at=at)
    else:
        branch = me.chance.choice(branches)
        if what == "load":
            write = Write(me.rows())
            me.write(write, lambda message: me.pool.branch(branch).append(me.table(write), message=message))
        elif what == "merge":
            me.pool.branch().merge(branch)
        else:
            me.pool.delete_branch(branch)


def tagger(me: Process) -> None:
    tags = sorted(me.pool.tags)
    if tags and me.chance.random() < 0.4:
        delete_tag(me.pool, me.chance.choice(tags), chunk=me.chance.choice((1, 2, 10)))
    else:
        expires = me.chance.choice((None, me.now + 2 * GRACE))
        at = "main" if me.chance.random() < 0.4 else me.version()
        me.pool.tag(f"t{me.world.number()}", at=at, expires=expires)


def expirer(me: Process) -> None:
    expire(me.pool)


def vacuumer(me: Process) -> None:
    vacuum(me.pool, chunk=me.chance.choice((1, 2, 10)))


def orphan_scanner(me: Process) -> None:
    scan_orphans(me.pool)


def eraser(me: Process) -> None:
    before = me.world.truth.holding(ERASED)
    if erase(me.pool, where=f"k = {ERASED}").status == DONE:
        me.world.check_erased(before)


def reader(me: Process) -> None:
    """Reads without a lease: now, after a while within the grace time or beyond, or an old version."""
    truth, begun = me.world.truth, me.world.now()
    is_old = me.chance.random() < 0.2
    view = me.pool.at(me.version() if is_old else "main")
    promise = Promise(frozenset(r.object for r in view.references if not r.data), until=begun + GRACE)
    if not is_old:
        truth.promises.append(promise)
    me.sleep(me.chance.choice((0.0, 0.0, GRACE / 4, GRACE / 2, 3 * GRACE)))
    try:
        me.check(view, view.to_table())
    except ObjectMissing as error:
        raise Violation(f"a reader without a lease is not told of a vacuum: {error}") from error
    except ObjectVacuumed as error:
        if not is_old and me.world.now() < begun + GRACE and not promise.objects & truth.erased:
            raise Violation(f"a reader within the grace time: {error}") from error


def leased_reader(me: Process) -> None:
    """Reads under a lease, any revision, for as long as it likes; if it stands still too long, the lease dies."""
    truth, why = me.world.truth, f"reading {me.world.number()}"
    with me.pool.leased("main" if me.chance.random() < 0.4 else me.version(), why=why) as view:
        stored = me.world.store.objects
        name = next((name for name in me.world.holders if why.encode() in stored.get(name, b"")), "")
        if not name:
            return  # it stood still for so long that its lease was dead, and a vacuum has removed it
        promise = Promise(frozenset(r.object for r in view.references if not r.data), lease=name)
        truth.promises.append(promise)
        for _ in range(me.chance.randint(0, 3)):
            if me.chance.random() < 0.2:
                me.sleep(me.chance.choice((TTL / 2, 3 * TTL)))
            for _ in range(me.chance.randint(0, 40)):
                me.world.scheduler.pause()
        try:
            me.check(view, view.to_table())
        except (ObjectMissing, ObjectVacuumed) as error:
            if promise in truth.promises:
                raise Violation(f"a reader with a live lease: {error}") from error
        if promise in truth.promises:
            truth.promises.remove(promise)


def stalled_writer(me: Process) -> None:
    """Begins a load or a compaction, stands still, and comes back."""
    branch = me.branch()
    pause = me.chance.choice((0.0, TTL / 2, 2 * TTL, 3 * GRACE))
    references = branch.revision().references
    if references and me.chance.random() < 0.4:
        chosen = references if me.world.kind == "aggregate" else references[: me.chance.randint(1, 3)]
        work = begin_compaction(branch, chosen, outputs=1, message="")
        written = rewrite(work, Here.of(me.lake.context), me.lake.store)
        me.sleep(pause)
        commit(branch, work, written, does="merges")
        return
    write = Write(me.rows())

    def load(message: str) -> LoadResult:
        begun = branch.begin_load(message=message)
        assert isinstance(begun, PendingLoad)
        builder = branch.builder(begun)
        builder.add(Block(me.table(write)))
        objects = builder.finish()
        me.sleep(pause)
        return branch.commit(begun, objects=[w.action for w in objects], schemas=[w.schema for w in objects])

    me.write(write, load)


def splitter(me: Process) -> None:
    keys = sorted(me.chance.sample(range(ERASED + 1), me.chance.randint(1, 3)))
    match me.chance.choice(("split", "split", "into", "unsplit", "all")):
        case "split":
            me.pool.split(at=keys)
        case "into":
            me.pool.split(into=me.chance.choice((2, 3)))
        case "unsplit":
            me.pool.unsplit(at=keys)
        case _:
            me.pool.unsplit()


def undoer(me: Process) -> None:
    branch = me.branch()
    undoes = me.chance.random() < 0.7
    kinds = (RemoveReference, RemoveTombstone) if undoes else Action
    versions = [
        version
        for version, by in me.pool.log(branch=branch.name)
        if any(isinstance(action, kinds) for action in by.actions)
    ]
    if versions:
        version = str(me.chance.choice(versions[:8]))
        branch.undo(version) if undoes else branch.revert(version)


ACTORS: dict[str, Callable[[Process], None]] = {
    "loader": loader,
    "replacer": replacer,
    "deleter": deleter,
    "compactor": compactor,
    "tombstones": tombstones,
    "checkpoint and purge": checkpoint,
    "branch maker and merger": brancher,
    "tagger": tagger,
    "expirer": expirer,
    "vacuum": vacuumer,
    "orphan scan": orphan_scanner,
    "eraser": eraser,
    "reader without a lease": reader,
    "reader with a lease": leased_reader,
    "stalled writer": stalled_writer,
    "undoer": undoer,
    "splitter": splitter,
}
"""Who works on a pool."""

PAIRS = list(combinations_with_replacement(ACTORS, 2))

FAULTS = (
    *((0.0, 0.0, 0.0, 0.0),) * 2,
    *((0.001, 0.01, 0.002, 0.005),) * 2,
    (0.01, 0.05, 0.02, 0.05),
)
"""How likely a request is refused; a create or a delete loses its answer, never arrives, arrives late."""

ANSWERS = (ObjectMissing, CheckpointDamaged)
"""Damage, as the errors say it, that is none here: what was read is gone, or was purged, and that was allowed."""


# ---------------------------------------------------------------- the world


@dataclass
class World:
    """One pool, its store, its clock, and all who work on it."""

    kind: str
    chance: random.Random
    is_past: bool = False
    start: float = EPOCH
    tick: float = 1.0
    """Seconds that a step takes."""
    passed: float = 0.0
    numbers: int = 0
    holders: dict[str, Actor | None] = field(default_factory=dict)
    """Who holds which lease, by its name."""
    happened: dict[str, int] = field(default_factory=dict)
    late_since: float | None = None
    seen: LoadedState[PoolState] | None = None
    """The newest state of the past, as a process has it that was there."""

    def __post_init__(self) -> None:
        self.scheduler = Scheduler(self.chance, stalls=0.0, longest_stall=200)
        self.faults = Faults(0.0, 0.0, 0.0, 0.0)
        self.truth = PairTruth("", kind=self.kind)
        self.store = Shared(
            self.chance,
            self.scheduler,
            self.truth,
            self.faults,
            lists_from_name=self.chance.random() < 0.7,
            puts_halves=False,
            clock=self.now,
        )
        self.store.world = self
        self._join()

    def _join(self) -> None:
        """Bring the store and its truth together."""
        self.store.truth = self.truth
        self.truth.objects, self.truth.clock, self.truth.read = self.store.objects, self.now, self.read
        self.scheduler.after_step = self.after_step

    def now(self) -> float:
        """By the store's clock."""
        return self.start + self.scheduler.steps * self.tick + self.passed

    @property
    def runs(self) -> Actor | None:
        """Who runs."""
        return self.scheduler.running

    def number(self) -> int:
        """One that nobody has had."""
        self.numbers += 1
        return self.numbers

    def retry(self) -> Retry:
        """Pauses that take no time of ours."""
        return Retry(races=100, repeats=4, sleep=self._sleep, clock=self.now, jitter=self.chance.random)

    def _sleep(self, seconds: float) -> None:
        self.passed += seconds
        self.scheduler.pause()

    def stall(self, seconds: float) -> None:
        """Who runs stands still; a past just takes longer."""
        if self.runs is None:
            self.passed += seconds
        else:
            self.runs.stalled = int(seconds / self.tick)
            self.scheduler.pause()

    def after_step(self) -> None:
        """Late requests arrive in time; who lives and does not stand still renews its leases."""
        self.truth.check()
        if self.store.late:
            self.late_since = self.now() if self.late_since is None else self.late_since
            if self.now() - self.late_since > GRACE / 4:
                self.store.arrive()
        if not self.store.late:
            self.late_since = None
        for name in self.holders.keys() & self.store.objects.keys():
            age, holder = self.now() - self.store.modified[name], self.holders[name]
            if age > TTL:  # it was dead, even if it is written again
                self.truth.promises = [p for p in self.truth.promises if p.lease != name]
            if age > TTL / 3 and holder in self.scheduler.actors and not holder.stalled:
                self.store.modified[name] = self.now()

    def rows_of(self, table: pa.Table) -> Rows:
        """A table as the oracle says it."""
        keys, numbers = table["k"].to_pylist(), table["n"].to_pylist()
        rows: Rows = {}
        for key, number in zip(keys, numbers, strict=True):
            if self.kind == "append":
                rows[key, number] = rows.get((key, number), 0) + 1
            elif key in rows:
                raise Violation(f"key {key} is shown twice: {numbers}")
            else:
                rows[key] = number
        return rows

    def read(self, state: PoolState, version: int, branch: str) -> Rows:
        """What the engine shows of a state, on a store that does not fail."""
        quiet = self.store.is_quiet
        self.store.is_quiet = True
        try:
            view = View(self.pool.config, version, branch, state, self.now(), store=guarded(self.store))
            return self.rows_of(view.to_table()) if view.references else {}
        finally:
            self.store.is_quiet = quiet

    def check_erased(self, before: set[str]) -> None:
        """An erasure says that it is done: nothing in reach holds such a record, and nothing that did before it."""
        holding = self.truth.holding(ERASED)
        if left := holding & before:
            raise Violation(f"erased, and on the store: {sorted(left)}")
        for what, objects in (*self.truth.needed(), *self.truth.promised()):
            if erased := holding & objects:
                raise Violation(f"erased, and {what} has {sorted(erased)}")

    # --- the past

    def begin(self) -> None:
        """Make the pool, and what happened to it before the seed."""
        ids = IdSource(clock=self.now, entropy=self.chance.randbytes)
        lake = Lake.create_on(self.store, ids=ids)
        keep = self.chance.choice(("0s", f"{GRACE:.0f}s"))
        settings = {
            "vacuum.grace": f"{GRACE:.0f}s",
            "lease.ttl": f"{TTL:.0f}s",
            "history.keep": keep,
            "lease.after": self.chance.choice(("0s", "1d")),
            "load.inline": self.chance.choice(("0", "64KiB")),
            "tombstones.remember": self.chance.choice(("0s", "50s", "7d")),
            **({"expire.records": "4"} if keep == "0s" else {"expire.age": f"{GRACE:.0f}s"}),
        }
        aggregates = {"n": "sum"} if self.kind == "aggregate" else {}
        self.pool: Pool = lake.create_pool(
            POOL, key="k", kind=self.kind, settings=settings, aggregates=aggregates
        )
        self.truth.journal = naming.pool_journal(self.pool.config.id)
        names = ["loader", "loader", *self.chance.choices(PAST, k=16), "loader"]
        for name in names:
            self.passed += self.chance.choice((1.0, 5.0, 40.0))
            with suppress(LakeError):
                self.do(name, Process(self, name))
            self.truth.check()
            self.pool.history.load()

    def do(self, name: str, process: Process) -> None:
        """One piece of work."""
        if name == "orphan":
            branch = process.pool.branch()
            begun = branch.begin_load()
            assert isinstance(begun, PendingLoad)
            builder = branch.builder(begun)
            builder.add(Block(process.table(Write(process.rows()))))
            builder.finish()
        else:
            ACTORS[name](process)

    # --- the seed

    @classmethod
    def of_seed(cls, kind: str, past: World, chance: random.Random) -> World:
        """A world that goes on from a past."""
        world = cls(kind, chance)
        world.start, world.numbers, world.pool = past.now(), past.numbers, past.pool
        world.store.objects.update(past.store.objects)
        world.store.modified.update(past.store.modified)
        world.truth = past.truth.copied()
        world._join()
        seen = past.pool.history.load()
        world.seen = seen if seen.checkpoint is None else None
        world.store.page = chance.choice((3, 30, 30))
        return world

    def run(self, names: tuple[str, ...]) -> None:
        """The actors at the same time, and then the end."""
        chance = self.chance
        self.tick = chance.choice((0.2, 1.0, 3.0))
        self.scheduler.stalls = chance.choice((0.0, 0.01, 0.03))
        for number, name in enumerate(names):
            self.scheduler.start(f"{name} {number}", functools.partial(self._work, name))
        if chance.random() < 0.3:
            self.scheduler.start("reaper", self._reap)
        rates = chance.choice(FAULTS)
        self.faults.refused, self.faults.answer_lost, self.faults.never_arrived, self.faults.late = rates
        self.scheduler.run()
        self.faults.none()
        self.store.arrive()
        self.truth.check()
        self._end("eraser" in names)

    def _work(self, name: str) -> None:
        skew = self.chance.choice((0.0, 0.0, 0.0, -10 * GRACE, 2 * GRACE))
        for _ in range(self.chance.randint(1, 3)):
            for _ in range(self.chance.choice((0, 0, 10, 40))):
                self.scheduler.pause()
            try:
                ACTORS[name](Process(self, name, skew=skew))
                self.count(f"{name}: done")
            except LakeError as error:
                if isinstance(error, Corrupt) and not isinstance(error, ANSWERS):
                    raise
                self.count(f"{name}: {type(error).__name__}")

    def _reap(self) -> None:
        for _ in range(self.chance.randint(1, 60)):
            self.scheduler.pause()
        victims = [actor for actor in self.scheduler.actors if actor is not self.runs]
        if victims:
            victim = self.chance.choice(victims)
            self.scheduler.kill(victim)
            self.count("killed")

    def count(self, what: str) -> None:
        """That something happened."""
        self.happened[what] = self.happened.get(what, 0) + 1

    def _end(self, erases: bool) -> None:
        """Nobody acts any more; all grace passes, and upkeep runs to its end."""
        truth, me, eraser = self.truth, Process(self, "upkeep"), Process(self, "eraser").pool
        if (points := me.state.points) != truth.states[-1].points:
            raise Violation(f"the split points are {points}, not {truth.states[-1].points}")
        for name in me.state.branches:
            view = me.pool.at(name)
            if view.references:
                me.check(view, view.to_table())
            elif truth.shown[-1][name]:
                raise Violation(f"{name} is empty, and not {truth.shown[-1][name]}")
        for turn in range(ROUNDS):
            self.passed += 2 * DAY
            loader(me)  # a later write shows that the journal goes on
            truth.promises.clear()
            if erases:
                for name in me.pool.tags:
                    me.pool.delete_tag(name)
                receipt = erase(eraser, where=f"k = {ERASED}")
                if receipt.status != DONE or (self.chance.random() < 0.2 and list(verify(eraser, receipt))):
                    raise Violation(f"an erasure with nothing to wait for: {receipt.held}")
            self.passed += 4 * GRACE
            # The last round looks at every name: an object whose writer was killed after the scan had passed its
            # name is found by nothing else.
            scan_orphans(me.pool, every_name=turn == ROUNDS - 1)
            self.passed += 4 * GRACE
            vacuum(me.pool)
            left = truth.there_now() - {id for _, objects in truth.needed() for id in objects}
            if not left:
                break
        truth.check()
        if left:
            state = truth.states[-1]
            raise Violation(f"left over: {sorted((id, state.removed.get(id)) for id in left)}")
        if erases and (holding := truth.holding(ERASED)):
            raise Violation(f"erased, and on the store: {sorted(holding)}")
        if left_leases := [name for name in self.store.objects if naming.lease_id(name)]:
            raise Violation(f"leases are left over: {left_leases}")


PAST = (
    *("loader",) * 4,
    "deleter",
    *("compactor",) * 2,
    "replacer",
    *("branch maker and merger",) * 3,
    *("tagger", "orphan", "tombstones", "checkpoint and purge", "undoer", "vacuum", "splitter"),
)
"""What may have happened before."""


class Shared(FaultyStore):
    """The store of a pair: it knows who holds which lease, and is quiet while the oracle reads."""

    world: World
    is_quiet = False

    def _request(self) -> None:
        if not self.is_quiet:
            super()._request()

    def create(self, name: str, data: bytes) -> Created:
        if naming.lease_id(name) is not None:
            self.world.holders[name] = self.world.runs
        return super().create(name, data)


def _one_by_one(read: Callable[[object], object], names: range) -> list[object]:
    return [read(name) for name in names]


@contextmanager
def renewed_by_the_world() -> Iterator[None]:
    """Leases are renewed by the clock of the world (`World.after_step`), and not by their threads.

    A thread goes by the machine's clock, and does not know that its process is killed: on a slow machine a seed
    took longer than a third of a ttl, and the thread kept the lease of a process that was gone.
    """
    with patch.object(HeldLease, "_keep", lambda _: None):
        yield


@functools.cache
@renewed_by_the_world()
def past_of(kind: str, number: int) -> World:
    """A past of a kind."""
    world = World(kind, random.Random(f"{kind} {number}"), is_past=True)
    world.begin()
    return world


def make_pasts() -> None:
    """Make all pasts: a rule that is left out later is kept in them."""
    for kind in KINDS:
        for number in range(PASTS):
            past_of(kind, number)


def names_of(seed: int) -> tuple[str, str]:
    """The pair that a seed is of."""
    return PAIRS[seed % len(PAIRS)]


@renewed_by_the_world()
def simulate_pair(seed: int, names: tuple[str, ...] = ()) -> dict[str, int]:
    """Run one seed; how often what happened.  Raises Violation with the seed in its message."""
    chance = random.Random(seed)
    pair = names or names_of(seed)
    if not names and chance.random() < 0.4:
        pair = (*pair, chance.choice(list(ACTORS)))
    kind = chance.choice(KINDS)
    world = World.of_seed(kind, past_of(kind, chance.randrange(PASTS)), chance)
    try:
        world.run(pair)
    except (AssertionError, LakeError) as error:
        raise Violation(
            f"seed {seed}, {' x '.join(pair)} ({kind}): {type(error).__name__}: {error}"
        ) from error
    finally:
        world.scheduler.bury()
    return world.happened


def failing_pairs(seeds: range) -> Iterator[tuple[int, str]]:
    """Seeds that fail, and how."""
    for seed in seeds:
        try:
            simulate_pair(seed)
        except Violation as violation:
            yield seed, str(violation)
