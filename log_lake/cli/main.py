"""The entry point of the `lake` command: arguments in, exit status out.

Exit status: 0 done; 2 usage; otherwise the error's own (`errors`); 1 for any other error.  `lake doctor` also
answers with 1 and 2, its verdicts (decision 351).  An error is one line; only an error in SQL has more, which
show the place.  A command's module is imported when the command runs, so that `lake --help` answers at once.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType

from lake_core.errors import InvalidInput, LakeError, OutputFailed
from log_lake.cli.commands import COMMANDS, GROUPS
from log_lake.console.logged import LineFormatter, error_text
from log_lake.console.parser import Parser, check_text, json_error, wants_json
from log_lake.console.sink import abandon, complain, flush, open_missing, print_message, print_text

LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)
"""The level of logging without `-v`, with one, and with two."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status.

    Without `argv` it reads the arguments of the process, and then changes the process too: pandas cannot be
    imported.
    """
    if argv is None:
        sys.meta_path.insert(0, _NoPandas())
        gc.disable()  # until the command's modules are imported: they only bring what stays
    open_missing()
    status = 0
    try:
        try:
            status = _run(argv)
        finally:
            flush()  # also of what argparse prints before it exits
    except LakeError as error:
        _complain(argv, error_text(error), kind=type(error).__name__, status=error.exit_status)
        if isinstance(error, OutputFailed):
            abandon()
        return error.exit_status
    except BrokenPipeError:  # the reader of our output has seen enough
        abandon()
    except KeyboardInterrupt:
        _complain(argv, "interrupted", kind="Interrupted", status=130)
        return 130
    return status


def _complain(argv: Sequence[str] | None, message: str, *, kind: str, status: int) -> None:
    """Print the error on standard error; with --json as JSON."""
    if wants_json(sys.argv[1:] if argv is None else argv):
        print_message(json_error(message, kind=kind, status=status))
    else:
        complain(message)


def _run(argv: Sequence[str] | None) -> int:
    """Run the command; returns the exit status of one that did its work."""
    words = sys.argv[1:] if argv is None else argv
    parser = build_parser(only=words[0] if words and words[0] in COMMANDS else "")
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what may come next (`lake completion`)
        from log_lake.cli import completion

        completion.answer(parser)
    args = parser.parse_args(argv)
    check_text(args)
    from log_lake.cli.waiting import shown_waiting  # these load slowly, and --help needs neither
    from log_lake.stores.patience import lasting

    function = COMMANDS[args.command].function()
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
    with _logging(args.verbose), lasting(args.timeout), shown_waiting():
        return function(args) or 0


class _NoPandas:
    """Stands first in `sys.meta_path`, so that `import pandas` fails as if it were not installed.

    Arrow imports pandas, if it is installed, at the first value that it takes from Python: 300 modules, a quarter
    of the processor time of a `lake get`.  No command needs pandas.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(f"the lake command runs without {name}", name=name)


@contextlib.contextmanager
def _logging(verbose: int) -> Iterator[None]:
    """While the command runs, the library's log goes to standard error: warnings; with `-v`, decisions too."""
    loggers = [logging.getLogger(package) for package in ("lake_core", "log_lake")]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        LineFormatter(
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


def build_parser(*, only: str = "") -> Parser:
    """Returns the parser of all commands, or of `only` one, because making sixty parsers takes a while."""
    parser = Parser(
        prog="lake",
        usage="lake [OPTION...] COMMAND ...",
        description="A log-structured lake on an object store.",
        groups={name: [(one.name, one.help) for one in group] for name, group in GROUPS.items()},
    )
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
            help="log decisions to standard error (-vv: debug)",
        )
    parser.set_defaults(lake=os.environ.get("LAKE", ""), verbose=0, timeout=None)
    commands = parser.add_subparsers(
        dest="command",
        required=True,
        metavar="COMMAND",
        prog="lake",
        help=argparse.SUPPRESS,
        parser_class=Parser,
    )
    for command in [COMMANDS[only]] if only else COMMANDS.values():
        sub = commands.add_parser(command.name, parents=[common], help=command.help, description=command.help)
        if command.keeps_metadata:
            sub.add_argument(
                "--meta",
                action="append",
                default=[],
                metavar="NAME=TEXT",
                help="a text to keep with the transactions under this name; repeatable",
            )
        command.arguments(sub)
    return parser


def _timeout(text: str) -> float:
    from log_lake.stores.patience import parse_seconds  # loads slowly

    try:
        return parse_seconds(text, what="--timeout")
    except InvalidInput as error:
        raise argparse.ArgumentTypeError(str(error)) from error


if __name__ == "__main__":
    sys.exit(main())
