"""The options of commands that read files, made from the one list of read options (decision 37).

`lake --help` makes its parser with this module, which therefore imports no engine.
"""

from __future__ import annotations

import argparse

from lake_core.errors import InvalidInput
from log_lake.loading.options import FORMATS, READ_OPTIONS

FILES = "files, globs, folders; local or s3://, gs://; - is standard input"


def add_read_options(parser: argparse.ArgumentParser) -> None:
    """Adds `--format`, and an option for each of READ_OPTIONS."""
    parser.add_argument(
        "--format", default="auto", choices=FORMATS, help="default: by the content and the name"
    )
    group = parser.add_argument_group("how files are read (default: the pool's settings of these names)")
    for name, option in READ_OPTIONS.items():
        group.add_argument(
            flag(name), dest=f"read:{name}", metavar="V", help=option.meaning.replace("%", "%%")
        )


def flag(name: str) -> str:
    """Returns the command's option for a read option: `csv.null` is `--csv-null`."""
    return "--" + name.replace(".", "-").replace("_", "-")


def read_options(args: argparse.Namespace) -> dict[str, str]:
    """Returns the read options that were given, as text.  Raises InvalidInput for one that cannot be read."""
    given = {name: getattr(args, f"read:{name}", None) for name in READ_OPTIONS}
    for name, text in given.items():
        if text is None:
            continue
        try:
            READ_OPTIONS[name].parse(text)
        except ValueError as error:
            raise InvalidInput(f"{flag(name)} {text}: {error}") from error
    return {name: text for name, text in given.items() if text is not None}
