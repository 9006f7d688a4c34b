"""After an erasure no object on the store holds such a record, unless the receipt names it as held.

A random history of a pool of each kind: loads, deletes, compactions committed and abandoned, applied deletes,
branches, merges, tags, deleted branches, a reader with a lease.  Then an erasure, and every object that is left on
the store is read by Arrow alone.  Then what holds objects is released, and the erasure goes on to its end.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lake_core.errors import Conflict, LakeError
from lake_core.journal import write_state
from lake_core.keys import KeyRange
from lake_core.keys.encoding import AFTER
from log_lake.agents.tombstones import run as tombstones
from log_lake.erasure import run
from log_lake.erasure.receipt import DONE, PENDING, Receipt
from log_lake.erasure.run import erase
from log_lake.erasure.search import Search
from log_lake.erasure.target import Target
from log_lake.erasure.verify import verify
from log_lake.leases import HeldLease, LeaseNote
from log_lake.repair.finding import DAMAGE
from log_lake.repair.fsck import Fsck
from log_lake.rewriting.compaction import begin_compaction
from log_lake.rewriting.work import write_piece
from log_lake.workers import Worker
from tests.support.rewrites import committed as commit_now
from tests.unit.erasure.conftest import Row, World

KEYS, NAMES = 6, ("ann", "bob", "cid", None)

Asked = tuple[str | None, int | None, Callable[[Row], bool]]
"""A condition, or a key; and whether a stored record is such a one."""


def by_name(row: Row) -> bool:
    return bool(row.get("who") == "ann")


def by_key(row: Row) -> bool:
    return bool(row.get("k") == 3)


def by_both(row: Row) -> bool:
    return bool(row.get("who") == "ann" and row.get("k") is not None and row["k"] <= 3)


ASKED: dict[str, Asked] = {
    "name": ("who = 'ann'", None, by_name),
    "key": (None, 3, by_key),
    "condition on the key": ("k = 3", None, by_key),
    "both": ("who = 'ann' and k <= 3", None, by_both),
}


@dataclass
class Random:
    """What happens to a pool, by chance."""

    kind: str
    chance: random.Random
    leases: list[HeldLease] = field(default_factory=list)
    number: int = 0

    def __post_init__(self) -> None:
        self.world = World(self.kind, settings={"load.inline": self.chance.choice(["0", "64KiB"])})
        self.pool = self.world.pool

    def step(self, what: str) -> None:
        """One step; what is refused (a merge that conflicts) is left out."""
        self.world.clock.now += 1
        self.number += 1
        branch = self.chance.choice(sorted(self.pool.history.load().state.branches))
        try:
            getattr(self, what.replace(" ", "_"))(branch)
        except LakeError:
            return

    def load(self, branch: str) -> None:
        rows: list[dict[str, Any]] = []
        for _ in range(self.chance.randint(1, 6)):
            row = {"k": self.chance.randrange(KEYS), "who": self.chance.choice(NAMES), "n": 1}
            if self.kind == "upsert":
                row["_deleted"] = self.chance.random() < 0.15
            elif self.kind == "append" and self.chance.random() < 0.1:
                row["k"] = None
            rows.append(row)
        self.pool.branch(branch).append(pa.Table.from_pylist(rows))

    def delete(self, branch: str) -> None:
        key = self.chance.randrange(KEYS)
        where = f"k = {key}" if self.kind == "aggregate" or self.chance.random() < 0.5 else "who = 'ann'"
        self.pool.branch(branch).delete(where=where)

    def compact(self, branch: str, *, committed: bool = True) -> None:
        held = self.pool.at(branch).references
        if not held:
            return
        chosen = (
            held if self.kind == "aggregate" else self.chance.sample(held, self.chance.randint(1, len(held)))
        )
        target = self.pool.branch(branch)
        work = begin_compaction(target, chosen, outputs=1, message="")
        written = write_piece(work, Worker(lambda: self.pool.store, self.pool.context.ids.new), 0)
        if committed:
            commit_now(target, work, [written])

    def abandon(self, branch: str) -> None:
        self.compact(branch, committed=False)

    def apply(self, branch: str) -> None:
        tombstones.apply(self.pool.branch(branch), now=self.world.clock.now, at_once=True)

    def branch(self, branch: str) -> None:
        self.pool.create_branch(f"b{self.number}", at=branch)

    def merge(self, branch: str) -> None:
        fork = self.pool.history.load().state.branches[branch].fork
        if fork is not None:
            self.pool.branch(fork.parent).merge(branch)

    def tag(self, branch: str) -> None:
        self.pool.tag(f"t{self.number}", at=branch)

    def delete_branch(self, branch: str) -> None:
        self.pool.delete_branch(branch)

    def checkpoint(self, branch: str) -> None:
        history = self.pool.history
        write_state(history.journal, history.load(), id=self.pool.context.ids.new(), now=self.world.clock.now)

    def lease(self, branch: str) -> None:
        note = LeaseNote("read", self.pool.history.load().version, "reader", 3600.0)
        held = HeldLease(
            self.pool.store, self.pool.config.id, self.pool.context.ids.new(), note, renewing=False
        )
        self.leases.append(held.__enter__())

    def release(self) -> None:
        """Delete every tag, those of deleted branches too, end every lease, and let orphans grow old."""
        for name in self.pool.tags:
            self.pool.delete_tag(name)
        for lease in self.leases:
            lease.__exit__(None, None, None)
        self.world.clock.now += 30 * 86_400

    def seen(self) -> dict[str, list[Row]]:
        """What a reader sees on each branch, records without the key too."""
        found = {}
        for name in sorted(self.pool.history.load().state.branches):
            tables = [self.pool.at(name), self.world.lake.pool("p.$nokey").at(name)]
            rows = [row for view in tables for row in view.to_table().to_pylist()]
            found[name] = sorted(({k: v for k, v in r.items() if v is not None} for r in rows), key=repr)
        return found


STEPS = (
    ["load"] * 5
    + ["delete", "compact", "compact", "abandon", "apply", "branch", "branch", "merge"]
    + ["tag", "delete branch", "checkpoint", "lease"]
)


def ask(one: Random, asked: Asked) -> Receipt:
    where, key, _ = asked
    if key is None:
        return erase(one.world.reopened(), where=where)
    prefix = one.pool.at().bound(key)
    return erase(one.world.reopened(), key_range=KeyRange(prefix, prefix + AFTER))


def check(kind: str, what: str, steps: list[str], seed: int) -> None:
    """One history, an erasure, and what is left on the store."""
    if kind == "aggregate":  # other fields are combined of many records
        what = "key" if what in ("key", "name") else "condition on the key"
    one, asked = Random(kind, random.Random(seed)), ASKED[what]
    is_such = asked[2]
    one.step("load")
    for step in steps:
        one.step(step)
    expected = {name: [row for row in rows if not is_such(row)] for name, rows in one.seen().items()}
    receipt = ask(one, asked)
    assert one.seen() == expected
    assert one.world.holding(is_such) <= {held.object for held in receipt.held}
    assert (receipt.status == PENDING) == bool(receipt.held)
    one.release()
    done = ask(one, asked)
    assert done.status == DONE
    assert one.seen() == expected
    assert not one.world.holding(is_such)
    assert not one.world.in_journal(is_such)
    assert not list(verify(one.world.reopened(), done))
    findings = Fsck(one.world.lake.context, [], data=True, older_than=0.0).run()
    assert not [found for found in findings if found.severity == DAMAGE]


KINDS = ("append", "upsert", "aggregate")


@pytest.mark.parametrize("kind", KINDS)
@given(
    what=st.sampled_from(sorted(ASKED)),
    steps=st.lists(st.sampled_from(STEPS), min_size=2, max_size=14),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_object_on_the_store_holds_such_a_record_unless_the_receipt_names_it(
    kind: str, what: str, steps: list[str], seed: int
) -> None:
    check(kind, what, steps, seed)


RULES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "removed objects are searched": lambda m: m.setattr(Search, "removed", lambda self, state, *, now: []),
    "orphans are searched": lambda m: m.setattr(Search, "uncommitted", lambda self, state, names: []),
    "tags are searched": lambda m: m.setattr(Search, "in_tags", lambda self, state, names, *, now: iter(())),
    "the journal is searched": lambda m: m.setattr(run, "inlined_objects", lambda *_, **__: iter(())),
    "records without the key are searched": lambda m: m.setattr(
        Target, "sub_pools", property(lambda self: (self.sub_pool,))
    ),
    "a marker keeps older versions away": lambda m: m.setattr(
        Target, "leaves_markers", lambda self, sub_pool: False
    ),
}
"""Rules of the search and the rewrite; tests/unit/erasure holds the order of the steps by kills."""


@pytest.mark.parametrize("rule", RULES)
def test_without_the_rule_some_history_fails(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    RULES[rule](monkeypatch)
    chance = random.Random(5)
    for _ in range(40):
        steps = [chance.choice(STEPS) for _ in range(chance.randint(4, 20))]
        kind, what, seed = chance.choice(KINDS), chance.choice(sorted(ASKED)), chance.randrange(2**32)
        try:
            check(kind, what, steps, seed)
        except (AssertionError, Conflict):  # what holds objects is not understood, and is met in every round
            return
    pytest.fail(f"no history fails without: {rule}")
