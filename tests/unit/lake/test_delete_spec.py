"""Whether there is anything to delete: how much is read to find out, and what follows where that is not enough."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lake_core.store import Store
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.objects.read import DataObject


def filled(folder: Path, *, loads: int, kind: str = "append") -> Pool:
    """Each load with the values 0 and 10, so that statistics do not tell that 5 is in none of them."""
    pool = Lake.create(str(folder)).create_pool("p", key="k", kind=kind)
    for n in range(loads):
        pool.branch().append(pa.table({"k": [n, n + 1], "v": [0, 10]}))
    return pool


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The objects that are opened from now on."""
    found: list[str] = []
    begin = DataObject.__init__

    def init(self: DataObject, store: Store, *, object_id: str, **more: Any) -> None:
        found.append(object_id)
        begin(self, store, object_id=object_id, **more)

    monkeypatch.setattr(DataObject, "__init__", init)
    return found


@pytest.mark.parametrize("kind", ["append", "upsert"])
def test_what_is_nowhere_is_not_deleted(tmp_path: Path, kind: str) -> None:
    pool = filled(tmp_path, loads=20, kind=kind)
    assert pool.branch().delete(where="v = 5").version is None
    assert pool.branch().delete(key_range=pool.at().key_range(low=100)).version is None
    assert not pool.at().tombstones


@pytest.mark.parametrize("kind", ["append", "upsert"])
def test_where_too_many_objects_would_be_read_it_is_deleted_unseen(
    tmp_path: Path, kind: str, opened: list[str]
) -> None:
    pool = filled(tmp_path, loads=70, kind=kind)
    opened.clear()
    before = pool.at().records
    assert pool.branch().delete(where="v = 5").version is not None
    assert len(opened) <= 64
    assert len(pool.at().tombstones) == 1
    assert pool.at().to_table().num_rows == (before if kind == "append" else 71)


def test_a_record_that_is_found_ends_the_search(tmp_path: Path, opened: list[str]) -> None:
    pool = filled(tmp_path, loads=70)
    opened.clear()
    assert pool.branch().delete(where="v = 10").version is not None
    assert len(opened) == 1
    assert set(pool.at().to_table()["v"].to_pylist()) == {0}


def test_in_an_upsert_pool_what_was_overwritten_is_not_there(tmp_path: Path) -> None:
    pool = filled(tmp_path, loads=1, kind="upsert")
    pool.branch().append(pa.table({"k": [0], "v": [5]}))
    assert pool.branch().delete(where="k = 0 and v = 0").version is None
    assert pool.branch().delete(where="k = 0 and v = 5").version is not None
