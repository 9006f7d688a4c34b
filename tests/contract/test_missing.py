"""An object is missing if the store says so; a gateway, or a bucket that is gone, says nothing of it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import Corrupt, ObjectMissing, Unavailable
from log_lake.lake import Lake
from tests.contract.conftest import Place
from tests.contract.test_answers import XML, gcs_error, of, s3_error
from tests.support.servers.proxy import ALWAYS, Proxy, Request, answer

pytestmark = pytest.mark.slow

HTML = "<html><body><h1>404</h1>default backend - 404</body></html>"
NO_STORE = {
    "bucket": answer(404, s3_error("NoSuchBucket"), content_type=XML),
    "page": answer(404, HTML, content_type="text/html"),
    "silence": answer(404, "", content_type=XML),
}


def of_data(request: Request) -> bool:
    return request.method in ("GET", "HEAD") and "/data/" in request.path


@pytest.mark.parametrize("what", NO_STORE)
@of("s3")
def test_a_404_that_is_not_of_the_object_is_unavailable(cloud: Place, proxy: Proxy, what: str) -> None:
    lake = Lake.create(cloud.uri, options=cloud.options)
    lake.create_pool("p", key="k").branch().append(pa.table({"k": [1]}))
    store = cloud.at(proxy.url).open()
    pool = Lake.open(cloud.uri, options=cloud.at(proxy.url).options).pool("p")
    view = pool.at()
    (reference,) = view.references
    name = view.object_name(reference)
    proxy.on(of_data, NO_STORE[what], times=ALWAYS)
    words = "does not exist; make it" if what == "bucket" else "answered 404 with"
    for ask in (lambda: store.get(name), lambda: store.open_input(name), view.to_table):
        with pytest.raises(Unavailable, match=words):
            ask()


@of("s3")
def test_a_listing_that_answers_404_is_not_empty(cloud: Place, proxy: Proxy) -> None:
    store = cloud.at(proxy.url).open()
    assert list(store.list("nothing")) == []
    proxy.on(lambda request: "list-type=2" in request.path, NO_STORE["page"], times=ALWAYS)
    with pytest.raises(Unavailable):
        list(store.list("nothing"))


@of("s3", "gcs")
def test_an_object_that_is_missing_is_said_to_be(cloud: Place) -> None:
    store = cloud.open()
    store.put("a/1", b"x")
    assert store.get("a/2") is None
    with pytest.raises(FileNotFoundError):
        store.open_input("a/2")
    pool = Lake.create(cloud.uri, options=cloud.options).create_pool("p", key="k")
    pool.branch().append(pa.table({"k": [1]}))
    (info,) = pool.store.list(naming.data(pool.config.id))
    pool.store.delete(info.name)
    with pytest.raises(ObjectMissing, match="restore it, or take it out") as caught:
        pool.at().to_table()
    assert caught.value.object_id == naming.data_id(info.name)


@of("s3", "gcs")
def test_an_object_that_was_cut_or_grew_is_corrupt(cloud: Place) -> None:
    pool = Lake.create(cloud.uri, options=cloud.options).create_pool("p", key="k")
    pool.branch().append(pa.table({"k": list(range(1_000))}))
    (info,) = pool.store.list(naming.data(pool.config.id))
    data = pool.store.get(info.name) or b""
    for changed in (data[:-1], data[: len(data) // 2], data + b"x"):
        pool.store.put(info.name, changed)
        with pytest.raises(Corrupt, match="are on record"):
            Lake.open(cloud.uri, options=cloud.options).pool("p").at().to_table()


@of("s3", "gcs")
def test_a_range_behind_the_end_says_how_large_the_object_is(cloud: Place) -> None:
    store = cloud.open()
    store.put("a/1", b"x" * 10)
    with store.open_input("a/1", size=1_000) as file, pytest.raises(Corrupt, match="has 10 bytes; 1,000"):
        file.read_at(100, 900)


@of("gcs")
def test_a_bucket_of_google_that_is_gone_has_no_missing_object(cloud: Place, proxy: Proxy) -> None:
    store = cloud.at(proxy.url).open()
    gone = answer(404, gcs_error(404, "notFound", "The specified bucket does not exist."), content_type=XML)
    proxy.on(lambda request: request.method == "GET", gone, times=ALWAYS)
    with pytest.raises(Unavailable, match="does not exist; make it"):
        store.open_input("p/data/1.parquet")
