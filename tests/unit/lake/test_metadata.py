"""Metadata: texts that go with every transaction that a lake object commits, and are found in the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from lake_core import naming
from lake_core.errors import InvalidInput
from lake_core.history import Draft
from lake_core.history.group_commit.requests import request_of
from lake_core.records.metadata import MAX_NAME, MAX_PAIRS, MAX_VALUE
from log_lake.lake import Lake
from log_lake.rewriting.compaction import compact
from log_lake.stores.memory import MemoryStore
from log_lake.system_tables import query
from spark_apps.datasource import options as opts
from tests.unit.lake.test_branches import load


def a_store() -> MemoryStore:
    store = MemoryStore()
    Lake.create_on(store).create_pool("p", key="k")
    return store


def test_every_transaction_has_the_metadata_of_its_lake() -> None:
    store = a_store()
    pool = Lake.open_on(store, metadata={"team": "logs", "run": "7"}).pool("p")
    load(pool, 1)
    load(pool, 1)
    pool.branch().delete(where="k = 2")
    compact(pool.branch(), pool.at().references)
    pool.create_branch("dev")
    load(pool, 2, branch="dev")
    pool.branch().merge("dev")
    pool.branch().revert("6")
    pool.tag("t")
    metadata = [dict(t.metadata) for _, t in pool.log()]
    assert [own.pop("lake.reverts", None) for own in metadata] == [None, "6", *[None] * 6]
    assert metadata == [{"run": "7", "team": "logs"}] * 8
    other = Lake.open_on(store)
    load(other.pool("p"), 3)
    assert next(iter(other.pool("p").log()))[1].metadata == {}
    found = query(other, "select version from \"p:log\" where metadata ->> 'team' = 'logs' order by version")
    assert [row["version"] for row in found.read_all().to_pylist()] == list(range(1, 9))


def test_a_draft_keeps_its_metadata_as_a_request() -> None:
    draft = Draft("0" * 27, "main", 0, "", (), metadata={"a": "b"})
    assert request_of(draft, possible_since=0, time=0).draft.metadata == {"a": "b"}


def test_a_task_of_airflow_says_which_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"DAG_ID": "lake_compact", "TASK_ID": "run", "TRY_NUMBER": "2"}.items():
        monkeypatch.setenv(f"AIRFLOW_CTX_{name}", value)
    lake = Lake.open_on(a_store(), metadata={"task": "own"})
    assert lake.context.metadata == {"dag": "lake_compact", "task": "own", "try": "2"}


@pytest.mark.parametrize(
    "metadata",
    [
        {str(n): "" for n in range(MAX_PAIRS + 1)},
        {"": "x"},
        {"n" * (MAX_NAME + 1): ""},
        {"a\n": ""},
        {"a": "v" * (MAX_VALUE + 1)},
    ],
    ids=["pairs", "empty", "long name", "line", "long value"],
)
def test_too_much_metadata_is_refused(metadata: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="metadata"):
        Lake.open_on(a_store(), metadata=metadata)


def test_a_lake_of_version_1_has_no_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    store = a_store()
    head = store.get(naming.LAKE_FILE) or b""
    store.put(naming.LAKE_FILE, head.replace(b'"version": 3', b'"version": 1'))
    with pytest.raises(InvalidInput, match="run lake upgrade"):
        Lake.open_on(store, metadata={"a": "b"})
    monkeypatch.setenv("AIRFLOW_CTX_DAG_ID", "d")
    assert Lake.open_on(store).context.metadata == {}


def test_options_of_spark_writes_that_begin_with_meta_are_metadata(tmp_path: Path) -> None:
    Lake.create(str(tmp_path / "lake"))
    options = {"lake": str(tmp_path / "lake"), "path": "p", "meta.team": "logs"}
    assert opts.open_lake(options).context.metadata == {"team": "logs"}
    for known in (opts.WRITE, opts.WRITE_STREAM):
        opts.check_names(options, known, what="a write")
    with pytest.raises(InvalidInput, match=r"meta\.team"):
        opts.check_names(options, opts.READ, what="a read")
