"""Bulk imports on Spark: of data frames and of files, beside ordinary loads of the same records."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

import pyspark_lake
from lake_core.errors import InvalidInput
from log_lake.lake.view import View
from tests.spark.conftest import Landing

pytestmark = pytest.mark.spark


def of(landing: Landing, pool: str) -> View:
    return landing.lake.pool(pool).at()


def check_ranges(view: View, *, ranges: int) -> None:
    held = sorted(view.references, key=lambda r: r.low)
    assert len(view.points) == ranges - 1
    assert len(held) >= ranges
    assert all(one.high <= other.low for one, other in pairwise(held))
    for reference in held:
        assert not [point for point in view.points if reference.low < point < reference.high[:-1]]


def test_a_frame_in_bulk_is_a_run_of_each_range_and_is_written_once(spark: Any, landing: Landing) -> None:
    frame = spark.range(0, 40_000, 1, 4).selectExpr(
        "if(id % 100 = 99, null, id * 7919 % 503) as k",
        "if(id % 3 = 0, null, id % 17) as `a.b`",
        "id as n",
        "array(id) as l",
        "parse_json(concat('[', id, ']')) as v",
    )
    for name in ("bulk", "plain"):
        landing.pool(name, key="k:desc,a.b", load_memory="200kB")
    how = {"lake": landing.uri, "bulk": True, "token": "t"}
    first = pyspark_lake.write(frame, "bulk", ranges=3, **how)
    assert (first.records, first.nokey, first.version) == (39_600, 400, 2)
    assert pyspark_lake.write(frame, "bulk", **how).repeated
    pyspark_lake.write(frame, "plain", lake=landing.uri)
    check_ranges(of(landing, "bulk"), ranges=3)
    for sub_pool in ("", ".$nokey"):
        assert of(landing, f"bulk{sub_pool}").to_table().equals(of(landing, f"plain{sub_pool}").to_table())


@pytest.mark.parametrize("kind", ["upsert", "aggregate"])
def test_equal_keys_of_files_in_bulk_become_what_they_become_in_a_load(
    spark: Any, landing: Landing, kind: str
) -> None:
    sums = {"n": "sum", "last": "last"} if kind == "aggregate" else None
    for name in ("bulk", "plain"):
        settings = {"type.k": "bigint", "bad_records": "quarantine", "load.memory": "30kB"}
        landing.lake.create_pool(name, key="k", kind=kind, aggregates=sums, settings=settings)
    for i in range(12):
        lines = [{"k": n * 7 % 40, "n": i, "last": i * 100 + n} for n in range(300)]
        landing.file(f"{i:02}.ndjson", [*lines, {"k": f"bad {i}"}])
    landing.lake.pool("bulk").split(at=[10, 20, 30])
    done = landing.load(spark, "bulk", parallelism=4, smallest_unit=1, bulk=True, token="t")
    assert (done.records, done.rejected, done.objects >= 4) == (40, 12, True)
    assert landing.load(spark, "bulk", bulk=True, token="t").repeated
    landing.load(spark, "plain", parallelism=4, smallest_unit=1)
    check_ranges(of(landing, "bulk"), ranges=4)
    assert of(landing, "bulk").to_table().equals(of(landing, "plain").to_table())
    rejected = [of(landing, f"{name}.$rejected").to_table()["raw"] for name in ("bulk", "plain")]
    assert rejected[0].equals(rejected[1])


def test_what_cannot_be_imported_is_refused_and_nothing_is_written(spark: Any, landing: Landing) -> None:
    landing.pool("p")
    frame = spark.createDataFrame(pa.table({"k": [1, 2]}).to_pandas())
    with pytest.raises(InvalidInput, match="an overwrite is no bulk import"):
        pyspark_lake.write(frame, "p", lake=landing.uri, bulk=True, mode="overwrite")
    with pytest.raises(InvalidInput, match="only a bulk import makes ranges"):
        pyspark_lake.write(frame, "p", lake=landing.uri, ranges=3)
    with pytest.raises(Exception, match=r"use pyspark_lake\.write\(df, POOL, bulk=True\)"):
        frame.write.format("lake").option("lake", landing.uri).option("bulk", "true").mode("append").save("p")
    far = spark.sql("select id as k, if(id = 7, date '10000-01-01', null) as d from range(0, 9, 1, 3)")
    with pytest.raises(InvalidInput, match="outside of the years"):
        pyspark_lake.write(far, "p", lake=landing.uri, bulk=True, ranges=2)
    assert of(landing, "p").version == 0
    pyspark_lake.write(frame, "p", lake=landing.uri, bulk=True)
    with pytest.raises(InvalidInput, match="it has records; lake split divides them"):
        pyspark_lake.write(frame, "p", lake=landing.uri, bulk=True, ranges=2)


def test_a_pool_gets_another_key_by_tasks(spark: Any, landing: Landing) -> None:
    landing.pool("old")
    landing.file("a.ndjson", [{"k": n, "city": f"c{n % 7}", "t": {"x": [n]}} for n in range(2_000)])
    landing.load(spark, "old")
    done = pyspark_lake.rekey(spark, "old", "new", key="city,k:desc", lake=landing.uri, ranges=3)
    assert (done.version, done.result.records) == (1, 2_000)
    check_ranges(of(landing, "new"), ranges=3)
    rows = of(landing, "old").to_table().to_pylist()
    assert of(landing, "new").to_table().to_pylist() == sorted(rows, key=lambda r: (r["city"], -r["k"]))
