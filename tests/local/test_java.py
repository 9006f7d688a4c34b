"""Which Java Spark runs on: the machine's where it is new enough, JAVA_HOME before PATH."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from local import java


def said(version: str, home: str) -> str:
    return f"Property settings:\n    java.home = {home}\n    java.specification.version = {version}\n"


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (said("17", "/j"), (17, Path("/j"))),
        (said("1.8", "/o"), (8, Path("/o"))),
        ("no such thing", None),
        ("", None),
    ],
)
def test_a_java_says_how_old_it_is_and_where_it_lives(text: str, known: tuple[int, Path] | None) -> None:
    assert java.parse(text) == known


@pytest.mark.parametrize(
    ("at_home", "on_path", "chosen"),
    [
        ("21", "17", "JAVA_HOME"),
        ("11", "17", "PATH"),
        (None, "17", "PATH"),
        ("8", "11", None),
        (None, None, None),
    ],
)
def test_the_first_that_is_new_enough_is_taken(
    tmp_path: Path, at_home: str | None, on_path: str | None, chosen: str | None
) -> None:
    environ = {"PATH": str(tmp_path / "bin"), "JAVA_HOME": str(tmp_path)}
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    answers = [said(v, "/j") if v else "" for v in (at_home, on_path)]
    if on_path:
        program.touch(mode=0o755)
    found = java.find(environ, ask=lambda _: answers.pop(0))
    assert (found and found.source) == chosen


def test_the_stand_in_drops_the_option_that_its_java_does_not_know(tmp_path: Path) -> None:
    real = tmp_path / "real" / "bin" / "java"
    real.parent.mkdir(parents=True)
    real.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    real.chmod(0o755)
    home = java._stand_in(tmp_path / "real", tmp_path / "stand in")
    words = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "", "$x"]
    done = subprocess.run(
        [home / "bin" / "java", *words], capture_output=True, text=True, timeout=600, check=True
    )
    assert done.stdout == "-Xmx1g|a b||$x|"


def test_this_machine_has_one_or_gets_one() -> None:
    found = java.find(os.environ)
    if found is None:
        pytest.skip("no Java on this machine; the first use of Spark takes one from the registry")
    assert found.major >= java.OLDEST
    assert (found.home / "bin" / "java").exists()
