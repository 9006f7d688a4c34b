"""The package's description for Airflow: the entry point `apache_airflow_provider`.

All of it is data.  Airflow shows the form of a connection, and knows an asset by its URI, without importing a hook.
"""

from __future__ import annotations

from typing import Any

INTEGRATION = "Log lake"


def _text(label: str, description: str, **schema: Any) -> dict[str, Any]:
    """Returns a field of the form, which may be left empty."""
    return {"label": label, "description": description, "schema": {"type": ["string", "null"], **schema}}


CONNECTION = {
    "connection-type": "lake",
    "hook-name": "Log lake",
    "hook-class-name": "airflow_lake.hooks.lake.LakeHook",
    "ui-field-behaviour": {
        "hidden-fields": ["schema", "login", "password", "port"],
        "relabeling": {"host": "Lake"},
        "placeholders": {
            "host": "s3://bucket/prefix, gs://bucket/prefix, or /path",
        },
    },
    "conn-fields": {
        "credentials_conn_id": _text(
            "Credentials",
            "Id of a connection of type aws or google_cloud_platform. Empty: what the workers find themselves "
            "(variables, files, the role of the machine)",
        ),
        "spark_conn_id": _text(
            "Spark",
            "Id of a connection of type spark_connect or spark. Empty: LAKE_SPARK_REMOTE or LAKE_SPARK_MASTER of "
            "the worker; otherwise Spark starts in the task",
        ),
        "kafka_conn_id": _text(
            "Kafka",
            "Id of a connection of type kafka, whose settings are sent to the brokers that it names. Empty: the "
            "file of the worker that LAKE_KAFKA_CLIENTS names, if any",
        ),
        "in_task_mib": _text(
            "Without Spark up to (MiB)",
            "Work of at most so many MiB is done in the task itself, without Spark. Empty or 0: all work goes to "
            "Spark",
        ),
        "options": _text(
            "Options of the store",
            'A JSON object, as s3fs or gcsfs take it: {"client_kwargs": {"endpoint_url": "https://s3.my.org"}}. '
            "The option lock is the address of a lock (LAKE_LOCK)",
            format="password",
        ),
    },
}


SENSORS = ("transactions", "health", "coverage")
OPERATORS = (
    "load", "replace", "delete", "statement", "compact", "checkpoint", "retain", "query", "apply", "doctor",
)  # fmt: skip


def get_provider_info() -> dict[str, Any]:
    """Returns the description of the provider, in the form of Airflow's provider_info.schema.json."""
    return {
        "package-name": "log-lake",
        "name": INTEGRATION,
        "description": "Pools of records on object storage, kept in order by task groups",
        "integrations": [
            {"integration-name": INTEGRATION, "external-doc-url": "https://pypi.org/project/log-lake/"}
        ],
        "hooks": [{"integration-name": INTEGRATION, "python-modules": ["airflow_lake.hooks.lake"]}],
        "operators": [
            {
                "integration-name": INTEGRATION,
                "python-modules": [f"airflow_lake.operators.{name}" for name in OPERATORS],
            }
        ],
        "sensors": [
            {
                "integration-name": INTEGRATION,
                "python-modules": [f"airflow_lake.sensors.{name}" for name in SENSORS],
            }
        ],
        "triggers": [
            {"integration-name": INTEGRATION, "python-modules": ["airflow_lake.triggers.transactions"]}
        ],
        "asset-uris": [
            {
                "schemes": ["lake"],
                "handler": "airflow_lake.assets.check_uri",
                "to_openlineage_converter": "airflow_lake.lineage.dataset_of_asset",
            }
        ],
        "extra-links": ["airflow_lake.links.PoolLink", "airflow_lake.links.TransactionLink"],
        "connection-types": [CONNECTION],
    }
