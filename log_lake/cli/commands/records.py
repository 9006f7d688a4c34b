"""The commands that load, convert, read, delete, replace and explain records."""

from __future__ import annotations

from argparse import ArgumentParser
from functools import partial

from log_lake.cli.arguments import (
    FILE_FORMATS,
    add_at,
    add_at_or_in,
    add_branch,
    add_files,
    add_in,
    add_lease,
    add_on_missing,
    add_output,
    add_range,
    add_where,
    count,
    positive,
)
from log_lake.cli.command import Command, Writes
from log_lake.console.read_options import FILES, add_read_options
from log_lake.texts.nametext import names_of


def _load(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL")
    parser.add_argument("files", nargs="+", metavar="FILE", help=FILES)
    parser.add_argument(
        "--dry-run", action="store_true", help="show fields, types and bad records; change nothing"
    )
    add_read_options(parser)
    add_branch(parser)
    parser.add_argument(
        "--token", metavar="T", help="load once under this token, however often the command runs"
    )
    parser.add_argument("--message", default="", metavar="M", help="a text to keep with the transaction")
    parser.add_argument(
        "--bulk",
        action="store_true",
        help="leave objects that share no key, cut at the split points of the pool, whatever load.sort says",
    )


def _convert(parser: ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help=f"{FILES}; without -o the last one is the target"
    )
    parser.add_argument(
        "-o",
        dest="output",
        metavar="TARGET",
        help="the file to write; it appears when it is complete; -: standard output",
    )
    parser.add_argument(
        "--output-format", choices=FILE_FORMATS, help="format of the target (default: by its name's ending)"
    )
    parser.add_argument("--force", action="store_true", help="replace the target if it exists")
    add_read_options(parser)
    parser.add_argument(
        "--type",
        action="append",
        default=[],
        metavar="FIELD=TYPE",
        help="read a field as this type; repeatable",
    )


def _scan(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL")
    add_range(parser)
    add_where(parser)
    parser.add_argument(
        "--columns",
        type=partial(names_of, option="--columns"),
        metavar="A,B",
        help="print only these fields (a JSON list if a name has a comma)",
    )
    parser.add_argument("--limit", type=count, metavar="N", help="stop after this many")
    parser.add_argument(
        "--ranges",
        metavar="FILE",
        help='print only the keys of these ranges: {"from": K, "to": K} or {"key": K} a line; -: standard input',
    )
    parser.add_argument(
        "-j",
        dest="jobs",
        type=positive,
        default=1,
        metavar="N",
        help="read N parts of the keys at the same time, in the same order; default: 1",
    )
    parser.add_argument(
        "--explain", action="store_true", help="print the parts that would be read, and what each opens"
    )
    add_at_or_in(parser)
    add_output(parser)
    add_on_missing(parser)
    add_lease(parser)


def _get(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL")
    parser.add_argument("key", metavar="KEY", help="the key; of several fields a JSON list")
    parser.add_argument(
        "--format", choices=("json", "csv", "zson", "table"), help="default: json, or table on a terminal"
    )
    add_at_or_in(parser)
    add_on_missing(parser)


def _query(parser: ArgumentParser) -> None:
    parser.add_argument(
        "sql", metavar="SQL", help="one SELECT, INSERT, UPDATE, DELETE, TRUNCATE, MERGE or CREATE TABLE AS"
    )
    add_files(parser)
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--at", metavar="TIME", help="read all pools as they were at a time (ISO 8601)")
    add_in(place, "read and change pools in this transaction over several pools (lake begin)")
    parser.add_argument(
        "--dry-run", action="store_true", help="count what a change would meet; change nothing"
    )
    parser.add_argument("--token", metavar="T", help="change once under this token")
    parser.add_argument("--message", default="", metavar="M", help="a text to keep with the transaction")
    add_output(parser)
    add_on_missing(parser)
    add_lease(parser)


def _delete(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL")
    parser.add_argument("--key", metavar="K", help="the records of one key; of several fields a JSON list")
    add_range(parser)
    add_where(parser)
    parser.add_argument("--all", action="store_true", help="all records of the pool")
    parser.add_argument("--reason", default="", metavar="TEXT", help="a text to keep with the delete")
    parser.add_argument("--token", metavar="T", help="delete once under this token")
    add_branch(parser)


def _replace(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL")
    parser.add_argument("files", nargs="+", metavar="FILE", help=FILES)
    add_range(parser)
    add_where(parser)
    parser.add_argument("--all", action="store_true", help="all records of the pool")
    add_read_options(parser)
    add_branch(parser)
    parser.add_argument("--token", metavar="T", help="replace once under this token")
    parser.add_argument("--message", default="", metavar="M", help="a text to keep with the transaction")


def _tombstones(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL")
    parser.add_argument("--branch", default="main", metavar="B", help="default: main")
    parser.add_argument(
        "--at-once",
        action="store_true",
        help="apply all tombstones now, ignoring the pool's tombstones.apply age",
    )
    parser.add_argument("--dry-run", action="store_true", help="print what is due; change nothing")


def _explain(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL")
    parser.add_argument("key", metavar="KEY", help="the key; of several fields a JSON list")
    add_at(parser)


COMMANDS = (
    Command(
        name="load",
        help="load files (JSON, CSV, Parquet, Avro, ORC, ZNG, ZST) as one transaction",
        run="data.load",
        writes=Writes.UNLESS_DRY_RUN,
        arguments=_load,
        keeps_metadata=True,
    ),
    Command(
        name="convert",
        help="write files in another format, without a lake",
        run="converting.convert",
        writes=Writes.NEVER,
        arguments=_convert,
    ),
    Command(
        name="scan",
        help="print the records of a key range, in key order",
        run="data.scan",
        writes=Writes.NEVER,
        arguments=_scan,
    ),
    Command(
        name="get", help="print the records of one key", run="data.get", writes=Writes.NEVER, arguments=_get
    ),
    Command(
        name="query",
        help='run SQL; tables: "pool", "pool@12", "pool:objects", "pool:log", "lake:pools"',
        run="data.sql",
        writes=Writes.BY_ARGUMENTS,
        arguments=_query,
        keeps_metadata=True,
    ),
    Command(
        name="delete",
        help="delete records by range and condition: one small transaction",
        run="deletion.delete",
        writes=Writes.ALWAYS,
        arguments=_delete,
        keeps_metadata=True,
    ),
    Command(
        name="replace",
        help="replace the records of a range by those of files, in one transaction",
        run="deletion.replace",
        writes=Writes.ALWAYS,
        arguments=_replace,
        keeps_metadata=True,
    ),
    Command(
        name="tombstones",
        help="physically remove deleted records and retire finished tombstones",
        run="upkeep.tombstones",
        writes=Writes.UNLESS_DRY_RUN,
        arguments=_tombstones,
        keeps_metadata=True,
    ),
    Command(
        name="explain",
        help="say which versions of a key are stored, and why each is visible or not",
        run="explanation.explain",
        writes=Writes.NEVER,
        arguments=_explain,
    ),
)
