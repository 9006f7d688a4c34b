"""The provider for Airflow: connection, operators, triggers, assets, and the agents as task groups.

    provider     the description of this package for Airflow
    connection   the content of a connection (pure)
    hooks        LakeHook, which opens the lake of a connection
    reach        which lake and which Spark a task works on
    operators    one action on one pool
    sensors, triggers   wait until a pool has a new transaction
    assets       a pool as an asset, with partitions
    groups       LakeUpkeep, and one group per agent
    defaults     retries and time limits of the agents
    effects      what a task does to pools (pure)
    lineage      reports to OpenLineage
    links        links from a task to the web view

An Airflow of your own, with `log-lake[airflow]` installed, gets the agents as DAGs by one file in its DAGs
folder:

    from airflow_lake.dags import apply, checkpoint, compact, derive, erasure, index, ingest, intervals
    from airflow_lake.dags import retention, split, tombstones

The agents are also groups for a DAG of your own (`airflow_lake.groups`).  The DAG files are kept in `dags/` of
the repository, which is the DAGs folder of `make up`.  The wheel puts them below this package
(`airflow_lake.dags`), because a package called `dags` would hide one of the user's own.  So a DAG file may
import this package, and no other DAG file (decision 55).
"""

DEFAULT = "lake_default"
"""The connection that is used if neither the task nor its worker names a lake."""
