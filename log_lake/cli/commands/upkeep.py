"""The commands that keep a pool fast and small, and that publish it."""

from __future__ import annotations

from argparse import ArgumentParser

from log_lake.cli.arguments import add_at, count, duration, positive
from log_lake.cli.command import Command, Writes
from log_lake.compaction import strategies
from log_lake.indexes.rule import KINDS


def _publish(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL", help="a pool, or POOL@BRANCH (default: main)")
    parser.add_argument("--as", dest="form", choices=("iceberg",), default="iceberg", help="default: iceberg")
    parser.add_argument(
        "--to",
        default="beside",
        metavar="URI",
        help="folder of the table (default: beside the pool's objects)",
    )
    parser.add_argument(
        "--without",
        metavar="A,B",
        help='leave these fields out (default: those that the table leaves out; "": none)',
    )
    parser.add_argument("--status", action="store_true", help="print the published version and its lag")


def _compact(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL")
    parser.add_argument("--branch", default="main", metavar="B", help="default: main")
    parser.add_argument(
        "--strategy",
        choices=strategies.names(),
        help="use this instead of the pool's compact.strategy; full: merge all overlapping objects",
    )
    parser.add_argument(
        "-j",
        dest="processes",
        type=positive,
        default=1,
        metavar="N",
        help="rewrite in N processes; each job is committed as it ends (default: 1)",
    )
    parser.add_argument("--dry-run", action="store_true", help="print the plan; change nothing")


def _split(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL")
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--at",
        action="append",
        default=[],
        metavar="KEY",
        help="split at this key: the value as text, or a JSON list of values; repeatable",
    )
    how.add_argument(
        "--into", type=count, metavar="N", help="split into at most N ranges with about equally many bytes"
    )
    parser.add_argument(
        "--sample",
        action="append",
        default=[],
        metavar="FILE",
        help="with --into: by the keys of this file or folder, not of the pool's records; repeatable",
    )


def _unsplit(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL")
    parser.add_argument(
        "--at",
        action="append",
        default=[],
        metavar="KEY",
        help="remove the split point at this key; repeatable (default: all split points)",
    )


def _ranges(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL")
    add_at(parser)


def _checkpoint(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL", help="a pool, or lake:pools")
    parser.add_argument("--dry-run", action="store_true", help="say whether one is due; change nothing")


def _purge(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL", help="a pool, or lake:pools")
    parser.add_argument(
        "--keep",
        type=duration,
        metavar="DURATION",
        help="keep entries younger than this: 0s, 6h, 30d (default: history.keep)",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print how many entries would be deleted; change nothing"
    )


def _expire(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL")
    parser.add_argument("--branch", default="main", metavar="B", help="default: main")
    parser.add_argument(
        "--dry-run", action="store_true", help="print which records would be removed and why; change nothing"
    )


def _index(parser: ArgumentParser) -> None:
    parser.add_argument(
        "action",
        choices=("create", "drop", "ls", "show", "make", "summary"),
        help="create, drop or list index rules; show how many objects have their indexes; make missing ones; "
        "print distinct values and quantiles of a field",
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="POOL FIELD; POOL NAME; [POOL]; POOL; POOL; POOL FIELD"
    )
    add_at(parser)
    parser.add_argument(
        "--kind", choices=KINDS, default=KINDS[0], help="with create: the kind (default: bloom)"
    )
    parser.add_argument("--name", metavar="N", help="with create: the rule's name (default: by the field)")


COMMANDS = (
    Command(
        name="index",
        help="index rules: which objects lack a value of a field, or how many values they have",
        run="indexing.index",
        writes=Writes.BY_ARGUMENTS,
        arguments=_index,
    ),
    Command(
        name="publish",
        help="publish a branch as an Iceberg table, which other programs read; no data is copied",
        run="publishing.publish",
        writes=Writes.BY_ARGUMENTS,
        arguments=_publish,
        keeps_metadata=True,
    ),
    Command(
        name="compact",
        help="merge overlapping objects, so that reading stays fast",
        run="compaction.compact",
        writes=Writes.UNLESS_DRY_RUN,
        arguments=_compact,
        keeps_metadata=True,
    ),
    Command(
        name="split",
        help="split the keys of a large pool into ranges, which are compacted apart",
        run="ranges.split",
        writes=Writes.ALWAYS,
        arguments=_split,
        keeps_metadata=True,
    ),
    Command(
        name="unsplit",
        help="remove split points, so that ranges become one",
        run="ranges.unsplit",
        writes=Writes.ALWAYS,
        arguments=_unsplit,
        keeps_metadata=True,
    ),
    Command(
        name="ranges",
        help="list the ranges between a pool's split points, with what each holds",
        run="ranges.ranges",
        writes=Writes.NEVER,
        arguments=_ranges,
    ),
    Command(
        name="checkpoint",
        help="write a checkpoint so that the pool opens quickly",
        run="upkeep.checkpoint",
        writes=Writes.UNLESS_DRY_RUN,
        arguments=_checkpoint,
    ),
    Command(
        name="purge",
        help="delete old journal entries that a checkpoint covers",
        run="upkeep.purge",
        writes=Writes.UNLESS_DRY_RUN,
        arguments=_purge,
    ),
    Command(
        name="expire",
        help="remove old records, as the pool's settings expire.* say",
        run="upkeep.expire",
        writes=Writes.UNLESS_DRY_RUN,
        arguments=_expire,
        keeps_metadata=True,
    ),
)
