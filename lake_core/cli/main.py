"""The entry point of the `lake` command: arguments in, exit status out.

Exit status: 0 done; 2 usage; else the error's own (`errors`); 1 anything else.  An error is one line.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from lake_core.catalog.settings import span
from lake_core.cli import compaction, data, deletion, history, pools, upkeep
from lake_core.cli.output import RECORD_FORMATS
from lake_core.errors import LakeError
from lake_core.ingest.formats import FORMATS
from lake_core.planning.compaction.policy import STRATEGIES


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    args = build_parser().parse_args(argv)
    try:
        args.run(args)
        sys.stdout.flush()
    except LakeError as error:
        sys.stderr.write(f"lake: {' '.join(str(error).split())}\n")
        return error.exit_status
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        sys.stderr.write("lake: interrupted\n")
        return 130
    return 0


def build_parser() -> argparse.ArgumentParser:
    """All commands and their arguments."""
    parser = argparse.ArgumentParser(prog="lake", description="A log-structured lake on an object store.")
    # before the command or behind it: there the defaults must not undo what was said before
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    for place in (parser, common):
        place.add_argument("--lake", metavar="URI", help="the lake (or set LAKE)")
        place.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(lake=os.environ.get("LAKE", ""))
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, run: object, help: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, parents=[common], help=help, description=help)
        sub.set_defaults(run=run)
        return sub

    command("init", pools.init, "make a lake")
    command("ls", pools.ls, "list the pools")

    sub = command("create", pools.create, "make a pool")
    sub.add_argument("pool", metavar="POOL")
    sub.add_argument(
        "--key", required=True, metavar="FIELD[:desc],...", help="the fields that order the records"
    )
    sub.add_argument(
        "--kind",
        default="append",
        metavar="append|upsert|aggregate",
        help="records of equal keys: all are kept, the newest decides, or they are combined",
    )
    sub.add_argument(
        "--aggregate",
        default="",
        metavar="FIELD=FN,...",
        help="aggregate pools: sum, min, max, count, first, last (the default), any_value",
    )
    sub.add_argument(
        "--type", action="append", default=[], metavar="FIELD=TYPE", help="declare a field's type"
    )
    sub.add_argument(
        "--set", nargs="+", default=[], action="extend", metavar="K=V", help="settings (see lake show)"
    )

    sub = command("show", pools.show, "show a pool: layout, fields, settings")
    sub.add_argument("pool", metavar="POOL")
    _add_at(sub)

    sub = command("set", pools.set_, "change settings of a pool; K= takes one back to its default")
    sub.add_argument("pool", metavar="POOL")
    sub.add_argument("settings", nargs="+", metavar="K=V")

    sub = command("drop", pools.drop, "take a pool off the list; with a range: drop its records")
    sub.add_argument("pool", metavar="POOL")
    _add_range(sub)
    sub.add_argument("--branch", default="main", metavar="B", help="of a range")

    sub = command("rename", pools.rename, "give a pool another name")
    sub.add_argument("pool", metavar="POOL")
    sub.add_argument("new", metavar="NEW")

    sub = command(
        "load", data.load, "take in files (NDJSON, CSV, Parquet; plain or gzipped) as one transaction"
    )
    sub.add_argument("pool", metavar="POOL")
    sub.add_argument("files", nargs="+", metavar="FILE", help="files, globs, folders; local or s3://, gs://")
    sub.add_argument("--format", default="auto", choices=("auto", *FORMATS), help="default: by the name")
    sub.add_argument("--branch", default="main", metavar="B")
    sub.add_argument(
        "--token", default="", metavar="T", help="the same token loads once, however often it is run"
    )
    sub.add_argument("--message", default="", metavar="M")

    sub = command("scan", data.scan, "records of a key range, in key order")
    sub.add_argument("pool", metavar="POOL")
    _add_range(sub)
    _add_where(sub)
    sub.add_argument("--columns", type=lambda text: text.split(","), metavar="A,B")
    sub.add_argument("--limit", type=_count, metavar="N")
    _add_at(sub)
    _add_output(sub)

    sub = command("get", data.get, "the records of one key")
    sub.add_argument("pool", metavar="POOL")
    sub.add_argument("key", metavar="KEY", help="a JSON scalar or list, or a bare string")
    sub.add_argument(
        "--format", choices=("json", "csv", "table"), help="default: json, or table on a terminal"
    )
    _add_at(sub)

    sub = command(
        "query", data.sql, 'SQL; tables: "pool", "pool@12", "pool:objects", "pool:log", "lake:pools"'
    )
    sub.add_argument("sql", metavar="SQL")
    _add_output(sub)

    sub = command("delete", deletion.delete, "delete records by range and condition: one small transaction")
    sub.add_argument("pool", metavar="POOL")
    sub.add_argument("--key", metavar="K", help="the records of one key: a JSON scalar or list, or a string")
    _add_range(sub)
    _add_where(sub)
    sub.add_argument("--all", action="store_true", help="all records")
    sub.add_argument("--reason", default="", metavar="TEXT", help="kept with the delete")
    sub.add_argument("--token", default="", metavar="T", help="the same token deletes once")
    sub.add_argument("--branch", default="main", metavar="B")

    sub = command(
        "replace", deletion.replace, "put the records of files in the place of those in a range, at once"
    )
    sub.add_argument("pool", metavar="POOL")
    sub.add_argument("files", nargs="+", metavar="FILE", help="files, globs, folders; local or s3://, gs://")
    _add_range(sub)
    _add_where(sub)
    sub.add_argument("--all", action="store_true", help="all records")
    sub.add_argument("--format", default="auto", choices=("auto", *FORMATS), help="default: by the name")
    sub.add_argument("--branch", default="main", metavar="B")
    sub.add_argument("--token", default="", metavar="T", help="the same token replaces once")
    sub.add_argument("--message", default="", metavar="M")

    sub = command(
        "apply-tombstones",
        deletion.apply_tombstones,
        "rewrite what deletes cover, forget those that are done",
    )
    sub.add_argument("pool", metavar="POOL")
    sub.add_argument("--branch", default="main", metavar="B")
    sub.add_argument("--at-once", action="store_true", help="whatever the pool's delete.apply says")
    sub.add_argument("--dry-run", action="store_true", help="print what is due, change nothing")

    sub = command("explain", deletion.explain, "the stored versions of a key, and what decides the answer")
    sub.add_argument("pool", metavar="POOL")
    sub.add_argument("key", metavar="KEY", help="a JSON scalar or list, or a bare string")
    _add_at(sub)

    sub = command("log", history.log, "transactions of a pool, newest first")
    sub.add_argument("pool", metavar="POOL")
    sub.add_argument("--branch", metavar="B")
    sub.add_argument("--limit", type=_count, metavar="N")

    sub = command("inspect", history.inspect, "any object of the lake as JSON")
    sub.add_argument("name", metavar="NAME")

    sub = command("compact", compaction.compact, "rewrite what overlaps, so that reading stays fast")
    sub.add_argument("pool", metavar="POOL")
    sub.add_argument("--branch", default="main", metavar="B")
    sub.add_argument(
        "--strategy",
        choices=STRATEGIES,
        help="instead of the pool's compact.strategy; full: all that overlaps into one run",
    )
    sub.add_argument("--dry-run", action="store_true", help="print the plan, change nothing")

    sub = command(
        "checkpoint", upkeep.checkpoint, "keep the state of a pool's history: opening it is quick then"
    )
    sub.add_argument("pool", metavar="POOL", help="a pool, or lake:pools")
    sub.add_argument("--dry-run", action="store_true", help="say whether one is due")

    sub = command("purge", upkeep.purge, "delete old journal entries that a checkpoint covers")
    sub.add_argument("pool", metavar="POOL", help="a pool, or lake:pools")
    sub.add_argument(
        "--keep", type=_span, metavar="SPAN", help="keep so much: 0s, 6h, 30d (default: history.keep)"
    )
    sub.add_argument("--dry-run", action="store_true", help="say how much would go")
    return parser


def _add_at(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--at", default="main", metavar="R", help="transaction number or id, branch, or BRANCH@TIME"
    )


def _add_range(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from", dest="from_", metavar="K", help="first key: a JSON scalar or list, or a bare string"
    )
    parser.add_argument("--to", metavar="K", help="the key before which to stop")


def _add_where(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--where", metavar="COND", help="a condition: \"tailnum = 'N14228' and delay > 15\"")


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=RECORD_FORMATS, help="default: json, or table on a terminal")
    parser.add_argument("-o", dest="output", metavar="FILE", help="write to a file")


def _span(text: str) -> float:
    try:
        return span(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from error


def _count(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
