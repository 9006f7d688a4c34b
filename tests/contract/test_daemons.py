"""What a test run hears where a server cannot be had, and what is left of one that was."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support.servers.daemons import daemon, programs


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that is the whole path of a machine without anything, where we are root."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_a_program_that_is_there_is_not_installed(bare_machine: Path) -> None:
    script(bare_machine / "no-such-server", "")
    script(bare_machine / "apt-get", f"touch {bare_machine}/asked")
    found = programs(["no-such-server"], packages=["server"])
    assert found == {"no-such-server": f"{bare_machine}/no-such-server"}
    assert not (bare_machine / "asked").exists()


def test_a_program_that_is_missing_is_installed(bare_machine: Path) -> None:
    script(
        bare_machine / "apt-get",
        f'case "$*" in *download-only*) ;; *install*server*) : >{bare_machine}/no-such-server;'
        f" /bin/chmod +x {bare_machine}/no-such-server;; esac",
    )
    assert list(programs(["no-such-server"], packages=["server"])) == ["no-such-server"]


def test_what_cannot_be_installed_is_a_skip_that_says_why(bare_machine: Path) -> None:
    script(bare_machine / "apt-get", "echo 'E: Unable to locate package server' >&2; exit 100")
    with pytest.raises(
        pytest.skip.Exception, match=r"no no-such-server here.*Unable to locate package server"
    ):
        programs(["no-such-server"], packages=["server"])


def test_who_is_not_root_is_told_what_to_install(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(pytest.skip.Exception, match="only root can apt-get install server"):
        programs(["no-such-server"], packages=["server"])


def test_a_server_that_ends_before_it_is_ready_is_an_error_with_its_log(tmp_path: Path) -> None:
    command = (sys.executable, "-c", "raise SystemExit('no disk')")
    with (
        pytest.raises(RuntimeError, match="ended with 1: no disk"),
        daemon(*command, log=tmp_path / "log", ready=lambda: False),
    ):
        pass


def test_a_server_that_cannot_be_waited_for_is_ended(tmp_path: Path) -> None:
    pid = tmp_path / "pid"

    def give_up_once_it_runs() -> bool:
        if pid.exists():
            raise TimeoutError
        return False

    with (
        pytest.raises(TimeoutError),
        daemon(
            "sh",
            "-c",
            f"echo $$ >{pid}.new; mv {pid}.new {pid}; exec sleep 99",
            log=tmp_path / "log",
            ready=give_up_once_it_runs,
        ),
    ):
        pass
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
