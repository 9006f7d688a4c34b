"""Branches against an oracle that replays: loads, deletes, replaces, compaction, upkeep, branches, merges, reverts.

The oracle holds for each branch the list of its loads, deletes and replaces.  A merge appends the unmerged ones of
the child to those of the parent; compaction, the application of deletes, checkpoints and new processes change
nothing, nor does a revert of one of these.
After every step each branch reads as a replay of its list says.

Anything may be reverted, reverts and undos too.  If the lake names the version to revert first, the machine does so
until the revert is possible: no remedy may lead back to itself, or to a version that cannot be reverted.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field, replace
from random import Random

import pyarrow as pa
from hypothesis import event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lake_core.errors import Conflict, InvalidInput, NotFound
from lake_core.ids import IdSource
from lake_core.journal import purge, write_state
from lake_core.keys import KeyRange
from log_lake.agents.tombstones.run import apply
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.rewriting.compaction import compact
from log_lake.stores.memory import MemoryStore

KEYS = st.integers(0, 4)
RANGES = st.tuples(st.integers(0, 4), st.integers(1, 3)).map(lambda at: (at[0], at[0] + at[1]))

FUNCTIONS = {"v": "sum", "first": "first", "last": "last"}


@dataclass(frozen=True)
class Op:
    """A load, a delete or a replace: the keys that it hides, of them only values below `below`; what it adds.

    `marks`: what it adds are delete markers.
    """

    adds: tuple[tuple[int, int], ...] = ()
    hides: tuple[int, int] | None = None
    below: int | None = None
    marks: bool = False

    @property
    def replaces(self) -> bool:
        return self.hides is not None and bool(self.adds)

    def hidden(self, record: tuple[int, int]) -> bool:
        if self.hides is None:
            return False
        return self.hides[0] <= record[0] < self.hides[1] and (self.below is None or record[1] < self.below)


@dataclass(frozen=True)
class Landed:
    """An operation on a branch: the version by which it came (back) there, and its place among the others."""

    op: Op
    version: int
    place: tuple[int, int]


@dataclass
class Line:
    """A branch: its operations; of a child also the unmerged ones, and its parent's version of the boundary."""

    ops: list[Landed] = field(default_factory=list)
    parent: str = ""
    unmerged: list[Landed] = field(default_factory=list)
    boundary: int = 0

    def land(self, op: Op, version: int) -> Landed:
        place = version, sum(landed.place[0] == version for landed in self.ops)
        landed = Landed(op, version, place)
        self.ops.append(landed)
        if self.parent:
            self.unmerged.append(landed)
        return landed

    def without(self, gone: set[tuple[int, int]]) -> None:
        self.ops = [landed for landed in self.ops if landed.place not in gone]
        self.unmerged = [landed for landed in self.unmerged if landed.place not in gone]

    def back(self, landed: list[Landed], version: int) -> None:
        """Operations that were reverted come back to their places."""
        again = [replace(one, version=version) for one in landed]
        self.ops = sorted([*self.ops, *again], key=lambda one: one.place)
        if self.parent:
            self.unmerged = sorted([*self.unmerged, *again], key=lambda one: one.place)


@dataclass(frozen=True)
class Done:
    """What a version did to a branch: operations that came or went.

    Of one that merged a branch (`forward`) or took that back: its `child`, the operations of it up to its version
    `upto` that are merged now, or unmerged again, and the parent's version of the boundary before.
    """

    branch: str
    came: tuple[Landed, ...] = ()
    went: tuple[Landed, ...] = ()
    child: str = ""
    moved: tuple[Landed, ...] = ()
    forward: bool = False
    upto: int = 0
    boundary: int = 0
    is_upkeep: bool = False


def replayed(ops: list[Landed], kind: str) -> list[tuple[int, ...]]:
    """The records that the operations leave; of an aggregate pool the sum, the first and the last value."""
    replay: list[tuple[tuple[int, int], bool]] = []
    for landed in ops:
        replay = [(record, visible and not landed.op.hidden(record)) for record, visible in replay]
        replay += [(record, True) for record in landed.op.adds]
    if kind == "upsert":
        replay = list({record[0]: (record, visible) for record, visible in replay}.values())
        marked = {record for landed in ops if landed.op.marks for record in landed.op.adds}
        replay = [(record, visible and record not in marked) for record, visible in replay]
    left = [record for record, visible in replay if visible]
    if kind != "aggregate":
        return [*left]
    values = {key: [v for k, v in left if k == key] for key, _ in left}
    return [(key, sum(of_key), of_key[0], of_key[-1]) for key, of_key in values.items()]


class Branches(RuleBasedStateMachine):
    """Random work on the branches of one pool."""

    @initialize(kind=st.sampled_from(["append", "upsert", "aggregate"]))
    def begin(self, kind: str) -> None:
        self.kind, self.value = kind, 0
        # ids share seconds, and the same examples have the same ids each time
        ids = IdSource(clock=itertools.count(2_000_000_000, 0.25).__next__, entropy=Random(0).randbytes)
        self.lake = Lake.create_on(MemoryStore(), ids=ids)
        self.pool: Pool = self.lake.create_pool(
            "p", key="k", kind=kind, aggregates=FUNCTIONS if kind == "aggregate" else {}
        )
        self.lines = {"main": Line()}
        self.past: dict[int, dict[str, list[Landed]]] = {0: {"main": []}}
        self.made = 0
        self.done: dict[int, Done] = {}

    def records(self, keys: list[int]) -> tuple[tuple[int, int], ...]:
        if self.kind != "append":
            keys = sorted(set(keys))
        made = []
        for key in keys:
            self.value += 1
            made.append((key, self.value))
        return tuple(made)

    def pick(self, at: int) -> str:
        return sorted(self.lines)[at % len(self.lines)]

    def note(self, version: int | None) -> None:
        if version is not None:
            self.past[version] = {name: list(line.ops) for name, line in self.lines.items()}

    def key_range(self, span: tuple[int, int]) -> KeyRange:
        return self.pool.at().key_range(low=span[0], high=span[1])

    @rule(at=st.integers(0, 9), keys=st.lists(KEYS, min_size=1, max_size=4), marks=st.booleans())
    def load(self, at: int, keys: list[int], marks: bool) -> None:
        name, records, marks = self.pick(at), self.records(keys), marks and self.kind == "upsert"
        version = self.pool.branch(name).append(table(records, marks=marks)).version
        assert version is not None
        self.done[version] = Done(name, (self.lines[name].land(Op(records, marks=marks), version),))
        self.note(version)

    @rule(at=st.integers(0, 9), span=RANGES, below=st.none() | st.integers(1, 30))
    def delete(self, at: int, span: tuple[int, int], below: int | None) -> None:
        name = self.pick(at)
        if not self.pool.at(name).schema.names:
            return
        below = None if self.kind == "aggregate" else below  # there conditions name the key only
        where = None if below is None else f"v < {below}"
        done = self.pool.branch(name).delete(key_range=self.key_range(span), where=where)
        # a delete that finds nothing on its branch is no transaction, and no merge replays it
        if done.version is not None:
            landed = self.lines[name].land(Op(hides=span, below=below), done.version)
            self.done[done.version] = Done(name, (landed,))
            self.note(done.version)

    @rule(at=st.integers(0, 9), span=RANGES, count=st.integers(1, 2))
    def replace(self, at: int, span: tuple[int, int], count: int) -> None:
        name, records = self.pick(at), self.records([span[0]] * count)
        version = self.pool.branch(name).replace_with(table(records), key_range=self.key_range(span)).version
        assert version is not None
        self.done[version] = Done(name, (self.lines[name].land(Op(records, span), version),))
        self.note(version)

    @precondition(lambda self: len(self.lines) < 5)
    @rule(at=st.integers(0, 9))
    def branch(self, at: int) -> None:
        parent = self.pick(at)
        self.made += 1
        done = self.pool.create_branch(f"b{self.made}", at=parent)
        self.lines[f"b{self.made}"] = Line(list(self.lines[parent].ops), parent, boundary=done.at)
        self.note(done.version)

    @precondition(lambda self: len(self.lines) < 5)
    @rule(at=st.integers(0, 99))
    def branch_on_an_older_revision(self, at: int) -> None:
        version = sorted(self.past)[at % len(self.past)]
        if version == 0:
            return
        parent = self.pool.at(str(version)).branch
        if parent not in self.lines or parent not in self.past[version]:
            return
        self.made += 1
        done = self.pool.create_branch(f"b{self.made}", at=str(version))
        ops = self.past[version][parent]
        self.lines[f"b{self.made}"] = Line(list(ops), parent, boundary=done.at)
        self.note(done.version)

    @rule(at=st.integers(0, 9))
    def delete_branch(self, at: int) -> None:
        name = self.pick(at)
        if name != "main" and not any(line.parent == name for line in self.lines.values()):
            root = self.pool.delete_branch(name).root
            if at % 2:
                self.note(self.pool.create_branch(name, at=root).version)
            else:
                del self.lines[name]
                self.done = {v: d for v, d in self.done.items() if d.branch != name}

    @rule(at=st.integers(0, 9))
    def merge(self, at: int) -> None:
        name = self.pick(at)
        line = self.lines[name]
        if not line.parent:
            return
        parent = self.lines[line.parent]
        ours = [landed.op for landed in line.unmerged if landed.op.replaces]
        theirs = [one for one in parent.ops if one.op.replaces and one.version > line.boundary]
        conflicts = {one.place for one in theirs if any(overlap(a, one.op) for a in ours)}
        # one that was reverted and came back counts anew, unless its tombstone had been retired before
        surely = any(place[0] > line.boundary for place in conflicts)
        try:
            done = self.pool.branch(line.parent).merge(name)
        except Conflict as error:
            expected = bool(conflicts) or "takes back a load that is merged already" in str(error)
            assert expected
            return
        assert not surely
        if done.version is None:
            assert not line.unmerged
        else:
            came = tuple(parent.land(landed.op, done.version) for landed in line.unmerged)
            moved = tuple(line.unmerged)
            self.done[done.version] = Done(
                line.parent, came, (), name, moved, forward=True, upto=done.upto, boundary=line.boundary
            )
            line.unmerged, line.boundary = [], done.version
            self.note(done.version)

    @precondition(lambda self: self.done)
    @rule(at=st.integers(0, 99))
    def revert(self, at: int) -> None:
        first = sorted(self.done, reverse=True)[at % min(8, len(self.done))]
        versions, steps = [first], 0
        while versions:
            steps += 1
            assert steps < 60, versions
            try:
                self.take_back(versions[-1])
            except Conflict as error:
                named = re.search(r"revert (?:the )?version (\d+)", str(error))
                if named is None:
                    event(re.sub(r"\S*\d\S*", "N", str(error)))
                    return
                is_cycle, case = int(named[1]) in versions, (versions, str(error))
                assert not is_cycle, case
                versions.append(int(named[1]))
            except InvalidInput as error:
                is_last, case = len(versions) == 1 or "is merged into" in str(error), (versions, str(error))
                assert is_last, case
                return
            except NotFound:  # its entries are purged
                return
            else:
                versions.pop()

    def take_back(self, version: int) -> None:
        """Revert a version, in the lake and in the model."""
        what = self.done[version]
        line, child = self.lines[what.branch], self.lines.get(what.child)
        now = self.pool.branch(what.branch).revert(str(version)).version
        event("reverted upkeep" if what.is_upkeep else "reverted")
        places = {landed.place for landed in what.came}
        came = tuple(replace(landed, version=now) for landed in what.went)
        went = tuple(landed for landed in line.ops if landed.place in places)
        line.without(places)
        line.back(list(came), now)
        moved, boundary = what.moved, what.boundary
        if child is not None:
            boundary, child.boundary = child.boundary, what.boundary
            if what.forward:  # it is unmerged again
                child.unmerged = sorted([*moved, *child.unmerged], key=lambda one: one.place)
            else:
                moved = tuple(one for one in child.unmerged if one.place[0] <= what.upto)
                child.unmerged = [one for one in child.unmerged if one.place[0] > what.upto]
        self.done[now] = Done(
            what.branch,
            came,
            went,
            what.child if child is not None else "",
            moved,
            not what.forward,
            what.upto,
            boundary,
            what.is_upkeep,
        )
        self.note(now)

    @rule(at=st.integers(0, 9), seed=st.integers(0, 1000), upkeep=st.booleans())
    def compact(self, at: int, seed: int, upkeep: bool) -> None:
        name, random = self.pick(at), Random(seed)
        view = self.pool.at(name)
        side = random.random() < 0.5
        held = [r for r in view.references if view.held.is_unmerged(r) == side]
        if upkeep:
            apply(self.pool.branch(name), now=self.pool.context.now() + 1e9, at_once=True)
        elif held:
            chosen = random.sample(held, random.randint(1, len(held)))
            try:
                compact(self.pool.branch(name), chosen, outputs=random.randint(1, 2))
            except Conflict:
                assert self.kind == "aggregate"  # one that is not chosen lies between
        newest = self.pool.history.load().version
        if newest > view.version:
            self.done |= dict.fromkeys(range(view.version + 1, newest + 1), Done(name, is_upkeep=True))

    @rule(checkpoint=st.booleans(), purges=st.booleans())
    def reopen(self, checkpoint: bool, purges: bool) -> None:
        journal = self.pool.history.journal
        loaded = journal.load()
        if checkpoint and loaded.version:
            write_state(journal, loaded, id=self.pool.context.ids.new(), now=self.pool.context.now())
            if purges:
                purge(journal, until=loaded.version)
                self.past = {loaded.version: {n: list(line.ops) for n, line in self.lines.items()}}
        self.lake = Lake.open_on(self.lake.store, ids=self.lake.context.ids)
        self.pool = self.lake.pool("p")

    @invariant()
    def every_branch_reads_as_replayed(self) -> None:
        for name, line in getattr(self, "lines", {}).items():
            expected = replayed(line.ops, self.kind)
            fields = ("k", "v", "first", "last") if self.kind == "aggregate" else ("k", "v")
            records = [
                tuple(row[name] for name in fields) for row in self.pool.at(name).to_table().to_pylist()
            ]
            assert sorted(records) == sorted(expected), name
            assert records == sorted(expected, key=lambda record: record[0]), (
                f"{name}: the order of equal keys"
            )


def table(records: tuple[tuple[int, int], ...], *, marks: bool = False) -> pa.Table:
    values = [v for _, v in records]
    columns = {"k": [k for k, _ in records], "v": values, "first": values, "last": values}
    return pa.table(columns | ({"_deleted": [True] * len(records)} if marks else {}))


def overlap(a: Op, b: Op) -> bool:
    assert a.hides is not None
    assert b.hides is not None
    return a.hides[0] < b.hides[1] and b.hides[0] < a.hides[1]


BranchesTest = Branches.TestCase
BranchesTest.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)


class Reverts(Branches):
    """Few records on `main` and at most one branch, so that reverts meet upkeep and each other."""

    reopen = delete_branch = branch_on_an_older_revision = branch = None  # type: ignore[assignment]

    @initialize(kind=st.sampled_from(["append", "upsert", "aggregate"]), forks=st.booleans())
    def begin(self, kind: str, forks: bool) -> None:
        super().begin(kind)
        self.load(0, [0, 1], marks=False)
        if forks:
            Branches.branch(self, 0)

    @rule(at=st.integers(0, 7))
    def revert_again(self, at: int) -> None:
        self.revert(at)

    @rule()
    def apply_deletes(self) -> None:
        self.compact(0, 0, upkeep=True)

    @rule(at=st.integers(0, 9))
    def compact_everything(self, at: int) -> None:
        name = self.pick(at)
        view = self.pool.at(name)
        for side in (False, True):
            references = [r for r in view.references if view.held.is_unmerged(r) == side]
            if references:
                version = compact(self.pool.branch(name), references).version
                self.done[version] = Done(name, is_upkeep=True)


RevertsTest = Reverts.TestCase
RevertsTest.settings = settings(max_examples=100, stateful_step_count=25, deadline=None)
