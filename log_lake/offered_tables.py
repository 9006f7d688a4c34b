"""Tables of the lake that higher rooms make: `lake:NAME`.

A lower room never imports a higher one, so the package offers such a table here when it is imported
(`log_lake/__init__.py`).  This module imports no engine, because `lake --help` imports the package.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from log_lake.lake import Lake


@dataclass(frozen=True)
class OfferedTable:
    """A table about the whole lake: `schema` gives its columns, `table` its rows now.  Both import what they need
    when they are called."""

    schema: Callable[[], pa.Schema]
    table: Callable[[Lake], pa.Table]


OFFERED: dict[str, OfferedTable] = {}
"""By the name in SQL, such as `lake:health`."""


def offer(name: str, table: OfferedTable) -> None:
    """Makes a table known; the package calls this once for each."""
    OFFERED[name] = table
