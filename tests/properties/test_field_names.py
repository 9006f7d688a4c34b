"""Random histories of edits of fields, loads, deletes and branches show what a simple model says, by version.

The model knows no stored names.  A field has an identity, which is its name and how often that name was given to
another field or dropped before.  Old writers begin a load, and commit it after others have edited fields.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import Conflict, InvalidInput, NotFound
from lake_core.journal import write_state
from log_lake.agents.compact.run import compact_pool, plan_pool
from log_lake.agents.tombstones.run import apply
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.lake.results import PendingLoad
from log_lake.stores.memory import MemoryStore
from log_lake.system_tables.sql import query

NOW = 2_000_000_000.0
NAMES = "abcd"
HISTORIES = 60
"""On 2026-11-30 seeds 0 to 499 ran, and none failed."""
STEPS = 20

Identity = tuple[str, int]
Record = dict[Identity, int]
Rows = list[tuple[tuple[str, Any], ...]]


@dataclass
class Model:
    """What readers should see: the identity of each name that was edited, and the records by branch."""

    names: dict[str, Identity] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=dict)
    known: set[Identity] = field(default_factory=set)
    records: dict[str, list[Record]] = field(default_factory=lambda: {"main": [], "dev": []})

    def of(self, name: str) -> Identity:
        return self.names.get(name, (name, self.taken.get(name, 0)))

    @property
    def shown(self) -> dict[str, Identity]:
        """The names that are in use."""
        return {name: self.of(name) for name in NAMES if self.of(name) in self.known}

    def edit(self, name: str, new: str | None) -> bool:
        """Does the edit; whether it is possible."""
        if name not in self.shown or new in self.shown:
            return False
        moved = self.of(name)
        for one in (name,) if new is None else (name, new):
            self.names.pop(one, None)
            self.taken[one] = self.taken.get(one, 0) + 1
        if new is not None:
            self.names[new] = moved
        return True

    def add(self, name: str) -> bool:
        """Adds the field; whether it is possible."""
        if name in self.shown:
            return False
        self.known.add(self.of(name))
        return True

    def seen(self, branch: str) -> Rows:
        """The records that readers of a branch see."""
        called = {one: name for name, one in self.shown.items()} | {("k", 0): "k"}
        records = self.records[branch]
        return alike({called[one]: value for one, value in r.items() if one in called} for r in records)


@dataclass
class History:
    """One random history of a pool, and of its model."""

    random: random.Random
    lake: Lake
    pool: Pool
    model: Model = field(default_factory=Model)
    late: list[tuple[PendingLoad, dict[str, Identity], int]] = field(default_factory=list)
    by_version: dict[int, tuple[set[str], set[str], Rows]] = field(default_factory=dict)
    branches: int = 0
    branched: bool = False
    own: list[Record] = field(default_factory=list)
    """What the branch has that `main` does not have yet."""
    number: int = 0
    added: set[Identity] = field(default_factory=set)
    """The fields that readers see before a record has them."""

    @property
    def branch_name(self) -> str:
        return f"dev{self.branches}"

    def records(self) -> list[dict[str, int]]:
        names = self.random.sample(NAMES, self.random.randint(1, len(NAMES)))
        made = []
        for _ in range(self.random.randint(1, 4)):
            self.number += 1
            made.append({"k": self.number, **{name: self.random.randint(0, 3) for name in names}})
        return made

    def loaded(self, rows: list[dict[str, int]], identities: dict[str, Identity], branch: str) -> None:
        self.model.known |= {identities[name] for name in rows[0]} - {("k", 0)}
        records = [{identities[name]: value for name, value in row.items()} for row in rows]
        self.model.records[branch] += records
        if branch == "main" and not self.branched:
            self.model.records["dev"] += records

    def identities(self) -> dict[str, Identity]:
        return {"k": ("k", 0), **{name: self.model.of(name) for name in NAMES}}

    def step(self) -> None:
        what = self.random.choice(
            ["load"] * 4
            + [
                "begin",
                "end",
                "end",
                "rename",
                "rename",
                "rename",
                "drop",
                "add",
                "add",
                "delete",
                "upkeep",
                "dev",
            ]
        )
        getattr(self, what)()
        version = self.pool.history.load().version
        shown = self.model.shown
        added = {name for name, identity in shown.items() if identity in self.added}
        self.by_version[version] = (set(shown), added, self.model.seen("main"))

    def load(self) -> None:
        rows = self.records()
        self.pool.branch().append(pa.Table.from_pylist(rows))
        self.loaded(rows, self.identities(), "main")

    def begin(self) -> None:
        pending = self.pool.branch().begin_load()
        assert isinstance(pending, PendingLoad)
        self.late.append((pending, self.identities(), self.pool.history.load().version))

    def end(self) -> None:
        """Commits a load that began some steps ago."""
        if not self.late:
            return
        pending, identities, _ = self.late.pop(self.random.randrange(len(self.late)))
        rows, branch = self.records(), self.pool.branch()
        with branch.builder(pending) as building:
            building.add(branch.block(pa.Table.from_pylist(rows)))
            written = building.finish()
        new = {identities[name] for name in rows[0]} - self.model.known - {("k", 0)}
        overlooked = new - {self.model.of(name) for name in NAMES}
        try:
            branch.commit(pending, objects=[w.action for w in written], schemas=[w.schema for w in written])
        except Conflict:
            assert overlooked
            return
        assert not overlooked
        self.loaded(rows, identities, "main")

    def rename(self) -> None:
        old, new = self.random.sample(NAMES, 2)
        self._edited(lambda: self.pool.rename_field(old=old, new=new), self.model.edit(old, new))

    def drop(self) -> None:
        name = self.random.choice(NAMES)
        self._edited(lambda: self.pool.drop_field(name), self.model.edit(name, None))

    def add(self) -> None:
        name = self.random.choice(NAMES)
        possible = self.model.add(name)
        if possible:
            self.added.add(self.model.of(name))
        self._edited(lambda: self.pool.add_field(name, "bigint"), possible)

    def _edited(self, edit: Any, possible: bool) -> None:
        before = self.pool.history.load().version
        if not possible:
            with pytest.raises((NotFound, InvalidInput)):
                edit()
            return
        assert edit().version == before + 1

    def delete(self) -> None:
        view = self.pool.at()
        names = [name for name in NAMES if name in view.schema.names]
        if not names:
            return
        name, value = self.random.choice(names), self.random.randint(0, 3)
        self.pool.branch().delete(where=f"{name} = {value}")
        identity = self.model.of(name)
        kept = [one for one in self.model.records["main"] if one.get(identity) != value]
        self.model.records["main"] = kept
        if not self.branched:
            self.model.records["dev"] = list(kept)

    def upkeep(self) -> None:
        if self.random.random() < 0.5:
            compact_pool(self.lake, "p", plan_pool(self.lake, "p", strategy="full", now=NOW))
        else:
            apply(self.pool.branch(), now=NOW, at_once=True)
        if self.random.random() < 0.3:
            journal = self.pool.history.journal
            write_state(journal, journal.load(), id=self.lake.context.ids.new(), now=0.0)
            self.lake = Lake.open_on(self.lake.store)
            self.pool = self.lake.pool("p")

    def dev(self) -> None:
        """Creates a branch, loads into it, or merges it."""
        if not self.branched:
            if self.pool.history.load().version:
                self.branches += 1
                self.pool.create_branch(f"dev{self.branches}")
                self.branched, self.own = True, []
            return
        if self.random.random() < 0.6:
            rows = self.records()
            self.pool.branch(self.branch_name).append(pa.Table.from_pylist(rows))
            before = len(self.model.records["dev"])
            self.loaded(rows, self.identities(), "dev")
            self.own += self.model.records["dev"][before:]
            return
        assert seen(self.pool, self.branch_name) == self.model.seen("dev")
        self.pool.branch().merge(self.branch_name)
        self.model.records["main"] += self.own
        self.model.records["dev"], self.branched = list(self.model.records["main"]), False


def alike(rows: Iterable[dict[str, Any]]) -> Rows:
    """The records in an order of their own, without fields that are null."""
    return sorted(tuple(sorted((n, v) for n, v in row.items() if v is not None)) for row in rows)


def seen(pool: Pool, revision: str) -> Rows:
    return alike(pool.at(revision).to_table().to_pylist())


def run(seed: int) -> None:
    lake = Lake.create_on(MemoryStore())
    pool = lake.create_pool("p", key="k", settings={"load.inline": "1KiB"} if seed % 3 == 0 else {})
    one = History(random.Random(seed), lake, pool)
    for _ in range(STEPS):
        one.step()
    for version, (names, added, records) in one.by_version.items():
        if version:
            view = one.pool.at_version(version)
            assert alike(view.to_table().to_pylist()) == records, (seed, version)
            assert added <= set(view.schema.names) <= {"k", *names}, (seed, version)
    answers_alike(one)


def answers_alike(one: History) -> None:
    """By SQL, by a condition, and in a clone, the newest version says the same."""
    expected = one.model.seen("main")
    if not expected:
        return
    rows = [dict(row) for row in expected]
    names = [name for name in one.pool.at().schema.names if name != "k"]
    for name in names:
        found = one.pool.at().to_table(where=f"{name} >= 2").to_pylist()
        assert alike(found) == alike(row for row in rows if row.get(name, -1) >= 2)
    asked = ", ".join(f'count("{name}") AS n_{name}, max("{name}") AS m_{name}' for name in names)
    values = {name: [row[name] for row in rows if name in row] for name in names}
    told = {f"n_{name}": len(of) for name, of in values.items()}
    told |= {f"m_{name}": max(of, default=None) for name, of in values.items()}
    if names:
        assert query(one.lake, f"SELECT {asked} FROM p").read_all().to_pylist() == [told]
    one.lake.clone("p", "q")
    assert seen(one.lake.pool("q"), "main") == expected


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_histories(seed: int) -> None:
    run(seed)
