"""Merging by DataFusion: for many records in files on this machine.

The same order as `merge` gives, several times as fast: DataFusion reads the Parquet files itself and merges them by
a heap of cursors (SortPreservingMergeExec), in memory that follows the number of files, not their size.  It is told
that each file is sorted, and must not sort again: a plan that would is not run (`NativeMerge.plan`).

Not everything can be said to it exactly.  `can_merge` is False, and the caller merges by windows instead, where

- an object is not a file on this machine,
- a key field is floating (it orders -0.0 and NaN otherwise), or of another type than in the result,
- a field has to be converted by more than a plain cast,
- a clip is at a key that the field's type does not hold.
"""

from __future__ import annotations

import datetime as dt
import decimal
import functools
import operator
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lake_core import naming
from lake_core.combine.hidden import ORDER, PLACE, SEQ
from lake_core.commits import Reference
from lake_core.errors import Corrupt
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.encoding import AFTER, Instant, Value, decode_key, encode_key
from lake_core.objects.read import DataObject
from lake_core.scan.clusters import decided_by_age
from lake_core.store import Store

MOST_INPUTS = 256
"""Files that are open at the same time."""

BATCH_ROWS = 8_192
"""Larger ones take more memory, and no less time to merge; where nothing is merged they are taken eight times as
large, for what is done with each."""

AHEAD_ROWS = 65_536
"""Records that are merged before they are asked for: a writer takes as many at once."""

MANY = 16
"""Of more inputs smaller batches are read: 64 objects of lineitem take 630 MB to compact then, and 860 else."""

_ABOVE = b"\0"


@dataclass(frozen=True)
class Input:
    """One reference to be merged: its file, its columns, what of it is wanted."""

    reference: Reference
    path: str
    columns: pa.Schema
    clip: KeyRange
    cut: bool
    """Whether the file holds records outside of the clip."""
    rows: int
    """At most so many records are in the clip."""


def inputs_of(
    references: Sequence[Reference], store: Store, *, pool: str, span: KeyRange
) -> list[Input] | None:
    """The references as files, None where one is not on this machine.  Raises ObjectMissing, Corrupt."""
    found = []
    for reference in references:
        path = store.local_path(naming.data_object(pool, reference.object))
        if path is None:
            return None
        with DataObject(store, pool=pool, object_id=reference.object) as data:
            clip = span.intersect(reference.span)
            found.append(Input(reference, path, data.schema, clip, not data.inside(clip), data.rows(clip)))
    return found


def can_merge(inputs: Sequence[Input], *, key: PoolKey, schema: pa.Schema) -> bool:
    """Whether DataFusion merges these exactly."""
    if not key.fields or len(inputs) > MOST_INPUTS:
        return False
    for one in inputs:
        for field in schema:
            index = one.columns.get_field_index(field.name)
            if index < 0:
                if field.name in key.names:
                    return False
                continue
            own = one.columns.field(index)
            if field.name in key.names and (own.type != field.type or pa.types.is_floating(own.type)):
                return False
            if not (own.type == field.type or _widens(own, field)) or own.metadata != field.metadata:
                return False
        if one.cut and any(
            bound and _comparison(bound, key, schema) is None for bound in (one.clip.low, one.clip.high)
        ):
            return False
    return True


def _widens(own: pa.Field, wanted: pa.Field) -> bool:
    a, b = own.type, wanted.type
    if pa.types.is_null(a):
        return not pa.types.is_nested(b)
    return bool(pa.types.is_integer(a) and (pa.types.is_integer(b) or pa.types.is_floating(b))) or (
        pa.types.is_floating(a) and pa.types.is_floating(b)
    )


class NativeMerge:
    """One merge; `tables` gives the records, `plan` says how."""

    def __init__(self, inputs: Sequence[Input], *, key: PoolKey, schema: pa.Schema, ordered: bool) -> None:
        """`schema`: the columns wanted, key fields among them; `ordered`: the tables end with `hidden.ORDER`."""
        import datafusion

        self._schema = pa.schema([*schema, *ORDER]) if ordered else schema
        recorded = ordered or not decided_by_age([i.reference for i in inputs])
        # else the age of a record's file among the inputs stands for its sequence, and needs not be read
        ties = ORDER if recorded else pa.schema([ORDER.field(SEQ)])
        read = pa.schema([*schema, *ties])
        config = (
            datafusion.SessionConfig()
            .with_target_partitions(max(len(inputs), 2))
            .with_batch_size(_batch_rows(len(inputs)))
            .set("datafusion.optimizer.prefer_existing_sort", "true")
            .set("datafusion.optimizer.repartition_file_scans", "false")
            .set("datafusion.optimizer.enable_round_robin_repartition", "false")
            .set("datafusion.execution.parquet.schema_force_view_types", "false")
            .set("datafusion.execution.collect_statistics", "false")
        )
        self._ahead = max(2, AHEAD_ROWS // _batch_rows(len(inputs)))
        self._names = [one.path for one in inputs]
        context = datafusion.SessionContext(config)
        frame = None
        by_age = sorted(inputs, key=lambda i: (i.reference.seq, i.reference.place))
        for rank, one in enumerate(by_age):
            constants = _age(one.reference) if recorded else {SEQ: rank}
            branch = _branch(context, f"t{rank}", one, key, read, constants)
            frame = branch if frame is None else frame.union(branch)
        assert frame is not None
        self._context = context
        sorted_frame = frame.sort(*(_sorting(name, descending) for name, descending in _order(key, ties)))
        self._plan = sorted_frame.execution_plan()

    @property
    def plan(self) -> str:
        """The physical plan, as text."""
        return str(self._plan.display_indent())

    @property
    def sorts(self) -> bool:
        """Whether DataFusion would sort what is sorted."""
        return "SortExec" in self.plan

    def tables(self) -> Iterator[pa.Table]:
        """All records by key and age.  Raises Corrupt."""
        for batch in self._batches():
            found = batch.to_pyarrow()
            if found.num_rows:
                columns = [
                    c if c.type == f.type else c.cast(f.type)
                    for c, f in zip(found.columns, self._schema, strict=False)  # they may end with ties
                ]
                yield pa.Table.from_arrays(columns, schema=self._schema)

    def _batches(self) -> Iterator[Any]:
        """The merge goes on in a thread of its own while batches are used, since they are used in bursts."""
        stream = self._context.execute(self._plan, 0)
        thread = ThreadPoolExecutor(1)
        try:
            coming = deque(thread.submit(self._next, stream) for _ in range(self._ahead))
            while (batch := coming.popleft().result()) is not None:  # ends with the files
                coming.append(thread.submit(self._next, stream))
                yield batch
        finally:
            thread.shutdown(cancel_futures=True)

    def _next(self, stream: Any) -> Any:
        try:
            return next(stream, None)
        except Exception as error:  # of no class of its own
            raise Corrupt(f"one of {', '.join(self._names)}: cannot be decoded: {error}") from error


def _batch_rows(inputs: int) -> int:
    if inputs == 1:
        return BATCH_ROWS * 8
    return BATCH_ROWS if inputs <= MANY else BATCH_ROWS // 4


def _order(key: PoolKey, ties: Iterable[pa.Field]) -> list[tuple[str, bool]]:
    return [*((f.name, f.descending) for f in key.fields), *((f.name, False) for f in ties)]


def _column(name: str) -> Any:
    from datafusion import col

    return col('"' + name.replace('"', '""') + '"')


def _sorting(name: str, descending: bool) -> Any:
    return _column(name).sort(ascending=not descending, nulls_first=True)


def _literal(scalar: pa.Scalar) -> Any:
    from datafusion import lit

    return lit(scalar)


def _age(reference: Reference) -> dict[str, int]:
    """What says of all records of a fresh object when they were written; a rewritten one has it of each."""
    return {SEQ: reference.seq, PLACE: reference.place} if reference.oldest is None else {}


def _branch(
    context: Any, table: str, one: Input, key: PoolKey, schema: pa.Schema, constants: Mapping[str, int]
) -> Any:
    """One file in the columns of `schema`, sorted as it is stored, clipped; some columns are constant."""
    stored = ORDER if one.reference.oldest is not None else ()
    order = [[_sorting(n, d) for n, d in _order(key, stored)]]
    # given the schema DataFusion reads no footer to plan: of 64 files that takes longer than to plan the rest
    context.register_parquet(table, one.path, schema=one.columns, file_sort_order=order, skip_metadata=False)
    frame = context.table(table)
    if one.cut:
        for bound, above in ((one.clip.low, True), (one.clip.high, False)):
            comparison = _comparison(bound, key, schema) if bound else None
            if comparison is not None:
                frame = frame.filter(_at_or_above(comparison, key) if above else _below(comparison, key))
    columns = []
    for field in schema:
        index = one.columns.get_field_index(field.name)
        if field.name in constants:
            value = _literal(pa.scalar(constants[field.name], field.type))
        elif index < 0:
            value = _literal(pa.scalar(None, field.type))
        else:
            value = _column(field.name)
            if one.columns.field(index).type != field.type:
                value = value.cast(field.type)
        columns.append(value.alias(field.name))
    return frame.select(*columns)


@dataclass(frozen=True)
class Comparison:
    """A bound as values of the first key fields; `beyond`: it is above all keys that begin with them."""

    values: tuple[pa.Scalar, ...]
    beyond: bool


def _comparison(bound: bytes, key: PoolKey, schema: pa.Schema) -> Comparison | None:
    """The bound in the fields' own types; None where they do not hold it exactly."""
    values = decode_key(bound, key)
    prefix = encode_key(list(values), key)
    if not bound.startswith(prefix):
        return None
    rest = bound[len(prefix) :]
    whole = len(values) == len(key.fields)
    if rest not in (b"", AFTER) and not (whole and rest == _ABOVE):
        return None
    try:
        scalars = tuple(
            _scalar(value, schema.field(field.name).type)
            for value, field in zip(values, key.fields, strict=False)
        )
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return None
    return Comparison(scalars, rest != b"")


def _scalar(value: Value, kind: pa.DataType) -> pa.Scalar:
    """A key value in the field's type; raises where that does not hold it exactly."""
    if value is None:
        return pa.scalar(None, kind)
    if isinstance(value, Instant):
        if not pa.types.is_timestamp(kind):
            raise ValueError(kind)
        _, seconds, nanos = value
        units = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        whole, part = divmod(nanos * units, 10**9)
        if part:
            raise ValueError(value)
        return pa.scalar(seconds * units + whole, pa.int64()).cast(kind)
    allowed = {
        bool: pa.types.is_boolean,
        int: pa.types.is_integer,
        str: pa.types.is_string,
        bytes: pa.types.is_binary,
        dt.date: pa.types.is_date32,
        decimal.Decimal: pa.types.is_decimal,
    }
    if not allowed[type(value)](kind):
        raise ValueError(value)
    return pa.scalar(value, kind)


def _at_or_above(bound: Comparison, key: PoolKey) -> Any:
    """Records whose key is at or above the bound, in the order of the key."""
    after = _differs(bound, key, later=True)
    return after if bound.beyond else after | _equals(bound, key)


def _below(bound: Comparison, key: PoolKey) -> Any:
    """The others; spelled so that DataFusion can tell which row groups hold none of them."""
    before = _differs(bound, key, later=False)
    return before | _equals(bound, key) if bound.beyond else before


def _equals(bound: Comparison, key: PoolKey) -> Any:
    return _all(_is(f.name, value) for f, value in zip(key.fields, bound.values, strict=False))


def _is(name: str, value: pa.Scalar) -> Any:
    return _column(name) == _literal(value) if value.is_valid else _column(name).is_null()


def _differs(bound: Comparison, key: PoolKey, *, later: bool) -> Any:
    """Records whose first key fields come after the bound's values, or before; null comes before everything."""
    ways = []
    for number, (field, value) in enumerate(zip(key.fields, bound.values, strict=False)):
        column = _column(field.name)
        if not value.is_valid:
            way = column.is_not_null() if later else _literal(pa.scalar(False))
        elif later:
            way = column < _literal(value) if field.descending else column > _literal(value)
        else:
            smaller = column > _literal(value) if field.descending else column < _literal(value)
            way = smaller | column.is_null()
        before = Comparison(bound.values[:number], beyond=False)
        ways.append(_equals(before, key) & way if number else way)
    return functools.reduce(operator.or_, ways)


def _all(parts: Iterable[Any]) -> Any:
    return functools.reduce(operator.and_, parts)
