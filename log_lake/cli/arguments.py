"""Arguments that several commands have, and the types of arguments.

`lake --help` makes its parser with this module, which therefore imports no engine.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, _ActionsContainer

from log_lake.settings import setting_types

FILE_FORMATS = ("json", "csv", "parquet", "arrow", "zng", "zst", "zson")
RECORD_FORMATS = (*FILE_FORMATS, "table")


def add_on_missing(parser: ArgumentParser) -> None:
    """Adds `--on-missing`: what a read does if a vacuum has deleted objects of its revision."""
    parser.add_argument(
        "--on-missing",
        choices=("fail", "warn"),
        default="fail",
        help="if a vacuum took objects of an old revision: fail (the default), or read what is left and list them",
    )


def add_lease(parser: ArgumentParser) -> None:
    """Adds `--lease`: while the command reads, no vacuum deletes the objects that it needs."""
    parser.add_argument(
        "--lease",
        action="store_true",
        help="hold a lease, so that no vacuum deletes objects that are being read",
    )


def add_at(parser: _ActionsContainer) -> None:
    """Adds `--at`: the revision to read."""
    parser.add_argument(
        "--at",
        default="main",
        metavar="R",
        help="a version, a transaction id, a branch, a tag, or BRANCH@TIME (default: main)",
    )


def add_branch(parser: ArgumentParser) -> None:
    """Adds `--branch` and `--in`: the branch, or the transaction over several pools, in which a command
    writes."""
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--branch", default="main", metavar="B", help="default: main")
    add_in(place, "write in this transaction over several pools (lake begin)")


def add_at_or_in(parser: ArgumentParser) -> None:
    """Adds `--at` and `--in`: the revision that a command reads, or the transaction over several pools in which it
    reads."""
    place = parser.add_mutually_exclusive_group()
    add_at(place)
    add_in(place, "read what this transaction over several pools sees")


def add_in(place: _ActionsContainer, help: str) -> None:
    """Adds `--in`: a transaction over several pools."""
    place.add_argument("--in", dest="in_", metavar="ID", help=help)


def add_files(parser: ArgumentParser) -> None:
    """Adds `--files`: files that SQL may read beside pools."""
    parser.add_argument(
        "--files",
        action="append",
        default=[],
        metavar="PATH",
        help="a local file or folder that the SQL may read too: FROM 'PATH'; repeatable",
    )


def add_range(parser: ArgumentParser) -> None:
    """Adds `--from` and `--to`: a range of keys."""
    parser.add_argument(
        "--from",
        dest="from_",
        metavar="K",
        help="begin of the range (inclusive): the value as text, or a JSON list of values",
    )
    parser.add_argument("--to", metavar="K", help="end of the range (exclusive)")


def add_where(parser: ArgumentParser) -> None:
    """Adds `--where`: a condition."""
    parser.add_argument("--where", metavar="COND", help="a condition: \"tailnum = 'N14228' and delay > 15\"")


def add_output(parser: ArgumentParser) -> None:
    """Adds `--format` and `-o`: how and where to print records."""
    parser.add_argument("--format", choices=RECORD_FORMATS, help="default: json, or table on a terminal")
    parser.add_argument(
        "-o",
        dest="output",
        type=lambda text: None if text == "-" else text,
        metavar="FILE",
        help="write to this file, which appears when it is complete; -: standard output",
    )


def duration(text: str) -> float:
    """Reads a text such as `30d` as seconds; the type of an argument."""
    try:
        return setting_types.duration(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r}: {error}") from error


def port(text: str) -> int:
    """Reads a TCP port (0: any free one); the type of an argument."""
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 65_535):
        raise ArgumentTypeError(f"{text!r} is no port: use a number from 0 to 65535 (inclusive)")
    return int(text)


def count(text: str) -> int:
    """Reads a whole number; the type of an argument."""
    if not (text.isascii() and text.isdigit()):
        raise ArgumentTypeError(f"{text!r} is not a whole number")
    digits = text.lstrip("0")
    return int(digits or 0) if len(digits) <= 18 else sys.maxsize  # more than any pool holds: no limit


def size(text: str) -> int:
    """Reads a number of bytes; the type of an argument."""
    try:
        return setting_types.size_of(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is no size: {error}") from error


def positive(text: str) -> int:
    """Reads a whole number of at least 1; the type of an argument."""
    if not (number := count(text)):
        raise ArgumentTypeError(f"{text!r} is too small: use 1 or more")
    return number
