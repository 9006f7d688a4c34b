"""Merges by DataFusion: for many records in files on this machine.

It gives the same order as `merge`, several times as fast.  DataFusion reads the Parquet files itself and merges
them by a heap of cursors (SortPreservingMergeExec).  Its memory depends on the number of files, not on their
size.  It knows that each file is sorted, and must not sort again: a plan that sorts is not run
(`DataFusionMerge.sorts`).

DataFusion cannot do every merge exactly.  The caller merges in windows instead if

- an object is not a file on this machine,
- a key field is floating (DataFusion orders -0.0 and NaN differently), or has another type than in the result,
- a field needs more than a plain cast,
- a reference is clipped at a key that the field's type cannot hold,
- the row groups and batches of all inputs together exceed `ScanLimits.datafusion_bytes`.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lake_core import naming
from lake_core.errors import LakeError
from lake_core.history import Reference
from lake_core.keys import KeyRange, PoolKey
from lake_core.phrases import human_size
from lake_core.schemas.hidden import ORDER, ORDINAL, SEQ
from lake_core.store import Store
from log_lake.objects.checksums import Sums
from log_lake.objects.containers.stored_names import renamed
from log_lake.objects.failures import missing
from log_lake.objects.failures import reading as reading_as_errors
from log_lake.objects.read import DataObject
from log_lake.objects.weight import Weight, least_width
from log_lake.reading.limits import ScanLimits
from log_lake.reading.merge.bounds import at_or_above, below, column, comparison, literal
from log_lake.reading.merge.clusters import decided_by_age
from log_lake.reading.merge.streams import ReferenceReading

BATCH_ROWS = 8_192
"""Records of a batch.  Larger batches take more memory and merge no faster.  A single input is not merged: its
batches have eight times as many records, because each batch has a fixed cost."""

SMALLEST_BATCH = 512
"""The least records of a batch: a smaller one costs DataFusion more than its records do."""

HELD = 4
"""How many decoded batches DataFusion holds per input: one is being merged, others are being decoded or
freed."""

AHEAD_ROWS = 65_536
"""How many records are merged before the caller asks for them; a writer takes as many at once."""

AHEAD_BYTES = 16 << 20
"""The most bytes of the records that are merged ahead."""

CHECKED_FIRST = 64 << 20
"""Up to this number of bytes, the files are checked before the merge; checking more would delay the first
batch."""

MANY_INPUTS = 16
"""With more inputs than this, batches are smaller: compacting 64 objects of lineitem then takes at most 630 MB
instead of 860 MB."""


@dataclass(frozen=True)
class Input:
    """One reference to merge: its file, its columns, and its key range.

    The file stays open, and DataFusion opens `source`, which leads to that open file.  A writer of the pool's
    folder may meanwhile have replaced `path` by a link to another pool's object (decision 423).
    """

    reference: Reference
    path: str
    file: pa.NativeFile
    columns: pa.Schema
    clip: KeyRange
    cut: bool
    """Whether the file also has records outside of the part that the reference shows (the clip)."""
    rows: int
    """An upper bound for the number of records in the clip."""
    weight: Weight
    """The bytes of these records, in the wanted columns."""
    sums: Sums
    """The checksums of the part of the file that has these records."""
    stored_as: Mapping[str, str]
    """The names of columns in the file that differ from those of their fields."""

    @property
    def source(self) -> str:
        """The path by which this process reaches the open file."""
        return f"/proc/self/fd/{self.file.fileno()}"

    def check(self) -> None:
        """Raises Corrupt if the part of the file that is read is damaged, and Unavailable."""
        self.sums.check(self.source, name=self.path)


def datafusion_merge(
    references: Sequence[Reference], reading: ReferenceReading, *, has_sequence: bool
) -> DataFusionMerge | str:
    """Returns the merge of the references; or, as a text, why a merge in windows is necessary or better.

    Raises ObjectMissing, Corrupt.
    """
    key, schema, limits = reading.key, reading.schema, reading.limits
    if len(references) > limits.max_datafusion_inputs:
        return f"DataFusion opens at most {limits.max_datafusion_inputs:,} files at once"
    if any(reference.lifts for reference in references):
        return "the sequences of an object are those of a merged branch"
    if any(naming.format_of(reference.object) != naming.PARQUET for reference in references):
        return "DataFusion reads no object that is not Parquet"
    if any(reference.data for reference in references):
        return "an object lies in the journal"
    if reading.ranges:
        return "a list of ranges is read"
    inputs = inputs_of(
        references, reading.store, pool_id=reading.pool_id, key_range=reading.key_range, schema=schema
    )
    if inputs is None:
        return "not all objects are files on this machine"
    if sum(i.rows for i in inputs) < limits.min_datafusion_rows * len(inputs):
        return f"fewer than {limits.min_datafusion_rows:,} records an object"
    if not can_merge(inputs, key=key, schema=schema):
        return "DataFusion cannot order or convert a field exactly"
    batch_rows = batch_rows_of(inputs, schema, limits)
    if not batch_rows:
        return f"row groups and batches take more than {human_size(limits.datafusion_bytes)}"
    with reading_objects([i.path for i in inputs]):
        merge = DataFusionMerge(
            inputs, key=key, schema=schema, has_sequence=has_sequence, batch_rows=batch_rows
        )
        return "DataFusion would sort the files again" if merge.sorts else merge


@contextmanager
def reading_objects(paths: Sequence[str]) -> Iterator[None]:
    """Returns a context in which every failure becomes an error of the lake that names the files.

    DataFusion opens a file late, and the class of its error does not show that the file is missing.
    """
    try:
        with reading_as_errors(f"one of {', '.join(paths)}"):
            yield
    except LakeError as error:
        if gone := [path for path in paths if not os.path.exists(path)]:
            raise missing("", gone[0]) from error
        raise


def batch_rows_of(inputs: Sequence[Input], schema: pa.Schema, limits: ScanLimits) -> int:
    """Returns how many records of an input DataFusion decodes at a time; 0 if the inputs together exceed the
    limits."""
    record = max(least_width(schema), *(i.weight.record for i in inputs), 1)
    room = limits.datafusion_bytes - sum(i.weight.largest_group for i in inputs)
    rows = min(_batch_rows(len(inputs)), int(room / (HELD * len(inputs) * record)))
    return rows if rows >= SMALLEST_BATCH else 0


def inputs_of(
    references: Sequence[Reference], store: Store, *, pool_id: str, key_range: KeyRange, schema: pa.Schema
) -> list[Input] | None:
    """Returns the references as inputs of a merge, each with its file; None if a file is not on this machine.
    Raises ObjectMissing, Corrupt."""
    columns = [*schema.names, *ORDER.names]
    inputs = []
    for reference in references:
        name = naming.data_object(pool_id, reference.object)
        path = store.local_path(name)
        if path is None:
            return None
        try:
            file = store.open_input(name)
        except FileNotFoundError as error:
            raise missing("", path, object_id=reference.object) from error
        with DataObject.at(store, reference, pool_id=pool_id) as data:
            clip = key_range.intersect(reference.key_range)
            rows, weight = data.rows(clip), data.weigh(clip, columns)
            cut, sums = not data.inside(clip), data.sums(clip)
            names = data.metadata.stored_as
            inputs.append(Input(reference, path, file, data.schema, clip, cut, rows, weight, sums, names))
    return inputs


def can_merge(inputs: Sequence[Input], *, key: PoolKey, schema: pa.Schema) -> bool:
    """Whether DataFusion gives exactly the records and the order that `merge` gives."""
    if not key.fields:
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
            bound and comparison(bound, key, schema) is None for bound in (one.clip.low, one.clip.high)
        ):
            return False
    return True


def _widens(stored: pa.Field, target: pa.Field) -> bool:
    a, b = stored.type, target.type
    if pa.types.is_null(a):
        return not pa.types.is_nested(b)
    return bool(pa.types.is_integer(a) and (pa.types.is_integer(b) or pa.types.is_floating(b))) or (
        pa.types.is_floating(a) and pa.types.is_floating(b)
    )


class DataFusionMerge:
    """A merge that is ready to run: `tables` gives the records, `plan` is DataFusion's plan."""

    def __init__(
        self,
        inputs: Sequence[Input],
        *,
        key: PoolKey,
        schema: pa.Schema,
        has_sequence: bool,
        batch_rows: int = BATCH_ROWS,
    ) -> None:
        """`schema`: the columns wanted, with the key's; with `has_sequence` the tables end with `hidden.ORDER`."""
        import datafusion

        self._schema = pa.schema([*schema, *ORDER]) if has_sequence else schema
        needs_sequence = has_sequence or not decided_by_age([i.reference for i in inputs])
        # Otherwise the rank of the record's file by age replaces its sequence, which need not be read.
        ties = ORDER if needs_sequence else pa.schema([ORDER.field(SEQ)])
        read = pa.schema([*schema, *ties])
        config = (
            datafusion.SessionConfig()
            .with_target_partitions(max(len(inputs), 2))
            .with_batch_size(batch_rows)
            .set("datafusion.optimizer.prefer_existing_sort", "true")
            .set("datafusion.optimizer.repartition_file_scans", "false")
            .set("datafusion.optimizer.enable_round_robin_repartition", "false")
            .set("datafusion.execution.parquet.schema_force_view_types", "false")
            .set("datafusion.execution.collect_statistics", "false")
        )
        record = max(least_width(schema), *(i.weight.record for i in inputs), 1)
        self._ahead = max(2, min(AHEAD_ROWS, int(AHEAD_BYTES / record)) // batch_rows)
        self._inputs, self._names = inputs, [one.path for one in inputs]
        context = datafusion.SessionContext(config)
        frame = None
        by_age = sorted(inputs, key=lambda i: (i.reference.seq, i.reference.ordinal))
        for rank, one in enumerate(by_age):
            constants = _age(one.reference) if needs_sequence else {SEQ: rank}
            branch = _branch(context, f"t{rank}", one, key, read, constants)
            frame = branch if frame is None else frame.union(branch)
        assert frame is not None
        self._context = context
        sorted_frame = frame.sort(*(_sorting(name, descending) for name, descending in _order(key, ties)))
        self._plan = sorted_frame.execution_plan()

    @property
    def plan(self) -> str:
        """DataFusion's physical plan of the merge, as text."""
        return str(self._plan.display_indent())

    @property
    def sorts(self) -> bool:
        """Whether DataFusion would sort the files, although they are sorted already."""
        return "SortExec" in self.plan

    def tables(self) -> Iterator[pa.Table]:
        """Yields all records by key and age.  Raises Corrupt."""
        for batch in self._batches():
            with reading_objects(self._names):
                table = self._table(batch.to_pyarrow())
            if table.num_rows:
                yield table

    def _table(self, batch: pa.RecordBatch) -> pa.Table:
        columns = [
            c if c.type == f.type else c.cast(f.type)
            for c, f in zip(batch.columns, self._schema, strict=False)  # they may end with ties
        ]
        return pa.Table.from_arrays(columns, schema=self._schema)

    def _batches(self) -> Iterator[Any]:
        """Runs the merge in a thread of its own, because the caller uses batches in bursts.

        DataFusion does not check pages.  So another thread reads the same files and compares their checksums:
        before the first batch if the files are small, otherwise beside the merge.  The last batch waits for the
        last check.
        """
        thread, checker = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        try:
            checks = deque(checker.submit(one.check) for one in self._inputs)
            if sum(one.sums.size for one in self._inputs) <= CHECKED_FIRST:
                _settle(checks, wait=True)
            with reading_objects(self._names):
                stream = self._context.execute(self._plan, 0)
            coming = deque(thread.submit(self._next, stream) for _ in range(self._ahead))
            while (batch := coming.popleft().result()) is not None:  # ends with the files
                coming.append(thread.submit(self._next, stream))
                _settle(checks, wait=False)
                yield batch
            _settle(checks, wait=True)
        finally:
            thread.shutdown(cancel_futures=True)
            checker.shutdown(cancel_futures=True)

    def _next(self, stream: Any) -> Any:
        with reading_objects(self._names):
            return next(stream, None)


def _settle(checks: deque[Future[None]], *, wait: bool) -> None:
    """Removes finished checks from the queue, or with `wait` waits for all of them.  Raises Corrupt if a file is
    damaged."""
    while checks and (wait or checks[0].done()):
        checks.popleft().result()


def _batch_rows(inputs: int) -> int:
    if inputs == 1:
        return BATCH_ROWS * 8
    return BATCH_ROWS if inputs <= MANY_INPUTS else BATCH_ROWS // 4


def _order(key: PoolKey, ties: Iterable[pa.Field]) -> list[tuple[str, bool]]:
    return [*((f.name, f.descending) for f in key.fields), *((f.name, False) for f in ties)]


def _sorting(name: str, descending: bool) -> Any:
    return column(name).sort(ascending=not descending, nulls_first=True)


def _age(reference: Reference) -> dict[str, int]:
    """Returns the sequence and ordinal of all records of a load's object; nothing for a compacted object, which
    stores them for each record."""
    return {SEQ: reference.seq, ORDINAL: reference.ordinal} if reference.oldest is None else {}


def _branch(
    context: Any, table: str, one: Input, key: PoolKey, schema: pa.Schema, constants: Mapping[str, int]
) -> Any:
    """Returns one file as a DataFrame: clipped, in its stored order, with the columns of `schema`; `constants`
    replace some of them."""
    stored, names = ORDER if one.reference.oldest is not None else (), one.stored_as
    order = [[_sorting(names.get(name, name), d) for name, d in _order(key, stored)]]
    in_file = renamed(one.columns, names)
    # given the schema, DataFusion plans without reading footers: for 64 files that takes longer than the rest
    how = {"schema": in_file, "file_sort_order": order, "skip_metadata": False, "file_extension": ""}
    context.register_parquet(table, one.source, **how)
    frame = context.table(table)
    if names:
        frame = frame.select(*(column(names.get(name, name)).alias(name) for name in one.columns.names))
    if one.cut:
        for bound, above in ((one.clip.low, True), (one.clip.high, False)):
            at = comparison(bound, key, schema) if bound else None
            if at is not None:
                frame = frame.filter(at_or_above(at, key) if above else below(at, key))
    columns = []
    for field in schema:
        index = one.columns.get_field_index(field.name)
        if field.name in constants:
            value = literal(pa.scalar(constants[field.name], field.type))
        elif index < 0:
            value = literal(pa.scalar(None, field.type))
        else:
            value = column(field.name)
            if one.columns.field(index).type != field.type:
                value = value.cast(field.type)
        columns.append(value.alias(field.name))
    return frame.select(*columns)
