"""Small work of the agents without Spark: the same units, one after the other, and the same outcome."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from lake_core.errors import Corrupt, NotFound, Unavailable
from log_lake.agents import driver
from log_lake.agents.checkpoint.run import JOURNAL
from log_lake.agents.compact.run import CompactWork
from log_lake.agents.driver import Outcome
from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore
from log_lake.workers import Worker
from spark_apps.in_task import InTask
from spark_apps.packs import carry_out
from spark_apps.workers import workers_of

SETTINGS = {
    "ingest.source": "{folder}/in",
    "ingest.batch_age": "0s",
    "tombstones.apply": "0s",
    "compact.strategy": "full",
    "checkpoint.entries": "1",
}


class Opener:
    """Opens no Spark; keeps the sizes of the work that it was asked for."""

    def __init__(self) -> None:
        self.sizes: list[int | None] = []

    @contextmanager
    def __call__(self, name: str, /, *, size: int | None = None) -> Iterator[Any]:
        self.sizes.append(size)
        yield InTask()


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake.create(str(tmp_path / "lake"))
    settings = {name: value.format(folder=tmp_path) for name, value in SETTINGS.items()}
    lake.create_pool("p", key="k", settings=settings)
    (tmp_path / "in").mkdir()
    return lake


def work_of(agent: str, lake: Lake, **also: Any) -> list[Any]:
    """What the agent finds to do."""
    request = {"lake": lake.store.uri, "pools": ["p"], "dry_run": False, **also}
    return list(driver.find(agent, request).work)


def work_on(name: str, lake: Lake) -> list[CompactWork]:
    """A compaction of the pool that has nothing to do."""
    return [CompactWork(lake=lake.store.uri, pool=name, title=name)]


def done(agent: str, lake: Lake, **also: Any) -> tuple[Any, list[int | None]]:
    """The outcome of all that the agent finds, and the sizes of it."""
    opener = Opener()
    all_work = work_of(agent, lake, **also)
    assert all_work, agent
    return carry_out(agent, all_work, open_lake=Lake.open, open_spark=opener), opener.sizes


def test_the_agents_do_without_spark_what_they_do_on_it(lake: Lake, tmp_path: Path) -> None:
    rows = "".join(f'{{"k": {number}}}\n' for number in range(100))
    (tmp_path / "in" / "a.ndjson").write_text(rows)
    outcome, sizes = done("ingest", lake)
    assert (outcome.results[0].records, sizes) == (100, [len(rows)])
    pool = lake.pool("p")
    pool.branch().append(pa.table({"k": list(range(50, 150))}))
    in_all = sum(reference.size for reference in pool.at().references)
    outcome, sizes = done("compact", lake)
    assert (outcome.results[0].jobs, sizes, len(pool.at().references)) == (1, [in_all], 1)
    pool.branch().delete(where="k < 10")
    in_all = sum(reference.size for reference in pool.at().references)
    outcome, sizes = done("tombstones", lake)
    assert (outcome.results[0].rewritten, sizes) == (1, [in_all])
    assert (pool.at().to_table().num_rows, outcome.results[0].left) == (190, 0)
    outcome, sizes = done("checkpoint", lake)
    assert [(one.pool, one.written) for one in outcome.results] == [("p", True)]
    assert sizes == [JOURNAL]
    assert outcome.failures == ()


def test_the_pool_of_jobs_is_kept_without_spark(lake: Lake) -> None:
    lake.pool("p").branch().append(pa.table({"k": [1]}))
    for _ in range(4):
        carry_out("compact", work_on("p", lake), open_lake=Lake.open, open_spark=Opener())
    lake.configure_pool("$jobs", {"checkpoint.entries": "1"})
    before = lake.pool("$jobs").at()
    for agent in ("compact", "checkpoint"):
        opener = Opener()
        all_work = work_of(agent, lake, pools=["$jobs"])
        outcome = carry_out(agent, all_work, open_lake=Lake.open, open_spark=opener)
        assert (len(outcome.done), outcome.failures, opener.sizes) == (1, (), []), agent
    after = lake.pool("$jobs").at()
    assert (len(before.references), len(after.references)) == (8, 1)
    assert after.to_table().equals(before.to_table())


def test_the_first_error_of_a_unit_is_raised_as_it_is() -> None:
    def answer(worker: Worker, unit: int) -> int:
        if unit:
            raise Corrupt(f"unit {unit}")
        return unit

    workers = workers_of(InTask(), Lake.create_on(MemoryStore()).context)
    assert workers.map(answer, range(1)) == [0]
    with pytest.raises(Corrupt, match="unit 1"):
        workers.map(answer, range(3))


def test_a_piece_whose_error_is_not_of_the_lake_holds_back_no_other(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "in" / "a.ndjson").write_text('{"k": 1}\n')
    (work,) = work_of("ingest", lake)
    broken = msgspec.structs.replace(work, files=5)
    outcome = carry_out("ingest", [broken, work], open_lake=Lake.open, open_spark=Opener())
    assert [(piece, result.records) for piece, result in outcome.done] == [(1, 1)]
    assert len(outcome.failures) == 1
    again = Outcome.of(outcome.values, agent="ingest")
    assert (again.done, str(again.failures[0])) == (outcome.done, f"TypeError: {outcome.failures[0]}")


def test_a_failure_that_may_pass_is_raised_before_the_others() -> None:
    passing, final = Unavailable("the store"), NotFound("a pool")
    with pytest.raises(Unavailable, match="the store"):
        Outcome((), (final, passing)).raise_failure()
    with pytest.raises(ZeroDivisionError):
        Outcome((), (final, ZeroDivisionError())).raise_failure()
    with pytest.raises(NotFound):
        Outcome((), (final,)).raise_failure()
    Outcome((), ()).raise_failure()
