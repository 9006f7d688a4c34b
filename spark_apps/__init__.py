"""The work on Spark: the agents, loads and checks as applications, and the Spark data source.

`command` runs any agent, here or on Spark.  `packs` does the pieces of a task one after the other, and `agent` is
the application that does so as a submitted job.  `ingest` is `lake load`, and `fsck` is `lake fsck`, spread over
tasks.  `workers` are Spark tasks for units of work; `spread` gives these to tasks, and `in_task` replaces Spark for
small work.  `reach` checks whether a Spark server answers, `session` opens it (local, cluster or Connect).
`datasource` is the format `lake` of `spark.read`.  Python workers talk to the object store themselves; Spark needs
no Hadoop connector.  log_lake decides what happens to records; Spark spreads the work.
"""
