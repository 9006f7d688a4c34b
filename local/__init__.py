"""Starts, watches and stops Airflow and Spark on one machine, for the demo, the tests and `make up`.

It is no part of the lake. Each file decides one thing:

    errors       LocalError: one line for the user at the keyboard
    java         which Java Spark runs on
    ports        which ports the services use
    credentials  the secrets of a run directory
    keeper       one process that owns a service's whole tree of processes, and ends it
    environ      what services inherit from the caller's environment
    record       what a run directory stores about a service
    processes    launches keepers, finds our own again, stops them
    airflow_standalone   Airflow's own `standalone`, which starts a component again if it ends by itself
    airflow_settings     what Airflow imports into each of its processes: how they share SQLite
    airflow_service, spark_service   the configuration, command and health check of each service
    api          Airflow's REST API
    progress     what the user sees while waiting
    services     all of it together: `with Services(...) as s:`
    env.sh       makes the environment (.venv), before there is a Python to run anything else
"""
