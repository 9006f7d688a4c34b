"""Checks the records of every file, in any format: UTF-8, the limits of values and keys, and that a record has the
key.

A record that fails is a bad record: it is named by line or row, and rejected or quarantined.  Arrow checks a
column at a time; only if a column fails, its rows are checked one by one.  Called by `detect` for each file,
and by `builder` for tables of a program.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.errors import InvalidInput
from lake_core.schemas import hidden
from lake_core.schemas.limits import schema_fault
from lake_core.schemas.rule import Rule
from log_lake.columns.nested import Items, alternatives, fields_of, is_list
from log_lake.combine.prepare import uncombinable
from log_lake.loading.block import QUARANTINE, Block, Reading, Rejected
from log_lake.loading.contract import Faults, changed_rows, lost_line
from log_lake.loading.key_paths import with_key_paths
from log_lake.loading.partitions import with_constants
from log_lake.loading.typed_records import shown_record
from log_lake.objects.storable import ALWAYS_STORABLE, unstorable

MAX_KEY_BYTES = 32_768
"""The most bytes of one text or binary value of a record's key. The journal and every object's footer hold
keys."""

MAX_VALUE_BYTES = 16 << 20
"""The most bytes of one text or binary value, or of one value that is kept as JSON."""


def checked(blocks: Iterator[Block], reading: Reading, *, trusts_json: bool = False) -> Iterator[Block]:
    """Yields the blocks of one file without the records that exceed a limit.  Raises InvalidInput.

    `trusts_json`: the reader wrote all typed JSON in the blocks itself.

    If no record of the file has the key, and the policy for such records is `fail`, it raises InvalidInput
    before it yields the last block.
    """
    row, keyed, last = 0, False, None
    for block in blocks:
        keyed_rows = with_key_paths(
            with_constants(block.table, reading.constants, reading.file), reading.key, reading.declared
        )
        table = keyed_rows.table
        if fault := reading.fields.take(table.schema):
            reading.unreadable(0, fault)
        # bad records count: their keys are there
        keyed = keyed or bool(block.faults) or _has_key(table, reading)
        wrong = {**faults(table, reading, trusts_json=trusts_json), **block.faults, **keyed_rows.wrong}
        rows = table.num_rows
        read, (table, wrong, changed) = table, _sound(table, wrong, reading)
        if wrong:
            rejected = [_rejected(block, read, at, row, why, reading) for at, why in sorted(wrong.items())]
            block = replace(block, rejected=tuple(sorted([*block.rejected, *rejected], key=_line)))
        whole = None if reading.constants or keyed_rows.added else block.rows
        if whole is not None:
            whole = whole.filter(_good(wrong, rows)) if wrong else whole
            if changed.any():  # such a record is no more as it came
                whole = whole.take(pa.array(np.arange(len(changed)), mask=changed))
            table = hidden.beside(table, whole)
        block = Block(table, block.rejected, checked=True)  # the text is not needed any more
        row += rows
        if last is not None:
            yield last
        last = block
    if row and not keyed and reading.keyless == "fail" and reading.key:
        assert last is not None
        names = [repr(field.name) for field in last.table.schema if not pa.types.is_null(field.type)]
        raise InvalidInput(
            f"{reading.file}: no record has the key field {reading.key[0]!r}; the last ones have "
            f"{', '.join(names[:8]) or 'no fields'}{' and more' if len(names) > 8 else ''}; "
            "nokey=accept (--nokey accept) sends them to $nokey"
        )
    if line := lost_line(reading.lost):
        reading.tell(line)
    if last is not None:
        yield last


def _sound(
    table: pa.Table, wrong: Faults, reading: Reading
) -> tuple[pa.Table, Faults, npt.NDArray[np.bool_]]:
    """Returns the records that stay, all faults by row of `table`, and for each record that stays whether it was
    changed.

    The pool's contract examines only records that have no other fault.
    """
    rows = table.num_rows
    if wrong:
        numbers = pc.indices_nonzero(_good(wrong, rows)).to_pylist()
        table = _without_empty_types(table.take(pa.array(numbers, pa.int64())), reading)
    if reading.contract is None:
        return table, wrong, np.zeros(table.num_rows, np.bool_)
    kept = reading.contract.keep(table, first=reading.bad_records != QUARANTINE)
    reading.lost.update(kept.lost)
    changed = changed_rows(table, kept.table) if reading.keeps_rows else np.zeros(table.num_rows, np.bool_)
    if not kept.wrong:
        return kept.table, wrong, changed
    broken = {numbers[at] if wrong else at: why for at, why in kept.wrong.items()}
    good = _good(kept.wrong, table.num_rows)
    return kept.table.filter(good), wrong | broken, changed[good.to_numpy(zero_copy_only=False)]


def _good(wrong: Faults, rows: int) -> pa.Array:
    """Returns for each row whether it has no fault."""
    return pa.array([at not in wrong for at in range(rows)], pa.bool_())


def _without_empty_types(table: pa.Table, reading: Reading) -> pa.Table:
    """Returns the table. An aggregated field that lost all its values, because they were bad, gets the null
    type."""
    for index, field in enumerate(table.schema):
        if reading.function(field.name) and table.column(index).null_count == table.num_rows:
            table = table.set_column(index, field.name, pa.nulls(table.num_rows))
    return table


def program_table(table: pa.Table, key: tuple[str, ...], rule: Rule) -> pa.Table:
    """Returns a table that a program passes to a load, with a field added for each name of the key that is a path
    into records.

    Raises InvalidInput if a record exceeds a limit, or cannot be combined.
    """
    if fault := schema_fault(table.schema):
        raise InvalidInput(fault)
    table = with_key_paths(table, key, {}).table
    for row, why in sorted(faults(table, Reading("", key=key, rule=rule)).items()):
        raise InvalidInput(f"record {row + 1}: {why}")
    return table


def _line(rejected: Rejected) -> int:
    return rejected.line


def _has_key(table: pa.Table, reading: Reading) -> bool:
    if not reading.key:
        return True
    index = table.schema.get_field_index(reading.key[0])
    return index >= 0 and table.column(index).null_count < table.num_rows


def _rejected(block: Block, table: pa.Table, at: int, row: int, why: str, reading: Reading) -> Rejected:
    if block.locate is not None:
        line, raw = block.locate(at)
        return reading.reject(line, why, raw)
    text = block.raws[at] if at in block.raws else shown_record(table.slice(at, 1))
    return reading.reject(row + at + 1, why, text)


def _fault_of(column: pa.ChunkedArray) -> str:
    """Returns why Arrow considers the column invalid; "" if it is valid."""
    try:
        column.validate(full=True)
    except UnicodeDecodeError:
        return "not UTF-8"
    except pa.ArrowException as error:
        why = str(error).splitlines()[0]
        return "not UTF-8" if "UTF8" in why else f"not a value of {column.type}: {why}"
    return ""


def _is_sound(kind: pa.DataType) -> bool:
    """Whether every value of the type can be stored."""
    if pa.types.is_struct(kind) or pa.types.is_list(kind):
        return all(_is_sound(kind.field(i).type) for i in range(kind.num_fields))
    return kind.id in ALWAYS_STORABLE


def faults(table: pa.Table, reading: Reading, *, trusts_json: bool = False) -> dict[int, str]:
    """Returns, by row of the table, what is wrong with the record; rows without a fault are left out.
    `trusts_json` as in `checked`."""
    wrong: dict[int, str] = {}
    functions = dict(reading.rule.aggregates)
    for field, column in zip(table.schema, table.columns, strict=True):
        name = field.name
        if name not in functions and _is_sound(field.type):
            continue
        for row, why in unstorable(column, None if trusts_json else field).items():
            wrong.setdefault(row, f"field {name!r}: {why}")
        for row, why in uncombinable(field, column, functions.get(name, "")).items():
            wrong.setdefault(row, f"field {name!r}: {why}")
        if pa.types.is_primitive(column.type) or pa.types.is_null(column.type):
            continue
        limit = MAX_KEY_BYTES if name in reading.key else MAX_VALUE_BYTES
        if column.nbytes > limit or pa.types.is_nested(column.type) or pa.types.is_dictionary(column.type):
            for row in _too_long(column, limit):
                what = "a key's value" if name in reading.key else "a value"
                wrong.setdefault(row, f"field {name!r}: {what} may have at most {limit:,} bytes")
        if _fault_of(column):
            for row in range(len(column)):  # a slice of records would have all their members
                if why := _fault_of(column.take(pa.array([row]))):
                    wrong.setdefault(row, f"field {name!r}: {why}")
    return wrong


def _too_long(column: pa.ChunkedArray, limit: int) -> list[int]:
    """Rows that hold, at any depth, a text or binary value longer than the limit."""
    rows: list[int] = []
    first = 0
    for chunk in column.chunks:
        if _longest(chunk) > limit:
            rows += [first + row for row in range(len(chunk)) if _longest(chunk.slice(row, 1)) > limit]
        first += len(chunk)
    return rows


def _longest(array: pa.Array) -> int:
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return _longest(array.storage)
    if pa.types.is_dictionary(kind):
        return _longest(array.dictionary)
    if pa.types.is_struct(kind):
        return max((_longest(part) for part in fields_of(array)), default=0)
    if pa.types.is_union(kind):
        return max((_longest(part.values) for part in alternatives(array)), default=0)
    if pa.types.is_map(kind):
        return max(map(_longest, Items(array).entries))
    if is_list(kind):
        return _longest(array.flatten())
    if not (_is_bytes(kind) and len(array)):
        return 0
    return int(pc.max(pc.binary_length(array)).as_py() or 0)


def _is_bytes(kind: pa.DataType) -> bool:
    return (
        pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_large_binary(kind)
    )
