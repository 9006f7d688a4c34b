"""A command as `lake` lists it: its texts and arguments, and the name of the function that runs it."""

from __future__ import annotations

import enum
import importlib
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass


class Writes(enum.Enum):
    """Whether a command changes something in the lake, and when.  Other commands work where a process may
    only read."""

    NEVER = "never"
    UNLESS_DRY_RUN = "unless --dry-run is given"
    BY_ARGUMENTS = "as its arguments say"
    ALWAYS = "always"


def _no_arguments(_: ArgumentParser) -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class Command:
    """One command of `lake`: its name, its texts and its arguments.

    `run`: the function of this package that carries it out, `module.function`.  Its module loads an engine, so
    it is imported when the command runs, and `lake --help` answers at once.  `arguments` declares what the
    command takes beside the options of every command.  `keeps_metadata`: it commits transactions to a pool, so
    it has `--meta`.
    """

    name: str
    help: str
    run: str
    writes: Writes
    arguments: Callable[[ArgumentParser], None] = _no_arguments
    keeps_metadata: bool = False

    def function(self) -> Callable[[Namespace], int | None]:
        """Returns the function that carries the command out; what it returns is the exit status, None: 0."""
        module, _, function = self.run.partition(".")
        run: Callable[[Namespace], int | None] = getattr(
            importlib.import_module(f"log_lake.cli.{module}"), function
        )
        return run
