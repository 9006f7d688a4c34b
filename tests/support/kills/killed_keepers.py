"""Kills retention, erasures, leases, branches and tags beside loads and compaction, at random moments.

    python -m tests.support.kills.killed_keepers URI SECONDS [--moment 1] [--pause 0.5] [--grace 15]

A reader must never miss an object that it may read: of a fresh revision, of a live tag or branch, or of a
revision under a lease that is held for longer than the grace time. What was acknowledged must be there once;
what was erased must be in no object's bytes. In the end, after all grace times, a full listing must show not
one object too many, and `fsck` must find nothing.

All records of a load have the load's name, so that a load that is only partly there is noticed. An actor ends
if it gets an error that it must not get, and the run fails. Called by a test for some seconds, and by hand for
minutes, also on a real S3 server (`tests.support.servers.on_ceph`).
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from lake_core import naming
from lake_core.errors import Conflict, NotFound, ObjectVacuumed
from lake_core.naming import data_id
from log_lake.agents.compact.run import compact_pool, plan_pool
from log_lake.agents.retention.run import retain
from log_lake.agents.tombstones import run as tombstones
from log_lake.erasure import receipt as receipts
from log_lake.erasure.receipt import DONE
from log_lake.erasure.run import erase, go_on
from log_lake.erasure.verify import verify
from log_lake.lake import Lake
from log_lake.lake.loads import load_blocks
from log_lake.lake.pool import Pool
from log_lake.lake.view import View
from log_lake.lake.write import WriteArguments
from log_lake.loading.block import Block
from log_lake.repair.fsck import Fsck
from tests.support.kills.killing import kill_at_random
from tests.support.servers.s3 import options_of_environment

POOL = "p"
ROLES = {
    "load": 2,
    "slow": 1,
    "branch": 1,
    "tag": 1,
    "read": 1,
    "lease": 1,
    "compact": 1,
    "apply": 1,
    "retain": 2,
    "erase": 1,
}
RECORDS = 5
ROUNDS = 8
"""How often retention runs after the end: an object may have to wait for the grace time more than once."""


def settings(grace: float) -> dict[str, str]:
    """Returns settings with short times, so that all of them pass within a run of a minute."""
    return {
        "vacuum.grace": f"{grace:.0f}s",
        "history.keep": f"{grace:.0f}s",
        "lease.ttl": f"{grace / 3:.0f}s",
        "lease.after": "1s",
        "tombstones.apply": "2s",
        "compact.depth": "8",
    }


def table(name: str) -> pa.Table:
    """Returns the records of a load."""
    return pa.table({"k": range(RECORDS), "name": [name] * RECORDS})


def names(view: View) -> Counter[str]:
    """Counts the records of each load in a view. Raises AssertionError if a load is there only partly, or
    twice."""
    found = Counter(view.to_table(columns=["name"]).column("name").to_pylist())
    wrong = {name: count for name, count in found.items() if count != RECORDS}
    assert not wrong, f"loads in part, or more than once: {wrong}"
    return found


# ---------------------------------------------------------------- actors


class Actor:
    """One process, which works until it is killed, and notes what it tries and what was acknowledged."""

    def __init__(self, uri: str, notes: Path, seed: int, pause: float, grace: float) -> None:
        self.lake = Lake.open(uri, options=options_of_environment())
        self.notes, self.seed, self.pause, self.grace = notes, seed, pause, grace
        self.chance = random.Random(seed)
        self.file = notes.open("a")
        self.number = 0

    @property
    def pool(self) -> Pool:
        return self.lake.pool(POOL)

    def note(self, *words: str) -> None:
        self.file.write(" ".join(words) + "\n")
        self.file.flush()

    def run(self, role: str) -> None:
        act: Callable[[str], None] = getattr(self, f"act_{role}")
        while True:
            self.number += 1
            act(f"n{self.seed}-{self.number}")
            time.sleep(self.pause * self.chance.random() * 2)

    def act_load(self, name: str) -> None:
        self.note("try", name)
        self.pool.branch().append(table(name))
        self.note("done", name)

    def act_slow(self, name: str) -> None:
        """Makes a load that lasts longer than the grace time; its lease keeps its objects."""

        def blocks() -> Iterator[Block]:
            yield Block(table(name))
            time.sleep(self.grace * 1.5)

        self.note("try", name)
        load_blocks(self.pool.branch(), blocks(), WriteArguments())
        self.note("done", name)

    def act_branch(self, name: str) -> None:
        pool = self.pool
        pool.create_branch(name)
        self.note("try", name)
        pool.branch(name).append(table(name))
        time.sleep(self.pause)
        try:
            pool.branch().merge(name)
            self.note("done", name)
        except Conflict as error:
            self.note("refused", str(error))
        names(pool.at(name))
        pool.delete_tag(pool.delete_branch(name).root)

    def act_tag(self, name: str) -> None:
        """Sets a tag on an older version, which must read the same as long as the tag lives."""
        pool = self.pool
        newest = pool.history.load().version
        try:
            pool.tag(name, at=str(max(1, newest - self.chance.randrange(5))))
        except (ObjectVacuumed, NotFound):  # it is older than the grace time, or none of the branch's
            return
        before = names(pool.at(name))
        time.sleep(self.grace * 1.5)
        after = names(self.lake.pool(POOL).at(name))
        gone = before.keys() - after.keys()
        assert after.keys() <= before.keys(), "a tag shows more than before"
        assert gone <= self.attempted("erase"), "a tag shows less than before"
        pool.delete_tag(name)

    def act_read(self, _: str) -> None:
        view = self.pool.at()
        begun = time.monotonic()
        try:
            names(view)
        except ObjectVacuumed:
            assert time.monotonic() - begun > self.grace / 2, (
                "a reader within the grace time missed an object"
            )
        self.note("read")

    def act_lease(self, _: str) -> None:
        pool = self.pool
        with pool.leased("main", why="a long read") as view:
            before = names(view)
            time.sleep(self.grace * 1.5)
            assert names(view) == before, "a leased reader sees something else"
        self.note("leased")

    def act_compact(self, _: str) -> None:
        plan = plan_pool(self.lake, POOL, now=time.time())
        self.note("compacted", str(len(compact_pool(self.lake, POOL, plan))))

    def act_apply(self, _: str) -> None:
        try:
            tombstones.apply(self.pool.branch(), now=time.time())
        except Conflict as error:
            self.note("refused", str(error))

    def act_retain(self, _: str) -> None:
        try:
            done = retain(self.lake, POOL)
        except Conflict as error:
            self.note("refused", str(error))
        else:
            self.note("retained", str(done.vacuumed), str(done.orphans), str(done.purged))

    def act_erase(self, _: str) -> None:
        candidates = sorted(self.attempted("done") - self.attempted("erase"))
        if not candidates:
            return
        name = self.chance.choice(candidates)
        self.note("erase", name)
        try:
            done = erase(self.pool, where=f"name = '{name}'")
        except Conflict as error:
            self.note("refused", str(error))
        else:
            self.note("erased", name, done.status)

    def attempted(self, word: str) -> set[str]:
        return {line[1] for line in noted(self.notes.parent) if line[0] == word}


def noted(folder: Path) -> list[list[str]]:
    """Returns the lines of all actors; a killed one may have left half a line."""
    return [
        line.split()
        for path in folder.iterdir()
        for line in path.read_text().splitlines()
        if len(line.split()) > 1 or line in ("read", "leased")
    ]


# ---------------------------------------------------------------- the end


def settle(lake: Lake, grace: float) -> int:
    """Deletes tags and branches, waits for all grace times, and runs the upkeep. Returns the number of objects
    that are left. Raises AssertionError.

    Each object that is left must be one to which `main` refers.
    """
    pool = lake.pool(POOL)
    pool.branch().append(table("last"))  # what is newer than the newest write stays
    for name in sorted(set(pool.history.load().state.branches) - {"main"}):
        pool.delete_branch(name)
    for name in sorted(pool.history.load().state.tags):
        pool.delete_tag(name)
    for _ in range(ROUNDS):
        time.sleep(grace + 1)
        for one in list(receipts.read_all(lake.pool(POOL))):
            if one.status != DONE:
                go_on(lake.pool(POOL), one)
        retain(lake, POOL)
        stored, needed = _objects(lake.pool(POOL))
        assert needed <= stored, f"main misses {sorted(needed - stored)[:3]}"
        if stored == needed:
            return len(stored)
    raise AssertionError(f"{len(stored - needed)} objects too many, such as {min(stored - needed)}")


def _objects(pool: Pool) -> tuple[set[str], set[str]]:
    infos = pool.store.list(naming.data(pool.config.id))
    return {data_id(i.name) or i.name for i in infos}, {r.object for r in pool.at().references}


def check(lake: Lake, notes: list[list[str]]) -> dict[str, int]:
    """Raises AssertionError if an acknowledged load is lost, an erased one is there, or fsck finds something."""
    tried, done, erasing = (
        {line[1] for line in notes if line[0] == word} for word in ("try", "done", "erase")
    )
    pool = lake.pool(POOL)
    found = names(pool.at()).keys() - {"last"}
    assert not done - found - erasing, f"acknowledged and lost: {sorted(done - found - erasing)[:3]}"
    assert found <= tried
    erased = 0
    for one in receipts.read_all(pool):
        assert one.status == DONE
        assert not list(verify(pool, one))
        erased += 1
    surely = {line[1] for line in notes if line[0] == "erased" and line[2] == DONE}
    assert not surely & found, "erased, and there"
    faults = list(Fsck(lake.context, [POOL], data=True, older_than=0).run())
    assert not faults, faults
    return {"loads": len(done), "erasures": erased}


# ---------------------------------------------------------------- the run


def stress(
    uri: str, *, seconds: float, folder: Path, moment: float, pause: float, grace: float
) -> dict[str, int]:
    """Runs all actors, and checks the pools. Returns what happened. Raises AssertionError."""
    lake = Lake.create(uri, options=options_of_environment())
    lake.create_pool(POOL, key="k", settings=settings(grace))
    lake.pool(POOL).branch().append(table("n0-0"))
    (folder / "first").write_text("try n0-0\ndone n0-0\n")
    killed = kill_at_random(
        "tests.support.kills.killed_keepers",
        [role for role, count in ROLES.items() for _ in range(count)],
        lambda role, number: [uri, str(folder / f"{role}{number}"), str(number), str(pause), str(grace)],
        seconds=seconds,
        moment=moment,
        is_enough=lambda: _is_enough(noted(folder)),
    )
    lake = Lake.open(uri, options=options_of_environment())
    objects = settle(lake, grace)
    notes = noted(folder)
    words = Counter(line[0] for line in notes)
    retained = [list(map(int, line[1:])) for line in notes if line[0] == "retained"]
    sums = [sum(column) for column in zip(*retained, strict=True)] or [0, 0, 0]
    return {
        **check(lake, notes),
        "killed": killed,
        "reads": words["read"],
        "leased reads": words["leased"],
        "refused": words["refused"],
        "compactions": sum(int(line[1]) for line in notes if line[0] == "compacted"),
        "vacuumed": sums[0],
        "orphans": sums[1],
        "purged": sums[2],
        "objects left": objects,
    }


def _is_enough(notes: list[list[str]]) -> bool:
    """Whether readers, the vacuum and an erasure have done something."""
    words = {line[0] for line in notes if line[0] != "retained" or line[1] != "0"}
    return {"read", "leased", "retained", "compacted", "erased"} <= words


def main() -> None:
    """Runs the whole by hand, or one of the actors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("uri", nargs="?")
    parser.add_argument("seconds", nargs="?", type=float)
    parser.add_argument(
        "--moment", type=float, default=1.0, help="seconds from one kill to the next, on average"
    )
    parser.add_argument("--pause", type=float, default=0.5, help="seconds that an actor rests, on average")
    parser.add_argument("--grace", type=float, default=15.0, help="seconds that removed objects are kept")
    parser.add_argument("--role", nargs=6, metavar="WORD", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.role:
        role, uri, notes, seed, pause, grace = args.role
        Actor(uri, Path(notes), int(seed), float(pause), float(grace)).run(role)
        return
    with tempfile.TemporaryDirectory() as folder:
        done = stress(
            args.uri,
            seconds=args.seconds,
            folder=Path(folder),
            moment=args.moment,
            pause=args.pause,
            grace=args.grace,
        )
    print(json.dumps(done))


if __name__ == "__main__":
    main()
