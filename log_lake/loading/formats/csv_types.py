"""The type of a CSV column: the narrowest one that gives every value back as it was written (decision 52).

| type | when every value is |
|---|---|
| boolean | `true` or `false`, `True`, `TRUE` |
| 64-bit integer, signed, otherwise unsigned | its digits, without a plus or leading zeros |
| double | a plain number, the shortest text of its double; `5` comes back as `5.0` |
| decimal | a number, and all have the same number of digits after the point: `1.10`, `2.50` |
| date; timestamp | ISO 8601, without a zone |
| instant | ISO 8601 with `Z`; another offset would not come back |
| string | anything else: `007`, `+5`, `0x10`, `1e5`, `1.10` beside `1.1`, `1e400` |

Two different texts never become one value: a column of `1` and `1.0`, of `true` and `TRUE`, or of moments
written in two ways is text (`csv_features`).  A column without any value has the null type.  Types are found
block by block and joined (`Narrowing`).

A declared field is not inferred: its text is read as the declared type (`read_as`), even if it looks like
another. Called by `csv`.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.schemas.schema import EXACT_IN_DOUBLE
from lake_core.values.types import is_json, show_type
from log_lake.columns.json_text import shown
from log_lake.loading.declared import read_declared
from log_lake.loading.formats.csv_features import apart, features
from log_lake.texts.fit import array_of, fitted
from log_lake.texts.typed_json import to_typed
from log_lake.texts.value import NotReadable, read_decimal, read_double

_BOOLEANS = ("true", "false", "True", "False", "TRUE", "FALSE")
_SAMPLE = 64
_INT, _UINT, _DOUBLE = pa.int64(), pa.uint64(), pa.float64()
_DATE, _TIME, _INSTANT = pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")
_PLAIN = r"^-?(0|[1-9][0-9]*)(\.([0-9]*[1-9]|0))?$"
"""A number without a plus, an exponent, needless zeros in front, or zeros at the end."""

_WITH_ZEROS = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?$"

_SURE_DIGITS = 15
"""The most characters of a plain number that certainly come back unchanged from its double."""

_MINUS, _POINT, _ZERO = b"-.0"
_NUMERIC = np.isin(np.arange(256), [ord(letter) for letter in "0123456789.-"])

_PRECISIONS = (18, 38)
"""The numbers of digits that a decimal column may have. There are only two, so that files of one pool rarely
differ in this."""


class Narrowing:
    """The type of a column as far as the values read until now show it; `kind` is that type.  Each further value
    can only narrow the choice of types."""

    def __init__(self) -> None:
        self.kind: pa.DataType = pa.null()
        self._largest = 0  # of the integers seen, whatever the sign
        self._negative = False
        self._written: set[str] = set()
        self._scale: int | None = None  # digits behind the point of all numbers so far; -1 if they differ

    def see(self, column: pa.ChunkedArray) -> pa.ChunkedArray | None:
        """Narrows the column's type by more of its values.  Returns these values in their own narrowest type.

        Returns None if all of the values are null, or if an earlier value had no type except text.
        """
        if pa.types.is_string(self.kind) or column.null_count == len(column):
            return None
        kind, values = narrowest(column)
        if pa.types.is_integer(kind):
            bounds = pc.min_max(values).as_py()
            self._largest = max(self._largest, abs(bounds["min"]), abs(bounds["max"]))
            self._negative = self._negative or bounds["min"] < 0
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        if is_number and self._scale != -1:
            scale = 0 if pa.types.is_integer(kind) else common_scale(column)
            self._scale = scale if self._scale in (None, scale) else -1
        self._written |= features(kind, column, values)
        self.kind = self._joined(kind) if apart(self._written) else pa.string()
        return values

    def _joined(self, kind: pa.DataType) -> pa.DataType:
        both = {self.kind, kind} - {pa.null()}
        if len(both) == 1:
            return both.pop()
        if both == {_INT, _UINT} and not self._negative:
            return _UINT
        if both in ({_INT, _DOUBLE}, {_UINT, _DOUBLE}) and self._largest <= EXACT_IN_DOUBLE:
            return _DOUBLE
        if both == {_DATE, _TIME}:
            return _TIME
        decimals = [k for k in both if pa.types.is_decimal(k)]
        if decimals and len(decimals) + (_DOUBLE in both) == 2 and (self._scale or 0) > 0:
            return max(decimals, key=lambda k: k.precision)
        return pa.string()


def becomes(kind: pa.DataType, joined: pa.DataType) -> bool:
    """Whether a cast turns values of the type `kind` into the type `joined`, which the whole column has.

    Text is cast to no other type, and no other type is cast to text: 5.0 may have been written 5.
    """
    if pa.types.is_decimal(kind):
        return pa.types.is_decimal(joined)
    return kind == joined or (kind, joined) in _CASTS


_CASTS = {(_INT, _UINT), (_INT, _DOUBLE), (_UINT, _DOUBLE), (_DATE, _TIME)}


def narrowest(column: pa.ChunkedArray) -> tuple[pa.DataType, pa.ChunkedArray]:
    """Returns the first type in the table above that fits all values, and the values in it.  There must be at
    least one value.

    A few values exclude most types, so few types are tried on the whole column.
    """
    sample = column.slice(0, 16 * _SAMPLE).drop_null()
    if not len(sample):
        sample = column.drop_null()
    sample = sample.slice(0, _SAMPLE)
    for parse in _LADDER:
        try:
            parse(sample)
            values = parse(column)
        except (pa.ArrowInvalid, _OtherwiseWritten):
            continue
        return values.type, values
    return pa.string(), column


def common_scale(column: pa.ChunkedArray) -> int:
    """Returns the number of digits after the point that all numbers of the column have; -1 if they differ or have
    an exponent."""
    point = pc.find_substring(column, ".")
    digits = pc.if_else(pc.less(point, 0), 0, pc.subtract(pc.utf8_length(column), pc.add(point, 1)))
    bounds = pc.min_max(digits).as_py()
    if bounds["min"] is None or bounds["min"] != bounds["max"]:
        return -1
    return -1 if pc.any(pc.match_substring(column, "e", ignore_case=True)).as_py() else int(bounds["min"])


class _OtherwiseWritten(ValueError):
    """Raised for a text that can be read as a value of the type, but is not written as the lake writes that
    value."""


def _boolean(column: pa.ChunkedArray) -> pa.ChunkedArray:
    _require(pc.is_in(column, value_set=pa.array(_BOOLEANS), skip_nulls=False), column)
    return column.cast(pa.bool_())


def _integer(kind: pa.DataType) -> Callable[[pa.ChunkedArray], pa.ChunkedArray]:
    def parse(column: pa.ChunkedArray) -> pa.ChunkedArray:
        values = column.cast(kind)
        if not written_shortest(column):
            raise _OtherwiseWritten
        return values

    return parse


def written_shortest(texts: pa.ChunkedArray) -> bool:
    """Whether every integer is written in its shortest form: no plus, no leading zeros, no sign before zero.

    `texts` are those that Arrow reads as integers. The first character that is not a sign decides; it also
    excludes texts such as 0x174876E800.
    """
    return all(_begin_shortest(chunk.drop_null() if chunk.null_count else chunk) for chunk in texts.chunks)


def _begin_shortest(texts: pa.Array) -> bool:
    if not len(texts):
        return True
    letters, offsets = _letters(texts)
    begin, end = offsets[:-1], offsets[1:]
    negative = letters[begin] == _MINUS
    lead = letters[begin + negative]  # Arrow reads no text that is a minus alone
    zero = (lead == _ZERO) & ((end - begin > 1) | negative)
    return not ((lead < _ZERO) | zero).any()


def _letters(texts: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """Returns the bytes of all texts, and the position of each text in them, followed by the end of the
    last."""
    letters = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
    offsets = np.frombuffer(texts.buffers()[1], np.int32, len(texts) + 1, texts.offset * 4)
    return letters[offsets[0] : offsets[-1]], offsets - offsets[0]


def _double(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Returns the column as doubles.  Raises _OtherwiseWritten if a text is not written as its double is."""
    values = column.cast(_DOUBLE)
    sure = pa.chunked_array([sure_numbers(chunk, zeros=False) for chunk in column.chunks], pa.bool_())
    if not pc.all(sure).as_py():
        rest, texts = values.filter(pc.invert(sure)), column.filter(pc.invert(sure))
        own = shown(rest, pa.field("", _DOUBLE))
        same = pc.or_(pc.equal(own, texts), pc.equal(own, pc.binary_join_element_wise(texts, ".0", "")))
        same = pc.and_(same, pc.is_finite(rest))
        for text in texts.filter(pc.invert(same)).to_pylist():
            _require_shortest(text)
    return values


def sure_numbers(texts: pa.Array, *, zeros: bool) -> pa.Array:
    """Returns for each text whether it is a plain number that certainly comes back unchanged from its double; null
    for null.

    Only the first and last characters of most texts are examined. `zeros`: zeros at the end, after the point,
    are allowed.
    """
    lengths = pc.binary_length(texts).fill_null(0).to_numpy(zero_copy_only=False)
    if not lengths.any():
        return pc.if_else(texts.is_valid(), False, None)
    letters, offsets = _letters(texts)
    pattern = _WITH_ZEROS if zeros else _PLAIN
    if not _NUMERIC[letters].all():  # an exponent, a plus, a word
        short = pc.less_equal(pc.utf8_length(texts), _SURE_DIGITS)
        return pc.and_(pc.match_substring_regex(texts, pattern), short)
    top = len(letters) - 1
    begin, end = offsets[:-1], offsets[1:]
    first = begin + (letters[np.minimum(begin, top)] == _MINUS)
    lead, after = letters[np.minimum(first, top)], letters[np.minimum(first + 1, top)]
    last = letters[np.maximum(end - 1, 0)]
    plain = (lead != _POINT) & (last != _POINT) & (last != _MINUS)
    plain &= (lengths > 0) & (lengths <= _SURE_DIGITS)
    plain &= (lead != _ZERO) | (end - first == 1) | (after == _POINT)
    doubtful = plain & (last == _ZERO)  # 10 and 1.0 are plain, 1.10 is not
    if not zeros and doubtful.any():
        plain[doubtful] = np.asarray(pc.match_substring_regex(texts.filter(pa.array(doubtful)), pattern))
    return pc.if_else(texts.is_valid(), pa.array(plain), None)


def _require_shortest(text: str) -> None:
    """Raises _OtherwiseWritten unless the text is how its double is written, or a plain form of it: `0.00000123`
    for 1.23e-06."""
    try:
        exact, double = read_decimal(text), float(text)
        if text == repr(double):
            return
        if "e" in text.lower() or text.strip("+-0123456789.") or not _is_plain(text):
            raise _OtherwiseWritten
        if decimal.Decimal(repr(double)) == exact and abs(double) <= EXACT_IN_DOUBLE:
            return
    except (NotReadable, ValueError, decimal.InvalidOperation) as error:
        raise _OtherwiseWritten from error
    raise _OtherwiseWritten


def _is_plain(text: str) -> bool:
    return bool(pc.match_substring_regex(pa.scalar(text), _PLAIN).as_py())


def _decimal(column: pa.ChunkedArray) -> pa.ChunkedArray:
    scale = common_scale(column)
    if scale <= 0:
        raise _OtherwiseWritten
    for precision in _PRECISIONS:
        if scale < precision:
            try:
                values = column.cast(pa.decimal128(precision, scale))
            except pa.ArrowInvalid:
                continue
            _require(pc.equal(shown(values, pa.field("", values.type)), column), column)
            return values
    raise _OtherwiseWritten


def _date(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return _in_calendar(column).cast(_DATE)


def _time(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return _in_calendar(column).cast(_TIME)


def _instant(column: pa.ChunkedArray) -> pa.ChunkedArray:
    _require(pc.match_substring_regex(column, r"(Z|\+00:?00)$"), column)
    return _in_calendar(column).cast(_INSTANT)


def _in_calendar(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Returns the column.  Raises _OtherwiseWritten for the year 0, which pools do not store."""
    _require(pc.invert(pc.starts_with(column, "0000")), column)
    return column


def _require(holds: pa.ChunkedArray, column: pa.ChunkedArray) -> None:
    """Raises _OtherwiseWritten unless `holds` is true for every value that is not null."""
    if not pc.all(pc.or_kleene(holds, pc.is_null(column))).as_py():
        raise _OtherwiseWritten


_LADDER: tuple[Callable[[pa.ChunkedArray], pa.ChunkedArray], ...] = (
    _boolean,
    _integer(_INT),
    _integer(_UINT),
    _double,
    _decimal,
    _date,
    _time,
    _instant,
)


def read_as(
    column: pa.ChunkedArray, field: pa.Field, wrong: dict[int, str], *, inferred: bool = False
) -> pa.ChunkedArray:
    """Returns the text as values of the field's type.  A value that does not fit becomes null, and `wrong` gets
    the reason for its row.

    `inferred`: the type was inferred from these same values, so Arrow misreads no number among them.
    """
    if not (is_json(field) or pa.types.is_binary(field.type)):
        try:
            values = column.cast(field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass
        else:
            if inferred or not _reads_other_numbers(column, values):
                return values
    texts = (
        pa.concat_arrays(column.chunks).dictionary_encode()
        if column.num_chunks
        else pa.array([], pa.string())
    )
    if not len(texts):
        return pa.chunked_array([pa.array([], field.type)])
    distinct, reasons = [], {}
    for number, text in enumerate(texts.dictionary.to_pylist()):
        value = None
        try:
            value = _value(text, field)
        except ValueError as error:
            shown_text = text if len(text) <= 60 else text[:57] + "..."
            reasons[number] = f"field {field.name!r}: {shown_text!r} is not a {show_type(field)}: {error}"
        distinct.append(value)
    if reasons:
        for row, number in enumerate(texts.indices.to_pylist()):
            if number in reasons:
                wrong.setdefault(row, reasons[number])
    return pa.chunked_array([array_of(distinct, field.type).take(texts.indices)])


def _reads_other_numbers(column: pa.ChunkedArray, values: pa.ChunkedArray) -> bool:
    """Whether Arrow may have misread a number: 0x10, 1e400 as infinity, a decimal that overflows."""
    if pa.types.is_decimal(values.type):
        own = shown(values, pa.field("", values.type))
        return not pc.all(pc.or_kleene(pc.equal(own, column), pc.is_null(column))).as_py()
    if pa.types.is_integer(values.type):
        return any(pc.any(pc.match_substring(column, x)).as_py() for x in "xX")
    return pa.types.is_floating(values.type) and pc.any(pc.is_inf(values)).as_py() is True


def _value(text: str, field: pa.Field) -> object:
    """One text in the field's type; raises ValueError."""
    if is_json(field):
        typed = to_typed(text)
        return None if typed == "null" else typed
    if pa.types.is_boolean(field.type) and text.lower() in ("true", "false", "1", "0"):
        return text.lower() in ("true", "1")
    if pa.types.is_floating(field.type):  # -0 has a sign there
        return fitted(read_double(text), field)
    return read_declared(text, field)
