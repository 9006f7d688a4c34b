"""local/env.sh: makes .venv once; called again it does nothing, told by its stamp.

What it would install takes minutes, so `uv` is a stand-in here that notes what it is asked for.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.repository import ROOT

UV = """#!/bin/sh
[ "$1" = --version ] && { echo "uv 0"; exit 0; }
echo "$*" >>"$UV_CALLS"
echo "${UV_DEFAULT_INDEX:-} ${UV_INDEX:-}" >>"$UV_CALLS.index"
sleep "${UV_SECONDS:-0}"
if [ "$1" = venv ]; then
    mkdir -p .venv/bin && touch .venv/pyvenv.cfg && ln -s "$PYTHON" .venv/bin/python
    exit
fi
[ -z "${UV_FAILS:-}" ] || { echo "no registry" >&2; exit 2; }
"""
MADE, COMPLETED = ["venv", "pip", "pip"], ["pip", "pip"]
"""The commands of uv that make an environment, and that complete one."""


@dataclass(frozen=True)
class Project:
    """A project of nothing but what env.sh reads."""

    folder: Path

    @property
    def calls(self) -> list[str]:
        """What uv was asked for so far."""
        path = self.folder.parent / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def env(self, **environ: str) -> subprocess.CompletedProcess[str]:
        """Runs env.sh as make does."""
        return subprocess.run(
            ["sh", "local/env.sh"],
            cwd=self.folder,
            env={
                "PATH": f"{self.folder.parent / 'bin'}{os.pathsep}{os.environ['PATH']}",
                "PYTHON": sys.executable,
                "UV_CALLS": str(self.folder.parent / "calls"),
                **environ,
            },
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def made(self) -> dict[str, int]:
        """All of .venv, by the time of its last change."""
        return {str(path): path.lstat().st_mtime_ns for path in (self.folder / ".venv").rglob("*")}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    folder = tmp_path / "project"
    (folder / "local").mkdir(parents=True)
    for name in ("requirements.txt", "pyproject.toml", "local/env.sh"):
        shutil.copy(ROOT / name, folder / name)
    (tmp_path / "bin").mkdir()
    uv = tmp_path / "bin" / "uv"
    uv.write_text(UV)
    uv.chmod(0o755)
    return Project(folder)


def test_the_first_call_makes_it_and_the_second_does_nothing(project: Project) -> None:
    first = project.env()
    assert (first.returncode, first.stdout) == (0, ""), first.stderr
    made, calls = project.made(), project.calls
    assert [call.split()[0] for call in calls] == MADE
    assert calls[1].endswith(" -r requirements.txt")
    assert "--no-deps --no-build-isolation" in calls[2]
    assert calls[2].endswith(" --editable .")
    second = project.env()
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    assert (project.calls, project.made()) == (calls, made)


@pytest.mark.parametrize("name", ["requirements.txt", "pyproject.toml", "local/env.sh"])
def test_what_it_is_made_of_having_changed_it_is_completed_not_made_again(
    project: Project, name: str
) -> None:
    project.env()
    with (project.folder / name).open("a") as file:
        file.write("\n# changed\n")
    assert project.env().returncode == 0
    assert [call.split()[0] for call in project.calls] == [*MADE, *COMPLETED]
    project.env()
    assert len(project.calls) == len(MADE) + len(COMPLETED)


@pytest.mark.skipif(shutil.which("flock") is None, reason="without flock(1) nobody waits")
def test_of_two_calls_at_once_the_second_waits_and_finds_it_made(project: Project) -> None:
    with ThreadPoolExecutor() as threads:
        both = [threads.submit(project.env, UV_SECONDS="2") for _ in range(2)]
        done = [one.result() for one in both]
    assert [one.returncode for one in done] == [0, 0]
    assert [call.split()[0] for call in project.calls] == MADE
    assert sorted(one.stderr.count("waiting for it") for one in done) == [0, 1]


def test_an_installation_that_failed_says_so_and_is_done_again(project: Project) -> None:
    project.env()
    (project.folder / "requirements.txt").write_text("a==1\n")
    failed = project.env(UV_FAILS="1")
    assert failed.returncode == 1
    assert "env: the packages of requirements.txt could not be installed" in failed.stderr
    assert project.env().returncode == 0
    assert [call.split()[0] for call in project.calls] == [*MADE, "pip", *COMPLETED]


def test_env_says_what_takes_long_also_when_it_goes_on_with_a_half_made_environment(project: Project) -> None:
    interrupted = project.env(UV_FAILS="1")
    assert interrupted.returncode == 1
    first, resumed = interrupted.stderr.splitlines(), project.env().stderr.splitlines()
    assert first[0].startswith("env: making .venv for Python 3.")
    for said in (first[1], resumed[0]):
        assert said.startswith("env: installing the packages of requirements.txt into .venv (about ")
    assert resumed[-1].startswith("env: done, in ")


@pytest.mark.parametrize(
    ("environ", "index"),
    [
        ({}, " "),
        ({"PIP_INDEX_URL": "https://mirror/simple"}, "https://mirror/simple "),
        ({"PIP_EXTRA_INDEX_URL": "https://more/simple"}, " https://more/simple"),
        (
            {"PIP_INDEX_URL": "https://mirror/simple", "UV_DEFAULT_INDEX": "https://own/simple"},
            "https://own/simple ",
        ),
    ],
)
def test_pips_registry_is_asked_unless_uv_has_one_of_its_own(
    project: Project, environ: dict[str, str], index: str
) -> None:
    project.env(**environ)
    said = (project.folder.parent / "calls.index").read_text().splitlines()
    assert said[1:] == [index] * 2


def test_a_project_that_was_moved_gets_an_environment_of_its_own(project: Project) -> None:
    project.env()
    moved = Project(project.folder.rename(project.folder.with_name("moved")))
    assert moved.env().returncode == 0
    assert [call.split()[0] for call in moved.calls] == MADE * 2


def test_something_else_called_venv_is_left_alone(project: Project) -> None:
    (project.folder / ".venv").mkdir()
    (project.folder / ".venv" / "precious").touch()
    done = project.env()
    assert done.returncode == 1
    assert "env: .venv is in the way" in done.stderr
    assert (project.folder / ".venv" / "precious").exists()


def test_without_venv_one_line_says_what_to_install(project: Project) -> None:
    (project.folder.parent / "bin" / "uv").write_text("#!/bin/sh\nexit 127\n")
    bare = project.folder.parent / "bin" / "bare"
    bare.write_text(
        f"""#!/bin/sh
case "$*" in
*sys.executable*) echo "$0" ;;
"-m venv .venv") mkdir .venv; echo "not created successfully because ensurepip is not"; echo "available."; exit 1 ;;
*) exec {sys.executable} "$@" ;;
esac
"""
    )
    bare.chmod(0o755)
    done = project.env(PYTHON=str(bare))
    assert done.returncode == 1
    assert done.stderr.splitlines()[1:] == [
        f"env: {bare} cannot make an environment: "
        "install the package python3-venv (apt install python3-venv), or uv"
    ]
    assert not (project.folder / ".venv").exists()


def test_without_a_python_that_is_new_enough_one_line_says_what_to_install(project: Project) -> None:
    old = project.folder.parent / "bin" / "old"
    old.write_text('#!/bin/sh\n[ "$1" = -V ] && echo Python 3.9.2 && exit 0\nexit 1\n')
    old.chmod(0o755)
    done = project.env(PYTHON=str(old))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "Python 3.11 or newer is needed, and here is Python 3.9.2: install" in done.stderr
    assert project.calls == []
