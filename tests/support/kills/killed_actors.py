"""Kills loaders, deleters, a replacer, compactors and the tombstones agent at random moments, and checks the
pools' contents.

    python -m tests.support.kills.killed_actors URI SECONDS [--moment 1] [--pause 0.5]

They work on an append pool and an upsert pool. The message of every transaction says what it does, so the
journal can be replayed on plain arrays: the pool must hold what that replay gives, and everything that was
acknowledged must be in the journal once. The only error that an actor may get is the conflict of overlapping
replaces. After any other it ends, and the run fails. Called by the tests beside it for some seconds, and by
hand for minutes.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lake_core.errors import Conflict
from lake_core.records import Transaction
from log_lake.agents.compact.run import compact_pool, plan_pool
from log_lake.agents.tombstones import run as tombstones
from log_lake.lake import Lake
from log_lake.lake.branch import Branch
from log_lake.lake.pool import Pool
from tests.support.kills.killing import kill_at_random
from tests.support.servers.s3 import options_of_environment

POOLS = {"kept": "append", "newest": "upsert"}
ROLES = {"load": 2, "upsert": 2, "delete": 2, "replace": 1, "compact": 2, "apply": 1, "split": 1}
KEYS = 200
RECORDS = 20
DEPTH = 32
SETTINGS = {"compact.depth": str(DEPTH), "tombstones.apply": "2s"}


def records(chance: random.Random, low: int = 0, high: int = KEYS) -> list[tuple[int, int]]:
    """Some keys and values; always the same for the same seed."""
    return [(chance.randrange(low, high), chance.randrange(100)) for _ in range(RECORDS)]


def table(of: list[tuple[int, int]]) -> pa.Table:
    return pa.table(
        {"k": pa.array([k for k, _ in of], pa.int64()), "v": pa.array([v for _, v in of], pa.int64())}
    )


# ---------------------------------------------------------------- actors


def write(branch: Branch, seed: int) -> str | None:
    """Makes a load."""
    said = json.dumps({"load": seed})
    return branch.append(table(records(random.Random(seed))), message=said).transaction_id


def delete(pool: Pool, chance: random.Random) -> str | None:
    """Deletes a range, with or without a condition. Returns None if there was nothing to delete."""
    low = chance.randrange(KEYS)
    high, below = low + chance.randrange(1, 10), chance.choice([None, 50])
    said = json.dumps({"delete": [low, high, below]})
    span = pool.at().key_range(low=low, high=high)
    where = None if below is None else f"v < {below}"
    return pool.branch().delete(key_range=span, where=where, reason=said).transaction_id


def replace(pool: Pool, seed: int) -> str | None:
    """Replaces a range of keys by new records. Returns None if another replace was faster."""
    chance = random.Random(seed)
    low = chance.randrange(KEYS - 10)
    new = records(chance, low, low + 10)
    said = json.dumps({"replace": [seed, low, low + 10]})
    try:
        return (
            pool.branch()
            .replace_with(table(new), key_range=pool.at().key_range(low=low, high=low + 10), message=said)
            .transaction_id
        )
    except Conflict as error:
        if "overlapping range" not in str(error):
            raise
        return None


def act(role: str, uri: str, notes: str, seed: int, pause: float) -> None:
    """Runs one actor, which works until it is killed, and notes what was acknowledged."""
    lake = Lake.open(uri, options=options_of_environment())
    chance = random.Random(seed)
    pools = {name: lake.pool(name) for name in POOLS}
    with open(notes, "a") as file:
        for number in range(10**9):
            name = {"load": "kept", "upsert": "newest"}.get(role) or chance.choice(sorted(POOLS))
            pool, own = pools[name], seed * 1_000_000 + number
            done: str | None = None
            match role:
                case "load" | "upsert":
                    done = write(pool.branch(), own)
                case "delete":
                    done = delete(pool, chance)
                case "replace":
                    done = replace(pool, own)
                case "compact":
                    plan = plan_pool(lake, name, now=time.time())
                    landed = compact_pool(lake, name, plan)
                    file.write(f"depth {plan.depth} {len(landed)}\n")
                case "split" if pool.at().references:  # otherwise the type of the key is not known
                    change = chance.choice((pool.split, pool.split, pool.unsplit))
                    done = change(at=[chance.randrange(KEYS)]).transaction_id
                case "apply":
                    did = tombstones.apply(pool.branch(), now=time.time())
                    file.write(f"applied {did.rewritten} {did.retired}\n")
            file.write(f"done {name} {done}\n" if done else "")
            file.flush()
            time.sleep(pause * chance.random() * 2)


# ---------------------------------------------------------------- replay


@dataclass
class Replay:
    """What a pool should hold: every record that was loaded, in order, and whether it was erased later."""

    kept: list[tuple[int, int]] = field(default_factory=list)
    gone: list[bool] = field(default_factory=list)
    replaces: list[tuple[int, tuple[int, str], int, int]] = field(default_factory=list)

    def erase(self, low: int, high: int, below: int | None) -> None:
        if not self.kept:
            return
        held = np.array(self.kept)
        hit = (held[:, 0] >= low) & (held[:, 0] < high)
        if below is not None:
            hit &= held[:, 1] < below
        self.gone = list(np.array(self.gone) | hit)

    def add(self, new: list[tuple[int, int]]) -> None:
        self.kept += new
        self.gone += [False] * len(new)

    def land(self, n: int, transaction: Transaction) -> None:
        said = json.loads(transaction.message) if transaction.message.startswith("{") else {}
        started = (transaction.read_version, transaction.id)
        if "delete" in said:
            self.erase(*said["delete"])
        elif "replace" in said:
            seed, low, high = said["replace"]
            chance = random.Random(seed)
            assert chance.randrange(KEYS - 10) == low
            self.erase(low, high, None)
            self.add(records(chance, low, high))
            self.replaces.append((n, started, low, high))
        elif "load" in said:
            overtaken = [
                (low, high)
                for number, begun, low, high in self.replaces
                if number > transaction.read_version and begun > started
            ]
            new = records(random.Random(said["load"]))
            self.add([r for r in new if not any(low <= r[0] < high for low, high in overtaken)])

    def expected(self, kind: str) -> list[tuple[int, int]]:
        pairs = list(zip(self.kept, self.gone, strict=True))
        if kind == "upsert":
            pairs = list({record[0]: (record, gone) for record, gone in pairs}.values())
        return sorted(record for record, gone in pairs if not gone)


def check(lake: Lake, acknowledged: set[tuple[str, str]]) -> dict[str, int]:
    """Raises AssertionError if a pool differs from its journal, or lacks something that was acknowledged."""
    counted = {"transactions": 0, "loads overtaken": 0, "records": 0, "tombstones left": 0}
    for name, kind in POOLS.items():
        replay, ids = Replay(), []
        for n, transaction in sorted(_log(lake.pool(name)), key=lambda one: one[0]):
            replay.land(n, transaction)
            ids.append(transaction.id)
            counted["loads overtaken"] += any(getattr(a, "self_only", False) for a in transaction.actions)
        assert len(set(ids)) == len(ids), "a transaction landed twice"
        lost = {id for pool, id in acknowledged if pool == name} - set(ids)
        assert not lost, f"acknowledged and lost: {sorted(lost)[:3]}"
        view = lake.pool(name).at()
        found = sorted((r["k"], r["v"]) for r in view.to_table(columns=["k", "v"]).to_pylist())
        assert found == replay.expected(kind), f"{name} differs from the replay of its journal"
        counted["transactions"] += len(ids)
        counted["records"] += len(found)
        counted["tombstones left"] += len(view.tombstones)
    return counted


def _log(pool: Pool) -> Iterator[tuple[int, Transaction]]:
    """Yields the transactions from old to new, those of one entry in their order."""
    yield from reversed(list(pool.log()))


# ---------------------------------------------------------------- the run


def stress(uri: str, *, seconds: float, folder: Path, moment: float, pause: float) -> dict[str, int]:
    """Runs all actors, and checks the pools. Returns what happened. Raises AssertionError."""
    lake = Lake.create(uri, options=options_of_environment())
    for name, kind in POOLS.items():
        lake.create_pool(name, key="k", kind=kind, settings=SETTINGS)
    killed = kill_at_random(
        "tests.support.kills.killed_actors",
        [role for role, count in ROLES.items() for _ in range(count)],
        lambda role, number: [uri, str(folder / f"{role}{number}"), str(number), str(pause)],
        seconds=seconds,
        moment=moment,
        is_enough=lambda: _is_enough(_notes(folder)),
    )
    notes = _notes(folder)
    acknowledged = {(line[1], line[2]) for line in notes if line[0] == "done" and len(line) == 3}
    counted = check(Lake.open(uri, options=options_of_environment()), acknowledged)
    deep = [int(line[1]) for line in notes if line[0] == "depth"]
    jobs = sum(int(line[2]) for line in notes if line[0] == "depth")
    retired = sum(int(line[2]) for line in notes if line[0] == "applied")
    return {
        "acknowledged": len(acknowledged),
        **counted,
        "killed": killed,
        "compactions": jobs,
        "deletes retired": retired,
        "deepest found": max(deep, default=0),
        "allowed depth": DEPTH,
    }


def _notes(folder: Path) -> list[list[str]]:
    return [line.split() for path in folder.iterdir() for line in path.read_text().splitlines()]


def _is_enough(notes: list[list[str]]) -> bool:
    """Whether both pools got a transaction, and a compaction was committed."""
    loaded = {line[1] for line in notes if line[0] == "done" and len(line) == 3}
    return loaded == set(POOLS) and any(line[0] == "depth" and line[2:] > ["0"] for line in notes)


def main() -> None:
    """Runs the whole by hand, or one of the actors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("uri", nargs="?")
    parser.add_argument("seconds", nargs="?", type=float)
    parser.add_argument(
        "--moment", type=float, default=1.0, help="seconds from one kill to the next, on average"
    )
    parser.add_argument("--pause", type=float, default=0.5, help="seconds that an actor rests, on average")
    parser.add_argument("--role", nargs=5, metavar="WORD", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.role:
        role, uri, notes, seed, pause = args.role
        act(role, uri, notes, int(seed), float(pause))
        return
    with tempfile.TemporaryDirectory() as folder:
        found: dict[str, Any] = stress(
            args.uri, seconds=args.seconds, folder=Path(folder), moment=args.moment, pause=args.pause
        )
    print(json.dumps(found))


if __name__ == "__main__":
    main()
