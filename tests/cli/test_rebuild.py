"""`lake rebuild`: a pool made anew from its data objects, when its journal, its config or half of it is gone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support.command import ALREADY_EXISTS, CORRUPT, INVALID_INPUT, NOT_FOUND, Command


@pytest.fixture
def pool(three_loads: str) -> str:
    """A pool of three transactions, each of one record: the keys 1, 2 and 3."""
    return three_loads


def folder(lake: Command) -> Path:
    """The folder of the first pool."""
    return min(p for p in Path(lake.uri).iterdir() if len(p.name) == 27)


def forget_the_journal(lake: Command) -> None:
    shutil.rmtree(folder(lake) / "journal")


def files(lake: Command) -> dict[str, bytes]:
    root = Path(lake.uri)
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_a_pool_without_its_journal_is_back_under_its_name_and_works_on(lake: Command, pool: str) -> None:
    lake("compact", pool, "--strategy", "full")
    lake.load_records(pool, [{"k": 4}], "4.ndjson")
    before, there = lake.scan(pool), files(lake)
    forget_the_journal(lake)
    assert "all of it is gone" in lake.fails(CORRUPT, "scan", pool)
    assert f"lake rebuild {pool};" in lake.run("fsck").out
    done = lake("rebuild", pool, "--yes")
    assert "p: made 4 records in 2 objects" in done.err
    assert "note: tokens and the list of ingested source files are lost" in done.err
    assert lake.scan(pool) == before
    now = files(lake)
    assert {n: d for n, d in there.items() if "/data/" in n} == {
        n: d for n, d in now.items() if "/data/" in n
    }
    assert lake("fsck", "--data").out == ""
    lake.load_records(pool, [{"k": 5}], "5.ndjson")
    lake("delete", pool, "--key", "1")
    lake("compact", pool, "--strategy", "full")
    lake("checkpoint", pool)
    assert [r["k"] for r in lake.scan(pool)] == [2, 3, 4, 5]
    assert lake("fsck", "--data").out == ""


def test_a_dry_run_says_what_would_be_made_and_changes_nothing(lake: Command, pool: str) -> None:
    forget_the_journal(lake)
    bad = min((folder(lake) / "data").iterdir())
    bad.write_bytes(b"PAR1 but no longer")
    before = files(lake)
    said = lake("rebuild", pool, "--dry-run").err
    assert "p: would make 2 records in 2 objects" in said
    assert f"damaged: {bad.stem}: an unknown number of records lost" in said
    (plan,) = lake("rebuild", pool, "--dry-run", "--json").records
    assert (plan["done"], plan["records"], plan["lost"]) == (False, 2, [bad.stem])
    assert files(lake) == before
    assert lake.fails(INVALID_INPUT, "rebuild", pool).endswith("add --yes")
    assert files(lake) == before


def test_parts_of_a_journal_are_not_touched_and_the_new_pool_has_copies(lake: Command, pool: str) -> None:
    (folder(lake) / "journal" / f"{2:020d}.txn").unlink()
    assert lake.run("scan", pool).status == CORRUPT
    before = files(lake)
    assert "--name NEW" in lake.fails(INVALID_INPUT, "rebuild", pool, "--yes")
    assert lake.run("rebuild", pool, "--name", pool, "--yes").status == ALREADY_EXISTS
    assert "with copies" in lake("rebuild", pool, "--name", "q", "--yes").err
    assert [r["k"] for r in lake.scan("q")] == [1, 2, 3]
    now = files(lake)
    assert {name: now[name] for name in before} == before
    lake("drop", pool, "--yes")
    lake("rename", "q", pool)
    assert [r["k"] for r in lake.scan(pool)] == [1, 2, 3]


def test_a_pool_that_the_list_of_pools_lost_is_rebuilt_by_its_id(lake: Command, pool: str) -> None:
    shutil.rmtree(Path(lake.uri) / "pools")
    forget_the_journal(lake)
    id = folder(lake).name
    for refused in (["ls"], ["create", "q", "--key", "k"]):
        assert "lake rebuild ID --name NAME" in lake.fails(CORRUPT, *refused)
    assert lake.run("rebuild", pool, "--yes").status == NOT_FOUND
    assert "--name NEW" in lake.fails(INVALID_INPUT, "rebuild", id, "--yes")
    assert "the list of pools is lost" in lake("rebuild", id, "--name", "p", "--dry-run").err
    assert lake.run("ls").status == CORRUPT, "a dry run writes nothing"
    said = lake("rebuild", id, "--name", "p", "--yes").err
    assert "note: the objects do not tell the kind; it is taken for append" in said
    assert "note: the settings of the pool are lost" in said
    assert [r["k"] for r in lake.scan("p")] == [1, 2, 3]
    (shown,) = lake("show", "p", "--json").records
    assert (shown["id"], shown["key"], shown["kind"]) == (id, "k", "append")


def test_the_kind_is_told_by_delete_markers_and_sums_or_by_the_user(lake: Command) -> None:
    lake("create", "u", "--key", "k", "--kind", "upsert")
    lake.load_records("u", [{"k": 1, "v": 1}, {"k": 2, "v": 2}], "1.ndjson")
    lake.load_records("u", [{"k": 1, "_deleted": True}], "2.ndjson")
    upserts = folder(lake).name
    shutil.rmtree(Path(lake.uri) / "pools")
    forget_the_journal(lake)
    assert "taken for upsert" in lake("rebuild", upserts, "--name", "u", "--yes").err
    assert lake.scan("u") == [{"k": 2, "v": 2}]
    lake("create", "a", "--key", "k", "--kind", "aggregate", "--aggregate", "v=sum")
    for n in (1, 2):
        lake.load_records("a", [{"k": 1, "v": n}], f"a{n}.ndjson")
    (shown,) = lake("show", "a", "--json").records
    shutil.rmtree(Path(lake.uri) / "pools")
    shutil.rmtree(Path(lake.uri) / shown["id"] / "journal")
    refused = lake.fails(INVALID_INPUT, "rebuild", shown["id"], "--name", "a", "--yes")
    assert "name --kind aggregate and --aggregate v=sum" in refused
    lake(*["rebuild", shown["id"], "--name", "a", "--kind", "aggregate", "--aggregate", "v=sum", "--yes"])
    assert lake.scan("a") == [{"k": 1, "v": 3}]


def test_a_key_or_kind_other_than_the_pools_is_refused(lake: Command, pool: str) -> None:
    forget_the_journal(lake)
    assert "leave it out" in lake.fails(INVALID_INPUT, "rebuild", pool, "--key", "v", "--yes")
    assert "leave it out" in lake.fails(INVALID_INPUT, "rebuild", pool, "--kind", "upsert", "--yes")
    lake("rebuild", pool, "--key", "k", "--kind", "append", "--yes")


def test_the_records_of_sub_pools_are_back_too(lake: Command) -> None:
    lake.pool("p", bad_records="quarantine")
    lake.load_records("p", '{"k": 1}\n{"v": "no key"}\n{"k": \n')
    parts = [lake.scan(name) for name in ("p", "p.$nokey", "p.$rejected")]
    forget_the_journal(lake)
    lake("rebuild", "p", "--yes")
    assert [lake.scan(name) for name in ("p", "p.$nokey", "p.$rejected")] == parts
    assert json.dumps(parts).count("no key") == 1


def test_a_pool_without_an_object_is_not_found(lake: Command) -> None:
    lake.pool("p")
    assert "no data object" in lake.fails(NOT_FOUND, "rebuild", "p", "--yes")
    assert lake.run("rebuild", "nobody", "--yes").status == NOT_FOUND
    assert lake.run("rebuild", "0" * 27, "--name", "x", "--yes").status == NOT_FOUND
