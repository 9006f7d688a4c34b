"""Reads JSON: each object is a record; `json_frames` turns arrays and documents into lines.

Lines that all have one shape are split at their commas (`json_flat`).  Other lines go to Arrow's reader, a
block at a time.  Arrow converts strings that look like times to times.  A lake returns what it was given, so
such fields are read again as strings, and remembered for later blocks. Neither reader gets some lines right: a
malformed line, a field of several classes, integers that a double cannot hold, values that do not fit their
declared type, a key of another class than before.  These are read one by one, exactly, and bad lines are named
(`json_exact`). The nesting of a line is checked before a recursive reader gets it.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from lake_core.schemas.limits import MAX_NESTING, leaves
from lake_core.schemas.schema import EXACT_IN_DOUBLE
from lake_core.values.types import is_json
from log_lake.loading.block import WIDE, Block, Reading
from log_lake.loading.formats.json_exact import read_exact
from log_lake.loading.formats.json_flat import FlatLines, lose_digits
from log_lake.loading.formats.json_frames import frames
from log_lake.loading.formats.json_structure import Frame, positions, structure
from log_lake.loading.opening import open_text

_SPACE = np.frombuffer(b" \t\r\n", np.uint8)

_MOST_NEW = 1 << 17
"""The most names in a piece if some of them may be new; Arrow needs about 500 bytes for each column."""


_LARGE = 1 << 20
"""Bytes. A larger piece is first tried with the names known so far, before its names are counted."""


def read_ndjson(reading: Reading, *, only_lines: bool = False) -> Iterator[Block]:
    """Yields the file's records, in blocks.  With `only_lines` each line is one record.  Raises
    InvalidInput."""
    seen = _Seen(reading.limits.first_json)
    flat = FlatLines()
    with open_text(reading) as file:
        for frame in frames(file, reading, only_lines=only_lines):
            table = flat.read(frame.lines)
            if table is None:
                yield from _blocks(frame, reading, seen, only_lines=only_lines)
                continue
            places = _Places(frame, reading.limits.record_values)
            table = _fitting(table, reading, seen.kinds)
            if table is not None:
                yield Block(table, locate=places.locate)
            else:
                yield read_exact(places.frame, places.deep, reading, seen.kinds, only_lines=only_lines)


@dataclasses.dataclass
class _Seen:
    """What earlier pieces of a file showed.

    `times` are fields that look like times, as text.  `schema` has the fields that Arrow read, with their
    types; they have `width` leaves.  `kinds` are the kinds of the values that are ordered or added.  `size` is
    the size of the next piece.
    """

    size: int
    times: dict[str, pa.Field] = dataclasses.field(default_factory=dict)
    schema: pa.Schema = dataclasses.field(default_factory=lambda: pa.schema([]))
    width: int = 1
    kinds: dict[str, type] = dataclasses.field(default_factory=dict)

    def learn(self, schema: pa.Schema) -> None:
        """Adds the fields that Arrow found in a piece of the file."""
        try:
            self.schema = pa.unify_schemas([self.schema, schema], promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            self.schema = schema
        self.width = sum(1 for _ in leaves(self.schema))

    def forget(self) -> None:
        """Forgets all fields, because with so many fields a piece could have only few records."""
        self.schema, self.width = pa.schema([]), 1


def _blocks(frame: Frame, reading: Reading, seen: _Seen, *, only_lines: bool) -> Iterator[Block]:
    """Yields the frame's records, a piece at a time.

    Arrow makes a column for every name in a piece, as long as the piece.  Records that all have different names
    would fill the memory.  So only a small piece may have new names: one that fits even if all its names are
    new.  Other pieces may have only known names.  Most files show all names at the beginning; then each frame
    is one piece.

    If the load already has as many fields as it may have, a piece with new names is read line by line at once.
    """
    begin = number = 0
    only_known = True
    most = reading.limits.record_values
    while begin < len(frame.lines):  # every turn goes past a piece, or makes it smaller
        piece = frame.part(begin, number, seen.size)
        places = _Places(piece, most)
        fits_known = places.objects * seen.width <= most and only_known and len(seen.schema) > 0
        new = not (fits_known and len(piece.lines) > _LARGE) and places.are_few and not reading.fields.full
        if not (fits_known or places.are_few or places.records <= 1):
            if places.objects * seen.width > most and not reading.fields.full:
                seen.forget()  # the fields of these records may be few
            seen.size = max(1, min(seen.size, len(piece.lines)) // 4)
            continue
        read = None
        if not places.deep and (fits_known or new):
            read = _fast(piece.lines, places.records, reading, seen, new=new)
        only_known = read is not None or places.are_few or places.records <= 1
        if not only_known:
            continue
        table = None if read is None else _fitting(read, reading, seen.kinds)
        if read is None or table is None:
            yield read_exact(places.frame, places.deep, reading, seen.kinds, only_lines=only_lines)
        else:
            if new:
                seen.learn(read.schema)
            yield Block(table, locate=places.locate)
        seen.size = max(seen.size, min(8 * len(piece.lines), reading.block_bytes))
        begin += len(piece.lines)
        number += places.line_ends


class _Places:
    """Where the records of a frame are; lines are counted from 0. Each property is computed when it is first asked
    for."""

    def __init__(self, frame: Frame, most: int) -> None:
        """`most`: how many values the records may have."""
        self.frame = frame
        self._most = most

    @cached_property
    def _data(self) -> npt.NDArray[np.uint8]:
        return np.frombuffer(self.frame.lines, np.uint8)

    @cached_property
    def _ends(self) -> npt.NDArray[np.int64]:
        return positions(self._data, b"\n")

    @cached_property
    def _opening(self) -> npt.NDArray[np.int64]:
        return positions(self._data, b"{")

    @property
    def line_ends(self) -> int:
        """The number of line ends in the frame."""
        return len(self._ends)

    @cached_property
    def records(self) -> int:
        """The number of records in the frame."""
        return _count(self.frame.lines, self._data, self._ends)

    @cached_property
    def deep(self) -> frozenset[int]:
        """The numbers of the lines that are nested too deeply for a recursive reader."""
        # such a line has many opening brackets; most have few, and are not looked at closer
        first = np.searchsorted(self._ends, self._opening)
        most = MAX_NESTING + 1  # the record itself is none of its fields
        crowded = np.unique(first[:-most][first[:-most] == first[most:]])
        return frozenset(number for number in map(int, crowded) if self._is_deep(self._ends, number))

    @cached_property
    def objects(self) -> int:
        """The number of opening braces, which is at least the number of records; it also counts records inside
        records."""
        return len(self._opening)

    @cached_property
    def are_few(self) -> bool:
        """Whether the records fit into the memory even if all their names are distinct."""
        members = self.frame.lines.count(b":")
        return members <= _MOST_NEW and self.objects * members <= self._most

    def _is_deep(self, ends: npt.NDArray[np.int64], number: int) -> bool:
        begin = int(ends[number - 1]) + 1 if number else 0
        end = int(ends[number]) if number < len(ends) else len(self.frame.lines)
        brackets = structure(self.frame.lines[begin:end])
        return len(brackets.depth) > 0 and int(brackets.depth.max()) > MAX_NESTING + 1

    def locate(self, row: int) -> tuple[int, bytes]:
        """Returns the line and the text of a record; records are counted from 0."""
        return self.frame.locate(self._numbers[row])

    @cached_property
    def _numbers(self) -> list[int]:
        """The lines that hold records."""
        return [number for number, line in enumerate(self.frame.lines.split(b"\n")) if line.strip()]


def _count(lines: bytes, data: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64]) -> int:
    """Returns the number of lines that have more than white space."""
    begins = np.concatenate([[0], ends + 1])
    if begins[-1] == len(data):
        begins = begins[:-1]
    if not np.isin(data[begins], _SPACE).any():
        return len(begins)
    return sum(map(bool, map(bytes.strip, lines.split(b"\n"))))


_NULL = re.compile(rb"null")
_NULL_RECORDS = tuple(re.compile(begin + rb"[ \t\r,\[]*null") for begin in (rb"\A", rb"\n", rb"}"))
"""Patterns that find a null where a record may be: at the beginning of a line, or after a record.  Each begins
with one certain letter: Python finds such a pattern 40 times as fast as one with several possible first
letters."""


def _has_null_record(block: bytes) -> bool:
    """Whether a line may be `null`. On such a line Arrow 26 ends the process, or counts a record."""
    return bool(_NULL.search(block)) and any(null.search(block) for null in _NULL_RECORDS)


def _fast(block: bytes, records: int, reading: Reading, seen: _Seen, *, new: bool) -> pa.Table | None:
    """Reads the block with Arrow's reader.  Returns None if that reader might change a value.  With `new`, the
    block may have new names."""
    if _has_null_record(block):
        return None
    if any(is_json(f) and json.dumps(name).encode() in block for name, f in reading.declared.items()):
        return None
    table = _parse(block, list(seen.times.values()) if new else list(seen.schema), new=new)
    if table is not None and new and (times := [f for f in table.schema if _has_times(f.type)]):
        seen.times.update((f.name, f.with_type(_as_text(f.type))) for f in times)
        table = _parse(block, list(seen.times.values()), new=new)
    if table is None or not table.num_columns or table.num_rows != records:
        return None
    if any(_has_empty_record(f.type) or _has_times(f.type) for f in table.schema):
        return None
    return None if any(_has_doubles(f.type) for f in table.schema) and _loses_digits(block) else table


def _fitting(table: pa.Table, reading: Reading, kinds: dict[str, type]) -> pa.Table | None:
    """Returns the records in the pool's form, or None if some must be read exactly."""
    if any(map(_may_have_lost_digits, _doubles(table))):
        return None
    table = _apply_declared(table, reading)
    if table is None or not _keys_are_alike(table, reading, kinds) or reading.fields.take(table.schema):
        return None
    return table


def _keys_are_alike(table: pa.Table, reading: Reading, kinds: dict[str, type]) -> bool:
    """Whether the fields that are ordered or added have values of the same kinds as in earlier blocks; remembers
    new kinds."""
    in_table: dict[str, type] = {}
    for name in (*reading.key, *reading.rule.compared):
        index = table.schema.get_field_index(name)
        if index < 0 or name in reading.declared or pa.types.is_null(table.schema.field(index).type):
            continue
        kind = table.schema.field(index).type
        if pa.types.is_nested(kind):
            return False
        if table.column(index).null_count < table.num_rows:
            seen = str if pa.types.is_string(kind) else bool if pa.types.is_boolean(kind) else float
            if reading.function(name) == "sum" and seen is not float:
                return False
            if not reading.is_settled(name):
                in_table[name] = seen
    if any(kinds.get(name, kind) is not kind for name, kind in in_table.items()):
        return False
    kinds.update(in_table)
    return True


_LOOKED_FOR = 64
"""If at most this many fields have no value in a block, their names are searched in its text, because a null may
be written there."""


def _parse(block: bytes, expected: list[pa.Field], *, new: bool) -> pa.Table | None:
    most = 4 << 20 if len(expected) < WIDE else len(block) + 1  # each part has all columns
    try:
        table = pj.read_json(
            pa.BufferReader(block),
            read_options=pj.ReadOptions(block_size=max(1 << 20, min(len(block) + 1, most))),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema(expected) if expected else None,
                unexpected_field_behavior="infer" if new else "error",
            ),
        )
        table.validate(full=True)  # the reader does not check UTF-8
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    # fields that were learned elsewhere and are not in this block
    absent = [f.name for f in expected if table[f.name].null_count == table.num_rows]
    if len(absent) <= _LOOKED_FOR:
        absent = [name for name in absent if json.dumps(name).encode() not in block]
    return table.drop_columns(absent) if absent else table


def _is_time(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) or pa.types.is_date(kind)


def _has_times(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_times(f.type) for f in kind)
    if pa.types.is_list(kind):
        return _has_times(kind.value_type)
    return _is_time(kind)


def _as_text(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(_as_text(f.type)) for f in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_as_text(kind.value_type)))
    return pa.string() if _has_times(kind) else kind


def _has_empty_record(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return kind.num_fields == 0 or any(_has_empty_record(f.type) for f in kind)
    return pa.types.is_list(kind) and _has_empty_record(kind.value_type)


def _has_doubles(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_doubles(f.type) for f in kind)
    if pa.types.is_list(kind):
        return _has_doubles(kind.value_type)
    return bool(pa.types.is_floating(kind))


def _doubles(table: pa.Table) -> Iterator[pa.Array]:
    """Yields the arrays of doubles in the table, at any depth."""
    columns = [i for i, field in enumerate(table.schema) if _has_doubles(field.type)]
    stack = [chunk for i in columns for chunk in table.column(i).chunks]
    while stack:  # bounded by the nesting of the schema
        array = stack.pop()
        if pa.types.is_struct(array.type):
            stack.extend(array.flatten())
        elif pa.types.is_list(array.type):
            stack.append(array.flatten())
        elif pa.types.is_floating(array.type):
            yield array


def _may_have_lost_digits(array: pa.Array) -> bool:
    sizes = pc.abs(array)
    if pc.all(pc.is_finite(sizes)).as_py() is False:  # the reader takes NaN, which is no JSON
        return True
    largest = pc.max(sizes).as_py()
    return largest is not None and largest >= EXACT_IN_DOUBLE


_DIGITS = bytes(letter in b"0123456789." for letter in range(256))
_LONG = 16
_STEP = 4
"""The step of a quick search for long runs of digits. It looks at every fourth byte only, which takes a quarter of
the time; a long run has a digit there too."""
_TINY = re.compile(rb"e-[0-9]{3}"), re.compile(rb"E-[0-9]{3}")
_EXPONENT = re.compile(rb"[eE][+-]?[0-9]+")


def _loses_digits(block: bytes) -> bool:
    """Whether a number has more digits than a double gives back.  Up to 15 digits are safe; a longer number is
    examined by itself."""
    if any(_is_number(block, match.start()) for tiny in _TINY for match in tiny.finditer(block)):
        return True  # 1e-400 would be 0.0
    if b"\1" * (_LONG // _STEP) not in block[::_STEP].translate(_DIGITS):
        return False
    marks = block.translate(_DIGITS)
    if b"\1" * _LONG not in marks:
        return False
    edges = np.flatnonzero(np.diff(np.frombuffer(b"\0" + marks + b"\0", np.uint8)))
    begins, ends = edges[0::2], edges[1::2]
    long = ends - begins >= _LONG
    texts = pa.array(
        [_number_at(block, at, to) for at, to in zip(begins[long].tolist(), ends[long].tolist(), strict=True)]
    )
    return lose_digits(pa.chunked_array([texts.cast(pa.string()).drop_null()]), most=len(texts))


def _is_number(block: bytes, exponent: int) -> bool:
    """Whether the exponent at this position may belong to a number; otherwise it is part of a text, as in
    UUIDs."""
    begin = max(0, exponent - _LONG)
    digits = block[begin:exponent]
    text = digits.rstrip(b"0123456789.-")
    return not text or (len(text) < len(digits) and text[-1:] in _BEFORE_NUMBER)


_BEFORE_NUMBER = (b":", b",", b"[", b" ", b"\t", b"\r", b"\n")


def _number_at(block: bytes, begin: int, end: int) -> bytes | None:
    """Returns the number with these digits; None if they are part of a text."""
    start = begin - 1 if block[begin - 1 : begin] == b"-" else begin
    if block[start - 1 : start] not in _BEFORE_NUMBER:
        return None
    if block[end : end + 1] in (b"e", b"E") and (exponent := _EXPONENT.match(block, end)):
        end = exponent.end()
    return block[start:end] if block[end : end + 1] in _AFTER_NUMBER else None


_AFTER_NUMBER = (b",", b"}", b"]", b" ", b"\t", b"\r", b"\n", b"")


def _apply_declared(table: pa.Table, reading: Reading) -> pa.Table | None:
    """Returns the columns in their declared types, or None if a value must be read exactly."""
    for name, field in reading.declared.items():
        index = table.schema.get_field_index(name)
        if index < 0:
            continue
        column = table.column(index)
        if is_json(field) or not _converts(column.type, field.type):
            return None
        try:
            table = table.set_column(index, field, column.cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
    return table


def _converts(kind: pa.DataType, target: pa.DataType) -> bool:
    if kind == target or pa.types.is_null(kind):
        return True
    if pa.types.is_integer(kind):
        return pa.types.is_integer(target) or pa.types.is_floating(target)
    if pa.types.is_floating(kind):
        return pa.types.is_floating(target)
    return pa.types.is_string(kind) and (pa.types.is_timestamp(target) or pa.types.is_date(target))
