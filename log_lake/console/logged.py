"""What a command says on standard error: the lines of its log, and the error that ended it.

A line may repeat any stored text that a writer of a pool chose: an author, a message, the address of a file.
So each is printed on one line, without secrets, and without characters that change how a terminal shows the
text after them.

Callers: the `lake` command, `lake-agent`, the applications on Spark.
"""

from __future__ import annotations

import logging

from lake_core.errors import LakeError, without_secrets
from lake_core.phrases import printable
from log_lake.console.sink import print_message


class LineFormatter(logging.Formatter):
    """Writes a message as one line; a traceback below it keeps its lines.  Neither shows secrets of addresses."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return printable(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        return without_secrets(super().format(record))


def log_to_stderr(*packages: str) -> None:
    """Log to standard error, one message per line: warnings of all libraries, and what these packages
    decide."""
    handler = logging.StreamHandler()
    handler.setFormatter(LineFormatter("%(message)s"))
    logging.basicConfig(handlers=[handler])
    for package in packages:
        logging.getLogger(package).setLevel(logging.INFO)


def error_text(error: LakeError) -> str:
    """Returns the error on one line; behind it the lines that show a place in SQL, as they are."""
    lines = str(error).splitlines()
    shown = next((number for number, line in enumerate(lines) if line.startswith("LINE ")), len(lines))
    return "\n".join(map(printable, [" ".join(" ".join(lines[:shown]).split()), *lines[shown:]]))


def say_error(what: str, error: LakeError) -> None:
    """Print `WHAT: ERROR` as one line on standard error; `what` is the thing that failed."""
    print_message(f"{what}: {error_text(error)}\n")
