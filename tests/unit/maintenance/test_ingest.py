"""The ingest agent before and after Spark: what has landed and was not taken, and the report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from lake_core.errors import InvalidInput, NotFound
from lake_core.lake import Lake
from lake_core.maintenance.ingest import find, find_batches, pools_that_ingest, report, waiting_files
from lake_core.pool import Pool
from lake_core.records import Consume, Source
from lake_core.records.landed import LandedFile
from tests.fakes.records import draft

NOW = 2_000_000_000.0


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    folder = tmp_path / "landing"
    folder.mkdir()
    return folder


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.create(str(tmp_path / "lake"), author="test")


@pytest.fixture
def pool(lake: Lake, landing: Path) -> Pool:
    settings = {"ingest.source": str(landing), "ingest.batch_files": "2", "ingest.batch_age": "10s"}
    return lake.create_pool("p", key="k", settings=settings)


def land(folder: Path, name: str, text: str = '{"k": 1}\n', *, age: float = 0.0) -> LandedFile:
    path = folder / name
    path.write_text(text)
    os.utime(path, (NOW - age, NOW - age))
    return LandedFile(str(path), len(text), f"{int((NOW - age) * 10**9):x}", NOW - age)


def take(pool: Pool, *files: LandedFile) -> None:
    pool.history.commit(draft(len(files), Consume(tuple(f.source for f in files)), schemas=()))


def names(files: list[LandedFile]) -> list[str]:
    return [Path(f.uri).name for f in files]


def test_only_pools_with_a_landing_place_ingest(lake: Lake, pool: Pool) -> None:
    lake.create_pool("other", key="k")
    assert pools_that_ingest(lake) == ["p"]
    assert pools_that_ingest(lake, ["p", "p"]) == ["p"]


def test_a_pool_that_is_named_must_exist_and_have_a_landing_place(lake: Lake, pool: Pool) -> None:
    lake.create_pool("other", key="k")
    with pytest.raises(NotFound):
        pools_that_ingest(lake, ["nothing"])
    with pytest.raises(InvalidInput, match=r"lake set other ingest\.source"):
        pools_that_ingest(lake, ["other"])


def test_what_was_taken_waits_no_longer(lake: Lake, pool: Pool, landing: Path) -> None:
    a, b = land(landing, "a.ndjson"), land(landing, "b.ndjson")
    assert waiting_files(lake, "p") == [a, b]
    take(pool, a)
    assert waiting_files(lake, "p") == [b]


def test_a_file_that_changed_after_it_was_taken_waits_again(lake: Lake, pool: Pool, landing: Path) -> None:
    take(pool, land(landing, "a.ndjson"))
    changed = land(landing, "a.ndjson", '{"k": 1}\n{"k": 2}\n')
    assert waiting_files(lake, "p") == [changed]


def test_empty_hidden_and_unfinished_files_do_not_wait(lake: Lake, pool: Pool, landing: Path) -> None:
    land(landing, "empty.ndjson", "")
    for name in (".hidden.ndjson", "_part.ndjson", "a.ndjson.tmp"):
        land(landing, name)
    assert waiting_files(lake, "p") == []


def test_batches_follow_the_policy_of_the_pool(lake: Lake, pool: Pool, landing: Path) -> None:
    for name in ("a.ndjson", "b.ndjson", "c.ndjson"):
        land(landing, name)
    assert [names(list(f.batch.files)) for f in find_batches(lake, now=NOW)] == [["a.ndjson", "b.ndjson"]]
    later = find_batches(lake, now=NOW + 10)
    assert [names(list(f.batch.files)) for f in later] == [["a.ndjson", "b.ndjson"], ["c.ndjson"]]
    assert find_batches(lake, wait=False, now=NOW) == later
    assert [(f.pool, f.branch, f.token) for f in later] == [
        ("p", "main", f.batch.token("main")) for f in later
    ]


def test_a_run_hands_over_plain_values_and_a_dry_run_nothing(
    lake: Lake, pool: Pool, landing: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = land(landing, "a.ndjson", age=60)
    params: dict[str, Any] = {"lake": lake.store.uri, "pools": ["p"], "wait": False}
    (found,) = find(params)
    assert list(found["files"]) == [{"uri": a.uri, "size": a.size, "etag": a.etag, "modified": a.modified}]
    assert (found["lake"], found["pool"], found["branch"]) == (lake.store.uri, "p", "main")
    capsys.readouterr()
    assert find(params | {"dry_run": True}) == []
    said = capsys.readouterr().out
    assert found["token"] in said
    assert "dry run" in said


def test_a_report_sums_the_batches(capsys: pytest.CaptureFixture[str]) -> None:
    one = {
        "pool": "p",
        "transaction": 3,
        "records": 1000,
        "objects": 2,
        "nokey": 1,
        "rejected": 0,
        "repeated": False,
    }
    nothing = one | {"transaction": None, "records": 0, "objects": 0, "nokey": 0}
    totals = report([one, one | {"repeated": True}, nothing])
    assert totals == {"batches": 3, "records": 2000, "objects": 4, "nokey": 2, "rejected": 0}
    assert capsys.readouterr().out.splitlines() == [
        "p: transaction 3, 1,000 records in 2 objects, 1 without the key, 0 rejected",
        "p: transaction 3, 1,000 records in 2 objects, 1 without the key, 0 rejected (had been committed before)",
        "p: nothing to commit",
        "2,000 records in 4 objects of 3 batches, 2 without the key, 0 rejected",
    ]
    assert report([])["batches"] == 0


def test_a_source_is_what_a_transaction_remembers(pool: Pool, landing: Path) -> None:
    a = land(landing, "a.ndjson")
    take(pool, a)
    assert dict(pool.at().state.sources.items()) == {("main", a.uri): Source(a.uri, a.size, a.etag)}
