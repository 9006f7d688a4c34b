"""DAGs to copy: each file is a whole DAG, which a test runs on a real Airflow.

Copy a file into the DAGs folder, and set the folder and the pools at its top.
"""
