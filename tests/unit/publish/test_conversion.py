"""With `publish.types=text` a table has what Iceberg has no type for, as pyiceberg and DuckDB read it."""

from __future__ import annotations

import datetime as dt
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyiceberg")

from pyiceberg.table import StaticTable

from lake_core import naming
from lake_core.errors import InvalidInput
from lake_core.store import ObjectInfo
from log_lake.agents.compact.publication import publication_due
from log_lake.erasure.copies import held_copies
from log_lake.erasure.receipt import DONE, PENDING
from log_lake.erasure.run import erase, go_on
from log_lake.erasure.verify import verify
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.objects.copied import copied_id, copy_name
from log_lake.publish.run import PUBLISHED, UNCHANGED, publish_iceberg
from log_lake.rewriting.compaction import compact
from tests.support.iceberg import ODD, a_local_pool, read_table


def in_table(folder: Path, **more: Any) -> tuple[Pool, list[dict[str, Any]]]:
    """The pool with three odd records and a whole one, and what its table has, by key."""
    records = pa.table({"k": pa.array([1, 2, 3]), **ODD})
    pool = a_local_pool(folder, records, {"k": [4]}, settings={"publish.types": "text"}, **more)
    done = publish_iceberg(pool)
    return pool, sorted(read_table(done.location).to_pylist(), key=lambda row: row["k"])


def test_every_field_has_its_nearest_type_or_its_text(tmp_path: Path) -> None:
    _, rows = in_table(tmp_path)
    assert rows[0] == {
        "k": 1,
        "u8": 0,
        "u32": 0,
        "u64": Decimal(0),
        "ns": "1970-01-01T00:00:00.000000001",
        "instant ns": "1970-01-01T00:00:00.000000001Z",
        "ms": dt.datetime(1970, 1, 1, 0, 0, 0, 1000),
        "time ns": "00:00:00.000000001",
        "time s": dt.time(0, 0, 1),
        "span": rows[0]["span"],
        "record": '{"u":1,"s":"a"}',
        "list": "[18446744073709551615]",
    }
    assert isinstance(rows[0]["span"], str)
    assert (rows[1]["u8"], rows[1]["u32"], rows[1]["u64"]) == (255, 2**32 - 1, Decimal(2**64 - 1))
    assert [rows[2][name] for name in ("u8", "u64", "ns", "ms", "list")] == [None] * 5
    assert rows[3]["k"] == 4
    assert set(rows[3].values()) == {4, None}


def test_values_of_several_kinds_are_json(tmp_path: Path) -> None:
    first, second = {"k": [1, 2], "v": [1, 2]}, {"k": [3], "v": ["1"]}
    pool = a_local_pool(tmp_path, first, second, settings={"publish.types": "text"})
    done = publish_iceberg(pool)
    rows = {row["k"]: row["v"] for row in read_table(done.location).to_pylist()}
    assert rows == {1: "1", 2: "2", 3: '"1"'}
    compact(pool.branch(), pool.at().references, message="one")
    again = publish_iceberg(pool)
    assert {row["k"]: row["v"] for row in read_table(again.location).to_pylist()} == rows


def test_strict_refuses_with_one_line_and_a_change_publishes_again(tmp_path: Path) -> None:
    pool, _ = in_table(tmp_path)
    lake = Lake.open(tmp_path / "lake")
    assert publish_iceberg(pool).outcome == UNCHANGED
    lake.configure_pool("p", {"publish.types": "strict", "publish.iceberg": "beside"})
    pool = lake.pool("p")
    assert publication_due(pool, branch="main") == "publish.types was changed"
    refused = (
        r"field 'u8' is of type .*--without u8\), or publish it converted \(lake set p publish.types=text\)$"
    )
    with pytest.raises(InvalidInput, match=refused):
        publish_iceberg(pool)
    done = publish_iceberg(pool, without=list(ODD))
    assert (done.outcome, done.added) == (PUBLISHED, 1), "the object is shown as it is"
    assert publication_due(lake.pool("p"), branch="main") == ""


def test_keys_that_become_text_leave_the_order_out(tmp_path: Path) -> None:
    at = pa.array([1, 10**9, 10**18], pa.timestamp("ns"))
    pool = a_local_pool(tmp_path, pa.table({"at": at}), key="at", settings={"publish.types": "text"})
    done = publish_iceberg(pool)
    table = StaticTable.from_metadata(done.location)
    assert table.sort_order().fields == []
    assert [row["at"] for row in table.scan("at = '1970-01-01T00:00:01'").to_arrow().to_pylist()] == [
        "1970-01-01T00:00:01"
    ]


def test_only_objects_that_need_it_are_copied_and_hidden_records_are_not(tmp_path: Path) -> None:
    pool, _ = in_table(tmp_path)
    place = tmp_path / "lake" / pool.config.id / "published/iceberg/main"
    assert len(list(place.glob("data/*.parquet"))) == 1
    pool.branch().append(pa.table({"k": [5]}))
    done = publish_iceberg(pool)
    assert (done.outcome, done.added, len(list(place.glob("data/*.parquet")))) == (PUBLISHED, 1, 1)
    pool.branch().delete(where="u8 = 255")
    done = publish_iceberg(pool)
    assert len(list(place.glob("data/*.parquet"))) == 2, "the old one stays for vacuum.grace"
    assert sorted(row["k"] for row in read_table(done.location).to_pylist()) == [1, 3, 4, 5]
    assert (done.records, done.hidden) == (4, 0)


def test_an_erasure_is_pending_until_no_copy_of_an_erased_object_is_there(tmp_path: Path) -> None:
    pool, _ = in_table(tmp_path)
    receipt = erase(pool, where="k = 2")
    assert (receipt.status, {held.by.split()[0] for held in receipt.held}) == (PENDING, {"copy", "tag"})
    assert any("copy " in line and "may hold such a record" in line for line in verify(pool, receipt))
    assert publish_iceberg(pool).outcome == PUBLISHED
    receipt = go_on(pool, receipt)
    assert (receipt.status, {held.by.split()[0] for held in receipt.held}) == (PENDING, {"copy"})
    pool.branch().append(pa.table({"k": [9]}))
    for copy in tmp_path.rglob("published/**/data/*.parquet"):
        os.utime(copy, (1_000_000, 1_000_000))  # vacuum.grace has passed since
    assert publish_iceberg(pool).outcome == PUBLISHED
    done = go_on(pool, receipt)
    assert (done.status, list(verify(pool, done))) == (DONE, [])
    assert sorted(read_table(publish_iceberg(pool).location)["k"].to_pylist()) == [1, 3, 4, 9]


def test_a_copy_names_its_object() -> None:
    for id in ("0ujtsYcgvSTl8PAuAdqWYSMnLOv", "0ujtsYcgvSTl8PAuAdqWYSMnLOv.zng"):
        assert copied_id(f"p/published/iceberg/main/{copy_name(id, 'ab', 'cd')}") == id
    for other in (
        "p/published/iceberg/main/metadata/0ujtsYcgvSTl8PAuAdqWYSMnLOv-m0.avro",
        "p/data/x-y.parquet",
    ):
        assert copied_id(other) is None


def test_an_erasure_lists_the_objects_once_more_only_if_there_are_copies(tmp_path: Path) -> None:
    pool, _ = in_table(tmp_path)
    receipt, asked = erase(pool, where="k = 99"), list[int]()

    def on_store() -> list[ObjectInfo]:
        asked.append(1)
        return list(pool.store.list(naming.data(pool.config.id)))

    assert held_copies(pool, receipt, on_store) == ()
    assert asked == [1]
    bare = a_local_pool(tmp_path / "bare", {"k": [1]})
    assert held_copies(bare, erase(bare, where="k = 99"), on_store) == ()
    assert asked == [1]
