"""A folder on a file system that makes no hard links, such as FAT or some file servers."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import NoCreate
from lake_core.store import Created
from log_lake.cli.main import main
from log_lake.lake import Lake
from log_lake.stores import open_store
from log_lake.stores.local import LocalStore

ERRORS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EMLINK, errno.EXDEV)


@pytest.fixture(params=ERRORS, ids=lambda code: errno.errorcode[code])
def _no_links(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """`link` fails as such file systems have it fail."""

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(os, "link", refuse)


@pytest.fixture
def _no_nameless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such file systems have no files without names either."""
    real = os.open

    def refuse(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "not supported")
        return real(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", refuse)


@pytest.mark.usefixtures("_no_links")
@pytest.mark.parametrize("there", [False, True], ids=["a new folder", "a folder that was there"])
def test_a_lake_is_refused_in_one_line_and_nothing_is_left(
    there: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if there:
        (tmp_path / "deep").mkdir()
    assert main(["--lake", f"{tmp_path}/deep/lake", "init"]) == 9
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert f"{tmp_path}/deep/lake: this file system makes no hard links" in said.err
    assert "LAKE_LOCK" in said.err
    assert [p.name for p in tmp_path.rglob("*")] == (["deep"] if there else [])


@pytest.mark.usefixtures("_no_links", "_no_nameless")
def test_with_a_lock_such_a_folder_holds_a_lake(tmp_path: Path) -> None:
    options = {"lock": f"file://{tmp_path}/locks"}
    pool = Lake.create(f"{tmp_path}/lake", options=options).create_pool("p", key="k")
    for number in range(3):
        pool.branch().append(pa.table({"k": [number]}))
    assert Lake.open(f"{tmp_path}/lake", options=options).pool("p").at().to_table()["k"].to_pylist() == [
        0,
        1,
        2,
    ]
    store = open_store(f"{tmp_path}/lake", options)
    assert store.create("a", b"x") is Created.YES
    assert store.create("a", b"y") is Created.EXISTS
    assert store.get("a") == b"x"
    assert not [p for p in tmp_path.rglob("*") if p.name.startswith(".tmp-")]


@pytest.mark.usefixtures("_no_links", "_no_nameless")
def test_without_a_lock_nothing_is_created_and_no_answer_is_unknown(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "lake")
    store.put("j/0", b"x")
    with pytest.raises(NoCreate, match="no hard links"):
        store.create("j/1", b"x")
    assert [info.name for info in store.list("")] == ["j/0"]
