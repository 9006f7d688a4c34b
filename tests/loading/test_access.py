"""Files in the lake's kind of store are read with the options of the lake, such as credentials of a connection."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiobotocore.client import AioBaseClient
from s3fs import S3FileSystem

from lake_core.errors import InvalidInput, NotFound, Unavailable
from lake_core.ids import IdSource
from lake_core.records import Consume
from lake_core.store import Address, address_of
from log_lake.agents.ingest.sources import files_there
from log_lake.lake import Lake
from log_lake.loading.opening import remote
from log_lake.loading.sources import files_to_read, find_files
from log_lake.policies.apply import read_text
from log_lake.stores import open_store
from spark_apps.in_task import InTask
from spark_apps.load import load_files
from tests.support.agents import finder
from tests.support.records import draft
from tests.support.servers.s3 import BUCKET, moto, s3_client

find_batches = finder("ingest")
find_intervals = finder("intervals")

IN = f"s3://{BUCKET}/in"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with moto() as address:
        yield address


@pytest.fixture
def lake(server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Lake:
    """A lake on an S3 server that this process knows by the options of the lake alone; two files are there."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "FSSPEC_S3_ANON"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    options = s3_client(server)
    fs = S3FileSystem(**options)
    fs.pipe(f"{BUCKET}/in/a.ndjson", b'{"k": 1}\n')
    fs.pipe(f"{BUCKET}/in/2026-11-01/b.ndjson", b'{"k": 2}\n')
    fs.pipe(f"{BUCKET}/pools.yaml", b"pools: {}\n")
    return Lake.create_on(
        open_store(f"s3://{BUCKET}/{tmp_path.name}", {**options, "lock": f"file://{tmp_path}"})
    )


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What this process asks the server from here on: operation, and key or prefix."""
    asked: list[tuple[str, str]] = []
    call = AioBaseClient._make_api_call

    async def noted(self: Any, operation: str, params: dict[str, Any]) -> Any:
        asked.append((operation, str(params.get("Key") or params.get("Prefix") or "")))
        return await call(self, operation, params)

    monkeypatch.setattr(AioBaseClient, "_make_api_call", noted)
    return asked


def test_each_way_to_read_files_takes_the_options_of_the_lake(lake: Lake) -> None:
    access = address_of(lake.store)
    pool = lake.create_pool(
        "p",
        key="k",
        settings={
            "ingest.source": f"{IN}/*.ndjson",
            "ingest.batch_age": "0s",
            "intervals.source": f"{IN}/%Y-%m-%d/*.ndjson",
        },
    )

    assert pool.branch().load([f"{IN}/a.ndjson"]).records == 1
    assert pool.branch().preview([f"{IN}/a.ndjson"]).records == 1
    assert pool.branch().replace([f"{IN}/a.ndjson"], where="k = 1").records == 1
    files = files_to_read([f"{IN}/**"], {}, {}, access=access)
    assert [file.uri for file in files] == [f"{IN}/2026-11-01/b.ndjson", f"{IN}/a.ndjson"]
    assert load_files(InTask(), lake, pool_name="p", files=files).records == 2

    def opened(name: str) -> Lake:
        return lake

    pool = lake.create_pool("q", key="k", settings=dict(pool.config.settings))
    (batch,) = find_batches({"lake": "x", "pools": ["q"]}, open_lake=opened)
    assert [file["uri"] for file in batch["files"]] == [f"{IN}/a.ndjson"]
    day = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)
    (interval,) = find_intervals(
        {"lake": "x", "pools": ["q"]},
        begin=day,
        end=day + dt.timedelta(days=1),
        run="r",
        open_lake=opened,
    )
    assert len(interval["files"]) == 1
    assert read_text(f"s3://{BUCKET}/pools.yaml", access=access) == "pools: {}\n"


def test_files_in_another_kind_of_store_are_read_with_this_machines_own_credentials(lake: Lake) -> None:
    S3FileSystem.clear_instance_cache()  # another test may have left one, with credentials that it had
    with pytest.raises(InvalidInput, match="no credentials for S3"):
        remote(f"{IN}/a.ndjson", Address("gs://bucket/lake", {"token": "anon"}))
    with pytest.raises(InvalidInput, match="no credentials for S3"):
        remote(f"{IN}/a.ndjson")


def test_the_options_of_the_lake_are_not_shown_with_what_is_to_be_read(lake: Lake) -> None:
    reading = lake.create_pool("p", key="k").branch().readings([f"{IN}/a.ndjson"])
    assert "secret" not in repr(reading)


def test_a_prefix_without_files_is_a_source_in_which_nothing_has_landed_yet(lake: Lake) -> None:
    access = address_of(lake.store)
    assert find_files([f"s3://{BUCKET}/nothing/here"], may_be_empty=True, access=access) == []
    with pytest.raises(NotFound, match="nothing/here"):
        find_files([f"s3://{BUCKET}/nothing/here"], access=access)
    for path in ("in", "in/*.csv", "*/x.csv", "**"):
        for may_be_empty in (True, False):
            with pytest.raises(InvalidInput, match="the bucket 'no-such-bucket' does not exist"):
                find_files([f"s3://no-such-bucket/{path}"], may_be_empty=may_be_empty, access=access)
    assert len(find_files([f"{IN}/2026-11-01"], may_be_empty=True, access=access)) == 1
    assert find_files([f"{IN}/none/*.ndjson", f"{IN}/*.csv"], may_be_empty=True, access=access) == []
    for glob in ("*/b.*", "**/b.ndjson", "2026-11-01/?.ndjson", "2026-*/*"):
        assert [f.uri for f in find_files([f"{IN}/{glob}"], access=access)] == [
            f"{IN}/2026-11-01/b.ndjson"
        ], glob
    assert [f.uri for f in find_files([f"{IN}/*"], access=access)] == [f"{IN}/a.ndjson"]


def test_the_placeholder_of_a_folder_and_an_object_named_like_it_are_no_files_in_it(
    lake: Lake, server: str
) -> None:
    fs, access = S3FileSystem(**s3_client(server)), address_of(lake.store)
    fs.call_s3("put_object", Bucket=BUCKET, Key="made/day/", Body=b"")
    fs.pipe(f"{BUCKET}/made/solo", b"x")
    for place in ("day/*", "day/*.csv", "day", "d*/*", "solo/*"):
        assert find_files([f"s3://{BUCKET}/made/{place}"], may_be_empty=True, access=access) == [], place
    fs.pipe(f"{BUCKET}/made/day/a.csv", b"k\n1\n")
    for place in ("day/*", "day/*.csv", "day", "d*/*", "**/a.csv", "day/[ab].csv"):
        (file,) = find_files([f"s3://{BUCKET}/made/{place}"], access=access)
        assert file.uri == f"s3://{BUCKET}/made/day/a.csv", place


def test_a_bucket_that_is_missing_is_not_taken_for_a_lake_that_is(server: str) -> None:
    with pytest.raises(
        Unavailable, match="the bucket 'no-such-bucket' does not exist; make it, or name another"
    ):
        Lake.open("s3://no-such-bucket/lake", options=s3_client(server))
    with pytest.raises(NotFound, match="there is no lake; make one with: lake init"):
        Lake.open(f"s3://{BUCKET}/none", options=s3_client(server))


def test_a_pool_whose_files_are_as_they_were_costs_the_listing_of_its_source(
    lake: Lake, requests: list[tuple[str, str]]
) -> None:
    for number in range(5):
        source = {"ingest.source": f"{IN}/2026-11-01/*.nd[j]son", "ingest.batch_age": "0s"}
        pool = lake.create_pool(f"p{number}", key="k", settings=source)
        (file,) = files_there(pool.settings, access=address_of(lake.store))
        pool.history.commit(draft(number + 1, Consume((file.source,)), schemas=()))

    def find_after(seconds: float) -> list[tuple[str, str]]:
        later = Lake(lake.store, lake.id, ids=IdSource(clock=lambda: time.time() + seconds))
        requests.clear()
        assert find_batches({"lake": "x"}, open_lake=lambda name: later) == []
        return list(requests)

    first, second = find_after(2_000), find_after(2_000)
    of_source = [name for _, name in second if name.startswith("in/")]
    assert of_source == ["in/2026-11-01/"] * 5
    assert len(second) - len(of_source) < 20 < len(first) - len(of_source), "of the list of pools"
    assert not any("journal" in name for _, name in second)
