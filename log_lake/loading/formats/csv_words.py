"""Reads values that are written as options say: words for true and false, formats of times, decimal commas.

A column without a declared type gets the option's type only if every value is written as the option says;
otherwise it is read as without options.  For a declared type, a value that is written differently makes a bad
record.  Called by `csv`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from log_lake.loading.csv_options import CsvOptions
from log_lake.settings.time_format import codes

_TRUE, _FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")
_COMMA_NUMBER = r"^[+-]?[0-9]+(,[0-9]+)?([eE][+-]?[0-9]+)?$|^[+-]?,[0-9]+([eE][+-]?[0-9]+)?$"
_SAMPLE = 64

Respell = Callable[[pa.ChunkedArray], pa.ChunkedArray]
"""A function that returns a column's values as they would be written without options; null for a value that is not
written as the option says."""


def spellings(options: CsvOptions) -> dict[str, tuple[Respell, pa.DataType | None]]:
    """Returns the ways of writing that the options name, in the order in which they are tried, each with its
    function and type.

    If the type is None, it is inferred from the rewritten text, as for any text.
    """
    respellings: dict[str, tuple[Respell, pa.DataType | None]] = {}
    if options.true or options.false:
        respellings["boolean"] = (lambda c: _booleans(c, options)), pa.bool_()
    if options.date_format:
        respellings["date"] = (lambda c: _times(c, options.date_format, _iso_date)), pa.date32()
    if options.time_format:
        zoned = "z" in codes(options.time_format)
        respellings["time"] = (
            (lambda c: _times(c, options.time_format, _iso_time)),
            pa.timestamp("us", "UTC" if zoned else None),
        )
    if options.decimal == ",":
        respellings["number"] = _points, None
    return respellings


def spelling_of(kind: pa.DataType) -> str:
    """Returns the name of the way of writing (a key of `spellings`) that applies to a declared type."""
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_date(kind):
        return "date"
    if pa.types.is_timestamp(kind):
        return "time"
    return "number" if pa.types.is_floating(kind) or pa.types.is_decimal(kind) else ""


def respelled(column: pa.ChunkedArray, respell: Respell) -> pa.ChunkedArray | None:
    """Returns the column's texts rewritten by the function, so that Arrow can read them; None if a value is not
    written as the option says.  A few values are tried first."""
    for part in (column.slice(0, _SAMPLE), column):
        values = respell(part)
        if values.null_count > part.null_count:
            return None
    return values


def _booleans(column: pa.ChunkedArray, options: CsvOptions) -> pa.ChunkedArray:
    true = pa.array([*options.true, *(w for w in _TRUE if w not in options.false)], pa.string())
    false = pa.array([*options.false, *(w for w in _FALSE if w not in options.true)], pa.string())
    return pc.if_else(
        pc.is_in(column, value_set=true),
        "true",
        pc.if_else(pc.is_in(column, value_set=false), "false", pa.scalar(None, pa.string())),
    )


def _points(column: pa.ChunkedArray) -> pa.ChunkedArray:
    fits = pc.match_substring_regex(column, _COMMA_NUMBER)
    return pc.if_else(fits, pc.replace_substring(column, ",", "."), pa.scalar(None, pa.string()))


def _times(column: pa.ChunkedArray, format: str, iso: Callable[[dt.datetime], str]) -> pa.ChunkedArray:
    encoded = column.combine_chunks().dictionary_encode() if column.num_chunks else None
    if encoded is None:
        return column
    texts: list[str | None] = []
    for text in encoded.dictionary.to_pylist():
        try:
            texts.append(iso(dt.datetime.strptime(text, format)))
        except (ValueError, OverflowError):
            texts.append(None)
    return pa.chunked_array([pa.array(texts, pa.string()).take(encoded.indices)])


def _iso_date(moment: dt.datetime) -> str:
    return moment.date().isoformat()


def _iso_time(moment: dt.datetime) -> str:
    """Returns the moment as ISO 8601, in UTC if the text has a zone."""
    return (moment.astimezone(dt.UTC).replace(tzinfo=None) if moment.tzinfo else moment).isoformat(
        sep=" "
    ) + ("+00:00" if moment.tzinfo else "")
