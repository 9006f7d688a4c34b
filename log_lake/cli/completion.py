"""lake completion: the words that a shell offers at TAB (decision 49).

`lake completion bash` prints lines that make the shell ask `lake` itself.  When a shell asks, the command offers
commands, options and choices from its own parser, and the names of pools from the lake.  If the lake does not
answer, it offers no pools.
"""

from __future__ import annotations

import argparse
from argparse import Namespace
from typing import Any

from log_lake.console.sink import print_text

SHELLS = ("bash", "zsh", "fish")


def completion(args: Namespace) -> None:
    """Print the lines that a shell's start-up file evaluates."""
    from argcomplete.shell_integration import shellcode

    print_text(shellcode(["lake"], shell=args.shell).strip() + "\n")


def answer(parser: argparse.ArgumentParser) -> None:
    """Answer a shell that asks what may come next, and end the process."""
    import argcomplete

    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                for argument in command._actions:
                    _teach(argument)
    argcomplete.autocomplete(parser)


def _teach(argument: argparse.Action) -> None:
    if argument.metavar == "POOL":
        argument.completer = _pool_names  # type: ignore[attr-defined]
    elif argument.metavar == "K=V":
        argument.completer = _settings  # type: ignore[attr-defined]


def _pool_names(parsed_args: Namespace, **_: Any) -> list[str]:
    from lake_core.errors import LakeError
    from log_lake.lake import Lake

    try:
        return [pool.name for pool in Lake.open(parsed_args.lake).pools()]
    except LakeError:
        return []


def _settings(**_: Any) -> list[str]:
    from log_lake.settings.settings import KNOWN

    return [f"{name}=" for name in KNOWN]
