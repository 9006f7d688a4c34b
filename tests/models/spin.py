"""Runs Spin on a model: every reachable state of a scene, with no rule broken or with one.

Spin writes a checker in C for a model, and a C compiler builds it.  The scene and the broken rule come by the
environment, so each model is compiled once.  Callers: `test_models`, `__main__`.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.models.table import MODELS, Scene

FOLDER = Path(__file__).parent
FLAGS = ("-O1", "-w", "-DSAFETY", "-DNOFAIR", "-DMEMLIM=4000")
"""Of the compiler: assertions and ends, no liveness; at most 4,000 MB."""
DEPTH = 100_000
"""Steps of one run, at most; Spin says so if a model needs more."""
BITS = 21
"""Of the first table of states, which grows."""
SECONDS = 1800.0
"""Of one run, before it counts as hanging: a bound, no measure."""

_RULE = re.compile(r"^#define (\w+) +(\d+) +/\* (.*?) \*/$", re.MULTILINE)
_ERRORS = re.compile(r"errors: (\d+)")
_STATES = re.compile(r"(\d+) states, stored")
_BROKEN = re.compile(r"^pan:\d+: (.*) \(at depth \d+\)$", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """What Spin said of a scene: how many states there are, and what was violated, "" if nothing."""

    states: int
    violated: str


@dataclass(frozen=True)
class Checker:
    """The compiled checker of a model."""

    model: str
    program: Path

    def run(self, scene: Scene, *, broken: str = "") -> Outcome:
        """The outcome of a scene, with the rule of this name broken; "": none.

        Raises AssertionError if Spin did not finish.
        """
        number = rules(self.model)[broken][0] if broken else 0
        done = subprocess.run(
            [self.program, "-n", f"-m{DEPTH}", f"-w{BITS}"],
            cwd=self.program.parent,
            env={**dict(word.split("=") for word in scene.split()), "MUTANT": str(number)},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        errors, states = _ERRORS.search(done.stdout), _STATES.search(done.stdout)
        violated = _BROKEN.search(done.stdout)
        said = f"{self.model} {scene}: {done.stdout}{done.stderr}"
        assert errors, said
        assert states, said
        assert "max search depth too small" not in done.stdout, said
        assert bool(violated) == (errors[1] != "0"), said
        return Outcome(int(states[1]), violated[1] if violated else "")


def compiled(model: str, folder: Path, *, spin: str, cc: str) -> Checker:
    """The checker of a model, compiled in a folder.  Raises CalledProcessError."""
    subprocess.run([spin, "-a", FOLDER / f"{model}.pml"], cwd=folder, check=True, capture_output=True)
    subprocess.run([cc, *FLAGS, "-o", "pan", "pan.c"], cwd=folder, check=True, capture_output=True)
    return Checker(model, folder / "pan")


def text(model: str) -> str:
    """The model as it is written."""
    assert model in MODELS
    return (FOLDER / f"{model}.pml").read_text()


def rules(model: str) -> dict[str, tuple[int, str]]:
    """The rules that a model can break, by name: the number, and how it is broken."""
    head = text(model).partition("byte mutant;")[2].partition("\n\n")[0]
    return {name: (int(number), how) for name, number, how in _RULE.findall(head)}
