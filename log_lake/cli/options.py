"""The options of commands that read files, made from the one list of read options (decision 37).

`main` makes its parser with this module, which therefore imports no engine.
"""

from __future__ import annotations

import argparse
import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lake_core.errors import InvalidInput
from log_lake.settings.setting_types import FORMATS
from log_lake.settings.settings import READ_OPTIONS

if TYPE_CHECKING:
    from log_lake.lake import Lake

CHANGING = (
    "load",
    "replace",
    "delete",
    "apply",
    "drop",
    "restore",
    "compact",
    "publish",
    "tombstones",
    "repair",
    "branch",
    "merge",
    "revert",
    "undo",
    "tag",
    "expire",
    "vacuum",
    "erase",
)
"""Commands that commit transactions to a pool: they have `--meta`."""


class Writes(enum.Enum):
    """When a command changes something in the lake.  Commands that need not, work where a process may only read."""

    NEVER = "never"
    UNLESS_DRY_RUN = "unless --dry-run is given"
    BY_ARGUMENTS = "as its arguments say: it lists if they name nothing to change"
    ALWAYS = "always"


WRITES = {
    **dict.fromkeys(
        ("init", "upgrade", "create", "set", "drop", "restore", "rename", "delete"), Writes.ALWAYS
    ),
    **dict.fromkeys(("replace", "merge", "revert", "undo", "tag"), Writes.ALWAYS),
    **dict.fromkeys(("load", "apply", "tombstones", "compact", "checkpoint", "purge"), Writes.UNLESS_DRY_RUN),
    **dict.fromkeys(("expire", "vacuum", "erase", "repair", "rebuild"), Writes.UNLESS_DRY_RUN),
    **dict.fromkeys(("branch", "publish", "parked"), Writes.BY_ARGUMENTS),
    **dict.fromkeys(("ls", "show", "export", "convert", "scan", "get", "query", "explain"), Writes.NEVER),
    **dict.fromkeys(("log", "tags", "inspect", "erasures", "verify-erasure", "jobs"), Writes.NEVER),
    **dict.fromkeys(("leases", "fsck", "completion"), Writes.NEVER),
}
"""Every command: `main` makes none that is not here."""

FILES = "files, globs, folders; local or s3://, gs://; - is standard input"


def add_read_options(parser: argparse.ArgumentParser) -> None:
    """`--format`, and an option for each of READ_OPTIONS."""
    parser.add_argument(
        "--format", default="auto", choices=FORMATS, help="default: by the content and the name"
    )
    group = parser.add_argument_group("how files are read (default: the pool's settings of these names)")
    for name, option in READ_OPTIONS.items():
        group.add_argument(
            flag(name), dest=f"read:{name}", metavar="V", help=option.meaning.replace("%", "%%")
        )


def open_lake(args: argparse.Namespace) -> Lake:
    """The lake that `--lake` names, with the metadata that `--meta` gives."""
    from log_lake.lake import Lake

    return Lake.open(args.lake, metadata=_metadata(getattr(args, "meta", ())))


def _metadata(words: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name or name in pairs:
            raise InvalidInput(f"--meta {word!r}: write NAME=TEXT, each name once")
        pairs[name] = value
    return pairs


def flag(name: str) -> str:
    """The command's option for a read option: `csv.null` is `--csv-null`."""
    return "--" + name.replace(".", "-").replace("_", "-")


def read_options(args: argparse.Namespace) -> dict[str, str]:
    """The read options that were given, as text; raises InvalidInput for one that cannot be read."""
    given = {name: getattr(args, f"read:{name}", None) for name in READ_OPTIONS}
    for name, text in given.items():
        if text is None:
            continue
        try:
            READ_OPTIONS[name].parse(text)
        except ValueError as error:
            raise InvalidInput(f"{flag(name)} {text}: {error}") from error
    return {name: text for name, text in given.items() if text is not None}
