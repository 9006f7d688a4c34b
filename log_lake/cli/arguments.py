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
    """`--on-missing`: what to do if a vacuum took objects of the revision."""
    parser.add_argument(
        "--on-missing",
        choices=("fail", "warn"),
        default="fail",
        help="if a vacuum took objects of an old revision: fail (the default), or read what is left and list them",
    )


def add_lease(parser: ArgumentParser) -> None:
    """`--lease`: no vacuum deletes the objects that are being read."""
    parser.add_argument(
        "--lease",
        action="store_true",
        help="hold a lease, so that no vacuum deletes objects that are being read",
    )


def add_at(parser: _ActionsContainer) -> None:
    """`--at`: the revision to read."""
    parser.add_argument(
        "--at",
        default="main",
        metavar="R",
        help="a version, a transaction id, a branch, a tag, or BRANCH@TIME (default: main)",
    )


def add_branch(parser: ArgumentParser) -> None:
    """`--branch` and `--in`: where a command writes."""
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--branch", default="main", metavar="B", help="default: main")
    add_in(place, "write in this transaction over several pools (lake begin)")


def add_at_or_in(parser: ArgumentParser) -> None:
    """`--at` and `--in`: what a command reads."""
    place = parser.add_mutually_exclusive_group()
    add_at(place)
    add_in(place, "read what this transaction over several pools sees")


def add_in(place: _ActionsContainer, help: str) -> None:
    """`--in`: a transaction over several pools."""
    place.add_argument("--in", dest="in_", metavar="ID", help=help)


def add_files(parser: ArgumentParser) -> None:
    """`--files`: what SQL reads beside pools."""
    parser.add_argument(
        "--files",
        action="append",
        default=[],
        metavar="PATH",
        help="a local file or folder that the SQL may read too: FROM 'PATH'; repeatable",
    )


def add_range(parser: ArgumentParser) -> None:
    """`--from` and `--to`: a range of keys."""
    parser.add_argument(
        "--from",
        dest="from_",
        metavar="K",
        help="begin of the range (inclusive): the value as text, or a JSON list of values",
    )
    parser.add_argument("--to", metavar="K", help="end of the range (exclusive)")


def add_where(parser: ArgumentParser) -> None:
    """`--where`: a condition."""
    parser.add_argument("--where", metavar="COND", help="a condition: \"tailnum = 'N14228' and delay > 15\"")


def add_output(parser: ArgumentParser) -> None:
    """`--format` and `-o`: how and where to print records."""
    parser.add_argument("--format", choices=RECORD_FORMATS, help="default: json, or table on a terminal")
    parser.add_argument(
        "-o",
        dest="output",
        type=lambda text: None if text == "-" else text,
        metavar="FILE",
        help="write to this file, which appears when it is complete; -: standard output",
    )


def duration(text: str) -> float:
    """The type of an argument: seconds, of a text such as `30d`."""
    try:
        return setting_types.duration(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r}: {error}") from error


def port(text: str) -> int:
    """The type of an argument: a TCP port; 0 is any free one."""
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 65_535):
        raise ArgumentTypeError(f"{text!r} is no port: use a number from 0 to 65535 (inclusive)")
    return int(text)


def count(text: str) -> int:
    """The type of an argument: a whole number."""
    if not (text.isascii() and text.isdigit()):
        raise ArgumentTypeError(f"{text!r} is not a whole number")
    digits = text.lstrip("0")
    return int(digits or 0) if len(digits) <= 18 else sys.maxsize  # more than any pool holds: no limit


def size(text: str) -> int:
    """The type of an argument: a number of bytes."""
    try:
        return setting_types.size_of(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is no size: {error}") from error


def positive(text: str) -> int:
    """The type of an argument: a whole number of at least 1."""
    if not (number := count(text)):
        raise ArgumentTypeError(f"{text!r} is too small: use 1 or more")
    return number
