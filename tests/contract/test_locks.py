"""Stores without create-only put: refused without a lock, and kept right by one.

What a locked store promises as a store is held by the rest of the contract.  Here is what only a lock can answer.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psycopg
import pytest
from s3fs import S3FileSystem

from lake_core.errors import InvalidInput, NoCreate, Unavailable
from lake_core.store import Created
from log_lake.cli.main import main
from log_lake.lake import Lake
from log_lake.stores import open_store
from log_lake.stores.locked import Lock, LockedStore, NoLock
from log_lake.stores.locks import _patient, open_lock
from log_lake.stores.memory import MemoryStore
from tests.contract.conftest import LOCKED
from tests.support.servers.s3 import BUCKET
from tests.support.stores import ALWAYS, ScriptedStore, lost, unavailable

pytestmark = pytest.mark.slow

PATIENCE = 600.0


@pytest.fixture(params=LOCKED)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a lock is."""
    if request.param == "file-lock":
        return f"file://{tmp_path}/locks"
    return str(request.getfixturevalue("postgresql_address"))


def break_lock(address: str) -> None:
    """What an operator should not do while a lock is held."""
    if address.startswith("file:"):
        shutil.rmtree(address.removeprefix("file://"))
        return
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )


# ---------------------------------------------------------------- a lake needs one


def test_a_lake_on_a_store_that_overwrites_is_refused(overwriting_options: dict[str, Any]) -> None:
    uri = f"s3://{BUCKET}/refused"
    with pytest.raises(NoCreate, match=r"overwrites .* LAKE_LOCK=file:///FOLDER or postgresql://"):
        Lake.create(uri, options=overwriting_options)
    assert list(open_store(uri, overwriting_options).list("")) == []


def test_lake_init_refuses_a_store_that_overwrites_until_a_lock_is_named(
    overwriting_options: dict[str, Any],
    address: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", overwriting_options["client_kwargs"]["endpoint_url"])
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    uri = f"s3://{BUCKET}/init-{address.partition(':')[0]}"
    assert main(["init", "--lake", uri]) == InvalidInput.exit_status
    said = capsys.readouterr().err
    assert said.startswith(f"lake: {uri}: this store overwrites")
    assert said.count("\n") == 1
    monkeypatch.setenv("LAKE_LOCK", address)
    assert main(["init", "--lake", uri]) == 0
    assert main(["create", "--lake", uri, "p", "--key", "k"]) == 0
    S3FileSystem.clear_instance_cache()  # one made of these variables is nobody else's


def test_an_address_of_no_lock_is_refused_and_its_password_not_shown() -> None:
    for address in ("file://host/folder", "file:///", "redis://me:secret@host", "secret"):
        with pytest.raises(InvalidInput, match="use file:///FOLDER or postgresql://USER@HOST/DATABASE") as no:
            open_store("memory://x", {"lock": address})
        assert "secret" not in str(no.value)


def test_the_option_names_a_lock_before_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_LOCK", "nonsense")
    open_store("memory://x", {"lock": f"file://{tmp_path}"})
    with pytest.raises(InvalidInput):
        open_store("memory://x")


def test_postgresql_without_its_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InvalidInput, match=r"pip install 'log-lake\[locks\]'"):
        open_lock("postgresql://host/db")


def test_a_lock_that_cannot_be_reached_is_unavailable_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    # nothing listens on the discard port of loopback
    for address in (f"file://{tmp_path}/file", "postgresql://me:secret@127.0.0.1:9/db"):
        store = ScriptedStore()
        with pytest.raises(Unavailable, match="lock") as no:
            LockedStore(store, open_lock(address)).create("a", b"x")
        assert "secret" not in str(no.value)
        assert store.requests == []


def test_without_its_lock_a_store_is_read_and_nothing_created() -> None:
    behind = MemoryStore()
    behind.create("a", b"x")
    store = LockedStore(behind, NoLock("postgresql"))
    assert store.get("a") == b"x"
    with pytest.raises(InvalidInput, match=r"b: .*postgresql.* LAKE_LOCK"):
        store.create("b", b"x")
    assert store.get("b") is None


# ---------------------------------------------------------------- one at a time


def test_one_holds_a_name_at_a_time_and_others_hold_other_names(address: str) -> None:
    ours, theirs = open_lock(address), open_lock(address, patience=0.2)
    with ours.hold("a"):
        with pytest.raises(Unavailable, match="held by another writer"), theirs.hold("a"):
            pass
        with theirs.hold("b"):
            pass
    with theirs.hold("a"):
        pass


def test_who_waits_gets_the_name_when_it_is_given_back(address: str) -> None:
    lock, held, order = open_lock(address, patience=PATIENCE), threading.Event(), []

    def wait() -> None:
        held.wait(PATIENCE)
        with lock.hold("a"):
            order.append("second")

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(wait)
        with lock.hold("a"):
            held.set()
            order.append("first")
        waiting.result(PATIENCE)
    assert order == ["first", "second"]


def test_a_block_that_raised_gives_the_name_back(address: str) -> None:
    lock = open_lock(address, patience=1)
    with pytest.raises(ZeroDivisionError), lock.hold("a"):
        raise ZeroDivisionError
    with lock.hold("a"):
        pass


def _hold_for_ever(address: str, end: Connection) -> None:
    with open_lock(address).hold("a"):
        end.send("held")
        end.recv()


def test_who_is_killed_gives_the_name_back(address: str) -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    holder = context.Process(target=_hold_for_ever, args=(address, theirs))
    holder.start()
    try:
        assert ours.poll(PATIENCE)
        with pytest.raises(Unavailable), open_lock(address, patience=0.2).hold("a"):
            pass
    finally:
        holder.kill()
        holder.join(PATIENCE)
    with open_lock(address, patience=PATIENCE).hold("a"):
        pass


def _in_child(work: Callable[[], None]) -> int:
    """The exit status of a forked child that does the work."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_child_takes_locks_of_its_own(address: str) -> None:
    lock = open_lock(address, patience=0.2)
    with lock.hold("a"):
        pass

    def take_another_and_miss_the_held() -> None:
        with lock.hold("b"):
            pass
        with pytest.raises(Unavailable), lock.hold("a"):
            pass

    with lock.hold("a") as check:
        assert _in_child(take_another_and_miss_the_held) == 0
        check()
    with lock.hold("a"):
        pass


def test_a_child_that_was_forked_meanwhile_does_not_keep_the_name(address: str) -> None:
    lock = open_lock(address, patience=PATIENCE)
    waits, goes_on = os.pipe()
    with lock.hold("a"):
        child = os.fork()
        if child == 0:
            os.close(goes_on)
            os.read(waits, 1)  # until the parent closes its end, or is gone
            os._exit(0)
    try:
        with open_lock(address, patience=0.2).hold("a"):
            pass
    finally:
        os.close(goes_on)
        os.waitpid(child, 0)
        os.close(waits)


@pytest.mark.parametrize("address", [kind for kind in LOCKED if kind != "file-lock"], indirect=True)
def test_connections_are_kept_and_one_that_was_cut_is_replaced(address: str) -> None:
    lock = open_lock(address)

    def process() -> int:
        with lock.hold("a"), psycopg.connect(address) as connection:
            row = connection.execute("SELECT pid FROM pg_locks WHERE locktype = 'advisory'").fetchone()
        assert row is not None
        return int(row[0])

    def be_another() -> None:
        assert process() != first

    first = process()
    assert process() == first
    assert _in_child(be_another) == 0, "a forked child speaks on its parent's connection"
    break_lock(address)
    assert process() != first


# ---------------------------------------------------------------- a lock that is lost


def test_who_lost_the_lock_learns_of_it(address: str) -> None:
    def lose(lock: Lock) -> None:
        with lock.hold("a") as check:
            check()
            break_lock(address)
            with pytest.raises(Unavailable):
                check()

    with pytest.raises(Unavailable):
        lose(open_lock(address))
    with open_lock(address, patience=1).hold("a"):
        pass


def test_a_lock_lost_before_the_write_prevents_it(address: str) -> None:
    store = ScriptedStore()
    store.on("get", "a", answer=lambda found: break_lock(address))
    with pytest.raises(Unavailable):
        LockedStore(store, open_lock(address)).create("a", b"x")
    assert store.asked("create") == 0


def test_a_lock_lost_during_the_write_makes_its_outcome_unknown(address: str) -> None:
    store = ScriptedStore()
    store.on("create", "a", before=lambda: break_lock(address))
    assert LockedStore(store, open_lock(address)).create("a", b"x") is Created.UNKNOWN


def test_a_server_of_locks_that_does_not_answer_ends_the_wait() -> None:
    """It accepts the connection, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        lock = open_lock(f"postgresql://u:hush@127.0.0.1:{silent.getsockname()[1]}/db", patience=0.5)
        with (
            pytest.raises(Unavailable, match=r"lock on PostgreSQL at 127\.0\.0\.1: .*timeout") as raised,
            lock.hold("a"),
        ):
            raise AssertionError("nobody holds it")
    assert "hush" not in str(raised.value)


@pytest.mark.skipif("postgresql-lock" not in LOCKED, reason="needs LAKE_TEST_POSTGRES=1")
def test_a_statement_that_a_server_does_not_end_is_given_up(postgresql_address: str) -> None:
    """A server that hangs after it has let us in: libpq itself waits for ever."""
    connection = _patient(1.0).connect(postgresql_address)
    with pytest.raises(psycopg.Error):
        connection.execute("SELECT pg_sleep(600)")
    connection.close()


def test_a_commit_that_a_late_write_of_another_writer_replaced_is_not_acknowledged(address: str) -> None:
    """A writer lost its lock while its write was on the way; it arrives right after ours."""
    store = ScriptedStore()

    def overwritten() -> Created:
        store.behind.put("a", b"ours")
        store.behind.put("a", b"theirs, late")
        return Created.YES

    store.on("create", "a", instead=overwritten)
    assert LockedStore(store, open_lock(address)).create("a", b"ours") is Created.EXISTS
    assert store.get("a") == b"theirs, late"


def test_a_write_that_cannot_be_read_back_is_unknown(address: str) -> None:
    store = ScriptedStore()
    store.on("get", "a")
    store.on("get", "a", instead=unavailable, times=ALWAYS)
    assert LockedStore(store, open_lock(address)).create("a", b"ours") is Created.UNKNOWN


@pytest.mark.parametrize("overwrites", [True, False])
def test_lake_init_says_what_a_store_that_overwrites_cannot_promise(
    overwrites: bool, tmp_path: Path, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    options = dict(request.getfixturevalue("overwriting_options" if overwrites else "s3_options"))
    uri = f"s3://{BUCKET}/said-{overwrites}"
    Lake.create(uri, options={**options, "lock": f"file://{tmp_path}/locks"})
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(said) == overwrites
    assert all("only the lock keeps writers apart" in line and "create-only write" in line for line in said)
    assert [info.name for info in open_store(uri, options).list("")] == ["lake.json"]


# ---------------------------------------------------------------- a store that fails under the lock


@pytest.fixture
def lock(tmp_path: Path) -> Lock:
    return open_lock(f"file://{tmp_path}/locks")


def test_what_exists_is_not_written_even_where_the_store_would_overwrite(lock: Lock) -> None:
    store = ScriptedStore()
    store.put("a", b"first")
    store.on("create", "a", instead=lambda: Created.YES, times=ALWAYS)
    assert LockedStore(store, lock).create("a", b"second") is Created.EXISTS
    assert store.asked("create") == 0


def test_a_write_whose_answer_was_lost_is_found_under_the_lock(lock: Lock) -> None:
    store = ScriptedStore()
    store.on("create", "a", answer=lost)
    assert LockedStore(store, lock).create("a", b"x") is Created.YES
    assert store.asked("create") == 1


def test_a_write_that_did_not_arrive_is_repeated_under_the_lock(lock: Lock) -> None:
    store = ScriptedStore()
    store.on("create", "a", instead=lost)
    assert LockedStore(store, lock).create("a", b"x") is Created.YES
    assert store.get("a") == b"x"


def test_a_write_that_is_never_answered_is_unknown(lock: Lock) -> None:
    store = ScriptedStore()
    store.on("create", "a", instead=lost, times=ALWAYS)
    assert LockedStore(store, lock).create("a", b"x") is Created.UNKNOWN
    assert store.asked("create") < 10


def test_a_store_that_refuses_before_anything_was_sent_is_unavailable(lock: Lock) -> None:
    for request in ("get", "create"):
        store = ScriptedStore()
        store.on(request, "a", instead=unavailable, times=ALWAYS)
        with pytest.raises(Unavailable):
            LockedStore(store, lock).create("a", b"x")


def test_a_store_that_refuses_after_something_was_sent_is_unknown(lock: Lock) -> None:
    store = ScriptedStore()
    store.on("get", "a")
    store.on("get", "a", instead=unavailable, times=ALWAYS)
    store.on("create", "a", instead=lost)
    assert LockedStore(store, lock).create("a", b"x") is Created.UNKNOWN


def test_a_store_that_knows_no_condition_is_written_without_one(lock: Lock) -> None:
    def refuse() -> Created:
        raise NoCreate("no such request")

    store = ScriptedStore()
    store.on("create", "", instead=refuse, times=ALWAYS)
    locked = LockedStore(store, lock)
    assert locked.create("a", b"first") is Created.YES
    assert locked.create("a", b"second") is Created.EXISTS
    assert store.behind.get("a") == b"first"


def test_a_lake_made_with_a_lock_is_read_without_it_and_not_written(tmp_path: Path) -> None:
    uri, lock = str(tmp_path / "lake"), f"file://{tmp_path / 'locks'}"
    Lake.create(uri, options={"lock": lock}).create_pool("p", key="k")
    without = Lake.open(uri)
    assert [pool.name for pool in without.pools()] == ["p"]
    with pytest.raises(InvalidInput, match="needs a lock"):
        without.create_pool("q", key="k")
    Lake.open(uri, options={"lock": lock}).create_pool("q", key="k")
