"""The ingest agent: loads source files, each batch as one transaction, exactly once.

    find (no Spark) -> run (mapped: a Spark job and a commit for each batch) -> report

A pool takes part when its setting `ingest.source` names a place; how files are gathered into batches is the
pool's policy too (`ingest.batch_*`).  A run may be stopped and repeated at any point: a batch is committed
under a token made of its files.  Between tasks go the names of files, never their records.

A file that cannot be loaded does not hold back the others of its batch.  The agent parks it: the run that parks a
file fails at `report`, which names the file and the reason, and later runs pass it over until it changes.
`lake parked POOL` lists such files and releases them.

Runs by schedule (LAKE_INGEST_SCHEDULE, a cron line or a preset; default every five minutes), from the trigger
form and from the command line:

    airflow dags trigger lake_ingest --conf '{"pools": ["flights"], "dry_run": true}'
"""

from airflow_lake.groups import IngestGroup, agent_config, agent_dag

with agent_dag("ingest", usually="*/5 * * * *", doc=__doc__):
    IngestGroup(agent_config("ingest"), takes_params=True, prefix_group_id=False)
