"""Keepers: a service is its whole tree of processes; all of it ends, and nothing else is touched."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from local import processes, record
from local.processes import ProcessIdentity, left_of
from local.record import Started
from tests.support.spark.processes import await_true

# A service with a child that has lost its parent and its session, and that listens to no polite signal.
SERVICE = """
import os, signal, subprocess, sys, time
orphan = "import os, signal, time; os.setsid(); signal.signal(signal.SIGTERM, signal.SIG_IGN); " \\
         "open(%r, 'w').write(str(os.getpid())); time.sleep(600)"
if os.fork() == 0:
    subprocess.Popen([sys.executable, "-c", orphan % sys.argv[1]])
    os._exit(0)
os.wait()
time.sleep(600)
"""
SECONDS = 600.0


def launch(
    folder: Path, command: list[str], *, detached: bool = True
) -> tuple[subprocess.Popen[bytes], ProcessIdentity]:
    return processes.launch(
        command,
        environ=os.environ,
        mark=str(folder),
        log=folder / "log",
        folder=Path.cwd(),
        detached=detached,
    )


@pytest.fixture
def service(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], ProcessIdentity, psutil.Process]]:
    """A service that runs, its keeper, and its orphan; ended at the end, whatever the test did."""
    child, keeper = launch(tmp_path, [sys.executable, "-c", SERVICE, str(tmp_path / "orphan")])
    name = tmp_path / "orphan"
    pid = await_true(
        lambda: name.exists() and name.read_text(), seconds=SECONDS, what="the orphan has started"
    )
    orphan = psutil.Process(int(pid))
    yield child, keeper, orphan
    for process in [orphan, *processes.survivors(keeper, mark=str(tmp_path))]:
        if process.is_running():
            process.kill()
    child.wait(timeout=SECONDS)


def is_gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


@pytest.mark.slow
def test_stopping_a_service_ends_all_of_it_orphans_included(
    service: tuple[subprocess.Popen[bytes], ProcessIdentity, psutil.Process], tmp_path: Path
) -> None:
    child, keeper, orphan = service
    below = psutil.Process(keeper.pid).children(recursive=True)
    assert orphan in below, "the keeper has adopted it"
    processes.stop(keeper, mark=str(tmp_path), child=child)
    assert not processes.is_alive(keeper)
    assert all(is_gone(process) for process in below)


@pytest.mark.slow
def test_what_a_killed_keeper_leaves_is_known_by_its_mark_and_ended(
    service: tuple[subprocess.Popen[bytes], ProcessIdentity, psutil.Process], tmp_path: Path
) -> None:
    child, keeper, orphan = service
    below = psutil.Process(keeper.pid).children(recursive=True)
    child.kill()
    child.wait(timeout=SECONDS)
    assert set(processes.survivors(keeper, mark=str(tmp_path))) == set(below)
    processes.stop(keeper, mark=str(tmp_path), child=child)
    assert all(is_gone(process) for process in [orphan, *below])


def test_a_keeper_whose_record_was_lost_is_found_by_its_mark(
    service: tuple[subprocess.Popen[bytes], ProcessIdentity, psutil.Process], tmp_path: Path
) -> None:
    assert processes.find(str(tmp_path)) == service[1]
    assert processes.find(str(tmp_path / "other")) is None


def test_a_service_that_is_not_detached_ends_with_whoever_started_it(tmp_path: Path) -> None:
    starter = """
import os, sys, time
from pathlib import Path
from tests.local.test_processes import launch
_, keeper = launch(Path(sys.argv[1]), ["sleep", "600"], detached=False)
print(keeper.pid, flush=True)
time.sleep(600)
"""
    with subprocess.Popen(
        [sys.executable, "-c", starter, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        keeper = processes.identify(int(process.stdout.readline()))
        assert keeper is not None
        await_true(
            lambda: psutil.Process(keeper.pid).children(), seconds=SECONDS, what="the keeper has begun"
        )
        process.send_signal(signal.SIGKILL)
    await_true(lambda: not processes.is_alive(keeper), seconds=SECONDS, what="the keeper has ended")
    assert processes.survivors(keeper, mark=str(tmp_path)) == []


@pytest.mark.parametrize(
    ("command", "status"), [(["true"], 0), (["sh", "-c", "exit 7"], 7), (["/no/such"], 127)]
)
def test_a_keeper_ends_with_its_commands_status(tmp_path: Path, command: list[str], status: int) -> None:
    child, _ = launch(tmp_path, command)
    try:
        assert child.wait(timeout=SECONDS) == status
    finally:
        child.kill()


ENDS_AT_ONCE = """
import os, subprocess, sys
from local import keeper

class Slow(subprocess.Popen):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and is still to be collected

keeper.subprocess.Popen = Slow
sys.exit(keeper.keep(["sh", "-c", "exit 7"], parent=None))
"""


def test_a_command_that_ends_before_the_keeper_looks_has_ended_all_the_same() -> None:
    done = subprocess.run([sys.executable, "-c", ENDS_AT_ONCE], timeout=SECONDS, check=False)
    assert done.returncode == 7


LISTENER = """
import socket, sys, time
with socket.create_server(("127.0.0.1", 0)) as server:
    open(sys.argv[1], "w").write(f"{server.getsockname()[1]}.")
    time.sleep(600)
"""


def test_a_port_is_answered_by_the_service_itself_or_by_a_stranger(tmp_path: Path) -> None:
    name = tmp_path / "port"
    child, keeper = launch(tmp_path, [sys.executable, "-c", LISTENER, str(name)])
    try:
        told = await_true(
            lambda: name.exists() and name.read_text().endswith(".") and name.read_text(),
            seconds=SECONDS,
            what="it listens",
        )
        assert processes.listens(keeper, int(told.rstrip(".")))
        with socket.create_server(("127.0.0.1", 0)) as stranger:
            assert not processes.listens(keeper, stranger.getsockname()[1])
    finally:
        processes.stop(keeper, mark=str(tmp_path), child=child)
    assert not processes.listens(keeper, int(told.rstrip(".")))


def test_another_process_of_the_same_number_is_not_ours() -> None:
    ours = processes.identify(os.getpid())
    assert ours is not None
    assert processes.is_alive(ours)
    for other in (
        ProcessIdentity(ours.pid, ours.started + 1, ours.boot),
        ProcessIdentity(ours.pid, ours.started, "another boot"),
        ProcessIdentity(2**22 + 1, ours.started, ours.boot),
    ):
        assert not processes.is_alive(other)


def test_a_record_comes_back_and_one_that_is_missing_or_damaged_is_none(tmp_path: Path) -> None:
    path = tmp_path / "spark.json"
    assert record.read(path) is None
    started = Started(
        service="spark",
        keeper=ProcessIdentity(1, 2, "boot"),
        mark="m",
        log="l",
        ports={"connect": 15002},
        lake="/lake",
        settings="s",
    )
    record.write(path, started)
    assert record.read(path) == started
    path.write_bytes(path.read_bytes()[:-5])
    assert record.read(path) is None


def test_a_process_that_ends_while_it_is_waited_for_is_waited_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A stand-in for the kernel: the moment in which it says "no such file" cannot be had at will."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    wait, answers = psutil.wait_procs, [FileNotFoundError(2, "No such file or directory")] * 3

    def ending(*args: Any, **more: Any) -> Any:
        if answers:
            raise answers.pop()
        return wait(*args, **more)

    monkeypatch.setattr(psutil, "wait_procs", ending)
    assert left_of([psutil.Process(child.pid)], seconds=600) == []
    assert child.wait() == 0
