"""The commands about transactions over several pools."""

from __future__ import annotations

from argparse import ArgumentParser

from log_lake.cli.arguments import duration
from log_lake.cli.command import Command, Writes


def _begin(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--token", metavar="T", help="commit once under this token, however often this is done"
    )
    parser.add_argument("--message", default="", metavar="M", help="a text to keep with the transaction")
    parser.add_argument(
        "--open-for",
        type=duration,
        default=86_400.0,
        metavar="DURATION",
        help="the retention agent ends it after this time (default: 1d)",
    )


def _ended(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="the id that lake begin printed")


COMMANDS = (
    Command(
        name="begin",
        help="begin a transaction over several pools, and print its id for --in",
        run="transacting.begin",
        writes=Writes.ALWAYS,
        arguments=_begin,
        keeps_metadata=True,
    ),
    Command(
        name="commit",
        help="commit a transaction: all of its pools change at one moment, or none",
        run="transacting.commit",
        writes=Writes.ALWAYS,
        arguments=_ended,
    ),
    Command(
        name="abort",
        help="end a transaction; nothing of it is ever visible",
        run="transacting.abort",
        writes=Writes.ALWAYS,
        arguments=_ended,
    ),
    Command(
        name="transactions",
        help="list the transactions over several pools that are open, or ended a short time ago",
        run="transacting.transactions",
        writes=Writes.NEVER,
    ),
)
