"""The erasure agent: removes records from the bytes of every object, with a receipt, until no object holds them.

    find (no Spark) -> run (mapped: a pool's erasures, one after another) -> report

A run that names records (`where`, `key`, `from`, `to`) and pools begins an erasure in each pool.  Every run
resumes pending erasures: once a tag or a reader has released an object, the next run deletes it.  So the DAG
has a schedule (LAKE_ERASURE_SCHEDULE, default daily at 4:30); a run without a pending erasure does nothing.
`report` says what was deleted, what is held and how to release it.  It fails as long as an erasure is pending.
A dry run logs which objects hold the named records.  If LAKE_APPROVAL names this agent, a person must approve
before it begins.  An erasure cannot be undone:

    airflow dags trigger lake_erasure --conf '{"pools": ["people"], "key": "4711", "dry_run": true}'

Airflow stores the parameters of a run.  If it must not store a condition, begin with `lake erase`: the next run
resumes that erasure by its id.
"""

from airflow_lake.groups import ErasureGroup, agent_config, agent_dag

with agent_dag("erasure", doc=__doc__):
    ErasureGroup(agent_config("erasure"), takes_params=True, prefix_group_id=False)
