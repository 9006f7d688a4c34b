"""A clone is published as a table that names objects of its source, and again after it was written to."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pyiceberg")

from log_lake.lake import Lake
from tests.support.iceberg import check_published


def test_a_clone_is_published_without_a_copy(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    pool = lake.create_pool("p", key="k")
    pool.branch().append(pa.table({"k": range(9)}))
    pool.branch().append(pa.table({"k": range(5, 20)}))
    clone = lake.clone("p", "c")
    assert (check_published(clone).objects, check_published(pool).objects) == (2, 2)
    clone.branch().append(pa.table({"k": [30]}))
    done = check_published(clone)
    assert (done.objects, done.added) == (3, 1), "what the last table had of the source is reused"
    clone.branch().delete(where="k < 7")
    done = check_published(clone)
    assert (done.records, done.delete_files) == (16, 2)
    clone.branch().append(pa.table({"k": [31]}))
    done = check_published(clone)
    assert (done.objects, done.added, done.added_deletes) == (4, 1, 0)
