"""Builds the wheel, and makes environments that have nothing but the wheel, for its tests.

The packages that the wheel requires, and those that they require in turn, are linked from the environment of
the tests, each checked against the required version. So the environment has what `pip install 'log-lake[...]'`
installs, in the versions of uv.lock, and no registry is asked.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


@dataclass(frozen=True)
class Built:
    """A wheel and a source distribution of the project."""

    wheel: Path
    sdist: Path

    @property
    def metadata(self) -> Message:
        """The wheel's METADATA."""
        with zipfile.ZipFile(self.wheel) as files:
            name = next(name for name in files.namelist() if name.endswith(".dist-info/METADATA"))
            return Parser().parsestr(files.read(name).decode())


@dataclass(frozen=True)
class Environment:
    """A Python environment, and a folder to work in."""

    python: Path
    folder: Path

    def run(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Runs `python WORDS`. Of the tests' own environment it gets only PATH."""
        return subprocess.run(
            [str(self.python), *words],
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder), **environ},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def lake(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Runs the installed command `lake`."""
        return self.run(str(self.python.with_name("lake")), *words, **environ)


def build(source: Path, folder: Path) -> Built:
    """Builds the wheel and the source distribution of a project's folder into `folder`."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, timeout=600)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return Built(wheel, sdist)


def contents(wheel: Path) -> dict[str, bytes]:
    """The bytes of a wheel's files by name."""
    with zipfile.ZipFile(wheel) as files:
        return {name: files.read(name) for name in files.namelist()}


def required(metadata: Message, extras: Iterable[str]) -> set[str]:
    """Returns the names of all packages that the metadata requires with these extras, and that these packages
    require.

    Fails if one of them is not installed here in a version that is required.
    """
    names: set[str] = set()
    seen: set[tuple[str, tuple[str, ...]]] = set()
    waiting = _wanted(metadata, extras)
    while waiting:  # bounded by the packages installed here, times their extras
        requirement = waiting.pop()
        asked = str(canonicalize_name(requirement.name)), tuple(sorted(requirement.extras))
        found = distribution(requirement.name)
        assert found.version in requirement.specifier, f"{requirement}: {found.version} is installed"
        names.add(canonicalize_name(requirement.name))
        if asked not in seen:
            seen.add(asked)
            waiting += _wanted(found.metadata, requirement.extras)
    return names


def _wanted(metadata: Message | Mapping[str, str], extras: Iterable[str]) -> list[Requirement]:
    wanted = [Requirement(text) for text in metadata.get_all("Requires-Dist") or []]  # type: ignore[union-attr]
    return [
        one
        for one in wanted
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in ("", *extras))
    ]


def install(built: Built, extras: Iterable[str], folder: Path) -> Environment:
    """Makes a new environment that has the wheel and the packages that it requires with these extras."""
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    (packages,) = (folder / "lib").glob("python*/site-packages")
    for name in required(built.metadata, extras):
        found = distribution(name)
        for file in found.files or []:
            if ".." not in file.parts and "__pycache__" not in file.parts:
                link = packages / file
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(file.locate())  # type: ignore[arg-type]
    uv = [str(Path(sys.executable).with_name("uv")), "pip"]
    for words in (["install", "--offline", "--no-deps", str(built.wheel)], ["check"]):
        done = subprocess.run(
            [*uv, *words, "--python", str(python)], capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == 0, done.stderr
    return Environment(python, folder)
