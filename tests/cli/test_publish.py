"""`lake publish`, and what other commands say of a published table, as a user types it."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.support.command import INVALID_INPUT, NOT_FOUND, Command

pytest.importorskip("pyiceberg")

from tests.support.iceberg import read_table


@pytest.fixture
def pool(lake: Command) -> str:
    """A pool of two loads."""
    lake.pool()
    lake.load_records("p", [{"k": 1, "s": "a"}, {"k": 2, "s": "b"}], "0.ndjson")
    lake.load_records("p", [{"k": 3, "s": "c"}], "1.ndjson")
    return "p"


def answer(lake: Command, *words: str) -> dict[str, Any]:
    (values,) = lake("publish", *words, "--json").records
    return values


def test_a_pool_is_published_beside_its_objects(lake: Command, pool: str) -> None:
    done = answer(lake, pool)
    assert (done["outcome"], done["version"], done["objects"], done["records"]) == ("published", 2, 2, 3)
    assert read_table(done["location"]).to_pylist() == lake.scan(pool)
    assert lake("publish", pool).err == f"p: version 2 of main is published at {done['location']} already\n"


def test_the_result_is_one_line(lake: Command, pool: str) -> None:
    location = answer(lake, pool)["location"]
    lake("delete", pool, "--where", "s = 'a'")
    assert lake("publish", pool, "--as", "iceberg").err == (
        f"p: version 4 of main is published at {location}: 2 records in 2 objects (0 new), 1 record hidden by 1 "
        "file of deletes (1 new)\n"
    )


def test_the_lag_is_said_by_publish_and_by_show(lake: Command, pool: str) -> None:
    missing = lake.run("publish", pool, "--status")
    assert missing.status == NOT_FOUND
    assert "pool 'p': branch 'main' is not published at " in missing.err
    location = answer(lake, pool)["location"]
    assert lake("publish", pool, "--status").err.endswith(f"at {location}; no transaction is newer\n")
    lake.load_records("p", [{"k": 9}], "2.ndjson")
    (status,) = lake("publish", pool, "--status", "--json").records
    assert (status["version"], status["transactions_behind"], status["location"]) == (2, 1, location)
    assert status["seconds_behind"] >= 0
    said = lake("publish", pool, "--status").err
    assert said.startswith("p: version 2 of ")
    assert f", at {location}; behind by 1 transaction, " in said
    assert f"published    {said.removeprefix('p: ').partition(',')[0]}" in lake("show", pool).out
    assert lake("show", pool, "--json").records[0]["published"]["transactions_behind"] == 1


def test_a_branch_and_a_folder_may_be_named(lake: Command, pool: str) -> None:
    lake("branch", pool, "dev")
    (lake.folder / "2.ndjson").write_text('{"k": 9}')
    lake("load", pool, str(lake.folder / "2.ndjson"), "--branch", "dev")
    to = str(lake.folder / "tables")
    assert answer(lake, "p@dev", "--to", to)["location"] == to
    assert read_table(to).num_rows == 4
    refused = lake.run("publish", pool, "--to", to)
    assert refused.status == INVALID_INPUT
    assert f"{to}: there is the table of branch 'dev' of the pool" in refused.err


def test_fields_may_be_left_out_and_stay_left_out(lake: Command, pool: str) -> None:
    location = answer(lake, pool, "--without", "s")["location"]
    assert read_table(location).schema.names == ["k"]
    lake.load_records("p", [{"k": 9, "s": "d"}], "2.ndjson")
    answer(lake, pool)
    assert read_table(location).schema.names == ["k"]
    answer(lake, pool, "--without", "")
    assert read_table(location).schema.names == ["k", "s"]


def test_without_pyiceberg_the_extra_is_named(
    lake: Command, pool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(lake, pool)
    monkeypatch.setitem(sys.modules, "pyiceberg", None)
    refused = lake.run("publish", pool)
    assert refused.status == INVALID_INPUT
    assert "publishing as Iceberg needs the package pyiceberg" in refused.err
    assert "pip install 'log-lake[iceberg]'" in refused.err
    assert lake("publish", pool, "--status").status == 0, "to look needs no package"
    assert lake("show", pool).status == 0


def test_a_compaction_publishes_if_the_setting_says_so(lake: Command, pool: str) -> None:
    lake("set", pool, "publish.iceberg=beside")
    said = lake("compact", pool).err
    assert said.startswith("p: nothing was merged; overlap 1 -> 1; version 2 of main is published at ")
    lake.load_records("p", [{"k": 1}], "2.ndjson")
    (done,) = lake("compact", pool, "--strategy", "full", "--json").records
    assert done["published"] == done["version"]
    assert lake.run("set", pool, "publish.iceberg=here").status == INVALID_INPUT


def test_what_cannot_be_published_does_not_fail_a_compaction(lake: Command, pool: str) -> None:
    lake.load_records("p", [{"k": 1, "s": 7}], "2.ndjson")
    lake("set", pool, "publish.iceberg=beside")
    (done,) = lake("compact", pool, "--json").records
    assert done["published"] is None
    assert done["publication"].startswith("not published: pool 'p': field 's' holds values of several kinds")
