"""Real logs, 133,106 records of 23 types: they become ZST and are read back equal."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from log_lake.zng.from_arrow import batch_of_tables
from log_lake.zng.rows import batch_of
from log_lake.zng.to_arrow import record_batches
from tests.support.zng_files import ZEEK, files, opened, rows_of, zng_of, zst_of

LOGS = files(ZEEK, "*.zng.gz")


@pytest.mark.parametrize("path", LOGS)
def test_a_log_becomes_zst_and_is_read_back_equal(path: Path) -> None:
    rows = rows_of(gzip.decompress(path.read_bytes()))
    data = zng_of(rows)
    assert zng_of(map(batch_of, rows)) == data
    assert zng_of(opened(zst_of(rows)).batches()) == data


@pytest.mark.parametrize("path", LOGS)
def test_a_log_becomes_arrow_and_comes_back_equal(path: Path) -> None:
    rows = rows_of(gzip.decompress(path.read_bytes()))
    batches = [batch_of(some) for some in rows]
    assert zng_of(batch_of_tables(record_batches(b), b.kinds) for b in batches) == zng_of(rows)


@pytest.mark.parametrize("path", LOGS)
def test_compressed_streams_are_read_back_equal(path: Path) -> None:
    data = zng_of(rows_of(gzip.decompress(path.read_bytes())))
    packed = zng_of(rows_of(data), block_bytes=16_384)
    assert len(packed) < len(data)
    assert zng_of(rows_of(packed)) == data


@pytest.mark.skipif(not ZEEK.is_dir(), reason="the logs are not there")
def test_all_logs_fit_into_one_file_with_many_segments() -> None:
    rows = [r for path in sorted(ZEEK.glob("*.zng.gz")) for r in rows_of(gzip.decompress(path.read_bytes()))]
    file = opened(zst_of(rows, skew_bytes=1_000_000, segment_bytes=20_000))
    assert len(file.types) == 23
    assert zng_of(file.batches()) == zng_of(rows)
