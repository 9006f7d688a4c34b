"""The result of a publication, and the lag of a table, in words."""

from __future__ import annotations

from typing import Any

from lake_core.phrases import counted, human_duration, human_time
from log_lake.publish.lag import Lag
from log_lake.publish.run import LOST, UNCHANGED, PublishResult


def result_line(done: PublishResult) -> str:
    """Returns the result of a publication, in words."""
    name = f"{done.pool}: version {done.version:,} of {done.branch}"
    if done.outcome == UNCHANGED:
        return f"{name} is published at {done.location} already"
    if done.outcome == LOST:
        return f"{name} was published at {done.location} by another process, which was faster"
    hidden = ""
    if done.hidden:
        hidden = (
            f", {counted(done.hidden, 'record')} hidden by {counted(done.delete_files, 'file')} of deletes "
            f"({done.added_deletes:,} new)"
        )
    return (
        f"{name} is published at {done.location}: {counted(done.records, 'record')} in "
        f"{counted(done.objects, 'object')} ({done.added:,} new){hidden}"
    )


def lag_line(lag: Lag) -> str:
    """Returns the lag of a published table, in words."""
    table = lag.published
    when = f"version {table.version:,} of {human_time(table.time)}, at {table.location}"
    edited = "; it has the names of its fields before an edit" if lag.edited else ""
    if not lag.transactions:
        return f"{when}; no transaction is newer{edited}"
    least = "at least " if lag.uncounted else ""
    return (
        f"{when}; behind by {least}{counted(lag.transactions, 'transaction')}, {human_duration(lag.seconds)}"
        f"{edited}"
    )


def lag_values(lag: Lag) -> dict[str, Any]:
    """Returns the lag of a published table, as values for programs."""
    table = lag.published
    return {
        "location": table.location,
        "number": table.number,
        "version": table.version,
        "transaction_id": table.transaction_id,
        "newest": lag.newest,
        "transactions_behind": lag.transactions,
        "seconds_behind": round(lag.seconds, 3),
        "fields_behind": lag.edited,
        "tag": table.tag,
        "without": list(table.without),
    }
