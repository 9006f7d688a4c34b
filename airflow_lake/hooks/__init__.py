"""The hooks of the provider, which open what a connection of Airflow names."""
