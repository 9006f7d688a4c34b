"""Native reads of a lake on S3 where the JVM reaches the store too, by Hadoop's connector: local, and a cluster.

LAKE_TEST_S3A=1, as in CI: Spark fetches the connector from Maven, 690 MB, once.  The store is Ceph if
LAKE_TEST_CEPH is set, otherwise moto.  What happens without a connector is in test_native.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from log_lake.lake import Lake
from tests.support.repository import ROOT
from tests.support.servers.ceph import radosgw
from tests.support.servers.s3 import BUCKET, REGION, make_bucket, moto, s3_client
from tests.support.spark.answers import assert_same
from tests.support.spark.native_on_s3 import UNFETCHED
from tests.support.spark.standalone import cluster

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not os.environ.get("LAKE_TEST_S3A"), reason="LAKE_TEST_S3A is not set"),
]

PLACES = ("plain", "a{b} [c]*?")
"""Folders of the bucket; Spark takes the second one for a pattern."""


@pytest.fixture(scope="module")
def server() -> Iterator[dict[str, Any]]:
    """How to reach an S3 server with a bucket."""
    with ExitStack() as stack:
        if os.environ.get("LAKE_TEST_CEPH"):
            gateway = stack.enter_context(radosgw())
            options = s3_client(gateway["endpoint_url"], gateway["key"], gateway["secret"])
            make_bucket(options)
        else:
            options = s3_client(stack.enter_context(moto()))
        yield options


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("shape", ["local", "standalone"])
def test_the_jvm_reads_what_needs_no_merge_and_the_answer_is_the_lakes(
    server: dict[str, Any], shape: str, place: str, spark_environ: dict[str, str], tmp_path: Path
) -> None:
    uri = f"s3://{BUCKET}/{place}/{shape}"
    lake = Lake.create(uri, options=server)
    fill(lake)
    expected = {pool.name: lake.pool(pool.name).at().to_table() for pool in lake.pools()}
    environ = {
        **spark_environ,
        "AWS_ENDPOINT_URL": server["client_kwargs"]["endpoint_url"],
        "AWS_ACCESS_KEY_ID": server["key"],
        "AWS_SECRET_ACCESS_KEY": server["secret"],
        "AWS_DEFAULT_REGION": REGION,
        "PYTHONPATH": str(ROOT),
    }
    with ExitStack() as stack:
        master = "local[2]" if shape == "local" else stack.enter_context(cluster(environ, tmp_path))
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.spark.native_on_s3", uri, master, str(tmp_path)],
            cwd=ROOT,
            env=environ,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    if done.returncode == UNFETCHED:
        pytest.skip(f"the connector cannot be fetched: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr[-4000:]
    for name, table in expected.items():
        if name == "copy":
            continue
        with pa.ipc.open_file(tmp_path / f"{name}.arrow") as file:
            assert_same(file.read_all().sort_by("k"), table)
        assert "parquet" in (tmp_path / f"{name}.txt").read_text(), name
    assert "data source" in (tmp_path / "newer.txt").read_text()
    assert "data source" not in (tmp_path / "p.txt").read_text()
    assert_same(lake.pool("copy").at().to_table().sort_by("k"), expected["p"])


def fill(lake: Lake) -> None:
    """Pools of both kinds, with what Spark's reader can say, and with what must be merged."""
    for name in ("p", "deleted", "copy"):
        lake.create_pool(name, key="k")
    for first in (0, 100):
        keys = list(range(first, first + 100))
        columns = {
            "k": keys,
            "n": [n * 3 for n in keys],
            "price": pa.array([Decimal(n) / 100 for n in keys], pa.decimal128(12, 2)),
            "at": pa.array([n * 1_000_000 for n in keys], pa.timestamp("us", "UTC")),
            "parts": [[{"x": n}] if n % 3 else None for n in keys],
        }
        for name in ("p", "deleted"):
            lake.pool(name).branch().append(pa.table(columns))
    lake.pool("deleted").branch().delete(where="n = 30 or k > 150")
    newer = lake.create_pool("newer", key="k", kind="upsert").branch()
    newer.append(pa.table({"k": list(range(100)), "v": ["old"] * 100}))
    newer.append(pa.table({"k": [98, 99, 100], "v": ["new"] * 3}))
