"""Installs programs apart from the project's own packages, which benchmarks and tests compare with the lake.

A file of requirements pins the packages. A copy of that file in the folder shows that they are installed.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.support.repository import ROOT


def named_or_installed(named: str, install: Callable[[], Path]) -> Path:
    """Returns the path that an environment variable gives. If the variable is 1, `install` installs the program;
    skips the test if that fails."""
    if named != "1":
        return Path(named).absolute()
    try:
        return install()
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"cannot be installed: {error}")


def install_target(requirements: str, folder: Path, *, needs: bool = True) -> None:
    """Installs what a file of the repository pins, once, in a folder for `sys.path` of the project's own Python.

    Without `needs`, installs only the packages that the file names: the project's environment has the others.
    """
    step = ["pip", "install", "--target", str(folder), "--python", sys.executable]
    _install(requirements, folder, [[*step, *([] if needs else ["--no-deps"])]])


def install_python(requirements: str, folder: Path) -> Path:
    """Returns the Python of an environment that has only what a file of the repository pins, and nothing of the
    project."""
    python = folder / "bin" / "python"
    # the project's own settings pin PySpark
    steps = [["venv", "--clear", "--python", sys.executable, str(folder)]]
    steps += [["pip", "install", "--no-config", "--python", str(python)]]
    _install(requirements, folder, steps)
    return python


def uv() -> str:
    """Returns the uv of the project's environment, otherwise that of the machine."""
    beside = Path(sys.executable).with_name("uv")
    return str(beside) if beside.exists() else "uv"


def _install(requirements: str, folder: Path, steps: Sequence[Sequence[str]]) -> None:
    """Runs the steps of uv; the last one gets the file of requirements as an argument."""
    stamp, pinned = folder / "stamp", (ROOT / requirements).read_text()
    if stamp.exists() and stamp.read_text() == pinned:
        return
    for step in [*steps[:-1], [*steps[-1], "-r", requirements]]:
        subprocess.run([uv(), *step, "--quiet"], check=True, cwd=ROOT)
    stamp.write_text(pinned)
