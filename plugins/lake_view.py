"""The web view (`airflow_lake.view`), for an Airflow whose plugins folder this is.

An installed log-lake brings it by its entry point, which Airflow reads by itself.  Then this file adds nothing:
Airflow refuses a plugin that it has already, and says so as an import error.
"""

from importlib.metadata import entry_points

if not entry_points(group="airflow.plugins", name="lake_view"):
    from airflow_lake.view.plugin import LakeView  # noqa: F401  Airflow looks for it in this module
