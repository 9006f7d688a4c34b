"""Applies the declared types to records of typed formats; a wrong value makes a bad record.

Arrow converts a column at a time.  Only if that fails, its values are checked one by one (`declared`).  The
converted table has null for a wrong value, so the text of a bad record is made from the table before the
conversion.  Called by the readers of Parquet, Avro, ORC and ZNG.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lake_core.errors import InvalidInput
from lake_core.schemas.schema import unite_schemas
from log_lake.columns.cast import mixed_table
from log_lake.columns.json_text import json_lines
from log_lake.loading.block import QUARANTINE, Reading
from log_lake.loading.contract import Faults
from log_lake.loading.declared import OtherClass, fitting_values
from log_lake.objects.normalize import normalized


@dataclass(frozen=True)
class TypedRecords:
    """Records with what is wrong with some of them.

    `faults`: by row, what is wrong with the record.  `raws`: by row of a bad record, its text in the file, or
    None if it has none.
    """

    table: pa.Table
    faults: Faults = field(default_factory=dict)
    raws: dict[int, str | None] = field(default_factory=dict)

    def text(self, row: int) -> bytes | None:
        """Returns the text of a record in the file; None if it has none."""
        raw = self.raws[row] if row in self.raws else shown_record(self.table.slice(row, 1))
        return None if raw is None else raw.encode()


def with_declared(table: pa.Table, reading: Reading) -> TypedRecords:
    """Returns the records with the declared fields in their types.  Under the policy `fail`, it may stop at the
    first fault of a field.

    Raises InvalidInput if no value of a field's type can have the declared type.
    """
    written, faults = table, Faults()
    for name, target in reading.declared.items():
        index = table.schema.get_field_index(name)
        if index < 0:
            continue
        try:
            column, wrong = fitting_values(
                table.column(index),
                table.schema.field(index),
                target,
                first=reading.bad_records != QUARANTINE,
            )
        except OtherClass as error:
            raise InvalidInput(f"{reading.file}: {error}") from error
        faults = {**wrong, **faults}
        table = table.set_column(index, target, column)
    return TypedRecords(table, faults, dict(zip(faults, _shown_records(written, list(faults)), strict=True)))


def united_records(parts: Sequence[TypedRecords], order: npt.NDArray[np.int64], *, what: str) -> TypedRecords:
    """Joins records of several types to one table.

    `order` gives the order of the result: it numbers the records of the first part, then those of the next, and
    so on.
    """
    stored = [normalized(part.table) if part.table.num_columns else part.table for part in parts]
    table = mixed_table(stored, unite_schemas(one.schema for one in stored), order, what=what)
    rows = np.argsort(order)
    begins = np.cumsum([0, *(part.table.num_rows for part in parts)]).tolist()
    faults, raws = Faults(), dict[int, str | None]()
    for begin, part in zip(begins, parts, strict=False):
        faults |= {int(rows[begin + row]): why for row, why in part.faults.items()}
        raws |= {int(rows[begin + row]): raw for row, raw in part.raws.items()}
    return TypedRecords(table, faults, raws)


def shown_record(record: pa.Table) -> str | None:
    """Returns the record as JSON, without fields that JSON cannot express; None if no field is left."""
    (text,) = _shown_records(record, [0])
    return text


def _shown_records(records: pa.Table, rows: Sequence[int]) -> list[str | None]:
    """Returns the records in these rows, each as `shown_record` returns it."""
    columns = [_texts(records.select([name]), rows) for name in records.schema.names]
    shown: list[str | None] = []
    for at in range(len(rows)):
        texts = [text for column in columns if (text := column[at]) is not None]
        shown.append("{" + ",".join(filter(None, texts)) + "}" if texts else None)
    return shown


def _texts(column: pa.Table, rows: Sequence[int]) -> list[str | None]:
    """Returns the table's only field in these rows as JSON: "" where it is null, None where JSON cannot express
    it.

    All values are converted at once; only if that fails, one by one.
    """
    try:
        texts = json_lines(normalized(column.take(pa.array(rows, pa.int64())))).to_pylist()
    except (pa.ArrowException, UnicodeDecodeError, InvalidInput):
        return [_text(column.slice(row, 1)) for row in rows]
    return [text[1:-1] for text in texts]


def _text(column: pa.Table) -> str | None:
    try:
        text: str = json_lines(normalized(column))[0].as_py()
    except (pa.ArrowException, UnicodeDecodeError, InvalidInput):
        return None
    return text[1:-1]
