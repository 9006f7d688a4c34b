"""The commands about transactions, branches and tags."""

from __future__ import annotations

from argparse import ArgumentParser

from log_lake.cli.arguments import count
from log_lake.cli.command import Command, Writes


def _log(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL")
    parser.add_argument("--branch", metavar="B", help="only transactions of this branch")
    parser.add_argument("--limit", type=count, metavar="N", help="stop after this many")


def _branch(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL")
    parser.add_argument("name", nargs="?", metavar="NAME", help="the branch to create")
    parser.add_argument(
        "--at",
        metavar="R",
        help="begin on this revision (default: main); on NAME@N: restore the deleted branch NAME",
    )
    parser.add_argument("-d", "--delete", metavar="NAME", help="delete this branch; it can be restored")


def _merge(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL")
    parser.add_argument("child", metavar="CHILD", help="the branch to merge")
    parser.add_argument(
        "--into", metavar="B", help="the branch that CHILD was created from (default: that one)"
    )
    parser.add_argument("--message", default="", metavar="M", help="a text to keep with the transaction")


def _revert(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL")
    parser.add_argument("revision", metavar="N", help="a version of the branch, or a transaction id")
    parser.add_argument("--branch", default="main", metavar="B", help="default: main")


def _tag(parser: ArgumentParser) -> None:
    parser.add_argument("pool", nargs="?", metavar="POOL", help="left out with --all")
    parser.add_argument("name", nargs="?", metavar="NAME", help="the tag to set")
    parser.add_argument(
        "--all",
        action="store_true",
        help="the newest version of every pool, or with -d each pool that has the tag",
    )
    parser.add_argument("--at", metavar="R", help="the revision to name (default: main)")
    parser.add_argument("--reason", default="", metavar="TEXT", help="why it is kept")
    parser.add_argument(
        "--expires", metavar="T", help="a time (ISO 8601), or from now on: 30d, 12h (default: never)"
    )
    parser.add_argument("-d", "--delete", metavar="NAME", help="delete this tag")


def _tags(parser: ArgumentParser) -> None:
    parser.add_argument("pool", nargs="?", metavar="POOL", help="default: all pools")
    parser.add_argument("--cost", action="store_true", help="say what bytes each tag alone keeps")


def _inspect(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME")


COMMANDS = (
    Command(
        name="log",
        help="list the transactions of a pool, newest first",
        run="history.log",
        writes=Writes.NEVER,
        arguments=_log,
    ),
    Command(
        name="branch",
        help="list the branches of a pool; create, restore or delete one",
        run="branching.branch",
        writes=Writes.BY_ARGUMENTS,
        arguments=_branch,
        keeps_metadata=True,
    ),
    Command(
        name="merge",
        help="merge a branch's writes into its parent",
        run="branching.merge",
        writes=Writes.ALWAYS,
        arguments=_merge,
        keeps_metadata=True,
    ),
    Command(
        name="revert",
        help="take back a transaction by a new one, which can be reverted too",
        run="branching.revert",
        writes=Writes.ALWAYS,
        arguments=_revert,
        keeps_metadata=True,
    ),
    Command(
        name="undo",
        help="take back maintenance: a compaction, applied deletes",
        run="branching.undo",
        writes=Writes.ALWAYS,
        arguments=_revert,
        keeps_metadata=True,
    ),
    Command(
        name="tag",
        help="name a revision and keep it from every clean-up; or delete a tag",
        run="branching.tag",
        writes=Writes.ALWAYS,
        arguments=_tag,
        keeps_metadata=True,
    ),
    Command(
        name="tags",
        help="list tags, and the deleted branches that can be restored",
        run="branching.tags",
        writes=Writes.NEVER,
        arguments=_tags,
    ),
    Command(
        name="inspect",
        help="print any object of the lake as JSON",
        run="history.inspect",
        writes=Writes.NEVER,
        arguments=_inspect,
    ),
)
