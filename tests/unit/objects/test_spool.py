"""Batches on disk: what is read back, and that space used again belongs to one batch."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from log_lake.objects.spool import Spool


def batch(seed: int, rows: int = 300) -> pa.RecordBatch:
    numbers = np.random.default_rng(seed).integers(0, 1 << 40, rows)
    return pa.record_batch({"k": numbers, "text": [f"record {n}" for n in numbers]})


@pytest.mark.parametrize("packed", [False, True])
def test_a_batch_in_space_that_is_used_again_changes_no_other(packed: bool) -> None:
    """Arrow's buffer of packed bytes shows more than its size: such bytes went into the batch behind it."""
    with Spool("a test", packed=packed) as spool:
        pieces = {seed: spool.put(batch(seed)) for seed in range(40)}
        for seed in range(0, 40, 2):
            assert spool.take(pieces.pop(seed), batch(0).schema).equals(batch(seed))
            pieces[100 + seed] = spool.put(batch(100 + seed))
        with ThreadPoolExecutor(4) as threads:
            found = threads.map(lambda one: (one[0], spool.read(one[1], batch(0).schema)), pieces.items())
            assert all(read.equals(batch(seed)) for seed, read in found)


def test_a_batch_that_is_read_stays_and_one_that_is_taken_leaves_its_space() -> None:
    with Spool("a test") as spool:
        first = spool.put(batch(1))
        assert spool.read(first, batch(0).schema).equals(batch(1))
        assert spool.put(batch(2)).at > first.at
        assert spool.take(first, batch(0).schema).equals(batch(1))
        assert spool.put(batch(3)).at == first.at


@pytest.mark.parametrize("end", ["close", "forget"])
def test_no_file_stays_open(end: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = len(os.listdir("/proc/self/fd"))
    spool = Spool("a test")
    spool.put(batch(1))
    assert len(os.listdir("/proc/self/fd")) == before + 1
    assert os.listdir(tmp_path) == []
    if end == "close":
        spool.close()
    del spool
    assert len(os.listdir("/proc/self/fd")) == before
