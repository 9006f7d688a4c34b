"""Work of agents as jobs of spark-submit: in client mode, and in the cluster mode of YARN."""

from __future__ import annotations

import os
import sys

from airflow.sdk import DAG

from airflow_lake.groups import CheckpointGroup, CompactGroup, IngestGroup, LakeConfig
from local.spark_service import home

LAKE = "lake_own"
ENVIRON = {
    "PYSPARK_PYTHON": sys.executable,
    "JAVA_HOME": os.environ.get("JAVA_HOME", ""),
    "SPARK_LOCAL_IP": "127.0.0.1",
}
YARN = {
    "spark.yarn.jars": f"local:{home()}/jars/*",
    "spark.yarn.stagingDir": f"file://{os.environ.get('YARN_CONF_DIR', '')}/staging",
    **{f"spark.yarn.appMasterEnv.{name}": value for name, value in ENVIRON.items()},
    **{f"spark.executorEnv.{name}": value for name, value in ENVIRON.items()},
}

with DAG("submitted_here", schedule=None):
    here = LakeConfig(lake=LAKE, pools=["submitted"], spark="spark_here", submit={"driver_memory": "512m"})
    IngestGroup(here) >> CompactGroup(here) >> CheckpointGroup(here)

with DAG("submitted_to_yarn", schedule=None):
    CompactGroup(
        LakeConfig(
            lake=LAKE,
            pools=["on_yarn"],
            spark="spark_yarn",
            spark_conf={"spark.executor.memory": "512m"},
            submit={
                "deploy_mode": "cluster",
                "yarn_track_via_rm_api": True,
                "driver_memory": "512m",
                "num_executors": 1,
                "conf": YARN,
            },
        )
    )
