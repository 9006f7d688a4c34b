"""Checks that a rewriting conserves the records of its inputs, before anything is committed.

The check reads each input a second time, as it is stored, and the new object as it was written.  It merges
nothing, so a fault of the merge, of a cast or of the writer does not repeat in it.  What must hold depends on
the pool's kind:

| kind | what must hold of each piece |
|---|---|
| append | the content sum of the inputs, without hidden records, is that of the new object, ages included |
| upsert | the same, but only of the newest record of each key, as a delete marker if a delete hides it |
| aggregate | the keys are the same; counts, and exact sums, add up; other fields are not checked |

In all kinds the new object must have its records in order: by key, then by age.  `counting` compares the
numbers of records, without reading them.  Called by `rewriting.work`.
"""

from __future__ import annotations

import decimal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
import pyarrow as pa

from lake_core import naming
from lake_core.history import Reference
from lake_core.history.lift import lifted
from lake_core.keys import KeyRange
from lake_core.keys.ranges import EVERYTHING
from lake_core.schemas.hidden import ORDER, ORDINAL, ROW, SEQ, with_order
from lake_core.store import Store
from log_lake.columns.cast import cast_table
from log_lake.columns.keys import sort_order
from log_lake.combine.groups import ends_key
from log_lake.content.content import ContentSum, content_of, content_of_hashes, hashes_of, json_everywhere
from log_lake.objects.read import DataObject
from log_lake.objects.write import WrittenObject
from log_lake.reading.covers import Covers
from log_lake.reading.deleted import Hiding
from log_lake.reading.merge.clusters import clusters
from log_lake.rewriting.ordering import InOrder
from log_lake.rewriting.refusal import refusal
from log_lake.rewriting.rewriting import Rewriting

PART_RECORDS = 500_000
"""How many records of the inputs are compared by key at a time; in memory each takes the bytes of its key and 40
more."""

_EXACT_DIGITS = 100


def check_piece(
    work: Rewriting,
    key_range: KeyRange,
    store: Store,
    written: Sequence[WrittenObject],
    *,
    part_records: int = PART_RECORDS,
) -> None:
    """Compares the new objects of a piece (none: no record is left) with the inputs in the piece's key range.

    Raises NotConserved if its records are not those that the inputs give.  Raises ObjectMissing, Corrupt,
    Unavailable if an object cannot be read.
    """
    check = _Check(work, key_range, store, part_records)
    id = written[0].action.object if written else ""
    output = check.output(written)
    if output.disorder:
        raise refusal(work, "records by key and age", output.disorder, id=id)
    expected = check.aggregated() if work.rule.kind == "aggregate" else check.kept()
    if expected != output.content:
        raise refusal(work, str(expected), str(output.content), id=id)
    if work.rule.kind == "aggregate":
        for name, total in check.totals.items():
            if total != output.totals.get(name, 0):
                raise refusal(work, f"{name}={total}", f"{name}={output.totals.get(name, 0)}", id=id)


@dataclass
class _Output:
    """The content of new objects; `disorder`: the first fault of the order in one, in words."""

    content: ContentSum = field(default_factory=ContentSum)
    disorder: str = ""
    totals: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Check:
    work: Rewriting
    key_range: KeyRange
    store: Store
    part_records: int
    totals: dict[str, int] = field(default_factory=dict)
    """The total of each summed field over the inputs, as a whole number in units of the field's last decimal
    digit."""

    @cached_property
    def _as_text(self) -> frozenset[str]:
        """Returns the JSON fields whose text is compared as it is.  If all files are Parquet, a rewriting copies
        the text; other formats write JSON anew, so no field is compared in this way."""
        formats = {self.work.format, *(naming.format_of(r.object) for r in self.work.inputs)}
        if formats != {naming.PARQUET}:
            return frozenset()
        return json_everywhere([*self.work.schemas.values(), self.work.schema])

    @cached_property
    def _schema(self) -> pa.Schema:
        """Returns the fields that are compared: those of the new object, without its columns of whole rows
        (`ROW`), and the two columns that order records by age."""
        return pa.schema([*(f for f in self.work.schema if f.name not in ROW.names), *ORDER])

    # --- the new object

    def output(self, written: Sequence[WrittenObject]) -> _Output:
        """Returns what the new objects hold, read from the store."""
        output = _Output()
        for one in written:
            self._add(one, output)
        return output

    def _add(self, written: WrittenObject, output: _Output) -> None:
        order = InOrder(self.work.key, strictly=not self.work.rule.keeps_all)
        with DataObject.at(self.store, written.action, pool_id=self.work.config.id) as data:
            names = [name for name in data.schema.names if name not in ROW.names]
            for batch in data.batches(EVERYTHING, key=self.work.key, columns=names):
                table = pa.Table.from_batches([batch])
                order.see(table)
                if self.work.rule.kind == "aggregate":
                    output.content += content_of(table.select(self.work.key.names), as_text=self._as_text)
                    self._add_totals(table, output.totals)
                else:
                    output.content += content_of(table, as_text=self._as_text)
        output.disorder = output.disorder or order.fault

    # --- the inputs

    def kept(self) -> ContentSum:
        """Returns the content (number and content sum) of the records that the new object must hold."""
        if self.work.rule.keeps_all:
            return sum((self._kept_of(one) for one in self._clusters()), ContentSum())
        return sum((self._newest(part) for part in self._parts()), ContentSum())

    def aggregated(self) -> ContentSum:
        """Returns the content of the combined records, one for each key, that the new object must hold.  It also
        adds up `totals` from the inputs."""
        return sum((self._keys(part) for part in self._parts()), ContentSum())

    def _clusters(self) -> Iterator[_Cluster]:
        """References that share keys, and the deletes that apply to them together, as in a scan."""
        covering, upsert = self.work.covering(), self.work.rule.kind == "upsert"
        for cluster in clusters([r for r in self.work.inputs if r.key_range.overlaps(self.key_range)]):
            covers = {reference: covering.of(reference) for reference in cluster}
            yield _Cluster.of({r: c for r, c in covers.items() if not c.hide_all(upsert=upsert)}, self.work)

    def _kept_of(self, cluster: _Cluster) -> ContentSum:
        total = ContentSum()
        for reference in cluster.references:
            for table in self._stored(reference, self.key_range):
                if cluster.hiding is not None or not self.work.keeps_everything:
                    table = self.work.keeps(cluster.left(self._cast(table)))
                total += content_of(table, as_text=self._as_text)
        return total

    def _newest(self, part: _Part) -> ContentSum:
        """Returns the content of the newest record of each key, after deletes."""
        keys, hashes, alive = list[pa.Table](), [], []
        names = [*self.work.key.names, *ORDER.names]
        for reference in part.cluster.references:
            for stored in self._stored(reference, part.key_range):
                # a number in place of the ordinal says where a record went
                table = self._cast(stored)
                ordinal = table.schema.get_field_index(ORDINAL)
                numbers = pa.array(np.arange(table.num_rows), pa.int32())
                numbered = table.set_column(ordinal, ORDER.field(ORDINAL), numbers)
                left = part.cluster.left(numbered)
                kept = self.work.keeps(left)
                rows = kept.column(ORDINAL).combine_chunks()
                kept = kept.set_column(ordinal, ORDER.field(ORDINAL), table.column(ORDINAL).take(rows))
                places = rows.to_numpy()
                own, lives = np.zeros(table.num_rows, np.uint64), np.zeros(table.num_rows, np.bool_)
                own[places], lives[places] = hashes_of(kept, as_text=self._as_text), True
                if part.cluster.is_exact:  # an overtaken record may reveal an older one
                    competing = left.column(ORDINAL).to_numpy()
                    table, own, lives = table.take(pa.array(competing)), own[competing], lives[competing]
                keys.append(table.select(names))
                hashes.append(own)
                alive.append(lives)
        if not keys:
            return ContentSum()
        all_keys = pa.concat_tables(keys)
        order = self._by_age(all_keys)
        newest = order[ends_key(all_keys.take(pa.array(order)), self.work.key)]
        return content_of_hashes(np.concatenate(hashes)[newest[np.concatenate(alive)[newest]]])

    def _keys(self, part: _Part) -> ContentSum:
        """Returns the content of the distinct keys of the records that deletes leave."""
        keys = []
        for reference in part.cluster.references:
            for stored in self._stored(reference, part.key_range):
                table = self.work.keeps(part.cluster.left(self._cast(stored)))
                self._add_totals(table, self.totals)
                keys.append(table.select([*self.work.key.names, *ORDER.names]))
        if not keys:
            return ContentSum()
        all_keys = pa.concat_tables(keys)
        ordered = all_keys.take(pa.array(self._by_age(all_keys)))
        once = ordered.filter(pa.array(ends_key(ordered, self.work.key)))
        return content_of(once.select(self.work.key.names), as_text=self._as_text)

    def _by_age(self, keys: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        ages = tuple(keys.column(name).to_numpy().astype(np.uint64) for name in ORDER.names)
        order = sort_order(keys, self.work.key, then=ages)
        return np.arange(keys.num_rows) if order is None else order

    def _add_totals(self, table: pa.Table, totals: dict[str, int]) -> None:
        """Adds the values of the exact sums and counts of a table to `totals`."""
        for name, function in self.work.rule.aggregates:
            index = self.work.schema.get_field_index(name)
            if function not in ("sum", "count") or index < 0 or name not in table.schema.names:
                continue
            kind = self.work.schema.field(name).type
            if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
                scale = kind.scale if pa.types.is_decimal(kind) else 0
                totals[name] = totals.get(name, 0) + _whole_total(table.column(name), scale)

    def _parts(self) -> Iterator[_Part]:
        """Yields the clusters in ranges of keys that hold about `PART_RECORDS` records of the inputs."""
        for cluster in self._clusters():
            bounds = self._bounds(cluster.references)
            for low, high in pairwise([self.key_range.low, *bounds, self.key_range.high]):
                yield _Part(cluster, KeyRange(low or b"", high))

    def _bounds(self, references: Sequence[Reference]) -> list[bytes]:
        """Returns keys inside of the range that begin groups of about equally many records."""
        begins = list[tuple[bytes, int]]()
        for reference in references:
            with DataObject.at(self.store, reference, pool_id=self.work.config.id) as data:
                begins += zip(data.metadata.groups, data.group_rows, strict=True)
        bounds, records = list[bytes](), 0
        for key, rows in sorted(begins):
            records += rows
            if records > self.part_records and self.key_range.contains(key) and key > self.key_range.low:
                if key not in bounds[-1:]:
                    bounds.append(key)
                records = 0
        return bounds

    def _stored(self, reference: Reference, key_range: KeyRange) -> Iterator[pa.Table]:
        """Yields the records of an input in a range, in their own types, with their ages."""
        clip = key_range.intersect(reference.key_range)
        if clip.empty:
            return
        has_ages = reference.oldest is not None
        stored_names = [name for name in self.work.schema.names if name not in ROW.names]
        with DataObject.at(self.store, reference, pool_id=self.work.config.id) as data:
            columns = [*stored_names, *ORDER.names] if has_ages else stored_names
            for batch in data.batches(clip, key=self.work.key, columns=columns):
                table = pa.Table.from_batches([batch])
                if not has_ages:
                    yield with_order(table, seq=reference.seq, ordinal=reference.ordinal)
                    continue
                if reference.lifts:
                    seqs = lifted(table.column(SEQ).to_numpy(), reference.lifts, self.work.lifts)
                    at = table.schema.get_field_index(SEQ)
                    table = table.set_column(at, ORDER.field(SEQ), pa.array(seqs))
                yield table

    def _cast(self, table: pa.Table) -> pa.Table:
        return cast_table(table, self._schema, what=self.work.config.name)


@dataclass(frozen=True)
class _Cluster:
    """References whose deletes apply together.

    `is_exact`: a delete hides only records of certain sequences, so behind a record that it hides an older one
    may become visible.
    """

    references: tuple[Reference, ...]
    hiding: Hiding | None
    is_exact: bool

    @classmethod
    def of(cls, covers: Mapping[Reference, Covers], work: Rewriting) -> _Cluster:
        tombstones = list({t.id: t for one in covers.values() for t in one.tombstones}.values())
        hiding = partial(Hiding, key=work.key, has_markers=work.rule.kind == "upsert")
        is_exact = any(t.exactly is not None for t in tombstones)
        return cls(tuple(covers), hiding(tombstones) if tombstones else None, is_exact)

    def left(self, table: pa.Table) -> pa.Table:
        """Returns the records that no delete hides.  In an upsert pool a record that a delete hides by its
        condition stays, as a delete marker."""
        return table if self.hiding is None else self.hiding.left(table)


@dataclass(frozen=True)
class _Part:
    """A cluster in a range of keys."""

    cluster: _Cluster
    key_range: KeyRange


def _whole_total(column: pa.ChunkedArray, scale: int) -> int:
    """Returns the sum of numbers with `scale` digits behind the point, in units of the last one."""
    if pa.types.is_integer(column.type):
        values = [value for value in column.to_pylist() if value is not None]
        return sum(values) * 10**scale
    with decimal.localcontext(prec=_EXACT_DIGITS):
        return sum(int(value.scaleb(scale)) for value in column.to_pylist() if value is not None)
