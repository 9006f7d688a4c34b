"""Pools of a lake in PySpark.

    read(spark, "logs", lake=URI)       a DataFrame of one revision; Spark's Parquet reader reads what it can
    explain(spark, "logs", lake=URI)    how such a read gets each part of the records, and why
    attach(spark, URI)                  every pool as a temporary view
    changes(spark, "logs", since=N, lake=URI)   inserted and deleted records, as rows
    get(spark, "logs", KEY, lake=URI)   the records of a key, without a Spark job
    summary(spark, "logs", lake=URI)    counts and bounds from the pool's state, without a Spark job
    write(df, "logs", lake=URI)         writes a data frame as one transaction, from any thread
    delete(spark, "logs", keys, lake=URI)     deletes the records that have the keys of a data frame
    delete(spark, "logs", where="...", lake=URI)   deletes the records that fulfil a condition
    merge(spark, "logs", records, lake=URI)   replaces records that have the keys of a data frame by its rows
    execute("UPDATE logs SET ...", lake=URI)  a statement that changes a pool, without a Spark job
    rekey(spark, "logs", "by_city", key="city", lake=URI)   a new pool with another key, from the records of a pool
    use_session(spark)                  lets the calling thread use `df.write.format("lake")`

This package also makes `spark.read.format("lake")` work without registration: Spark looks for top-level packages
whose names begin with `pyspark_`, and takes their `DefaultSource`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from log_lake.texts.nametext import text_of
from spark_apps.datasource import LakeDataSource as DefaultSource
from spark_apps.datasource.options import META

if TYPE_CHECKING:
    from pyspark.sql import Row

    from log_lake.lake.rekey import Rekeyed
    from log_lake.lake.results import DeleteResult, LoadResult
    from log_lake.reading.summary import Summary
    from log_lake.sql_writes import StatementResult
    from spark_apps.native.attach import Attached

__all__ = [
    "DefaultSource",
    "attach",
    "changes",
    "delete",
    "execute",
    "explain",
    "get",
    "merge",
    "read",
    "rekey",
    "summary",
    "use_session",
    "write",
]


def read(
    spark: Any,
    pool: str,
    *,
    lake: str | None = None,
    at: str | int | None = None,
    columns: str | Sequence[str] | None = None,
    where: str | None = None,
    from_: str | None = None,
    to: str | None = None,
    **options: object,
) -> Any:
    """Returns one revision of a pool as a DataFrame: the rows of `spark.read.format("lake").load(pool)`, in no
    order.

    The arguments are the options of the data source; `from_` stands for `from`.  `options` are the remaining
    ones: `tasks`, `onMissing`, `lease`, `leaseFor`, `caseSensitive`.  Raises `lake_core.errors.InvalidInput`,
    `NotFound`, `Unavailable`, ...
    """
    from spark_apps.native.read import frame

    return frame(
        spark,
        _options(
            options, path=pool, lake=lake, at=at, columns=columns, where=where, **{"from": from_}, to=to
        ),
    )


def explain(
    spark: Any,
    pool: str,
    *,
    lake: str | None = None,
    at: str | int | None = None,
    columns: str | Sequence[str] | None = None,
    where: str | None = None,
    from_: str | None = None,
    to: str | None = None,
    **options: object,
) -> str:
    """Returns a text that says how `read` with the same arguments gets each part of the records, and why.

    Raises what `read` raises.
    """
    from spark_apps.native.explain import explain as text_of

    return text_of(
        spark,
        _options(
            options, path=pool, lake=lake, at=at, columns=columns, where=where, **{"from": from_}, to=to
        ),
    )


def attach(spark: Any, lake: str | None = None, **options: object) -> Attached:
    """Creates a temporary view for every pool, with the pool's name.

    Returns the names of the views, and for each pool without a view the reason.  A view shows the newest version
    of `main` at the time of the call.  `options` are those of `read`, for every pool.
    """
    from spark_apps.datasource.options import open_lake
    from spark_apps.native.attach import attach as attach_pools

    given = _options(options, lake=lake)
    return attach_pools(spark, open_lake(given), given)


def get(
    spark: Any,
    pool: str,
    key: object,
    *,
    lake: str | None = None,
    at: str | int | None = None,
    columns: str | Sequence[str] | None = None,
    **options: object,
) -> list[Row]:
    """Returns the records of one key, as rows in key order.  Python in the driver reads them; Spark runs no job.

    `key` is a value, or a list of the first values of the key.  `options` are `onMissing` and `caseSensitive`.
    Raises `lake_core.errors.InvalidInput`, `NotFound`, `Unavailable`, ...
    """
    from spark_apps.frames.look_up import get as rows_of

    return rows_of(key, _options(options, path=pool, lake=lake, at=at, columns=columns))


def summary(
    spark: Any, pool: str, *, lake: str | None = None, at: str | int | None = None, **options: object
) -> Summary:
    """Returns the number of records, and for each field the number of nulls and the least and greatest value, if
    the state has them.

    No object is read, and Spark runs no job.  If the state does not have the exact number, `records` is None
    and `why` gives the reason; then count with `read`.  Raises `lake_core.errors.NotFound`, `Unavailable`, ...
    """
    from spark_apps.frames.look_up import summary as of_pool

    return of_pool(_options(options, path=pool, lake=lake, at=at))


def changes(
    spark: Any,
    pool: str,
    *,
    since: str | int | None = None,
    until: str | int | None = None,
    lake: str | None = None,
    branch: str | None = None,
    columns: str | Sequence[str] | None = None,
    **options: object,
) -> Any:
    """Returns a DataFrame of the records that were inserted and deleted after the revision `since`, up to `until`.

    Without both it has all changes up to the newest version at the time of the call.  Its columns are `_change`
    (insert, delete, delete_key), `_version`, `_seq`, `_where`, and those of the records
    (`spark_apps.datasource.changes`).  Raises `lake_core.errors.InvalidInput`, `NotFound`, `Unavailable`, ...
    """
    from spark_apps.frames.changes import changes as frame_of

    given = _options(options, path=pool, lake=lake, since=since, until=until, branch=branch, columns=columns)
    return frame_of(spark, given)


def write(
    df: Any,
    pool: str,
    *,
    mode: str = "append",
    lake: str | None = None,
    branch: str | None = None,
    token: str | None = None,
    message: str | None = None,
    metadata: Mapping[str, str] | None = None,
    where: str | None = None,
    from_: str | None = None,
    to: str | None = None,
    bulk: bool = False,
    ranges: int | None = None,
    **options: object,
) -> LoadResult:
    """Writes a data frame as one transaction, as `df.write.format("lake").mode(mode).save(pool)` does.

    `mode` is append or overwrite; `from_`, `to` and `where` say what an overwrite replaces.  `metadata` are
    texts to store with the transaction.  With `bulk` Spark orders the records first, so that no two new objects
    share a key.  `ranges`: into how many ranges a pool without records and split points is then split; the
    default is in docs/loading.md.  Returns what was written.  Raises `lake_core.errors.InvalidInput`,
    `Conflict`, `NotFound`, `OutcomeUnknown`, `Unavailable`, ...
    """
    from lake_core.errors import InvalidInput
    from spark_apps.frames.write import write as write_frame

    if mode not in ("append", "overwrite"):
        raise InvalidInput(f"mode={mode!r}: use append or overwrite")
    given = _options(
        options,
        **_write(pool, lake, branch, token, message, metadata),
        where=where,
        to=to,
        bulk=bulk or None,
        ranges=ranges,
        **{"from": from_},
    )
    return write_frame(df, given, overwrite=mode == "overwrite")


def delete(
    spark: Any,
    pool: str,
    keys: Any = None,
    *,
    where: str | None = None,
    from_: str | None = None,
    to: str | None = None,
    lake: str | None = None,
    branch: str | None = None,
    token: str | None = None,
    message: str | None = None,
    metadata: Mapping[str, str] | None = None,
    **options: object,
) -> DeleteResult | LoadResult:
    """Deletes records in one transaction: those that have the keys of a data frame, or those of a key range
    (`from_`, inclusive, and `to`, exclusive) that fulfil a condition (`where`).

    Other columns of the data frame are ignored.  An upsert pool takes any number of keys, other pools at most
    10,000, and fewer if keys have several fields.  For a range or a condition Spark runs no job.
    Raises what `write` raises.
    """
    from spark_apps.frames.keys import delete as delete_keys
    from spark_apps.frames.keys import delete_selected

    given = _options(
        options, **_write(pool, lake, branch, token, message, metadata), where=where, to=to, **{"from": from_}
    )
    return delete_selected(given) if keys is None else delete_keys(keys, given)


def merge(
    spark: Any,
    pool: str,
    records: Any,
    *,
    deleted: str = "",
    lake: str | None = None,
    branch: str | None = None,
    token: str | None = None,
    message: str | None = None,
    metadata: Mapping[str, str] | None = None,
    **options: object,
) -> LoadResult:
    """Replaces the records that have the keys of a data frame by its rows, in one transaction.

    Rows with new keys are added.  Rows whose boolean column `deleted` is true only delete; this column is not
    stored.  An upsert pool takes any number of rows, other pools as many as `delete`.  Raises what `write`
    raises.
    """
    from spark_apps.frames.keys import merge as merge_records

    given = _options(options, **_write(pool, lake, branch, token, message, metadata))
    return merge_records(records, given, deleted=deleted)


def execute(
    statement: str,
    *,
    lake: str | None = None,
    token: str = "",
    message: str = "",
    dry_run: bool = False,
) -> StatementResult:
    """Runs one INSERT, UPDATE, DELETE, TRUNCATE, MERGE or CREATE TABLE ... AS as one transaction, in the driver.

    Spark refuses these statements for pools.  The statement names a pool by its own name, whatever its view in
    Spark is called, and the query of an INSERT reads pools, not Spark's tables.  `dry_run`: counts the records,
    and changes nothing.  Raises InvalidInput (it names the clause), NotFound, Conflict, OutcomeUnknown,
    Unavailable.
    """
    from log_lake.sql_writes import execute as execute_in
    from spark_apps.datasource.options import open_lake

    there = open_lake(_options({}, lake=lake))
    return execute_in(there, statement, token=token, message=message, dry_run=dry_run)


def rekey(
    spark: Any,
    pool: str,
    new: str,
    *,
    key: str,
    lake: str | None = None,
    at: str | int | None = None,
    kind: str | None = None,
    message: str | None = None,
    ranges: int | None = None,
) -> Rekeyed:
    """Makes a pool with another key from the readable records of a pool at a revision; the tasks of the Spark
    session do the work.

    Tasks read and sort the records as the lake does, and Spark's shuffle brings those of a range together
    (`log_lake.lake.rekey`).  The new pool is listed when it holds all of them.  `ranges`: into how many ranges
    to split it.  Raises AlreadyExists, NotFound, InvalidInput, Conflict, OutcomeUnknown, Unavailable.
    """
    from spark_apps.frames.rekey import rekey as rekey_pool

    given = _options({}, path=pool, lake=lake, at=at, message=message, ranges=ranges)
    return rekey_pool(spark, new, given, key=key, kind=kind)


def use_session(spark: Any) -> None:
    """Lets the calling thread write: `pyspark_lake.use_session(spark)`, then `df.write.format("lake")`.

    For a write, Spark looks for Python data sources in the active session of the thread.  Only the thread that
    made the session has one; in other threads Spark says DATA_SOURCE_NOT_FOUND.  Spark Connect needs no such
    call.
    """
    if hasattr(spark, "_jsparkSession"):
        spark._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)


def _options(more: Mapping[str, object], **named: object) -> dict[str, str]:
    """Returns arguments in the form of the data source's options: names in lower case, values as text; None is
    left out.

    Names of metadata keep their case, because Spark does not convert them on this path.
    """
    given = {name: value for name, value in {**more, **named}.items() if value is not None}
    return {name if name.startswith(META) else name.lower(): _text(value) for name, value in given.items()}


def _write(
    pool: str,
    lake: str | None,
    branch: str | None,
    token: str | None,
    message: str | None,
    metadata: Mapping[str, str] | None,
) -> dict[str, object]:
    kept = {f"meta.{name}": value for name, value in (metadata or {}).items()}
    return {"path": pool, "lake": lake, "branch": branch, "token": token, "message": message, **kept}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return text_of([str(one) for one in value])
    return str(value)
