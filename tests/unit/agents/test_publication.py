"""The compact agent publishes after its work, if the pool's setting asks for it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from log_lake.agents.compact.publication import publication_due, published
from log_lake.agents.compact.report import pool_line, summary
from log_lake.compaction.gain import Standing
from tests.support.agents import finder
from tests.support.iceberg import a_local_pool

find = finder("compact")

pytest.importorskip("pyiceberg")


def test_a_pool_without_the_setting_is_neither_looked_at_nor_published(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, {"k": [1]})
    assert publication_due(pool, branch="main") == ""
    assert published(pool, branch="main") == {}
    assert find({"lake": pool.store.uri}) == []


def test_a_pool_is_handed_out_while_its_table_is_behind(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, settings={"publish.iceberg": "beside"})
    assert find({"lake": pool.store.uri}) == [], "there is nothing to publish"
    pool.branch().append(pa.table({"k": [1]}))
    (work,) = find({"lake": pool.store.uri})
    assert (work["title"], work["jobs"]) == ("p: not published yet", [])
    done = published(pool, branch="main")
    assert done["published"] == 1
    assert find({"lake": pool.store.uri}) == []
    pool.branch().append(pa.table({"k": [2]}))
    (work,) = find({"lake": pool.store.uri})
    assert work["title"] == "p: the published table is behind"
    assert find({"lake": pool.store.uri, "branch": "main", "dry_run": True}) == []


def test_only_main_is_published(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, {"k": [1]}, settings={"publish.iceberg": "beside"})
    pool.create_branch("dev")
    assert publication_due(pool, branch="dev") == ""
    assert published(pool, branch="dev") == {}


def test_the_report_says_what_was_published_or_why_not(tmp_path: Path) -> None:
    pool = a_local_pool(
        tmp_path, {"k": [1], "c": [1]}, settings={"publish.iceberg": str(tmp_path / "tables")}
    )
    how = {"before": Standing(1), "after": Standing(1)}
    line = pool_line(summary("p", [], **how, publication=published(pool, branch="main")))
    assert line == (
        f"p: nothing was merged; overlap 1 -> 1; version 1 of main is published at {tmp_path}/tables: 1 record "
        "in 1 object (1 new)"
    )
    pool.branch().append(pa.table({"k": [1], "c": ["x"]}))
    done = published(pool, branch="main")
    assert done["published"] is None
    assert pool_line(summary("p", [], **how, publication=done)).endswith(
        "; not published: pool 'p': field 'c' holds values of several kinds, or empty records, as JSON; leave it "
        "out (--without c), or publish it converted (lake set p publish.types=text)"
    )
