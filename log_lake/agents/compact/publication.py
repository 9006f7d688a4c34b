"""Publishes a pool after a compaction, if its setting `publish.iceberg` asks for it.

A published table needs objects that overlap little, and after a compaction they do.  If Iceberg cannot express
the pool, the run does not fail: the table keeps its version, and the report says why.
"""

from __future__ import annotations

import logging
from typing import Any

from lake_core.errors import InvalidInput
from lake_core.naming import MAIN
from log_lake.lake.pool import Pool
from log_lake.publish.lag import publication
from log_lake.publish.report import result_line
from log_lake.publish.run import publish_iceberg

log = logging.getLogger(__name__)


def publication_due(pool: Pool, *, branch: str) -> str:
    """Why the pool must be published; "" if it is not published, or if the table shows the newest version.

    Raises Corrupt, Unavailable; InvalidInput if publish.iceberg is not a valid location.
    """
    place = pool.settings["publish.iceberg"]
    if not place or branch != MAIN or not pool.at(branch).held.tip:
        return ""
    lag = publication(pool, branch=branch, to=place)
    return "not published yet" if lag is None else "the published table is behind" if lag.transactions else ""


def published(pool: Pool, *, branch: str) -> dict[str, Any]:
    """Publishes as the setting says, and returns the two fields of a CompactResult about it; without the setting
    it does nothing.

    Raises Corrupt, OutcomeUnknown, Unavailable.
    """
    place = pool.settings["publish.iceberg"]
    if not place or branch != MAIN:
        return {}
    try:
        done = publish_iceberg(pool, branch=branch, to=place)
    except InvalidInput as refusal:
        log.warning("not published: %s", refusal)
        return {"published": None, "publication": f"not published: {refusal}"}
    return {"published": done.version, "publication": result_line(done).removeprefix(f"{pool.name}: ")}
