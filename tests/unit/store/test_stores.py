"""What is particular to one store; what all promise is tests/contract."""

from __future__ import annotations

import errno
import itertools
import os
import resource
import shutil
import signal
import stat
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import InvalidInput, Unavailable
from lake_core.store import Created, Store
from lake_core.store.probe import probe_create
from log_lake.stores import open_store
from log_lake.stores.cloud import _status
from log_lake.stores.guard import guarded
from log_lake.stores.local import LocalStore
from tests.support.stores import ScriptedStore, lost, raising, unavailable

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


def test_a_store_that_says_exists_of_nothing_is_refused_and_named() -> None:
    store = ScriptedStore()
    store.on("create", "probe", instead=lambda: Created.EXISTS)
    with pytest.raises(InvalidInput, match="says that it does not exist when it is read"):
        probe_create(store, name="probe")


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


# ---------------------------------------------------------------- failures

ERRNOS = [
    errno.EIO,
    errno.ESTALE,
    errno.EACCES,
    errno.EMFILE,
    errno.ENOSPC,
    errno.EROFS,
    errno.ETIMEDOUT,
    errno.ENAMETOOLONG,
]
STRANGE = [
    *(OSError(number, os.strerror(number)) for number in ERRNOS),
    pa.ArrowInvalid("not Arrow"),
    struct.error("unpack requires 8 bytes"),
    RuntimeError("event loop is closed"),
    _Answer(code=418),
    KeyError("NextContinuationToken"),
    MemoryError(),
]
"""What a system or a library may raise at any call."""


def write_out(store: Store) -> None:
    with store.open_output("j/9") as file:
        file.write(b"x")


CALLS: dict[str, Callable[[Store], object]] = {
    "get": lambda store: store.get("j/1"),
    "put": lambda store: store.put("j/HEAD", b"1"),
    "list": lambda store: list(store.list("j")),
    "delete": lambda store: store.delete("j/1"),
    "open_input": lambda store: store.open_input("j/1"),
    "open_output": write_out,
}


@pytest.mark.parametrize("error", STRANGE, ids=repr)
@pytest.mark.parametrize("call", CALLS)
def test_behind_a_guard_every_failure_is_unavailable_and_names_the_object(
    call: str, error: Exception
) -> None:
    store = ScriptedStore()
    store.on(call, "", instead=raising(error))
    with pytest.raises(Unavailable, match="memory://scripted/j"):
        CALLS[call](guarded(store))


@pytest.mark.parametrize("error", STRANGE, ids=repr)
def test_behind_a_guard_a_create_that_fails_strangely_may_have_acted(error: Exception) -> None:
    store = ScriptedStore()
    store.on("create", "j/1", instead=raising(error))
    assert guarded(store).create("j/1", b"x") is Created.UNKNOWN


def test_what_the_port_says_passes_the_guard() -> None:
    store = guarded(ScriptedStore())
    with pytest.raises(FileNotFoundError):
        store.open_input("nothing")
    with pytest.raises(ZeroDivisionError), store.open_output("j/1") as file:
        file.write(bytes(1 // 0))
    assert store.get("j/1") is None
    assert guarded(store) is store


@pytest.mark.parametrize("number", ERRNOS, ids=errno.errorcode.get)
@pytest.mark.parametrize(
    ("function", "call"),
    [
        ("scandir", "list"),
        ("unlink", "delete"),
        ("replace", "put"),
        ("fsync", "open_output"),
        ("link", "open_output"),
    ],
)
def test_what_the_file_system_refuses_is_unavailable(
    function: str, call: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(tmp_path)
    store.create("j/1", b"x")
    with monkeypatch.context() as patched:
        patched.setattr(os, function, raising(OSError(number, os.strerror(number))))
        with pytest.raises(Unavailable, match=os.strerror(number)):
            CALLS[call](store)
    assert store.get("j/1") == b"x"
    assert store.get("j/HEAD") is None


@pytest.mark.parametrize("function", ["open", "fsync", "mkdir", "link"])
@pytest.mark.parametrize("number", ERRNOS, ids=errno.errorcode.get)
@pytest.mark.parametrize("nameless", [True, False])
def test_a_create_that_fails_in_a_folder_says_unavailable_only_if_nothing_was_written(
    nameless: bool,
    function: str,
    number: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """Whichever call of a create fails, from the first to the last."""
    if not nameless:
        request.getfixturevalue("nameless_files_unsupported")
    real = getattr(os, function)
    for failing in range(24):
        store, calls = LocalStore(tmp_path / str(failing)), itertools.count()

        def fail(*args: Any, **named: Any) -> Any:
            if next(calls) == failing:  # noqa: B023 - called within the turn
                raise OSError(number, os.strerror(number))
            return real(*args, **named)

        with monkeypatch.context() as patched:
            patched.setattr(os, function, fail)
            try:
                created = store.create("j/k/1", b"x")
            except Unavailable:
                assert store.get("j/k/1") is None
                continue
        if created is Created.YES:
            assert next(calls) <= failing
            assert store.get("j/k/1") == b"x"
            return
        assert created is Created.UNKNOWN
        assert store.create("j/k/1", b"x") is Created.UNKNOWN, "it was never said to be durable"
    pytest.fail("there are not so many calls")


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOENT, errno.ENOSPC], ids=errno.errorcode.get)
def test_a_link_that_acted_and_was_refused_when_it_was_repeated_is_unknown(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client of a file server repeats a request whose answer was lost, and may have lost its rights by then."""
    store, real = LocalStore(tmp_path), os.link

    def link(*args: Any, **named: Any) -> None:
        real(*args, **named)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", link)
    assert store.create("j/1", b"x") is Created.UNKNOWN
    assert store.get("j/1") == b"x"


def test_a_folder_whose_name_could_not_be_made_durable_is_synced_before_anything_stands_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, synced = LocalStore(tmp_path), []
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", raising(OSError(errno.EIO, "input/output error")))
        with pytest.raises(Unavailable):
            store.create("j/1", b"x")
    real = os.fsync

    def sync(handle: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{handle}"))
        real(handle)

    monkeypatch.setattr(os, "fsync", sync)
    assert store.create("j/1", b"x") is Created.YES
    assert str(tmp_path) in synced


def test_a_folder_that_another_program_removed_is_made_again(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    for name in ("f/a", "f/b"):
        store.create(name, b"x")
        store.put(f"{name}2", b"x")
        shutil.rmtree(tmp_path / "f")
    with store.open_output("f/c") as file:
        file.write(b"y")
    assert store.get("f/c") == b"y"


def test_a_hint_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """A disk that is full while a hint is written leaves the old one."""
    store = LocalStore(tmp_path)
    store.put("j/HEAD", b"old")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, limit[1]))
        with pytest.raises(Unavailable, match="j/HEAD"):
            store.put("j/HEAD", b"n" * 10_000)
        with pytest.raises(Unavailable, match="j/new"):
            store.put("j/new", b"n" * 10_000)
        with pytest.raises(Unavailable, match="j/data"), store.open_output("j/data") as file:
            file.write(b"n" * 10_000)
        with pytest.raises(Unavailable, match="j/1"):
            store.create("j/1", b"n" * 10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, ignored)
    assert os.listdir(tmp_path / "j") == ["HEAD"]
    assert store.get("j/HEAD") == b"old"


def test_an_object_that_cannot_be_deleted_keeps_no_other_from_being_deleted(tmp_path: Path) -> None:
    store = guarded(LocalStore(tmp_path))
    names = [f"data/{number:03d}" for number in range(50)]
    for name in names:
        store.create(name, b"x")
    Path(tmp_path, names[20]).unlink()
    Path(tmp_path, names[20], "in the way").mkdir(parents=True)
    with pytest.raises(Unavailable, match=names[20]):
        store.delete_all(names)
    assert list(store.list("data")) == []


@pytest.mark.parametrize("durable", [False, True])
def test_a_durable_put_is_synced_with_its_folder_before_it_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: bool
) -> None:
    store = LocalStore(tmp_path)
    store.put("x", b"1")
    synced: list[bool] = []
    real = os.fsync

    def sync(handle: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(handle).st_mode))
        real(handle)

    monkeypatch.setattr(os, "fsync", sync)
    store.put("x", b"2", durable=durable)
    assert synced == ([False, True] if durable else [])
    assert store.get("x") == b"2"
