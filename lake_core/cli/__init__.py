"""The `lake` command: the same code that the agents run, without Airflow and without Spark.

`main` parses and turns errors into one line and an exit status; `pools`, `data` and `history` hold the commands;
`output` prints, and `sink` says where to.  Results go to standard output, progress and messages to standard error.
"""
