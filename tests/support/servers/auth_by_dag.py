"""An auth manager of Airflow that gives rights for single DAGs, as large installations do.

Its users have the names and roles of the simple one. `COMPACTOR` may start only one DAG, and `BLIND` may start
all DAGs but see no asset.
"""

from __future__ import annotations

from typing import Any

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

COMPACTOR, BLIND = "compactor", "blind"


class ByDag(SimpleAuthManager):
    """The simple auth manager, with stricter rules for these two users."""

    def is_authorized_dag(
        self, *, method: Any, user: Any, access_entity: Any = None, details: Any = None
    ) -> bool:
        is_start = method == "POST" and access_entity is DagAccessEntity.RUN
        if is_start and user.username == COMPACTOR and (details is None or details.id != "lake_compact"):
            return False
        may = super().is_authorized_dag(
            method=method, user=user, access_entity=access_entity, details=details
        )
        return bool(may)

    def is_authorized_asset(self, *, method: Any, user: Any, details: Any = None) -> bool:
        may = super().is_authorized_asset(method=method, user=user, details=details)
        return bool(may) and user.username != BLIND
