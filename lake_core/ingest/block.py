"""What a reader yields: a table of records, and the records that could not be read.

A bad record is said with file, line and field.  Under the policy `fail` the first one raises; under
`quarantine` it goes along with the block, to the sub-pool `$rejected`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

import pyarrow as pa

from lake_core.errors import InvalidInput

QUARANTINE = "quarantine"
LONGEST_RAW = 65_536


@dataclass(frozen=True)
class Rejected:
    """One record that could not be read.  `line` counts from 1; 0 where the format has no lines."""

    file: str
    line: int
    reason: str
    raw: str


REJECTED_SCHEMA = pa.schema(
    [("file", pa.string()), ("line", pa.int64()), ("reason", pa.string()), ("raw", pa.string())]
)


@dataclass(frozen=True)
class Block:
    """Some records of one file, in its order."""

    table: pa.Table
    rejected: tuple[Rejected, ...] = ()


@dataclass
class Reading:
    """How a file is read: declared fields, the fields of the key, and what becomes of bad records."""

    file: str
    declared: dict[str, pa.Field] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    bad_records: str = "fail"
    block_bytes: int = 16 << 20

    def reject(self, line: int, reason: str, raw: str | bytes) -> Rejected:
        """The rejected record; raises InvalidInput where the policy is to fail."""
        if self.bad_records != QUARANTINE:
            raise InvalidInput(f"{self.file}, line {line}: {reason}")
        text = raw.decode(errors="replace") if isinstance(raw, bytes) else raw
        return Rejected(self.file, line, reason, text.rstrip("\r\n")[:LONGEST_RAW])

    def unreadable(self, line: int, reason: str) -> NoReturn:
        """The file itself is damaged: no policy can quarantine what is not there."""
        where = f", line {line}" if line else ""
        raise InvalidInput(f"{self.file}{where}: {reason}")


def rejected_table(rejected: list[Rejected]) -> pa.Table:
    """Rejected records as the sub-pool stores them."""
    return pa.Table.from_pylist([vars(r) for r in rejected], schema=REJECTED_SCHEMA)
