"""The commands to look around in a lake: first records, a summary of fields, sizes, a prompt for SQL, the web
view."""

from __future__ import annotations

from argparse import ArgumentParser

from log_lake.cli.arguments import RECORD_FORMATS, add_at, add_files, port, positive, size
from log_lake.cli.command import Command, Writes

LOOKED_AT = 1_000_000
"""How many records `lake describe` reads if the user names no number: a second's work if records are narrow."""


def _head(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL")
    parser.add_argument(
        "limit", nargs="?", type=positive, default=10, metavar="N", help="how many (default: 10)"
    )
    add_at(parser)
    parser.add_argument("--format", choices=RECORD_FORMATS, help="default: table")


def _describe(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL")
    add_at(parser)
    parser.add_argument(
        "--limit",
        type=positive,
        default=LOOKED_AT,
        metavar="N",
        help=f"look at the first N records in key order (default: {LOOKED_AT:,})",
    )


def _du(parser: ArgumentParser) -> None:
    parser.add_argument("pools", nargs="*", metavar="POOL", help="default: all pools")


def _shell(parser: ArgumentParser) -> None:
    add_files(parser)


def _ui(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--port", type=port, default=0, metavar="N", help="the port on 127.0.0.1 (default: a free one)"
    )
    parser.add_argument("--open", action="store_true", help="open the address in your browser")


def _serve(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="listen here (default: 127.0.0.1, this machine only)",
    )
    parser.add_argument(
        "--port", type=port, default=8181, metavar="N", help="the port (default: 8181; 0: a free one)"
    )
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="answer only who sends a token of this file: one token, or lines NAME ROLE TOKEN",
    )
    parser.add_argument(
        "--also",
        action="append",
        default=[],
        metavar="NAME=URI",
        help="serve this lake too, as namespace NAME; repeatable",
    )
    parser.add_argument(
        "--read-only",
        action="store_true",
        help="change nothing: no loads, and the newest published tables",
    )
    limits = parser.add_argument_group("limits of a query and of a body")
    limits.add_argument(
        "--max-seconds", type=positive, default=60, metavar="N", help="of a query (default: 60)"
    )
    limits.add_argument(
        "--max-rows", type=positive, default=10_000_000, metavar="N", help="of an answer (default: 10000000)"
    )
    limits.add_argument(
        "--max-answer", type=size, default=1 << 30, metavar="SIZE", help="of an answer (default: 1GiB)"
    )
    limits.add_argument(
        "--max-body", type=size, default=1 << 30, metavar="SIZE", help="of a body (default: 1GiB)"
    )
    limits.add_argument(
        "--memory",
        type=size,
        default=0,
        metavar="SIZE",
        help="of all queries (default: half of the machine's)",
    )


COMMANDS = (
    Command(
        name="head",
        help="print the first records of a pool, in key order",
        run="looking.head",
        writes=Writes.NEVER,
        arguments=_head,
    ),
    Command(
        name="describe",
        help="summarize the fields: types, nulls, least, greatest, distinct values, a histogram",
        run="looking.describe",
        writes=Writes.NEVER,
        arguments=_describe,
    ),
    Command(
        name="du",
        help="say how many bytes pools take on the store, and what for",
        run="looking.du",
        writes=Writes.NEVER,
        arguments=_du,
    ),
    Command(
        name="shell",
        help="ask SQL at a prompt; tables as in lake query",
        run="shell.shell",
        writes=Writes.NEVER,
        arguments=_shell,
    ),
    Command(
        name="ui",
        help="show the lake in your browser: pools, records, geometry, log (pip install 'log-lake[ui]')",
        run="ui.ui",
        writes=Writes.NEVER,
        arguments=_ui,
    ),
    Command(
        name="serve",
        help="serve the lake by HTTP: an Iceberg catalog, queries, loads (pip install 'log-lake[serve]')",
        run="serving.serve",
        writes=Writes.BY_ARGUMENTS,
        arguments=_serve,
    ),
)
