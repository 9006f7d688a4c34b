"""Runs programs of several releases on one lake, each as a process of its own, with a list of commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parents[2]
_BATCH = """
import contextlib, importlib, io, json, sys
main = importlib.import_module(sys.argv[1]).main
answers = []
for command in json.load(sys.stdin):
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(command)
        except SystemExit as ended:
            status = ended.code
    answers.append([status, *(text.buffer.getvalue().decode() for text in (out, err))])
sys.__stdout__.write(json.dumps(answers))
"""


class Answer(NamedTuple):
    """The answer to one command."""

    status: int
    out: str
    err: str


@dataclass(frozen=True)
class Program:
    """A release: the folder of its source, and the module of its command."""

    folder: Path
    module: str

    def run(self, lake: Path, *commands: str) -> list[Answer]:
        """Runs the commands in one process, and returns their answers. Blanks separate the words of a
        command."""
        environment = {**os.environ, "LAKE": str(lake), "PYTHONPATH": str(self.folder)}
        batch = json.dumps([command.split() for command in commands])
        done = subprocess.run(
            [sys.executable, "-c", _BATCH, self.module],
            input=batch,
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return [Answer(*answer) for answer in json.loads(done.stdout)]

    def do(self, lake: Path, *commands: str) -> list[str]:
        """Runs commands that must all succeed. Returns what they print."""
        answers = self.run(lake, *commands)
        for command, answer in zip(commands, answers, strict=True):
            assert answer.status == 0, f"{self.folder.name}: {command}: {answer}"
        return [answer.out for answer in answers]


THIS = Program(HERE, "log_lake.cli.main")


def release(commit: str, module: str, *, into: Path) -> Program | None:
    """Takes the program of a commit from git's history into a folder; None if the history is not on this
    machine."""
    archive = subprocess.run(["git", "archive", commit], cwd=HERE, capture_output=True, check=False)
    if archive.returncode:
        return None
    subprocess.run(["tar", "-x", "-C", str(into)], input=archive.stdout, check=True)
    return Program(into, module)
