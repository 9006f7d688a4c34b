"""Reads a pool at a revision: `pool.at("main")`, `pool.at("17")`.

A view is a revision of a pool and the store of its objects.  The command, SQL, and PySpark read through it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa

from lake_core import naming
from lake_core.errors import InvalidInput, ObjectMissing, ObjectVacuumed
from lake_core.history import History, Reference
from lake_core.history.vacuuming import held_objects
from lake_core.keys import KeyRange
from lake_core.keys.encoding import AFTER, Value
from lake_core.keys.ranges import EVERYTHING
from lake_core.phrases import counted
from lake_core.records.conditions import Condition
from lake_core.schemas.hidden import DELETED
from lake_core.store import Store
from log_lake.content.content import ContentSum, content_of
from log_lake.measuring import measured, timed
from log_lake.presence.absence import explained, vacuumed
from log_lake.reading.explain import StoredRecord, explain
from log_lake.reading.field_summary import SHARES, FieldFigures, figures_of, top_level_of
from log_lake.reading.indexed import with_indexes
from log_lake.reading.parts import parts_of_plan, side_by_side
from log_lake.reading.plan import ScanPlan, overlap_depth, plan_scan
from log_lake.reading.revision import Revision
from log_lake.reading.scan import result_schema, scan
from log_lake.reading.split import split
from log_lake.reading.stored_sums import stored_content
from log_lake.reading.summary import Summary, summarize
from log_lake.texts.keytext import encoded, parts_of
from log_lake.where import check

log = logging.getLogger(__name__)


FAIL, WARN = "fail", "warn"
"""What a view does if a vacuum took an object of it: it raises ObjectVacuumed, or it leaves the object out and
logs a warning."""


def among(references: Iterable[Reference], only: Collection[tuple[str, bytes]] | None) -> Sequence[Reference]:
    """Returns the references whose object and low bound are in `only`; all if `only` is None."""
    names = only if only is None or isinstance(only, AbstractSet) else set(only)
    return [r for r in references if names is None or (r.object, r.low) in names]


def _on_store(references: Iterable[Reference]) -> set[str]:
    """Returns the objects of the references, without inlined ones, which no vacuum takes."""
    return {reference.object for reference in references if not reference.data}


@dataclass(frozen=True, kw_only=True)
class View(Revision):
    """A pool at one revision, for reading: it knows the store of the revision's objects.

    `history` shows whether a missing object was vacuumed.  `on_missing`: what happens then, `fail` or `warn`.
    """

    store: Store
    history: History | None = field(default=None, compare=False)
    on_missing: str = FAIL

    @property
    def depth(self) -> int:
        """How many objects overlap at the key where most of them do."""
        return overlap_depth(self.references)

    def plan(
        self,
        *,
        key_range: KeyRange = EVERYTHING,
        columns: list[str] | None = None,
        where: str | Condition | None = None,
        keep: Collection[str] = (),
        ranges: Sequence[KeyRange] | None = None,
    ) -> ScanPlan:
        """Returns the plan of a scan of the range; if `ranges` are given, of all of them.

        `keep`: columns of `hidden.ROW`, with which the plan also has the records' own types (`plan_scan`).

        Raises InvalidInput (unknown column, empty range, bad condition).
        """
        if self.names and not isinstance(where, str | None):  # a text is translated by the plan
            where = self.names.stored_condition(check(where, self.schema))
        with timed(self.store, "scan.plan"):
            plan = plan_scan(
                self, key_range=key_range, columns=columns, where=where, keep=keep, ranges=ranges
            )
            plan = replace(plan, references=self._without_vacuumed(plan.references))
            plan = with_indexes(plan, self, self.store)
        log.info(
            "%s at version %d: reads %d of %d objects, overlap at most %d; %d deletes to apply",
            self.config.name,
            self.version,
            len(plan.references),
            self.snapshot.totals(self.sub_pool).references,
            plan.depth,
            len(plan.tombstones),
        )
        return plan

    def scan(
        self,
        *,
        key_range: KeyRange = EVERYTHING,
        columns: list[str] | None = None,
        where: str | Condition | None = None,
        limit: int | None = None,
        ranges: Sequence[KeyRange] | None = None,
        jobs: int = 1,
    ) -> Iterator[pa.Table]:
        """Yields records in key order, a table at a time, in bounded memory.

        `ranges`: reads only their keys, each once (`key_range` makes a range from values).  `jobs`: how many
        parts of the keys are read at the same time; the order stays the same.

        Raises InvalidInput, ObjectVacuumed, ObjectMissing, Corrupt, Unavailable.
        """
        plan = self.plan(key_range=key_range, columns=columns, where=where, ranges=ranges)
        return self.run(plan, limit=limit, jobs=jobs)

    def run(self, plan: ScanPlan, *, limit: int | None = None, jobs: int = 1) -> Iterator[pa.Table]:
        """Yields the records of a plan of this view.  Raises InvalidInput if `limit` is below 0, or `jobs` below
        1."""
        if jobs < 1:
            raise InvalidInput(f"jobs={jobs}: give a number of parts to read at a time, from 1 on")
        if limit is not None and limit < 0:
            raise InvalidInput(f"limit={limit}: give a number of records from 0 on, or None for all")
        if limit == 0:
            return
        left = limit
        with (
            measured(self.store, "scan", pool=self.config.name, aside=True) as work,
            closing(self._in_parts(plan, jobs) if jobs > 1 else self._scanned(plan)) as tables,
        ):
            for table in work.each("read", tables):
                if left is None:
                    yield table
                    continue
                # without columns a slice has as many records as asked for
                yield table if table.num_rows <= left else table.slice(0, left)
                left -= table.num_rows
                if left <= 0:
                    return

    def _scanned(self, plan: ScanPlan, check: Callable[[], None] = lambda: None) -> Generator[pa.Table]:
        with self.absence_explained():
            yield from scan(plan, self.store, pool_id=self.config.id, reads=lambda records: check())

    def parts(self, plan: ScanPlan, jobs: int) -> list[ScanPlan]:
        """Returns the parts of a plan, by key; `run` reads `jobs` of them at the same time.

        If the pool has fewer ranges than that, it reads footers.  Raises ObjectVacuumed, ObjectMissing,
        Corrupt, Unavailable.
        """

        def divide(pieces: int) -> list[KeyRange]:
            of = self.config.id
            return split(plan.references, self.store, pool_id=of, key_range=plan.key_range, pieces=pieces)

        with self.absence_explained():
            return parts_of_plan(plan, self.points, jobs, divide)

    def _in_parts(self, plan: ScanPlan, jobs: int) -> Generator[pa.Table]:
        reads = [partial(self._scanned, part) for part in self.parts(plan, jobs)]
        yield from side_by_side(reads, at_once=jobs, most_bytes=plan.limits.buffer_bytes)

    def check_whole(self, references: Iterable[Reference] | None = None) -> None:
        """Raises ObjectVacuumed if a vacuum has begun to take objects of these references (None: of all
        references).

        Raises NotFound if the pool was dropped, because a vacuum of dropped pools may have begun.  Raises
        Unavailable.
        """
        if self.history is None:
            return
        state = self.history.load_open().state
        if self.version >= state.removed.horizon:
            return  # otherwise all references are read
        objects = _on_store(self.references if references is None else references)
        gone = vacuumed(self.history, state, objects, version=self.version)
        if gone:
            objects_gone = counted(len(gone), "object")
            raise ObjectVacuumed(
                f"pool {self.config.name!r}: {objects_gone} of version {self.version} are vacuumed, or are about "
                "to be; read a later version"
            )

    def may_lose(self, references: Iterable[Reference]) -> bool:
        """Whether a vacuum may take an object of these references, because no branch refers to it any more.

        Raises NotFound if the pool was dropped, and Unavailable.
        """
        if self.history is None:
            return False
        objects = _on_store(references)
        return not objects <= held_objects(self.history.load_open().state, objects)

    @contextmanager
    def absence_explained(self) -> Iterator[None]:
        """Returns a context that turns ObjectMissing into ObjectVacuumed if a vacuum took the object."""
        try:
            yield
        except ObjectMissing as error:
            if self.history is None:
                raise
            raise explained(error, self.history, version=self.version) from error

    def _without_vacuumed(self, references: Sequence[Reference]) -> tuple[Reference, ...]:
        """Returns the references; if the view only warns of vacuumed objects, without the references to
        these."""
        if self.on_missing != WARN or self.history is None:
            return tuple(references)
        objects = _on_store(references)
        gone = vacuumed(self.history, self.history.load().state, objects, version=self.version)
        if not gone:
            return tuple(references)
        lost = sum(r.records for r in references if r.object in gone)
        log.warning(
            "%s at version %d: left out %s with %s, which were vacuumed: %s",
            self.config.name,
            self.version,
            counted(len(gone), "object"),
            counted(lost, "record"),
            ", ".join(sorted(gone)),
        )
        return tuple(r for r in references if r.object not in gone)

    def to_table(
        self,
        *,
        key_range: KeyRange = EVERYTHING,
        columns: list[str] | None = None,
        where: str | Condition | None = None,
    ) -> pa.Table:
        """Returns all records in one table; for results that fit in memory."""
        plan = self.plan(key_range=key_range, columns=columns, where=where)
        tables = list(self.run(plan))
        if not plan.columns:  # Arrow forgets how many records there are when it joins tables of no columns
            return pa.table({"": pa.nulls(sum(t.num_rows for t in tables))}).select([])
        return pa.concat_tables([pa.Table.from_batches([], result_schema(plan)), *tables])

    def to_reader(
        self,
        *,
        key_range: KeyRange = EVERYTHING,
        columns: list[str] | None = None,
        where: str | Condition | None = None,
        limit: int | None = None,
    ) -> pa.RecordBatchReader:
        """Returns the records of a scan as an Arrow stream, in bounded memory; a reader that is dropped ends the
        scan.

        Raises what `scan` raises: InvalidInput here, the others when the stream is read.
        """
        plan = self.plan(key_range=key_range, columns=columns, where=where)
        tables = self.run(plan, limit=limit)
        batches = (batch for table in tables for batch in table.to_batches())
        return pa.RecordBatchReader.from_batches(result_schema(plan), batches)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Returns all records as a capsule of Arrow's C stream interface, through which polars, DuckDB, pandas and
        pyarrow read a view.

        Raises what `to_reader` raises.  Source: Arrow's PyCapsule protocol.
        """
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def get(self, values: Value | list[Value]) -> pa.Table:
        """Returns the records of one key, or of all keys that begin with the given values."""
        prefix = self.bound(values)
        return self.to_table(key_range=KeyRange(prefix, prefix + AFTER))

    def summary(self, *, read: bool = False) -> Summary:
        """Returns the number of records, and the bounds of each field, if the state has them exactly.

        `read`: also reads the objects whose records a delete may hide, or that share keys with others in a pool
        that combines them.

        Raises Corrupt, Unavailable; with `read` also ObjectVacuumed, ObjectMissing.
        """
        return summarize(self, self.plan(), read=self.run if read else None)

    def field_summary(self, field: str, *, shares: Sequence[float] = SHARES) -> FieldFigures:
        """Returns the figures of one field, written as in a condition: records, nulls, bounds, distinct values, and
        the quantiles of these shares, from 0 to 1.

        An object is not opened if its sketch describes what readers see; others are read
        (`reading.field_summary`).  Raises InvalidInput for a field that the view lacks, or whose type has no
        index; and what `scan` raises.
        """
        plan = self.plan(columns=[top_level_of(self, field)])
        return figures_of(self, plan, field, self.store, read=self.run, shares=shares)

    def content(self, *, jobs: int = 1) -> ContentSum:
        """Returns the number of records and their content sum; both are equal for views that hold the same
        records.

        Reads no object if the stored sums suffice (`stored_content`).  Otherwise it reads all records, `jobs`
        parts of the keys at the same time.  Raises what `scan` raises.
        """
        if (stored := self.stored_content()) is not None:
            return stored
        hidden = {DELETED} if self.rule.kind == "upsert" else set()  # a view has no delete markers
        names = [name for name in self.schema.names if name not in hidden]
        tables = self.scan(columns=names, jobs=jobs)
        return sum((content_of(table) for table in tables), ContentSum())

    def stored_content(self) -> ContentSum | None:
        """Returns the number of records of an append pool and their content sum, by the sums of its references
        alone.

        Returns None if a reference has no sum, if a delete or a filter may hide a record, or in other pools.
        """
        return stored_content(self)

    def explain(self, key_range: KeyRange) -> list[StoredRecord]:
        """Returns every stored version of the records whose keys are in a range, and what becomes of each for
        readers."""
        references = self._without_vacuumed(self.references_in(key_range))
        with self.absence_explained():
            return explain(self, self.store, key_range, references)

    def split(
        self, key_range: KeyRange, *, pieces: int, only: Collection[tuple[str, bytes]] | None = None
    ) -> list[KeyRange]:
        """Divides the range into at most `pieces` neighbouring ranges with about equal bytes.

        `only`: counts only the bytes of these references (object and low bound); None: of all. Raises
        ObjectVacuumed, ObjectMissing, Corrupt, Unavailable.
        """
        references = self._without_vacuumed(among(self.references_in(key_range), only))
        with self.absence_explained():
            return split(references, self.store, pool_id=self.config.id, key_range=key_range, pieces=pieces)

    def key_range(self, *, low: Any = None, high: Any = None) -> KeyRange:
        """Returns the range from `low` to before `high`, each a value or values in the order of the key; None is
        an open end."""
        return KeyRange(b"" if low is None else self.bound(low), None if high is None else self.bound(high))

    def bound(self, values: Any) -> bytes:
        """Returns the values of a key, or of its first fields, as an encoded bound.

        A single value is the value of the first field.  Texts are read by the type of the pool's key field.
        Raises InvalidInput.
        """
        parts = values if isinstance(values, list | tuple) else [values]
        return encoded(parts, self.key, self.key_classes)

    def bound_of_text(self, text: str) -> bytes:
        """Returns a key as a user writes it (`texts.keytext`) as an encoded bound.  Raises InvalidInput."""
        return encoded(parts_of(text, self.key), self.key, self.key_classes)

    def object_name(self, reference: Reference) -> str:
        """Returns the name on the store of the data object of a reference."""
        return naming.data_object(self.config.id, reference.object)
