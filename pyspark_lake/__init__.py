"""Makes `spark.read.format("lake")` known to Spark without registration.

Spark looks for top-level packages whose names begin with `pyspark_` and takes their `DefaultSource`.
"""

from spark_apps.datasource import LakeDataSource as DefaultSource

__all__ = ["DefaultSource"]
