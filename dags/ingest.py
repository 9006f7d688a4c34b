"""The ingest agent: loads source files, each batch as one transaction, exactly once.

    find (no Spark) -> run (mapped: a Spark job and a commit for each batch) -> report

The agent loads into pools whose setting `ingest.source` names a place; the settings `ingest.batch_*` say how it
gathers files into batches.  You may stop and repeat a run at any point: a batch commits under a token made of
its files. Tasks pass each other the names of files, never records.

If a file cannot be loaded, the rest of its batch still is.  The agent parks the file.  The run that parks it
fails at `report`, which names the file and the reason; later runs skip the file until it changes.  `lake parked
POOL` lists such files and releases them.

Runs by schedule (LAKE_INGEST_SCHEDULE, a cron line or a preset; default every five minutes), from the trigger
form and from the command line:

    airflow dags trigger lake_ingest --conf '{"pools": ["flights"], "dry_run": true}'
"""

from airflow_lake.groups import IngestGroup, agent_config, agent_dag

with agent_dag("ingest", doc=__doc__):
    IngestGroup(agent_config("ingest"), takes_params=True, prefix_group_id=False)
