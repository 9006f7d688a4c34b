"""Sixteen processes load into one pool at once: every acknowledged record is there exactly once, no load fails."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.support.command import Command

LOADERS = 16
LOADS = 3
RECORDS = 50

PROGRAM = """
import json, sys
from log_lake.lake.lake import Lake

uri, *files = sys.argv[1:]
branch = Lake.open(uri).pool("p").branch()
print("ready", flush=True)
sys.stdin.readline()  # so that all begin at once
for file in files:
    result = branch.load([file])
    print(json.dumps([file, result.version, result.records]), flush=True)
"""


@pytest.mark.slow
def test_every_acknowledged_record_is_there_once_and_no_load_fails(lake: Command) -> None:
    lake.pool("p")
    files = [
        [
            lake.file(f"{i}-{j}.ndjson", [{"k": k, "from": f"{i}-{j}"} for k in range(RECORDS)])
            for j in range(LOADS)
        ]
        for i in range(LOADERS)
    ]
    loaders = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, lake.uri, *mine],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for mine in files
    ]
    acknowledged: list[tuple[str, int, int]] = []
    try:
        for loader in loaders:
            assert loader.stdout is not None
            assert loader.stdout.readline() == "ready\n"
        for loader in loaders:
            assert loader.stdin is not None
            loader.stdin.write("\n")
            loader.stdin.flush()
        for loader in loaders:
            out, err = loader.communicate(timeout=600)
            assert (loader.returncode, err) == (0, "")
            acknowledged += [tuple(json.loads(line)) for line in out.splitlines()]
    finally:
        for loader in loaders:
            if loader.poll() is None:
                loader.kill()
                loader.wait(timeout=600)
    assert sorted(file for file, _, _ in acknowledged) == sorted(file for mine in files for file in mine)
    assert {records for _, _, records in acknowledged} == {RECORDS}
    history = lake.history("p")
    assert sorted(n for _, n, _ in acknowledged) == sorted(entry["version"] for entry in history)
    assert len(history) == LOADERS * LOADS
    scanned = lake.scan("p")
    assert [r["k"] for r in scanned] == sorted(r["k"] for r in scanned)
    found = Counter((r["k"], r["from"]) for r in scanned)
    assert found == Counter({(k, Path(f).stem): 1 for mine in files for f in mine for k in range(RECORDS)})
