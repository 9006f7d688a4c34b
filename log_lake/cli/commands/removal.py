"""Commands that remove bytes for good: vacuum and erasure."""

from __future__ import annotations

from argparse import ArgumentParser

from log_lake.cli.arguments import add_range, add_where, duration
from log_lake.cli.command import Command, Writes


def _vacuum(parser: ArgumentParser) -> None:
    parser.add_argument("pool", nargs="?", metavar="POOL", help="required without --dropped")
    parser.add_argument(
        "--dropped", action="store_true", help="delete all dropped pools whose vacuum.grace is over"
    )
    parser.add_argument(
        "--grace",
        type=duration,
        metavar="DURATION",
        help="keep objects that were removed, or written and not committed, for this long (default: the greater of "
        "vacuum.grace and history.keep)",
    )
    parser.add_argument("--plan", metavar="ID", help="delete only what this plan names")
    parser.add_argument(
        "--every-name",
        action="store_true",
        help="look for objects that were never committed among all names, not only among those since the last scan",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="write a plan and print its id and sums; delete nothing"
    )


def _erase(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL", help="a pool, or a sub-pool: POOL.$rejected")
    parser.add_argument(
        "--key",
        metavar="K",
        help="records of this key: the value as text; a JSON list of values if the key has several fields",
    )
    add_range(parser)
    add_where(parser)
    parser.add_argument("--resume", metavar="ID", help="go on with this erasure")
    parser.add_argument(
        "--grace",
        type=duration,
        metavar="DURATION",
        help="objects that were written and not committed may be those of a load for this long (default: "
        "vacuum.grace)",
    )
    parser.add_argument(
        "--keep-history",
        action="store_true",
        help="do not purge the journal, whose entries may hold keys and bounds of the records",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print which objects hold such records; change nothing"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask (required without a terminal)")
    parser.add_argument("-o", dest="output", metavar="FILE", help="write the receipt to this file")


def _erasures(parser: ArgumentParser) -> None:
    parser.add_argument("pool", nargs="?", metavar="POOL", help="default: all pools")


def _verify_erasure(parser: ArgumentParser) -> None:
    parser.add_argument("receipt", metavar="FILE", help="the receipt, as lake erase -o wrote it")


COMMANDS = (
    Command(
        name="vacuum",
        help="delete objects that are not needed any more, once their grace time is over",
        run="vacuuming.vacuum_pool",
        writes=Writes.UNLESS_DRY_RUN,
        arguments=_vacuum,
        keeps_metadata=True,
    ),
    Command(
        name="erase",
        help="remove records from the bytes of every object, on all branches, and write a receipt",
        run="erasing.erase_records",
        writes=Writes.UNLESS_DRY_RUN,
        arguments=_erase,
        keeps_metadata=True,
    ),
    Command(
        name="erasures",
        help="list the erasures of a pool, pending ones too",
        run="erasing.erasures",
        writes=Writes.NEVER,
        arguments=_erasures,
    ),
    Command(
        name="verify-erasure",
        help="check the receipt of an erasure against the store",
        run="erasing.verify_erasure",
        writes=Writes.NEVER,
        arguments=_verify_erasure,
    ),
)
