"""What reading logs: one line a decision, with figures."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.reading.limits import ScanLimits
from log_lake.stores import open_store

SOON = ScanLimits(min_datafusion_rows=1)
"""DataFusion merges however few records there are."""


def pool_of(tmp_path: Path, limits: ScanLimits, loads: list[list[int]]) -> Pool:
    pool = Lake.create_on(open_store(str(tmp_path / "lake")), limits=limits).create_pool("p", key="k")
    for keys in loads:
        pool.branch().append(pa.table({"k": keys}))
    return pool


@pytest.mark.parametrize(
    ("limits", "loads", "line"),
    [
        (
            ScanLimits(),
            [[1, 3], [2, 4]],
            "merges 2 objects of 4 records in windows: fewer than 100,000 records an object",
        ),
        (SOON, [[1, 3], [2, 4]], "merges 2 objects of 4 records by DataFusion"),
        (
            ScanLimits(),
            [list(range(20)), [7]],
            "merges 2 objects of 21 records by inserting the newest 1 into the other 20",
        ),
        (
            ScanLimits(max_streams=2, max_tiny_bytes=0),
            [[1, 3], [2, 4], [0, 5]],
            "merges 3 objects in two passes: at first into 1 run",
        ),
    ],
)
def test_a_merge_is_logged_with_its_way_and_why(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    limits: ScanLimits,
    loads: list[list[int]],
    line: str,
) -> None:
    pool = pool_of(tmp_path, limits, loads)
    caplog.set_level("INFO", "log_lake")
    pool.at().to_table()
    assert line in caplog.messages


def test_what_a_merge_wrote_to_disk_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pool = pool_of(tmp_path, ScanLimits(max_streams=2, max_tiny_bytes=0), [[1, 3], [2, 4], [0, 5]])
    caplog.set_level("INFO", "log_lake")
    pool.at().to_table()
    (line,) = (m for m in caplog.messages if "to disk, at most" in m)
    assert line.startswith("the merge wrote ")


def test_one_object_is_no_merge_to_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pool = pool_of(tmp_path, ScanLimits(), [[1, 3]])
    caplog.set_level("INFO", "log_lake.reading")
    pool.at().to_table()
    assert caplog.messages == []
