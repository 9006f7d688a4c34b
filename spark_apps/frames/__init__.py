"""The work of `pyspark_lake` on data frames, except reading them; the driver's Python talks to the lake itself.

    changes    what was inserted and deleted, as a frame
    write      a frame as one transaction
    keys       records deleted or replaced by the keys in a frame
    bulk       a frame whose records are sorted by ranges first
    rekey      a new pool with another key
    look_up    one record by its key, counts and bounds: without a job of Spark

No call needs a handle of the JVM, so they also work over Spark Connect, and any thread may call them.
"""
