"""Killed at any point and run again, ingest ends with every record exactly once.

The points are told by what can be seen from outside: a Python worker at work, the first object, the last one,
the transaction.  What a dead run has written is left lying; no transaction holds it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.spark.conftest import Landing
from tests.support.spark.processes import await_true, end_all, in_session, python_workers
from tests.support.spark.submitted import Submitted, submit

pytestmark = pytest.mark.spark

FILES, RECORDS = 20, 5_000
"""Of a megabyte each, so that Spark has several tasks, and each writes several objects."""

POINT_SECONDS = 600.0


@pytest.fixture
def landed(landing: Landing) -> Landing:
    """A pool, and files for it; a file becomes an object."""
    landing.pool(load_memory="200kB", load_sort="parts")
    for i in range(FILES):
        lines = (b'{"k": %d, "text": "%0200d"}' % (n * FILES + i, n) for n in range(RECORDS))
        landing.file(f"{i:02}.ndjson", b"\n".join(lines) + b"\n")
    return landing


def assert_every_record_once(landing: Landing) -> None:
    assert landing.transactions("p") == 1
    assert landing.keys("p") == list(range(FILES * RECORDS))


def assert_all_or_nothing(landing: Landing) -> None:
    assert (landing.transactions("p"), len(landing.keys("p"))) in {(0, 0), (1, FILES * RECORDS)}


# --- the driver

POINTS: dict[str, Callable[[Submitted, Landing], bool]] = {
    "a worker is at work": lambda submitted, _: bool(python_workers(submitted.root)),
    "the first object is there": lambda _, landing: len(landing.data("p")) > 0,
    "the last object is there": lambda _, landing: len(landing.data("p")) >= FILES,
    "the transaction is there": lambda _, landing: landing.transactions("p") > 0,
}
VICTIMS: dict[str, Callable[[Submitted], list[psutil.Process]]] = {
    "the Java": lambda submitted: [submitted.root],
    "the Python driver": lambda submitted: [d for d in [submitted.driver()] if d is not None],
    "everything": lambda submitted: in_session(submitted.process.pid),
}


@pytest.mark.parametrize(
    ("point", "victims"),
    [
        ("a worker is at work", "everything"),
        ("the first object is there", "the Java"),
        ("the first object is there", "the Python driver"),
        ("the last object is there", "the Python driver"),
        ("the last object is there", "everything"),
        ("the transaction is there", "the Java"),
    ],
)
def test_a_driver_killed_and_run_again(
    landed: Landing, spark: Any, spark_environ: dict[str, str], tmp_path: Path, point: str, victims: str
) -> None:
    words = ["--lake", landed.uri, "--pool", "p", "--token", "t", str(landed.folder)]
    with submit(words, environ=spark_environ, folder=tmp_path) as submitted:
        await_true(
            lambda: submitted.process.poll() is not None or POINTS[point](submitted, landed),
            seconds=POINT_SECONDS,
            what=point,
        )
        assert POINTS[point](submitted, landed), "it ended before it came to the point"
        killed = VICTIMS[victims](submitted)
        assert killed
        end_all(killed)
    assert_all_or_nothing(landed)
    if point in {"a worker is at work", "the first object is there"}:
        assert landed.transactions("p") == 0, "it was killed before it could commit"
    left = landed.data("p")
    landed.load(spark, "p", token="t", consume=False)
    assert_every_record_once(landed)
    if point != "a worker is at work":
        assert landed.data("p") >= left, "what a dead run had written is the vacuum's"
    assert landed.load(spark, "p", token="t", consume=False).repeated
    assert_every_record_once(landed)


# --- a worker


def all_workers(spark: Any) -> list[psutil.Process]:
    return python_workers(psutil.Process(spark.sparkContext._gateway.proc.pid))


def start(pool: ThreadPoolExecutor, spark: Any, landing: Landing) -> Future[Any]:
    return pool.submit(landing.load, spark, "p", token="t")


@pytest.mark.parametrize("objects", [1, FILES // 2])
def test_a_worker_killed_is_replaced_within_the_run(landed: Landing, spark: Any, objects: int) -> None:
    with ThreadPoolExecutor(1) as pool:
        running = start(pool, spark, landed)
        await_true(
            lambda: running.done() or len(landed.data("p")) >= objects, seconds=POINT_SECONDS, what="objects"
        )
        assert not running.done(), "it ended before it came to the point"
        end_all(all_workers(spark))
        result = running.result(timeout=600)
    assert (result.records, result.repeated) == (FILES * RECORDS, False)
    assert_every_record_once(landed)
    assert landed.data("p") > landed.held("p"), "what the killed worker had written is not in the pool"


def test_a_run_whose_workers_are_killed_at_every_try_fails_and_another_makes_it_good(
    landed: Landing, spark: Any
) -> None:
    with ThreadPoolExecutor(1) as pool:
        running = start(pool, spark, landed)
        for _ in range(FILES):
            seen = len(landed.data("p"))
            await_true(
                lambda seen=seen: running.done() or len(landed.data("p")) > seen,  # type: ignore[misc]
                seconds=POINT_SECONDS,
                what="another object",
            )
            if running.done():
                break
            end_all(all_workers(spark))
        assert running.exception(timeout=600) is not None
    assert landed.transactions("p") == 0
    assert landed.data("p")
    assert landed.load(spark, "p", token="t").records == FILES * RECORDS
    assert_every_record_once(landed)
