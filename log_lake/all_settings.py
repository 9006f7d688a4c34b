"""Every setting of a pool, in one table, gathered from the rooms that read them.

`log_lake/__init__.py` makes the table known (`settings.declare`) when the package is imported.  So a lower room
needs no import of a higher one to check a setting.  The order is that of `lake show`, policy files and docs.
`lake --help` reads this module: the modules that it imports need no Arrow.
"""

from __future__ import annotations

from log_lake.agents import settings as agents
from log_lake.agents.checkpoint import plan as checkpoint
from log_lake.agents.compact import policy as compact
from log_lake.agents.index import plan as index
from log_lake.agents.ingest import policy as ingest
from log_lake.agents.intervals import policy as intervals
from log_lake.agents.retention import policy as retention
from log_lake.agents.split import policy as split
from log_lake.agents.tombstones import policy as tombstones
from log_lake.coverage import settings as coverage
from log_lake.derived import settings as derived
from log_lake.kafka import settings as kafka
from log_lake.lake import settings as lake
from log_lake.loading import options as loading
from log_lake.publish import settings as publish
from log_lake.reading import settings as reading
from log_lake.rewriting import settings as rewriting
from log_lake.settings import settings as general
from log_lake.vacuum import settings as vacuum

ROOMS = (
    general,
    agents,
    loading,
    checkpoint,
    vacuum,
    retention,
    lake,
    compact,
    rewriting,
    split,
    publish,
    reading,
    tombstones,
    index,
    ingest,
    kafka,
    intervals,
    coverage,
    derived,
)
"""The modules that declare settings, in that order."""

SETTINGS = {name: setting for room in ROOMS for name, setting in room.SETTINGS.items()}
"""Every setting by name."""

TOGETHER = (retention.FITS, reading.FITS, loading.CSV_FITS, loading.ROLL_UP_FITS, kafka.NULLS_FIT)
"""Checks of settings that may exclude each other, in this order."""
