"""Transactions over four pools, single writers, readers and upkeep, killed at random moments.

Each process notes what it does before it does it, with the machine's time.  Those notes are the account: who
transacts says which pools a transaction has and when its commit begins, and what it was told; a reader says what
it saw, and when.  In the end plain Python compares the notes with the pools.  A transaction is in all of its pools
or in none, once.  It is not seen before its commit began, nor before its decision was made.  What was acknowledged
is there, what was refused is not.  After the lease no write waits, and nothing of a transaction is left.

Some victims are processes in a commit, so that kills fall before, within and after decisions; `Killed` counts them.
"""

from __future__ import annotations

import json
import multiprocessing
import multiprocessing.process
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from lake_core.errors import Conflict, LakeError, NotFound, OutcomeUnknown, Unavailable
from lake_core.naming import transaction_of
from log_lake.agents.checkpoint.run import checkpoint_and_purge
from log_lake.lake import Lake
from log_lake.lake.open_transactions import clean, transactions
from log_lake.repair.finding import DAMAGE
from log_lake.repair.fsck import Fsck
from log_lake.rewriting.compaction import compact
from tests.support.kills.transaction_account import FIRST, ROWS, Account, Notes

POOLS = ("a", "b", "c", "d")
ROLES = ("transact",) * 5 + ("single",) * 2 + ("read",) * 2 + ("keep",)
OPEN_FOR = 60.0
"""Seconds for which a transaction may stay open."""
LEASE = 45.0
"""Seconds after which a dead owner keeps nobody waiting: its lease, and the time to look."""
IN_A_COMMIT = 0.3
"""Of the kills, the share that waits for a process that begins a commit."""
PATIENCE = 300.0
"""Seconds for which the processes go on after the last kill until a commit is acknowledged, and seen."""
SETTINGS = {"history.keep": "0s"}


@dataclass(frozen=True)
class Place:
    """Where the lake is, how a process reaches it, and the folder of the notes."""

    uri: str
    options: Mapping[str, Any]
    notes: Path

    def lake(self, author: str) -> Lake:
        return Lake.open(self.uri, options=self.options, author=author)

    def notes_of(self, role: str, name: str) -> Notes:
        return Notes(self.notes / f"{role}-{name}")


def records(number: str) -> pa.Table:
    """What a write brings: some records with its name."""
    return pa.table({"k": list(range(ROWS)), "by": [number] * ROWS})


# ---------------------------------------------------------------- the processes


def transact(place: Place, me: str) -> None:
    """Transactions, one after the other; now and then it commits what another process left, or aborts."""
    chance, notes, lake = random.Random(me), place.notes_of("transact", me), place.lake(me)
    for number in range(10**9):
        if chance.random() < 0.3:
            _take_over(lake, notes, place.notes, chance)
        name, pools = f"{me}.{number}", chance.sample(POOLS, chance.randint(2, len(POOLS)))
        try:
            transaction = lake.transaction(open_for=OPEN_FOR, message=name)
            notes.add(begun=name, id=transaction.id, pools=pools)
            for pool in pools:
                transaction.pool(pool).append(records(name))
            if chance.random() < 0.1:
                notes.add(aborting=name)
                transaction.abort()
                notes.add(refused=name)
                continue
        except (Conflict, NotFound, Unavailable, OutcomeUnknown):  # nobody commits it
            notes.add(refused=name)
            continue
        _commit(lake, notes, name, transaction.id)


def _commit(lake: Lake, notes: Notes, name: str, id: str) -> None:
    notes.add(committing=name)
    try:
        lake.transaction(id).commit()
    except (Conflict, NotFound):
        notes.add(refused=name)
    except (Unavailable, OutcomeUnknown):
        notes.add(unknown=name)
    else:
        notes.add(acknowledged=name)


def _take_over(lake: Lake, notes: Notes, folder: Path, chance: random.Random) -> None:
    """Commit again what a killed process was about to commit."""
    left: dict[str, str] = {}
    for path in chance.sample(all := sorted(folder.glob("transact-*")), min(4, len(all))):
        ids: dict[str, str] = {}
        for line in Notes(path).all():
            if "begun" in line:
                ids[line["begun"]] = line["id"]
            elif "committing" in line and line["committing"] in ids:
                left[line["committing"]] = ids[line["committing"]]
            else:
                left.pop(line.get("acknowledged") or line.get("refused", ""), None)
    if left:
        name = chance.choice(sorted(left))
        notes.add(again=name)
        _commit(lake, notes, name, left[name])


def single(place: Place, me: str) -> None:
    """Loads into one pool, and deletes of what another load brought, which wait for transactions."""
    chance, notes, lake = random.Random(me), place.notes_of("single", me), place.lake(me)
    mine: list[tuple[str, str]] = []
    for number in range(10**9):
        name, pool = f"{me}.{number}", chance.choice(POOLS)
        if mine and chance.random() < 0.3:
            gone, pool = mine.pop()
            notes.add(deleting=gone)
            lake.pool(pool).branch().delete(where=f"by = '{gone}'")
        else:
            notes.add(loading=name, pool=pool)
            lake.pool(pool).branch().append(records(name))
            notes.add(loaded=name)
            mine.append((name, pool))


def read(place: Place, me: str) -> None:
    """All pools at one moment."""
    notes, lake = place.notes_of("read", me), place.lake(me)
    known: set[str] = set()
    while True:  # until it is killed
        begun = time.time()
        views = lake.at(*POOLS)
        ended = time.time()
        seen = {name: Counter(view.to_table()["by"].to_pylist()) for name, view in views.items()}
        if part := {
            name: times for name, found in seen.items() for times in [set(found.values()) - {ROWS}] if times
        }:
            notes.add(wrong=f"records of one write are there {part} times")
        new = {by: [name for name in POOLS if by in seen[name]] for found in seen.values() for by in found}
        notes.add(began=begun, ended=ended, new={by: pools for by, pools in new.items() if by not in known})
        notes.add(gone=sorted(known - new.keys()))
        known = set(new)


def keep(place: Place, me: str) -> None:
    """Upkeep: compactions, also of branches of transactions, checkpoints, purges, the end of transactions."""
    chance, notes, lake = random.Random(me), place.notes_of("keep", me), place.lake(me)
    while True:  # until it is killed
        name = chance.choice(POOLS)
        try:
            pool = lake.pool(name)
            branches = sorted(pool.history.load_open().state.branches)
            branch = pool.branch(chance.choice(branches) if chance.random() < 0.4 else "main")
            if references := branch.revision().references:
                compact(branch, references)
            checkpoint_and_purge(lake, name, now=time.time())
            clean(lake)
            notes.add(kept=name)
        except LakeError as error:
            notes.add(failed=f"{type(error).__name__}: {error}")


WORK = {"transact": transact, "single": single, "read": read, "keep": keep}


# ---------------------------------------------------------------- the kills


@dataclass(frozen=True)
class Process:
    """One that is at work, and the file in which it notes what it does."""

    role: str
    notes: Notes
    running: multiprocessing.process.BaseProcess

    def check(self) -> None:
        assert self.running.is_alive(), f"a process that does {self.role} ended: {self.running.exitcode}"

    def last(self) -> dict[str, Any]:
        """What it noted last; empty: nothing yet."""
        return next(reversed(list(self.notes.all())), {})


@dataclass
class Killed:
    """How many processes were killed by their roles, and where in a transaction those were that transact."""

    roles: Counter[str] = field(default_factory=Counter)
    moments: Counter[str] = field(default_factory=Counter)

    def add(self, victim: Process, lake: Lake) -> None:
        """Of a process that does nothing any more."""
        self.roles[victim.role] += 1
        if victim.role == "transact":
            self.moments[_moment(list(victim.notes.all()), lake)] += 1


def _moment(notes: list[dict[str, Any]], lake: Lake) -> str:
    """Where in a transaction its process died.  The store tells whether the decision was made by then."""
    match notes[-1]:
        case {"committing": name}:
            ids = {line["begun"]: line["id"] for line in notes if "begun" in line}
            if name not in ids:
                return "in a commit taken over"
            if lake.store.get(f"transactions/{ids[name]}/decision") is None:
                return "in a commit, before its decision"
            return "in a commit, after its decision"
        case {"begun": _} | {"aborting": _}:
            return "before a commit"
    return "between two transactions"


class Killer:
    """Starts a process for each role, kills one after another, and starts another of its role."""

    def __init__(self, place: Place, *, moment: float, commit: float) -> None:
        """`moment`: seconds between kills, on average; `commit`: about those that a commit takes."""
        self.killed = Killed()
        self._place, self._seconds, self._commit = place, moment, commit
        self._chance = random.Random(1)
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["tests.support.kills.killed_transactions"])
        self._running: list[Process] = []
        self._lake = place.lake("who looks where a process died")

    def run(self, kills: int, *, is_enough: Callable[[], bool]) -> None:
        """Kills so many, and lets the others go on until it is enough.  Raises AssertionError if one ended."""
        try:
            for role in ROLES:
                self._start(role)
            while self.killed.roles.total() < kills:
                victim = self._at_a_commit() if self._chance.random() < IN_A_COMMIT else self._any()
                self._running.remove(victim)
                os.kill(victim.running.pid or 0, signal.SIGKILL)
                victim.running.join()
                self.killed.add(victim, self._lake)
                self._start(victim.role)
            last = time.monotonic()
            while not is_enough() and time.monotonic() < last + PATIENCE:
                time.sleep(0.5)
                self._check()
        finally:
            for process in self._running:
                process.running.kill()
                process.running.join()

    def _start(self, role: str) -> None:
        name = f"{role[0]}{self.killed.roles.total()}-{len(self._running)}"
        running = self._context.Process(target=WORK[role], args=(self._place, name), daemon=True)
        running.start()
        self._running.append(Process(role, self._place.notes_of(role, name), running))

    def _check(self) -> None:
        for process in self._running:
            process.check()

    def _any(self) -> Process:
        """One of those that have done something."""
        while True:
            time.sleep(self._seconds * 2 * self._chance.random())
            self._check()
            if at_work := [process for process in self._running if process.notes.path.exists()]:
                return self._chance.choice(at_work)

    def _at_a_commit(self) -> Process:
        """One that began a commit just now, a part of a commit later."""
        before = {process: process.last() for process in self._running if process.role == "transact"}
        while True:
            time.sleep(0.01)
            self._check()
            for process, last in before.items():
                now = process.last()
                if "committing" in now and now != last:
                    time.sleep(self._commit * self._chance.random())
                    return process


def stress(place: Place, *, kills: int, moment: float, commit: float, waits: bool) -> dict[str, int]:
    """Kills so many processes, and checks; what happened.  Raises AssertionError.

    `waits`: until the time of transactions that are open is over; else they are aborted.
    """
    lake = Lake.create(place.uri, options=place.options)
    for name in POOLS:
        lake.create_pool(name, key="k", settings=SETTINGS).branch().append(records(FIRST))
    begun, killer = time.time(), Killer(place, moment=moment, commit=commit)
    killer.run(kills, is_enough=lambda: _is_enough(Account.of(place.notes)))
    account, lake = Account.of(place.notes), place.lake("afterwards")
    account.check_decisions(decisions(lake))
    waited = _never_stuck(place)
    _end_open(lake, waits=waits)
    clean(lake, grace=0.0)
    clean(lake, grace=0.0)
    views = place.lake("last").at(*POOLS)
    account.check_end({name: Counter(view.to_table()["by"].to_pylist()) for name, view in views.items()})
    left = [info.name for info in lake.store.list("transactions")]
    for name in POOLS:
        state = lake.pool(name).history.load().state
        left += [branch for branch in state.branches if transaction_of(branch)] + list(state.pending.keys())
    assert not left, f"left over: {left}"
    assert not account.wrong, "\n".join(account.wrong[:20])
    found = [one for one in Fsck(lake.context, data=True).run() if one.severity == DAMAGE]
    assert not found, f"fsck finds {found}"
    return {
        "killed": killer.killed.roles.total(),
        **{f"killed, {role}": times for role, times in sorted(killer.killed.roles.items())},
        **{f"killed {where}": times for where, times in sorted(killer.killed.moments.items())},
        "seconds": round(time.time() - begun),
        "transactions begun": len(account.pools),
        "commits begun": len(account.committing),
        "commits begun again": account.taken_over,
        "acknowledged": len(account.acknowledged),
        "refused": len(account.committing.keys() & account.refused),
        "told nothing": len(account.committing.keys() - account.acknowledged - account.refused),
        "reads of four pools": account.reads,
        "transactions seen by a reader": sum(name in account.pools for name in account.seen),
        "single loads": len(account.loaded),
        "longest wait of a write afterwards, s": round(waited),
    }


def _is_enough(account: Account) -> bool:
    """Whether the notes can show anything."""
    return bool(account.acknowledged & account.seen.keys())


def _never_stuck(place: Place) -> float:
    """A write that waits for any pending part, in each pool; the longest time.  Raises AssertionError."""
    longest = 0.0
    for name in POOLS:
        begun = time.monotonic()
        place.lake("waits").pool(name).branch().delete(where="by = 'nobody'")
        longest = max(longest, time.monotonic() - begun)
    assert longest < LEASE * len(ROLES), f"a write waited for {longest:.0f} s"
    return longest


def _end_open(lake: Lake, *, waits: bool) -> None:
    """Ends transactions that nobody commits any more: at the end of their time, or now, as `lake abort` does."""
    left = [one.id for one in transactions(lake) if one.state in ("open", "committing")]
    if waits and left:
        time.sleep(OPEN_FOR)
    for id in () if waits else left:
        lake.transaction(id).abort()


def decisions(lake: Lake) -> dict[str, tuple[float, bool]]:
    """When the decisions were made, by the store, and whether they are `committed`: read as plain JSON."""
    found = {}
    for info in lake.store.list("transactions"):
        _, id, kind = info.name.split("/")
        if kind == "decision":
            said = json.loads(lake.store.get(info.name) or b"{}")
            found[id] = info.modified, bool(said.get("committed"))
    return found
