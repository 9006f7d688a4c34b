"""The words of every command: names, order, options, defaults and help, as `tests/cli/commands.txt` has them.

argparse lays help out in another way in each release of Python; so the parts are compared, not the lines.
After a change that is meant: `python -m tests.cli.test_arguments`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import pytest

from log_lake.cli.commands import COMMANDS, GROUPS
from log_lake.cli.main import build_parser

KEPT = Path(__file__).with_name("commands.txt")


def words(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        if isinstance(action, argparse._SubParsersAction):
            listed = {choice.dest: choice.help for choice in action._choices_actions}
            for name, command in action.choices.items():
                assert command.description == listed[name]
                yield f"{name}: {command.description}"
                yield from words(command)
            continue
        name = " ".join(action.option_strings) or action.dest
        choices = list(action.choices) if action.choices is not None else None
        yield (
            f"  {name} -> {action.dest} nargs={action.nargs!r} metavar={action.metavar!r} "
            f"required={action.required} default={action.default!r} choices={choices!r}: {action.help}"
        )


def everything() -> str:
    return "".join(line + "\n" for line in words(build_parser()))


def test_the_words_of_every_command_are_those_that_were_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAKE", raising=False)
    assert everything().splitlines() == KEPT.read_text().splitlines()


def test_no_command_is_in_two_groups() -> None:
    assert len(COMMANDS) == sum(map(len, GROUPS.values()))


if __name__ == "__main__":
    KEPT.write_text(everything())
