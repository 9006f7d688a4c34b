"""What the options of the data source name: a lake, a pool, a branch, columns, counts.

    read          load("flights"), "flights@12" (a revision: also a branch, BRANCH@TIME, a transaction id),
                  "flights.$nokey" (a sub-pool), "flights:typed", "flights:type:ID" (records by their types),
                  "flights:log", "lake:pools" (the lake's own tables);
                  at, columns (A,B or a JSON list: only these are read), from, to (a key range, JSON), where (a
                  condition), tasks (the number of tasks; by default one for each 64 MiB, at most 256), onMissing
                  (fail; warn: read an old revision without the objects that a vacuum took), lease (true: no vacuum
                  deletes what is read, for leaseFor, default 6h, at most 1d, from when Spark plans the read)
    readStream    load("flights"); branch, columns, startingTransaction (earliest, latest or a number),
                  maxTransactionsPerBatch, lease (true: no vacuum deletes what was not delivered, while the query
                  runs), changes (true: deletes are rows too, `changes`)
    read changes  load("flights") with changes=true; branch, columns, since (a revision; exclusive), until (a
                  revision; inclusive)
    write         save("flights"); branch, message, token (what is written under a token is written once),
                  meta.NAME (a text to keep with the transaction); with mode overwrite also from, to (a key range)
                  and where (a condition): the records that are replaced, by default all
    writeStream   start("flights"); branch, message, meta.NAME

Two more are options of all: `lake` (otherwise the variable LAKE), and `caseSensitive` (`names`).  An unknown
option is refused: a misspelt one would silently read or write something else.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Mapping

import pyarrow as pa

from lake_core.errors import InvalidInput
from lake_core.naming import MAIN
from log_lake.lake import Lake
from log_lake.lake.branch import Branch
from log_lake.lake.pool import Pool
from log_lake.lake.view import FAIL, WARN, View
from log_lake.settings.setting_types import duration
from log_lake.system_tables.names import is_system_table, pool_and_shape
from log_lake.texts.nametext import names_of

Options = Mapping[str, str]
"""The options as Spark gives them: names in lower case; `path` is what load, save or start were given."""

READ = ("at", "columns", "from", "to", "where", "tasks", "onMissing", "lease", "leaseFor")
PART = "part"
"""Names a part of a revision (`part`): for native reads, not for users."""
SYSTEM_TABLE = ("at", "columns")
READ_STREAM = ("branch", "columns", "startingTransaction", "maxTransactionsPerBatch", "lease", "changes")
CHANGES = ("changes", "since", "until", "branch", "columns")
"""The options of a batch read of changes."""
LEASE_FOR = "6h"
"""How long the lease of a read lives by default (option leaseFor)."""
POOLS_KEPT = 8
"""Pools that a thread keeps open.  Each takes the memory of its state, and of a few footers."""
META = "meta."
"""The prefix of options that are metadata of the transaction; Spark gives their names in lower case."""

WRITE = ("branch", "message", "token", "schema", "meta.NAME")
REPLACE = ("from", "to", "where")
"""The options that only a write with mode overwrite has."""
BULK = (*WRITE, "bulk", "ranges")
"""The options of `pyspark_lake.write`, which orders the records itself."""
WRITE_STREAM = (
    "branch",
    "message",
    "schema",
    "meta.NAME",
    "checkpointLocation",
    "queryName",
)  # the last two are for Spark itself


def check_names(options: Options, accepted: tuple[str, ...], *, what: str) -> None:
    """Raises InvalidInput for an option that `what` (a read, a stream, a write) does not have."""
    allowed = {"lake", "path", "casesensitive", *(name.lower() for name in accepted)}
    has_metadata = "meta.NAME" in accepted
    unknown = sorted(
        name
        for name in options
        if name.lower() not in allowed and not (has_metadata and name.lower().startswith(META))
    )
    if "location" in unknown:  # where Spark's catalog keeps a table of its own
        raise InvalidInput(
            "CREATE TABLE ... USING lake: a pool is not a table of Spark's catalog; use CREATE TEMPORARY VIEW "
            "NAME USING lake OPTIONS (lake 'URI', path 'POOL')"
        )
    if unknown:
        names = ", ".join(dict.fromkeys(("lake", *accepted, "caseSensitive")))
        raise InvalidInput(f"unknown option {unknown[0]!r}: {what} has {names}")
    for name in ("at", "branch", "since", "until", "startingtransaction"):
        if options.get(name) == "":
            raise InvalidInput(f"the option {name} is empty; name one, or leave it out")
    if "at" in options and "@" in options.get("path", ""):
        raise InvalidInput(
            f"{options['path']!r} with at={options['at']}: two revisions are named; leave one out"
        )


def check_not_bulk(options: Options) -> None:
    """Raises InvalidInput for a bulk import by Spark's writer.

    Spark does not let a data source in Python order the records of a write.
    """
    for name in ("bulk", "ranges"):
        if name in options:
            raise InvalidInput(
                f"the option {name}: df.write cannot import in bulk; use pyspark_lake.write(df, POOL, bulk=True)"
            )


def open_lake(options: Options) -> Lake:
    """Opens the lake that the options name.  Raises what `Lake.open` raises."""
    metadata = {name[len(META) :]: value for name, value in options.items() if name.startswith(META)}
    return Lake.open(options.get("lake") or os.environ.get("LAKE", ""), metadata=metadata)


def table_name(options: Options) -> str:
    """Returns the name that was passed to `load`, `save` or `start`.  Raises InvalidInput."""
    path = options.get("path", "")
    if "paths" in options:
        raise InvalidInput(f"load({options['paths']}): a read is of one pool; load each, then union them")
    if not path:
        raise InvalidInput(
            'no pool named: use load("POOL"), save("POOL") or start("POOL"). A pool is not a table of '
            "Spark's catalog (saveAsTable, CREATE TABLE); use a temporary view"
        )
    return path


def names_system_table(options: Options) -> bool:
    """Whether the name in the options is that of one of the lake's own tables."""
    return is_system_table(table_name(options))


def shape(options: Options) -> str:
    """Returns the shape in which records are read, as in `by_type.records_of`; "" means the pool's own
    fields."""
    return pool_and_shape(table_name(options))[1]


def selected(schema: pa.Schema, options: Options) -> pa.Schema:
    """Returns the columns that the option chooses, by default all.  Raises InvalidInput for an unknown
    column."""
    names = columns(options) or schema.names
    unknown = [name for name in names if name not in schema.names]
    if unknown:
        raise InvalidInput(f"column {unknown[0]!r} does not exist; there are: {', '.join(schema.names)}")
    return pa.schema([schema.field(name) for name in names])


def open_view(options: Options, *, pool_id: str = "") -> View:
    """Returns the pool at the revision that a read names.  Raises what `Lake.open` and `Pool.at` raise.

    `pool_id`: the id of the pool that had the name when the read began; meanwhile the pool may have been
    renamed, or another pool may have its name.
    """
    return _pool_and_view(options, pool_id)[1]


def leased_view(options: Options, *, pool_id: str = "") -> View:
    """Returns the pool at a revision, as `open_view` does; with the option `lease`, a lease keeps its objects for
    `leaseFor`."""
    pool, view = _pool_and_view(options, pool_id)
    if flag(options, "lease"):
        text = options.get("leasefor", LEASE_FOR)
        try:
            seconds = duration(text)
        except ValueError as error:
            raise InvalidInput(f"leaseFor={text}: {error}") from error
        pool.leave_lease(view, duration=seconds, why="Spark read")
    elif "leasefor" in options:
        raise InvalidInput("leaseFor: add lease=true, or leave leaseFor out")
    return view


def pool_name(options: Options) -> str:
    """Returns the name of the pool or sub-pool that is read, without a revision and a shape."""
    return pool_and_shape(table_name(options))[0].partition("@")[0]


def pinned(options: Options, version: int) -> dict[str, str]:
    """Returns the same options for the pool at this version, whatever revision they name."""
    return {**options, "path": pool_name(options), "at": str(version)}


def _pool_and_view(options: Options, pool_id: str) -> tuple[Pool, View]:
    revision = pool_and_shape(table_name(options))[0].partition("@")[2]
    pool = _again(open_lake(options).pool(pool_name(options), id=pool_id))
    at = revision or options.get("at") or branch_name(options)  # `branch` is an option of streams only
    on_missing = options.get("onmissing", FAIL).lower()
    if on_missing not in (FAIL, WARN):
        raise InvalidInput(f"onMissing={options['onmissing']}: use {FAIL} or {WARN}")
    return pool, pool.at(at, on_missing=on_missing)


def open_pool(options: Options, *, what: str, pool_id: str = "") -> Pool:
    """Returns the pool of a stream or a write.  Raises InvalidInput if the name has a revision, or is one of the
    lake's own tables.

    `pool_id` is as for `open_view`.
    """
    name = table_name(options)
    if "@" in name or names_system_table(options) or shape(options):
        raise InvalidInput(f"{what} {name!r}: name a pool; the option `branch` chooses a branch")
    return _again(open_lake(options).pool(name, id=pool_id))


class _Opened(threading.local):
    """The pools that a thread used last; the key says where a pool is.  Each thread has its own pools, because two
    threads must not use one history at the same time."""

    def __init__(self) -> None:
        self.pools: OrderedDict[tuple[str, ...], Pool] = OrderedDict()


_OPENED = _Opened()


def _again(pool: Pool) -> Pool:
    """Returns the pool as this thread opened it before, if it is the same one; its state and footers are in
    memory.

    A newly opened pool folds every entry since its last checkpoint, and a point read reads the footer of its
    object (decision 121).
    """
    place = (
        pool.store.uri,
        os.environ.get("LAKE_LOCK", ""),
        pool.context.lake_id,
        pool.config.id,
        pool.sub_pool,
    )
    kept = _OPENED.pools.pop(place, None)
    if kept is None or (kept.config, _writer(kept)) != (pool.config, _writer(pool)):
        kept = pool
    _OPENED.pools[place] = kept
    while len(_OPENED.pools) > POOLS_KEPT:
        _OPENED.pools.popitem(last=False)
    return kept


def _writer(pool: Pool) -> tuple[object, ...]:
    """Returns what a pool adds to its transactions: the author, the format version and the metadata.  Only a pool
    with the same values may be used again."""
    context = pool.context
    return context.author, context.format_version, dict(context.metadata)


def branch_name(options: Options) -> str:
    """Returns the name of the branch of a stream or a write."""
    return options.get("branch") or MAIN


def open_branch(options: Options) -> Branch:
    """Returns the branch to which a write goes.  Raises NotFound, InvalidInput."""
    return open_pool(options, what="write to").branch(branch_name(options))


def columns(options: Options) -> list[str] | None:
    """Returns the columns that the option chooses; None without the option.  Raises InvalidInput if one is named
    twice."""
    text = options.get("columns")
    return None if text is None else names_of(text, option="columns")


def flag(options: Options, name: str) -> bool:
    """Whether the option is set to true.  Raises InvalidInput for a text other than true and false."""
    text = options.get(name.lower(), "false").lower()
    if text not in ("true", "false"):
        raise InvalidInput(f"{name}={text}: use true or false")
    return text == "true"


def count(options: Options, name: str) -> int | None:
    """Returns the option as a whole number of at least 1; None without the option.  Raises InvalidInput."""
    text = options.get(name.lower())
    if text is not None and not (text.isascii() and text.isdigit() and int(text)):
        raise InvalidInput(f"{name}={text}: use a whole number of at least 1")
    return None if text is None else int(text)
