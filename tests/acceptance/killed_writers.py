"""Writers and a purger, killed at random moments: what was acknowledged is there, exactly once.

    python -m tests.acceptance.killed_writers URI SECONDS [--writers 8]

Each writer appends records that name it and count up, and writes down what was acknowledged.  Every moment one
process is killed (SIGKILL) and another started in its place.  S3 options come from LAKE_S3 (JSON).  Called by
the test beside it for a few seconds, and by hand for minutes.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

from lake_core.lake import Lake

POOL = "killed"
MOMENT = 1.0


def options() -> dict[str, Any]:
    """How the object store is reached, from the environment."""
    return dict(json.loads(os.environ.get("LAKE_S3", "{}")))


def write(uri: str, writer: str, acknowledged: str) -> None:
    """A writer: appends until it is killed."""
    branch = Lake.open(uri, options=options()).pool(POOL).branch()
    with open(acknowledged, "a") as file:
        for number in range(10**9):
            branch.append(pa.table({"writer": [writer], "number": [number]}))
            file.write(f"{number}\n")
            file.flush()


def tend(uri: str) -> None:
    """The purger: checkpoints, and deletes all that they cover."""
    from lake_core.errors import LakeError
    from lake_core.maintenance.checkpoint import purge_pool, write_checkpoint

    lake = Lake.open(uri, options=options())
    while True:  # until it is killed
        try:
            write_checkpoint(lake, POOL, now=time.time())
            purge_pool(lake, POOL, keep=0.0, now=time.time())
        except LakeError as error:
            print(f"purger: {error}", file=sys.stderr, flush=True)
        time.sleep(0.2)


def stress(uri: str, *, seconds: float, writers: int, folder: Path) -> dict[str, int]:
    """Runs it all and checks; what happened.  Raises AssertionError."""
    lake = Lake.create(uri, options=options())
    lake.create_pool(POOL, key="writer,number")
    chance = random.Random(1)
    started = 0
    running: list[tuple[str, subprocess.Popen[bytes]]] = []

    def start(role: str) -> None:
        nonlocal started
        started += 1
        words = [role, uri] if role == "tend" else [role, uri, f"w{started}", str(folder / f"w{started}")]
        command = [sys.executable, "-m", "tests.acceptance.killed_writers", "--role", *words]
        running.append((role, subprocess.Popen(command)))

    killed = 0
    try:
        for _ in range(writers):
            start("write")
        start("tend")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(MOMENT * chance.random() * 2)
            role, process = running.pop(chance.randrange(len(running)))
            assert process.poll() is None, f"a {role} ended by itself: {process.returncode}"
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed += 1
            start(role)
    finally:
        for _, process in running:
            process.kill()
            process.wait()
    before = time.monotonic()
    fresh = Lake.open(uri, options=options())
    result = fresh.pool(POOL).branch().append(pa.table({"writer": ["last"], "number": [0]}))
    assert result.transaction is not None
    took = time.monotonic() - before
    table = fresh.pool(POOL).at().to_table()
    found = collections.Counter(zip(table["writer"].to_pylist(), table["number"].to_pylist(), strict=True))
    twice = [key for key, count in found.items() if count > 1]
    assert not twice, f"in the pool more than once: {twice[:5]}"
    acknowledged = [
        (path.name, int(line))
        for path in folder.iterdir()
        for line in path.read_text().splitlines(keepends=True)
        if line.endswith("\n")
    ]
    lost = [key for key in acknowledged if key not in found]
    assert not lost, f"acknowledged and not there: {lost[:5]}"
    marks = fresh.pool(POOL).history.journal.marks()
    return {
        "acknowledged": len(acknowledged),
        "in the pool": sum(found.values()),
        "killed": killed,
        "entries": result.transaction,
        "purged": marks.fence,
        "next commit ms": round(took * 1000),
    }


def main() -> int:
    if sys.argv[1] == "--role":
        role, *words = sys.argv[2:]
        tend(*words) if role == "tend" else write(*words)
        return 0
    parser = argparse.ArgumentParser(description="Writers and a purger, killed at random moments.")
    parser.add_argument("uri")
    parser.add_argument("seconds", type=float)
    parser.add_argument("--writers", type=int, default=8)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(stress(args.uri, seconds=args.seconds, writers=args.writers, folder=Path(folder))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
