"""`lake shell`: a prompt for SQL over pools, made of Python's own `cmd`.

Each statement is one SELECT, on a connection of its own that is as restricted as that of `lake query`
(docs/trust.md).  It ends with a semicolon; a line may have several.  Arrow keys and history come from readline,
if Python has it.
"""

from __future__ import annotations

import cmd
import contextlib
import sys
from argparse import Namespace
from collections.abc import Callable
from functools import partial

import pyarrow as pa

from lake_core.errors import InvalidInput, LakeError
from lake_core.phrases import did_you_mean
from lake_core.values.types import show_type
from log_lake.cli.opening import open_lake
from log_lake.console.logged import error_text
from log_lake.console.output import print_table, say, write_records
from log_lake.lake import Lake
from log_lake.system_tables import query
from log_lake.system_tables.sql import check_files
from log_lake.system_tables.statement import split

HELP = """\
one SELECT, ended by a semicolon:   SELECT count(*) FROM "logs";   also "logs@7", "logs:objects", "lake:pools"
.pools                              the pools
.fields POOL                        the fields of a pool
.quit                               end, as Ctrl-D does
"""


def shell(args: Namespace) -> None:
    """Answer statements until the input ends."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - cmd then has a history
    check_files(args.files)
    prompt = Prompt(open_lake(args), args.files, as_json=args.json)
    is_terminal = sys.stdin.isatty()
    prompt.prompts = is_terminal
    if is_terminal:
        say(f"{prompt.lake.store.uri}: SQL over its pools; .help for more, Ctrl-D to end")
    prompt.use_rawinput = is_terminal
    prompt.run()


class Prompt(cmd.Cmd):
    """The prompt: lines in, statements out."""

    def __init__(self, lake: Lake, files: list[str], *, as_json: bool) -> None:
        super().__init__()
        self.lake, self._files, self._as_json = lake, files, as_json
        self.prompts = True
        self._lines: list[str] = []
        self.failed: LakeError | None = None

    def run(self) -> None:
        """Read to the end of the input; without a terminal the first error ends it.  Raises that error."""
        self.prompt = "lake> " if self.prompts else ""
        while True:  # ends at the end of the input, .quit or an error of a script
            try:
                self.cmdloop()
                break
            except KeyboardInterrupt:  # forget the statement, go on
                self._reset()
                sys.stderr.write("\n")
        if self.failed is not None:
            raise self.failed

    def onecmd(self, line: str) -> bool:
        """Takes a line, and returns whether it ends the prompt."""
        if line == "EOF":
            return self._end()
        if not self._lines and line.startswith("."):
            return self._guarded(lambda: self._dot(line))
        if line.strip() or self._lines:
            self._lines.append(line)
        if ";" in line:
            statements, rest = split("\n".join(self._lines))
            self._reset()
            self._lines = [rest] if rest else []
            for sql in statements:
                if self._guarded(partial(self._ask, sql)):
                    return True
        self.prompt = "  ... " if self.prompts and self._lines else self.prompt
        return False

    def _end(self) -> bool:
        rest = "\n".join(self._lines)
        self._reset()
        if rest.strip() and not self.prompts:  # the last statement of a script may lack its semicolon
            self._guarded(lambda: self._ask(rest))
        return True

    def _reset(self) -> None:
        self._lines = []
        self.prompt = "lake> " if self.prompts else ""

    def _guarded(self, work: Callable[[], bool]) -> bool:
        try:
            return work()
        except LakeError as error:
            if self.prompts:
                say(error_text(error))
                return False
            self.failed = error
            return True

    def _ask(self, sql: str) -> bool:
        reader = query(self.lake, sql, files=self._files)
        tables = (pa.Table.from_batches([batch]) for batch in reader)
        write_records(tables, reader.schema, format="json" if self._as_json else "table", path=None)
        return False

    def _dot(self, line: str) -> bool:
        word, _, rest = line.strip().partition(" ")
        match word:
            case ".quit" | ".exit":
                return True
            case ".help":
                say(HELP.rstrip())
            case ".pools":
                print_table(
                    [{"pool": one.name, "key": str(one.key)} for one in self.lake.pools()], empty="no pools"
                )
            case ".fields":
                fields = self.lake.pool(rest.strip()).at().schema
                print_table([{"field": f.name, "type": show_type(f)} for f in fields], empty="no fields yet")
            case _:
                near = did_you_mean(word, [".pools", ".fields", ".help", ".quit"])
                raise InvalidInput(f"unknown command {word}: {near}")
        return False
