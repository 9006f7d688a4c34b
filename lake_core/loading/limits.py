"""What bounds the reading of one file; `Reading` carries it to the readers of the formats."""

from __future__ import annotations

from dataclasses import dataclass

from lake_core.objects.limits import MAX_CELLS


@dataclass(frozen=True)
class ReadLimits:
    """The first three are bytes of the file's text."""

    kept_csv: int = 64 << 20
    """CSV text that is kept between the two readings; a file with more is opened twice."""

    csv_record: int = 64 << 20
    """The longest record of CSV.  A quote that is never closed would otherwise fill the memory."""

    first_json: int = 64 << 10
    """The first piece of a file of JSON records, which shows its fields (decision 50)."""

    record_values: int = MAX_CELLS
    """Values of a JSON record, or of records that Arrow reads at once, absent ones counted: Arrow makes a column of
    every name."""


READ_LIMITS = ReadLimits()
"""The defaults."""
