"""The `lake` command: it runs the agents' code without Airflow and without Spark.

`main` turns arguments into a command, and errors into one line and an exit status.  `commands` has the words of
each command.  The other modules carry commands out, each about one noun (`pools`, `data`, `history`, ...).  Results
go to standard output, progress and messages to standard error.
"""
