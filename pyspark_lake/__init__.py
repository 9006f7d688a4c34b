"""Pools of a lake in PySpark.

    read(spark, "logs", lake=URI)       a DataFrame of one revision, as far as possible by Spark's Parquet reader
    explain(spark, "logs", lake=URI)    which records of such a read go which way, and why
    attach(spark, URI)                  every pool as a temporary view
    use_session(spark)                  let the calling thread write

It also makes `spark.read.format("lake")` known to Spark without registration: Spark looks for top-level packages
whose names begin with `pyspark_` and takes their `DefaultSource`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spark_apps.datasource import LakeDataSource as DefaultSource

if TYPE_CHECKING:
    from spark_apps.native.attach import Attached

__all__ = ["DefaultSource", "attach", "explain", "read", "use_session"]


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
    """A DataFrame of one revision of a pool: the rows of `spark.read.format("lake").load(pool)`, in no order.

    The arguments are the options of the data source; `from_` is its `from`.  `options` are the others: `tasks`,
    `onMissing`, `lease`, `leaseFor`, `caseSensitive`.  Raises `lake_core.errors.InvalidInput`, `NotFound`,
    `Unavailable`, ...
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
    """What goes which way in `read` with the same arguments, and why, as text.  Raises what `read` raises."""
    from spark_apps.native.explain import explain as text_of

    return text_of(
        spark,
        _options(
            options, path=pool, lake=lake, at=at, columns=columns, where=where, **{"from": from_}, to=to
        ),
    )


def attach(spark: Any, lake: str | None = None, **options: object) -> Attached:
    """Make every pool of the lake a temporary view of its name; returns the views, and why a pool has none.

    A view is the newest version of `main` at the time of the call.  `options` are those of `read`, for every pool.
    """
    from spark_apps.datasource.options import open_lake
    from spark_apps.native.attach import attach as attach_pools

    given = _options(options, lake=lake)
    return attach_pools(spark, open_lake(given), given)


def use_session(spark: Any) -> None:
    """Let the calling thread write: `pyspark_lake.use_session(spark)`, then `df.write.format("lake")`.

    Spark finds Python data sources for a write in the session that is active in the thread, and only the thread
    that made the session has one; in others it says DATA_SOURCE_NOT_FOUND.  Spark Connect needs no such call.
    """
    if hasattr(spark, "_jsparkSession"):
        spark._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)


def _options(more: Mapping[str, object], **named: object) -> dict[str, str]:
    """Arguments as the data source takes options: names in lower case, values as text; None is left out."""
    return {name.lower(): _text(value) for name, value in {**more, **named}.items() if value is not None}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)
