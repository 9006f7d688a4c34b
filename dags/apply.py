"""Makes the pools of a lake match a policy file: creates pools, changes settings, and with `prune` drops other
pools.

    apply (no Spark)

It first logs the difference; with `dry_run` it stops there.  Without `yes` the run fails if pools would be
dropped, or if agents would remove more than before.  If the pools match the file already, nothing changes.  Runs
by schedule (LAKE_APPLY_SCHEDULE, default none; the worker's LAKE_POLICY_FILE then names the file), from the
trigger form and from the command line:

    airflow dags trigger lake_apply --conf '{"path": "pools.yaml", "dry_run": true}'
"""

from airflow_lake.groups.form import apply_dag
from airflow_lake.operators.apply import LakeApplyOperator

with apply_dag(usually="", doc=__doc__, file=__file__):
    LakeApplyOperator(task_id="apply", takes_params=True)
