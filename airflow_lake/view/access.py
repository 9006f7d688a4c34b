"""Who may see the view in Airflow, and start an agent from it.

Airflow hands requests to a mounted app without a look at them.  So every route depends on `may_read`: the user is
logged in, and may see assets, since a pool is an asset.  The right to start an agent is Airflow's own right to
start a run of its DAG; Airflow's API checks it again when the page asks for a run (decision 91).
"""

from __future__ import annotations

from typing import Annotated

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import get_user, requires_access_asset
from fastapi import Depends

User = Annotated[BaseUser, Depends(get_user)]
"""The user of the request; 401 if there is none."""

may_read = Depends(requires_access_asset("GET"))
"""Lets a request through if its user may see assets; otherwise 401 or 403."""


def may_start(user: BaseUser, dag_id: str) -> bool:
    """Whether the user may start runs of the DAG."""
    return bool(
        get_auth_manager().is_authorized_dag(
            method="POST", access_entity=DagAccessEntity.RUN, details=DagDetails(id=dag_id), user=user
        )
    )
