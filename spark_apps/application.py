"""What the submitted applications of the agents share: options, logs, and the exit status of an error."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable

from lake_core.errors import LakeError
from log_lake.console.logged import log_to_stderr, say_error
from log_lake.console.parser import Parser
from log_lake.lake import Lake


def main(
    act: Callable[[Namespace, Lake], int],
    argv: list[str] | None,
    *,
    name: str,
    description: str,
    arguments: Callable[[Parser], None],
    pools: str = "",
    logs: str = "",
) -> int:
    """Runs `act` as a submitted application, and returns the exit status.

    `pools`: the help text for its pools, "" if it takes one by `--pool`.  `logs`: the logger whose lines go to
    standard error.
    """
    parser = Parser(description=description)
    parser.add_argument("--lake", required=True, metavar="URI")
    if not pools:
        parser.add_argument("--pool", required=True)
    arguments(parser)
    parser.add_argument("--remote", default=None, metavar="sc://HOST:PORT", help="a Spark Connect server")
    if pools:
        parser.add_argument("pools", nargs="*", metavar="POOL", help=pools)
    args = parser.parse_args(argv)
    if logs:
        log_to_stderr(logs)
    try:
        return act(args, Lake.open(args.lake))
    except LakeError as error:
        say_error(name, error)
        return error.exit_status
