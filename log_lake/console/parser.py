"""The command's parser: argparse without abbreviations, with one line for a mistake and the nearest name.

An abbreviation that works today (`--tok`) would no longer be clear once another option begins with the same
letters.  So options are written out, and for a mistyped one the error names the nearest.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from lake_core.errors import InvalidInput
from lake_core.phrases import did_you_mean, nearest, printable
from log_lake.console.sink import print_text

_REVISIONS = ("at", "into", "branch", "delete", "revision", "plan", "expires", "token")
"""Arguments that name something; an empty one is the value of a script's variable that is not set."""

_FILES = ("files", "output")
"""Arguments that may be any bytes, because file names may be; opening the file shows whether it can be loaded."""


def check_text(args: argparse.Namespace) -> None:
    """Raises InvalidInput for an argument that is not UTF-8, because names, keys and texts are stored as UTF-8.
    Raises it too for an empty name of a revision, a branch or a tag."""
    for name, value in vars(args).items():
        option = name.removeprefix("asked_")  # of lake-agent
        if option in _REVISIONS and value == "":
            raise InvalidInput(f"--{option} '': it is empty; name one, or leave it out")
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and name not in _FILES and not text.isascii():
                try:
                    text.encode()
                except UnicodeEncodeError as error:
                    raise InvalidInput(
                        f"argument {os.fsencode(text)!r} is not UTF-8; write it in UTF-8"
                    ) from error


Groups = Mapping[str, Sequence[tuple[str, str]]]
"""By heading, the commands of a help, each with what it does."""

_NAMES_WIDTH = 16
"""Letters of the longest name of a command and the gap behind it, in the help."""


def wants_json(words: Sequence[str]) -> bool:
    """Whether the command line has `--json`."""
    return "--json" in words[: words.index("--") if "--" in words else None]


def json_error(message: str, *, kind: str, status: int) -> str:
    """Returns an error for programs, as one line of JSON: what happened, its class, and the exit status."""
    return json.dumps({"error": message, "kind": kind, "status": status}) + "\n"


USAGE = 2
"""Exit status of a wrong command line."""


class Parser(argparse.ArgumentParser):
    """A parser, and the parser of each of its commands."""

    def __init__(self, *args: Any, groups: Groups = {}, **kwargs: Any) -> None:  # noqa: B006 - never changed
        super().__init__(*args, **(kwargs | {"allow_abbrev": False}))
        self._words: tuple[str, ...] = ()
        self._groups = groups

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse does, and refuse unknown words here, where the command's own options are known."""
        self._words = tuple(sys.argv[1:] if args is None else args)
        parsed, unknown = super().parse_known_args(self._words, namespace)
        if unknown:
            self.error(f"unknown argument {unknown[0]!r}")
        return parsed, []

    def format_help(self) -> str:
        """Returns the help; behind it the commands by group, if the parser has groups."""
        parts = [super().format_help()]
        for heading, commands in self._groups.items():
            lines = [f"  {line}" for name, text in commands for line in _listed(name, text)]
            parts.append("\n".join([f"{heading}:", *lines]) + "\n")
        return "\n".join(parts)

    def print_help(self, file: Any = None) -> None:
        """Print the help like a result: a failure to write is an error."""
        print_text(self.format_help())

    def error(self, message: str) -> NoReturn:
        """Print one line (the fault, the nearest name, where to read on) and exit."""
        for word in () if message.startswith("unknown command") else self._words:
            if word == "--":
                break
            option = word.partition("=")[0]
            if option.startswith("--") and option not in self._option_string_actions:
                near = nearest(option, self._option_string_actions)
                message = f"unknown option {option}" + (f"; did you mean {near}?" if near else "")
                break
        if wants_json(self._words):
            self.exit(USAGE, json_error(f"{message} (see: {self.prog} --help)", kind="Usage", status=USAGE))
        self.exit(USAGE, f"{self.prog}: {printable(message)} (see: {self.prog} --help)\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is not among the choices, with the nearest one; argparse calls this."""
        if action.choices is None or value in action.choices:
            return
        name = "command" if action.metavar == "COMMAND" else "/".join(action.option_strings) or action.dest
        raise argparse.ArgumentError(
            None, f"unknown {name} {value!r}: {did_you_mean(str(value), _names(action.choices))}"
        )


def _listed(name: str, text: str) -> list[str]:
    """Returns the lines of the help for one command, wrapped to the terminal's width."""
    width = max(shutil.get_terminal_size().columns - 2 - _NAMES_WIDTH - 2, 20)
    first, *more = textwrap.wrap(text, width) or [""]
    return [f"{name:{_NAMES_WIDTH}}{first}".rstrip(), *(" " * _NAMES_WIDTH + line for line in more)]


def _names(choices: Any) -> Sequence[str]:
    return [str(choice) for choice in choices]
