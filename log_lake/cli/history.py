"""Commands about the history: log, inspect."""

from __future__ import annotations

import datetime as dt
import sys
from argparse import Namespace
from itertools import islice
from typing import Any

from lake_core.naming import MAIN
from lake_core.phrases import human_time
from lake_core.records import Transaction
from log_lake.cli.opening import open_lake
from log_lake.console.output import print_json, print_table, terminal_width
from log_lake.lake.counting import METADATA, removed_records
from log_lake.lake.pool import Pool
from log_lake.system_tables.inspection import inspect_object
from log_lake.system_tables.tables import added_records

COLUMNS = ["version", "transaction_id", "time", "branch", "added", "removed", "message", "author", "actions"]
COLUMNS += ["metadata", "token", "parent"]
"""The columns of the table, those that identify a transaction first: a narrow terminal shows no others."""

WHOLE = ("transaction_id", "time", "branch", "token")
"""Columns that are shown whole, or not at all."""


def log(args: Namespace) -> None:
    """Print the transactions, newest first."""
    pool = open_lake(args).pool(args.pool)
    transactions = islice(pool.log(branch=args.branch), args.limit)
    if args.json:
        for version, t in transactions:
            print_json({"version": version, **_values(t)})
        return
    narrow = terminal_width(sys.stdout) is not None
    rows = [_for_people(version, t, narrow=narrow) for version, t in transactions]
    columns = [name for name in COLUMNS if any(row[name] not in ("", None) for row in rows)]
    if narrow and all(row["branch"] in ("", MAIN) for row in rows):
        columns = [name for name in columns if name != "branch"]
    print_table(
        [{name: row[name] for name in columns} for row in rows],
        right=("removed",),
        whole=tuple(name for name in WHOLE if name in columns),
        below="message",
        empty=f"{args.pool}: no transactions" + (" asked for" if args.limit == 0 else _begins(pool)),
    )


def _values(t: Transaction) -> dict[str, Any]:
    return {
        "transaction_id": t.id,
        "branch": t.branch,
        "parent": t.parent,
        "time": _iso_time(t.time),
        "author": t.author,
        "message": t.message,
        "metadata": t.metadata,
        "token": t.token,
        "added": added_records(t),
        "removed": removed_records(t),
        "actions": t.action_counts,
    }


def _for_people(version: int, t: Transaction, *, narrow: bool) -> dict[str, Any]:
    """Returns a line of the table; with `narrow` the time has no fractions of a second."""
    values = _values(t)
    shown_apart = () if values["removed"] is None else (METADATA,)
    return {
        **values,
        "version": version,
        "time": human_time(t.time / 1e6) if narrow else values["time"],
        "actions": " ".join(f"{kind}:{count}" for kind, count in t.action_counts.items()),
        "metadata": " ".join(f"{k}={v}" for k, v in t.metadata.items() if k not in shown_apart),
    }


def _begins(pool: Pool) -> str:
    fence = pool.history.journal.marks().fence
    return f" after {fence:,}: what came before is purged" if fence else " yet"


def inspect(args: Namespace) -> None:
    """Print any object of the lake as JSON: one field per line, or with --json all on one line."""
    print_json(inspect_object(open_lake(args).store, args.name), indented=not args.json)


def _iso_time(microseconds: int) -> str:
    """Returns a time, given in microseconds since 1970, with all its digits: `2026-11-20T12:00:00.000001Z`.

    Outside of the years 1 to 9999, ISO 8601 cannot express it; then it returns what `human_time` returns.
    """
    try:
        moment = dt.datetime.fromtimestamp(microseconds / 1e6, dt.UTC)
    except (ValueError, OverflowError, OSError):
        return human_time(microseconds / 1e6)
    return moment.isoformat().replace("+00:00", "Z")
