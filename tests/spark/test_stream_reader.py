"""`spark.readStream.format("lake")`: new transactions, each once and in order; an error rather than a gap.

How batches are planned and read is held against the reader itself, in this process; that Spark calls it so, across
restarts, against real queries.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import types as T
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import StructType

from lake_core.errors import InvalidInput, NotFound, ObjectMissing
from log_lake.agents.checkpoint.run import purge_pool, write_checkpoint
from log_lake.lake.results import PendingLoad
from log_lake.loading.block import Block
from spark_apps.datasource import LakeDataSource, stream_reader
from spark_apps.datasource.stream_reader import LakeStreamReader, ObjectsPartition, Offset, StatePartition
from tests.spark.conftest import Landing
from tests.support.rewrites import remove, rewrite

pytestmark = pytest.mark.spark


@pytest.fixture
def five(landing: Landing) -> Landing:
    """Five transactions of two objects of a record; later ones have smaller keys."""
    landing.pool(load_memory="1B", load_sort="parts")
    for n in range(5):
        commit(landing, [90 - 10 * n, 80 - 10 * n])
    return landing


def commit(landing: Landing, keys: list[int], **columns: Any) -> None:
    """One transaction; in the pool of `five` an object for each record."""
    branch = landing.lake.pool("p").branch()
    job = branch.begin_load()
    assert isinstance(job, PendingLoad)
    builder = branch.builder(job)
    table = pa.table({"k": keys} | columns)
    for row in range(table.num_rows):
        builder.add(Block(table.slice(row, 1)))
    written = builder.finish()
    assert len(written) in (1, len(keys))
    branch.commit(job, objects=[w.action for w in written], schemas=[w.schema for w in written])


def purge(landing: Landing) -> None:
    """All entries so far, after a checkpoint."""
    now = time.time() + 1
    write_checkpoint(landing.lake, "p", now=now)
    purge_pool(landing.lake, "p", keep=0, now=now)


def reader(
    landing: Landing, *, schema: StructType | None = None, path: str = "p", **options: str
) -> LakeStreamReader:
    source = LakeDataSource({"lake": landing.uri, "path": path} | {n.lower(): v for n, v in options.items()})
    made = source.streamReader(source.schema() if schema is None else schema)
    assert isinstance(made, LakeStreamReader)
    return made


def keys(of: LakeStreamReader, start: Offset, end: Offset) -> list[Any]:
    """What a batch delivers, task by task."""
    return [
        k
        for partition in of.partitions(start, end)
        for batch in of.read(partition)
        for k in batch.column("k").to_pylist()
    ]


def batches(
    of: LakeStreamReader, start: Offset | None = None, limit: ReadLimit | None = None
) -> list[list[Any]]:
    """All batches from an offset on, as Spark asks for them."""
    start = start or of.initialOffset()
    found = []
    while (end := of.latestOffset(start, limit or of.getDefaultReadLimit())) != start:
        found.append(keys(of, start, end))
        start = end
    return found


# --- what comes, and in which order


def test_everything_comes_by_transaction_and_in_it_by_arrival(five: Landing) -> None:
    assert batches(reader(five)) == [[90, 80, 80, 70, 70, 60, 60, 50, 50, 40]]


def test_a_batch_takes_so_many_transactions(five: Landing) -> None:
    stream = reader(five, maxTransactionsPerBatch="2")
    assert batches(stream) == [[90, 80, 80, 70], [70, 60, 60, 50], [50, 40]]
    assert batches(stream, limit=ReadAllAvailable()) == [[90, 80, 80, 70, 70, 60, 60, 50, 50, 40]]


@pytest.mark.parametrize(
    ("start", "found"),
    [
        ("earliest", [[90, 80, 80, 70, 70, 60, 60, 50, 50, 40]]),
        ("1", [[90, 80, 80, 70, 70, 60, 60, 50, 50, 40]]),
        ("4", [[60, 50, 50, 40]]),
        ("6", []),
        ("latest", []),
    ],
)
def test_a_stream_starts_where_it_is_told_and_goes_on_with_what_is_new(
    five: Landing, start: str, found: list[list[int]]
) -> None:
    stream = reader(five, startingTransaction=start)
    first = stream.initialOffset()
    assert batches(stream, first) == found
    commit(five, [7])
    assert batches(stream, first) == [[*(found[0] if found else []), 7]]


def test_a_stream_is_given_nothing_of_a_rewrite(five: Landing) -> None:
    rewrite(five.lake.pool("p"))
    commit(five, [7])
    assert batches(reader(five, startingTransaction="5")) == [[50, 40, 7]]


def test_a_run_on_what_is_available_now_leaves_what_comes_meanwhile(five: Landing) -> None:
    stream = reader(five, maxTransactionsPerBatch="3")
    stream.prepareForTriggerAvailableNow()
    commit(five, [7])
    assert batches(stream) == [[90, 80, 80, 70, 70, 60], [60, 50, 50, 40]]
    assert stream.reportLatestOffset() == {**stream.initialOffset(), "version": 6}


def test_a_sub_pool_is_a_stream_of_its_own(five: Landing) -> None:
    five.lake.pool("p").branch().append(pa.table({"x": [2, 1]}))
    assert batches(reader(five, path="p.$nokey", schema=StructType().add("k", "long").add("x", "long"))) == [
        [None, None]
    ]


def test_tasks_take_runs_of_objects_of_about_their_size(
    five: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = reader(five)
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadAllAvailable())

    def runs(of: LakeStreamReader) -> list[int]:
        return [len(p.objects) for p in of.partitions(start, end) if isinstance(p, ObjectsPartition)]

    assert runs(stream) == [10]
    options, columns = {"lake": five.uri, "path": "p"}, stream._columns
    small = LakeStreamReader(options, columns.schema, told=columns.told, task_size=4 * stream_reader.OPENING)
    assert runs(small) == [4, 4, 2]
    assert keys(small, start, end) == [90, 80, 80, 70, 70, 60, 60, 50, 50, 40]


# --- what was purged


def test_the_state_stands_for_what_was_purged_before_the_start(five: Landing) -> None:
    purge(five)
    commit(five, [7, 3])
    commit(five, [5])
    everything = [40, 50, 50, 60, 60, 70, 70, 80, 80, 90]
    assert batches(reader(five)) == [[*everything, 7, 3, 5]]
    assert batches(reader(five, maxTransactionsPerBatch="1")) == [everything, [7, 3], [5]], "it counts as one"


def test_all_tasks_of_a_batch_count_ages_from_the_time_it_was_planned(landing: Landing) -> None:
    landing.lake.create_pool("p", key="k", settings={"age_off": "ts:1h"})
    now = pa.scalar(time.time_ns() // 1000, pa.timestamp("us", "UTC"))
    landing.lake.pool("p").branch().append(pa.table({"k": [1], "ts": pa.array([now])}))
    purge(landing)
    stream = reader(landing)
    start = stream.initialOffset()
    (task,) = stream.partitions(start, stream.latestOffset(start, ReadAllAvailable()))
    assert isinstance(task, StatePartition)
    assert sum(batch.num_rows for batch in stream.read(task)) == 1
    later = replace(task, now=task.now + 7200)
    assert sum(batch.num_rows for batch in stream.read(later)) == 0


def test_a_stream_leaves_out_what_a_filter_hides(landing: Landing) -> None:
    landing.lake.create_pool("p", key="k", settings={"keep.where": "v = 'x'"})
    commit(landing, [1, 2], v=["x", "y"], _deleted=["a", "b"])
    stream = reader(landing, columns="k,_deleted")
    start = stream.initialOffset()
    assert keys(stream, start, stream.latestOffset(start, ReadAllAvailable())) == [1]


def test_a_stream_of_an_upsert_pool_shows_what_a_filter_hides_as_delete_markers(landing: Landing) -> None:
    landing.lake.create_pool("p", key="k", kind="upsert", settings={"keep.where": "v = 'x'"})
    landing.lake.pool("p").branch().append(pa.table({"k": [1, 2], "v": ["x", "y"]}))
    shown = reader(landing, schema=StructType().add("k", "long").add("_deleted", "boolean"))
    start = shown.initialOffset()
    (task,) = shown.partitions(start, shown.latestOffset(start, ReadAllAvailable()))
    rows = [row for batch in shown.read(task) for row in batch.to_pylist()]
    assert [(row["k"], bool(row["_deleted"])) for row in rows] == [(1, False), (2, True)]
    with pytest.raises(InvalidInput, match="the stream has no column _deleted"):
        keys(reader(landing), start, shown.latestOffset(start, ReadAllAvailable()))


def test_the_state_at_the_beginning_is_of_the_streams_pool_whatever_pool_has_the_name_by_then(
    five: Landing,
) -> None:
    purge(five)
    stream = reader(five)
    start = stream.initialOffset()
    tasks = stream.partitions(start, stream.latestOffset(start, ReadAllAvailable()))
    five.lake.rename_pool("p", "old")
    five.pool()
    found = [k for task in tasks for batch in stream.read(task) for k in batch["k"].to_pylist()]
    assert found == five.keys("old")


def test_a_users_schema_is_right_or_refused_when_a_batch_is_planned(five: Landing) -> None:
    for schema, said in (
        (StructType().add("K", "long"), "column 'K': pool 'p' has it as 'k'"),
        (StructType().add("k", "date"), "column 'k': the lake does not read bigint as date"),
    ):
        stream = reader(five, schema=schema)
        start = stream.initialOffset()
        with pytest.raises(InvalidInput, match=said):
            stream.partitions(start, stream.latestOffset(start, ReadAllAvailable()))
    assert batches(reader(five, schema=StructType().add("k", "decimal(5,1)")))[0][0] == 90


def test_a_first_batch_that_is_planned_again_after_a_purge_is_as_complete(five: Landing) -> None:
    stream = reader(five)
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadAllAvailable())
    commit(five, [7])
    purge(five)
    with pytest.raises(NotFound, match="version 5 is purged: the history begins after 6"):
        stream.partitions(start, end)
    assert sorted(keys(stream, start, stream.latestOffset(start, ReadAllAvailable()))) == sorted(
        five.keys("p")
    )


def test_a_stream_overtaken_by_a_purge_is_an_error_never_a_gap(five: Landing) -> None:
    stream = reader(five, maxTransactionsPerBatch="1")
    second = stream.latestOffset(
        stream.latestOffset(stream.initialOffset(), stream.getDefaultReadLimit()),
        stream.getDefaultReadLimit(),
    )
    third = stream.latestOffset(second, stream.getDefaultReadLimit())
    assert keys(stream, second, third) == [70, 60]
    purge(five)
    commit(five, [7])
    with pytest.raises(NotFound, match=r"version 3 is purged.*begin again"):
        stream.partitions(second, third)


def test_a_stream_cannot_start_at_what_is_purged_or_not_there_yet(five: Landing) -> None:
    with pytest.raises(NotFound, match="startingTransaction=7 does not exist; use 1 to 6"):
        reader(five, startingTransaction="7").initialOffset()
    purge(five)
    with pytest.raises(NotFound, match="startingTransaction=5 is purged; the history begins after 5"):
        reader(five, startingTransaction="5").initialOffset()


def test_an_object_that_is_gone_is_an_error(five: Landing) -> None:
    stream = reader(five)
    start = stream.initialOffset()
    partitions = stream.partitions(start, stream.latestOffset(start, ReadAllAvailable()))
    view = five.lake.pool("p").at()
    (Path(five.uri) / view.object_name(view.references[0])).unlink()
    with pytest.raises(ObjectMissing):
        [list(stream.read(partition)) for partition in partitions]


# --- started again


def test_a_first_batch_that_is_run_again_begins_where_it_was_planned_to(five: Landing) -> None:
    """Spark then asks for the first offset anew, and `latest` is another one by now."""
    first = reader(five, startingTransaction="latest")
    start = first.initialOffset()
    commit(five, [7])
    end = first.latestOffset(start, ReadAllAvailable())
    commit(five, [8])
    again = reader(five, startingTransaction="latest")
    assert keys(again, again.initialOffset(), end) == [7]
    assert batches(again, end) == [[8]]


def test_another_pool_of_the_same_name_is_not_followed(five: Landing) -> None:
    stream = reader(five)
    end = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    five.lake.drop_pool("p")
    five.pool()
    commit(five, [1])
    with pytest.raises(InvalidInput, match="dropped and created again"):
        reader(five).latestOffset(end, ReadAllAvailable())


def test_an_older_copy_of_the_lake_is_not_followed(five: Landing) -> None:
    stream = reader(five)
    ahead = {**stream.initialOffset(), "version": 9}
    with pytest.raises(NotFound, match="ends at version 5, and the stream has delivered 9"):
        stream.latestOffset(ahead, ReadAllAvailable())


# --- columns


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"new": [1]}, "column 'new' of pool 'p' was not there when the stream was started, and is bigint"),
        ({"s": [1.5]}, "column 's' of pool 'p' was string when the stream was started, and is variant now"),
    ],
)
def test_a_change_of_the_columns_stops_a_stream_that_has_all_and_one_started_again_has_the_new_ones(
    landing: Landing, columns: dict[str, Any], said: str
) -> None:
    landing.pool()
    commit(landing, [1], s=["a"])
    stream = reader(landing)
    start = stream.initialOffset()
    commit(landing, [2], **columns)
    end = stream.latestOffset(start, ReadAllAvailable())
    with pytest.raises(InvalidInput, match=said):
        stream.partitions(start, end)
    assert keys(reader(landing), start, end) == [1, 2]


def rows(of: LakeStreamReader, start: Offset | None = None) -> list[dict[str, Any]]:
    """The records of one batch, from the beginning to the newest version."""
    start = start or of.initialOffset()
    tasks = of.partitions(start, of.latestOffset(start, ReadAllAvailable()))
    return [row for task in tasks for batch in of.read(task) for row in batch.to_pylist()]


def read_at_once(landing: Landing, branch: str) -> list[dict[str, Any]]:
    """The records of a batch read."""
    source = LakeDataSource({"lake": landing.uri, "path": f"p@{branch}"})
    read = source.reader(source.schema())
    return [row for task in read.partitions() for batch in read.read(task) for row in batch.to_pylist()]


@pytest.mark.parametrize(
    ("then", "now"),
    [
        (pa.array([0], pa.date32()), ["text"]),
        (pa.array([1], pa.int32()), [1.5]),
        ([1], ["text"]),
        ([[1]], [["text"]]),
        ([{"a": 1}], [{"a": "text", "b": 2}]),
        (pa.array([1], pa.timestamp("us")), pa.array([1], pa.timestamp("ns"))),
    ],
)
@pytest.mark.parametrize("branch", ["main", "side"])
def test_the_state_at_the_beginning_comes_in_the_kinds_that_its_columns_have_by_now(
    landing: Landing, branch: str, then: Any, now: Any
) -> None:
    pool = landing.lake.create_pool("p", key="k")
    pool.branch().append(pa.table({"k": [1], "x": then}))
    if branch == "side":
        pool.create_branch("side")
    else:
        purge(landing)
    landing.lake.pool("p").branch(branch).append(pa.table({"k": [2], "x": now}))
    found = rows(reader(landing, branch=branch))
    assert found == read_at_once(landing, branch)
    assert [row["k"] for row in found] == [1, 2]


@pytest.mark.parametrize(
    ("then", "now", "found", "chosen"),
    [
        (["text"], None, [{}, {}], T.StringType()),
        (["text"], [5], [{"x": None}, {"x": 5}], T.VariantType()),
        ([1.5], pa.array([5], pa.int32()), [{"x": None}, {"x": 5}], T.DoubleType()),
        ([1], [1.5], [{"x": 1.0}, {"x": 1.5}], None),
        ([[["text"]]], [[[5]]], [{"x": None}, {"x": [[5]]}], T.ArrayType(T.ArrayType(T.VariantType()))),
        ([{"a": 1, "b": 2}], [{"a": 3}], [{"x": {"a": 1}}, {"x": {"a": 3}}], None),
        (
            [{"a": "text"}],
            [{"a": 3}],
            [{"x": None}, {"x": {"a": 3}}],
            T.StructType().add("a", T.VariantType()),
        ),
        (pa.array([1001], pa.timestamp("ns")), pa.array([2], pa.timestamp("us")), [{"x": 1}, {"x": 2}], None),
    ],
)
def test_what_no_record_has_any_more_is_left_out_of_a_stream_which_says_how_to_have_it(
    landing: Landing, caplog: pytest.LogCaptureFixture, then: Any, now: Any, found: Any, chosen: Any
) -> None:
    """The first load is reverted; its records come all the same, since a stream gives each transaction."""
    branch = landing.lake.create_pool("p", key="k").branch()
    branch.append(pa.table({"k": [1], "x": then}))
    branch.revert("1")
    branch.append(pa.table({"k": [2]} if now is None else {"k": [2], "x": now}))
    given = rows(reader(landing))
    assert [row.pop("k") for row in given] == [1, 2]
    assert [{n: getattr(v, "microsecond", v) for n, v in row.items()} for row in given] == found
    assert ("left out" in caplog.text) is (chosen is not None)
    if chosen is not None:
        assert f".schema(..., x {chosen.simpleString()})" in caplog.text
        assert rows(reader(landing, schema=T.StructType().add("x", chosen)))[0]["x"] is not None


def test_a_column_that_came_and_went_while_a_stream_ran_does_not_stop_it(landing: Landing) -> None:
    branch = landing.lake.create_pool("p", key="k").branch()
    branch.append(pa.table({"k": [1]}))
    stream = reader(landing)
    second = branch.append(pa.table({"k": [2], "new": ["x"]}))
    with pytest.raises(InvalidInput, match="column 'new' of pool 'p' was not there"):
        rows(stream)
    wide = reader(landing)
    branch.revert(str(second.version))
    assert rows(stream) == rows(reader(landing)) == [{"k": 1}, {"k": 2}]
    assert rows(wide) == [{"k": 1, "new": None}, {"k": 2, "new": "x"}], "it keeps the columns it began with"


def test_a_state_at_the_beginning_leaves_out_what_no_record_has_any_more(landing: Landing) -> None:
    branch = landing.lake.create_pool("p", key="k").branch()
    branch.append(pa.table({"k": [1], "old": ["a"], "x": ["text"]}))
    purge(landing)
    remove(landing.lake.pool("p"))
    branch.append(pa.table({"k": [2], "x": [5]}))
    assert rows(reader(landing)) == [{"k": 1, "x": None}, {"k": 2, "x": 5}]
    assert rows(reader(landing, columns="x")) == [{"x": None}, {"x": 5}]
    chosen = rows(reader(landing, schema=T.StructType().add("x", T.VariantType())))
    assert all(row["x"] is not None for row in chosen)


def test_columns_that_the_user_chose_stay_whatever_comes(five: Landing) -> None:
    chosen = reader(five, columns="k")
    typed = reader(five, schema=StructType().add("k", "double").add("later", "string"))
    start = chosen.initialOffset()
    commit(five, [7], new=["x"])
    for stream in (chosen, typed):
        end = stream.latestOffset(start, ReadAllAvailable())
        assert keys(stream, start, end)[-1] == 7
    batch = [b for p in typed.partitions(start, end) for b in typed.read(p)][-1]
    assert batch.to_pydict() == {"k": [7.0], "later": [None]}


def test_of_an_upsert_pool_every_version_comes_and_deletes_are_heard_of_or_stop_the_stream(
    landing: Landing,
) -> None:
    landing.lake.create_pool("p", key="k", kind="upsert")
    commit(landing, [1, 2], v=["a", "b"])
    commit(landing, [1], v=["c"])
    stream = reader(landing)
    assert batches(stream) == [[1, 2, 1]]
    end = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    commit(landing, [2], v=[None], _deleted=[True])
    deleted = stream.latestOffset(end, ReadAllAvailable())
    with pytest.raises(InvalidInput, match="deletes keys, and the stream has no column _deleted"):
        keys(stream, end, deleted)
    hearing = reader(landing, schema=StructType().add("k", "long").add("_deleted", "boolean"))
    rows = [row for p in hearing.partitions(end, deleted) for b in hearing.read(p) for row in b.to_pylist()]
    assert rows == [{"k": 2, "_deleted": True}]


def test_values_come_as_a_batch_read_gives_them(landing: Landing) -> None:
    """Fields that have several kinds by now are variants in every transaction, those before included."""
    landing.pool()
    commit(landing, [1], v=[1], n=[1])
    commit(landing, [2], v=["one"], n=[1.5])
    stream = reader(landing)
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadAllAvailable())
    rows = [row for p in stream.partitions(start, end) for b in stream.read(p) for row in b.to_pylist()]
    assert [(row["k"], row["n"]) for row in rows] == [(1, 1.0), (2, 1.5)]
    assert [set(row["v"]) for row in rows] == [{"value", "metadata"}] * 2


def test_the_columns_of_a_pool_without_records_must_be_said(landing: Landing) -> None:
    landing.pool()
    with pytest.raises(InvalidInput, match=r"no records yet.*\.schema"):
        reader(landing)
    stream = reader(landing, schema=StructType().add("k", "long"))
    commit(landing, [1])
    assert batches(stream) == [[1]]


@pytest.mark.parametrize(
    ("path", "options", "said"),
    [
        ("p", {"tasks": "3"}, "unknown option 'tasks': a stream has"),
        ("p", {"maxTransactionsPerBatch": "0"}, "maxTransactionsPerBatch=0: use a whole number"),
        ("p", {"startingTransaction": "first"}, "startingTransaction=first: use a whole number"),
        ("p", {"branch": "side"}, "branch 'side' does not exist"),
        ("p@main", {}, "the option `branch` chooses a branch"),
    ],
)
def test_what_cannot_be_streamed_is_said(
    five: Landing, path: str, options: dict[str, str], said: str
) -> None:
    with pytest.raises((InvalidInput, NotFound), match=said):
        reader(five, path=path, schema=StructType().add("k", "long"), **options).initialOffset()


# --- real queries


class Query:
    """A streaming query whose batches are gathered here."""

    def __init__(self, spark: Any, landing: Landing, checkpoint: Path, **options: str) -> None:
        self.batches: dict[int, list[int]] = {}
        source = spark.readStream.format("lake").option("lake", landing.uri).options(**options).load("p")
        self._writer = source.writeStream.option("checkpointLocation", str(checkpoint)).foreachBatch(
            self._take
        )

    def _take(self, df: Any, number: int) -> None:
        assert number not in self.batches, "each batch once"
        self.batches[number] = df.toArrow()["k"].to_pylist()

    def run(self) -> dict[int, list[int]]:
        """Until all is delivered that there is now."""
        query = self._writer.trigger(availableNow=True).start()
        query.awaitTermination(600)
        return self.batches

    def follow(self, act: Callable[[], None]) -> dict[int, list[int]]:
        """While `act` goes on."""
        query = self._writer.trigger(processingTime="50 milliseconds").start()
        try:
            query.processAllAvailable()
            act()
            query.processAllAvailable()
        finally:
            query.stop()
        return self.batches


def test_a_query_has_everything_once_and_in_order_across_restarts(
    spark: Any, five: Landing, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    assert Query(spark, five, checkpoint, maxTransactionsPerBatch="3").run() == {
        0: [90, 80, 80, 70, 70, 60],
        1: [60, 50, 50, 40],
    }
    commit(five, [5, 4])
    commit(five, [3])
    assert Query(spark, five, checkpoint, maxTransactionsPerBatch="1").run() == {2: [5, 4], 3: [3]}
    assert Query(spark, five, checkpoint).run() == {}


def test_a_running_query_gets_what_is_committed_meanwhile(spark: Any, five: Landing, tmp_path: Path) -> None:
    query = Query(spark, five, tmp_path / "checkpoint", startingTransaction="latest")

    def act() -> None:
        commit(five, [5, 4])
        rewrite(five.lake.pool("p"))
        commit(five, [3])

    assert [k for _, found in sorted(query.follow(act).items()) for k in found] == [5, 4, 3]


def test_a_query_whose_first_batch_failed_begins_where_it_was_started(
    spark: Any, five: Landing, tmp_path: Path
) -> None:
    """Spark plans that batch again from a new first offset."""
    query = Query(spark, five, tmp_path / "checkpoint", startingTransaction="latest")

    def fail(df: Any, number: int) -> None:
        raise RuntimeError("on purpose")

    writer = query._writer
    with pytest.raises(StreamingQueryException, match="on purpose"):
        writer.foreachBatch(fail).trigger(availableNow=True).start().awaitTermination(600)
    commit(five, [5, 4])
    writer.foreachBatch(query._take)
    assert [k for _, found in sorted(query.run().items()) for k in found] == [5, 4]


def test_a_running_query_does_not_lose_a_new_column(spark: Any, five: Landing, tmp_path: Path) -> None:
    query = Query(spark, five, tmp_path / "checkpoint", startingTransaction="5")
    with pytest.raises(StreamingQueryException, match="column 'new' of pool 'p' was not there"):
        query.follow(lambda: commit(five, [7], new=["x"]))
    again = Query(spark, five, tmp_path / "checkpoint").run()
    assert (query.batches, again) == ({0: [50, 40]}, {1: [7]})


def test_a_query_overtaken_by_a_purge_says_so(spark: Any, five: Landing, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    assert len(Query(spark, five, checkpoint).run()) == 1
    commit(five, [7])
    commit(five, [8])
    purge(five)
    commit(five, [9])
    with pytest.raises(StreamingQueryException, match="NotFound: version 6 is purged"):
        Query(spark, five, checkpoint).run()


def test_an_unknown_option_is_said_before_the_query_starts(spark: Any, five: Landing) -> None:
    with pytest.raises(AnalysisException, match="option 'start'"):
        spark.readStream.format("lake").option("lake", five.uri).option("start", "1").load("p")
