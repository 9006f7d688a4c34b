"""The Spark data source: `spark.read.format("lake").option("lake", URI).load("pool")`.

    source          which reader or writer does what Spark asks for
    options         what the options name; unknown ones are refused
    reader          a batch read: key ranges of one snapshot, a task each
    system_tables   the lake's own tables
    stream_reader   a stream: new transactions, in order
    writer          batches and streams of records in: objects by tasks, one commit
    names           columns whose names differ in case only
    types           the types of the lake in Spark
    variants        values of fields of several classes, both ways
    to_spark        records as Spark takes them
    from_spark      records as Spark writes them, and what it may write

All of it runs on Python workers, which call the object store themselves: plan and commit in processes that Spark
starts beside the driver's Java, tasks on the executors.  log_lake does all work on records.
"""

from spark_apps.datasource.source import LakeDataSource

__all__ = ["LakeDataSource"]
