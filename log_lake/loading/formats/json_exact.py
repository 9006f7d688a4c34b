"""Reads JSON line by line, exactly, for blocks that the fast readers may get wrong.

Python's decoder reads each line, and keeps its numbers as they are written.  A line is a bad record, with a
reason, if it is not a record, or if its values cannot be ordered or summed with the earlier ones.
"""

from __future__ import annotations

import decimal
import json
import re
from collections.abc import Container, Iterator
from collections.abc import Set as AbstractSet
from typing import Any

from lake_core.schemas.limits import MAX_NESTING, LeafPath, names_fault
from lake_core.values.types import is_json
from log_lake.loading.block import Block, Reading, Rejected
from log_lake.loading.declared import DoesNotFit, convert
from log_lake.loading.formats.json_structure import Frame
from log_lake.loading.formats.python_values import table_from_records
from log_lake.texts.exact import exact_number
from log_lake.texts.typed_json import PLAIN


def read_exact(
    frame: Frame, deep: AbstractSet[int], reading: Reading, kinds: dict[str, type], *, only_lines: bool
) -> Block:
    """Reads the records of a frame line by line, and returns them as a block.

    `deep` are the numbers of the lines that are nested too deeply.  `kinds` are the classes that the values of
    each key field have had so far.  Several records may be on one line; with `only_lines` such a line is a bad
    record.
    """
    records: list[dict[str, Any]] = []
    numbers: list[int] = []
    rejected: list[Rejected] = []
    flat = frozenset(name for name, field in reading.declared.items() if is_json(field))
    for number, line in enumerate(frame.lines.split(b"\n")):
        if not line.strip():
            continue
        try:
            if number in deep:
                raise _Bad(f"nested deeper than {MAX_NESTING} records and lists within one another")
            values = [_checked(value, reading, kinds) for value in _values(line)]
            if len(values) > 1 and (only_lines or frame.spans):
                why = "a comma is missing" if frame.spans else "--format json reads them"
                raise _Bad(f"{len(values):,} records where one should be; {why}")
            most = line.count(b"{") * line.count(b":")
            bound = reading.limits.record_values
            if most > bound and (size := cells(values)) > bound:
                raise _Bad(f"{size:,} values, absent ones counted; a record may have at most {bound:,}")
            for record in values:
                if fault := reading.fields.take_paths(_paths(record, flat)):
                    raise _Bad(fault)
            records += values
            numbers += [number] * len(values)
        except _Bad as bad:
            at, raw = frame.locate(number)
            rejected.append(reading.reject(at, str(bad), raw))
    table = table_from_records(records, reading.declared, otherwise=reading.key)
    return Block(table, tuple(rejected), lambda row: frame.locate(numbers[row]))


class _Bad(ValueError):
    """Raised for a line that is not a record; its text is the reason."""


def _values(line: bytes) -> list[Any]:
    """Returns the JSON values of a line; most lines have one."""
    try:
        text = line.decode()
        value, end = _DECODER.raw_decode(text, _skipped(text, 0))
        values = [value]
        while (end := _skipped(text, end)) < len(text):  # every turn goes past a value
            if text[end] != "{":
                raise json.JSONDecodeError("Extra data", text, end)
            value, end = _DECODER.raw_decode(text, end)
            values.append(value)
        if "\\u" in text:
            json.dumps(values, ensure_ascii=False, default=str).encode()
    except UnicodeDecodeError as error:
        raise _Bad(f"not UTF-8: byte {error.start + 1} is {line[error.start]:#04x}") from error
    except UnicodeEncodeError as error:
        raise _Bad("a string holds half of a surrogate pair") from error
    except json.JSONDecodeError as error:
        raise _Bad(f"malformed JSON{_near(text, error.pos)}: {error.msg} (column {error.colno})") from error
    except (ValueError, RecursionError) as error:
        raise _Bad(f"malformed JSON: {error}") from error
    return values


def _skipped(text: str, position: int) -> int:
    """Returns the position after the white space that begins at this one."""
    space = _JSON_SPACE.match(text, position)
    return space.end() if space else position


_JSON_SPACE = re.compile(r"[ \t\r\n]*")


def _checked(record: Any, reading: Reading, kinds: dict[str, type]) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise _Bad(f"a record must be a JSON object, not {_json_kind(record)}")
    for name, field in reading.declared.items():
        if name in record:
            try:
                record[name] = convert(record[name], field)
            except DoesNotFit as error:
                raise _Bad(f"field {name!r}: {error}") from error
    for name in reading.key:
        if name not in reading.declared:
            _check_ordered("key field", name, record.get(name), kinds)
    for name in reading.rule.compared:
        if name not in reading.declared:
            if reading.function(name) == "sum" and _json_kind(record.get(name)) not in ("a number", "null"):
                raise _Bad(f"field {name!r}: {_shown(record[name])} is not a number, so it has no sum")
            if not reading.is_settled(name):
                _check_ordered("aggregated field", name, record.get(name), kinds)
    return record


def _check_ordered(what: str, name: str, value: Any, kinds: dict[str, type]) -> None:
    """Raises _Bad unless the value is of the same kind as the field's earlier ones: values that are ordered,
    compared or added must be of one kind in all records."""
    if value is None:
        return
    if isinstance(value, dict | list):
        raise _Bad(f"{what} {name!r}: {_json_kind(value)} has no order")
    if isinstance(value, decimal.Decimal):
        raise _Bad(
            f"{what} {name!r}: {value} has more digits than a double; declare a decimal type for the field"
        )
    kind = float if isinstance(value, int) and not isinstance(value, bool) else type(value)
    if kinds.setdefault(name, kind) is not kind:
        raise _Bad(f"{what} {name!r}: {_json_kind(value)}, unlike the records before it")


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def _json_kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {
        bool: "a boolean",
        int: "a number",
        float: "a number",
        decimal.Decimal: "a number",
        str: "a string",
        list: "a list",
        dict: "a record",
    }
    return names[type(value)]


def _within_limits(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns the members of an object.  Raises _Bad unless their names are distinct and within the limits."""
    if fault := names_fault(name for name, _ in pairs):
        raise ValueError(fault)
    return dict(pairs)


_DECODER = json.JSONDecoder(
    parse_float=exact_number,
    parse_int=exact_number,
    parse_constant=PLAIN.parse_constant,
    object_pairs_hook=_within_limits,
)


def _near(text: str, position: int) -> str:
    """Names the field before a position of a JSON text, for messages; "" if there is none."""
    names = re.findall(r'"((?:[^"\\]|\\.)*)"\s*:', text[: position + 1])
    return f" in field {names[-1]!r}" if names else ""


def _paths(record: dict[str, Any], flat: Container[str]) -> Iterator[LeafPath]:
    """Yields the path of each value of a record, also inside records and lists; a field in `flat` counts as one
    value."""
    for top, member in record.items():
        stack: list[tuple[LeafPath, Any]] = [((top,), None if top in flat else member)]
        while stack:  # bounded by the record
            path, value = stack.pop()
            inside: list[tuple[LeafPath, Any]] = []
            if isinstance(value, dict):
                inside = [((*path, name), inner) for name, inner in value.items()]
            elif isinstance(value, list):
                inside = [((*path, None), inner) for inner in value if isinstance(inner, dict | list)]
            if inside:
                stack += reversed(inside)
            else:
                yield path


def cells(records: list[Any]) -> int:
    """Returns how many values the columns of these records have together. In a list of records, each field has one
    value for each record."""
    lengths: dict[LeafPath, int] = {}
    lists: dict[LeafPath, LeafPath] = {}
    """By field, the list in which it is."""

    def look(path: LeafPath, above: LeafPath, value: Any) -> None:
        if isinstance(value, dict) and value:
            for name, inner in value.items():
                look((*path, name), above, inner)
        elif isinstance(value, list):
            path = (*path, None)
            lengths[path] = lengths.get(path, 0) + len(value)
            for inner in value:
                look(path, path, inner)
        elif path[-1] is not None:  # the items of a list of other values are as many as are written
            lists[path] = above

    look((), (), records)
    return sum(lengths[above] for above in lists.values())
