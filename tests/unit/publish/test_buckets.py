"""A lake in a bucket is published there, and read there by pyiceberg."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyiceberg")

from pyiceberg.table import StaticTable

from log_lake.lake import Lake
from log_lake.publish.run import publish_iceberg
from tests.support.iceberg import values
from tests.support.servers.s3 import BUCKET, REGION, moto, s3_client


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with moto() as address:
        yield address


def read(location: str, address: str) -> list[dict[str, Any]]:
    properties = {
        "s3.endpoint": address,
        "s3.access-key-id": "test",
        "s3.secret-access-key": "test",
        "s3.region": REGION,
    }
    rows: list[dict[str, Any]] = StaticTable.from_metadata(location, properties).scan().to_arrow().to_pylist()
    return rows


@pytest.mark.parametrize(
    ("scheme", "to"), [("s3", "beside"), ("s3a", "beside"), ("s3", "s3a://lakes/tables/{}")]
)
def test_a_bucket_is_named_as_readers_know_it(address: str, scheme: str, to: str) -> None:
    name = f"{scheme}-{len(to)}"
    lake = Lake.create(f"{scheme}://{BUCKET}/{name}", options=s3_client(address))
    pool = lake.create_pool("p", key="k")
    pool.branch().append(pa.table({"k": [1, 2, 3], "s": ["a", None, "c"]}))
    pool.branch().delete(where="k = 2")
    done = publish_iceberg(pool, to=to.format(name))
    beside = f"s3://{BUCKET}/{name}/{pool.config.id}/published/iceberg/main"
    assert done.location == (beside if to == "beside" else f"s3://lakes/tables/{name}")
    assert values(read(done.location, address)) == values(pool.at().to_table().to_pylist())
    pool.branch().append(pa.table({"k": [4]}))
    publish_iceberg(pool, to=to.format(name))
    assert len(read(done.location, address)) == 3


def test_copies_with_converted_fields_lie_in_the_bucket(address: str) -> None:
    lake = Lake.create(f"s3://{BUCKET}/converted", options=s3_client(address))
    pool = lake.create_pool("p", key="k", settings={"publish.types": "text"})
    pool.branch().append(pa.table({"k": [1, 2], "u": pa.array([0, 2**64 - 1], pa.uint64())}))
    done = publish_iceberg(pool)
    assert (done.records, done.added) == (2, 1)
    assert [int(row["u"]) for row in read(done.location, address)] == [0, 2**64 - 1]
