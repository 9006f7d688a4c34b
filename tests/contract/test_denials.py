"""What a store denies is `Denied`, with the right that is missing; what its options ask for is asked."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lake_core.errors import Denied
from lake_core.store import Store
from log_lake.lake import Lake
from log_lake.stores.guard import GuardedStore
from tests.contract.conftest import Place
from tests.contract.test_answers import XML, gcs_error, of, s3_error
from tests.support.servers.proxy import ALWAYS, Proxy, Request, answer

pytestmark = pytest.mark.slow


def write(store: Store, name: str) -> None:
    with store.open_output(name) as file:
        file.write(b"x")


DENIED: dict[str, tuple[str, Callable[[Store], object]]] = {
    "read it, and to list the lake": ("a/1", lambda store: store.get("a/1")),
    "list it": ("a", lambda store: list(store.list("a"))),
    "create it": ("a/2", lambda store: store.create("a/2", b"x")),
    "create": ("a/3", lambda store: write(store, "a/3")),
    "write it": ("a/1", lambda store: store.put("a/1", b"x")),
    "delete it": ("a/1", lambda store: store.delete("a/1")),
}


@of("s3", "gcs")
@pytest.mark.parametrize("right", DENIED)
def test_a_denial_names_the_object_and_the_right(cloud: Place, proxy: Proxy, right: str) -> None:
    name, call = DENIED[right]
    cloud.open().put("a/1", b"1")
    store = GuardedStore(cloud.at(proxy.url).open())
    body = s3_error("AccessDenied") if cloud.kind == "s3" else gcs_error(403, "forbidden")
    proxy.on(lambda request: True, answer(403, body, content_type=XML), times=ALWAYS)
    with pytest.raises(Denied) as raised:
        call(store)
    said = str(raised.value)
    assert f"/{name}: " in said
    assert f"grant this process the right to {right}" in said
    assert len(said.splitlines()) == 1


@of("s3")
def test_one_name_that_must_not_be_deleted_is_a_denial(cloud: Place, proxy: Proxy) -> None:
    """S3 answers 200 to a request to delete many, and denies single names in it."""
    store = GuardedStore(cloud.at(proxy.url).open())
    key = f"{cloud.uri.partition('://')[2].partition('/')[2]}/a/1".strip("/")
    error = f"<Error><Key>{key}</Key><Code>AccessDenied</Code><Message>no</Message></Error>"
    said = f"<DeleteResult>{error}</DeleteResult>"

    def is_delete(request: Request) -> bool:
        return request.method == "POST" and "delete" in request.path

    proxy.on(is_delete, answer(200, said, content_type=XML), times=ALWAYS)
    with pytest.raises(
        Denied, match="a/1 was not deleted: AccessDenied no; grant this process the right to delete"
    ):
        store.delete_all(["a/1", "a/2"])


@of("s3")
def test_the_encryption_that_the_options_ask_for_is_asked_for_each_object(cloud: Place, proxy: Proxy) -> None:
    asks = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "a-key", "BucketKeyEnabled": True}
    options = {**cloud.at(proxy.url).options, "s3_additional_kwargs": asks}
    written: list[Request] = []

    def is_write(request: Request) -> bool:
        if request.method == "PUT":
            written.append(request)
        return False

    proxy.on(is_write, answer(500), times=ALWAYS)
    lake = Lake.create(cloud.uri, options=options)
    pool = lake.create_pool("p", key="k")
    write(pool.store, f"{pool.config.id}/data/x")
    pool.store.put("hint", b"1")
    assert pool.store.get("hint") == b"1"
    assert len(written) >= 4
    for request in written:
        headers = {name.lower(): value for name, value in request.headers.items()}
        assert headers["x-amz-server-side-encryption"] == "aws:kms"
        assert headers["x-amz-server-side-encryption-aws-kms-key-id"] == "a-key"
        assert headers["x-amz-server-side-encryption-bucket-key-enabled"].lower() == "true"
