"""Ingest on Spark: files become sorted objects and one transaction, by the rules of `lake load`."""

from __future__ import annotations

import gzip
import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake_core.errors import Conflict, InvalidInput, NotFound
from lake_core.records import Consume
from lake_core.schemas.limits import MAX_NESTING
from log_lake.columns.json_text import json_lines
from log_lake.columns.keys import key_at
from log_lake.loading.sources import find_files
from spark_apps.load import load_files
from tests.spark.conftest import Landing
from tests.support.files import parquet

pytestmark = pytest.mark.spark


def test_many_files_of_many_formats_become_one_transaction(spark: Any, landing: Landing) -> None:
    landing.pool()
    for i in range(0, 60, 4):
        landing.file(f"a{i:02}.ndjson", [{"k": 59 - i, "from": "ndjson"}])
        landing.file(f"a{i:02}.csv", f"k,from\n{58 - i},csv\n")
        landing.file(f"b{i:02}.json.gz", gzip.compress(b'{"k": %d, "from": "gzip"}\n' % (57 - i)))
        landing.file(f"c{i:02}.parquet", parquet(pa.Table.from_pylist([{"k": 56 - i, "from": "parquet"}])))
    result = landing.load(spark, "p", message="all of it")
    assert (result.version, result.records) == (1, 60)
    assert landing.keys("p") == list(range(60))
    n, transaction = next(landing.lake.pool("p").log())
    assert (n, transaction.message) == (1, "all of it")
    (consumed,) = [action for action in transaction.actions if isinstance(action, Consume)]
    assert [(s.uri, s.size, s.etag) for s in consumed.sources] == [
        (f.uri, f.size, f.etag) for f in find_files([str(landing.folder)])
    ]


def test_what_spark_takes_in_is_what_lake_load_takes_in(spark: Any, landing: Landing) -> None:
    """Equal keys included: they keep the order of the files, then of the lines, on however many tasks."""
    for name in ("by_spark", "by_load"):
        landing.pool(name, load_memory="20kB", load_sort="parts")
    for i in range(12):
        landing.file(
            f"{i:02}.ndjson", [{"k": n * 7 % 10, "i": i, "n": n, "x": {"y": [n]}} for n in range(300)]
        )
    landing.load(spark, "by_spark", parallelism=5, smallest_unit=1)
    landing.lake.pool("by_load").branch().load([f.uri for f in find_files([str(landing.folder)])])
    by_spark, by_load = (
        json_lines(landing.lake.pool(name).at().to_table()).to_pylist() for name in ("by_spark", "by_load")
    )
    assert len(by_load) == 3600
    assert by_spark == by_load


def test_every_object_is_sorted_and_says_where_it_begins_and_ends(spark: Any, landing: Landing) -> None:
    landing.pool(key="k:desc,s", load_memory="30kB", load_sort="parts")
    for i in range(12):
        landing.file(f"{i}.ndjson", [{"k": n * 37 % 101, "s": f"{n * 13 % 17}", "i": i} for n in range(1000)])
    landing.load(spark, "p", parallelism=4, smallest_unit=1)
    pool = landing.lake.pool("p")
    view = pool.at()
    assert len(view.references) > 4, "more objects than tasks"
    for reference in view.references:
        table = pq.read_table(Path(landing.uri) / view.object_name(reference))
        keys = [key_at(table, row, pool.config.key) for row in range(table.num_rows)]
        assert keys == sorted(keys)
        assert (reference.low, reference.records) == (keys[0], len(keys))
        assert keys[-1] < reference.high <= keys[-1] + b"\0"


def test_a_large_parquet_file_is_shared_out_among_tasks(spark: Any, landing: Landing) -> None:
    landing.pool()
    landing.file(
        "one.parquet",
        parquet(
            pa.Table.from_pylist([{"k": n * 7919 % 10_000, "n": n} for n in range(10_000)]),
            row_group_size=1000,
        ),
    )
    result = landing.load(spark, "p", parallelism=5, smallest_unit=1)
    assert result.objects == 5
    assert landing.keys("p") == list(range(10_000))


def test_records_without_the_key_go_to_their_sub_pool(spark: Any, landing: Landing) -> None:
    landing.pool()
    landing.file("a.ndjson", [{"k": 2}, {"x": "no key"}, {"k": None, "x": "null key"}, {"k": 1}])
    result = landing.load(spark, "p")
    assert (result.records, result.nokey) == (2, 2)
    assert landing.keys("p") == [1, 2]
    assert landing.keys("p.$nokey", "x") == ["no key", "null key"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("b.ndjson", '{"k": 1}\n{"k": 2}\n{"k": oops}\n', ["line 3"]),
        ("b.ndjson.gz", gzip.compress(b'{"k": 1}\n' * 1000)[:-12], ["gzip", "truncated"]),
        ("b.csv", "k,x\n1,2\n3\n", ["line 3", "1 value where"]),
        ("b.parquet", b"PAR1 but not really", ["Parquet"]),
    ],
)
def test_a_bad_record_is_said_with_file_and_line_and_nothing_is_committed(
    spark: Any, landing: Landing, name: str, content: bytes | str, said: list[str]
) -> None:
    landing.pool()
    landing.file("a.ndjson", [{"k": 1}])
    bad = landing.file(name, content)
    landing.file("c.ndjson", [{"k": 3}])
    with pytest.raises(InvalidInput) as problem:
        landing.load(spark, "p", token="t")
    assert all(word in str(problem.value) for word in [bad, *said]), problem.value
    assert landing.transactions("p") == 0
    assert landing.keys("p") == []
    Path(bad).unlink()
    assert landing.load(spark, "p", token="t").records == 2, "the token was not used up"


def test_a_value_that_is_not_of_its_declared_type_names_the_field(spark: Any, landing: Landing) -> None:
    landing.lake.create_pool("p", key="k", settings={"type.when": "timestamp"})
    bad = landing.file("a.ndjson", [{"k": 1, "when": "2026-01-01T00:00:00Z"}, {"k": 2, "when": "soon"}])
    with pytest.raises(InvalidInput, match="when") as problem:
        landing.load(spark, "p")
    assert f"{bad}, line 2" in str(problem.value)
    assert landing.transactions("p") == 0


def test_under_quarantine_bad_records_go_to_their_sub_pool_and_the_rest_is_committed(
    spark: Any, landing: Landing
) -> None:
    landing.pool(bad_records="quarantine")
    bad = landing.file("a.ndjson", '{"k": 1}\nnot json\n{"k": 2}\n')
    landing.file("b.csv", "k,x\n3,a\n4\n5,b\n")
    result = landing.load(spark, "p")
    assert (result.records, result.rejected) == (4, 2)
    assert landing.keys("p") == [1, 2, 3, 5]
    rejected = landing.lake.pool("p.$rejected").at().to_table().to_pylist()
    assert (rejected[0]["file"], rejected[0]["line"], rejected[0]["raw"]) == (bad, 2, "not json")
    assert all(r["reason"] for r in rejected)


def test_files_of_no_records_commit_nothing(spark: Any, landing: Landing) -> None:
    landing.pool()
    landing.file("empty.ndjson", b"")
    landing.file("empty.ndjson.gz", gzip.compress(b""))
    landing.file("header.csv", "k,x\n")
    result = landing.load(spark, "p", consume=False)
    assert (result.version, result.records, landing.transactions("p")) == (None, 0, 0)
    assert load_files(spark, landing.lake, pool_name="p", files=[]).version is None


def test_a_token_that_was_used_changes_nothing_and_the_log_says_so(
    spark: Any, landing: Landing, caplog: pytest.LogCaptureFixture
) -> None:
    landing.pool()
    landing.file("a.ndjson", [{"k": 1}, {"k": 2}])
    first = landing.load(spark, "p", token="batch-1")
    objects = landing.data("p")
    again = landing.load(spark, "p", token="batch-1")
    assert not first.repeated
    assert again.repeated
    assert {**vars(again), "repeated": False, "changes": first.changes} == vars(first)
    assert (landing.transactions("p"), landing.keys("p"), landing.data("p")) == (1, [1, 2], objects)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        "pool p: token 'batch-1' stands for version 1; nothing was written now"
    ]


def test_a_file_is_taken_in_once_whatever_the_token(spark: Any, landing: Landing) -> None:
    landing.pool()
    landing.file("a.ndjson", [{"k": 1}])
    landing.load(spark, "p", token="one")
    with pytest.raises(Conflict, match=r"a\.ndjson"):
        landing.load(spark, "p", token="two")
    assert landing.keys("p") == [1]


def test_a_file_that_grows_while_it_is_read_is_not_recorded_as_it_was(spark: Any, landing: Landing) -> None:
    """Else what was read of its growth would be taken in twice."""
    landing.pool()
    name = landing.file("a.ndjson", [{"k": 1}])
    found = find_files([name])
    landing.file("a.ndjson", [{"k": 1}, {"k": 2}])
    with pytest.raises(Conflict, match="changed"):
        load_files(spark, landing.lake, pool_name="p", files=found)
    assert landing.transactions("p") == 0
    landing.load(spark, "p")
    assert landing.keys("p") == [1, 2]


def test_an_unknown_pool_or_branch_is_not_found(spark: Any, landing: Landing) -> None:
    landing.pool()
    name = landing.file("a.ndjson", [{"k": 1}])
    with pytest.raises(NotFound, match="nowhere"):
        landing.load(spark, "nowhere", name)
    with pytest.raises(NotFound, match="other"):
        landing.load(spark, "p", name, branch="other")


def test_a_format_is_told_by_name_or_content_unless_it_is_said(spark: Any, landing: Landing) -> None:
    landing.pool()
    assert landing.load(spark, "p", landing.file("a.records", [{"k": 1}])).records == 1
    name = landing.file("b.records", "k,v\n1,2\n")
    with pytest.raises(InvalidInput, match="neither the name nor the first bytes tell the format"):
        landing.load(spark, "p", name)
    assert landing.load(spark, "p", name, format="csv").records == 1


def test_read_options_reach_the_tasks(spark: Any, landing: Landing) -> None:
    landing.pool(bad_records="quarantine")
    files = [landing.file(f"day={day}/a.csv", f"k;a\n{day};1,5\nx;y;z\n") for day in (1, 2)]
    options = {"csv.decimal": ",", "partitions": "hive", "bad_records.max": "2"}
    result = load_files(spark, landing.lake, pool_name="p", files=find_files(files), options=options)
    assert (result.records, result.rejected) == (2, 2)
    assert landing.lake.pool("p").at().to_table().select(["k", "a", "day"]).to_pylist() == [
        {"k": 1, "a": 1.5, "day": 1},
        {"k": 2, "a": 1.5, "day": 2},
    ]
    with pytest.raises(InvalidInput, match=r"bad_records\.max allows 1"):
        load_files(
            spark,
            landing.lake,
            pool_name="p",
            files=find_files(files),
            options=options | {"bad_records.max": "1"},
            consume=False,
        )


def test_a_file_in_which_no_record_has_the_key_is_refused(spark: Any, landing: Landing) -> None:
    landing.pool()
    file = landing.file("a.ndjson", [{"K": 1}])
    with pytest.raises(InvalidInput, match="no record has the key field 'k'"):
        load_files(spark, landing.lake, pool_name="p", files=find_files([file]))


def test_what_is_nested_to_the_limit_is_read_by_spark(spark: Any, landing: Landing) -> None:
    value: Any = 1
    for level in range(MAX_NESTING):
        value = {"a": value} if level % 2 else [value]
    landing.pool()
    landing.file("a.ndjson", [{"k": 1, "v": value}])
    landing.load(spark, "p")
    read = spark.read.format("lake").option("lake", landing.uri).load("p")
    ((found,),) = read.select("v").collect()
    for level in reversed(range(MAX_NESTING)):
        found = found["a"] if level % 2 else found[0]
    assert found == 1
