"""Pipelines of dlt load into pools: dispositions, nested tables, schemas, state; with the values of the source."""

from __future__ import annotations

import datetime as dt
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import dlt
import pyarrow as pa
import pytest
from dlt.common.wei import Wei
from dlt.pipeline.exceptions import PipelineStepFailed

from lake_core.errors import InvalidInput
from log_lake import Lake
from log_lake.dlt import lake, lake_adapter
from log_lake.dlt.dataset import DatasetPools
from log_lake.dlt.own_pools import MOST_STATE

from .conftest import records, tags

Make = Callable[..., Any]

VALUES = {
    "id": 1,
    "text": "ä'\"\n",
    "real": 0.1,
    "flag": True,
    "at": dt.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=dt.UTC),
    "day": dt.date(1, 1, 1),
    "time": dt.time(23, 59, 59, 999999),
    "price": Decimal("-12345678901234567890.123456789"),
    "raw": b"\x00\xff",
    "most": 2**63 - 1,
    "wei": Wei(10**37),
}


def test_every_type_keeps_its_values_and_a_later_field_is_added(pipeline: Make, uri: str) -> None:
    pipe = pipeline()
    pipe.run([VALUES], table_name="values", primary_key="id", write_disposition="append")
    pipe.run(
        [{"id": 2, "new": {"deep": [1, 2]}}],
        table_name="values",
        columns={"new__deep": {"data_type": "json"}},
    )
    pool = Lake.open(uri).pool("shop.values")
    assert (pool.config.kind, str(pool.config.key)) == ("append", "id")
    first, second = (
        {k: v for k, v in row.items() if v is not None} for row in pool.at().to_table().to_pylist()
    )
    assert {name: first[name] for name in VALUES} == VALUES
    assert second["new__deep"] == "[1,2]"
    assert first.keys() - VALUES.keys() == {"_dlt_id", "_dlt_load_id"}
    schema = pool.at().schema
    assert schema.field("wei").type == pa.decimal128(38, 0)
    assert schema.field("at").type == pa.timestamp("us", "UTC")


def test_names_that_dlt_takes_for_one_are_one_field_and_one_pool(pipeline: Make, uri: str) -> None:
    """docs/dlt.md says so: dlt has the one name before it gives the records to a destination."""
    pipe = pipeline()
    pipe.run([{"id": 1, "A b": 1, "a_b": 2, "aB": 3}, {"id": 2, "aB": 4, "A b": 5}], table_name="Some Names")
    assert records(uri, "shop.some_names", "id", "a_b") == [(1, 3), (2, 5)]
    pipe.run([{"id": 3, "a_b": "text"}], table_name="someNames")
    assert records(uri, "shop.some_names", "id", "a_b", "a_b__v_text") == [
        (1, 3, None),
        (2, 5, None),
        (3, None, "text"),
    ]
    assert [pool.name for pool in Lake.open(uri).pools() if "names" in pool.name] == ["shop.some_names"]


def test_append_keeps_all_and_replace_takes_the_place_of_all_nested_records_too(
    pipeline: Make, uri: str
) -> None:
    pipe = pipeline()
    rows = [{"id": 1, "tags": ["a", "b"]}, {"id": 1, "tags": []}]
    for disposition in ("append", "append", "replace"):
        pipe.run(rows, table_name="articles", write_disposition=disposition)
        times = 1 if disposition == "replace" else len(Lake.open(uri).pool("shop._dlt_loads").at().to_table())
        assert records(uri, "shop.articles", "id") == [(1,)] * 2 * times
        assert tags(uri) == sorted([(1, 0, "a"), (1, 1, "b")] * times)
    pipe.run(
        [{"id": 2}], table_name="articles", write_disposition="replace"
    )  # without a file of nested records
    assert (records(uri, "shop.articles", "id"), tags(uri)) == ([(2,)], [])
    pipe.run([], table_name="articles", write_disposition="replace")
    assert records(uri, "shop.articles", "id") == []
    pool = Lake.open(uri).pool("shop.articles")
    assert next(one.message for _, one in pool.log()).startswith("dlt: load package ")
    assert pool.at().version == 5  # one transaction a load


def test_a_merge_replaces_records_of_the_key_with_their_nested_records(pipeline: Make, uri: str) -> None:
    pipe = pipeline()

    @dlt.resource(
        name="articles", primary_key="id", write_disposition="merge", columns={"gone": {"hard_delete": True}}
    )
    def articles(rows: list[Any]) -> Iterator[Any]:
        yield rows

    deep = [{"n": 1, "parts": [{"p": 1}, {"p": 2}]}, {"n": 2, "parts": [{"p": 3}]}]
    one = [
        {"id": 1, "name": "nail", "gone": False, "tags": ["a", "b", "c"], "deep": deep},
        {"id": 2, "tags": ["d"], "deep": deep[1:]},
        {"id": 3, "tags": ["e"]},
    ]
    pipe.run(articles(one))
    assert len(records(uri, "shop.articles__deep__parts", "p")) == 4
    pipe.run(
        articles(
            [
                {"id": 1, "name": "screw", "gone": False, "tags": ["z"], "deep": deep[1:]},
                {"id": 3, "gone": True},
            ]
        )
    )
    assert records(uri, "shop.articles", "id", "name") == [(1, "screw"), (2, None)]
    assert tags(uri) == [(1, 0, "z"), (2, 0, "d")]
    assert records(uri, "shop.articles__deep__parts", "p") == [(3,), (3,)]
    pipe.run(articles([{"id": 1, "name": "bolt", "gone": None, "tags": []}]))
    assert tags(uri) == [(2, 0, "d")]
    assert Lake.open(uri).pool("shop.articles__tags").at().version == 3  # one transaction a load


@pytest.mark.slow
def test_more_root_records_than_are_named_are_merged_alike(pipeline: Make, uri: str) -> None:
    pipe = pipeline()
    for last in ("x", "y"):
        rows = [{"id": i, "tags": [str(i), last][: 2 if last == "x" else 1]} for i in range(1_001)]
        pipe.run(rows, table_name="articles", primary_key="id", write_disposition="merge")
    assert tags(uri) == [(i, 0, str(i)) for i in range(1_001)]


def test_a_fresh_machine_goes_on_where_the_last_one_ended(pipeline: Make, uri: str) -> None:
    def source(upto: int) -> Any:
        @dlt.resource(name="events")
        def events(ts: Any = dlt.sources.incremental("ts")) -> Iterator[Any]:  # noqa: B008  # dlt reads the default
            yield [{"ts": i} for i in range(upto) if ts.last_value is None or i > ts.last_value]

        return lake_adapter(events, key="ts:desc")

    pipeline(machine="one").run(source(3))
    fresh = pipeline(machine="two")
    fresh.sync_destination()
    assert fresh.default_schema.get_table("events")["columns"]["ts"]["data_type"] == "bigint"
    fresh.run(source(5))
    assert records(uri, "shop.events", "ts") == [(i,) for i in range(5)]
    assert str(Lake.open(uri).pool("shop.events").config.key) == "ts:desc"
    states = records(uri, "shop._dlt_pipeline_state", "_dlt_load_id")
    loads = records(uri, "shop._dlt_loads", "load_id", "status")
    assert len(states) == 2
    assert loads == [(load, 0) for (load,) in states]


def test_a_state_whose_package_never_ended_does_not_count(pipeline: Make, uri: str) -> None:
    pipe = pipeline()
    pipe.run([{"id": 1}], table_name="t")
    with pipe.destination_client() as client:
        before = client.get_stored_state("shop")
        assert client.get_stored_state("another") is None
        pool = Lake.open(uri).pool("shop._dlt_pipeline_state")
        newest = pool.at().to_table()
        later = pa.array(["9" + before._dlt_load_id])
        pool.branch().append(
            newest.set_column(newest.schema.names.index("_dlt_load_id"), "_dlt_load_id", later)
        )
        assert client.get_stored_state("shop") == before
        assert client.get_stored_schema("shop").version == pipe.default_schema.version
        assert client.get_stored_schema() == client.get_stored_schema("shop")
        assert client.get_stored_schema("nobody") is None


def test_a_state_that_unpacks_to_too_much_is_damage(pipeline: Make, uri: str) -> None:
    pipe = pipeline()
    pipe.run([{"id": 1}], table_name="t")
    pool = Lake.open(uri).pool("shop._dlt_pipeline_state")
    row = pool.at().to_table()
    pool.branch().delete(where="pipeline_name = 'shop'")
    bomb = b64encode(zlib.compress(b" " * (MOST_STATE + 1))).decode()
    pool.branch().append(row.set_column(row.schema.names.index("state"), "state", pa.array([bomb])))
    with pytest.raises(PipelineStepFailed, match="has more than 67,108,864 bytes"):
        pipeline(machine="two").sync_destination()


def test_a_job_that_runs_twice_loads_once(pipeline: Make, uri: str) -> None:
    """The loader that died before it noted that a job is done runs the job again."""
    pipe = pipeline()
    pipe.extract([{"id": 1, "tags": ["a"]}], table_name="articles")
    pipe.extract([{"id": 1, "tags": ["b"]}], table_name="merged", primary_key="id", write_disposition="merge")
    pipe.extract([{"id": 1, "tags": ["c"]}], table_name="replaced", write_disposition="replace")
    pipe.normalize()
    from log_lake.dlt.client import LakeClient

    class Twice(LakeClient):
        def load_chain(self, *args: Any) -> None:
            super().load_chain(*args)
            super().load_chain(*args)

    class twice(lake):
        @property
        def client_class(self) -> type[LakeClient]:
            return Twice

    pipe.load(destination=twice(uri))
    for table, tag in (("articles", "a"), ("merged", "b"), ("replaced", "c")):
        assert tags(uri, table) == [(1, 0, tag)]
        assert Lake.open(uri).pool(f"shop.{table}").at().version == 1


@pytest.mark.slow
def test_contracts_of_dlt_hold_before_anything_is_written(pipeline: Make, uri: str) -> None:
    pipe = pipeline()
    pipe.run([{"id": 1}], table_name="t")
    with pytest.raises(PipelineStepFailed, match="freeze"):
        pipe.run([{"id": 2, "new": 1}], table_name="t", schema_contract="freeze")
    pipe.abort_packages()
    pipe.run([{"id": 3, "new": 1}], table_name="t", schema_contract={"columns": "discard_row"})
    pipe.run([{"id": 4, "new": 1}], table_name="t", schema_contract={"columns": "discard_value"})
    assert records(uri, "shop.t", "id") == [(1,), (4,)]
    assert "new" not in Lake.open(uri).pool("shop.t").at().schema.names


@pytest.mark.slow
def test_tables_of_arrow_are_loaded_as_they_are(pipeline: Make, uri: str) -> None:
    pipe = pipeline()
    rows = pa.table({"id": [1, 2], "at": pa.array([1, None], pa.timestamp("us", "UTC"))})
    pipe.run(rows, table_name="frames", write_disposition="merge", primary_key="id")
    pipe.run(rows.slice(1), table_name="frames", write_disposition="merge", primary_key="id")
    assert records(uri, "shop.frames", "id", "at") == [
        (1, dt.datetime(1970, 1, 1, 0, 0, 0, 1, dt.UTC)),
        (2, None),
    ]


@pytest.mark.slow
def test_a_refresh_drops_pools_which_can_be_restored(pipeline: Make, uri: str) -> None:
    pipe = pipeline()
    pipe.run([{"id": 1, "tags": ["a"]}], table_name="articles", primary_key="id")
    with pytest.raises(PipelineStepFailed, match="is merged by id, which needs an upsert pool"):
        pipe.run([{"id": 1}], table_name="articles", primary_key="id", write_disposition="merge")
    pipe.abort_packages()
    source = dlt.resource(
        [{"id": 1, "tags": ["b"]}], name="articles", primary_key="id", write_disposition="merge"
    )
    pipe.run(source, refresh="drop_resources")
    assert tags(uri) == [(1, 0, "b")]
    pipe.run(source, refresh="drop_data")
    assert tags(uri) == [(1, 0, "b")]
    names = {dropped.pool.name for dropped in Lake.open(uri).dropped_pools()}
    assert names == {"shop.articles", "shop.articles__tags"}
    assert len(records(uri, "shop._dlt_version", "version")) == 1
    with pipe.destination_client() as client:
        client.drop_storage()
        assert not client.is_storage_initialized()
    assert Lake.open(uri).pools() == []


@pytest.mark.parametrize("separator", ["", "_", "x1"])
def test_a_separator_that_names_may_have_is_refused(separator: str) -> None:
    with pytest.raises(InvalidInput, match="could pass for another's"):
        DatasetPools("/nowhere", "shop", separator)


@pytest.mark.slow
def test_without_a_dataset_pools_have_the_names_of_tables(uri: str, tmp_path: Any) -> None:
    pipe = dlt.pipeline("plain", destination=lake(uri), pipelines_dir=str(tmp_path / "plain"))
    info = pipe.run([{"id": 1}], table_name="articles")
    assert f"used {uri} location" in str(info)
    assert records(uri, "articles", "id") == [(1,)]
    other = dlt.pipeline(
        "other", destination=lake(uri, separator="__"), dataset_name="d", pipelines_dir=str(tmp_path / "o")
    )
    other.run([{"id": 2}], table_name="articles")
    assert records(uri, "d__articles", "id") == [(2,)]


@pytest.mark.parametrize(
    ("hints", "why"),
    [
        ({"write_disposition": "merge"}, "No primary key defined for table `t`"),
        (
            {"write_disposition": {"disposition": "merge", "strategy": "scd2"}},
            "`scd2` merge strategy not supported",
        ),
        (
            {"write_disposition": "merge", "primary_key": "id", "columns": {"n": {"dedup_sort": "desc"}}},
            "dedup_sort on 'n' is not supported",
        ),
    ],
)
def test_what_a_pool_cannot_do_is_refused_in_one_line(
    pipeline: Make, uri: str, hints: dict[str, Any], why: str
) -> None:
    pipe = pipeline()
    with pytest.raises(PipelineStepFailed, match=why):
        pipe.run([{"id": 1, "n": 1}], **{"table_name": "t", **hints})


def test_a_record_without_the_key_fails_the_job_for_good_and_commits_nothing(
    pipeline: Make, uri: str
) -> None:
    pipe = pipeline()
    with pytest.raises(PipelineStepFailed) as failed:
        pipe.run(lake_adapter(dlt.resource([{"k": 3}], name="t"), key="other,k"))
    assert "table 't': 1 record would have no key; nothing was changed" in str(failed.value)
