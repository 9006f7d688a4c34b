"""The entry point of the `lake` command: arguments in, exit status out.

Exit status: 0 done; 2 usage; otherwise the error's own (`errors`); 1 anything else.  An error is one line; only an
error in SQL has more, which show the place.  A command's module is imported when the command runs, so that
`lake --help` answers at once.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from lake_core import naming
from lake_core.errors import InvalidInput, LakeError, OutputFailed, without_secrets
from lake_core.phrases import printable
from log_lake.agents.roster import AGENTS
from log_lake.cli.completion import SHELLS
from log_lake.cli.options import CHANGING, FILES, WRITES, add_read_options
from log_lake.cli.parser import Parser, check_text
from log_lake.cli.sink import abandon, complain, flush, open_missing, print_text
from log_lake.cli.without_pandas import leave_pandas_out
from log_lake.compaction import strategies
from log_lake.settings.setting_types import duration
from log_lake.texts.nametext import names_of

FILE_FORMATS = ("json", "csv", "parquet", "arrow", "zng", "zst", "zson")
RECORD_FORMATS = (*FILE_FORMATS, "table")
LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)
"""The level of logging without `-v`, with one, and with two."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status.  Without `argv` the process is the command's own."""
    if argv is None:
        leave_pandas_out()
    open_missing()
    try:
        try:
            _run(argv)
        finally:
            flush()  # also of what argparse prints before it exits
    except LakeError as error:
        complain(error_text(error))
        if isinstance(error, OutputFailed):
            abandon()
        return error.exit_status
    except BrokenPipeError:  # the reader of our output has seen enough
        abandon()
    except KeyboardInterrupt:
        complain("interrupted")
        return 130
    return 0


def _run(argv: Sequence[str] | None) -> None:
    parser = build_parser()
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what may come next (`lake completion`)
        from log_lake.cli import completion

        completion.answer(parser)
    args = parser.parse_args(argv)
    check_text(args)
    from lake_core.store.patience import lasting
    from log_lake.cli.waiting import shown_waiting  # these load slowly, and --help needs neither

    with _logging(args.verbose), lasting(args.timeout), shown_waiting():
        _function(args.run)(args)


def _function(name: str) -> Callable[[argparse.Namespace], None]:
    """The function `module.function` of this package that carries a command out."""
    module, _, function = name.partition(".")
    command: Callable[[argparse.Namespace], None] = getattr(
        importlib.import_module(f"log_lake.cli.{module}"), function
    )
    return command


def error_text(error: LakeError) -> str:
    """The error on one line; behind it the lines that show a place in SQL, as they are."""
    lines = str(error).splitlines()
    shown = next((number for number, line in enumerate(lines) if line.startswith("LINE ")), len(lines))
    return "\n".join(map(printable, [" ".join(" ".join(lines[:shown]).split()), *lines[shown:]]))


class _Formatter(logging.Formatter):
    """Lines of the log without secrets of addresses."""

    def format(self, record: logging.LogRecord) -> str:
        return without_secrets(super().format(record))


@contextlib.contextmanager
def _logging(verbose: int) -> Iterator[None]:
    """While the command runs, the library's log goes to standard error: warnings; with `-v`, decisions too."""
    loggers = [logging.getLogger(package) for package in ("lake_core", "log_lake")]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        _Formatter(
            "%(relativeCreated)6d ms  %(name)s: %(message)s" if verbose else "lake: warning: %(message)s"
        )
    )
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(LEVELS[min(verbose, len(LEVELS) - 1)])
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(level)


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print_text(f"lake {version('log-lake')}\n")
        except PackageNotFoundError:
            print_text("lake, not installed: run from its source\n")
        parser.exit()


def build_parser() -> Parser:
    """All commands and their arguments."""
    parser = Parser(prog="lake", description="A log-structured lake on an object store.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    # the options may stand before or behind the command; behind it, defaults must not undo those before
    common = Parser(add_help=False, argument_default=argparse.SUPPRESS)
    for place in (parser, common):
        place.add_argument("--lake", metavar="URI", help="the lake: a path, s3:// or gs:// (or set LAKE)")
        place.add_argument("--json", action="store_true", help="print JSON")
        place.add_argument(
            "--timeout",
            type=_timeout,
            metavar="DURATION",
            help="give up when the store has served nothing for so long (default: LAKE_STORE_TIMEOUT, 60s)",
        )
        place.add_argument(
            "-v",
            "--verbose",
            action="count",
            help="print what the library decides to standard error; -vv: and the details",
        )
    parser.set_defaults(lake=os.environ.get("LAKE", ""), verbose=0, timeout=None)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, run: str, help: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, parents=[common], help=help, description=help)
        sub.set_defaults(run=run, writes=WRITES[name])
        if name in CHANGING:
            sub.add_argument(
                "--meta",
                action="append",
                default=[],
                metavar="NAME=TEXT",
                help="a text to keep with the transactions under this name; repeatable",
            )
        return sub

    command("init", "pools.init", "make a lake at --lake")
    sub = command("ls", "pools.ls", "list the pools")
    sub.add_argument("--dropped", action="store_true", help="list dropped pools, which can be restored")
    command(
        "upgrade", "pools.upgrade", "raise the lake to the newest format version; older programs stop at it"
    )

    sub = command("create", "pools.create", "make a pool")
    sub.add_argument("pool", metavar="POOL")
    sub.add_argument(
        "--key", required=True, metavar="FIELD[:desc],...", help="the fields that the records are sorted by"
    )
    sub.add_argument(
        "--kind",
        default="append",
        metavar="append|upsert|aggregate",
        help="append: keep all records of a key (default); upsert: keep the newest; aggregate: combine them",
    )
    sub.add_argument(
        "--aggregate",
        default="",
        metavar="FIELD=FN,...",
        help="for aggregate pools: sum, min, max, count, first, last (the default), any_value",
    )
    sub.add_argument(
        "--type", action="append", default=[], metavar="FIELD=TYPE", help="declare a field's type"
    )
    sub.add_argument(
        "--format",
        metavar="|".join(naming.FORMATS),
        help="the format of the objects: fields united (parquet, the default), or records as they came, "
        "in rows (zng) or columns (zst)",
    )
    sub.add_argument(
        "--set",
        nargs="+",
        default=[],
        action="extend",
        metavar="K=V",
        help="set settings (lake show lists them)",
    )

    sub = command("show", "pools.show", "show a pool: layout, fields, settings")
    sub.add_argument("pool", metavar="POOL")
    _add_at(sub)

    sub = command("set", "pools.set_", "change a pool's settings (K= resets K to its default)")
    sub.add_argument("pool", metavar="POOL")
    sub.add_argument("settings", nargs="+", metavar="K=V")

    sub = command("apply", "applying.apply", "make the pools as a file says; print the difference first")
    sub.add_argument("file", nargs="?", metavar="FILE", help="a policy file in YAML; - is standard input")
    sub.add_argument("--dry-run", action="store_true", help="print the difference; change nothing")
    sub.add_argument("--prune", action="store_true", help="drop the pools that the file does not name")
    sub.add_argument(
        "--yes",
        action="store_true",
        help="do not ask before pools are dropped or agents remove more (required without a terminal)",
    )
    sub.add_argument("--schema", action="store_true", help="print the JSON schema of policy files")

    sub = command("export", "applying.export_pools", "print pools as a policy file, which lake apply takes")
    sub.add_argument("pools", nargs="*", metavar="POOL", help="default: all pools")
    sub.add_argument("-o", dest="output", metavar="FILE", help="write to this file")

    sub = command(
        "drop",
        "pools.drop",
        "remove a pool (lake restore takes it back); with --from or --to: remove the records of that range",
    )
    sub.add_argument(
        "pool", metavar="POOL", help="a pool, or the id of a folder that the list of pools does not have"
    )
    _add_range(sub)
    sub.add_argument("--branch", metavar="B", help="with --from or --to: of this branch (default: main)")
    sub.add_argument("--yes", action="store_true", help="do not ask (required without a terminal)")

    sub = command("restore", "pools.restore", "take a dropped pool back, until the vacuum has deleted it")
    sub.add_argument("pool", metavar="POOL", help="its name, or NAME#ID if several had the name")
    sub.add_argument("--as", dest="new", default="", metavar="NAME", help="list it under this name")

    sub = command("rename", "pools.rename", "give a pool another name")
    sub.add_argument("pool", metavar="POOL")
    sub.add_argument("new", metavar="NEW")

    sub = command(
        "load", "data.load", "load files (JSON, CSV, Parquet, Avro, ORC, ZNG, ZST) as one transaction"
    )
    sub.add_argument("pool", metavar="POOL")
    sub.add_argument("files", nargs="+", metavar="FILE", help=FILES)
    sub.add_argument(
        "--dry-run", action="store_true", help="show fields, types and bad records; change nothing"
    )
    add_read_options(sub)
    sub.add_argument("--branch", default="main", metavar="B", help="default: main")
    sub.add_argument(
        "--token", default="", metavar="T", help="load once under this token, however often the command runs"
    )
    sub.add_argument("--message", default="", metavar="M", help="a text to keep with the transaction")

    sub = command("convert", "converting.convert", "write files in another format, without a lake")
    sub.add_argument(
        "files", nargs="+", metavar="FILE", help=f"{FILES}; without -o the last one is the target"
    )
    sub.add_argument(
        "-o",
        dest="output",
        metavar="TARGET",
        help="the file to write; it appears when it is complete; -: standard output",
    )
    sub.add_argument(
        "--output-format", choices=FILE_FORMATS, help="format of the target (default: by its name's ending)"
    )
    sub.add_argument("--force", action="store_true", help="replace the target if it exists")
    add_read_options(sub)
    sub.add_argument(
        "--type",
        action="append",
        default=[],
        metavar="FIELD=TYPE",
        help="read a field as this type; repeatable",
    )

    sub = command("scan", "data.scan", "print the records of a key range, in key order")
    sub.add_argument("pool", metavar="POOL")
    _add_range(sub)
    _add_where(sub)
    sub.add_argument(
        "--columns",
        type=partial(names_of, option="--columns"),
        metavar="A,B",
        help="print only these fields (a JSON list if a name has a comma)",
    )
    sub.add_argument("--limit", type=_count, metavar="N", help="stop after this many")
    _add_at(sub)
    _add_output(sub)
    _add_on_missing(sub)
    _add_lease(sub)

    sub = command("get", "data.get", "print the records of one key")
    sub.add_argument("pool", metavar="POOL")
    sub.add_argument("key", metavar="KEY", help="the key; of several fields a JSON list")
    sub.add_argument(
        "--format", choices=("json", "csv", "zson", "table"), help="default: json, or table on a terminal"
    )
    _add_at(sub)
    _add_on_missing(sub)

    sub = command(
        "query", "data.sql", 'run SQL; tables: "pool", "pool@12", "pool:objects", "pool:log", "lake:pools"'
    )
    sub.add_argument("sql", metavar="SQL")
    _add_output(sub)
    _add_on_missing(sub)
    _add_lease(sub)

    sub = command("delete", "deletion.delete", "delete records by range and condition: one small transaction")
    sub.add_argument("pool", metavar="POOL")
    sub.add_argument("--key", metavar="K", help="the records of one key; of several fields a JSON list")
    _add_range(sub)
    _add_where(sub)
    sub.add_argument("--all", action="store_true", help="all records of the pool")
    sub.add_argument("--reason", default="", metavar="TEXT", help="a text to keep with the delete")
    sub.add_argument("--token", default="", metavar="T", help="delete once under this token")
    sub.add_argument("--branch", default="main", metavar="B", help="default: main")

    sub = command(
        "replace", "deletion.replace", "replace the records of a range by those of files, in one transaction"
    )
    sub.add_argument("pool", metavar="POOL")
    sub.add_argument("files", nargs="+", metavar="FILE", help=FILES)
    _add_range(sub)
    _add_where(sub)
    sub.add_argument("--all", action="store_true", help="all records of the pool")
    add_read_options(sub)
    sub.add_argument("--branch", default="main", metavar="B", help="default: main")
    sub.add_argument("--token", default="", metavar="T", help="replace once under this token")
    sub.add_argument("--message", default="", metavar="M", help="a text to keep with the transaction")

    sub = command(
        "tombstones",
        "upkeep.tombstones",
        "physically remove deleted records and retire finished tombstones",
    )
    sub.add_argument("pool", metavar="POOL")
    sub.add_argument("--branch", default="main", metavar="B", help="default: main")
    sub.add_argument(
        "--at-once",
        action="store_true",
        help="apply all tombstones now, ignoring the pool's tombstones.apply age",
    )
    sub.add_argument("--dry-run", action="store_true", help="print what is due; change nothing")

    sub = command(
        "explain",
        "explanation.explain",
        "say which versions of a key are stored, and why each is visible or not",
    )
    sub.add_argument("pool", metavar="POOL")
    sub.add_argument("key", metavar="KEY", help="the key; of several fields a JSON list")
    _add_at(sub)

    sub = command("log", "history.log", "list the transactions of a pool, newest first")
    sub.add_argument("pool", metavar="POOL")
    sub.add_argument("--branch", metavar="B", help="only transactions of this branch")
    sub.add_argument("--limit", type=_count, metavar="N", help="stop after this many")

    sub = command("branch", "branching.branch", "list the branches of a pool; create, restore or delete one")
    sub.add_argument("pool", metavar="POOL")
    sub.add_argument("name", nargs="?", metavar="NAME", help="the branch to create")
    sub.add_argument(
        "--at",
        metavar="R",
        help="begin on this revision (default: main); on NAME@N: restore the deleted branch NAME",
    )
    sub.add_argument("-d", "--delete", metavar="NAME", help="delete this branch; it can be restored")

    sub = command(
        "merge", "branching.merge", "bring what a branch wrote into the branch that it was created from"
    )
    sub.add_argument("pool", metavar="POOL")
    sub.add_argument("child", metavar="CHILD", help="the branch to merge")
    sub.add_argument("--into", metavar="B", help="the branch that CHILD was created from (default: that one)")
    sub.add_argument("--message", default="", metavar="M", help="a text to keep with the transaction")

    for name, run, help in (
        ("revert", "branching.revert", "take back a transaction by a new one, which can be reverted too"),
        ("undo", "branching.undo", "take back maintenance: a compaction, applied deletes"),
    ):
        sub = command(name, run, help)
        sub.add_argument("pool", metavar="POOL")
        sub.add_argument("revision", metavar="N", help="a version of the branch, or a transaction id")
        sub.add_argument("--branch", default="main", metavar="B", help="default: main")
    sub = command("tag", "branching.tag", "name a revision and keep it from every clean-up; or delete a tag")
    sub.add_argument("pool", metavar="POOL")
    sub.add_argument("name", nargs="?", metavar="NAME", help="the tag to set")
    sub.add_argument("--at", metavar="R", help="the revision to name (default: main)")
    sub.add_argument("--reason", default="", metavar="TEXT", help="why it is kept")
    sub.add_argument(
        "--expires", metavar="T", help="a time (ISO 8601), or from now on: 30d, 12h (default: never)"
    )
    sub.add_argument("-d", "--delete", metavar="NAME", help="delete this tag")

    sub = command("tags", "branching.tags", "list tags, and the deleted branches that can be restored")
    sub.add_argument("pool", nargs="?", metavar="POOL", help="default: all pools")
    sub.add_argument("--cost", action="store_true", help="say what bytes each tag alone keeps")

    sub = command("inspect", "history.inspect", "print any object of the lake as JSON")
    sub.add_argument("name", metavar="NAME")

    sub = command(
        "publish",
        "publishing.publish",
        "publish a branch as an Iceberg table, which other programs read; no data is copied",
    )
    sub.add_argument("pool", metavar="POOL", help="a pool, or POOL@BRANCH (default: main)")
    sub.add_argument("--as", dest="form", choices=("iceberg",), default="iceberg", help="default: iceberg")
    sub.add_argument(
        "--to",
        default="beside",
        metavar="URI",
        help="folder of the table (default: beside the pool's objects)",
    )
    sub.add_argument(
        "--without",
        metavar="A,B",
        help='leave these fields out (default: those that the table leaves out; "": none)',
    )
    sub.add_argument("--status", action="store_true", help="say what is published and how far it is behind")

    sub = command("compact", "compaction.compact", "merge overlapping objects, so that reading stays fast")
    sub.add_argument("pool", metavar="POOL")
    sub.add_argument("--branch", default="main", metavar="B", help="default: main")
    sub.add_argument(
        "--strategy",
        choices=strategies.names(),
        help="use this instead of the pool's compact.strategy; full: merge all overlapping objects",
    )
    sub.add_argument("--dry-run", action="store_true", help="print the plan; change nothing")

    sub = command("checkpoint", "upkeep.checkpoint", "write a checkpoint so that the pool opens quickly")
    sub.add_argument("pool", metavar="POOL", help="a pool, or lake:pools")
    sub.add_argument("--dry-run", action="store_true", help="say whether one is due; change nothing")

    sub = command("purge", "upkeep.purge", "delete old journal entries that a checkpoint covers")
    sub.add_argument("pool", metavar="POOL", help="a pool, or lake:pools")
    sub.add_argument(
        "--keep",
        type=_duration,
        metavar="DURATION",
        help="keep entries younger than this: 0s, 6h, 30d (default: history.keep)",
    )
    sub.add_argument(
        "--dry-run", action="store_true", help="print how many entries would be deleted; change nothing"
    )

    sub = command("expire", "upkeep.expire", "remove old records, as the pool's settings expire.* say")
    sub.add_argument("pool", metavar="POOL")
    sub.add_argument("--branch", default="main", metavar="B", help="default: main")
    sub.add_argument("--dry-run", action="store_true", help="print what would go and why; change nothing")

    sub = command(
        "vacuum",
        "vacuuming.vacuum_pool",
        "delete objects that are not needed any more, once their grace time is over",
    )
    sub.add_argument("pool", nargs="?", metavar="POOL", help="required without --dropped")
    sub.add_argument(
        "--dropped", action="store_true", help="delete all dropped pools whose vacuum.grace is over"
    )
    sub.add_argument(
        "--grace",
        type=_duration,
        metavar="DURATION",
        help="keep objects that were removed, or written and not committed, for this long (default: the greater of "
        "vacuum.grace and history.keep)",
    )
    sub.add_argument("--plan", metavar="ID", help="delete only what this plan names")
    sub.add_argument(
        "--every-name",
        action="store_true",
        help="look for objects that were never committed among all names, not only among those since the last scan",
    )
    sub.add_argument(
        "--dry-run", action="store_true", help="write a plan and print its id and sums; delete nothing"
    )

    sub = command(
        "erase",
        "erasing.erase_records",
        "remove records from the bytes of every object, on all branches, and write a receipt",
    )
    sub.add_argument("pool", metavar="POOL", help="a pool, or a sub-pool: POOL.$rejected")
    sub.add_argument(
        "--key",
        metavar="K",
        help="records of this key: the value as text; a JSON list of values if the key has several fields",
    )
    _add_range(sub)
    _add_where(sub)
    sub.add_argument("--resume", metavar="ID", help="go on with this erasure")
    sub.add_argument(
        "--grace",
        type=_duration,
        metavar="DURATION",
        help="objects that were written and not committed may be those of a load for this long (default: "
        "vacuum.grace)",
    )
    sub.add_argument(
        "--keep-history",
        action="store_true",
        help="do not purge the journal, whose entries may hold keys and bounds of the records",
    )
    sub.add_argument("--dry-run", action="store_true", help="say what holds such records; change nothing")
    sub.add_argument("--yes", action="store_true", help="do not ask (required without a terminal)")
    sub.add_argument("-o", dest="output", metavar="FILE", help="write the receipt to this file")

    sub = command("erasures", "erasing.erasures", "list the erasures of a pool, pending ones too")
    sub.add_argument("pool", nargs="?", metavar="POOL", help="default: all pools")

    sub = command(
        "verify-erasure", "erasing.verify_erasure", "check the receipt of an erasure against the store"
    )
    sub.add_argument("receipt", metavar="FILE", help="the receipt, as lake erase -o wrote it")

    sub = command("jobs", "jobs.jobs", "list what the agents did, newest first")
    sub.add_argument("pool", nargs="?", metavar="POOL", help="default: all pools")
    sub.add_argument("--agent", choices=tuple(AGENTS), metavar="A", help="only jobs of this agent")
    sub.add_argument(
        "--state", choices=("running", "done", "failed", "died", "put off"), help="only jobs in this state"
    )
    sub.add_argument(
        "--limit", type=_count, default=20, metavar="N", help="stop after this many (default: 20)"
    )

    sub = command("leases", "vacuuming.leases", "list who is at work on a pool and what that keeps")
    sub.add_argument("pool", nargs="?", metavar="POOL", help="default: all pools")

    sub = command(
        "repair",
        "repairing.repair_pool",
        "remove a bad transaction or a damaged object from a pool, so that the rest can be read",
    )
    sub.add_argument("pool", metavar="POOL")
    sub.add_argument("--object", action="append", default=[], metavar="ID", help="a data object; repeatable")
    sub.add_argument(
        "--transaction",
        action="append",
        default=[],
        metavar="N",
        help="a version or a transaction id; repeatable",
    )
    sub.add_argument("--branch", default="main", metavar="B", help="default: main")
    sub.add_argument(
        "--whole", action="store_true", help="take out objects that are whole and readable, too; do not ask"
    )
    sub.add_argument("--reason", default="", metavar="TEXT", help="a text to keep with the repair")
    sub.add_argument("--dry-run", action="store_true", help="print what would be removed; change nothing")
    sub.add_argument("--yes", action="store_true", help="do not ask (required without a terminal)")

    sub = command("fsck", "checking.fsck", "look for damage and leftovers; change nothing")
    sub.add_argument(
        "pools", nargs="*", metavar="POOL", help="pools, or lake:pools (default: everything in the lake)"
    )
    sub.add_argument("--data", action="store_true", help="read every record too, not only the footers")
    sub.add_argument(
        "--older-than",
        type=_duration,
        default=86_400.0,
        metavar="DURATION",
        help="report an object that nothing refers to only if it is older than this (default: 1d)",
    )

    sub = command(
        "rebuild", "checking.rebuild_pool", "make a pool anew from its data objects; nothing is overwritten"
    )
    sub.add_argument("pool", metavar="POOL", help="the name of the pool, or the id (its folder in the lake)")
    sub.add_argument("--name", default="", metavar="NEW", help="the name of the pool that is made")
    sub.add_argument("--key", metavar="FIELD[:desc],...", help="the key, if the objects name several")
    sub.add_argument(
        "--kind",
        metavar="append|upsert|aggregate",
        help="the kind, if the list of pools does not have the pool",
    )
    sub.add_argument(
        "--aggregate", default="", metavar="FIELD=FN,...", help="for aggregate pools, as in lake create"
    )
    sub.add_argument(
        "--guess", action="store_true", help="order objects by their ids where nothing else tells their age"
    )
    sub.add_argument(
        "--dry-run", action="store_true", help="print what would be made and what is lost; change nothing"
    )
    sub.add_argument("--yes", action="store_true", help="do not ask (required without a terminal)")

    sub = command(
        "parked", "parked.parked", "list or release files that the ingest agent cannot load and skips"
    )
    sub.add_argument("pool", metavar="POOL")
    sub.add_argument(
        "--release", action="append", default=[], metavar="FILE", help="let the agent try this file again"
    )
    sub.add_argument("--release-all", action="store_true", help="let the agent try all of them again")
    sub.add_argument("--branch", default="main", metavar="B", help="default: main")

    sub = command("completion", "completion.completion", "print the completion script of a shell")
    sub.add_argument(
        "shell", choices=SHELLS, metavar="bash|zsh|fish", help='add: eval "$(lake completion bash)"'
    )
    return parser


def _add_on_missing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--on-missing",
        choices=("fail", "warn"),
        default="fail",
        help="if a vacuum took objects of an old revision: fail (the default), or read what is left and list them",
    )


def _add_lease(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--lease", action="store_true", help="hold a lease, so that no vacuum deletes what is being read"
    )


def _add_at(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--at",
        default="main",
        metavar="R",
        help="a version, a transaction id, a branch, a tag, or BRANCH@TIME (default: main)",
    )


def _add_range(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from",
        dest="from_",
        metavar="K",
        help="begin of the range (inclusive): the value as text, or a JSON list of values",
    )
    parser.add_argument("--to", metavar="K", help="end of the range (exclusive)")


def _add_where(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--where", metavar="COND", help="a condition: \"tailnum = 'N14228' and delay > 15\"")


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=RECORD_FORMATS, help="default: json, or table on a terminal")
    parser.add_argument(
        "-o",
        dest="output",
        type=lambda text: None if text == "-" else text,
        metavar="FILE",
        help="write to this file, which appears when it is complete; -: standard output",
    )


def _duration(text: str) -> float:
    try:
        return duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from error


def _timeout(text: str) -> float:
    from lake_core.store.patience import parse_seconds  # loads slowly

    try:
        return parse_seconds(text, what="--timeout")
    except InvalidInput as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    digits = text.lstrip("0")
    return int(digits or 0) if len(digits) <= 18 else sys.maxsize  # more than any pool holds: no limit


if __name__ == "__main__":
    sys.exit(main())
