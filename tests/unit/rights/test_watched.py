"""A changed thing of one pool leads nobody to a file outside of that pool's folder: the system watches, by strace.

`LAKE_TEST_WATCHED` says how many changes of each kind (1); `LAKE_TEST_STRACE=1` installs strace if it is missing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.servers.daemons import programs
from tests.support.watched_work import BEGIN, CANARY, END, LAKE

COUNT = int(os.environ.get("LAKE_TEST_WATCHED", "1"))
ROOT = Path(__file__).parents[3]

_CALL = re.compile(r"(?:\[pid +)?(?P<pid>\d+)\]? +(?P<name>\w+)\((?P<arguments>.*)")
_PATH = re.compile(r'(?:(?:AT_FDCWD|\d+)<(?P<folder>[^>]*)>, )?"(?P<path>(?:[^"\\]|\\.)*)"')

_OPENED = re.compile(r" = (?P<handle>\d+)<(?P<path>/[^>]*)>$")
_BY_HANDLE = re.compile(r"/proc/self/fd/(?P<handle>\d+)(?P<rest>/.*)?")

CHANGES = (
    "unlink",
    "rename",
    "mkdir",
    "rmdir",
    "link",
    "symlink",
    "chmod",
    "chown",
    "truncate",
    "mknod",
    "utime",
)
"""Calls, with or without `at` behind, that change what they name."""


class Touch(NamedTuple):
    """A file that the process asked the system for."""

    call: str
    path: str
    changes: bool


def strace() -> str:
    if os.environ.get("LAKE_TEST_STRACE"):
        return programs(["strace"], packages=["strace"])["strace"]
    found = shutil.which("strace")
    if found is None:
        pytest.skip("strace is not installed; LAKE_TEST_STRACE=1 installs it, as root")
    return found


def touches(trace: str, folder: str) -> Iterator[Touch]:
    """Each file that the trace names, by its absolute path; the process begins in `folder`.

    A local store reaches folders by their handles (`/proc/self/fd/4/name`): a handle stands for the file that it
    was opened for.
    """
    handles: dict[str, str] = {}
    for line in trace.splitlines():
        opened = _OPENED.search(line)
        if opened is not None:
            handles[opened["handle"]] = opened["path"]
        call = _CALL.match(line)
        if call is None:
            continue
        name, arguments = call["name"], call["arguments"]
        is_change = name.startswith(CHANGES) or "O_WRONLY" in arguments or "O_RDWR" in arguments
        for number, found in enumerate(_PATH.finditer(arguments)):
            path = found["path"].encode().decode("unicode_escape")
            full = os.path.normpath(os.path.join(found["folder"] or folder, path))
            if (by_handle := _BY_HANDLE.fullmatch(full)) is not None:
                full = handles[by_handle["handle"]] + (by_handle["rest"] or "")
            is_source = name.startswith(("link", "symlink")) and number == 0
            yield Touch(name, full, is_change and not is_source)
            if name == "chdir":
                folder = full


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Touch]]:
    """The folder of the lake, and what a process that works on its changed pool touched."""
    program, folder = strace(), tmp_path_factory.mktemp("watched")
    (folder / "tmp").mkdir()
    written = folder / "trace"
    watched = [
        program,
        "-f",
        "--seccomp-bpf",
        "-y",
        "-qq",
        "-s",
        "4096",
        "-e",
        "trace=%file",
        "-o",
        str(written),
    ]
    if subprocess.run([*watched, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this process may trace no other")
    work = [sys.executable, "-B", "-m", "tests.support.watched_work", str(folder), str(COUNT)]
    environment = {
        **os.environ,
        "TMPDIR": str(folder / "tmp"),
        "PYTHONPATH": str(ROOT),
        "LAKE_AUTHOR": "me",  # otherwise the system is asked who runs the process
    }
    done = subprocess.run(
        [*watched, *work], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return folder, list(touches(written.read_text(errors="replace"), str(ROOT)))


def parts(touched: list[Touch]) -> tuple[list[Touch], list[Touch]]:
    """What was touched between the marks, and after them."""
    marks = [next(at for at, one in enumerate(touched) if one.path == mark) for mark in (BEGIN, END)]
    return touched[marks[0] + 1 : marks[1]], touched[marks[1] + 1 :]


def strays(folder: Path, touched: list[Touch]) -> list[Touch]:
    """What lies neither below the changed pool's folder, nor among the lake's own things, nor with the program."""
    lake = folder / LAKE
    ids = {path.name for path in lake.iterdir() if len(path.name) == 27}
    (changed,) = (id for id in ids if (lake / id / "plans").exists())
    own = (
        f"{lake}/{changed}",
        *(f"{lake}/{name}" for name in ("lake.json", "pools", "activity", "quiet", "packs")),
    )
    program = (
        *sysconfig.get_paths().values(),
        sys.prefix,
        sys.base_prefix,
        str(ROOT),
        "/proc",
        "/sys",
    )
    libraries = (
        "/lib",
        "/usr/lib",
        "/usr/share/zoneinfo",
        "/etc/localtime",
        "/etc/ld.so.cache",
        "/dev/null",
        "/dev/urandom",
    )

    def is_below(path: str, folders: tuple[str, ...]) -> bool:
        return any(path == folder or path.startswith(f"{folder}/") for folder in folders)

    def may(touch: Touch) -> bool:
        if is_below(touch.path, (*own, str(folder / "tmp"))) or touch.path == f"{lake}/pools-begun":
            return True
        if f"{lake}/".startswith(f"{touch.path}/") and not touch.changes:  # a folder on the way to the lake
            return True
        return not touch.changes and is_below(touch.path, (*program, *libraries))

    return [touch for touch in touched if not may(touch)]


def test_who_works_on_a_changed_pool_touches_no_file_outside_of_it(trace: tuple[Path, list[Touch]]) -> None:
    folder, touched = trace
    watched, _ = parts(touched)
    assert sum(f"/{LAKE}/" in one.path for one in watched) > 1_000, "the pool was worked on"
    assert strays(folder, watched) == []


def test_the_watch_sees_what_leads_elsewhere(trace: tuple[Path, list[Touch]]) -> None:
    folder, touched = trace
    seen = {(one.path, one.changes) for one in strays(folder, parts(touched)[1])}
    canary = folder / CANARY
    assert (f"{canary}/0.parquet", False) in seen
    assert {(f"{canary}/{number}.parquet", True) for number in (1, 2, 3)} <= seen
    assert ("/etc/hostname", False) in seen
