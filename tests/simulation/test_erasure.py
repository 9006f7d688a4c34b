"""An erasure between the calls of all others: whoever compacts, merges, restores, reverts or cleans up meanwhile.

The erasure runs on a store that lets others act before some of its calls, and kills it before some.  The others
never load such a record.  So once the erasure says that it is done, no object on the store may hold one, whatever
was done meanwhile.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lake_core.agents.checkpoint.run import write_checkpoint
from lake_core.erasure.receipt import DONE
from lake_core.erasure.run import erase
from lake_core.erasure.verify import verify
from lake_core.errors import LakeError
from lake_core.journal import purge
from lake_core.lake import Lake
from lake_core.lake.pool import Pool
from lake_core.naming import IdSource
from lake_core.repair.finding import DAMAGE
from lake_core.repair.fsck import Fsck
from lake_core.vacuum.execute import vacuum
from lake_core.vacuum.orphans import scan_orphans
from tests.properties.test_erasures import STEPS, Random, by_key
from tests.support.stores import StoreInFront

WHERE = "k = 3"
MEANWHILE = [*STEPS[4:], "old branch", "old tag", "revert", "restore", "untag", "vacuum", "scan", "purge"]
ERASURES = 12
"""Runs of the erasure under interruption, of which each ends by itself or by a kill."""


class Killed(BaseException):
    """The process of the erasure ends here."""


class Others(Random):
    """All others; once the erasure runs they load no record that it means."""

    quiet = False

    def load(self, branch: str) -> None:
        if not self.quiet:
            super().load(branch)
            return
        keys = [k for k in range(6) if k != 3]
        rows: list[dict[str, Any]] = [{"k": self.chance.choice(keys), "who": "dan", "n": 1}]
        self.pool.branch(branch).append(pa.Table.from_pylist(rows))

    def _version(self) -> str:
        return str(self.chance.randint(1, self.pool.history.load().version))

    def old_branch(self, branch: str) -> None:
        self.pool.create_branch(f"o{self.number}", at=self._version())

    def old_tag(self, branch: str) -> None:
        self.pool.tag(f"old{self.number}", at=self._version())

    def revert(self, branch: str) -> None:
        self.pool.branch(branch).revert(self._version())

    def restore(self, branch: str) -> None:
        for name, tag in self.pool.tags.items():
            if tag.deleted:
                self.pool.create_branch(tag.branch, at=name)
                return

    def untag(self, branch: str) -> None:
        for name in list(self.pool.tags)[:1]:
            self.pool.delete_tag(name)

    def vacuum(self, branch: str) -> None:
        vacuum(self.pool, grace=self.chance.choice([0.0, 5.0]))

    def scan(self, branch: str) -> None:
        scan_orphans(self.pool, grace=5.0)

    def purge(self, branch: str) -> None:
        write_checkpoint(self.world.lake, "p", now=self.world.clock.now)
        purge(self.pool.history.journal, until=self.pool.history.load().version)


class Between(StoreInFront):
    """The store of the erasure: before a call others may act, or the erasure is killed."""

    def __init__(self, others: Others, *, acts: float, kills: float) -> None:
        self.behind = others.world.store
        self._others, self._acts, self._kills = others, acts, kills

    def ask(self, request: str, name: str, call: Callable[[], Any]) -> Any:
        chance = self._others.chance
        if chance.random() < self._kills:
            raise Killed
        if chance.random() < self._acts:
            self._others.step(chance.choice(MEANWHILE))
        return call()


def eraser(others: Others, store: Any) -> Pool:
    return Lake.open_on(store, ids=IdSource(clock=others.world.clock), author="eraser").pool("p")


def simulate(seed: int) -> bool:
    """Whether an erasure was done while others acted."""
    chance = random.Random(seed)
    others = Others(chance.choice(["append", "upsert", "aggregate"]), chance)
    for _ in range(chance.randint(3, 12)):
        others.step(chance.choice(STEPS))
    others.step("load")
    others.quiet = True
    done = False
    for _ in range(ERASURES):
        store = Between(others, acts=0.04, kills=0.003)
        try:
            done = erase(eraser(others, store), where=WHERE, grace=0.0).status == DONE
        except (Killed, LakeError):
            others.world.clock.now += 700
            continue
        if done:
            break
    if done:
        assert not others.world.holding(by_key), f"seed {seed}: done, and an object holds such a record"
    others.release()
    last = erase(others.world.reopened(), where=WHERE, grace=0.0)
    assert last.status == DONE, f"seed {seed}: {last.held}"
    assert not others.world.holding(by_key), f"seed {seed}"
    assert not list(verify(others.world.reopened(), last)), f"seed {seed}"
    assert not any(by_key(row) for rows in others.seen().values() for row in rows), f"seed {seed}"
    others.load("main")  # for what is newer than the newest write fsck would say that its entry may be lost
    findings = Fsck(others.world.lake.context, [], data=True, older_than=0.0).run()
    assert not [found for found in findings if found.severity == DAMAGE], f"seed {seed}"
    return done


@pytest.mark.parametrize("seeds", [range(4), pytest.param(range(4, 60), marks=pytest.mark.slow)])
def test_no_object_holds_such_a_record_whatever_others_do_meanwhile(seeds: range) -> None:
    done = [simulate(seed) for seed in seeds]
    assert any(done)
