"""The commands that make, list, show, change and drop a lake's pools, or set them up from a file."""

from __future__ import annotations

from argparse import ArgumentParser

from lake_core.naming import FORMATS
from log_lake.cli.arguments import add_at, add_range
from log_lake.cli.command import Command, Writes


def _ls(parser: ArgumentParser) -> None:
    parser.add_argument("--dropped", action="store_true", help="list dropped pools, which can be restored")


def _rekey(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL")
    parser.add_argument("new", metavar="NEW")
    parser.add_argument(
        "--key", required=True, metavar="FIELD[:desc],...", help="the fields that its records are sorted by"
    )
    parser.add_argument(
        "--kind", metavar="append|upsert", help="the kind of the new pool (default: that of POOL)"
    )
    add_at(parser)


def _clone(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL")
    parser.add_argument("new", metavar="NEW")
    add_at(parser)
    parser.add_argument("--to", metavar="URI", help="make NEW in this lake, with copies of the objects")


def _derive(parser: ArgumentParser) -> None:
    parser.add_argument("pool", nargs="?", metavar="NAME")
    parser.add_argument(
        "--from", dest="source", metavar="POOL", help="make NAME from the records of this pool"
    )
    parser.add_argument(
        "--query", metavar="SQL", help="with --from: the SELECT from POOL whose answer NAME holds from now on"
    )
    parser.add_argument(
        "--key",
        default="",
        metavar="FIELD[:desc],...",
        help="with --from: the columns that the records are sorted by (default: the groups, or the key of POOL)",
    )
    parser.add_argument(
        "--set", nargs="+", default=[], action="extend", metavar="K=V", help="with --from: settings of NAME"
    )
    parser.add_argument("--run", action="store_true", help="keep NAME, or all derived pools, now")
    parser.add_argument("--dry-run", action="store_true", help="say what would be computed; change nothing")


def _create(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL")
    parser.add_argument(
        "--key", required=True, metavar="FIELD[:desc],...", help="the fields that the records are sorted by"
    )
    parser.add_argument(
        "--kind",
        default="append",
        metavar="append|upsert|aggregate",
        help="append: keep all records of a key (default); upsert: keep the newest; aggregate: combine them",
    )
    parser.add_argument(
        "--aggregate",
        default="",
        metavar="FIELD=FN,...",
        help="for aggregate pools: sum, min, max, count, first, last (the default), any_value",
    )
    parser.add_argument(
        "--type", action="append", default=[], metavar="FIELD=TYPE", help="declare a field's type"
    )
    parser.add_argument(
        "--format",
        metavar="|".join(FORMATS),
        help="the format of the objects: fields united (parquet, the default), or records as they came, "
        "in rows (zng) or columns (zst)",
    )
    parser.add_argument(
        "--set",
        nargs="+",
        default=[],
        action="extend",
        metavar="K=V",
        help="set settings (lake show lists them)",
    )


def _show(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL")
    add_at(parser)
    parser.add_argument("--all", action="store_true", help="show also the settings that have their defaults")


def _fields(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL")
    parser.add_argument(
        "edit",
        nargs="*",
        metavar="EDIT",
        help="rename OLD NEW, drop FIELD, or add FIELD TYPE: one small transaction, nothing is rewritten "
        "(default: list them)",
    )
    add_at(parser)


def _set(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL")
    parser.add_argument("settings", nargs="+", metavar="K=V")


def _apply(parser: ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", metavar="FILE", help="a policy file in YAML; - is standard input")
    parser.add_argument("--dry-run", action="store_true", help="print the difference; change nothing")
    parser.add_argument("--prune", action="store_true", help="drop the pools that the file does not name")
    parser.add_argument(
        "--yes",
        action="store_true",
        help="do not ask before pools are dropped or agents remove more (required without a terminal)",
    )
    parser.add_argument("--schema", action="store_true", help="print the JSON schema of policy files")


def _export(parser: ArgumentParser) -> None:
    parser.add_argument("pools", nargs="*", metavar="POOL", help="default: all pools")
    parser.add_argument("-o", dest="output", metavar="FILE", help="write to this file")


def _drop(parser: ArgumentParser) -> None:
    parser.add_argument(
        "pool", metavar="POOL", help="a pool, or the id of a folder that the list of pools does not have"
    )
    add_range(parser)
    parser.add_argument("--branch", metavar="B", help="with --from or --to: of this branch (default: main)")
    parser.add_argument("--yes", action="store_true", help="do not ask (required without a terminal)")


def _restore(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL", help="its name, or NAME#ID if several had the name")
    parser.add_argument("--as", dest="new", default="", metavar="NAME", help="list it under this name")


def _rename(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL")
    parser.add_argument("new", metavar="NEW")


COMMANDS = (
    Command(name="init", help="make a lake at --lake", run="pools.init", writes=Writes.ALWAYS),
    Command(name="ls", help="list the pools", run="pools.ls", writes=Writes.NEVER, arguments=_ls),
    Command(
        name="upgrade",
        help="raise the lake to the newest format version; older programs stop at it",
        run="pools.upgrade",
        writes=Writes.ALWAYS,
    ),
    Command(name="create", help="make a pool", run="pools.create", writes=Writes.ALWAYS, arguments=_create),
    Command(
        name="rekey",
        help="make a pool NEW with another key from the records of a pool",
        run="pools.rekey_",
        writes=Writes.ALWAYS,
        arguments=_rekey,
        keeps_metadata=True,
    ),
    Command(
        name="clone",
        help="make a pool NEW that begins with the records of a pool, without copying its objects",
        run="pools.clone",
        writes=Writes.ALWAYS,
        arguments=_clone,
        keeps_metadata=True,
    ),
    Command(
        name="derive",
        help="make a pool NAME that holds the answer of a query over a pool, or keep such pools; alone: list them",
        run="deriving.derive_",
        writes=Writes.BY_ARGUMENTS,
        arguments=_derive,
        keeps_metadata=True,
    ),
    Command(
        name="show",
        help="show a pool: layout, fields, settings",
        run="pools.show",
        writes=Writes.NEVER,
        arguments=_show,
    ),
    Command(
        name="fields",
        help="list the fields of a pool; rename one (rename OLD NEW) or drop one (drop FIELD)",
        run="fields.fields",
        writes=Writes.BY_ARGUMENTS,
        arguments=_fields,
        keeps_metadata=True,
    ),
    Command(
        name="set",
        help="change a pool's settings (K= resets K to its default)",
        run="pools.set_",
        writes=Writes.ALWAYS,
        arguments=_set,
    ),
    Command(
        name="apply",
        help="make the pools as a file says; print the difference first",
        run="applying.apply",
        writes=Writes.UNLESS_DRY_RUN,
        arguments=_apply,
        keeps_metadata=True,
    ),
    Command(
        name="export",
        help="print pools as a policy file, which lake apply takes",
        run="applying.export_pools",
        writes=Writes.NEVER,
        arguments=_export,
    ),
    Command(
        name="drop",
        help="remove a pool (lake restore takes it back); with --from or --to: remove the records of that range",
        run="pools.drop",
        writes=Writes.ALWAYS,
        arguments=_drop,
        keeps_metadata=True,
    ),
    Command(
        name="restore",
        help="take a dropped pool back, until the vacuum has deleted it",
        run="pools.restore",
        writes=Writes.ALWAYS,
        arguments=_restore,
        keeps_metadata=True,
    ),
    Command(
        name="rename",
        help="give a pool another name",
        run="pools.rename",
        writes=Writes.ALWAYS,
        arguments=_rename,
    ),
)
