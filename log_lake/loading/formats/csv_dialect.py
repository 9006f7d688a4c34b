"""Finds the delimiter and the header of a CSV file (decision 37).

The header decides among `,` `;` tab and `|`.  A delimiter fits if it occurs in the header, and most of the next
records have as many values.  The comma is taken if it fits, otherwise the only other one that fits.  If two
others fit, or none, it is the comma: a file of one field has no delimiter.  The file endings `.tsv`, `.tab` and
`.psv` decide without any look at the text.  Called by `csv`.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

from lake_core.schemas.limits import MAX_COLUMNS, names_fault
from log_lake.loading.block import Reading
from log_lake.loading.csv_options import CsvOptions
from log_lake.loading.formats.csv_lines import Dialect, records_of

CANDIDATES = (",", ";", "\t", "|")
_ENDINGS = {".tsv": "\t", ".tab": "\t", ".psv": "|"}
_LOOKED_AT = 50
"""Records that are examined to find the delimiter."""

_SHOWN = {"\t": "tab"}


def dialect_of(sample: bytes, reading: Reading, *, told: str = "") -> Dialect:
    """Returns the dialect of a file that begins with the sample; calls `reading.tell` with what it detected.

    `told` is the delimiter that a line before the header names, or "".  Raises InvalidInput if another option
    already uses the character that would be the delimiter.
    """
    options = reading.csv
    if options.delimiter:
        return _dialect(options, options.delimiter)
    if told:
        if told in options.reserved:
            reading.unreadable(1, f"the line sep= says {_named(told)} between values; {_OTHERWISE}")
        reading.tell(f"delimiter {_named(told)}, by the line sep=")
        return _dialect(options, told)
    name = reading.file.rpartition("/")[2].lower()
    for ending, delimiter in _ENDINGS.items():
        if ending in name[-12:] and (name.endswith(ending) or f"{ending}." in name):
            if delimiter in options.reserved:
                reading.unreadable(0, f"the name says {_named(delimiter)} between values; {_OTHERWISE}")
            return _dialect(options, delimiter)
    if len(sample.rsplit(b"\n", 1)) == 2:
        sample = sample.rsplit(b"\n", 1)[0] + b"\n"  # the last record may be cut
    usable = [c for c in CANDIDATES if c not in options.reserved]
    if options.decimal == "," and "," in usable:
        usable.remove(",")  # a number's decimal comma would count as a delimiter
    fitting = [c for c in usable if _fits(sample, _dialect(options, c))]
    if "," in usable and ("," in fitting or len(fitting) != 1):
        return _dialect(options, ",")
    if len(fitting) == 1:
        reading.tell(f"delimiter {_named(fitting[0])}, by the header")
        return _dialect(options, fitting[0])
    comma_may_be_both = options.decimal == "," and "," not in options.reserved
    if fitting or not usable or (comma_may_be_both and _fits(sample, _dialect(options, ","))):
        reading.unreadable(0, f"the delimiter cannot be told; {_OTHERWISE}")
    return _dialect(options, usable[0])  # one field


_OTHERWISE = "say csv.delimiter, since csv.quote, csv.escape, csv.comment or csv.decimal have that character"


def _named(character: str) -> str:
    return _SHOWN.get(character, repr(character))


def _dialect(options: CsvOptions, delimiter: str) -> Dialect:
    return Dialect(delimiter, options.quote, options.escape, options.comment)


def _fits(sample: bytes, dialect: Dialect) -> bool:
    """Whether the header has the delimiter, and most of the next records have as many values as the header."""
    widths: list[int] = []
    for line in records_of(sample, 1, dialect):
        raw = line.raw(sample)
        if raw.strip() and not line.open:
            widths.append(len(values_of(raw.decode(errors="replace"), dialect)))
        if len(widths) > _LOOKED_AT:
            break
    return bool(widths) and widths[0] > 1 and 2 * widths.count(widths[0]) > len(widths)


def values_of(text: str, dialect: Dialect) -> list[str]:
    """Returns the values of one record as texts.  Raises csv.Error."""
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=dialect.delimiter,
        quotechar=dialect.quote or None,
        quoting=csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE,
        escapechar=dialect.escape or None,
    )
    return next(reader, [])


@dataclass(frozen=True)
class Header:
    """The header of a CSV file: the field names, the line at which the records begin, and how many bytes of the
    first block precede them."""

    names: list[str]
    first: int
    begin: int


def header_of(block: bytes, first: int, dialect: Dialect, reading: Reading) -> Header | None:
    """Returns the header of a file that begins with the block; None if the block has no record.  `first` is the
    line at which the block begins."""
    options = reading.csv
    line = next((r for r in records_of(block, first, dialect) if r.raw(block).strip()), None)
    if line is None:
        return None
    if line.fault:
        reading.unreadable(line.number, f"malformed CSV header: {line.fault}")
    try:
        csv.field_size_limit(1 << 26)
        values = values_of(line.raw(block).decode(), dialect)
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        reading.unreadable(
            line.number,
            f"the header is not UTF-8 (byte {byte:#04x}); say how the file is encoded, such as csv.encoding=cp1252",
        )
    except csv.Error as error:
        reading.unreadable(line.number, f"malformed CSV header: {error}")
    if options.header == "none":
        names = list(options.names) or [f"column_{i}" for i in range(1, len(values) + 1)]
        header = Header(names, line.number, line.begin)
    else:
        header = Header(list(options.names) or values, line.next_number, line.behind)
    if options.names and len(options.names) != len(values):
        reading.unreadable(
            line.number, f"csv.names has {len(options.names)} names, but the line has {len(values)} values"
        )
    names = _numbered(header.names) if options.bad_names == "number" else header.names
    if len(names) > MAX_COLUMNS:
        reading.unreadable(line.number, f"{len(names):,} fields; a record may have at most {MAX_COLUMNS:,}")
    if fault := "a name is empty" if "" in names else names_fault(names):
        reading.unreadable(
            line.number,
            f"the header must name every field once: {fault}; say csv.bad_names=number, or csv.names",
        )
    return Header(names, header.first, header.begin)


def _numbered(names: list[str]) -> list[str]:
    """Makes the names distinct: an empty one becomes its column's number, a repeated one gets the next free
    number."""
    taken, distinct = set(names), []
    used: set[str] = set()
    for column, name in enumerate(names, 1):
        name = name or f"column_{column}"
        number, base = 1, name
        while name in used or (number > 1 and name in taken):  # bounded by the columns
            number += 1
            name = f"{base}_{number}"
        used.add(name)
        distinct.append(name)
    return distinct
