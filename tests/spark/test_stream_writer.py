"""`df.writeStream.format("lake")`: a transaction a batch, each once, wherever Spark dies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException

from tests.spark.conftest import Landing
from tests.support.repository import ROOT
from tests.support.spark import streamed
from tests.support.spark.processes import await_true, end_all, in_session
from tests.support.spark.submitted import LONGEST

pytestmark = pytest.mark.spark

TRANSACTIONS = 4


@pytest.fixture
def pools(landing: Landing) -> Landing:
    """A pool `p` of some transactions of two records, and a pool `q` without any."""
    landing.pool("p")
    landing.pool("q")
    for n in range(TRANSACTIONS):
        landing.lake.pool("p").branch().append(pa.table({"k": [n, 10 + n]}))
    return landing


def run(spark: Any, pools: Landing, checkpoint: Path, *, each: int = 1) -> None:
    """The query, until all is written."""
    streamed.start(spark, pools.uri, "p", "q", str(checkpoint), each=each).awaitTermination(LONGEST)


def tokens(pools: Landing) -> list[str]:
    """Of the transactions of `q`, oldest first."""
    return [transaction.token for _, transaction in pools.lake.pool("q").log()][::-1]


def assert_each_record_once(pools: Landing, *, transactions: int) -> None:
    assert pools.keys("q") == pools.keys("p")
    assert pools.transactions("q") == transactions


def test_every_batch_is_a_transaction_and_what_is_done_is_not_done_again(
    spark: Any, pools: Landing, tmp_path: Path
) -> None:
    run(spark, pools, tmp_path / "checkpoint")
    assert_each_record_once(pools, transactions=TRANSACTIONS)
    pools.lake.pool("p").branch().append(pa.table({"k": [99]}))
    run(spark, pools, tmp_path / "checkpoint")
    assert_each_record_once(pools, transactions=TRANSACTIONS + 1)
    found = tokens(pools)
    query = found[0].split(":")[1]
    assert found == [f"spark:{query}:{batch}" for batch in range(TRANSACTIONS + 1)], "the query keeps its id"


def test_another_query_is_another_writer(spark: Any, pools: Landing, tmp_path: Path) -> None:
    for name in ("one", "other"):
        run(spark, pools, tmp_path / name, each=TRANSACTIONS)
    assert pools.keys("q") == sorted(2 * pools.keys("p"))
    assert len(set(tokens(pools))) == 2


@pytest.mark.parametrize(("point", "landed"), [("before", 1), ("after", 2)])
def test_spark_killed_around_the_lakes_commit_and_started_again_writes_each_record_once(
    spark: Any, spark_environ: dict[str, str], pools: Landing, tmp_path: Path, point: str, landed: int
) -> None:
    checkpoint = tmp_path / "checkpoint"
    words = [
        sys.executable,
        "-m",
        "tests.support.spark.streamed",
        pools.uri,
        "p",
        "q",
        str(checkpoint),
        point,
        "1",
    ]
    dying = subprocess.Popen(
        words,
        cwd=ROOT,
        env=spark_environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert dying.wait(LONGEST) != 0
        await_true(lambda: not in_session(dying.pid), seconds=600, what="all that it started has ended")
    finally:
        end_all(in_session(dying.pid))
    assert pools.transactions("q") == landed
    noted = {path.name for path in (checkpoint / "commits").iterdir() if path.name.isdigit()}
    assert noted == {"0"}, "Spark does not know that batch 1 is done"
    left = pools.data("q")
    run(spark, pools, checkpoint)
    assert_each_record_once(pools, transactions=TRANSACTIONS)
    assert pools.data("q") >= left
    assert pools.data("q") > pools.held("q"), "one of the two tries at batch 1 is the vacuum's"


def test_a_batch_without_records_is_no_transaction(spark: Any, pools: Landing, tmp_path: Path) -> None:
    stream = spark.readStream.format("lake").option("lake", pools.uri).load("p").where("k > 1000")
    writer = stream.writeStream.format("lake").option("lake", pools.uri)
    writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start(
        "q"
    ).awaitTermination()
    assert pools.transactions("q") == 0


def test_output_modes_that_would_replace_records_are_refused(
    spark: Any, pools: Landing, tmp_path: Path
) -> None:
    counts = spark.readStream.format("lake").option("lake", pools.uri).load("p").groupBy("k").count()
    writer = counts.writeStream.format("lake").option("lake", pools.uri).trigger(availableNow=True)
    complete = (
        writer.option("checkpointLocation", str(tmp_path / "complete")).outputMode("complete").start("q")
    )
    with pytest.raises(StreamingQueryException, match="use output mode append"):
        complete.awaitTermination(LONGEST)
    update = writer.option("checkpointLocation", str(tmp_path / "update")).outputMode("update")
    with pytest.raises((AnalysisException, StreamingQueryException), match=r"(?i)update"):
        update.start("q").awaitTermination(LONGEST)
    assert pools.transactions("q") == 0


def test_a_token_of_ones_own_is_refused(spark: Any, pools: Landing, tmp_path: Path) -> None:
    stream = spark.readStream.format("lake").option("lake", pools.uri).load("p")
    writer = stream.writeStream.format("lake").option("lake", pools.uri).option("token", "t")
    query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start("q")
    with pytest.raises(StreamingQueryException, match="unknown option 'token': a "):
        query.awaitTermination(LONGEST)
