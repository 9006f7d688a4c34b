"""What tasks do to pools: what is planned, and what a result says was done."""

from __future__ import annotations

from typing import Any

from airflow_lake.effects import OVERWRITE, Effect, done, done_work, is_pool, only_target, planned_work
from tests.support.agents import result_of, work_of

LAKE = "lake_default"


FILES = [{"uri": name, "size": 1, "etag": "", "modified": 0.0} for name in ("/a", "/b")]


def work(agent: str = "compact", pool: str = "p", **more: Any) -> Any:
    """What `find` hands out."""
    return work_of(agent, {"lake": LAKE, "pool": pool, "branch": "dev", "title": pool, **more})


def test_what_upkeep_did_has_the_version_that_it_committed_and_what_it_wrote() -> None:
    result = {"pool": "p", "version": 7, "objects": 2, "size_in": 900, "size_out": 500}
    (effect,) = done_work(work(), result_of("compact", result), agent="compact")
    assert (effect.lake, effect.pool, effect.branch, effect.reads, effect.writes) == (
        LAKE,
        "p",
        "dev",
        True,
        True,
    )
    assert (effect.is_done, effect.version, effect.objects, effect.size) == (True, 7, 2, 500)


def test_a_checkpoint_reads_the_version_that_it_saved_and_writes_none() -> None:
    figures = dict.fromkeys(("fence", "entries", "checkpoints", "tail_before", "tail_after"), 0)
    result = {"pool": "p", "checkpoint": 9, "written": True, **figures}
    (effect,) = done_work(work(), result_of("checkpoint", result), agent="checkpoint")
    assert (effect.reads, effect.writes, effect.version) == (True, False, 9)


def test_what_stands_for_no_pool_is_no_dataset() -> None:
    for name in ("dropped pools", "lake:pools"):
        assert not is_pool(name)
        assert planned_work([work("retention", name)], agent="retention") == []
        result = result_of("retention", {"pool": name, "branch": "main", "version": None})
        assert done_work(work("retention", name), result, agent="retention") == []
    assert is_pool("p")
    assert is_pool("$jobs")


def test_what_committed_nothing_changed_nothing() -> None:
    replaces = work("intervals", begin="2026-01-01", files=FILES)
    (planned,) = planned_work([replaces], agent="intervals")
    assert (planned.is_done, planned.version, planned.change) == (False, None, OVERWRITE)
    committed = done(planned, version=3, records=5)
    assert (committed.change, committed.records, committed.version) == (OVERWRITE, 5, 3)
    nothing = done(planned, version=None)
    assert (nothing.is_done, nothing.change, nothing.version) == (True, "", None)


def test_parked_files_were_not_read() -> None:
    files = work("ingest", token="t", files=FILES)
    figures = {"version": 3, "records": 1, "objects": 1, "size": 9}
    result = {"pool": "p", "token": "t", **figures, "parked": [["/b", "not JSON"]]}
    (effect,) = done_work(files, result_of("ingest", result), agent="ingest")
    assert (effect.files, effect.records, effect.size) == (("/a",), 1, 9)


def test_a_task_of_one_pool_has_its_newest_effect_as_target() -> None:
    first, second = (Effect(lake=LAKE, pool="p", version=version) for version in (1, 2))
    assert only_target([first, second]) == second
    assert only_target([first, Effect(lake=LAKE, pool="q")]) is None
