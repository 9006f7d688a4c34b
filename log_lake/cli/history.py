"""Commands about the history: log, inspect."""

from __future__ import annotations

import datetime as dt
from argparse import Namespace
from itertools import islice

from lake_core.phrases import human_time
from log_lake.cli.opening import open_lake
from log_lake.console.output import print_json, print_table
from log_lake.lake.pool import Pool
from log_lake.system_tables.inspection import inspect_object
from log_lake.system_tables.tables import added_records

COLUMNS = ["version", "transaction_id", "time", "branch", "added", "message", "author", "actions", "metadata"]
COLUMNS += ["token", "parent"]
"""The columns of the table, those that identify a transaction first: a narrow terminal shows no others."""

WHOLE = ("transaction_id", "time", "branch", "token")
"""Columns that are shown whole, or not at all."""


def log(args: Namespace) -> None:
    """Transactions newest first."""
    pool = open_lake(args).pool(args.pool)
    rows = [
        {
            "version": version,
            "transaction_id": t.id,
            "branch": t.branch,
            "parent": t.parent,
            "time": _iso_time(t.time),
            "author": t.author,
            "message": t.message,
            "metadata": t.metadata,
            "token": t.token,
            "added": added_records(t),
            "actions": t.action_counts,
        }
        for version, t in islice(pool.log(branch=args.branch), args.limit)
    ]
    if args.json:
        for row in rows:
            print_json(row)
        return
    for row in rows:
        counts = row["actions"]
        assert isinstance(counts, dict)
        row["actions"] = " ".join(f"{kind}:{count}" for kind, count in counts.items())
        pairs = row["metadata"]
        assert isinstance(pairs, dict)
        row["metadata"] = " ".join(f"{name}={value}" for name, value in pairs.items())
    columns = [name for name in COLUMNS if any(row[name] not in ("", None) for row in rows)]
    print_table(
        [{name: row[name] for name in columns} for row in rows],
        whole=tuple(name for name in WHOLE if name in columns),
        empty=f"{args.pool}: no transactions" + (" asked for" if args.limit == 0 else _begins(pool)),
    )


def _begins(pool: Pool) -> str:
    fence = pool.history.journal.marks().fence
    return f" after {fence:,}: what came before is purged" if fence else " yet"


def inspect(args: Namespace) -> None:
    """Any object of the lake as JSON: a field a line, with --json on one line."""
    print_json(inspect_object(open_lake(args).store, args.name), indented=not args.json)


def _iso_time(microseconds: int) -> str:
    """A time in microseconds since 1970 with all its digits: `2026-11-20T12:00:00.000001Z`.

    As `human_time` if it is outside the years 1 to 9999.
    """
    try:
        moment = dt.datetime.fromtimestamp(microseconds / 1e6, dt.UTC)
    except (ValueError, OverflowError, OSError):
        return human_time(microseconds / 1e6)
    return moment.isoformat().replace("+00:00", "Z")
