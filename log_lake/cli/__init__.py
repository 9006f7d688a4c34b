"""The `lake` command: it runs the agents' code without Airflow and without Spark.

`main` has the parser, and turns errors into one line and an exit status.  Each module of commands has one noun
(`pools`, `data`, `history`, ...).  `output` prints, and `sink` opens the output.  Results go to standard output,
progress and messages to standard error.
"""
