"""Makes `spark.read.format("lake")` known to Spark without registration.

Spark looks for top-level packages whose names begin with `pyspark_` and takes their `DefaultSource`.
"""

from typing import Any

from spark_apps.datasource import LakeDataSource as DefaultSource

__all__ = ["DefaultSource", "use_session"]


def use_session(spark: Any) -> None:
    """Let the calling thread write: `pyspark_lake.use_session(spark)`, then `df.write.format("lake")`.

    Spark finds Python data sources for a write in the session that is active in the thread, and only the thread
    that made the session has one; in others it says DATA_SOURCE_NOT_FOUND.  Spark Connect needs no such call.
    """
    if hasattr(spark, "_jsparkSession"):
        spark._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)
