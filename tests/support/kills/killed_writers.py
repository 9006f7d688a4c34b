"""Kills writers, a purger and compactors at random moments; what was acknowledged must be there, exactly once.

    python -m tests.support.kills.killed_writers URI SECONDS [--writers 8] [--compactors 2] [--moment 1]

Each writer appends records with its own number and a count, and notes what was acknowledged. A compactor plans
by the pool's policy, and notes how many objects overlapped in the pool. Every moment one process is killed
(SIGKILL), and another one started in its place. S3 options come from LAKE_S3 (JSON). Called by the tests beside
it for a few seconds, and by hand for minutes.
"""

from __future__ import annotations

import argparse
import collections
import json
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa

from log_lake.agents.compact.run import compact_pool, plan_pool
from log_lake.lake import Lake
from tests.support.kills.killing import kill_at_random
from tests.support.servers.s3 import options_of_environment

POOL = "killed"
KEYS = 10
MOMENT = 1.0


def batch(writer: str, number: int) -> pa.Table:
    """The records of one append: as many as there are keys, so that all objects overlap."""
    return pa.table({"k": list(range(KEYS)), "writer": [writer] * KEYS, "number": [number] * KEYS})


def write(uri: str, writer: str, acknowledged: str) -> None:
    """Runs a writer, which appends until it is killed."""
    branch = Lake.open(uri, options=options_of_environment()).pool(POOL).branch()
    with open(acknowledged, "a") as file:
        for number in range(10**9):
            branch.append(batch(writer, number))
            file.write(f"{number}\n")
            file.flush()


def tend(uri: str) -> None:
    """Runs the purger, which writes checkpoints, and deletes all entries that they cover."""
    from lake_core.errors import LakeError
    from log_lake.agents.checkpoint.run import purge_pool, write_checkpoint

    lake = Lake.open(uri, options=options_of_environment())
    while True:  # until it is killed
        try:
            write_checkpoint(lake, POOL, now=time.time())
            purge_pool(lake, POOL, keep=0.0, now=time.time())
        except LakeError as error:
            print(f"purger: {error}", file=sys.stderr, flush=True)
        time.sleep(0.2)


def compact(uri: str, notes: str) -> None:
    """Runs a compactor, which plans and rewrites until it is killed."""
    lake = Lake.open(uri, options=options_of_environment())
    with open(notes, "a") as file:
        while True:  # until it is killed
            plan = plan_pool(lake, POOL, now=time.time())
            done = compact_pool(lake, POOL, plan)
            landed = sum(one.version is not None for one in done)
            file.write(f"{plan.depth} {landed} {len(done) - landed}\n")
            file.flush()
            time.sleep(0.2)


def stress(
    uri: str,
    *,
    seconds: float,
    writers: int,
    folder: Path,
    compactors: int = 0,
    moment: float = MOMENT,
) -> dict[str, int]:
    """Runs all processes, and checks the pool. Returns what happened. Raises AssertionError."""
    lake = Lake.create(uri, options=options_of_environment())
    lake.create_pool(POOL, key="k")

    def words(role: str, number: int) -> list[str]:
        notes = str(folder / f"{role}{number}")
        return {"tend": [uri], "compact": [uri, notes]}.get(role, [uri, f"w{number}", notes])

    def compactions() -> list[list[int]]:
        return [
            [int(word) for word in line.split()]
            for path in folder.glob("compact*")
            for line in path.read_text().splitlines(keepends=True)
            if line.endswith("\n")
        ]

    killed = kill_at_random(
        "tests.support.kills.killed_writers",
        [*["write"] * writers, "tend", *["compact"] * compactors],
        words,
        seconds=seconds,
        moment=moment,
        is_enough=lambda: (
            any(path.stat().st_size for path in folder.glob("write*"))
            and (not compactors or any(committed for _, committed, _ in compactions()))
        ),
    )
    before = time.monotonic()
    fresh = Lake.open(uri, options=options_of_environment())
    result = fresh.pool(POOL).branch().append(batch("last", 0))
    assert result.version is not None
    took = time.monotonic() - before
    table = fresh.pool(POOL).at().to_table()
    found = collections.Counter(zip(table["writer"].to_pylist(), table["number"].to_pylist(), strict=True))
    wrong = [key for key, count in found.items() if count != KEYS]
    assert not wrong, f"in the pool more than once, or in part: {wrong[:5]}"
    acknowledged = [
        (f"w{path.name.removeprefix('write')}", int(line))
        for path in folder.glob("write*")
        for line in path.read_text().splitlines(keepends=True)
        if line.endswith("\n")
    ]
    lost = [key for key in acknowledged if key not in found]
    assert not lost, f"acknowledged and not there: {lost[:5]}"
    found_by = compactions()
    marks = fresh.pool(POOL).history.journal.marks()
    return {
        "acknowledged": len(acknowledged),
        "in the pool": len(found),
        "killed": killed,
        "entries": result.version,
        "purged": marks.fence,
        "next commit ms": round(took * 1000),
        "compactions": sum(landed for _, landed, _ in found_by),
        "dropped": sum(dropped for _, _, dropped in found_by),
        "deepest found": max((depth for depth, _, _ in found_by), default=0),
        "depth": fresh.pool(POOL).at().depth,
    }


def main() -> int:
    if sys.argv[1] == "--role":
        role, *words = sys.argv[2:]
        {"tend": tend, "compact": compact, "write": write}[role](*words)
        return 0
    parser = argparse.ArgumentParser(description="Writers and a purger, killed at random moments.")
    parser.add_argument("uri")
    parser.add_argument("seconds", type=float)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--compactors", type=int, default=0)
    parser.add_argument("--moment", type=float, default=MOMENT, help="seconds between kills, on average")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = stress(
            args.uri,
            seconds=args.seconds,
            writers=args.writers,
            folder=Path(folder),
            compactors=args.compactors,
            moment=args.moment,
        )
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
