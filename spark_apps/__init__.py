"""The work on Spark: one small application for each agent, and the Spark data source.

An agent's module has its name (`ingest`, `intervals`, `compact`, `checkpoint`, `tombstones`, `retention`,
`erasure`); its function `run` does one piece of the work that `find` handed out.  `packs` does the pieces of a
task one after the other, and `agent` is the application that does so as a submitted job.  `ingest` and
`intervals` share `load`.  `in_task` replaces Spark for small work.  `reach` checks whether a Spark server
answers, `session` opens it (local, cluster or Connect).  `spread` gives units of work to tasks, and `datasource`
is the format `lake` of `spark.read`.  Python workers talk to the object store themselves; Spark needs no Hadoop
connector.  log_lake decides what happens to records; Spark spreads the work.
"""
