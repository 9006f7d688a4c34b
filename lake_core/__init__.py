"""The lake: pools of sorted records on an object store, kept by a journal of transactions.

This package is the whole storage engine and imports neither Airflow nor Spark.  Dependencies run one
way (checked by import contracts in pyproject.toml):

    cli -> query, inspection -> lake -> pool -> branch, view -> ingest, scan -> planning
        -> catalog, commits -> journal -> objects -> store -> records -> naming, keys -> errors

Start at `lake_core.lake` for what users call, at `lake_core.journal` for what makes it right, and at
docs/format.md for what is stored.
"""

from typing import TYPE_CHECKING

from lake_core.faces import on_demand

if TYPE_CHECKING:
    from lake_core.errors import LakeError
    from lake_core.lake import Lake

__all__ = ["Lake", "LakeError"]

__getattr__ = on_demand(__name__, {"Lake": "lake", "LakeError": "errors"})
