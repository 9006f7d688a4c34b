"""What is particular to one store; what all promise is tests/contract."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from lake_core.errors import InvalidInput, Unavailable
from lake_core.store import Created, open_store
from lake_core.store.cloud import _status
from lake_core.store.local import LocalStore
from lake_core.store.probe import probe_create
from tests.fakes.stores import ScriptedStore, lost, unavailable

# ---------------------------------------------------------------- the probe


def test_a_store_that_overwrites_is_refused() -> None:
    store = ScriptedStore()

    def overwrite() -> Created:
        store.put("probe", b"again")
        return Created.YES

    store.on("create", "probe")
    store.on("create", "probe", instead=overwrite)
    with pytest.raises(InvalidInput, match="overwrites"):
        probe_create(store, name="probe")
    assert store.get("probe") is None


def test_a_store_that_says_exists_and_overwrites_is_refused() -> None:
    store = ScriptedStore()
    store.on("create", "probe")

    def overwrite() -> Created:
        store.put("probe", b"again")
        return Created.EXISTS

    store.on("create", "probe", instead=overwrite)
    with pytest.raises(InvalidInput, match="overwrites"):
        probe_create(store, name="probe")


def test_a_store_that_says_yes_twice_is_refused_whatever_it_keeps() -> None:
    store = ScriptedStore()
    store.on("create", "probe", answer=lambda _: Created.YES, times=2)
    with pytest.raises(InvalidInput, match="overwrites"):
        probe_create(store, name="probe")


def test_a_store_that_does_not_answer_is_not_blamed_for_overwriting() -> None:
    for turn in (0, 1):
        store = ScriptedStore()
        for _ in range(turn):
            store.on("create", "probe")
        store.on("create", "probe", instead=lost)
        with pytest.raises(Unavailable):
            probe_create(store, name="probe")


def test_a_first_answer_that_is_lost_does_no_harm() -> None:
    store = ScriptedStore()
    store.on("create", "probe", answer=lost)
    probe_create(store, name="probe")
    assert store.get("probe") is None


# ---------------------------------------------------------------- a folder


def test_a_folder_holds_nothing_but_the_objects(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.create("j/1", b"x")
    store.create("j/1", b"y")
    with pytest.raises(ZeroDivisionError), store.open_output("j/2") as file:
        file.write(b"x" * (1 << 20) + bytes(1 // 0))
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == [tmp_path / "j" / "1"]


@pytest.fixture
def nameless_files_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without O_TMPFILE, such as an older NFS."""
    real = os.open

    def refuse(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "not supported")
        return real(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", refuse)


@pytest.mark.usefixtures("nameless_files_unsupported")
def test_a_file_system_without_nameless_files_keeps_the_same_promises(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    assert store.create("j/1", b"x") is Created.YES
    assert store.create("j/1", b"y") is Created.EXISTS
    with store.open_output("j/2") as file:
        file.write(b"abc")
        assert [o.name for o in store.list("j")] == ["j/1"]
    with pytest.raises(ZeroDivisionError), store.open_output("j/3"):
        raise ZeroDivisionError
    assert sorted(os.listdir(tmp_path / "j")) == ["1", "2"]
    assert (store.get("j/1"), store.get("j/2")) == (b"x", b"abc")


def test_what_was_linked_but_perhaps_not_made_durable_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(tmp_path)
    store.create("j/1", b"x")
    real, calls = os.fsync, []

    def fail_on_the_folder(handle: int) -> None:
        calls.append(handle)
        if len(calls) == 2:
            raise OSError(errno.EIO, "input/output error")
        real(handle)

    monkeypatch.setattr(os, "fsync", fail_on_the_folder)
    assert store.create("j/2", b"x") is Created.UNKNOWN


def test_a_full_disk_is_unavailable_and_leaves_no_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(tmp_path)

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Unavailable, match="no space left"):
        store.create("1", b"x")
    with pytest.raises(Unavailable, match="no space left"), store.open_output("2") as file:
        file.write(b"x")
    assert list(store.list("")) == []


# ---------------------------------------------------------------- choosing by URI


def test_a_path_a_file_uri_and_memory_name_stores(tmp_path: Path) -> None:
    open_store(str(tmp_path)).create("a", b"x")
    assert open_store(f"file://{tmp_path}").get("a") == b"x"
    open_store("memory://one").create("a", b"x")
    assert open_store("memory://one").get("a") == b"x"
    assert open_store("memory://two").get("a") is None


# ---------------------------------------------------------------- answers of the cloud


class _Answer(Exception):
    def __init__(self, **fields: Any) -> None:
        super().__init__("refused")
        self.__dict__.update(fields)


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"response": {"ResponseMetadata": {"HTTPStatusCode": 412}}}, 412),
        ({"response": {}}, None),
        ({"code": "409"}, 409),
        ({"code": 503}, 503),
        ({"status": 404}, 404),
        ({"code": "NoSuchBucket"}, None),
        ({}, None),
    ],
    ids=str,
)
def test_the_http_status_is_found_on_an_error_or_behind_it(
    fields: dict[str, Any], status: int | None
) -> None:
    bare = _Answer(**fields)
    wrapped = OSError(22, "invalid argument")
    wrapped.__cause__ = bare
    assert _status(bare) == _status(wrapped) == status


@pytest.mark.parametrize(
    ("error", "created"),
    [
        (FileExistsError(), Created.EXISTS),
        (_Answer(code=412), Created.EXISTS),
        (_Answer(code=409), Created.UNKNOWN),
        (_Answer(code=500), Created.UNKNOWN),
        (TimeoutError(), Created.UNKNOWN),
        (_Answer(code=403), None),
        (_Answer(code=404), None),
    ],
    ids=repr,
)
def test_what_a_create_may_believe_of_an_answer(
    error: Exception, created: Created | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store("s3://bucket/lake", {"anon": True})

    def answer(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(store._fs, "pipe_file", answer)  # type: ignore[attr-defined]
    if created is None:
        with pytest.raises(Unavailable):
            store.create("a", b"x")
    else:
        assert store.create("a", b"x") is created


def test_a_scripted_store_does_what_it_is_told() -> None:
    store = ScriptedStore()
    store.on("get", "a", instead=unavailable)
    store.create("a", b"x")
    with pytest.raises(Unavailable):
        store.get("a")
    assert store.get("a") == b"x"
    assert store.asked("get", "a") == 2
