"""Reading a pool at the speed of Spark's own Parquet reader: `pyspark_lake.read(spark, "logs", lake=URI)`.

    read          the frame: opens the revision, decides, and unites the reads of both ways
    plan          which records Spark's reader reads and which the data source, and why: a pure value
    stretches     keys cut at the bounds of references
    columns       the columns of an object as columns of the pool, where Spark's reader gives them exactly
    conditions    conditions of the lake as predicates, where both mean the same
    bounds        key ranges as predicates
    predicates    the predicates and their SQL
    explain       the plan as text
    attach        every pool of a lake as a temporary view

The driver's Python opens the lake and decides; the JVM reads the objects named in the plan.  No call needs a handle
of the JVM, so Spark Connect is served alike.  A frame names objects, which never change, and a pinned part of a
revision for the data source; so however it is used, it gives the rows of its revision.
"""
