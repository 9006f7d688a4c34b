"""Makes the pools of a lake as a policy file says: creates pools, changes settings, with `prune` drops the others.

    apply (no Spark)

The log shows the difference first; `dry_run` does no more.  Without `yes` the run fails if pools would be dropped,
or agents would remove more than before.  Applied again, a file changes nothing.  Runs by schedule
(LAKE_APPLY_SCHEDULE, default none; then LAKE_POLICY_FILE of the worker names the file), from the trigger form and
from the command line:

    airflow dags trigger lake_apply --conf '{"path": "pools.yaml", "dry_run": true}'
"""

from airflow_lake.groups.form import apply_dag
from airflow_lake.operators.apply import LakeApplyOperator

with apply_dag(usually="", doc=__doc__, file=__file__):
    LakeApplyOperator(task_id="apply", takes_params=True)
