"""What bounds the reading of one file; `Reading` carries it to the readers of the formats."""

from __future__ import annotations

from dataclasses import dataclass

from lake_core.schemas.limits import MAX_CELLS


@dataclass(frozen=True)
class ReadLimits:
    """The first four are bytes."""

    kept_csv: int = 64 << 20
    """Text and values of a CSV file that are kept in memory until its types are known; more goes to disk."""

    spooled_csv: int = 4 << 30
    """Values of a CSV file that are kept on disk, packed; a file with more is read twice (decision 50)."""

    csv_record: int = 64 << 20
    """The longest record of CSV.  A quote that is never closed would otherwise fill the memory."""

    first_json: int = 64 << 10
    """The first piece of a file of JSON records, which shows its fields (decision 50)."""

    record_values: int = MAX_CELLS
    """Values of a JSON record, or of records that Arrow reads at once, absent ones counted: Arrow makes a column of
    every name."""


READ_LIMITS = ReadLimits()
"""The defaults."""
