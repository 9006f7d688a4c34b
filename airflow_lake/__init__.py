"""What the agents' DAGs share, and, in the wheel, the DAGs themselves.

An Airflow of your own, with `log-lake[airflow]` installed, gets the agents by one file in its DAGs folder:

    from airflow_lake.dags import checkpoint, compact, erasure, ingest, intervals, retention, tombstones  # DAGs

The DAG files are kept in `dags/` of the repository, which is the DAGs folder of `make up`.  The wheel puts them
below this package (`airflow_lake.dags`), because a package called `dags` would hide one of the user's own.  So a
DAG file may import this package, and no other DAG file (decision 55).
"""
