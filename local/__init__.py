"""Airflow and Spark on one machine: started, watched, stopped.

For the demo, the tests and `make up`; no part of the lake.  One decision a file:

    errors       LocalError: one line for the person at the keyboard
    java         which Java Spark runs on
    ports        which ports are used
    credentials  the secrets of a run directory
    keeper       one process that owns a service's whole tree of processes, and ends it
    environ      what services inherit of the caller's environment
    record       what a run directory remembers of a service
    processes    launching keepers, knowing ours again, stopping them
    airflow_standalone   Airflow's own `standalone`, bound to loopback
    restarts     how often one of its components is started again
    airflow_settings     what Airflow imports into each of its processes: how they share SQLite
    airflow_service, spark_service   how each is configured, commanded and asked for its health
    api          Airflow's REST API
    progress     what is shown while waiting
    services     all of it together: `with Services(...) as s:`
    env.sh       the environment (.venv), before there is a Python to run anything else
"""
