"""A block of records, as a reader yields it: a table, and the records that could not be read.

Messages name a bad record by file, line and field.  Under the policy `fail` the first bad record raises; under
`quarantine` it stays with the block and goes to the sub-pool `$rejected`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

import pyarrow as pa

from lake_core.errors import InvalidInput
from lake_core.schemas.limits import Fields, leaves
from lake_core.schemas.rule import APPEND, Rule
from lake_core.store import Address
from log_lake.loading.contract import Contract, Faults, LostValues
from log_lake.loading.csv_options import CsvOptions
from log_lake.loading.expansion import Expansion

WIDE = 1_000
"""From this many fields on, columns cost more than values. For a reader, a chunk of a column costs as much as
1,000 values."""

MAX_CELLS = 1 << 24
"""The most values of the records that are in memory at once.  An absent field counts as a value: Arrow makes a
column for every name, and each column is as long as the table."""


def batch_rows(schema: pa.Schema, most: int) -> int:
    """Returns how many records of the schema one table may have, so that it has at most MAX_CELLS values; `most`
    is the upper limit of the result."""
    return max(1, min(most, MAX_CELLS // max(1, sum(1 for _ in leaves(schema)))))


def most_absent(fields: int) -> int:
    """Returns how many absent values one table with so many fields may have.  A wide table may have fewer, because
    its columns have short chunks."""
    return MAX_CELLS // (1 + fields // WIDE)


@dataclass(frozen=True)
class ReadLimits:
    """The limits for reading one file; `Reading` contains them.  The first four are in bytes."""

    kept_csv: int = 64 << 20
    """Text and values of a CSV file that are kept in memory until its types are known; more goes to disk."""

    spooled_csv: int = 4 << 30
    """Values of a CSV file that are kept on disk, packed; a file with more is read twice (decision 50)."""

    csv_record: int = 64 << 20
    """The longest record of CSV. A quote that is never closed would otherwise fill the memory."""

    first_json: int = 64 << 10
    """The size of the first piece of a file of JSON records, whose records show its fields (decision 50)."""

    record_values: int = MAX_CELLS
    """The most values of a JSON record, or of the records that Arrow reads at once. An absent field counts as a
    value, because Arrow makes a column for every name."""


READ_LIMITS = ReadLimits()
"""The default limits."""


QUARANTINE = "quarantine"


@dataclass(frozen=True)
class Rejected:
    """One record that could not be read.

    `line` counts from 1: the line in which the record begins, or the row in a format without lines.  `raw` is
    the record's text, with bytes that are not UTF-8 replaced; `raw_bytes` then has the original bytes.
    """

    file: str
    line: int
    reason: str
    raw: str | None
    raw_bytes: bytes | None = None


REJECTED_SCHEMA = pa.schema(
    [
        ("file", pa.string()),
        ("line", pa.int64()),
        ("reason", pa.string()),
        ("raw", pa.string()),
        ("raw_bytes", pa.binary()),
        ("transaction", pa.string()),
        ("time", pa.timestamp("us", "UTC")),
    ]
)

Locate = Callable[[int], tuple[int, bytes | None]]
"""A function that gets the number of a row in a block's table, and returns the record's line and its text (None if
it has none)."""


@dataclass(frozen=True)
class Block:
    """Some records of one file, in the order of the file.

    `locate` returns the line and the text of a row; it is None if the format has no text to show.  `rows` has
    the columns `hidden.ROW` of the records (their ZNG types and bytes), null for a record that was changed
    while it was read; it is None if the format has no types of its own.  `faults` has, for each row with a
    value that no type can hold, the reason.  The table has null there, and `raws` has the text of some of these
    records.  `checked`: every record is within the limits, and `table` already has the columns of `rows`.
    """

    table: pa.Table
    rejected: tuple[Rejected, ...] = ()
    locate: Locate | None = None
    rows: pa.Table | None = None
    faults: Faults = field(default_factory=dict)
    raws: dict[int, str | None] = field(default_factory=dict)
    checked: bool = False


def silent(*_: object) -> None:
    """Does nothing; for callers who want neither progress nor messages."""


@dataclass
class Reading:
    """How to read one file: declared fields, the fields of the key, the options, and the policy for bad records.

    `rule` has the functions of the pool's fields; a value that they cannot combine makes a bad record.

    `path` is where the bytes are, if not at `file`.  `access` is as in `opening.remote`.  `constants` are fields
    that the file's folders add to each record.  The reader calls `progress` with the number of bytes read, and
    `tell` with what it detected.  `fields` counts the fields of all files of the load; `expansion` limits the
    content of the file.
    """

    file: str
    declared: dict[str, pa.Field] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    rule: Rule = APPEND
    bad_records: str = "fail"
    keyless: str = "accept"
    records: str = ""
    """The path of the list that holds a JSON document's records; if it is empty, the document itself is a
    record."""
    csv: CsvOptions = field(default_factory=CsvOptions)
    constants: tuple[tuple[pa.Field, str | None], ...] = ()
    path: str = ""
    access: Address | None = None
    block_bytes: int = 16 << 20
    limits: ReadLimits = READ_LIMITS
    progress: Callable[[str, float], None] = silent
    tell: Callable[[str], None] = silent
    fields: Fields = field(default_factory=Fields)
    expansion: Expansion = field(default_factory=Expansion)
    contract: Contract | None = None
    """The fields that the pool's records may have; None if they may have any."""
    taken: frozenset[str] = frozenset()
    """Declared fields whose types come from the contract, not from a user. So CSV may write their integers
    as 2.0."""
    lost: LostValues = field(default_factory=LostValues)
    """Counts what the contract left out of the file's records."""
    keeps_rows: bool = False
    """Whether the pool's objects keep each record in its original form too (`hidden.ROW`)."""

    def function(self, name: str) -> str:
        """Returns the name of the pool's aggregate function for the field; "" if the field has none."""
        return dict(self.rule.aggregates).get(name, "")

    def is_settled(self, name: str) -> bool:
        """Whether the type of the field is known; then its values may be of different kinds in different
        records."""
        return name in self.declared or (self.contract is not None and name in self.contract.scalars)

    def reject(self, line: int, reason: str, raw: str | bytes | None) -> Rejected:
        """Returns the record as a rejected one, with the reason for it.  Raises InvalidInput if the policy is
        `fail`."""
        if self.bad_records != QUARANTINE:
            raise InvalidInput(f"{self.file}, line {line}: {reason}")
        if not isinstance(raw, bytes):
            return Rejected(self.file, line, reason, raw)
        raw = raw.rstrip(b"\r\n")
        try:
            return Rejected(self.file, line, reason, raw.decode())
        except UnicodeDecodeError:
            return Rejected(self.file, line, reason, raw.decode(errors="replace"), raw)

    def unreadable(self, line: int, reason: str) -> NoReturn:
        """Raises InvalidInput for a damaged file: no single records can be found in it that could be
        quarantined."""
        where = f", line {line}" if line else ""
        one_line = " ".join(line.strip() for line in reason.splitlines())  # Arrow's have several
        raise InvalidInput(f"{self.file}{where}: {one_line}")


def rejected_table(rejected: list[Rejected], *, transaction: str, time: dt.datetime) -> pa.Table:
    """Returns the rejected records of a load as a table with the columns of the sub-pool `$rejected`."""
    return pa.Table.from_pylist(
        [{**vars(r), "transaction": transaction, "time": time} for r in rejected], schema=REJECTED_SCHEMA
    )
