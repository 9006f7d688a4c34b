"""The data work on Spark: one small application an agent, and the Spark data source.

An agent's module bears its name (`ingest`, `intervals`, `compact`, `checkpoint`, `tombstones`, `retention`,
`erasure`); its function `run` does one piece of the work that `find` gave out.  `packs` does the pieces of a task
one after the other, and `agent` is the application that does so as a submitted job.  `ingest` and `intervals` share
`load`; `in_task` stands in for Spark where work is small; `reach` asks whether a Spark is there, `session` opens it
(local, cluster or Connect); `spread` gives units of work to tasks, and `datasource` is the format `lake` of
`spark.read`.  Python workers talk to the object store themselves; Spark needs no Hadoop connector.  lake_core
decides what becomes of records; Spark spreads the work.
"""
