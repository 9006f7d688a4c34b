"""The web view (`airflow_lake.view`), for an Airflow that has this folder as its plugins folder.

If log-lake is installed, Airflow finds the view by its entry point.  Then this file adds nothing, because
Airflow reports a plugin as an import error if it is there twice.
"""

from importlib.metadata import entry_points

if not entry_points(group="airflow.plugins", name="lake_view"):
    from airflow_lake.view.plugin import LakeView  # noqa: F401  Airflow looks for it in this module
