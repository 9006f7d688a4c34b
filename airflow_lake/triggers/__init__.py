"""Triggers of the provider: they run in Airflow's triggerer."""
