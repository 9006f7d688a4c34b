"""Branches against an oracle that replays: loads, deletes, replaces, compaction, upkeep, branches, merges, reverts.

The oracle holds for each branch the list of its loads, deletes and replaces.  A merge appends the unmerged ones of
the child to those of the parent; compaction, the application of deletes, checkpoints and new processes change
nothing.
After every step each branch reads as a replay of its list says.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from random import Random

import pyarrow as pa
from hypothesis import event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lake_core.agents.compact.rewrite import compact
from lake_core.agents.tombstones.run import apply
from lake_core.errors import Conflict, InvalidInput, NotFound
from lake_core.journal import purge, write_state
from lake_core.keys import KeyRange
from lake_core.lake import Lake
from lake_core.lake.pool import Pool
from lake_core.store.memory import MemoryStore

KEYS = st.integers(0, 4)
RANGES = st.tuples(st.integers(0, 4), st.integers(1, 3)).map(lambda at: (at[0], at[0] + at[1]))


@dataclass(frozen=True)
class Op:
    """A load, a delete or a replace: the keys that it hides, of them only values below `below`; what it adds."""

    adds: tuple[tuple[int, int], ...] = ()
    hides: tuple[int, int] | None = None
    below: int | None = None

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
    """What a version did to a branch: operations that came or went; of a merge its child, and how that was."""

    branch: str
    came: tuple[Landed, ...] = ()
    went: tuple[Landed, ...] = ()
    child: str = ""
    unmerged: tuple[Landed, ...] = ()
    boundary: int = 0


def replayed(ops: list[Landed], kind: str) -> list[tuple[int, int]]:
    """The records that the operations leave."""
    found: list[tuple[tuple[int, int], bool]] = []
    for landed in ops:
        found = [(record, visible and not landed.op.hidden(record)) for record, visible in found]
        found += [(record, True) for record in landed.op.adds]
    if kind == "upsert":
        found = list({record[0]: (record, visible) for record, visible in found}.values())
    return [record for record, visible in found if visible]


class Branches(RuleBasedStateMachine):
    """Random work on the branches of one pool."""

    @initialize(kind=st.sampled_from(["append", "upsert"]))
    def begin(self, kind: str) -> None:
        self.kind, self.value = kind, 0
        self.lake = Lake.create_on(MemoryStore())
        self.pool: Pool = self.lake.create_pool("p", key="k", kind=kind)
        self.lines = {"main": Line()}
        self.past: dict[int, dict[str, list[Landed]]] = {0: {"main": []}}
        self.made = 0
        self.done: dict[int, Done] = {}
        self.upkeep: dict[int, str] = {}

    def records(self, keys: list[int]) -> tuple[tuple[int, int], ...]:
        if self.kind == "upsert":
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

    @rule(at=st.integers(0, 9), keys=st.lists(KEYS, min_size=1, max_size=4))
    def load(self, at: int, keys: list[int]) -> None:
        name, records = self.pick(at), self.records(keys)
        version = self.pool.branch(name).append(table(records)).version
        assert version is not None
        self.done[version] = Done(name, (self.lines[name].land(Op(records), version),))
        self.note(version)

    @rule(at=st.integers(0, 9), span=RANGES, below=st.none() | st.integers(1, 30))
    def delete(self, at: int, span: tuple[int, int], below: int | None) -> None:
        name = self.pick(at)
        if not self.pool.at(name).schema.names:
            return
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
                self.upkeep = {v: b for v, b in self.upkeep.items() if b != name}

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
        except Conflict:
            assert conflicts
            return
        assert not surely
        if done.version is None:
            assert not line.unmerged
        else:
            came = tuple(parent.land(landed.op, done.version) for landed in line.unmerged)
            self.done[done.version] = Done(line.parent, came, (), name, tuple(line.unmerged), line.boundary)
            line.unmerged, line.boundary = [], done.version
            self.note(done.version)

    @precondition(lambda self: self.done)
    @rule(at=st.integers(0, 99))
    def revert(self, at: int) -> None:
        version = sorted(self.done, reverse=True)[at % min(6, len(self.done))]
        what = self.done[version]
        line, child = self.lines[what.branch], self.lines.get(what.child)
        try:
            now = self.pool.branch(what.branch).revert(str(version)).version
        except (Conflict, InvalidInput, NotFound):
            event("revert refused")
            return
        event("reverted")
        places = {landed.place for landed in what.came}
        assert places <= {landed.place for landed in line.ops}
        came = tuple(replace(landed, version=now) for landed in what.went)
        went = tuple(landed for landed in line.ops if landed.place in places)
        line.without(places)
        line.back(list(came), now)
        before = (tuple(child.unmerged), child.boundary) if child is not None else ((), 0)
        if child is not None and what.came:  # of a merge: it is unmerged again
            child.unmerged = [*what.unmerged, *child.unmerged]
            child.boundary = what.boundary
        elif child is not None:  # of the revert of a merge: it counts as merged again
            merged = {landed.place for landed in what.unmerged}
            child.unmerged = [landed for landed in child.unmerged if landed.place not in merged]
            child.boundary = what.boundary
        unmerged = before[0] if child is not None and what.went else what.unmerged
        boundary = before[1]
        self.done[now] = Done(what.branch, came, went, what.child, unmerged, boundary)
        self.note(now)

    @precondition(lambda self: self.upkeep)
    @rule(at=st.integers(0, 99))
    def undo(self, at: int) -> None:
        version = sorted(self.upkeep, reverse=True)[at % min(4, len(self.upkeep))]
        with contextlib.suppress(Conflict, InvalidInput, NotFound):
            self.pool.branch(self.upkeep[version]).undo(str(version))
            event("undone")

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
            done = compact(self.pool.branch(name), chosen, outputs=random.randint(1, 2))
            assert done.version is not None
        newest = self.pool.history.load().version
        if newest > view.version:
            self.upkeep |= dict.fromkeys(range(view.version + 1, newest + 1), name)

    @rule(checkpoint=st.booleans(), purges=st.booleans())
    def reopen(self, checkpoint: bool, purges: bool) -> None:
        journal = self.pool.history.journal
        loaded = journal.load()
        if checkpoint and loaded.version:
            write_state(journal, loaded, id=self.pool.context.ids.new(), now=self.pool.context.now())
            if purges:
                purge(journal, until=loaded.version)
                self.past = {loaded.version: {n: list(line.ops) for n, line in self.lines.items()}}
        self.lake = Lake.open_on(self.lake.store)
        self.pool = self.lake.pool("p")

    @invariant()
    def every_branch_reads_as_replayed(self) -> None:
        for name, line in getattr(self, "lines", {}).items():
            expected = replayed(line.ops, self.kind)
            found = [(row["k"], row["v"]) for row in self.pool.at(name).to_table().to_pylist()]
            assert sorted(found) == sorted(expected), name
            assert found == sorted(expected, key=lambda record: record[0]), f"{name}: the order of equal keys"


def table(records: tuple[tuple[int, int], ...]) -> pa.Table:
    return pa.table({"k": [k for k, _ in records], "v": [v for _, v in records]})


def overlap(a: Op, b: Op) -> bool:
    assert a.hides is not None
    assert b.hides is not None
    return a.hides[0] < b.hides[1] and b.hides[0] < a.hides[1]


BranchesTest = Branches.TestCase
BranchesTest.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
