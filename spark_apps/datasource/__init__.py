"""The Spark data source: `spark.read.format("lake").option("lake", URI).load("pool")`.

    source          which reader or writer serves a request of Spark
    options         the options; unknown ones are refused
    reader          a batch read: each task reads some key ranges of one snapshot
    system_tables   the lake's own tables
    stream_reader   a stream: new transactions, in order
    writer          writes batches and streams of records: tasks write objects, one commit
    names           columns whose names differ in case only
    types           the types of the lake in Spark
    variants        values of fields of several classes, in both directions
    to_spark        converts records to Spark's form
    from_spark      converts records from Spark, and checks what it may write

Everything runs on Python workers, which call the object store themselves: plan and commit in processes that
Spark starts beside the driver's Java, tasks on the executors. log_lake does all work on records.
"""

from spark_apps.datasource.source import LakeDataSource

__all__ = ["LakeDataSource"]
