"""Programs installed apart from the project's own: what benchmarks and tests set beside the lake.

A file of requirements pins packages; a copy of it, the stamp, says that they are there.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.support.repository import ROOT


def named_or_installed(named: str, install: Callable[[], Path]) -> Path:
    """What a variable of the environment names, or what `install` installs if it says 1; skips if that fails."""
    if named != "1":
        return Path(named).absolute()
    try:
        return install()
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"cannot be installed: {error}")


def install_target(requirements: str, folder: Path, *, needs: bool = True) -> None:
    """What a file of the repository pins, once, in a folder for `sys.path` of the project's own Python.

    Without `needs`, only what the file names: the project's environment has the rest.
    """
    step = ["pip", "install", "--target", str(folder), "--python", sys.executable]
    _install(requirements, folder, [[*step, *([] if needs else ["--no-deps"])]])


def install_python(requirements: str, folder: Path) -> Path:
    """The Python of an environment that holds what a file of the repository pins, and nothing of the project's."""
    python = folder / "bin" / "python"
    # the project's own settings pin PySpark
    steps = [["venv", "--clear", "--python", sys.executable, str(folder)]]
    steps += [["pip", "install", "--no-config", "--python", str(python)]]
    _install(requirements, folder, steps)
    return python


def _install(requirements: str, folder: Path, steps: Sequence[Sequence[str]]) -> None:
    """Runs the steps of uv; the last one is told the file."""
    stamp, pinned = folder / "stamp", (ROOT / requirements).read_text()
    if stamp.exists() and stamp.read_text() == pinned:
        return
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.exists() else "uv"
    for step in [*steps[:-1], [*steps[-1], "-r", requirements]]:
        subprocess.run([uv, *step, "--quiet"], check=True, cwd=ROOT)
    stamp.write_text(pinned)
