"""A pool as a table of SQL: an Arrow data set whose scan is the pool's scan in key order.

DuckDB asks for columns and a filter.  So only those columns are read, and only records within the bounds that
the filter sets (`bounds`).  In SQL, a field of JSON is JSON, with times, dates and bytes as strings, and fields
have the names that `columns` gives them.  Called by `sql`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from lake_core.errors import LakeError
from lake_core.keys import KeyRange
from lake_core.keys.ranges import EVERYTHING
from lake_core.records.conditions import Condition
from lake_core.values.types import is_json
from log_lake.columns.json_text import shown
from log_lake.columns.nested import Items, mask_of
from log_lake.lake.by_type import Records, United
from log_lake.lake.view import View, among
from log_lake.system_tables.bounds import condition_of, is_compared
from log_lake.system_tables.columns import sql_names
from log_lake.system_tables.ends import End, ranges


class PoolDataset(ds.InMemoryDataset):  # type: ignore[misc]
    """A view as an Arrow data set.  For each scan DuckDB asks it for a scanner with columns and a filter."""

    def __init__(self, view: View, records: Records, raised: list[LakeError]) -> None:
        self._view, self._records, self._raised = view, records, raised
        self._stored = records.schema
        if not self._stored.names:
            self._stored = pa.schema(
                [(name, pa.null()) for name in view.key.names] or [("record", pa.null())]
            )
        names = sql_names(self._stored.names)
        self._fields = dict(zip(names, self._stored, strict=True))
        """By name in SQL."""
        self.key_range = EVERYTHING
        """The scans from now on give no records outside of it."""
        self.only: frozenset[tuple[str, bytes]] | None = None
        """The scans from now on read only these references, each an object and a low bound; None: all."""
        super().__init__(pa.Table.from_batches([], self._offered(names)))

    def scanner(
        self, columns: list[str] | None = None, filter: pc.Expression | None = None, **_: Any
    ) -> _Scanner:
        """Returns the records, projected and filtered.  DuckDB relies on both being done exactly."""
        if isinstance(columns, dict):
            raise NotImplementedError("columns by expressions: name columns, and compute with the table")
        names = self.schema.names if columns is None else list(columns)
        needed = names if filter is None else self._needed(names, filter)
        schema = pa.schema([self.schema.field(name) for name in names])
        return _Scanner(schema, self._batches(needed, names, filter, schema))

    def get_fragments(self, *_: Any, **__: Any) -> Iterator[Any]:
        """Raises NotImplementedError: records are merged from several objects, so no object is a part of the data
        set."""
        raise NotImplementedError(
            "a pool has no fragments; read it by to_table, to_batches or View.to_reader"
        )

    def _not_by_arrow(self, *_: Any, **__: Any) -> Any:
        """Raises NotImplementedError: replaces a method of Arrow that would find no records."""
        raise NotImplementedError(
            "Arrow does not do this with a pool: call to_table, or use DuckDB or polars"
        )

    filter = join = join_asof = sort_by = take = replace_schema = _not_by_arrow

    @property
    def stored(self) -> pa.Schema:
        """The fields with their own names."""
        return self._stored

    @property
    def view(self) -> View:
        """The view whose records the table has."""
        return self._view

    @property
    def fields(self) -> dict[str, pa.Field]:
        """The stored fields by their names in SQL."""
        return self._fields

    @property
    def is_united(self) -> bool:
        """Whether the table has all records of the pool, with the fields of all types united."""
        return isinstance(self._records, United)

    def ranges(self, end: End) -> Iterator[KeyRange]:
        """Yields ranges at the end of the key that a statement needs, each wider than the one before.

        Yields none if the field is not the first of the key.  Raises Unavailable.
        """
        leading = self._view.key.fields[:1]
        field = next((f for name, f in self._fields.items() if name.lower() == end.field.lower()), None)
        is_key = field is not None and [field.name] == [one.name for one in leading] and is_compared(field)
        if is_key and self.is_united:
            last = end.greatest != leading[0].descending
            yield from ranges(self._view, last=last, records=end.records)

    def _offered(self, names: list[str], *, wrapped: bool = True) -> pa.Schema:
        """Returns the schema of columns for DuckDB: JSON, at any depth, has Arrow's JSON type; other marks are
        left out."""
        types = [_offered_type(self._fields[name], wrapped=wrapped) for name in names]
        return pa.schema(list(zip(names, types, strict=True)))

    def _needed(self, names: list[str], filter: pc.Expression) -> list[str]:
        """Returns the columns to read: those that DuckDB wants, and those that the filter names.

        The fields of the filter are guessed from its text, because an expression does not list them.  If the
        filter cannot be evaluated with these fields, all columns are read.
        """
        filter_text = str(filter)
        needed = names + [name for name in self._fields if name not in names and name in filter_text]
        try:
            self._offered(needed, wrapped=False).empty_table().filter(filter)
        except (pa.ArrowException, KeyError):
            return list(self._fields)
        return needed

    def _where(self, needed: list[str], filter: pc.Expression) -> Condition | None:
        """Returns a condition that all records that pass the filter fulfil, so the scan may skip the others."""
        fields = {name: self._fields[name] for name in needed}
        return condition_of(filter, fields, self._offered(needed, wrapped=False), self._view.schema)

    def _batches(
        self, needed: list[str], names: list[str], filter: pc.Expression | None, schema: pa.Schema
    ) -> Generator[pa.RecordBatch, None, None]:
        if not self._view.references:
            return
        stored = [self._fields[name].name for name in needed]
        try:
            where = None if filter is None else self._where(needed, filter)
            plan = self._records.plan(self._view, stored, where=where, key_range=self.key_range)
            if self.only is not None:
                plan = replace(plan, references=tuple(among(plan.references, self.only)))
            for table in self._view.run(plan):
                records = self._records.shown(table, stored).select(stored)
                texts = _for_sql(records, list(records.schema), needed, wrapped=False)
                kept = texts if filter is None else texts.filter(filter)  # it compares with these texts
                fields = [self._fields[name] for name in names]
                yield from _for_sql(kept.select(names), fields, names, wrapped=True).to_batches()
        except LakeError as error:
            self._raised.append(error)  # DuckDB would turn it into one of its own
            raise


@dataclass(frozen=True)
class _Scanner:
    """The methods of a scanner that DuckDB, polars and `pyarrow.dataset` call; it can be read once.

    Arrow's own scanner reads ahead in a thread that no caller can wait for.  If the program ends while that
    thread is in Python, the program is aborted.  DuckDB's threads have ended when its connection is closed.
    """

    schema: pa.Schema
    batches: Generator[pa.RecordBatch, None, None]

    def to_reader(self) -> pa.RecordBatchReader:
        """Returns the records as an Arrow stream."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches)

    def to_batches(self) -> pa.RecordBatchReader:
        """Returns the records, a batch at a time."""
        return self.to_reader()

    def to_table(self) -> pa.Table:
        """Returns all records in one table."""
        return self.to_reader().read_all()

    def head(self, num_rows: int) -> pa.Table:
        """Returns the first records; the scan ends after them."""
        with closing(self.batches) as batches:
            firsts, left = [], num_rows
            while left > 0 and (batch := next(batches, None)) is not None:
                firsts.append(batch.slice(0, left))
                left -= batch.num_rows
        return pa.Table.from_batches(firsts, self.schema)

    def count_rows(self) -> int:
        """Returns the number of records."""
        return sum(batch.num_rows for batch in self.batches)


def as_sql_sees(records: pa.Table) -> pa.Table:
    """Returns the records with the names and types that SQL shows.  Raises InvalidInput as `sql_names` does."""
    names, fields = sql_names(records.schema.names), list(records.schema)
    texts = _for_sql(records, fields, names, wrapped=False)
    return _for_sql(texts, fields, names, wrapped=True)


def _for_sql(table: pa.Table, fields: Sequence[pa.Field], names: Sequence[str], *, wrapped: bool) -> pa.Table:
    """Returns the records as SQL sees them, under these names: JSON as people read it, durations as text.

    `fields` are the stored ones.  With `wrapped`, JSON has Arrow's type for JSON.
    """
    types = [_offered_type(field, wrapped=wrapped) for field in fields]
    columns = [
        pa.chunked_array([_sql_array(chunk, field, wrapped=wrapped) for chunk in column.chunks], kind)
        for field, kind, column in zip(fields, types, table.columns, strict=True)
    ]
    schema = pa.schema(list(zip(names, types, strict=True)))
    return pa.table(columns, schema=schema) if columns else table


def _sql_array(array: pa.Array, field: pa.Field, *, wrapped: bool) -> pa.Array:
    """Returns one column as SQL sees it, without Arrow's cast, which breaks nested records that are null (Arrow
    26)."""
    kind, target = field.type, _offered_type(field, wrapped=wrapped)
    if is_json(field):
        if wrapped:
            return pa.ExtensionArray.from_storage(pa.json_(), array)
        return shown(pa.chunked_array([array]), field).combine_chunks()
    if pa.types.is_duration(kind):
        if wrapped:
            return array
        return pc.utf8_trim(shown(pa.chunked_array([array]), field), '"').combine_chunks()
    if not pa.types.is_nested(kind):
        return array
    if pa.types.is_struct(kind):
        members = [_sql_array(a, f, wrapped=wrapped) for a, f in zip(array.flatten(), kind, strict=True)]
        return pa.StructArray.from_arrays(members, fields=list(target), mask=mask_of(array))
    items = Items(array)
    if pa.types.is_map(kind):
        keys, values = items.entries
        return items.as_maps(
            _sql_array(keys, kind.key_field, wrapped=wrapped),
            _sql_array(values, kind.item_field, wrapped=wrapped),
            target,
        )
    return items.as_lists(_sql_array(items.values, kind.value_field, wrapped=wrapped), target)


def _offered_type(field: pa.Field, *, wrapped: bool = True) -> pa.DataType:
    kind = field.type
    if is_json(field):
        return pa.json_() if wrapped else pa.string()
    if pa.types.is_duration(kind):  # DuckDB's intervals have microseconds, and months
        return pa.string()
    if pa.types.is_struct(kind):
        types = [_offered_type(member, wrapped=wrapped) for member in kind]
        return pa.struct(list(zip(sql_names([member.name for member in kind]), types, strict=True)))
    if pa.types.is_map(kind):
        key = pa.field("key", _offered_type(kind.key_field, wrapped=wrapped), nullable=False)
        return pa.map_(key, _offered_type(kind.item_field, wrapped=wrapped))
    if pa.types.is_list(kind):
        return pa.list_(_offered_type(kind.value_field, wrapped=wrapped))
    return kind
