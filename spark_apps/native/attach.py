"""Every pool of a lake as a temporary view of Spark's, for SQL and notebooks.

A view is a native read of the newest version of `main` at the time of the call.  One pool that cannot be read
does not hold back the others.  To Spark, two names that differ only in case are the same name.  So of pools
with such names, only the first gets a view.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from lake_core.errors import LakeError
from log_lake.lake import Lake
from spark_apps.datasource import options as opts
from spark_apps.native.predicates import quoted
from spark_apps.native.read import frame

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Attached:
    """What `attach` did: the pools that are views now, in the order of their names; and for each other pool the
    reason why it has no view."""

    views: tuple[str, ...]
    refused: dict[str, str]

    def __str__(self) -> str:
        lines = [f"view {quoted((name,))}" for name in self.views]
        return "\n".join(
            [*lines, *(f"no view {quoted((name,))}: {why}" for name, why in self.refused.items())]
        )


def attach(spark: Any, lake: Lake, options: opts.Options) -> Attached:
    """Makes the views, replacing those of the same names; `options` are those of each read."""
    views: list[str] = []
    refused: dict[str, str] = {}
    by_folded: dict[str, str] = {}
    for name in sorted(config.name for config in lake.pools()):
        other = by_folded.setdefault(name.lower(), name)
        try:
            if other != name:
                refused[name] = (
                    f"Spark takes the name for that of pool {other!r}; read it with pyspark_lake.read"
                )
                continue
            frame(spark, {**options, "path": name}).createOrReplaceTempView(quoted((name,)))
        except LakeError as error:
            refused[name] = str(error)
        except Exception as error:  # Spark's own classes differ between a local session and Connect
            refused[name] = f"{type(error).__name__}: {error}".splitlines()[0]
        else:
            views.append(name)
    for name, why in refused.items():
        log.warning("pool %r has no view: %s", name, why)
    return Attached(tuple(views), refused)
