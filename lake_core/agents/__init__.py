"""What agents do before and after Spark: finding pools with work, cheaply, and reporting.

Each module serves one agent and is called by its DAG and its Spark application.  Deciding is `planning`'s.
"""
