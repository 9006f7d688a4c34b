"""What a writer makes of the answers of S3 and Google: lost ones, and 409 and 412 in every form that was seen.

A proxy on loopback loses the answer of a real server, or says what a server is known to say.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from lake_core.errors import NoCreate, OutcomeUnknown, Unavailable
from lake_core.store import Created
from log_lake.lake import Lake
from tests.contract.conftest import CLOUDS, Place
from tests.support.servers.proxy import ALWAYS, Answer, Forward, Proxy, Request, answer, creates, drop_answer

pytestmark = pytest.mark.slow

XML = "application/xml"


def s3_error(code: str, message: str = "refused", more: str = "") -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        f"<Error><Code>{code}</Code><Message>{message}</Message>{more}<RequestId>tx1</RequestId></Error>"
    )


def gcs_error(code: int, reason: str, message: str = "refused") -> str:
    errors = [{"message": message, "domain": "global", "reason": reason}]
    return json.dumps({"error": {"code": code, "message": message, "errors": errors}})


def of(*kinds: str) -> pytest.MarkDecorator:
    """An answer, or a patience, of these clouds only."""
    return pytest.mark.parametrize("cloud", [kind for kind in CLOUDS if kind in kinds], indirect=True)


# ---------------------------------------------------------------- lost answers


def any_entry(request: Request) -> bool:
    return request.is_create and (request.path.partition("?")[0].endswith(".txn") or b".txn" in request.body)


def test_a_writer_whose_answer_was_lost_finds_that_it_won(cloud: Place, proxy: Proxy) -> None:
    pool = Lake.create(cloud.uri, options=cloud.at(proxy.url).options).create_pool("p", key="k")
    proxy.on(any_entry, drop_answer)
    landed = pool.branch().append(pa.table({"k": [1, 2, 3]}))
    assert proxy.asked(any_entry) >= 3  # the pool's own entry, the one that was lost, the one that found it
    seen = Lake.open(cloud.uri, options=cloud.options).pool("p")
    assert [(n, transaction.id) for n, transaction in seen.log()] == [(1, landed.transaction_id)]
    assert seen.at().to_table()["k"].to_pylist() == [1, 2, 3]


def test_of_two_writers_the_one_whose_answer_was_lost_keeps_its_number(cloud: Place, proxy: Proxy) -> None:
    Lake.create(cloud.uri, options=cloud.options).create_pool("p", key="k")
    ours = Lake.open(cloud.uri, options=cloud.at(proxy.url).options).pool("p").branch()
    others = Lake.open(cloud.uri, options=cloud.options).pool("p").branch()

    def lose_and_let_another_in(request: Request, forward: Forward) -> Answer | None:
        forward(request)
        others.append(pa.table({"k": [2]}))
        return None

    proxy.on(any_entry, lose_and_let_another_in)
    assert ours.append(pa.table({"k": [1]})).version == 1
    seen = Lake.open(cloud.uri, options=cloud.options).pool("p")
    assert [n for n, _ in seen.log()] == [2, 1]
    assert seen.at().to_table()["k"].to_pylist() == [1, 2]


@of("s3", "ceph")  # gcsfs would repeat for half a minute
def test_a_create_whose_every_answer_is_lost_is_unknown_and_stands_once(cloud: Place, proxy: Proxy) -> None:
    store = cloud.at(proxy.url).open()
    store._fs.retries = 1  # type: ignore[attr-defined]  # s3fs repeats on top of the client
    proxy.on(creates("a/1"), drop_answer, times=ALWAYS)
    assert store.create("a/1", b"ours") is Created.UNKNOWN
    assert cloud.open().get("a/1") == b"ours"
    assert cloud.open().create("a/1", b"other") is Created.EXISTS


# ---------------------------------------------------------------- lost answers, and then a refusal

REFUSED_LATER = {
    "s3": {
        400: s3_error("ExpiredToken", "The provided token has expired."),
        403: s3_error("AccessDenied"),
        404: s3_error("NoSuchUpload"),
    },
    "gcs": {
        400: gcs_error(400, "invalid", "an invalid token"),
        401: gcs_error(401, "authError", "Unauthorized"),
        403: gcs_error(403, "forbidden"),
        404: gcs_error(404, "notFound"),
    },
}


def refusals(cloud: Place) -> dict[int, str]:
    return REFUSED_LATER["gcs" if cloud.kind == "gcs" else "s3"]


def do_it_and_fail(request: Request, forward: Forward) -> Answer:
    forward(request)
    return Answer(503)


@pytest.mark.parametrize("first", [drop_answer, do_it_and_fail], ids=["silence", "failure"])
def test_a_refusal_of_a_repeated_create_says_nothing_of_the_first(
    cloud: Place, proxy: Proxy, first: Any
) -> None:
    """The first put acts, its answer is lost, and the client's own repeat is refused."""
    store = cloud.at(proxy.url).open()
    store.get("warm")  # aiohttp itself repeats a PUT on a connection that it has kept
    for status, body in refusals(cloud).items():
        name = f"a/{status}"
        # gcsfs does not repeat after silence: then there is no refusal to be believed
        proxy.on(creates(name), first)
        proxy.on(creates(name), answer(status, body, content_type=XML), times=ALWAYS)
        created = store.create(name, b"ours")
        assert created is Created.UNKNOWN, name
        assert cloud.open().get(name) == b"ours"


def test_a_commit_whose_repeat_is_refused_is_not_said_to_have_failed(cloud: Place, proxy: Proxy) -> None:
    """Refused once, it is read back; refused without end, its outcome is unknown and a later call finds it."""
    pool = Lake.create(cloud.uri, options=cloud.at(proxy.url).options).create_pool("p", key="k")
    seen = Lake.open(cloud.uri, options=cloud.options).pool("p")
    status, body = next(iter(refusals(cloud).items()))
    proxy.on(any_entry, do_it_and_fail)
    proxy.on(any_entry, answer(status, body, content_type=XML))
    landed = pool.branch().append(pa.table({"k": [1]}))
    assert [t.id for _, t in seen.log()] == [landed.transaction_id]
    acted: list[Request] = []

    def act_and_fail(request: Request, forward: Forward) -> Answer:
        acted.append(request)
        return do_it_and_fail(request, forward)

    proxy.on(any_entry, act_and_fail)
    proxy.on(lambda request: bool(acted), answer(status, body, content_type=XML), times=ALWAYS)
    with pytest.raises(OutcomeUnknown):
        pool.branch().append(pa.table({"k": [2]}), token="second")
    proxy.forget()
    again = pool.branch().append(pa.table({"k": [2]}), token="second")
    assert [t.id for _, t in seen.log()] == [again.transaction_id, landed.transaction_id]


def test_a_server_that_is_not_there_was_never_asked(cloud: Place) -> None:
    """Nothing can have been written where no connection was had."""
    store = cloud.at("http://127.0.0.1:9").open()
    store._fs.retries = 1  # type: ignore[attr-defined]  # s3fs repeats on top of the client
    with patch("asyncio.sleep", _no_sleep), pytest.raises(Unavailable, match="a/1: "):
        store.create("a/1", b"x")


async def _no_sleep(*_: object) -> None:
    return None


@of("s3", "ceph")
@pytest.mark.parametrize("status", [400, 403, 404])
def test_a_large_object_whose_completion_is_repeated_and_refused_stands(
    cloud: Place, proxy: Proxy, status: int
) -> None:
    def completes(request: Request) -> bool:
        return request.method == "POST" and "uploadId=" in request.path

    store = cloud.at(proxy.url).open()
    store._fs.default_block_size = 5 << 20  # type: ignore[attr-defined]  # else fifty megabytes a part
    proxy.on(completes, do_it_and_fail)
    proxy.on(completes, answer(status, s3_error("NoSuchUpload"), content_type=XML), times=ALWAYS)
    with store.open_output("data/1") as file:
        file.write(b"x" * (11 << 20))
    assert len(cloud.open().get("data/1") or b"") == 11 << 20
    proxy.forget()
    proxy.on(completes, answer(status, s3_error("NoSuchUpload"), content_type=XML), times=ALWAYS)
    with pytest.raises(Unavailable, match="data/2"), store.open_output("data/2") as file:
        file.write(b"x" * (11 << 20))
    assert cloud.open().get("data/2") is None


# ---------------------------------------------------------------- forms of "exists"

EXISTS = {
    "s3": {
        "that names the condition": s3_error(
            "PreconditionFailed", more="<Condition>If-None-Match</Condition>"
        ),
        "that names none, as Ceph's": s3_error("PreconditionFailed", message=""),
        "without a message": "<Error><Code>PreconditionFailed</Code></Error>",
        "without a body": "",
    },
    "gcs": {
        "as Google's": gcs_error(412, "conditionNotMet", "At least one of the pre-conditions did not hold."),
        "without a body": "",
    },
}


@of("s3", "gcs")
def test_412_in_every_form_means_that_it_exists(cloud: Place, proxy: Proxy) -> None:
    forms, store = EXISTS[cloud.kind], cloud.at(proxy.url).open()
    for form, body in forms.items():
        proxy.on(creates(form), answer(412, body, content_type=XML))
    assert {form: store.create(form, b"x") for form in forms} == dict.fromkeys(forms, Created.EXISTS)
    assert {form: proxy.asked(creates(form)) for form in forms} == dict.fromkeys(forms, 1)


# ---------------------------------------------------------------- forms of "try again"

CONFLICTS = {
    "s3": {
        "of a condition": s3_error("ConditionalRequestConflict", "The conditional request cannot succeed"),
        "of an operation": s3_error("OperationAborted", "A conflicting operation is in progress"),
        "without a body": "",
    },
    "gcs": {"as Google's": gcs_error(409, "conflict", "A conflict occurred. Please try again.")},
}


@of("s3", "gcs")
def test_409_in_every_form_is_tried_again(cloud: Place, proxy: Proxy) -> None:
    forms, store = CONFLICTS[cloud.kind], cloud.at(proxy.url).open()
    for form, body in forms.items():
        proxy.on(creates(form), answer(409, body, content_type=XML), times=2)
    assert {form: store.create(form, b"x") for form in forms} == dict.fromkeys(forms, Created.YES)
    assert {form: proxy.asked(creates(form)) for form in forms} == dict.fromkeys(forms, 3)
    for form, body in forms.items():
        proxy.on(creates(form), answer(409, body, content_type=XML))
    assert {form: store.create(form, b"y") for form in forms} == dict.fromkeys(forms, Created.EXISTS)
    assert {form: store.get(form) for form in forms} == dict.fromkeys(forms, b"x")


@of("s3", "gcs")
def test_409_without_end_is_unknown(cloud: Place, proxy: Proxy) -> None:
    body = next(iter(CONFLICTS[cloud.kind].values()))
    proxy.on(creates("a/1"), answer(409, body, content_type=XML), times=ALWAYS)
    assert cloud.at(proxy.url).open().create("a/1", b"x") is Created.UNKNOWN
    assert proxy.asked(creates("a/1")) < 100


@of("s3", "gcs")
def test_a_journal_goes_on_after_409(cloud: Place, proxy: Proxy) -> None:
    body = next(iter(CONFLICTS[cloud.kind].values()))
    pool = Lake.create(cloud.uri, options=cloud.at(proxy.url).options).create_pool("p", key="k")
    proxy.on(any_entry, answer(409, body, content_type=XML), times=8)
    assert pool.branch().append(pa.table({"k": [1]})).version == 1
    assert [n for n, _ in pool.log()] == [1]


# ---------------------------------------------------------------- neither


REFUSALS = {
    "s3": {403: s3_error("AccessDenied"), 404: s3_error("NoSuchBucket"), 400: s3_error("InvalidRequest")},
    "gcs": {
        403: gcs_error(403, "forbidden"),
        404: gcs_error(404, "notFound"),
        400: gcs_error(400, "invalid", "an invalid name"),
    },
}


@of("s3", "gcs")
def test_a_refusal_is_unavailable_and_not_unknown(cloud: Place, proxy: Proxy) -> None:
    store = cloud.at(proxy.url).open()
    for status, body in REFUSALS[cloud.kind].items():
        proxy.on(creates(f"a/{status}"), answer(status, body, content_type=XML))
        with pytest.raises(Unavailable, match=f"a/{status}: "):
            store.create(f"a/{status}", b"x")
        assert proxy.asked(creates(f"a/{status}")) == 1
    assert list(store.list("a")) == []


def test_a_server_that_fails_and_is_asked_again_says_how_it_stands(cloud: Place, proxy: Proxy) -> None:
    store = cloud.at(proxy.url).open()
    proxy.on(creates("a/1"), answer(503))
    assert store.create("a/1", b"x") is Created.YES
    proxy.on(creates("a/2"), do_it_and_fail)
    assert store.create("a/2", b"x") is Created.EXISTS  # its own: the journal reads it back
    assert store.get("a/2") == b"x"


@of("s3")
def test_a_store_that_knows_no_condition_needs_a_lock(cloud: Place, proxy: Proxy, tmp_path: Path) -> None:
    body = s3_error("NotImplemented", "A header you provided implies functionality that is not implemented.")
    proxy.on(lambda request: request.is_create, answer(501, body, content_type=XML), times=ALWAYS)
    options: dict[str, Any] = cloud.at(proxy.url).options
    with pytest.raises(NoCreate, match="LAKE_LOCK"):
        Lake.create(cloud.uri, options=options)
    assert list(cloud.open().list("")) == []
    pool = Lake.create(cloud.uri, options={**options, "lock": f"file://{tmp_path}"}).create_pool("p", key="k")
    assert pool.branch().append(pa.table({"k": [1]})).version == 1
