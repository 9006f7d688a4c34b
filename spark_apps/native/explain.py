"""Explains a native read as text: how each part of the records is read, and why, with the conditions passed
to Spark."""

from __future__ import annotations

from typing import Any

from lake_core.phrases import counted, human_size
from log_lake.console.alignment import aligned, cut
from log_lake.texts.keytext import key_text
from spark_apps.datasource import options as opts
from spark_apps.native.predicates import TRUE, sql
from spark_apps.native.read import open_read

LONGEST = 400
"""Characters of a condition that are shown, at most."""

_NAMES = ("way", "objects", "records", "size", "from key", "to key", "why")
_RIGHT = (False, True, True, True, False, False, False)


def explain(spark: Any, options: opts.Options) -> str:
    """Returns aligned text: one line for each way of reading and its reason, then the conditions that Spark's
    reads have.

    Records and bytes are those of the objects, an upper bound of what is read.  Raises what `read` raises.
    """
    if opts.shape(options):
        return f"{opts.table_name(options)}: records by their types; all by the data source"
    if opts.names_system_table(options):
        return f"{opts.table_name(options)}: one of the lake's own tables; all by the data source"
    opened = open_read(spark, options)
    view, native = opened.view, opened.native
    title = f"{view.config.name} at version {view.version}, branch {view.branch}"
    if not native.shares:
        return f"{title}: no records"
    rows = [
        (
            share.way,
            f"{share.references:,}",
            f"{share.records:,}",
            human_size(share.size),
            cut(key_text(share.key_range.low, view.key), 40),
            cut(key_text(share.key_range.high, view.key), 40),
            share.why,
        )
        for share in native.shares
    ]
    lines, _ = aligned(_NAMES, rows, right=_RIGHT, total=None)
    for read in native.parquet:
        if read.predicate != TRUE:
            objects = counted(len(read.references), "object")
            lines.append(f"where, in {objects}: {cut(sql(read.predicate), LONGEST)}")
    return "\n".join([title, *lines])
