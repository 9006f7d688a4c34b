"""The data work on Spark: one small application an agent, and the Spark data source.

An agent's module bears its name (`ingest`, `intervals`, `compact`, `checkpoint`, `tombstones`, `retention`,
`erasure`); the DAG calls its function `run` with what `find` gave it.  `ingest` and `intervals` share `load`;
`session` opens Spark (local, cluster or Connect), `spread` gives units of work to tasks, and `datasource` is the
format `lake` of `spark.read`.  Python workers talk to the object store themselves; Spark needs no Hadoop
connector.  lake_core decides what becomes of records; Spark spreads the work.
"""
