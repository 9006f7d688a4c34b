"""No name, and no link, leads out of a store: what a stored thing names may be crafted."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import Corrupt, LakeError
from lake_core.store import Created, Store
from lake_core.store.port import is_inside
from log_lake.lake import Lake
from log_lake.stores.guard import guarded
from log_lake.stores.local import LocalStore
from log_lake.stores.memory import MemoryStore
from tests.support.stores import ScriptedStore

OUTSIDE = ("../other", "/etc/hosts", "a/../../other", "a/../b", "a//b", "a/./b", "..", ".", "", "a/", "a\0b")


def written(store: Store, name: str) -> None:
    with store.open_output(name) as file:
        file.write(b"x")


ASKED: dict[str, Callable[[Store, str], Any]] = {
    "get": lambda store, name: store.get(name),
    "create": lambda store, name: store.create(name, b"x"),
    "put": lambda store, name: store.put(name, b"x"),
    "delete": lambda store, name: store.delete(name),
    "delete_all": lambda store, name: store.delete_all([name]),
    "open_input": lambda store, name: store.open_input(name),
    "open_output": written,
    "list": lambda store, name: list(store.list(name)),
}


@pytest.mark.parametrize("name", ["a", "a/b", "a.b", "a/..b", "a/b..", "...", "ä/\udc80"])
def test_names_that_stay_inside(name: str) -> None:
    assert is_inside(name)


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("call", ASKED)
@pytest.mark.parametrize("kind", ["local", "memory", "a user's own, behind the guard"])
def test_a_name_that_leads_out_is_refused_by_every_store(
    kind: str, call: str, name: str, tmp_path: Path
) -> None:
    (tmp_path / "other").write_bytes(b"of no lake")
    stores: dict[str, Store] = {"local": LocalStore(tmp_path / "lake"), "memory": MemoryStore()}
    behind = ScriptedStore()
    store = stores.get(kind) or guarded(behind)
    if call == "list" and name in ("", "a/"):
        ASKED[call](store, name)  # the root, and a folder
    else:
        with pytest.raises(Corrupt, match="lead out"):
            ASKED[call](store, name)
        assert behind.requests == []
    assert (tmp_path / "other").read_bytes() == b"of no lake"


@pytest.fixture
def linked(tmp_path: Path) -> LocalStore:
    """`evil/data` is a link to the data of another pool, and `evil/lone` one to a file of no lake."""
    store = LocalStore(tmp_path / "lake")
    store.put("good/data/1", b"of another pool")
    store.put("evil/journal/1", b"x")
    (tmp_path / "lake/evil/data").symlink_to(tmp_path / "lake/good/data")
    (tmp_path / "outside").write_bytes(b"of no lake")
    (tmp_path / "lake/evil/lone").symlink_to(tmp_path / "outside")
    return store


@pytest.mark.parametrize("name", ["evil/data/1", "evil/lone", "evil/data/deeper/1"])
@pytest.mark.parametrize("call", [*ASKED, "local_path"])
def test_no_call_follows_a_link_below_the_root(
    linked: LocalStore, call: str, name: str, tmp_path: Path
) -> None:
    calls = {**ASKED, "local_path": lambda store, name: store.local_path(name)}
    with pytest.raises(Corrupt, match="is a link"):
        calls[call](linked, name)
    assert (tmp_path / "outside").read_bytes() == b"of no lake"
    assert [info.name for info in linked.list("good")] == ["good/data/1"]


def test_a_listing_names_a_folder_that_is_a_link_and_passes_over_other_links(
    linked: LocalStore, tmp_path: Path
) -> None:
    for prefix in ("", "evil", "evil/data"):
        with pytest.raises(Corrupt, match="evil/data: is a link"):
            list(linked.list(prefix))
    (tmp_path / "lake/evil/data").unlink()
    assert [info.name for info in linked.list("")] == ["evil/journal/1", "good/data/1"]


@pytest.mark.parametrize("call", ASKED)
@pytest.mark.parametrize("name", ["evil/data/1", "evil/data/new", "evil/lone"])
def test_a_link_that_is_put_there_after_the_look_is_not_followed(
    linked: LocalStore, call: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The link is put there between the look at the path and its use."""
    before = contents(tmp_path)
    monkeypatch.setattr(LocalStore, "path", lambda store, name: f"{tmp_path}/lake/{name}")
    with contextlib.suppress(LakeError, FileNotFoundError):
        assert ASKED[call](linked, name) in (None, [], Created.EXISTS)
    assert contents(tmp_path) == before


def contents(folder: Path) -> dict[Path, bytes]:
    """What is in the files that are reached through no link below `evil`, by path."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in files if not (path.is_symlink() or "evil" in path.parts)}


def pipe(path: Path) -> None:
    os.mkfifo(path)


def socket_at(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


@pytest.mark.parametrize("make", [pipe, socket_at])
@pytest.mark.parametrize("call", ["get", "open_input", "local_path", "create", "put", "open_output"])
def test_what_is_no_file_is_no_object_and_keeps_no_reader_waiting(
    tmp_path: Path, make: Callable[[Path], None], call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    store = LocalStore(tmp_path / "lake")
    store.put("p/data/1", b"x")
    make(Path("lake/p/data/2"))
    calls = {**ASKED, "local_path": lambda store, name: store.local_path(name)}
    with pytest.raises(Corrupt, match="lake/p/data/2: is no file"):
        calls[call](store, "p/data/2")
    assert [info.name for info in store.list("p")] == ["p/data/1"]


def test_a_file_with_holes_does_not_take_the_memory_of_its_reader(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.put("p/HEAD", b"1")
    os.truncate(tmp_path / "p/HEAD", 1 << 40)
    with pytest.raises(Corrupt, match="p/HEAD: 1,099,511,627,776 bytes"):
        store.get("p/HEAD")


def test_a_lake_whose_root_is_a_link_is_a_lake(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk", target_is_directory=True)
    pool = Lake.create(f"{tmp_path}/link").create_pool("p", key="k")
    pool.branch().append(pa.table({"k": [1]}))
    assert Lake.open(f"{tmp_path}/disk").pool("p").at().to_table()["k"].to_pylist() == [1]
    assert Lake.open(f"{tmp_path}/link/").pool("p").at().to_table()["k"].to_pylist() == [1]


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600), (0o002, 0o664)])
def test_files_and_folders_have_the_rights_that_the_umask_leaves(
    mask: int, mode: int, tmp_path: Path
) -> None:
    before = os.umask(mask)
    try:
        store = LocalStore(tmp_path / "lake")
        store.create("j/1", b"x")
        store.put("j/2", b"x")
        store.put("j/3", b"x", durable=True)
        written(store, "j/4")
    finally:
        os.umask(before)
    assert {p.stat().st_mode & 0o777 for p in tmp_path.rglob("*") if p.is_file()} == {mode}
    assert {p.stat().st_mode & 0o777 for p in tmp_path.rglob("*") if p.is_dir()} == {0o777 & ~mask}
