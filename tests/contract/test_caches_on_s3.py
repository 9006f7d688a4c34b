"""What a process and a machine hold of a lake on S3: what saves requests, and what an erasure takes out of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from benchmarks.requests import BUCKET, Counter, content, counting
from lake_core.errors import Corrupt, LakeError
from log_lake.erasure.run import erase
from log_lake.lake import Lake
from tests.support.servers.proxy import ALWAYS, Answer, Forward, Request
from tests.support.servers.s3 import s3_client

pytestmark = pytest.mark.slow

RECORDS = 60_000
NUMBERS = count()
AT = f"s3://{BUCKET}/caches"


@pytest.fixture
def proxy() -> Iterator[Counter]:
    with counting() as proxy:
        yield proxy


@pytest.fixture
def opened(proxy: Counter) -> Any:
    """Opens the lake anew; its pool `p` has one object."""
    uri, options = f"{AT}/{next(NUMBERS)}", s3_client(proxy.url)  # moto forgets nothing between tests
    lake = Lake.create(uri, options=options)
    lake.create_pool("p", key="k").branch().append(content(RECORDS))
    return lambda: Lake.open(uri, options=options)


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*-*") if path.is_file()]


def of_data(proxy: Counter) -> int:
    """Requests for data objects since the counts were forgotten."""
    return int(proxy.asked(lambda one: "/data/" in one.path))


def test_what_one_process_read_another_takes_from_the_disk(
    proxy: Counter, opened: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_CACHE", f"{tmp_path},1GiB")
    table = opened().pool("p").at().to_table()
    assert files(tmp_path)
    code = (
        "import sys; from log_lake.lake import Lake\n"
        "from tests.support.servers.s3 import s3_client\n"
        "view = Lake.open(sys.argv[1], options=s3_client(sys.argv[2])).pool('p').at()\n"
        "print(view.to_table().num_rows, view.get(30_000).num_rows, view.to_table(columns=['b']).num_rows)\n"
    )
    address = (opened().context.store.uri, proxy.url)
    proxy.forget()
    done = subprocess.run(
        [sys.executable, "-c", code, *address], check=True, capture_output=True, text=True, env=os.environ
    )
    assert done.stdout.split() == ["60000", "1", "60000"]
    assert of_data(proxy) == 0
    assert opened().pool("p").at().to_table().equals(table)
    assert of_data(proxy) == 0
    for path in files(tmp_path):  # damaged on the disk: the store is asked
        path.write_bytes(b"\0" * path.stat().st_size)
    assert opened().pool("p").at().to_table().equals(table)
    assert of_data(proxy) > 0


@pytest.mark.parametrize("reads", ["memory", "disk"])
def test_what_is_erased_is_not_served_by_the_machine_that_erased_it(
    proxy: Counter, opened: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads: str
) -> None:
    if reads == "disk":
        monkeypatch.setenv("LAKE_CACHE", f"{tmp_path},1GiB")
        monkeypatch.setenv("LAKE_MEMORY_CACHE", "0")
    view = opened().pool("p").at()
    assert view.get(500).num_rows == 1
    proxy.forget()
    assert view.get(500).num_rows == 1
    assert of_data(proxy) == 0
    folders = {path.parent for path in files(tmp_path)}
    assert len(folders) == (reads == "disk")
    assert erase(opened().pool("p"), where="k = 500", grace=0.0).status == "done"
    assert not any(folder.exists() for folder in folders)  # the new object may have ranges there
    with pytest.raises(LakeError):  # an old view, of a store of its own, whose object is gone
        view.get(500)
    assert opened().pool("p").at().get(500).num_rows == 0


def test_a_store_that_lists_other_tags_is_read_once_more_by_the_first_look_only(
    proxy: Counter, opened: Any
) -> None:
    def entries_read(work: Any) -> int:
        proxy.forget()
        assert work().version == 1
        return int(proxy.asked(lambda one: one.path.endswith("/journal/00000000000000000001.txn")))

    def weak(request: Request, forward: Forward) -> Answer:
        answer = forward(request)
        return replace(answer, body=answer.body.replace(b"<ETag>", b"<ETag>W/"))

    lake = opened()
    assert entries_read(lambda: lake.pool("p").history.load()) == 1
    proxy.on(lambda request: "list-type=2" in request.path, weak, times=ALWAYS)
    lake = opened()  # the list of pools: its tags are compared first
    assert entries_read(lambda: lake.pool("p").history.load()) == 1


def test_a_damaged_object_is_read_again_once_it_is_whole(
    proxy: Counter, opened: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_CACHE", f"{tmp_path},1GiB")
    lake = opened()
    view = lake.pool("p").at()
    name = view.object_name(view.references[0])
    whole = lake.context.store.get(name) or b""
    lake.context.store.put(name, whole[:5_000] + bytes(200_000) + whole[205_000:])
    with pytest.raises(Corrupt):
        view.to_table()
    lake.context.store.put(name, whole)
    assert view.to_table().num_rows == RECORDS
