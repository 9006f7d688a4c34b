"""Airflow's face of the lake: what DAGs share with each other that is Airflow's and not the lake's."""
