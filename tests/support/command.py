"""Runs the `lake` command in this process, on a lake of its own, and checks what all commands promise.

Every call must end with a status from the table. Its error must be exactly one line on standard error that
begins with `lake` (an error in SQL has more, which show the place), and no output may have a traceback. An
exception that leaves `main` fails the test as it is.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from log_lake.cli.main import main
from tests.support.files import as_bytes, pool_settings

VERDICTS = {"doctor": (1, 2), "verify": (1,)}
"""Exit statuses that are answers and no errors, of commands that have such."""

DONE, USAGE, NOT_FOUND, ALREADY_EXISTS, CONFLICT, CORRUPT, INVALID_INPUT = 0, 2, 3, 4, 5, 8, 9


@dataclass(frozen=True)
class Outcome:
    """The status and the output of one command."""

    status: int
    output: bytes
    err: str

    @property
    def out(self) -> str:
        return self.output.decode()

    @property
    def records(self) -> list[Any]:
        """The JSON values that it printed, one on each line."""
        return [json.loads(line) for line in self.out.split("\n") if line]


@dataclass(frozen=True)
class Command:
    """Runs commands against the lake at `uri`; files are written below `folder`."""

    uri: str
    folder: Path

    def run(self, *words: str) -> Outcome:
        """Runs a command. Returns its outcome, whatever its status is."""
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        err = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = main([words[0], "--lake", self.uri, *words[1:]])
            except SystemExit as stop:  # argparse: usage
                status = int(stop.code or 0)
        outcome = Outcome(status, out.buffer.getvalue(), err.getvalue())  # type: ignore[attr-defined]
        assert "Traceback" not in outcome.err
        is_verdict = status in VERDICTS.get(words[0], ()) and bool(outcome.output)
        if status != DONE and not is_verdict:
            said = [line for line in outcome.err.splitlines() if not line.startswith("lake: warning: ")]
            if "--json" in words:
                error = json.loads(said[-1])
                assert (set(error), error["status"]) == ({"error", "kind", "status"}, status)
                return outcome
            prog = f"lake {words[0]}" if status == USAGE else "lake"
            assert said[0].startswith((f"{prog}: ", "lake: unknown command ")), outcome.err
            assert not said[1:] or said[1].startswith("LINE "), f"an error is one line: {outcome.err!r}"
            assert outcome.err.endswith("\n")
        return outcome

    def __call__(self, *words: str) -> Outcome:
        """Runs a command that must succeed; any other status fails the test."""
        outcome = self.run(*words)
        assert outcome.status == DONE, f"{words}: status {outcome.status}: {outcome.err}"
        return outcome

    def answers(self, status: int, *words: str) -> Outcome:
        """Runs a command that must end with `status`, which is an answer and no error."""
        outcome = self.run(*words)
        assert outcome.status == status, f"{words}: status {outcome.status}, not {status}: {outcome.err!r}"
        return outcome

    def fails(self, status: int, *words: str) -> str:
        """Runs a command that must end with `status`. Returns the line of its error."""
        outcome = self.run(*words)
        assert outcome.status == status, f"{words}: status {outcome.status}, not {status}: {outcome.err!r}"
        if "--json" in words:
            return str(json.loads(outcome.err.splitlines()[-1])["error"])
        return outcome.err.strip()

    def file(self, name: str, content: str | bytes | list[Any]) -> str:
        """Writes a file below the folder: text or bytes unchanged, a list as NDJSON; compressed if the name ends
        in `.gz`."""
        data = as_bytes(content)
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)
        return str(path)

    def pool(
        self, name: str = "p", *, key: str = "k", types: dict[str, str] | None = None, **settings: str
    ) -> str:
        """Makes a pool. In names of settings an underscore stands for a dot: `load_memory` for
        `load.memory`."""
        declared = [word for field, kind in (types or {}).items() for word in ("--type", f"{field}={kind}")]
        chosen = [f"{name}={value}" for name, value in pool_settings(settings).items()]
        self("create", name, "--key", key, *declared, *(["--set", *chosen] if chosen else []))
        return name

    def load(self, pool: str, *files: str) -> dict[str, Any]:
        """Runs a load that must succeed. Returns what it reports."""
        return self("load", pool, *files, "--json").records[0]

    def load_records(
        self, pool: str, records: str | bytes | list[Any], name: str = "data.ndjson"
    ) -> dict[str, Any]:
        """Writes records into a file and loads it. Returns what the load reports."""
        return self.load(pool, self.file(name, records))

    def scan(self, pool: str, *words: str) -> list[dict[str, Any]]:
        """Returns the pool's records in the order of the scan."""
        return self("scan", pool, "--format", "json", *words).records

    def query(self, sql: str) -> list[dict[str, Any]]:
        """Returns the rows of a query."""
        return self("query", sql, "--format", "json").records

    def history(self, pool: str) -> list[dict[str, Any]]:
        """Returns the pool's transactions, newest first."""
        return self("log", pool, "--json").records

    def refuses(self, pool: str, *files: str) -> str:
        """Runs a load that must be refused as InvalidInput, and checks that the pool is unchanged. Returns the
        line of the error."""
        before = self.history(pool), self.scan(pool), self("ls", "--json").out
        message = self.fails(INVALID_INPUT, "load", pool, *files)
        assert (self.history(pool), self.scan(pool), self("ls", "--json").out) == before
        return message

    def refuses_records(self, pool: str, records: str | bytes | list[Any], name: str = "data.ndjson") -> str:
        """Writes records into a file, which a load must refuse. Returns the line of the error, which must name the
        file."""
        message = self.refuses(pool, self.file(name, records))
        assert name in message
        return message


@pytest.fixture
def lake(tmp_path: Path) -> Command:
    """A new lake, and a folder for the files of the test."""
    command = Command(str(tmp_path / "lake"), tmp_path / "landing")
    command.folder.mkdir()
    command("init")
    return command


@pytest.fixture
def three_loads(lake: Command) -> str:
    """Makes a pool with three transactions of one record each: the keys 1, 2 and 3."""
    lake.pool()
    for n in (1, 2, 3):
        lake.load_records("p", [{"k": n}], f"{n}.ndjson")
    return "p"


def without_nulls(value: Any) -> Any:
    """Returns a JSON value without null fields of records, because a columnar object does not distinguish null and
    missing."""
    if isinstance(value, dict):
        return {name: without_nulls(member) for name, member in value.items() if member is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value
