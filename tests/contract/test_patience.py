"""A store in trouble ends a command, with the outcome that is known: one budget of time for all repeats.

A real server on loopback misbehaves, and the command runs in a process of its own.  Budgets are small; nothing here
measures time.  A command that hung would end the test by `DEADLINE`.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import OutcomeUnknown, Unavailable
from lake_core.store import Created
from log_lake.lake import Lake
from log_lake.stores import open_store
from tests.contract.conftest import Place
from tests.support.servers.proxy import (
    ALWAYS,
    Answer,
    Forward,
    Proxy,
    Request,
    answer,
    creates,
    drop_answer,
    everything,
)
from tests.support.servers.s3 import BUCKET, s3_client
from tests.support.terminal import on_terminal

pytestmark = pytest.mark.slow

DEADLINE = 300
UNAVAILABLE, OUTCOME_UNKNOWN, DENIED = 7, 6, 13
NAMED = re.compile(r"the store served nothing for 3 s")


@dataclass
class Silent:
    """A server that accepts connections and says nothing, or a byte now and then; `asked` counts requests."""

    drips: bool = False
    asked: int = 0
    _ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Silent:
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                while data := connection.recv(1 << 16):
                    self.asked += data.count(b" HTTP/1.1\r\n")
                    if self.drips:
                        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nETag: x\r\n\r\n")
                        while not self._ended.wait(0.05):
                            connection.sendall(b"x")
            except OSError:
                return


def environment(**more: str) -> dict[str, str]:
    return {
        **os.environ,
        "AWS_ACCESS_KEY_ID": "AKIAEXAMPLEOFATEST",
        "AWS_SECRET_ACCESS_KEY": "hush-hush",
        "AWS_REGION": "us-east-1",
        **more,
    }


def lake(
    url: str, *words: str, uri: str = f"s3://{BUCKET}/lake", **more: str
) -> subprocess.CompletedProcess[str]:
    """The command in a process, as a user sets its store, with a budget of 3 s."""
    return subprocess.run(
        [sys.executable, "-m", "log_lake.cli.main", "--lake", uri, *words],
        env=environment(AWS_ENDPOINT_URL=url, LAKE_STORE_TIMEOUT="3", **more),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


@pytest.fixture(params=[False, True], ids=["silence", "a slow drip"])
def silent(request: pytest.FixtureRequest) -> Iterator[Silent]:
    with Silent(drips=request.param) as server:
        yield server


def test_a_store_that_accepts_and_does_not_answer_ends_the_command(silent: Silent) -> None:
    ended = lake(silent.url, "ls")
    assert ended.returncode == UNAVAILABLE
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()  # one line, and no progress: nobody watches
    assert NAMED.search(line)
    assert "try again" in line
    assert "--timeout" in line
    assert 1 <= silent.asked <= 3


def test_a_source_that_does_not_answer_ends_a_load(silent: Silent, tmp_path: Path) -> None:
    Lake.create(str(tmp_path / "lake")).create_pool("p", key="k")
    for source in (f"s3://{BUCKET}/one.ndjson", f"s3://{BUCKET}/in/*.ndjson"):
        ended = lake(silent.url, "load", "p", source, uri=str(tmp_path / "lake"))
        assert ended.returncode == UNAVAILABLE, ended.stderr
        (line,) = ended.stderr.splitlines()
        assert NAMED.search(line)


def test_the_option_of_the_command_goes_before_the_variable() -> None:
    with Silent() as server:
        ended = lake(server.url, "ls", "--timeout", "2s")
    assert ended.returncode == UNAVAILABLE
    assert "served nothing for 2 s" in ended.stderr


def test_a_person_is_told_what_is_waited_for_and_until_when(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    with Silent() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        shown = on_terminal("--lake", f"s3://{BUCKET}/lake", "--timeout", "8s", "ls", columns=400)
    assert shown.status == UNAVAILABLE
    told = [line for line in shown.lines if "waits for" in line]
    assert len(told) == 1
    assert f"waits for s3://{BUCKET}/lake/lake.json: not served for" in told[0]
    assert re.search(r"; gives up after \d+ s more$", told[0])


def test_connections_that_are_reset_end_the_command(s3_options: dict[str, Any]) -> None:
    with Proxy(s3_options["client_kwargs"]["endpoint_url"]) as proxy:
        proxy.on(everything, lambda request, forward: None, times=ALWAYS)
        ended = lake(proxy.url, "ls")
        assert ended.returncode == UNAVAILABLE
        assert len(ended.stderr.splitlines()) == 1
        assert proxy.requests


def any_entry(request: Request) -> bool:
    return request.is_create and ".txn" in request.path


@dataclass
class ThenRefusing:
    """The entry is written, its answer is lost, and from then on the store says 503 to everything."""

    is_down: bool = False

    def __call__(self, request: Request, forward: Forward) -> Answer | None:
        if not self.is_down and any_entry(request):
            self.is_down = True
            forward(request)
            return None
        return Answer(503) if self.is_down else forward(request)


def test_an_entry_whose_answer_is_lost_before_the_store_fails_is_unknown_and_a_token_finds_it(
    s3_options: dict[str, Any], tmp_path: Path
) -> None:
    uri = f"s3://{BUCKET}/patience"
    server = s3_options["client_kwargs"]["endpoint_url"]
    Lake.create(uri, options=s3_client(server)).create_pool("p", key="k")
    file = tmp_path / "one.ndjson"
    file.write_text('{"k": 1}\n')
    load = ("load", "p", str(file), "--token", "t1")
    with Proxy(server) as proxy:
        proxy.on(everything, ThenRefusing(), times=ALWAYS)
        ended = lake(proxy.url, *load, uri=uri)
    assert ended.returncode == OUTCOME_UNKNOWN, ended.stderr
    assert "--token" in ended.stderr
    again = lake(server, *load, uri=uri)
    assert again.returncode == 0, again.stderr
    assert Lake.open(uri, options=s3_client(server)).pool("p").at().to_table()["k"].to_pylist() == [1]


def test_the_budget_is_for_trouble_and_not_for_long_work(cloud: Place, proxy: Proxy) -> None:
    """Each answer is late; together they take longer than the budget, by far."""
    late = threading.Event()

    def answer_late(request: Request, forward: Forward) -> Answer:
        late.wait(0.4)
        return forward(request)

    store = open_store(cloud.uri, {**cloud.at(proxy.url).options, "timeout": "2s"})
    proxy.on(everything, answer_late, times=ALWAYS)
    for number in range(12):
        assert store.create(f"a/{number:02}", b"x") is Created.YES
    assert len(list(store.list("a"))) == 12


def test_every_call_of_a_store_that_says_nothing_ends(cloud: Place) -> None:
    with Silent() as server:
        for ask in (
            lambda store: store.get("a"),
            lambda store: store.put("a", b"x"),
            lambda store: list(store.list("a")),
            lambda store: store.delete("a"),
            lambda store: store.delete_all(["a", "b"]),
            lambda store: store.open_input("a").read(),
        ):
            store = open_store(cloud.uri, {**cloud.at(server.url).options, "timeout": "1"})
            with pytest.raises(Unavailable, match="served nothing for 1 s"):
                ask(store)
        store = open_store(cloud.uri, {**cloud.at(server.url).options, "timeout": "1"})
        assert store.create("a", b"x") is Created.UNKNOWN  # it was sent, so it may have acted
        store = open_store(cloud.uri, {**cloud.at(server.url).options, "timeout": "1"})
        with pytest.raises(Unavailable, match="served nothing for 1 s"), store.open_output("a") as file:
            file.write(b"x")


def test_after_the_budget_nothing_is_sent_for_a_while(cloud: Place) -> None:
    """Repeats of the journal and clean-up then end at once."""
    with Silent() as server:
        store = open_store(cloud.uri, {**cloud.at(server.url).options, "timeout": "1"})
        with pytest.raises(Unavailable):
            store.get("a")
        asked = server.asked
        with pytest.raises(Unavailable, match="served nothing"):
            store.create("a", b"x")
        assert server.asked == asked


def test_a_store_that_comes_back_serves(cloud: Place, proxy: Proxy) -> None:
    store = open_store(cloud.uri, {**cloud.at(proxy.url).options, "timeout": "60"})
    proxy.on(creates("a/1"), answer(503), times=2)
    assert store.create("a/1", b"x") in (Created.YES, Created.UNKNOWN)
    assert store.create("a/2", b"x") is Created.YES


def test_a_commit_on_a_store_that_falls_silent_is_unknown(cloud: Place, proxy: Proxy) -> None:
    Lake.create(cloud.uri, options=cloud.options).create_pool("p", key="k")
    lake = Lake.open(cloud.uri, options={**cloud.at(proxy.url).options, "timeout": "2"})
    branch = lake.pool("p").branch()
    never = threading.Event()

    def fall_silent(request: Request, forward: Forward) -> None:
        never.wait(DEADLINE)

    def is_entry(request: Request) -> bool:
        return request.is_create and (".txn" in request.path or b".txn" in request.body)

    proxy.on(is_entry, drop_answer)
    proxy.on(is_entry, fall_silent, times=ALWAYS)
    try:
        with pytest.raises(OutcomeUnknown, match="--token"):
            branch.append(pa.table({"k": [1]}))
        assert proxy.asked(is_entry) <= 4
    finally:
        never.set()
    seen = Lake.open(cloud.uri, options=cloud.options).pool("p")
    assert [version for version, _ in seen.log()] == [1]


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("ExpiredToken", "the token has expired: get a new one"),
        ("InvalidAccessKeyId", "the store does not know the key"),
        ("SignatureDoesNotMatch", "the secret does not belong to the key"),
        ("AccessDenied", "no right to this"),
    ],
)
def test_credentials_that_are_refused_are_named_and_no_secret_is(
    s3_options: dict[str, Any], code: str, says: str
) -> None:
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>refused</Message></Error>"
    with Proxy(s3_options["client_kwargs"]["endpoint_url"]) as proxy:
        proxy.on(everything, answer(403, body, content_type="application/xml"), times=ALWAYS)
        ended = lake(proxy.url, "ls", AWS_SESSION_TOKEN="hush-token")
    assert ended.returncode == (DENIED if code == "AccessDenied" else UNAVAILABLE)
    (line,) = ended.stderr.splitlines()
    assert says in line
    assert ("grant this process the right" in line) == (code == "AccessDenied")
    assert "key AKIA...TEST from the variables AWS_ACCESS_KEY_ID" in line
    assert "hush" not in line
