"""The data work on Spark: one small application an agent, and the Spark data source.

`session` opens Spark (local, cluster or Connect), `ingest` takes landed files in, `checkpoint` looks after
journals, `datasource` is `spark.read.format("lake")` and its like.  Python workers talk to the object store
themselves; Spark needs no Hadoop connector.  What is done to records is lake_core's; Spark spreads it.
"""
